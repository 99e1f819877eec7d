//! Step 8, relay: sends the request, and reroutes it where that is safe and allowed (TS 29.500 §6.10.8).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use routing::path::path_of;
use routing::policy::{Attempt, Budget, Failure, ServicePolicy, Verdict};
use routing::target::{self, Has, Place};
use sbi::Response;
use sbi::client::{Client, Origin, Processed, SendError, SendErrorKind};
use sbi::headers::TargetApiRoot;
use sbi::name::{LOCATION, RETRY_AFTER};
use sbi::problem::{Cause, Problem};
use tokio::sync::mpsc;

use super::alternates::Alternates;
use super::attempts::Attempts;
use super::authorizer::{Authorizer, NOT_ADMITTED};
use super::copies::Copies;
use super::mediator::Mediator;
use super::message::{Caller, Outgoing, Reply, Step, Target};
use super::planner::{Plan, Planner};
use super::{Clients, Setup};
use crate::events::ServiceMetrics;
use crate::live::Live;
use crate::peers::{Change, Heard};
use crate::protection::{Ended, Held, Peer, Peers, Sent, Way};
use crate::refusal::{Refusal, Refused};

/// Sends requests to producers.
pub(super) struct Relay {
    live: Arc<Live>,
    clients: Clients,
    pub(super) producers: Rc<Peers>,
    pub(super) planner: Rc<Planner>,
    pub(super) authorizer: Authorizer,
    mediator: Rc<Mediator>,
    alternates: Alternates,
    changes: mpsc::Sender<Heard>,
    doubted: Cell<Option<Instant>>,
}

/// Least time between two look-ups of profiles that do not admit a consumer, for each worker.
const DOUBT: Duration = Duration::from_millis(100);

/// A request with its plan.
pub(super) struct Planned<'a> {
    pub(super) plan: &'a mut Plan,
    pub(super) policy: &'a ServicePolicy,
    pub(super) caller: &'a Caller,
    pub(super) outgoing: &'a mut Outgoing,
    pub(super) priority: u8,
    pub(super) metrics: &'a ServiceMetrics,
    pub(super) copies: Option<&'a Copies>,
}

impl Relay {
    pub(super) fn new(
        setup: &Setup<'_>,
        producers: Rc<Peers>,
        planner: Rc<Planner>,
        authorizer: Authorizer,
        mediator: Rc<Mediator>,
    ) -> Self {
        Self {
            live: setup.live.clone(),
            clients: setup.clients.clone(),
            producers,
            planner,
            authorizer,
            mediator,
            alternates: Alternates {
                names: setup.shared.names.clone(),
                metrics: setup.shared.metrics.clone(),
            },
            changes: setup.shared.changes.clone(),
            doubted: Cell::new(None),
        }
    }

    /// Has the profile of a producer looked up that does not admit a consumer: not every NRF notifies of changed
    /// `allowedNfTypes`, as notifications do not show them.
    fn doubt(&self, id: &Arc<str>) {
        let now = Instant::now();
        let recent = |at: Instant| now.saturating_duration_since(at) < DOUBT;
        if !self.doubted.get().is_some_and(recent) {
            self.doubted.set(Some(now));
            let change = Change::Doubted(id.clone());
            // Without room the audit finds the change.
            let _ = self.changes.try_send(Heard { set: 0, change });
        }
    }

    /// The client for a target.
    fn client_for(&self, target: &Target) -> &Client {
        match target.unknown && target.hops.is_none() {
            true => &self.clients.unknown,
            false => &self.clients.known,
        }
    }

    /// Whether the name of a producer leads to other addresses than when it failed: circuit and ejection were those of
    /// the old ones.
    async fn has_moved(&self, origin: &Origin, peer: &Peer) -> bool {
        /// Longest wait for name servers; the answer counts for the next request then.
        const PATIENCE: Duration = Duration::from_millis(100);
        let Some(names) = &self.alternates.names else {
            return false;
        };
        let host = origin.host();
        if host.parse::<std::net::IpAddr>().is_ok() {
            return false;
        }
        let asked = names.newer_addresses(host, Duration::from_secs(1));
        let _ = tokio::time::timeout(PATIENCE, asked).await;
        names.moved(host).is_some_and(|moved| peer.failed_before(moved))
    }

    /// The attempts for a request.
    pub(super) fn exchange<'a>(&'a self, planned: Planned<'a>) -> Exchange<'a> {
        let Planned {
            plan,
            policy,
            caller,
            outgoing,
            priority,
            metrics,
            copies,
        } = planned;
        let began = Instant::now();
        Exchange {
            relay: self,
            policy,
            caller,
            copies,
            priority,
            metrics,
            budget: Budget::new(policy, outgoing.deadline.until(), began),
            began: Some(began),
            attempts: Attempts::new(&self.planner, caller, plan),
            outgoing,
            fallback: None,
            uncertain: None,
            repeated: false,
        }
    }
}

/// The attempts at producers for one request.
pub(super) struct Exchange<'a> {
    relay: &'a Relay,
    policy: &'a ServicePolicy,
    caller: &'a Caller,
    copies: Option<&'a Copies>,
    priority: u8,
    metrics: &'a ServiceMetrics,
    attempts: Attempts<'a>,
    outgoing: &'a mut Outgoing,
    budget: Budget,
    /// The present moment until something is awaited.
    began: Option<Instant>,
    /// The answer if all further attempts fail.
    fallback: Option<Fallback>,
    /// The refusal for an unanswered attempt that may have had an effect. Failures of later attempts do not replace it.
    uncertain: Option<Box<Refused>>,
    /// Whether the request was sent again to a producer that had left its connection.
    repeated: bool,
}

/// The member of problem details that rules test (TS 29.571 §5.2.4.1).
#[derive(serde::Deserialize)]
struct ProblemCause {
    cause: Option<String>,
}

/// Fallback answer. A refusal is built and counted only if no attempt succeeds.
enum Fallback {
    /// An unchanged answer of a producer, and the producer.
    Answer(Response, Rc<Target>),
    /// A producer could not get the request.
    Held(Held),
    /// The consumer may not use a producer: the reason.
    Forbidden(&'static str),
}

impl Exchange<'_> {
    /// Sends the request until a producer answers or no target is left.
    pub(super) async fn run(&mut self) -> Step<Reply> {
        loop {
            while let Some(target) = self.attempts.next(&self.outgoing.headers) {
                if let Some(reply) = self.attempt(&target).await? {
                    return Ok(reply);
                }
            }
            // None of the producers that a cached answer names could be tried: a new answer may name others.
            if self.attempts.plan.recalled.is_none() || !self.renew().await {
                break;
            }
        }
        // No target is left: the last answer of a producer counts, else the reason why none got the request.
        self.fallback_or(|this| this.without_producer())
    }

    /// The refusal when no candidate may be tried: none admits the consumer, or none is usable.
    fn without_producer(&self) -> Box<Refused> {
        let none = self.attempts.admits_none(&self.outgoing.headers);
        if none && let Some(first) = self.attempts.plan.others.first() {
            self.relay.doubt(&first.producer.id);
        }
        match none {
            true => Refusal::Forbidden.with(Problem::new(Cause::Forbidden).detail(NOT_ADMITTED)),
            false => Refusal::NoProducer.into(),
        }
    }

    /// Asks again for the answer that has named the candidates; returns whether there is a new one.
    async fn renew(&mut self) -> bool {
        let Some(recalled) = self.attempts.plan.recalled.take() else {
            return false;
        };
        let began = Instant::now();
        let left = self.budget.left(began);
        let planner = &self.relay.planner;
        // Boxed, so that the future of a request that needs no new answer stays small.
        let found = Box::pin(planner.renewed(&recalled, self.outgoing, left)).await;
        self.outgoing.waited += began.elapsed();
        match found {
            Some(found) => self.attempts.extend(found),
            None => return false,
        }
        true
    }

    /// Tries one target. `None`: another attempt follows.
    async fn attempt(&mut self, target: &Rc<Target>) -> Step<Option<Reply>> {
        let relay = self.relay;
        if !self.attempts.is_redirected() {
            self.outgoing.restore();
        }
        if let Some(path) = &target.path {
            self.outgoing.redirect(path, false);
        }
        let callback = self.attempts.plan.callback;
        if let Err(why) = relay
            .authorizer
            .allowed(target, self.caller, self.outgoing, callback)
        {
            if why == NOT_ADMITTED
                && let Some(service) = &target.service
            {
                relay.doubt(&service.producer.id);
            }
            self.fallback = Some(Fallback::Forbidden(why));
            return match self.attempts.pass_over() {
                true => Ok(None),
                false => self.fallback_or(|_| Refusal::Forbidden.into()).map(Some),
            };
        }
        let delegated = self.attempts.plan.discovered;
        let token = relay
            .authorizer
            .authorize(self.outgoing, target, self.caller, delegated, &self.budget)
            .await?;
        // Nothing was awaited before the first attempt without a token.
        let now = self
            .began
            .take()
            .filter(|_| token.is_none())
            .unwrap_or_else(Instant::now);
        let address = self.outgoing.address.clone();
        let way = target.way(self.attempts.hop, address.service());
        let origin = &target.next_root(self.attempts.hop).origin;
        let mut may_send = match relay.client_for(target).admits(origin) {
            true => relay.producers.may_send(way, self.priority, now),
            false => Err(relay.producers.at_connection_rate()),
        };
        if matches!(may_send, Err(Held::Ejected | Held::Open)) {
            let hop = target.hops.as_ref().and_then(|hops| hops.get(self.attempts.hop));
            let peer = hop.map_or(&target.peer, |hop| &hop.peer);
            if Box::pin(relay.has_moved(origin, peer)).await {
                relay.producers.restore(peer);
                may_send = relay.producers.may_send(way, self.priority, now);
            }
        }
        if let Err(held) = may_send {
            // The endpoint fails, or its connections are full: another route to the producer may work.
            let of_place = matches!(held, Held::Ejected | Held::Open | Held::ConnectionRate);
            if of_place && self.attempts.another_way(target) {
                return Ok(None);
            }
            self.look_further(target, matches!(held, Held::Ejected | Held::Open))
                .await;
            return self.passed_over(held);
        }
        let mut in_flight = InFlight::new(relay, way, self.caller.source);
        let Some(time) = self.budget.take(self.policy, now) else {
            return self.fallback_or(|this| this.timed_out(now)).map(Some);
        };
        in_flight.sent.whole_time = time >= self.policy.response_timeout();
        self.attempts.sent();
        let sent = self.send(target, now + time).await?;
        let after = Instant::now();
        let took = after.saturating_duration_since(now);
        self.outgoing.waited += took;
        match sent {
            Ok(response) => {
                in_flight.end(&Ended::Answered(response.status(), response.headers()), after);
                self.metrics.time.observe(took);
                if let Some(copies) = self.copies {
                    copies.received(&response);
                }
                if let (Some(key), StatusCode::UNAUTHORIZED) = (&token, response.status()) {
                    relay.authorizer.tokens.forget(key);
                }
                self.answered(target, response).await
            }
            Err(error) => {
                in_flight.end(&Ended::Failed(&error), after);
                self.failed(target, &error).await
            }
        }
    }

    /// Sends one attempt's request: mediation at `requestEgress`, the copy, the connection.
    async fn send(&mut self, target: &Target, until: Instant) -> Step<Result<Response, SendError>> {
        let relay = self.relay;
        // A redirection needs the headers and body of the first attempt again, and so does another route to the same
        // producer.
        let may_repeat = self.may_repeat()
            || target.hops.is_some()
            || target
                .service
                .as_ref()
                .is_some_and(|one| one.service().endpoints.len() > 1);
        let last = self.policy.attempts <= 1 || !may_repeat;
        let before = self.attempts.before();
        let (origin, mut request) = self.outgoing.request(target, self.attempts.hop, before > 0, last);
        relay
            .mediator
            .egress(self.outgoing.address.service(), &mut request)?;
        if let Some(copies) = self.copies {
            copies.sent(&request, target, before);
        }
        let client = relay.client_for(target);
        let sent = client.send_until(&origin, request, until, self.priority).await;
        Ok(sent.and_then(|response| well_formed(&self.outgoing.method, response)))
    }

    /// Whether headers and body stay for a further attempt wherever the first one goes.
    fn may_repeat(&self) -> bool {
        self.attempts.plan.stage.reroute.reach().is_some() || self.relay.live.config.follow_redirects
    }

    /// Passes over a producer that must not get requests now, if another one may be selected.
    fn passed_over(&mut self, held: Held) -> Step<Option<Reply>> {
        self.fallback.get_or_insert(Fallback::Held(held));
        match self.attempts.pass_over() {
            true => Ok(None),
            false => self.fallback_or(|_| held.refusal().into()).map(Some),
        }
    }

    async fn answered(&mut self, target: &Rc<Target>, response: Response) -> Step<Option<Reply>> {
        let status = response.status();
        let reroutes = !status.is_success() && self.reroutes_answer(&response);
        let failure = Failure::Status(status, reroutes);
        if !status.is_success() && self.may_retry(failure).is_some() {
            self.look_further(target, false).await;
        }
        let redirects = matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        if redirects
            && self.relay.live.config.follow_redirects
            && !self.caller.has_given_up()
            && let Some(elsewhere) = self.redirected(&response)
        {
            self.attempts.redirect(elsewhere);
            self.fallback = Some(Fallback::Answer(response, target.clone()));
            return Ok(None);
        }
        if !status.is_success() && self.retries(failure) {
            self.fallback = Some(Fallback::Answer(response, target.clone()));
            return Ok(None);
        }
        let refuses = matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        );
        if let Some(uncertain) = self.uncertain.take_if(|_| refuses) {
            return Err(uncertain);
        }
        Ok(Some(self.reply(response, target.clone())))
    }

    /// Whether the policy lets another producer be tried after this answer.
    fn reroutes_answer(&self, response: &Response) -> bool {
        let headers = response.headers();
        let retry_after = headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let cause = || {
            let details: ProblemCause = serde_json::from_slice(&response.body().to_bytes()).ok()?;
            details.cause
        };
        let status = response.status().as_u16();
        self.policy
            .reroutes_answer(&self.outgoing.method, status, cause, retry_after)
    }

    async fn failed(&mut self, target: &Rc<Target>, error: &SendError) -> Step<Option<Reply>> {
        let failure = match error.processed {
            Processed::No if error.is_refused_stream() && !self.policy.refused_is_unprocessed => {
                Failure::Unknown
            }
            Processed::No => Failure::NotProcessed,
            Processed::Maybe => Failure::Unknown,
        };
        if failure == Failure::Unknown && !self.outgoing.method.is_safe() {
            let refused = self.unanswered(error, target);
            self.uncertain.get_or_insert(refused);
        }
        // The next SCP takes the place of one that was lost, as another producer of a set does; a producer that does not
        // answer in time is not asked by another route.
        let lost = target.hops.is_some() && error.kind != SendErrorKind::Timeout;
        let by_another = failure == Failure::NotProcessed || error.is_refused_stream() || lost;
        let again = self.verdict(failure) == Verdict::TryAnother;
        if again && by_another && self.attempts.another_way(target) {
            self.metrics.rerouted.inc();
            return Ok(None);
        }
        if self.may_retry(failure).is_some() {
            self.look_further(target, true).await;
        }
        if self.retries(failure) {
            return Ok(None);
        }
        if again && self.deserves_another_connection(error) && self.may_repeat() && !self.repeated {
            self.repeated = true;
            self.attempts.repeat(target);
            self.metrics.rerouted.inc();
            return Ok(None);
        }
        self.fallback_or(|this| this.unanswered(error, target)).map(Some)
    }

    /// Whether a new connection to the same producer may serve the request: a peer that leaves (GOAWAY) has not begun it
    /// (RFC 9113 §6.8), and a connection may have ended because the producer was restarted or its name leads elsewhere by
    /// now; an idempotent request is then sent again (RFC 9110 §9.2.2).
    fn deserves_another_connection(&self, error: &SendError) -> bool {
        match &error.kind {
            SendErrorKind::GoAway => true,
            SendErrorKind::Broken(_) => self.outgoing.method.is_idempotent(),
            _ => false,
        }
    }

    fn verdict(&self, failure: Failure) -> Verdict {
        // A cancelled request is not retried: the consumer may repeat it, and it would be executed twice.
        if self.caller.has_given_up() {
            return Verdict::NotAllowed;
        }
        let attempt = Attempt {
            method: &self.outgoing.method,
            failure,
        };
        self.budget.after(attempt, self.policy, Instant::now())
    }

    /// Greatest distance of another attempt; `None`: none may follow.
    fn may_retry(&self, failure: Failure) -> Option<u8> {
        match self.verdict(failure) {
            Verdict::TryAnother => self.attempts.plan.stage.reroute.reach(),
            _ => None,
        }
    }

    /// Whether another attempt follows: it may, and there is a producer to try.
    fn retries(&mut self, failure: Failure) -> bool {
        let Some(farthest) = self.may_retry(failure) else {
            return false;
        };
        let follows = self.attempts.may_follow(&self.outgoing.headers, farthest);
        if follows {
            self.metrics.rerouted.inc();
        }
        follows
    }

    /// Looks for further candidates: by the discovery parameters of a request that named its producer
    /// (TS 29.500 §6.10.5.1), at the NRF again where a producer of a cached answer is `unreachable`, then in DNS if the
    /// policy allows it.
    async fn look_further(&mut self, target: &Rc<Target>, unreachable: bool) {
        let discovers = self.outgoing.has.has(Has::DISCOVERY) && !self.attempts.plan.discovered;
        let renews = unreachable && self.attempts.plan.recalled.is_some();
        if !discovers && !renews && !self.policy.dns_srv_alternates {
            return;
        }
        if self.attempts.needs_no_other(&self.outgoing.headers) {
            return;
        }
        if discovers {
            let began = Instant::now();
            let left = self.budget.left(began);
            let found = self
                .relay
                .planner
                .rediscover(self.caller, self.outgoing, left)
                .await;
            self.outgoing.waited += began.elapsed();
            self.attempts.plan.discovered = true;
            if let Some(found) = found {
                self.attempts.extend(found);
            }
        } else if renews {
            self.renew().await;
        }
        if self.policy.dns_srv_alternates && !self.attempts.needs_no_other(&self.outgoing.headers) {
            let time = self.budget.left(Instant::now());
            self.attempts
                .look_in_dns(&self.relay.alternates, target, time)
                .await;
        }
    }

    /// The target of a redirection (TS 29.500 §6.10.9), if it is another destination.
    fn redirected(&mut self, response: &Response) -> Option<Rc<Target>> {
        let planner = &self.relay.planner;
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let uri: http::Uri = location.parse().ok()?;
        let origin = Origin::of_uri(&uri).ok()?;
        if self.attempts.has_tried(origin.authority()) {
            return None;
        }
        let path = uri.path_and_query()?.as_str();
        let network = planner.view.network();
        let root = TargetApiRoot {
            origin,
            prefix: String::new(),
        };
        // A redirection to an ambiguous path is not followed: the consumer gets it.
        let path = target::normal(path).ok()?.unwrap_or_else(|| path.to_owned());
        let placed = target::placed(&root, &path, &network).ok()?;
        let (root, path, unsure) = match placed {
            Some(placed) => (placed.root, placed.path, placed.unsure),
            None => (root, path, false),
        };
        let service = network
            .at(&root.origin, target::service_of(path_of(&path)))
            .cloned();
        let place = match service {
            Some(_) => Place::Known,
            None => planner.targets.place_of(&root.origin, false, &network)?,
        };
        self.outgoing.redirect(&path, unsure);
        let unknown = place == Place::Unknown;
        Some(Rc::new(planner.targets.at(root, service, unknown)))
    }

    fn reply(&self, response: Response, target: Rc<Target>) -> Reply {
        Reply {
            elsewhere: self.attempts.is_elsewhere(&target),
            retried: self.attempts.before() > 0,
            response,
            target,
        }
    }

    /// The fallback answer; without one, the refusal.
    fn fallback_or(&mut self, refusal: impl FnOnce(&Self) -> Box<Refused>) -> Step<Reply> {
        if let Some(uncertain) = self.uncertain.take() {
            return Err(uncertain);
        }
        match self.fallback.take() {
            Some(Fallback::Answer(response, target)) => Ok(self.reply(response, target)),
            Some(Fallback::Held(held)) => Err(held.refusal().into()),
            Some(Fallback::Forbidden(why)) => {
                Err(Refusal::Forbidden.with(Problem::new(Cause::Forbidden).detail(why)))
            }
            None => Err(refusal(self)),
        }
    }

    /// The refusal after a timeout of the consumer or of the policy.
    fn timed_out(&self, now: Instant) -> Box<Refused> {
        let problem = Problem::new(self.timeout_cause(now)).detail("no producer answered in time");
        Refusal::Timeout.with(problem)
    }

    /// The cause of a timeout: the consumer has timed out (TS 29.500 §6.11.2), or the producer is unreachable
    /// (§6.10.8).
    fn timeout_cause(&self, now: Instant) -> Cause {
        match self.outgoing.deadline.is_over(now) {
            true => Cause::TimedOutRequest,
            false => Cause::TargetNfNotReachable,
        }
    }

    /// The refusal when a producer has not answered.
    fn unanswered(&self, error: &SendError, target: &Target) -> Box<Refused> {
        let (refusal, cause) = match error.kind {
            SendErrorKind::Timeout => (Refusal::Timeout, self.timeout_cause(Instant::now())),
            SendErrorKind::Overflow => (Refusal::Overflow, Cause::NfCongestion),
            SendErrorKind::OverRate => (Refusal::ConnectionRate, Cause::TooManyRequests),
            SendErrorKind::Unsendable(_) => (Refusal::Unsendable, Cause::InvalidMsgFormat),
            _ => (Refusal::Unreachable, Cause::TargetNfNotReachable),
        };
        // For an unknown destination the answer does not disclose whether a port is open or why TLS failed.
        let detail = if target.unknown && cause == Cause::TargetNfNotReachable {
            tracing::debug!(target = %target.root, %error, "no answer");
            format!("{}: no answer", target.root)
        } else {
            format!("{}: {error}", target.root)
        };
        refusal.with(Problem::new(cause).detail(detail))
    }
}

/// Checks that an answer is valid HTTP: a final status of a known class, and no content where none is allowed
/// (RFC 9110 §15, §6.4.1). Other components may interpret a malformed answer differently, so it is not forwarded.
fn well_formed(method: &Method, response: Response) -> Result<Response, SendError> {
    let malformed = |why: &str| SendError {
        kind: SendErrorKind::Broken(format!("its answer is malformed: {why}")),
        processed: Processed::Maybe,
    };
    let status = response.status().as_u16();
    if !(200..=599).contains(&status) {
        return Err(malformed("its status is not final"));
    }
    let has_none = matches!(status, 204 | 205 | 304) || *method == Method::HEAD;
    if has_none && !response.body().is_empty() {
        return Err(malformed("its status does not allow content"));
    }
    Ok(response)
}

/// A request in flight at a producer, counted until its end, also when its consumer cancels it.
struct InFlight<'a> {
    relay: &'a Relay,
    way: Way<'a>,
    sent: Sent,
    ended: bool,
}

impl<'a> InFlight<'a> {
    fn new(relay: &'a Relay, way: Way<'a>, source: u64) -> Self {
        Self {
            relay,
            way,
            sent: Sent {
                source,
                whole_time: false,
            },
            ended: false,
        }
    }

    fn end(mut self, ended: &Ended<'_>, now: Instant) {
        self.ended = true;
        let members = || match self.way.service {
            Some(service) => self.relay.planner.view.network().alternates(service),
            None => Vec::new(),
        };
        let producers = &self.relay.producers;
        producers.ended(self.way, self.sent, ended, now, members);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.relay.producers.abandoned(self.way);
        }
    }
}
