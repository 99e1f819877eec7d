//! Overload reports (RFC 7683) and loads (RFC 8583) of PCFs and AFs.
//!
//! The agent chooses the PCF of a session, so it reacts to the reports of PCFs in place of AFs that do not take part, and
//! for all requests that name no host. A reduction diverts sessions that begin to another PCF of the set, where the
//! binding holds for that, and refuses the rest: less important requests first, and requests of sessions that exist after
//! those that begin one. Loads are weights among the PCFs of a set.
//!
//! The worker that has the connection of a PCF receives its reports and hands them to all others: each worker keeps its
//! own table, so none waits for another.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bounded::{Cache, Limits};
use bytes::Bytes;
use diameter::Node;
use diameter::proto::known::{self, application};
use diameter::proto::overload::doic::{Decision, LOSS, Reactions, Report, ReportType, SupportedFeatures};
use diameter::proto::overload::load::{IDLE, Load, LoadType};
use diameter::proto::{AvpWriter, Fault, MessageBuilder, MessageMut, ResultCode};

use super::answer::Transit;
use super::post::Packet;
use super::request::Request;
use super::{Agent, Link};
use crate::events::Event;

/// Loads of hosts that are cached, and for how long one counts: it comes with each answer.
const LOADS: usize = 8_192;
const LOAD_VALIDITY: Duration = Duration::from_secs(30);
/// How often what has expired is removed.
const TIDY: Duration = Duration::from_secs(1);
/// Priority of a request without DRMP (RFC 7944 §9.1).
const USUAL_PRIORITY: u8 = 10;

/// What a worker knows of the load of others.
pub(super) struct Reports {
    reactions: RefCell<Reactions>,
    loads: RefCell<Cache<Box<str>, (Instant, u16)>>,
    tidied: Cell<Option<Instant>>,
    random: worker::Random,
    /// OC-Supported-Features, encoded.
    asking: Bytes,
}

/// A report or a load on its way to the other workers.
#[derive(Clone, Debug)]
pub(super) enum Received {
    Report {
        host: Arc<str>,
        realm: Arc<str>,
        report: Report,
    },
    Load {
        host: Arc<str>,
        value: u16,
    },
}

impl Reports {
    pub(super) fn new() -> Self {
        let mut asking = AvpWriter::with_capacity(64);
        SupportedFeatures { vector: LOSS }.write(&mut asking);
        Self {
            reactions: RefCell::default(),
            loads: RefCell::new(Cache::new(Limits::entries(LOADS))),
            tidied: Cell::new(None),
            random: worker::Random::default(),
            asking: asking.into_bytes(),
        }
    }

    /// Whether it was news.
    fn learn(&self, now: Instant, received: &Received) -> bool {
        match received {
            Received::Report { host, realm, report } => {
                let mut reactions = self.reactions.borrow_mut();
                reactions.learn(now, application::RX, host, realm, *report)
            }
            Received::Load { host, value } => {
                let mut loads = self.loads.borrow_mut();
                let key: Box<str> = host.to_ascii_lowercase().into();
                let known = loads.get(&key).copied();
                // Not each small step goes to all workers, nor is one that is known renewed at each answer.
                let news = known.is_none_or(|(at, known)| {
                    known.abs_diff(*value) > IDLE / 64 || now.duration_since(at) > LOAD_VALIDITY / 4
                });
                if news {
                    loads.insert(key, (now, *value));
                }
                news
            }
        }
    }

    /// Whether a request to this host, or to no host of this realm, is one too many.
    fn is_one_too_many(&self, now: Instant, host: Option<&str>, realm: &str, priority: u8) -> bool {
        let mut reactions = self.reactions.borrow_mut();
        if self.tidied.get().is_none_or(|at| now.duration_since(at) > TIDY) {
            reactions.expire(now);
            self.tidied.set(Some(now));
        }
        let dice = (self.random.next() >> 32) as u32;
        reactions.decide(
            now,
            application::RX,
            host.map(str::as_bytes),
            realm.as_bytes(),
            priority,
            dice,
        ) == Decision::Abate
    }

    /// One of these hosts, by what is left of their capacity; the first where no load is known.
    fn lightest<'h>(&self, now: Instant, hosts: &[&'h str]) -> Option<&'h str> {
        let loads = self.loads.borrow();
        let mut known = false;
        let weights: Vec<u64> = hosts
            .iter()
            .map(|host| {
                let load = loads.get(host.to_ascii_lowercase().as_str());
                let load = load.filter(|(at, _)| now.duration_since(*at) <= LOAD_VALIDITY);
                known |= load.is_some();
                // One that does not say is taken for half loaded.
                u64::from(load.map_or(IDLE / 2, |(_, value)| *value)) + 1
            })
            .collect();
        if !known {
            return hosts.first().copied();
        }
        let mut dice = self.random.next() % weights.iter().sum::<u64>().max(1);
        hosts.iter().zip(weights).find_map(|(host, weight)| {
            let chosen = dice < weight;
            dice = dice.saturating_sub(weight);
            chosen.then_some(*host)
        })
    }
}

impl Agent {
    /// OC-Supported-Features for a request whose sender does not take part; empty when it does.
    pub(super) fn asking(&self, request: &Request) -> &[u8] {
        if request.takes_part || !self.front.worker().config().rx.overload_reports {
            return &[];
        }
        &self.reports.asking
    }

    /// Whether a report holds a request back that would go to this host, or without one to its realm.
    pub(super) fn abates(&self, request: &Request, host: &str, begins: bool) -> bool {
        // An AF that takes part reacts itself where it names the host (RFC 7683 §3.3).
        let reacts = request.takes_part && request.has_destination;
        if reacts
            || self.reports.reactions.borrow().is_empty()
            || !self.front.worker().config().rx.overload_reports
        {
            return false;
        }
        let priority = request.priority.unwrap_or(USUAL_PRIORITY);
        let priority = priority.saturating_sub(u8::from(!begins));
        let realm = request.message.get(known::DESTINATION_REALM).ok().flatten();
        self.reports.is_one_too_many(
            Instant::now(),
            (!host.is_empty()).then_some(host),
            realm.unwrap_or(&self.origin.realm),
            priority,
        )
    }

    /// A request that a report holds back. Another path would not lead elsewhere (RFC 7683 §8).
    pub(super) fn abated(&self) -> Fault {
        self.counters.count(Event::RxAbated);
        Fault::new(
            ResultCode::UNABLE_TO_COMPLY,
            "the receiver has asked for fewer requests",
        )
    }

    /// The host to use of several.
    pub(super) fn lightest<'h>(&self, hosts: &[&'h str]) -> Option<&'h str> {
        self.reports.lightest(Instant::now(), hosts)
    }

    /// Takes the reports of an answer. Returns the answer without what ends here: what the sender of the request has not
    /// asked for (RFC 7683 §5.1), and the load of a neighbour (RFC 8583 §5).
    pub(super) fn take_reports(
        &self,
        node: &Node<Self>,
        from: &Link,
        transit: &Transit,
        message: MessageMut,
    ) -> MessageMut {
        let ours = |avp: &diameter::proto::Avp<'_>| {
            avp.is(known::OC_OLR) || avp.is(known::LOAD) || avp.is(known::OC_SUPPORTED_FEATURES)
        };
        if !message.avps().map_while(Result::ok).any(|avp| ours(&avp)) {
            return message;
        }
        self.learn_all(node, from, &message);
        let ends = |avp: &diameter::proto::Avp<'_>| match avp.is(known::LOAD) {
            true => Load::read(avp.group()).is_ok_and(|load| load.kind == LoadType::Peer),
            false => transit.asked && ours(avp),
        };
        let mut rest = MessageBuilder::new(message.header());
        for avp in message.avps().map_while(Result::ok) {
            if !ends(&avp) {
                rest.copy(&avp);
            }
        }
        rest.finish().unwrap_or(message)
    }

    /// A peer reports for itself; peers and relays of the settings also for those behind them, and for a realm (RFC 7683
    /// §10.2: a forged report would deny the service of a PCF).
    #[cold]
    fn learn_all(&self, node: &Node<Self>, from: &Link, message: &MessageMut) {
        let worker = self.front.worker();
        let settings = &worker.config().rx;
        if !settings.overload_reports {
            return;
        }
        let neighbour = from.peer().map_or("", |up| up.remote.origin.host.as_str());
        let is_neighbour = |name: &str| name.eq_ignore_ascii_case(neighbour);
        let is_known = settings.peers.iter().any(|peer| is_neighbour(&peer.host))
            || settings.relays.iter().any(|relay| is_neighbour(relay));
        let text = |avp| message.get(avp).ok().flatten().unwrap_or_default();
        let (host, realm) = (text(known::ORIGIN_HOST), text(known::ORIGIN_REALM));
        if !is_known && !is_neighbour(host) {
            return;
        }
        let believed = |report: &Report| is_known || report.kind == ReportType::Host;
        for report in Report::all(message).filter(believed) {
            let received = Received::Report {
                host: host.into(),
                realm: realm.into(),
                report,
            };
            if self.reports.learn(node.now(), &received) {
                self.counters.count(Event::RxReport);
                tracing::info!(host, realm, ?report, "overload report");
                self.hand_on(&received);
            }
        }
        for load in Load::all(message) {
            let source = match load.kind {
                LoadType::Host => host,
                LoadType::Peer => neighbour,
            };
            let received = Received::Load {
                host: source.into(),
                value: load.value,
            };
            if load.source.eq_ignore_ascii_case(source) && self.reports.learn(node.now(), &received) {
                self.counters.count(Event::RxLoad);
                self.hand_on(&received);
            }
        }
    }

    fn hand_on(&self, received: &Received) {
        for worker in (0..self.workers).filter(|worker| *worker != self.worker) {
            // A worker whose mailbox is full gets the next report.
            let _ = self.post.send(worker, Packet::Report(received.clone()));
        }
    }

    /// Learns what another worker received.
    pub(super) fn learn_handed_on(&self, node: &Node<Self>, received: &Received) {
        self.reports.learn(node.now(), received);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(host: &str, value: u16) -> Received {
        Received::Load {
            host: host.into(),
            value,
        }
    }

    #[test]
    fn loads_are_weights_and_expire() {
        let (reports, now) = (Reports::new(), Instant::now());
        let hosts = ["a.example", "b.example"];
        assert_eq!(reports.lightest(now, &hosts), Some("a.example"));
        assert!(reports.learn(now, &load("A.example", 0)));
        assert!(!reports.learn(now, &load("a.example", 1)), "no news");
        assert!(reports.learn(now, &load("b.example", IDLE)));
        let of_b = |now| {
            let chosen = (0..1_000).filter_map(|_| reports.lightest(now, &hosts));
            chosen.filter(|host| *host == "b.example").count()
        };
        assert!(of_b(now) > 990);
        assert_eq!(of_b(now + LOAD_VALIDITY * 2), 0);
        assert_eq!(reports.lightest(now, &[]), None);
    }
}
