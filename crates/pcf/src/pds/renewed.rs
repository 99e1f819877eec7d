//! The subscriptions of an association that are due: what producers answer, and what the association keeps of it.

use std::time::Instant;

use serde_json::Map;

use super::{Held, Upkeep, counters, ocs, spending_limits_context, subscribe_udr, supi_of, udr_callback};
use crate::association::Association;
use crate::events::Event;
use crate::outbound::{CHF, UDR};
use crate::sources::chf;
use crate::sources::now_ms;
use crate::sources::udr::{self, Failure, Subscription};
use crate::worker::Worker;

/// What was sought again, and what has come of it.
#[derive(Debug, Default)]
pub(crate) struct Renewed {
    /// What the association had when it was sought.
    before: Held,
    udr: Option<Result<Subscription, Failure>>,
    counters: Option<Result<Held, Failure>>,
}

/// What an event of an association has when its data have to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing that policies read has changed.
    None,
    /// Policy counters are there, or have changed.
    Counters,
    /// Policy data may have changed while no UDR could notify of it.
    PolicyData,
}

/// Whether a source of an association was away when it was asked last.
pub(crate) fn lacks(association: &Association) -> bool {
    let held = Held::of(association);
    held.udr_upkeep.lacks || held.counters_upkeep.lacks
}

/// Renews the subscriptions that are due; `at_once`: also those that are lacking whose pause is not over.
pub(crate) async fn renew(worker: &Worker, association: &Association, at_once: bool) -> Option<Renewed> {
    let supi = supi_of(worker, association)?;
    let (before, now) = (Held::of(association), now_ms());
    let end = Instant::now() + worker.config().pds.deadline.duration();
    let is_due = |upkeep: Upkeep| at_once && upkeep.lacks || upkeep.due().is_some_and(|due| due <= now);
    let of_udr = async {
        match &before.udr {
            _ if !is_due(before.udr_upkeep) => None,
            Some(uri) if before.udr_upkeep.reads_again => Some(Ok(Subscription {
                uri: uri.clone(),
                term: before.udr_upkeep.term,
            })),
            Some(uri) => Some(renew_udr(worker, association, (&supi, uri), before.udr_upkeep, end).await),
            None => subscribe_udr(worker, association, &supi, end).await,
        }
    };
    let of_counters = async {
        match &before.chf {
            _ if !is_due(before.counters_upkeep) => None,
            Some(uri) if !ocs::serves(worker, association) => {
                Some(renew_chf(worker, association, (&supi, uri), &before, end).await)
            }
            _ if before.sy.is_some() => None,
            _ => Some(counters(worker, association, &supi, end).await.map_err(|_| LOST)),
        }
    };
    let (udr, counters) = tokio::join!(of_udr, of_counters);
    let counters = counters.map(|counters| {
        counters.and_then(|held| match held.counters_upkeep.lacks {
            true => Err(LOST),
            false => Ok(held),
        })
    });
    for is_renewed in [
        udr.as_ref().map(Result::is_ok),
        counters.as_ref().map(Result::is_ok),
    ]
    .into_iter()
    .flatten()
    {
        worker.count(match is_renewed {
            true => Event::SubscriptionRenewed,
            false => Event::SubscriptionRenewalFailed,
        });
    }
    Some(Renewed {
        before,
        udr,
        counters,
    })
}

/// What a source of counters has not given; why was logged and counted.
const LOST: Failure = Failure::Malformed;

/// Renews a subscription at a UDR by PUT (TS 29.519 §5.2.12.3.1); one that the producer no longer has is recreated by POST.
async fn renew_udr(
    worker: &Worker,
    association: &Association,
    (supi, uri): (&str, &str),
    upkeep: Upkeep,
    end: Instant,
) -> Result<Subscription, Failure> {
    let subject = (supi, association.kind.service());
    let callback = udr_callback(worker, association).ok_or(LOST)?;
    match udr::renew(worker.peers(), uri, subject, &callback, end).await {
        Ok(term) => Ok(Subscription {
            uri: uri.to_owned(),
            term: term.or(upkeep.term.map(|term| term.again(now_ms()))),
        }),
        Err(Failure::Refused(_)) => {
            let made = subscribe_udr(worker, association, supi, end).await;
            made.unwrap_or(Err(LOST))
        }
        Err(failure) => Err(failure),
    }
}

/// Renews a subscription at a CHF by PUT (TS 29.594 §5.3.3.3.1); one that the producer no longer has is recreated by POST.
async fn renew_chf(
    worker: &Worker,
    association: &Association,
    (supi, uri): (&str, &str),
    before: &Held,
    end: Instant,
) -> Result<Held, Failure> {
    let context = spending_limits_context(worker, association).ok_or(LOST)?;
    match chf::renew(worker.peers(), uri, &context, end).await {
        Ok(limits) => Ok(Held {
            chf: Some(uri.to_owned()),
            counters: limits.counters,
            counters_upkeep: Upkeep::of(
                limits
                    .term
                    .or(before.counters_upkeep.term.map(|term| term.again(now_ms()))),
            ),
            ..Held::default()
        }),
        Err(Failure::Refused(_)) => counters(worker, association, supi, end).await.map_err(|_| LOST),
        Err(failure) => Err(failure),
    }
}

impl Renewed {
    /// What of the data of the subscriber is new.
    pub(crate) fn news(&self) -> News {
        let is_new = |uri: &str| self.before.udr.as_deref() != Some(uri);
        match (&self.udr, &self.counters) {
            (Some(Ok(_)), _) if self.before.udr_upkeep.reads_again => News::PolicyData,
            (Some(Ok(subscription)), _) if is_new(&subscription.uri) => News::PolicyData,
            (_, Some(Ok(held))) if held.counters != self.before.counters => News::Counters,
            _ => News::None,
        }
    }

    /// Puts it into the association. What another event has got meanwhile stays; subscriptions that are not needed then are
    /// `surplus`.
    pub(crate) fn put(&self, worker: &Worker, association: &mut Association, surplus: &mut Vec<Surplus>) {
        let mut held = Held::of(association);
        let (now, pause) = (now_ms(), worker.config().pds.retry_pause.duration().as_millis());
        let pause = u64::try_from(pause).unwrap_or(u64::MAX);
        surplus.clear();
        match &self.udr {
            Some(Ok(new)) if held.udr == self.before.udr => {
                held.udr = Some(new.uri.clone());
                held.udr_upkeep = Upkeep::of(new.term);
            }
            Some(Ok(new)) if held.udr.as_ref() != Some(&new.uri) => surplus.push((UDR, new.uri.clone())),
            Some(Err(_)) => held.udr_upkeep = held.udr_upkeep.failed(held.udr.is_none(), now, pause),
            _ => {}
        }
        let is_same = (&held.chf, &held.sy) == (&self.before.chf, &self.before.sy);
        match &self.counters {
            Some(Ok(new)) if is_same => {
                (held.chf, held.sy) = (new.chf.clone(), new.sy.clone());
                (held.counters, held.serial) = (new.counters.clone(), new.serial);
                held.counters_upkeep = new.counters_upkeep;
            }
            Some(Ok(new)) if held.chf != new.chf => surplus.extend(new.chf.clone().map(|uri| (CHF, uri))),
            Some(Err(_)) => {
                let lacks = held.chf.is_none() && held.sy.is_none();
                held.counters_upkeep = held.counters_upkeep.failed(lacks, now, pause);
            }
            _ => {}
        }
        held.keep(association);
    }

    /// An association with what was sought alone, so that it can be ended where the association is gone.
    pub(crate) fn alone(&self, association: &Association) -> Association {
        let mut gone = association.clone();
        let counters = self.counters.as_ref().and_then(|counters| counters.as_ref().ok());
        let udr = self.udr.as_ref().and_then(|udr| udr.as_ref().ok());
        Held {
            udr: udr.map(|new| new.uri.clone()),
            counters: Map::new(),
            ..counters.cloned().unwrap_or_default()
        }
        .keep(&mut gone);
        gone
    }
}

/// A subscription that is not needed.
pub(crate) type Surplus = (nrf_client::PeerService, String);
