//! How each producer does, and whether something may be sent to it now.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use http::{HeaderMap, StatusCode};
use overload::{CircuitBreaker, Discard, OutlierDetector, Verdict};
use sbi::client::{Origin, SendError, SendErrorKind};
use sbi::headers::{Oci, SbiHeader, Scope, names};
use time::OffsetDateTime;

use super::fault::{Record, Says, Sent};
use super::rate::{Rates, Share, Shares};
use super::told::{Board, MOST_VALID, Told};
use crate::config::Protection;
use crate::events::{AttemptMetrics, Metrics};
use crate::network::ServiceRef;

/// Producers that a worker has sent to, by `host:port`.
pub(crate) struct Peers {
    settings: Protection,
    metrics: Metrics,
    rates: Arc<Rates>,
    shares: Shares,
    most: usize,
    known: RefCell<AHashMap<Arc<str>, Rc<Peer>>>,
    outliers: RefCell<OutlierDetector<Arc<str>>>,
    /// What producers whose profiles are known tell.
    pub(crate) told: Told,
}

/// Where an attempt goes, as far as it matters here.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) peer: &'a Peer,
    /// The service instance, if its profile is known.
    pub(crate) service: Option<&'a ServiceRef>,
    /// The API name of the request.
    pub(crate) api: &'a str,
    /// Host of the SCP on the way, if there is one.
    pub(crate) hop: Option<&'a str>,
}

/// A producer as this worker sees it.
pub(crate) struct Peer {
    pub(crate) authority: Arc<str>,
    instance: Option<Box<str>>,
    /// Rates to be kept, by service; empty where no rates are set.
    rates: RefCell<Vec<ServiceRates>>,
    breaker: RefCell<CircuitBreaker>,
    outstanding: Cell<u32>,
    most_outstanding: u32,
    /// Failures since the last success; while there are none the outlier detector need not be asked.
    troubled: Cell<bool>,
    record: Record,
    /// What the outlier detector knows it by.
    key: Arc<str>,
    overloaded: Cell<Option<Reduction>>,
    shed: Cell<Discard>,
    metrics: AttemptMetrics,
}

/// A service and the rates its requests must keep.
type ServiceRates = (Box<str>, Rc<[Rc<Share>]>);

/// Overload that a producer has told of.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    told: OffsetDateTime,
    until: Instant,
    share: f64,
}

/// Why nothing is sent to a producer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It fails, and is left alone for a while.
    Ejected,
    /// Too many requests are outstanding there.
    Outstanding,
    /// It has told that it is overloaded.
    Overloaded,
    /// Its rate is reached.
    Rate,
    /// Its circuit is open.
    Open,
}

/// How an attempt has ended.
pub(crate) enum Ended<'a> {
    /// The producer answered.
    Answered(StatusCode, &'a HeaderMap),
    /// It did not.
    Failed(&'a SendError),
}

impl Peers {
    pub(crate) fn new(
        settings: &Protection,
        metrics: &Metrics,
        rates: Arc<Rates>,
        board: Arc<Board>,
        worker: usize,
        most: usize,
    ) -> Self {
        Self {
            told: Told::new(settings, board),
            settings: settings.clone(),
            metrics: metrics.clone(),
            rates,
            shares: Shares::new(worker),
            most,
            known: RefCell::default(),
            outliers: RefCell::new(OutlierDetector::new(settings.outliers.clone())),
        }
    }

    /// The producer at an origin. Where no profile is known it is one of its own: a request that names a producer
    /// in another way than its profile, such as with the other scheme, says nothing of that producer.
    pub(crate) fn at(&self, origin: &Origin, instance: Option<&str>, now: Instant) -> Rc<Peer> {
        let mut known = self.known.borrow_mut();
        let key: Cow<'_, str> = match instance {
            Some(_) => origin.authority().into(),
            None => origin.to_string().into(),
        };
        if let Some(peer) = known.get(&*key) {
            return peer.clone();
        }
        if known.len() >= self.most {
            // Those nobody waits for go; they are made anew when they are needed.
            known.retain(|_, peer| peer.outstanding.get() > 0);
        }
        let (key, authority): (Arc<str>, Arc<str>) = (key.into(), origin.authority().into());
        let peer = Rc::new(Peer {
            instance: instance.map(Into::into),
            rates: RefCell::default(),
            authority: authority.clone(),
            breaker: RefCell::new(CircuitBreaker::new(self.settings.breaker.clone())),
            outstanding: Cell::new(0),
            most_outstanding: match self.settings.max_outstanding {
                0 => u32::MAX,
                most => most,
            },
            troubled: Cell::new(false),
            record: Record::default(),
            key: key.clone(),
            overloaded: Cell::new(None),
            shed: Cell::new(Discard::new()),
            metrics: AttemptMetrics::new(&self.metrics, &authority),
        });
        known.insert(key, peer.clone());
        self.outliers.borrow_mut().set_peers(known.keys().cloned(), now);
        peer
    }

    /// The producer at an authority that a profile names, if it was sent to.
    pub(crate) fn known(&self, authority: &str) -> Option<Rc<Peer>> {
        self.known.borrow().get(authority).cloned()
    }

    /// Whether a producer is to be left alone now.
    pub(crate) fn is_ejected(&self, peer: &Peer, now: Instant) -> bool {
        peer.troubled.get() && self.outliers.borrow().is_ejected(&*peer.key, now)
    }

    /// Whether a request may be sent to the producer now. If so, [`Peers::ended`] must follow.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn may_send(&self, way: Way<'_>, priority: u8, now: Instant) -> Result<(), Held> {
        let (metrics, peer) = (&self.metrics, way.peer);
        let held = |counter: &telemetry::Counter, why| {
            counter.inc();
            Err(why)
        };
        if self.is_ejected(peer, now) {
            return held(&metrics.over_ejected, Held::Ejected);
        }
        if peer.outstanding.get() >= peer.most_outstanding {
            return held(&metrics.over_outstanding, Held::Outstanding);
        }
        let sheds = match way.service {
            Some(service) => self.told.sheds(service, way.hop, priority, now),
            None => self.settings.honour_oci && peer.sheds(priority, self.settings.spare_priority, now),
        };
        if sheds {
            return held(&metrics.over_oci, Held::Overloaded);
        }
        if !self.settings.egress.is_empty() && !self.is_within_rates(peer, way.api, now) {
            return held(&metrics.over_rate, Held::Rate);
        }
        if peer.troubled.get() && !peer.breaker.borrow_mut().allow(now) {
            return held(&metrics.over_open, Held::Open);
        }
        peer.outstanding.set(peer.outstanding.get() + 1);
        Ok(())
    }

    fn is_within_rates(&self, peer: &Peer, api: &str, now: Instant) -> bool {
        /// Services that are told apart at one producer; the names come from consumers.
        const SERVICES: usize = 64;
        let mut known = peer.rates.borrow_mut();
        let at = match known.iter().position(|(name, _)| **name == *api) {
            Some(at) => at,
            None => {
                let (authority, instance) = (&*peer.authority, peer.instance.as_deref());
                let shares = self
                    .rates
                    .of_producer(&self.settings, authority, instance, api, &self.shares);
                if known.len() >= SERVICES {
                    known.clear();
                }
                known.push((api.into(), shares));
                known.len() - 1
            }
        };
        known[at].1.iter().all(|share| share.allow(now))
    }

    /// A request that was let through was not waited for to its end.
    pub(crate) fn abandoned(&self, peer: &Peer) {
        peer.outstanding.set(peer.outstanding.get().saturating_sub(1));
        self.says_nothing(peer);
    }

    /// How a request that was let through has ended. `members` are the others that can stand in for the producer;
    /// they are asked for when it is about to be left alone.
    pub(crate) fn ended(
        &self,
        way: Way<'_>,
        sent: Sent,
        ended: &Ended<'_>,
        now: Instant,
        members: impl FnOnce() -> Vec<ServiceRef>,
    ) {
        let peer = way.peer;
        peer.outstanding.set(peer.outstanding.get().saturating_sub(1));
        let says = match ended {
            Ended::Answered(status, headers) => {
                peer.metrics.answered(*status);
                match way.service {
                    Some(service) => self.told.take(headers, service, way.hop, now),
                    None if self.settings.honour_oci && headers.contains_key(names::OCI) => {
                        peer.take_oci(headers, now);
                    }
                    None => {}
                }
                Says::by_status(*status, sent)
            }
            Ended::Failed(error) => {
                match error.kind {
                    SendErrorKind::Connect(_) | SendErrorKind::NoTls => peer.metrics.connect.inc(),
                    SendErrorKind::Timeout => peer.metrics.timeout.inc(),
                    SendErrorKind::Reset(_) | SendErrorKind::GoAway => peer.metrics.reset.inc(),
                    _ => peer.metrics.other.inc(),
                }
                Says::by_error(&error.kind, sent)
            }
        };
        let well = match says {
            Says::Well => {
                peer.record.served(sent.source, now);
                true
            }
            Says::Doubtful => {
                let long = self.settings.outliers.interval.duration();
                if !peer.record.failed(sent.source, long, now) {
                    return self.says_nothing(peer);
                }
                false
            }
            Says::Failed => false,
            Says::Nothing => return self.says_nothing(peer),
        };
        if well && !peer.troubled.get() {
            return;
        }
        let mut breaker = peer.breaker.borrow_mut();
        if breaker.report(well, now) {
            tracing::warn!(producer = %peer.authority, state = ?breaker.state(now), "a circuit has changed");
        }
        let group = || {
            way.service.map(|_| {
                let members = members();
                let keys = members.iter().map(|one| one.endpoint().authority.clone());
                keys.collect::<Vec<_>>()
            })
        };
        let verdict = self
            .outliers
            .borrow_mut()
            .report_among(&*peer.key, well, now, group);
        if let Verdict::Ejected(long) = verdict {
            tracing::warn!(producer = %peer.authority, ?long, "a producer is left alone, it fails");
        }
        let closed = breaker.state(now) == overload::BreakerState::Closed;
        peer.troubled
            .set(!(well && closed && !self.outliers.borrow().is_ejected(&*peer.key, now)));
    }

    /// A request has ended in a way that says nothing of its producer: if it was a try, another may follow.
    fn says_nothing(&self, peer: &Peer) {
        if peer.troubled.get() {
            peer.breaker.borrow_mut().release();
        }
    }
}

impl Peer {
    fn sheds(&self, priority: u8, spared: u8, now: Instant) -> bool {
        let Some(told) = self.overloaded.get() else {
            return false;
        };
        if now >= told.until {
            self.overloaded.set(None);
            return false;
        }
        if priority < spared {
            return false;
        }
        let mut shed = self.shed.get();
        let discards = shed.next(told.share);
        self.shed.set(shed);
        discards
    }

    fn take_oci(&self, headers: &HeaderMap, now: Instant) {
        for value in headers.get_all(names::OCI) {
            let Some(oci) = value.to_str().ok().and_then(|text| Oci::parse(text).ok()) else {
                continue;
            };
            for element in oci.0.iter().filter(|element| is_of_producer(&element.scope)) {
                // An older one that was overtaken on its way says nothing (TS 29.500 §6.4.3.3).
                if self
                    .overloaded
                    .get()
                    .is_some_and(|known| known.told > element.timestamp)
                {
                    continue;
                }
                let holds = !element.validity.is_zero() && element.reduction > 0;
                self.overloaded.set(holds.then(|| Reduction {
                    told: element.timestamp,
                    until: now + element.validity.min(MOST_VALID),
                    share: f64::from(element.reduction.min(100)) / 100.0,
                }));
            }
        }
    }
}

/// Whether overload is that of the producer who answers: its instance or service, or a set it is in.
fn is_of_producer(scope: &Scope) -> bool {
    matches!(
        scope,
        Scope::NfInstance(_, None)
            | Scope::NfSet(_, None)
            | Scope::ServiceInstance(_, _, None)
            | Scope::ServiceSet(_, None)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use overload::{BreakerSettings, OutlierSettings};
    use std::time::Duration;
    use telemetry::Registry;

    fn peers(settings: Protection) -> Peers {
        Peers::new(
            &settings,
            &Metrics::new(&Registry::new()),
            Arc::new(Rates::new(1)),
            Arc::default(),
            0,
            100,
        )
    }

    fn peer(peers: &Peers, now: Instant) -> Rc<Peer> {
        peers.at(&"http://127.0.0.1:9".parse().unwrap(), None, now)
    }

    fn end(peers: &Peers, peer: &Peer, ended: &Ended<'_>, now: Instant) {
        end_for(1, peers, peer, ended, now);
    }

    fn end_for(source: u64, peers: &Peers, peer: &Peer, ended: &Ended<'_>, now: Instant) {
        let sent = Sent {
            source,
            whole_time: true,
        };
        peers.ended(way(peer), sent, ended, now, Vec::new);
    }

    fn way(peer: &Peer) -> Way<'_> {
        Way {
            peer,
            service: None,
            api: "x",
            hop: None,
        }
    }

    #[test]
    fn who_fails_is_left_alone_and_tried_again() {
        let peers = peers(Protection {
            outliers: OutlierSettings {
                consecutive_failures: 3,
                ..OutlierSettings::default()
            },
            breaker: BreakerSettings {
                failures: 1_000,
                ..BreakerSettings::default()
            },
            ..Protection::default()
        });
        let now = Instant::now();
        let peer = peer(&peers, now);
        let (failed, fine) = (StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK);
        let none = HeaderMap::new();
        for _ in 0..3 {
            assert!(peers.may_send(way(&peer), 24, now).is_ok());
            end(&peers, &peer, &Ended::Answered(failed, &none), now);
        }
        assert!(peers.may_send(way(&peer), 24, now).is_err());
        let later = now + Duration::from_secs(31);
        assert!(peers.may_send(way(&peer), 24, later).is_ok());
        end(&peers, &peer, &Ended::Answered(fine, &none), later);
        assert!(!peer.troubled.get());
        assert_eq!(peer.outstanding.get(), 0);
    }

    /// Whatever one consumer does, a producer that serves others is theirs.
    #[test]
    fn one_consumer_alone_has_no_producer_left_alone() {
        let peers = peers(Protection::default());
        let now = Instant::now();
        let peer = peer(&peers, now);
        let none = HeaderMap::new();
        let error = |kind| SendError {
            kind,
            processed: sbi::client::Processed::Maybe,
        };
        let send = |source, ended: &Ended<'_>| {
            assert!(peers.may_send(way(&peer), 24, now).is_ok(), "{:?}", peer.breaker);
            end_for(source, &peers, &peer, ended, now);
        };
        send(7, &Ended::Answered(StatusCode::OK, &none));
        for _ in 0..100 {
            send(1, &Ended::Answered(StatusCode::INTERNAL_SERVER_ERROR, &none));
            send(1, &Ended::Failed(&error(SendErrorKind::Reset(1))));
            send(1, &Ended::Failed(&error(SendErrorKind::TooLarge)));
            assert!(peers.may_send(way(&peer), 24, now).is_ok());
            peers.abandoned(&peer);
        }
        // Others meet the same: it is the producer.
        for _ in 0..5 {
            send(7, &Ended::Answered(StatusCode::INTERNAL_SERVER_ERROR, &none));
        }
        assert_eq!(peers.may_send(way(&peer), 24, now), Err(Held::Ejected));
    }

    #[test]
    fn a_try_that_its_consumer_gives_up_is_followed_by_another() {
        let peers = peers(Protection {
            outliers: OutlierSettings {
                consecutive_failures: 0,
                ..OutlierSettings::default()
            },
            ..Protection::default()
        });
        let now = Instant::now();
        let peer = peer(&peers, now);
        let none = HeaderMap::new();
        for _ in 0..10 {
            assert!(peers.may_send(way(&peer), 24, now).is_ok());
            end(
                &peers,
                &peer,
                &Ended::Answered(StatusCode::BAD_GATEWAY, &none),
                now,
            );
        }
        assert_eq!(peers.may_send(way(&peer), 24, now), Err(Held::Open));
        let later = now + Duration::from_secs(1);
        for _ in 0..20 {
            assert!(peers.may_send(way(&peer), 24, later).is_ok());
            peers.abandoned(&peer);
        }
        for _ in 0..2 {
            assert!(peers.may_send(way(&peer), 24, later).is_ok());
            end(&peers, &peer, &Ended::Answered(StatusCode::OK, &none), later);
        }
        assert!(!peer.troubled.get());
    }

    #[test]
    fn outstanding_requests_are_bounded() {
        let peers = peers(Protection {
            max_outstanding: 2,
            ..Protection::default()
        });
        let now = Instant::now();
        let peer = peer(&peers, now);
        assert!(peers.may_send(way(&peer), 24, now).is_ok() && peers.may_send(way(&peer), 24, now).is_ok());
        assert!(peers.may_send(way(&peer), 24, now).is_err());
        peers.abandoned(&peer);
        assert!(peers.may_send(way(&peer), 24, now).is_ok());
    }

    #[test]
    fn overload_that_is_told_reduces_until_it_ends() {
        let peers = peers(Protection {
            spare_priority: 5,
            ..Protection::default()
        });
        let now = Instant::now();
        let peer = peer(&peers, now);
        let mut headers = HeaderMap::new();
        let oci = "Timestamp: \"Tue, 04 Feb 2020 08:49:37 GMT\"; Period-of-Validity: 75s; \
                   Overload-Reduction-Metric: 50%; NF-Instance: 54804518-4191-46b3-955c-ac631f953ed8";
        headers.insert(names::OCI, HeaderValue::from_static(oci));
        assert!(peers.may_send(way(&peer), 24, now).is_ok());
        end(&peers, &peer, &Ended::Answered(StatusCode::OK, &headers), now);
        assert_eq!(peer.overloaded.get().map(|told| told.share), Some(0.5));
        let mut passed = [0; 2];
        for _ in 0..1_000 {
            for (at, priority) in [(0, 24), (1, 3)] {
                if peers.may_send(way(&peer), priority, now).is_ok() {
                    passed[at] += 1;
                    end(
                        &peers,
                        &peer,
                        &Ended::Answered(StatusCode::OK, &HeaderMap::new()),
                        now,
                    );
                }
            }
        }
        assert_eq!(passed, [500, 1_000]);
        let later = now + Duration::from_secs(76);
        assert!((0..100).all(|_| peers.may_send(way(&peer), 24, later).is_ok()));
    }
}
