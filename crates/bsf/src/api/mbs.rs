//! `/pcf-mbs-bindings`: bindings of multicast and broadcast sessions (TS 29.521 §5.3.8, §5.3.9).

use model::SupportedFeatures;
use model::shape::Shape;
use sbi::query::json_text;
use sbi::{Request, Response};
use serde_json::Value;
use store::{Conflict, Error};

use super::bindings::Served;
use super::fault::Fault;
use super::{bad_query, features_of, list, pairs};
use crate::binding::{MbsBinding, shape};
use crate::events::Event;
use crate::worker::Worker;

impl Served for MbsBinding {
    const NAME: &'static str = "pcf-mbs-bindings";
    const SHAPE: &'static Shape = &shape::MBS_BINDING;
    const PATCH: &'static [&'static str] = shape::MBS_PATCH;
    const EVENTS: [Event; 3] = [Event::MbsChanged; 3];

    async fn write(&self, worker: &Worker, _: &SupportedFeatures) -> Result<(), Fault> {
        let repository = worker.repository();
        match repository.add(&repository.mbs, self).await {
            Ok(_) => Ok(()),
            Err(Error::Conflict {
                conflict: Conflict::Unique { .. },
                ..
            }) => Err(existing(worker, self).await?),
            Err(error) => Err(error.into()),
        }
    }

    async fn discover(worker: &Worker, request: &Request) -> Result<Response, Fault> {
        let mut session = None;
        for (name, value) in &pairs(request.query(), &["mbs-session-id", "supp-feat"])? {
            match &**name {
                "mbs-session-id" => {
                    let parsed: Value = serde_json::from_str(&json_text(value))
                        .map_err(|error| bad_query(name, format!("expected an MbsSessionId: {error}")))?;
                    if let Some(fault) = shape::MBS_SESSION.check(&parsed).into_iter().next() {
                        return Err(bad_query(name, format!("{}: {}", fault.pointer, fault.expected)));
                    }
                    session = Some(parsed);
                }
                "supp-feat" => drop(features_of(name, value)?),
                _ => {}
            }
        }
        let session = session.ok_or(Fault::QueryMissing {
            name: "mbs-session-id",
            expected: "mandatory",
        })?;
        let mut found = find(worker, &session).await?;
        found.retain(|binding| binding.is_of(&session));
        worker.count(match found.is_empty() {
            true => Event::FoundNothing,
            false => Event::Discovered,
        });
        Ok(list(found.iter().map(|binding| &binding.0)))
    }

    fn is_news(&self, _: &Self) -> bool {
        false
    }
}

/// Where the PCF is that has the MBS session.
async fn existing(worker: &Worker, wanted: &MbsBinding) -> Result<Fault, Fault> {
    worker.count(Event::ExistingFound);
    let id = wanted.0.member("mbsSessionId").cloned().unwrap_or_default();
    let found = find(worker, &id).await?;
    let member = |name| Some((name, found.first()?.0.member(name)?.clone()));
    let members = ["pcfFqdn", "pcfIpEndPoints"].into_iter().filter_map(member);
    Ok(Fault::Existing(members.collect()))
}

/// The binding that has one of the identities of a session.
async fn find(worker: &Worker, session: &Value) -> Result<Vec<MbsBinding>, Fault> {
    for key in MbsBinding::session_keys(session) {
        let found = worker.repository().mbs.find(MbsBinding::SESSION, &key, 1).await?;
        if !found.is_empty() {
            return Ok(found.into_iter().map(|stored| stored.record).collect());
        }
    }
    Ok(Vec::new())
}
