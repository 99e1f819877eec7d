//! Subscriber location: the group of a subscriber, queried from a UDR with Nudr_GroupIDmap
//! (TS 29.504; TS 29.510 §6.2.3.2.3.1, `supi` and `gpsi`).
//!
//! Every discovery of the configured types with a subscriber and no group makes a query, so this is on the hot path: one
//! request to a known function, a small answer, cached only if configured.

mod offers;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use bounded::{Cache, Limits};
use http::{HeaderValue, Method, StatusCode};
use model::NfType;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use registry::Snapshot;
use sbi::client::{Client, Origin, SendOptions};
use sbi::headers::{SbiHeader, TargetApiRoot, names};
use sbi::name::{ACCEPT, AUTHORIZATION};
use sbi::{Body, Outbound, Value};
use telemetry::Histogram;
use worker::Random;

pub(crate) use self::offers::{Located, api_root, offers_of};

use self::offers::Offers;
use crate::alternates::Alternates;
use crate::config;
use crate::events::{Counters, Event};
use crate::pace::Pace;
use crate::tokens::Issuer;

/// Outcome of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The subscriber belongs to this group.
    Group(Arc<str>),
    /// The location function knows no group for the subscriber: profiles without a group remain.
    Unknown,
    /// No location function answered: discovery continues without a group.
    Unavailable,
}

/// Client of location functions, one per worker.
pub struct Slf {
    settings: config::Slf,
    pace: Pace,
    static_targets: Rc<[Located]>,
    scps: Vec<TargetApiRoot>,
    /// Which SCPs answered the last health check.
    scps_up: Vec<Cell<bool>>,
    client: Client,
    counters: Arc<Counters>,
    issuer: Arc<Issuer>,
    /// Location functions among the registered profiles.
    offers: Offers,
    /// Location functions that failed, and until when others precede them.
    failed: RefCell<AHashMap<TargetApiRoot, Instant>>,
    random: Random,
    /// Alternate addresses of their names.
    names: Option<Alternates>,
    /// Duration of queries.
    time: Histogram,
    /// The SCP that is next, whichever target it leads to.
    scp_turn: Cell<usize>,
    /// Access token of this NRF and when it ends.
    token: RefCell<Option<(HeaderValue, u64)>>,
    known: RefCell<Cache<Box<str>, (Resolution, Instant)>>,
}

/// Why a query failed.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// No answer from the location function, or from the SCP before it.
    Unreachable,
    /// An answer without a usable result.
    Refused,
    /// Not sent: as many queries leave as may.
    HeldBack,
}

/// A query for one location function.
struct Question<'a> {
    target: &'a TargetApiRoot,
    /// The SCP on the way, if any.
    scp: Option<&'a TargetApiRoot>,
    path: &'a str,
    nf_type: &'a NfType,
    subscriber: &'a str,
}

/// Next location function, and the SCP to it.
#[derive(Clone, Copy, Debug)]
struct Route {
    target: usize,
    scp: usize,
    /// Failed answers through this SCP.
    refused: usize,
    /// SCPs that did not answer for this location function.
    unreachable: usize,
}

impl Route {
    /// Advances after a failure: to the next SCP if this one did not answer, to the next location function if its answer
    /// was of no use. After all of one kind have failed, it advances the other.
    fn go_round(&mut self, failure: Failure, targets: usize, scps: usize) {
        let by_scp = matches!(failure, Failure::Unreachable) && scps > 0;
        let (next_target, next_scp) = if by_scp {
            self.unreachable += 1;
            (self.unreachable >= scps, true)
        } else {
            self.refused += 1;
            (true, self.refused >= targets)
        };
        if next_target {
            self.target = (self.target + 1) % targets.max(1);
            self.unreachable = 0;
        }
        if next_scp {
            self.scp = (self.scp + 1) % scps.max(1);
            self.refused = 0;
        }
    }
}

/// Longest subscriber identity that is cached, in bytes: consumers choose it, and the cache bounds only the number of
/// entries. A SUPI of TS 23.003 with a network access identifier has at most 253 bytes behind its type.
const LONGEST_CACHED: usize = 257;

/// `NfGroupIdMapResult` (TS 29.504): group ids by NF type.
type GroupIdMap = BTreeMap<String, String>;

impl Slf {
    /// Creates the client of a worker; `config` was validated.
    pub(crate) fn new(
        config: &config::Config,
        client: Client,
        counters: Arc<Counters>,
        issuer: Arc<Issuer>,
        names: Option<Alternates>,
        time: Histogram,
    ) -> Self {
        let settings = config.slf.clone();
        let roots = |list: &[String]| -> Vec<TargetApiRoot> {
            list.iter()
                .filter_map(|root| TargetApiRoot::parse(root).ok())
                .collect()
        };
        let in_order = roots(&settings.static_targets).into_iter().zip(0..);
        let located = |(root, priority)| Located {
            root,
            priority,
            capacity: 1,
        };
        let scps = roots(&settings.scps);
        Self {
            static_targets: in_order.map(located).collect(),
            scps_up: scps.iter().map(|_| Cell::new(true)).collect(),
            scps,
            failed: RefCell::default(),
            random: Random::default(),
            names,
            time,
            known: RefCell::new(Cache::new(Limits::entries(settings.cache_size))),
            pace: Pace::new(settings.rate, worker::count(config.workers)),
            settings,
            client,
            counters,
            issuer,
            offers: Offers::new(config.destinations()),
            scp_turn: Cell::new(0),
            token: RefCell::new(None),
        }
    }

    /// Whether discoveries of this type need the subscriber's group.
    #[must_use]
    pub fn concerns(&self, target: &NfType) -> bool {
        self.settings
            .target_types
            .iter()
            .any(|one| one == target.as_str())
    }

    /// Answer when no location function answers, and its validity at most, in seconds.
    #[must_use]
    pub fn when_unavailable(&self) -> (config::WhenUnavailable, u32) {
        let seconds = self.settings.unavailable_validity.as_secs();
        let validity = u32::try_from(seconds).unwrap_or(u32::MAX);
        (self.settings.when_unavailable, validity)
    }

    /// The group of a subscriber (`imsi-…`, `msisdn-…`) for a type.
    pub async fn group_of(&self, target: &NfType, subscriber: &str, snapshot: &Snapshot) -> Resolution {
        let cached = !self.settings.cache_for.is_zero() && subscriber.len() <= LONGEST_CACHED;
        let key = || format!("{target} {subscriber}");
        let fresh = |(_, until): &(Resolution, Instant)| *until > Instant::now();
        if cached && let Some((resolution, _)) = self.known.borrow().get_if(&*key(), fresh) {
            return resolution.clone();
        }
        self.counters.count(Event::SlfAsked);
        let begun = Instant::now();
        let resolution = self.ask(target, subscriber, snapshot).await;
        self.time.observe(begun.elapsed());
        if resolution == Resolution::Unavailable {
            self.counters.count(Event::SlfFailed);
        } else if cached {
            let until = Instant::now() + self.settings.cache_for.duration();
            let mut known = self.known.borrow_mut();
            known.insert(key().into(), (resolution.clone(), until));
        }
        resolution
    }

    async fn ask(&self, target: &NfType, subscriber: &str, snapshot: &Snapshot) -> Resolution {
        let targets = match self.static_targets.is_empty() {
            false => self.static_targets.clone(),
            true => self.offers.of(snapshot, &self.counters),
        };
        if targets.is_empty() {
            return Resolution::Unavailable;
        }
        let plain = subscriber.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let path = match plain {
            true => format!("/nudr-group-id-map/v1/nf-group-ids?nf-type={target}&subscriberId={subscriber}"),
            false => {
                let escaped = utf8_percent_encode(subscriber, NON_ALPHANUMERIC);
                format!("/nudr-group-id-map/v1/nf-group-ids?nf-type={target}&subscriberId={escaped}")
            }
        };
        let order = self.order(&targets, Instant::now());
        let mut route = Route {
            target: 0,
            scp: self.scp_turn.get(),
            refused: 0,
            unreachable: 0,
        };
        for _ in 0..self.settings.max_attempts {
            let Some(chosen) = order.get(route.target).and_then(|at| targets.get(*at)) else {
                break;
            };
            let scp = self.scp(route.scp);
            let through = scp.and_then(|at| self.scps.get(at));
            let question = Question {
                target: &chosen.root,
                scp: through,
                path: &path,
                nf_type: target,
                subscriber,
            };
            match self.ask_places(&question).await {
                Ok(resolution) => return resolution,
                Err(Failure::HeldBack) => break,
                Err(failure) => {
                    let before = route.target;
                    route.scp = scp.unwrap_or_default();
                    route.go_round(failure, targets.len(), self.scps.len());
                    if route.target != before || targets.len() == 1 {
                        self.eject(&chosen.root);
                    }
                    self.scp_turn.set(route.scp);
                }
            }
        }
        Resolution::Unavailable
    }

    /// The location functions in the order in which they are queried: those of the best priority first, of equal ones
    /// one drawn by capacity; those that failed recently come last.
    fn order(&self, targets: &[Located], now: Instant) -> Vec<usize> {
        let failed = self.failed.borrow();
        let until = |one: &Located| failed.get(&one.root).copied().filter(|until| *until > now);
        let mut order: Vec<(Option<Instant>, u16, usize)> = targets
            .iter()
            .enumerate()
            .map(|(at, one)| (until(one), one.priority, at))
            .collect();
        order.sort_unstable();
        let Some((None, best, _)) = order.first().copied() else {
            return order.into_iter().map(|(.., at)| at).collect();
        };
        let equals = order
            .iter()
            .take_while(|(failed, priority, _)| failed.is_none() && *priority == best);
        let weights = equals.map(|(.., at)| targets.get(*at).map_or(1, |one| u64::from(one.capacity.max(1))));
        let weights: Vec<u64> = weights.collect();
        let mut ticket = match weights.len() {
            1 => 0,
            _ => self.random.next() % weights.iter().sum::<u64>().max(1),
        };
        let drawn = weights.iter().position(|weight| {
            let is_drawn = ticket < *weight;
            ticket = ticket.saturating_sub(*weight);
            is_drawn
        });
        if let Some(front) = order.get_mut(..=drawn.unwrap_or(0)) {
            front.rotate_right(1);
        }
        order.into_iter().map(|(.., at)| at).collect()
    }

    /// Moves a location function that failed behind the others for a while.
    fn eject(&self, root: &TargetApiRoot) {
        let now = Instant::now();
        let mut failed = self.failed.borrow_mut();
        failed.retain(|_, until| *until > now);
        failed.insert(root.clone(), now + self.settings.retry_after.duration());
    }

    /// Queries one location function, and its alternate addresses if it does not answer.
    async fn ask_places(&self, question: &Question<'_>) -> Result<Resolution, Failure> {
        let origin = &question.scp.unwrap_or(question.target).origin;
        let mut outcome = self.ask_one(question, origin).await;
        let Some(names) = &self.names else { return outcome };
        if let Err(Failure::Unreachable) = outcome {
            for place in names.of(origin).await {
                self.counters.count(Event::Rerouted);
                outcome = self.ask_one(question, &place).await;
                if !matches!(outcome, Err(Failure::Unreachable)) {
                    break;
                }
            }
        }
        outcome
    }

    /// Queries one address of a location function.
    async fn ask_one(&self, question: &Question<'_>, origin: &Origin) -> Result<Resolution, Failure> {
        let Question {
            target,
            scp,
            path,
            nf_type,
            subscriber,
        } = *question;
        if !self.pace.allows() {
            self.counters.count(Event::SlfHeldBack);
            return Err(Failure::HeldBack);
        }
        let path = format!("{}{path}", target.prefix);
        let path = Value::try_from(&*path).map_err(|_| Failure::Refused)?;
        let mut request = Outbound::new(Method::GET, path);
        let headers = request.headers_mut();
        headers.set(ACCEPT, sbi::json::JSON);
        if let Some(token) = self.access_token() {
            headers.set_sensitive(AUTHORIZATION, &token);
        }
        // `imsi-…` and `msisdn-…` are written alike in the header (TS 29.500 §5.2.3.3.10).
        if self.settings.correlation_info
            && (subscriber.starts_with("imsi-") || subscriber.starts_with("msisdn-"))
        {
            headers.set_printed(names::CORRELATION_INFO, subscriber);
        }
        if scp.is_some() {
            target.set_in(headers);
        }
        let options = SendOptions {
            deadline: self.settings.attempt_timeout.duration(),
            priority: 8,
        };
        let sent = self.client.send(origin, request, options).await;
        let response = sent.map_err(|_| Failure::Unreachable)?;
        match response.status() {
            StatusCode::OK => {
                let body = response.into_body().into_bytes();
                let mut map: GroupIdMap = serde_json::from_slice(&body).map_err(|_| Failure::Refused)?;
                let group = map.remove(nf_type.as_str());
                Ok(group.map_or(Resolution::Unknown, |group| Resolution::Group(group.into())))
            }
            StatusCode::NOT_FOUND => Ok(Resolution::Unknown),
            _ => Err(Failure::Refused),
        }
    }

    /// The SCP to go through, from `turn` on: the next one that is up; if none is, one that may have recovered.
    fn scp(&self, turn: usize) -> Option<usize> {
        let in_turn = || (0..self.scps.len()).map(|step| (turn + step) % self.scps.len());
        in_turn()
            .find(|at| self.scps_up.get(*at).is_some_and(Cell::get))
            .or_else(|| in_turn().next())
    }

    /// How often to check the SCPs; `None`: never.
    pub(crate) fn scp_interval(&self) -> Option<std::time::Duration> {
        let wanted = !self.scps.is_empty() && !self.settings.scp_health_path.is_empty();
        wanted.then(|| self.settings.scp_health_interval.duration())
    }

    /// Checks the health of the SCPs.
    pub(crate) async fn check_scps(&self) {
        for (scp, up) in self.scps.iter().zip(&self.scps_up) {
            let path = format!("{}{}", scp.prefix, self.settings.scp_health_path);
            let Ok(request) = http::Request::get(path).body(Body::empty()) else {
                continue;
            };
            let options = SendOptions {
                deadline: self.settings.attempt_timeout.duration(),
                priority: 0,
            };
            let answer = self.client.send(&scp.origin, request, options).await;
            let well = answer.is_ok_and(|response| !response.status().is_server_error());
            if up.replace(well) != well {
                tracing::warn!(%scp, well, "health of an SCP for location queries changed");
            }
        }
    }

    /// The SCPs that did not answer the last check, as bits.
    pub(crate) fn scps_down(&self) -> u64 {
        let down = self
            .scps_up
            .iter()
            .take(64)
            .enumerate()
            .filter(|(_, up)| !up.get());
        down.fold(0, |bits, (at, _)| bits | 1 << at)
    }

    fn access_token(&self) -> Option<HeaderValue> {
        if !self.settings.use_access_token {
            return None;
        }
        let now = crate::tokens::unix_now();
        if let Some((token, until)) = &*self.token.borrow()
            && *until > now + 60
        {
            return Some(token.clone());
        }
        let (token, until) = self.issuer.own_token("UDR", "nudr-group-id-map", now)?;
        let value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        *self.token.borrow_mut() = Some((value.clone(), until));
        Some(value)
    }
}
