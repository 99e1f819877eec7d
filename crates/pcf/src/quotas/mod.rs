//! Quotas of subscribers: which apply to a session, what its reports leave of them, the thresholds that it gets
//! (TS 29.512 §4.2.6.5.3.1, TS 29.212 §4.5.16; crate `pcc`).
//!
//! The ledger of a subscriber is written in one batch with the association that a report is about, each on condition that it is
//! as it was read: a report counts once, whatever other sessions of the subscriber report at the same moment, at whichever
//! PCF of the database.

mod limits;
mod updates;

pub(crate) use updates::update_udr;

use model::SupportedFeatures;
use pcc::usage::{Accounts, Amount};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::association::gx::PcefSession;
use crate::association::ledger::{self, Draft, Ledger};
use crate::association::{Association, Kind};
use crate::config::Usage;
use crate::emergency;
use crate::events::Event;
use crate::worker::Worker;

/// Usage monitoring control (`UMC`, TS 29.512 §5.8).
const UMC: usize = 5;

/// The quotas of a session at one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Quotas {
    accounts: Accounts,
    /// Bounds of thresholds; `None`: the consumer measures nothing.
    portion: Option<Amount>,
}

/// The quotas that apply to a session with this policy data, as the ledger of its subscriber has them. A limit that the ledger
/// does not have yet goes into the draft.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn open(
    worker: &Worker,
    association: &Association,
    subscriber_data: &Value,
    draft: &mut Draft,
) -> Result<Quotas, store::Error> {
    let settings = &worker.config().usage;
    let is_session = matches!(association.kind, Kind::Sm | Kind::Gx);
    let Some(subscriber) =
        emergency::subscriber_of(worker, association).filter(|_| settings.enabled && is_session)
    else {
        return Ok(Quotas::default());
    };
    let now = OffsetDateTime::now_utc();
    let (mut accounts, at_udr) = limits::of_session(association, subscriber_data, settings, now);
    if accounts.all().is_empty() {
        return Ok(Quotas::default());
    }
    let ledger = read(worker, subscriber, draft).await?;
    accounts.resume(&ledger.accounts, now);
    for id in at_udr {
        if !ledger.at_udr.contains(&id) {
            ledger.at_udr.push(id);
        }
    }
    draft.put(&accounts);
    retain(draft, settings, now);
    Ok(Quotas {
        accounts,
        portion: measures(association).then(|| portion(settings)),
    })
}

/// Subtracts what a session reports (`accuUsageReports`) from its quotas, in the draft.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn report(
    worker: &Worker,
    association: &Association,
    report: &Value,
    draft: &mut Draft,
) -> Result<(), store::Error> {
    let limits = ledger::limits_of(association);
    let settings = &worker.config().usage;
    let Some(subscriber) = emergency::subscriber_of(worker, association) else {
        return Ok(());
    };
    if limits.is_empty() || report.get("accuUsageReports").is_none() || !settings.enabled {
        return Ok(());
    }
    let now = OffsetDateTime::now_utc();
    let mut accounts = read(worker, subscriber, draft).await?.accounts.only(&limits);
    if !accounts.report(report, now).is_empty() {
        draft.is_reported = true;
        draft.put(&accounts);
        retain(draft, settings, now);
    }
    Ok(())
}

/// Counts what was written of a ledger.
pub(crate) fn count(worker: &Worker, draft: &Draft) {
    if draft.is_reported {
        worker.count(Event::UsageReported);
    }
    for _ in draft.newly_exhausted() {
        worker.count(Event::UsageExhausted);
    }
}

impl Quotas {
    /// Identifiers of the limits.
    pub(crate) fn limits(&self) -> Vec<String> {
        let accounts = self.accounts.all().iter();
        accounts.map(|account| account.id().to_owned()).collect()
    }

    /// What policies read as `$session`: beside the usage of each `umId` the state of each limit.
    pub(crate) fn session(&self, association: &Association) -> Value {
        let mut session = association.session();
        let Some(Value::Object(usage)) = session.get_mut("usage") else {
            return session;
        };
        for (id, state) in self.accounts.states() {
            let entry = usage.entry(id).or_insert_with(|| Value::Object(Map::new()));
            if let (Value::Object(entry), Value::Object(state)) = (entry, state) {
                entry.extend(state);
            }
        }
        session
    }

    /// Adds the thresholds to a decision.
    pub(crate) fn attach(&self, policy: Map<String, Value>) -> Map<String, Value> {
        let Some(portion) = self.portion.filter(|_| !self.accounts.all().is_empty()) else {
            return policy;
        };
        let mut decision = Value::Object(policy);
        self.accounts.attach(&mut decision, Some(portion));
        match decision {
            Value::Object(policy) => policy,
            _ => Map::new(),
        }
    }
}

/// The quotas of an association as a ledger has them, for pages.
pub(crate) fn stored(association: &Association, ledger: Option<&Ledger>) -> Quotas {
    let limits = ledger::limits_of(association);
    Quotas {
        accounts: ledger.map_or_else(Accounts::default, |ledger| ledger.accounts.only(&limits)),
        portion: None,
    }
}

/// The ledger of the draft, read where it is not yet.
async fn read<'d>(
    worker: &Worker,
    subscriber: &str,
    draft: &'d mut Draft,
) -> Result<&'d mut Ledger, store::Error> {
    if draft.ledger.is_none() {
        let stored = worker.repository().ledger(subscriber).await?;
        draft.read(subscriber, stored);
    }
    // It was read before, or just now.
    Ok(draft.ledger.get_or_insert_default())
}

fn retain(draft: &mut Draft, settings: &Usage, now: OffsetDateTime) {
    if let Some(ledger) = draft.ledger.as_mut().filter(|_| draft.is_changed) {
        let expires = now.saturating_add(settings.retention.duration().try_into().unwrap_or_default());
        ledger.expires = u64::try_from(expires.unix_timestamp_nanos() / 1_000).unwrap_or(u64::MAX);
    }
}

/// Whether the consumer of a session measures usage: by the features that it has negotiated.
fn measures(association: &Association) -> bool {
    match association.kind {
        Kind::Gx => PcefSession::get(association).is_some_and(|session| session.measures),
        _ => association
            .text_of("suppFeat")
            .and_then(|features| SupportedFeatures::parse(features).ok())
            .is_some_and(|features| features.has(UMC)),
    }
}

fn portion(settings: &Usage) -> Amount {
    let volume = Some(settings.portion.0).filter(|bytes| *bytes > 0);
    Amount {
        total: volume,
        uplink: volume,
        downlink: volume,
        seconds: Some(settings.time_portion.as_secs()).filter(|seconds| *seconds > 0),
    }
}
