//! Sending a request, and again elsewhere where that is safe and allowed (TS 29.500 §6.10.8).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use sbi::Response;
use sbi::client::{Processed, SendError, SendErrorKind};
use sbi::headers::MaxForwardHops;
use sbi::problem::{Cause, Problem};
use smallvec::SmallVec;
use telemetry::trace;

use super::admission::Admitted;
use super::alternates::InDns;
use super::authorize::Caller;
use super::copy::Copies;
use super::outgoing::Outgoing;
use super::reverse;
use super::route::{Plan, Target, has_passed};
use super::worker::Worker;
use crate::events::ServiceMetrics;
use crate::network::ServiceRef;
use crate::protection::{Ended, Held, Sent, Way};
use crate::routing::{Attempt, Budget, Failure, ServicePolicy, StagePolicy, Verdict};
use crate::target::{self, Has, Place};

impl Worker {
    /// Relays a request that was let in.
    pub(super) async fn relay(&self, mut admitted: Admitted, span: Option<&trace::Span>) -> Response {
        let headers = admitted.request.headers();
        if admitted.has.has(Has::VIA) && has_passed(headers, &self.name) {
            let problem =
                Problem::new(Cause::MsgLoopDetected).detail("the request has passed this SCP before");
            return self.refuse("loop", problem);
        }
        let usual = self.live.config.max_forward_hops;
        let hops = match admitted.has.has(Has::MAX_FORWARD_HOPS) {
            true => target::hops(headers, usual),
            false => Ok(MaxForwardHops(usual)),
        };
        let hops = match hops {
            Ok(hops) => hops,
            Err(problem) => return self.refuse("hops", problem),
        };
        if let Err(response) = self.mediate_request(&mut admitted) {
            return *response;
        }
        let policy = self
            .live
            .policies
            .of(target::service_of(admitted.request.uri().path()));
        let patience = match self.patience(admitted.request.headers(), admitted.has) {
            Ok(patience) => patience,
            Err((reason, problem)) => return self.refuse(reason, problem),
        };
        let (plan, stage) = match self.plan(&admitted, policy).await {
            Ok(planned) => planned,
            Err(problem) => return self.refuse("target", problem),
        };
        let Admitted {
            request,
            has,
            caller,
            priority,
            metrics,
            copies,
            unsure,
        } = admitted;
        let outgoing = Outgoing::new(request, has, hops, patience, &self.via, span);
        let outgoing = match outgoing {
            Ok(mut outgoing) => {
                outgoing.unsure = unsure;
                outgoing
            }
            Err(problem) => return self.refuse("header", problem),
        };
        let relay = Relay {
            worker: self,
            policy,
            stage,
            caller: &caller,
            copies: copies.as_deref(),
            priority,
            metrics: &metrics,
            named: plan.first.clone(),
            reach: plan.reach,
            plan,
            outgoing,
            budget: Budget::new(policy, patience.most(), Instant::now()),
            tried: SmallVec::new(),
            answer: None,
            in_dns: InDns::default(),
        };
        relay.run().await
    }
}

/// A request under way, with all that its next attempt depends on.
struct Relay<'a> {
    worker: &'a Worker,
    policy: &'a ServicePolicy,
    stage: StagePolicy,
    caller: &'a Caller,
    copies: Option<&'a Copies>,
    priority: u8,
    metrics: &'a Rc<ServiceMetrics>,
    /// Whom the request named.
    named: Option<Rc<Target>>,
    plan: Plan,
    /// The farthest that is chosen now: rerouting may go farther than the first choice.
    reach: u8,
    outgoing: Outgoing,
    budget: Budget,
    /// Who has been tried, by `host:port`.
    tried: SmallVec<[Arc<str>; 4]>,
    /// What the consumer gets if nothing better comes.
    answer: Option<Answer>,
    /// Alternates that DNS names.
    in_dns: InDns,
}

/// What stands in for a better answer. A refusal is made, and counted, only when nothing better has come.
enum Answer {
    /// A producer's, as it came, and whose.
    Of(Response, Rc<Target>),
    /// Nothing could be sent to a producer.
    Held(Held),
    /// A producer may not be used, and why.
    Forbidden(&'static str),
}

/// What an attempt came to.
enum Next {
    /// This is the answer.
    Done(Response),
    /// Another attempt follows.
    Again,
}

impl Relay<'_> {
    async fn run(mut self) -> Response {
        loop {
            let Some(target) = self.next_target() else {
                return self.nobody();
            };
            self.tried.push(target.peer.authority.clone());
            if let Next::Done(response) = self.attempt(&target).await {
                return response;
            }
        }
    }

    /// Who is tried next: the one that was named, then the best of the others.
    fn next_target(&mut self) -> Option<Rc<Target>> {
        if let Some(first) = self.plan.first.take() {
            return Some(first);
        }
        self.complete();
        match self.choose(self.reach) {
            Some(chosen) => self.worker.place(&chosen),
            None => self.in_dns.take(&self.tried),
        }
    }

    /// Looks in DNS for alternates of a producer that has failed, when nobody else is left.
    async fn look_further(&mut self, target: &Rc<Target>) {
        let Some(farthest) = self.stage.reroute.reach() else {
            return;
        };
        self.complete();
        if self.choose(self.reach.max(farthest)).is_none() {
            let left = self.budget.left(Instant::now());
            let sought = self.named.clone().unwrap_or_else(|| target.clone());
            self.in_dns.look(self.worker, &sought, left).await;
        }
    }

    /// The best of those who have not been tried and are not farther away.
    fn choose(&self, reach: u8) -> Option<ServiceRef> {
        let headers = &self.outgoing.headers;
        self.worker
            .select(&self.plan, self.caller, headers, &self.tried, reach)
    }

    /// Looks up who else may serve, if that has not been done.
    fn complete(&mut self) {
        if self.plan.complete {
            return;
        }
        self.plan.complete = true;
        if let Some(named) = self.named.as_ref().and_then(|named| named.service.as_ref()) {
            self.plan.others = Rc::new(self.worker.network().alternates(named));
        }
    }

    async fn attempt(&mut self, target: &Rc<Target>) -> Next {
        let worker = self.worker;
        if let Err(why) = worker.allowed(target, self.caller, &self.outgoing) {
            self.answer = Some(Answer::Forbidden(why));
            return Next::Again;
        }
        let delegated = self.plan.discovered;
        let token = worker
            .authorize(&mut self.outgoing, target, self.caller, delegated)
            .await;
        let token = match token {
            Ok(token) => token,
            Err(problem) => return Next::Done(worker.refuse("token", problem)),
        };
        let now = Instant::now();
        let path = self.outgoing.path.clone();
        let way = target.way(self.tried.len() - 1, target::service_of(path.path()));
        if let Err(held) = worker.peers.may_send(way, self.priority, now) {
            if self.policy.dns_srv_alternates {
                self.look_further(target).await;
            }
            return self.passed_over(held);
        }
        let mut in_flight = InFlight {
            worker,
            way,
            sent: Sent {
                source: self.caller.source,
                whole_time: false,
            },
            ended: false,
        };
        let Some(patience) = self.budget.take(self.policy, now) else {
            let late = self.outgoing.patience.is_over(now);
            return Next::Done(self.best().unwrap_or_else(|| worker.timed_out(late)));
        };
        in_flight.sent.whole_time = patience >= self.policy.response_timeout();
        // A redirection is followed with the headers and body that the first producer got.
        let may_repeat = self.stage.reroute.reach().is_some() || worker.live.config.follow_redirects;
        let last = self.policy.attempts <= 1 || !may_repeat;
        let retried = self.tried.len() > 1;
        let sent = match self.outgoing.request(target, self.tried.len() - 1, last, worker) {
            Ok((origin, request)) => {
                let options = sbi::client::SendOptions {
                    deadline: patience,
                    priority: self.priority,
                };
                if let Some(copies) = self.copies {
                    copies.sent(&request, target, self.tried.len() - 1);
                }
                let client = match target.unknown && target.hops.is_none() {
                    true => &worker.unknown_client,
                    false => &worker.client,
                };
                let sent = client.send(&origin, request, options).await;
                sent.and_then(|response| well_formed(&self.outgoing.method, response))
            }
            Err(response) => return Next::Done(*response),
        };
        let after = Instant::now();
        match sent {
            Ok(response) => {
                in_flight.end(&Ended::Answered(response.status(), response.headers()), after);
                self.metrics.time.observe(after.saturating_duration_since(now));
                if let Some(copies) = self.copies {
                    copies.received(&response);
                }
                if let (Some(key), StatusCode::UNAUTHORIZED) = (&token, response.status()) {
                    worker.identity.tokens.forget(key);
                }
                if self.policy.dns_srv_alternates
                    && self.may_follow(Failure::Status(response.status())).is_some()
                {
                    self.look_further(target).await;
                }
                self.answered(target, response, retried)
            }
            Err(error) => {
                in_flight.end(&Ended::Failed(&error), after);
                if self.policy.dns_srv_alternates && self.may_follow(Failure::of(&error)).is_some() {
                    self.look_further(target).await;
                }
                self.failed(target, &error)
            }
        }
    }

    /// A producer that nothing may be sent to now: another one, if one may be chosen.
    fn passed_over(&mut self, held: Held) -> Next {
        self.answer.get_or_insert(Answer::Held(held));
        match (self.stage.reroute.reach(), self.plan.discovered) {
            (Some(farthest), _) => self.reach = self.reach.max(farthest),
            (None, true) => {}
            (None, false) => return Next::Done(self.best().unwrap_or_default()),
        }
        Next::Again
    }

    fn answered(&mut self, target: &Rc<Target>, mut response: Response, retried: bool) -> Next {
        let worker = self.worker;
        let status = response.status();
        if worker.live.config.follow_redirects
            && matches!(
                status,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            )
            && let Some(elsewhere) = self.redirected(&response)
        {
            self.plan.first = Some(elsewhere);
            self.answer = Some(Answer::Of(response, target.clone()));
            return Next::Again;
        }
        if !status.is_success() && self.another(Failure::Status(status)) {
            self.answer = Some(Answer::Of(response, target.clone()));
            return Next::Again;
        }
        self.finish(&mut response, target, retried);
        Next::Done(response)
    }

    /// Makes of a producer's answer what the consumer gets.
    fn finish(&self, response: &mut Response, target: &Rc<Target>, retried: bool) {
        let worker = self.worker;
        if let Err(replaced) = worker.mediate_response(&self.outgoing, response) {
            *response = *replaced;
            return;
        }
        let elsewhere = self.named.as_ref().is_none_or(|named| !Rc::ptr_eq(named, target));
        worker.finish(response, target, elsewhere || self.plan.discovered, retried);
        if self.policy.reverse_proxy_support {
            let origin = &target.root.origin;
            reverse::cover(
                response.headers_mut(),
                &worker.root,
                origin,
                self.outgoing.service(),
            );
        }
    }

    fn failed(&mut self, target: &Target, error: &SendError) -> Next {
        if self.another(Failure::of(error)) {
            return Next::Again;
        }
        let worker = self.worker;
        let late = self.outgoing.patience.is_over(Instant::now());
        Next::Done(
            self.best()
                .unwrap_or_else(|| worker.unanswered(error, target, late)),
        )
    }

    /// How far away another attempt may go; `None`: none may follow.
    fn may_follow(&self, failure: Failure) -> Option<u8> {
        let attempt = Attempt {
            method: &self.outgoing.method,
            failure,
        };
        match self.budget.after(attempt, self.policy, Instant::now()) {
            Verdict::TryAnother => self.stage.reroute.reach(),
            _ => None,
        }
    }

    /// Whether another attempt may follow, and there is somebody to try.
    fn another(&mut self, failure: Failure) -> bool {
        let Some(farthest) = self.may_follow(failure) else {
            return false;
        };
        self.complete();
        let reach = self.reach.max(farthest);
        let somebody = self.choose(reach).is_some() || self.in_dns.has(&self.tried);
        if somebody {
            self.reach = reach;
            self.metrics.rerouted.inc();
        }
        somebody
    }

    /// Where a redirection leads (TS 29.500 §6.10.9), if it is to another place.
    fn redirected(&mut self, response: &Response) -> Option<Rc<Target>> {
        let location = response.headers().get(http::header::LOCATION)?.to_str().ok()?;
        let uri: http::Uri = location.parse().ok()?;
        let origin = sbi::client::Origin::of_uri(&uri).ok()?;
        if self.tried.iter().any(|tried| **tried == *origin.authority()) {
            return None;
        }
        let path = uri.path_and_query()?.clone();
        let network = self.worker.network();
        let root = sbi::headers::TargetApiRoot {
            origin,
            prefix: String::new(),
        };
        // A path that can be read in different ways is not followed: the consumer gets the redirection.
        let path = target::normal(&path).ok()?.unwrap_or(path);
        let placed = target::placed(&root, &path, &network).ok()?;
        let (root, path, unsure) = match placed {
            Some(placed) => (placed.root, placed.path, placed.unsure),
            None => (root, path, false),
        };
        let service = network.at(&root.origin, target::service_of(path.path())).cloned();
        let place = match service {
            Some(_) => Place::Known,
            None => self.worker.place_of(&root.origin, false, &network)?,
        };
        self.outgoing.path = path;
        self.outgoing.unsure = unsure;
        let unknown = place == Place::Unknown;
        Some(Rc::new(self.worker.redirected_to(root, service, unknown)))
    }

    /// Nobody is left: the last answer of a producer is the answer, else what stood in the way.
    fn nobody(mut self) -> Response {
        let problem = Problem::new(Cause::TargetNfNotReachable)
            .detail("no producer that may serve the request is left");
        self.best()
            .unwrap_or_else(|| self.worker.refuse("noProducer", problem))
    }

    /// The answer that stands in for a better one.
    fn best(&mut self) -> Option<Response> {
        Some(match self.answer.take()? {
            Answer::Of(mut response, target) => {
                self.finish(&mut response, &target, self.tried.len() > 1);
                response
            }
            Answer::Held(held) => self.worker.held_back(held),
            Answer::Forbidden(why) => {
                let problem = Problem::new(Cause::Forbidden).detail(why);
                self.worker.refuse("forbidden", problem)
            }
        })
    }
}

impl Worker {
    /// The answer when the time is over: the consumer's (`late`), or that of the policy.
    pub(super) fn timed_out(&self, late: bool) -> Response {
        let problem = Problem::new(timeout_of(late)).detail("no producer answered in the time there was");
        self.refuse("timeout", problem)
    }

    /// The answer when the only producer there is may not be sent to.
    fn held_back(&self, held: Held) -> Response {
        let congested = |detail: &str| Problem::new(Cause::NfCongestion).detail(detail);
        let unreachable = |detail: &str| Problem::new(Cause::TargetNfNotReachable).detail(detail);
        let (reason, problem) = match held {
            Held::Ejected => (
                "ejected",
                unreachable("the producer fails and is left alone for a while"),
            ),
            Held::Open => (
                "circuitOpen",
                unreachable("the producer fails and its circuit is open"),
            ),
            Held::Outstanding => (
                "outstanding",
                congested("too many requests wait for the producer"),
            ),
            Held::Overloaded => ("producerOverload", congested("the producer is overloaded")),
            Held::Rate => (
                "egressRate",
                Problem::new(Cause::TooManyRequests)
                    .detail("the rate of requests to the producer is reached"),
            ),
        };
        self.refuse_for(reason, problem, Some(1))
    }

    /// The answer for a producer that gave none.
    fn unanswered(&self, error: &SendError, target: &Target, late: bool) -> Response {
        let (reason, cause) = match error.kind {
            SendErrorKind::Timeout => ("timeout", timeout_of(late)),
            SendErrorKind::Overflow => ("overflow", Cause::NfCongestion),
            SendErrorKind::Unsendable(_) => ("unsendable", Cause::InvalidMsgFormat),
            _ => ("unreachable", Cause::TargetNfNotReachable),
        };
        // What is at a place that nobody knows is nothing to tell of: whether a port is open, how TLS failed.
        let detail = match target.unknown && cause == Cause::TargetNfNotReachable {
            true => {
                tracing::debug!(target = %target.root, %error, "no answer");
                format!("{}: no answer", target.root)
            }
            false => format!("{}: {error}", target.root),
        };
        self.refuse(reason, Problem::new(cause).detail(detail))
    }
}

/// An answer that HTTP allows: a final status of a class that there is, and no content where there can be none
/// (RFC 9110 §15, §6.4.1). What is none may mean anything to who reads it next, so it ends here.
fn well_formed(method: &Method, response: Response) -> Result<Response, SendError> {
    let malformed = |why: &str| SendError {
        kind: SendErrorKind::Broken(format!("its answer is malformed: {why}")),
        processed: Processed::Maybe,
    };
    let status = response.status().as_u16();
    if !(200..=599).contains(&status) {
        return Err(malformed("it has no final status"));
    }
    let has_none = matches!(status, 204 | 205 | 304) || *method == Method::HEAD;
    if has_none && !response.body().is_empty() {
        return Err(malformed("it has content where there can be none"));
    }
    Ok(response)
}

/// A consumer that does not wait any more is told so (TS 29.500 §6.11.2); else the producer is out of reach
/// (§6.10.8).
fn timeout_of(late: bool) -> Cause {
    match late {
        true => Cause::TimedOutRequest,
        false => Cause::TargetNfNotReachable,
    }
}

/// A request that a producer has, counted until it has ended, also when its consumer goes away before.
struct InFlight<'a> {
    worker: &'a Worker,
    way: Way<'a>,
    sent: Sent,
    ended: bool,
}

impl InFlight<'_> {
    fn end(mut self, ended: &Ended<'_>, now: Instant) {
        self.ended = true;
        let members = || match self.way.service {
            Some(service) => self.worker.network().alternates(service),
            None => Vec::new(),
        };
        self.worker.peers.ended(self.way, self.sent, ended, now, members);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.worker.peers.abandoned(self.way.peer);
        }
    }
}
