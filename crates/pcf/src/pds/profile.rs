//! Profiles of subscribers in a directory, as members of what policies read of the subscriber.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use ::policy::Service;
use serde_json::{Map, Value};

use super::{Missing, refuses};
use crate::activity::{Entry, trail};
use crate::association::Association;
use crate::config::LdapFallback;
use crate::events::Event;
use crate::sources::ldap::{Failure, Profile};
use crate::worker::Worker;

/// The service under which profiles are cached: they are the same for all.
const ANY: Service = Service::Sm;

/// The profile of a subscriber: cached, of the directory, or what the settings have in its place.
///
/// # Errors
/// When the settings refuse a request without it.
pub(super) async fn of(
    worker: &Worker,
    association: &Association,
    (supi, unknown): (&str, &Cell<usize>),
    end: Instant,
) -> Result<Rc<Value>, Missing> {
    let sources = worker.sources();
    let Some(directory) = &sources.directory else {
        return Ok(Rc::default());
    };
    let (version, now) = (worker.versions().of(supi), Instant::now());
    if let Some((profile, _)) = sources.profiles.borrow().fresh(supi, ANY, version, now) {
        worker.count(Event::LdapCached);
        return Ok(profile);
    }
    worker.count(Event::LdapQueried);
    let settings = &worker.config().pds.ldap;
    let began = Instant::now();
    let found = directory.query(supi, association.text_of("gpsi"), end).await;
    worker.latencies().searched(began);
    match found {
        Ok(Profile::Known(members)) => {
            let body = || Value::Object(members.clone());
            trail::note(|| Entry::new("in", "profile").over("LDAP", "").body(body()));
            let profile = Rc::new(Value::Object(members));
            let mut cache = sources.profiles.borrow_mut();
            cache.hold(supi, ANY, profile.clone(), (version, Instant::now()));
            Ok(profile)
        }
        Ok(Profile::Unknown) => {
            worker.count(Event::LdapUnknown);
            sources.profiles.borrow_mut().remove(supi, ANY);
            unknown.set(unknown.get() + 1);
            match refuses(worker, settings.unknown_user) {
                true => Err(Missing::User),
                false => Ok(default(&settings.default)),
            }
        }
        Err(failure) => without(worker, supi, &failure),
    }
}

fn default(members: &Map<String, Value>) -> Rc<Value> {
    Rc::new(Value::Object(members.clone()))
}

/// What the settings have in place of the profile of a directory that does not answer.
fn without(worker: &Worker, supi: &str, failure: &Failure) -> Result<Rc<Value>, Missing> {
    worker.count(match failure {
        Failure::Referral(_) => Event::LdapReferral,
        Failure::Busy | Failure::Unavailable(_) | Failure::Refused(_) => Event::LdapFailed,
    });
    tracing::debug!(supi, ?failure, "no profile of a subscriber");
    let settings = &worker.config().pds.ldap;
    let cached = match settings.fallback {
        LdapFallback::Reject => {
            worker.count(Event::LdapRejected);
            return Err(Missing::PolicyData);
        }
        LdapFallback::Default => None,
        LdapFallback::Cached => worker.sources().profiles.borrow().any(supi, ANY),
    };
    match cached {
        Some(profile) => {
            worker.count(Event::LdapStale);
            Ok(profile)
        }
        None => {
            worker.count(Event::LdapDefaulted);
            Ok(default(&settings.default))
        }
    }
}

/// Policy data with the members of a profile that they do not have.
pub(super) fn joined(policy_data: Rc<Value>, profile: &Rc<Value>) -> Rc<Value> {
    let Value::Object(more) = &**profile else {
        return policy_data;
    };
    match &*policy_data {
        _ if more.is_empty() => policy_data,
        Value::Object(members) => {
            let mut all = members.clone();
            for (name, value) in more {
                all.entry(name).or_insert_with(|| value.clone());
            }
            Rc::new(Value::Object(all))
        }
        _ => profile.clone(),
    }
}
