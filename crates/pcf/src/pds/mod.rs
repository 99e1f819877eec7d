//! The policy data source: what is known of a subscriber beside the request itself.
//!
//! [`open`] queries the sources for a new association and subscribes to their changes, [`of`] has the data for a later
//! event, [`close`] ends the subscriptions. All sources of a request share one deadline; what happens while one is slow,
//! fails or is unreachable, the settings decide for each (`pds.udr.fallback`, `pds.chf.fallback`, `pds.sy.fallback`,
//! `pds.ldap.fallback`).

mod held;
mod network;
mod ocs;
mod profile;
mod renewed;
mod shared;
mod upkeep;

pub(crate) use held::Held;
pub(crate) use ocs::{finish, sy_ended};
pub(crate) use renewed::{News, Renewed, Surplus, lacks, renew};
pub(crate) use shared::{adopt, has_changed, refresh, remove, report};
use upkeep::Upkeep;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ::policy::Service;
use function::sbi::elsewhere;
use nrf_client::PeerService;
use serde_json::{Map, Value, json};
use store::EngineKind;
use time::OffsetDateTime;
use tokio::sync::Notify;

use crate::activity::trail;
use crate::association::Association;
use crate::association::callbacks::{self, Producer};
use crate::config::{ChfFallback, CounterService, UdrFallback, UnknownUser, ValidateUser};
use crate::emergency;
use crate::events::Event;
use crate::outbound::{CHF, UDR};
use crate::sources::Expected;
use crate::sources::chf;
use crate::sources::now_ms;
use crate::sources::producers;
use crate::sources::udr::{self, Failure, PolicyData, Subscription};
use crate::worker::Worker;

/// Where the UDR notifies of changed policy data (TS 29.519 §5.2.11), with the segment of [`crate::association::callbacks`].
pub(crate) const UDR_CALLBACK: &str = "/signalbox-pcf/v1/policy-data-change";
/// Where the CHF notifies of policy counters (TS 29.594 §5.3.2.3.2), with the segment of [`crate::association::callbacks`];
/// the CHF adds `/notify` or `/terminate`.
pub(crate) const CHF_CALLBACK: &str = "/signalbox-pcf/v1/spending-limits";

/// Milliseconds by which clocks of PCFs may differ.
const SKEW: u64 = 2_000;

/// Data of a subscriber, as policies read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Data {
    /// Policy data of TS 29.519 with custom attributes (`$subscriber`).
    pub(crate) subscriber: Rc<Value>,
    /// Policy counters by identifier (`$counters`).
    pub(crate) counters: Value,
    /// When the next pending status of a counter takes effect.
    pub(crate) next_change: Option<OffsetDateTime>,
}

impl Data {
    /// Policy data, and the counters of an association as they are now.
    fn new(subscriber: Rc<Value>, association: &Association) -> Self {
        let (held, now) = (Held::of(association).counters, OffsetDateTime::now_utc());
        Self {
            subscriber: network::named(subscriber, association),
            counters: Value::Object(pcc::counters::effective(&held, now)),
            next_change: pcc::counters::next_change(&held, now),
        }
    }
}

/// Why a request cannot be decided without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The UDR or the directory does not know the subscriber.
    User,
    /// No UDR answers in time, or no directory.
    PolicyData,
    /// No CHF, or no OCS, answers in time.
    Counters,
    /// The store does not answer with the quotas.
    Quotas,
    /// The store does not answer with the state variables.
    State,
}

/// Opens the paths at which the sources notify of a new association, and hears the UDR there also before it is written, as long as
/// the answer lives.
pub(crate) fn expect<'w>(worker: &'w Worker, association: &mut Association) -> Option<Expected<'w>> {
    let sources = worker.sources();
    if sources.chfs.is_some() {
        callbacks::open(association, Producer::Chf);
    }
    sources.udrs.as_ref()?;
    let token = callbacks::open(association, Producer::Udr);
    let supi = association.text_of("supi").unwrap_or_default();
    Some(worker.versions().expect(&token, supi))
}

/// The data for a new association. Subscriptions are made first, so that no change falls between them and the query; they
/// are kept with the association.
///
/// # Errors
/// When the settings refuse a request without them. The subscriptions are ended.
pub(crate) async fn open(worker: &Worker, association: &mut Association) -> Result<Rc<Data>, Missing> {
    let sources = worker.sources();
    let Some(supi) = supi_of(worker, association) else {
        return Ok(Rc::default());
    };
    let has_ocs = ocs::serves(worker, association);
    if sources.udrs.is_none() && sources.chfs.is_none() && !has_ocs && sources.directory.is_none() {
        return Ok(Rc::default());
    }
    let end = Instant::now() + worker.config().pds.deadline.duration();
    let unknown = Cell::new(0);
    let ((subscription, data), limits, profile) = tokio::join!(
        open_udr(worker, association, (&supi, &unknown), end),
        counters(worker, association, &supi, end),
        profile::of(worker, association, (&supi, &unknown), end)
    );
    let (limits, mut held) = match limits {
        Ok(held) => (Ok(()), held),
        Err(missing) => (Err(missing), Held::default()),
    };
    match subscription {
        Some(Ok((subscription, is_late))) => {
            held.udr = Some(subscription.uri);
            held.udr_upkeep = Upkeep::of(subscription.term);
            if is_late {
                held.udr_upkeep = held.udr_upkeep.read_again(now_ms());
            }
        }
        Some(Err(Failure::Refused(_))) | None => {}
        Some(Err(_)) => held.udr_upkeep = missed(worker),
    }
    held.keep(association);
    let data = data.and_then(|data| validated(worker, &unknown).map(|()| data));
    let data = data.and_then(|data| profile.map(|profile| profile::joined(data, &profile)));
    let found = data.and_then(|subscriber| limits.map(|()| Rc::new(Data::new(subscriber, association))));
    if found.is_err() {
        close(worker, association).await;
    }
    found
}

/// The data for a later event of an association.
///
/// # Errors
/// When the settings refuse a request without them.
pub(crate) async fn of(worker: &Worker, association: &Association) -> Result<Rc<Data>, Missing> {
    let Some(supi) = supi_of(worker, association) else {
        return Ok(Rc::default());
    };
    let end = Instant::now() + worker.config().pds.deadline.duration();
    let unknown = Cell::new(0);
    let (data, profile) = tokio::join!(
        policy_data(worker, (&supi, &unknown), association, end),
        profile::of(worker, association, (&supi, &unknown), end)
    );
    validated(worker, &unknown)?;
    let subscriber = profile::joined(data?, &profile?);
    Ok(Rc::new(Data::new(subscriber, association)))
}

/// Whether a source that does not know a subscriber has its request refused.
fn refuses(worker: &Worker, unknown_user: UnknownUser) -> bool {
    let by_source = worker.config().pds.validate_user == ValidateUser::BySource;
    by_source && unknown_user == UnknownUser::Reject
}

/// Refuses a subscriber whom none of the sources knows, where one has to.
fn validated(worker: &Worker, unknown: &Cell<usize>) -> Result<(), Missing> {
    let sources = worker.sources();
    let asked = usize::from(sources.udrs.is_some()) + usize::from(sources.directory.is_some());
    let is_required = worker.config().pds.validate_user == ValidateUser::Required;
    match is_required && asked > 0 && unknown.get() == asked {
        true => Err(Missing::User),
        false => Ok(()),
    }
}

/// The version of the data of an association's subscriber: another one after each change.
pub(crate) fn version(worker: &Worker, association: &Association) -> u64 {
    association
        .text_of("supi")
        .map_or(0, |supi| worker.versions().of(supi))
}

/// What is stored of an association's data: the counters. Its policy data are the UDR's.
pub(crate) fn stored(association: &Association) -> Data {
    Data::new(Rc::default(), association)
}

/// The name of a Sy session in the index of names.
pub(crate) fn sy_name(session_id: &str) -> String {
    format!("sy:{session_id}")
}

/// Ends the subscriptions of an association that has ended, in the background: what fails is left to the producers. It leaves
/// the Sy session of its subscriber.
pub(crate) async fn close(worker: &Worker, association: &Association) {
    let held = Held::of(association);
    shared::leave(worker, association).await;
    for (service, uri) in [(UDR, held.udr), (CHF, held.chf)] {
        if let Some(uri) = uri {
            end(worker, service, uri);
        }
    }
}

/// Ends a subscription at a producer, in the background.
pub(crate) fn end(worker: &Worker, service: PeerService, uri: String) {
    let settings = &worker.config().pds;
    let deadline = settings.deadline.duration().max(Duration::from_millis(1));
    let sources = worker.sources().clone();
    if sources.ends.get() >= settings.max_ends {
        worker.count(Event::SubscriptionLeft);
        return;
    }
    sources.ends.set(sources.ends.get() + 1);
    let (peers, counters) = (worker.peers().clone(), worker.counters().clone());
    let shared = worker.shared().clone();
    let ended = async move {
        let _ending = Ending(&sources.ends);
        if producers::delete(&peers, service, &uri, deadline).await {
            shared.removed.note(&uri, Instant::now());
            counters.count(Event::SubscriptionEnded);
        } else {
            counters.count(Event::SubscriptionLeft);
        }
    };
    tokio::task::spawn_local(trail::resume(trail::mark(), ended));
}

/// Counts an end in flight.
struct Ending<'a>(&'a Cell<usize>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

fn supi_of(worker: &Worker, association: &Association) -> Option<String> {
    association
        .text_of("supi")
        .filter(|supi| !supi.is_empty() && !emergency::is_local(worker, association))
        .map(str::to_owned)
}

/// Subscribes to the policy data and queries them, each in a share of the time, so that neither costs the other. The query
/// follows the subscription, so that no change falls between them, unless that takes long: true, where it was made after the
/// query had begun.
async fn open_udr(
    worker: &Worker,
    association: &Association,
    (supi, unknown): (&str, &Cell<usize>),
    end: Instant,
) -> (
    Option<Result<(Subscription, bool), Failure>>,
    Result<Rc<Value>, Missing>,
) {
    let now = Instant::now();
    let left = end.saturating_duration_since(now);
    let (is_made, is_queried) = (Notify::new(), Cell::new(false));
    let subscription = async {
        let made = subscribe_udr(worker, association, supi, now + left / 2).await;
        is_made.notify_one();
        made.map(|made| made.map(|made| (made, is_queried.get())))
    };
    let data = async {
        let _ = tokio::time::timeout(left / 4, is_made.notified()).await;
        is_queried.set(true);
        policy_data(worker, (supi, unknown), association, end).await
    };
    tokio::join!(subscription, data)
}

/// The upkeep of a subscription that no producer has answered.
fn missed(worker: &Worker) -> Upkeep {
    let pause = worker.config().pds.retry_pause.duration().as_millis();
    Upkeep::default().failed(true, now_ms(), u64::try_from(pause).unwrap_or(u64::MAX))
}

/// The URI at which the UDR notifies of an association.
fn udr_callback(worker: &Worker, association: &Association) -> Option<String> {
    let token = callbacks::token(association, Producer::Udr)?;
    Some(format!("{}{UDR_CALLBACK}/{token}", worker.root()))
}

/// Subscribes to changes of the policy data; a failure is counted and changes nothing else. `None`: the settings want none.
async fn subscribe_udr(
    worker: &Worker,
    association: &Association,
    supi: &str,
    end: Instant,
) -> Option<Result<Subscription, Failure>> {
    let udrs = worker.sources().udrs.as_ref()?;
    if !worker.config().pds.udr.subscribe {
        return None;
    }
    let callback = udr_callback(worker, association)?;
    let subject = (supi, association.kind.service());
    let made = udr::subscribe(udrs, worker.peers(), subject, &callback, end).await;
    worker.count(match &made {
        Ok(_) => Event::UdrSubscribed,
        Err(_) => Event::UdrSubscriptionFailed,
    });
    Some(made.inspect_err(|failure| tracing::debug!(supi, ?failure, "no subscription to policy data")))
}

/// The policy data of a subscriber: cached, of the UDR, or what the settings have in their place.
async fn policy_data(
    worker: &Worker,
    (supi, unknown): (&str, &Cell<usize>),
    association: &Association,
    end: Instant,
) -> Result<Rc<Value>, Missing> {
    let (service, changed) = (association.kind.service(), Held::of(association).changed);
    let sources = worker.sources();
    let Some(udrs) = &sources.udrs else {
        return Ok(Rc::default());
    };
    // Before the query: a change from now on makes the answer one of an older version.
    let version = worker.versions().of(supi);
    if let Some(document) = sources
        .cache
        .borrow()
        .fresh(supi, service, version, Instant::now())
        .filter(|(_, read)| changed.is_none_or(|changed| is_newer(*read, changed)))
        .map(|(document, _)| document)
    {
        worker.count(Event::UdrCached);
        return Ok(document);
    }
    worker.count(Event::UdrQueried);
    let settings = &worker.config().pds.udr;
    match udr::query(udrs, worker.peers(), supi, service, end).await {
        Ok(PolicyData::Known(document)) => {
            let document = Rc::new(document);
            let mut cache = sources.cache.borrow_mut();
            cache.hold(supi, service, document.clone(), (version, Instant::now()));
            Ok(document)
        }
        Ok(PolicyData::None) => {
            sources.cache.borrow_mut().remove(supi, service);
            Ok(Rc::new(Value::Object(settings.default.clone())))
        }
        Ok(PolicyData::Unknown) => {
            worker.count(Event::UdrUnknown);
            sources.cache.borrow_mut().remove(supi, service);
            unknown.set(unknown.get() + 1);
            match refuses(worker, settings.unknown_user) {
                true => Err(Missing::User),
                false => Ok(Rc::new(Value::Object(settings.default.clone()))),
            }
        }
        Err(failure) => without_udr(worker, supi, service, failure),
    }
}

/// Whether a document that was read at a time is none of before a change: the one that was read for it, or one that was read so
/// long after it that the clocks of two PCFs do not matter.
fn is_newer(read: u64, changed: u64) -> bool {
    read == changed || read > changed.saturating_add(SKEW)
}

/// Keeps with an association that its policy data have changed, for the other PCFs of the database: the UDR notifies one of them.
pub(crate) fn note_change(worker: &Worker, association: &mut Association) {
    if worker.config().store.engine == EngineKind::Embedded {
        return;
    }
    let Some(supi) = supi_of(worker, association) else {
        return;
    };
    let (version, service) = (worker.versions().of(&supi), association.kind.service());
    let cache = worker.sources().cache.borrow();
    let read = cache.fresh(&supi, service, version, Instant::now());
    let mut held = Held::of(association);
    held.changed = Some(read.map_or_else(now_ms, |(_, read)| read));
    held.keep(association);
}

/// What the settings have in place of the policy data of a UDR that does not answer.
fn without_udr(
    worker: &Worker,
    supi: &str,
    service: Service,
    failure: Failure,
) -> Result<Rc<Value>, Missing> {
    worker.count(Event::UdrFailed);
    tracing::debug!(supi, ?failure, "no policy data of a subscriber");
    let settings = &worker.config().pds.udr;
    let default = || Rc::new(Value::Object(settings.default.clone()));
    match settings.fallback {
        UdrFallback::Reject => {
            worker.count(Event::UdrRejected);
            Err(Missing::PolicyData)
        }
        UdrFallback::Default => {
            worker.count(Event::UdrDefaulted);
            Ok(default())
        }
        UdrFallback::Cached => match worker.sources().cache.borrow().any(supi, service) {
            Some(document) => {
                worker.count(Event::UdrStale);
                Ok(document)
            }
            None => {
                worker.count(Event::UdrDefaulted);
                Ok(default())
            }
        },
    }
}

/// Subscribes to the policy counters; `None`: the settings want none.
async fn subscribe_chf(
    worker: &Worker,
    association: &Association,
    supi: &str,
    end: Instant,
) -> Option<Result<chf::SpendingLimits, Failure>> {
    let settings = &worker.config().pds.chf;
    let service = match association.kind.service() {
        Service::Sm => CounterService::Sm,
        Service::Am => CounterService::Am,
        Service::Ue => CounterService::Ue,
    };
    let chfs = worker.sources().chfs.as_ref()?;
    if !settings.services.contains(&service) {
        return None;
    }
    let context = spending_limits_context(worker, association)?;
    let made = chf::subscribe(chfs, worker.peers(), (supi, &context), end).await;
    worker.count(match &made {
        Ok(_) => Event::ChfSubscribed,
        Err(_) => Event::ChfFailed,
    });
    Some(made.inspect_err(|failure| tracing::debug!(supi, ?failure, "no policy counters of a subscriber")))
}

/// What the PCF subscribes to at a CHF for an association.
fn spending_limits_context(worker: &Worker, association: &Association) -> Option<Value> {
    let token = callbacks::token(association, Producer::Chf)?;
    let callback = format!("{}{CHF_CALLBACK}/{token}", worker.root());
    let who = (association.text_of("supi")?, association.text_of("gpsi"));
    let counters = worker.config().pds.chf.counters.as_slice();
    Some(chf::context(who, (&callback, counters)))
}

/// What the CHF of an association's subscription says of its counters now: a notification is a hint.
pub(crate) async fn counters_now(worker: &Worker, association: &Association) -> chf::Present {
    let held = Held::of(association);
    let (Some(uri), Some(context)) = (held.chf, spending_limits_context(worker, association)) else {
        return chf::Present::Unknown;
    };
    let deadline = worker.config().pds.deadline.duration();
    elsewhere(pin!(chf::present(worker.peers(), &uri, &context, deadline))).await
}

/// The policy counters for an association, with the subscription or session that keeps them current.
async fn counters(
    worker: &Worker,
    association: &Association,
    supi: &str,
    end: Instant,
) -> Result<Held, Missing> {
    let settings = &worker.config().pds;
    if !ocs::serves(worker, association) {
        let counters_upkeep = match subscribe_chf(worker, association, supi, end).await {
            Some(Ok(limits)) => {
                return Ok(Held {
                    chf: Some(limits.uri),
                    counters: limits.counters,
                    counters_upkeep: Upkeep::of(limits.term),
                    ..Held::default()
                });
            }
            Some(Err(failure)) => {
                if settings.chf.fallback == ChfFallback::Reject {
                    worker.count(Event::ChfRejected);
                    return Err(Missing::Counters);
                }
                worker.count(Event::ChfDefaulted);
                match failure {
                    Failure::Refused(_) => Upkeep::default(),
                    _ => missed(worker),
                }
            }
            None => Upkeep::default(),
        };
        return Ok(Held {
            counters: default_counters(&settings.chf.default),
            counters_upkeep,
            ..Held::default()
        });
    }
    if let Some(held) = shared::join(worker, association, supi, end).await {
        return Ok(held);
    }
    worker.count(Event::SyFailed);
    match settings.sy.fallback {
        ChfFallback::Reject => {
            worker.count(Event::SyRejected);
            Err(Missing::Counters)
        }
        ChfFallback::Default => {
            worker.count(Event::SyDefaulted);
            Ok(Held {
                counters: default_counters(&settings.sy.default),
                counters_upkeep: missed(worker),
                ..Held::default()
            })
        }
    }
}

/// The policy counters of the settings, as a CHF would report them.
fn default_counters(statuses: &BTreeMap<String, String>) -> Map<String, Value> {
    let statuses = statuses.iter();
    let info = |(id, status): (&String, &String)| {
        (
            id.clone(),
            json!({"policyCounterId": id, "currentStatus": status}),
        )
    };
    statuses.map(info).collect()
}
