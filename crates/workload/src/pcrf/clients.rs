//! The PCEFs and P-CSCFs of a generator thread, and the judge of the answers that they get.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use diameter_proto::known::{self, application, command};
use diameter_proto::{Avp, AvpKey, MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::counts::Counts;
use super::messages::{self, Report};
use super::sessions::{Call, Session, Sessions};
use crate::rx::af;
use callmodel::policy::Rates;
use loadgen::diameter::{Introduction, Next, Requests, Turn, append, result_of};
use loadgen::{Fault, Ticket, Weights};

/// Names of the operations.
pub const OPERATIONS: [&str; 6] = [
    "ccrInitial",
    "ccrUpdate",
    "ccrTermination",
    "rxAarInitial",
    "rxAarUpdate",
    "rxStr",
];
const CCR_I: u16 = 0;
const CCR_U: u16 = 1;
const CCR_T: u16 = 2;
const AAR_I: u16 = 3;
const AAR_U: u16 = 4;
const STR: u16 = 5;
/// IP-CAN_SESSION_NOT_AVAILABLE (TS 29.214 §5.5).
const NO_IP_CAN_SESSION: u32 = 5065;
/// With fewer sessions of a kind than this, none of them ends.
const FEW: usize = 8;
/// Realm of the PCEFs and P-CSCFs.
pub const REALM: &str = "epc.example";

/// The introduction of a PCEF.
#[must_use]
pub fn pcef(number: usize) -> Introduction {
    Introduction::new(format!("pgw{number:03}.{REALM}"), REALM, application::GX)
}

/// The introduction of a P-CSCF of this realm.
fn cscf(number: usize) -> Introduction {
    af(number, REALM)
}

/// What a thread sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Shares of CCR-I, CCR-U and CCR-T.
    pub gx: Rates,
    /// Shares of AARs that begin a call, of those that confirm one, and of STRs.
    pub rx: Rates,
    /// Destination-Realm.
    pub realm: String,
    /// The access point name.
    pub apn: String,
    /// Subscribers; sessions are of one after the other.
    pub subscribers: u64,
    /// Whether CCR-Us report usage.
    pub usage: bool,
    /// PCEFs of the thread, and as many P-CSCFs if there are calls.
    pub nodes: usize,
    /// Number of the first session.
    pub first: u32,
    /// How far the numbers of the thread's sessions are apart.
    pub step: u32,
    /// Number of the first PCEF and P-CSCF.
    pub first_node: usize,
    /// Bound of the sessions; at the bound, one is ended instead of another begun.
    pub most_sessions: usize,
    /// Sessions of a subscriber that have numbers one after the other.
    pub each: u32,
    /// Whether UEs have an IPv6 prefix instead of an IPv4 address, and sessions name the MSISDN.
    pub has_alternate_keys: bool,
    /// Whether the calls of a session are at the P-CSCF with the number of its PCEF; else at any.
    pub are_in_pairs: bool,
}

/// The nodes of a generator thread.
#[derive(Debug)]
pub struct PcrfClients {
    plan: Plan,
    weights: Weights,
    nodes: Vec<Introduction>,
    sessions: Sessions,
    next: u32,
    calls: u32,
    counts: Arc<Counts>,
}

impl PcrfClients {
    /// Nodes without sessions.
    #[must_use]
    pub fn new(plan: Plan, counts: &Arc<Counts>) -> Self {
        let (gx, rx) = (plan.gx, plan.rx);
        let pcefs = (0..plan.nodes).map(|number| pcef(plan.first_node + number));
        let cscfs = (0..plan.nodes).filter(|_| rx.total() > 0.0);
        let cscfs = cscfs.map(|number| cscf(plan.first_node + number));
        Self {
            weights: Weights::new([gx.create, gx.update, gx.delete, rx.create, rx.update, rx.delete]),
            nodes: pcefs.chain(cscfs).collect(),
            next: plan.first,
            calls: 0,
            plan,
            sessions: Sessions::default(),
            counts: counts.clone(),
        }
    }

    /// The introduction of each connection.
    #[must_use]
    pub fn nodes(&self) -> Vec<Introduction> {
        self.nodes.clone()
    }

    /// The next request and its session. Where none fits what was drawn, one is brought to where it would.
    fn choose(&mut self, random: &mut SmallRng) -> (u16, Session) {
        let drawn = self.weights.draw(random) as u16;
        let sessions = &mut self.sessions;
        let is_full = sessions.idle() + sessions.talking() >= self.plan.most_sessions;
        let found = match drawn {
            CCR_I if is_full => sessions.take_idle(random).map(|one| (CCR_T, one)),
            CCR_I => None,
            // A call whose bearer is not reported comes first: its P-CSCF waits for the identifier.
            CCR_U => {
                let talks = sessions.talking() > 0 && random.random_bool(0.5);
                let talking = talks.then(|| sessions.take_talking(random)).flatten();
                let one = talking.or_else(|| sessions.take_idle(random));
                one.map(|one| (CCR_U, one))
            }
            CCR_T if sessions.idle() > FEW => sessions.take_idle(random).map(|one| (CCR_T, one)),
            AAR_I => sessions.take_idle(random).map(|one| (AAR_I, one)),
            AAR_U | STR if sessions.talking() > 0 => sessions.take_talking(random).map(|one| (drawn, one)),
            AAR_U | STR => sessions.take_idle(random).map(|one| (AAR_I, one)),
            _ => None,
        };
        found.unwrap_or_else(|| {
            let number = self.next;
            self.next = number.wrapping_add(self.plan.step);
            let session = Session {
                number,
                line: random.random_range(0..self.plan.nodes.max(1)) as u16,
                requests: 0,
                call: None,
            };
            (CCR_I, session)
        })
    }

    /// Gives a session the call that begins.
    fn call(&mut self, session: &mut Session, random: &mut SmallRng) {
        self.calls = self.calls.wrapping_add(1);
        let node = match self.plan.are_in_pairs {
            true => usize::from(session.line),
            false => random.random_range(0..self.plan.nodes.max(1)),
        };
        session.call = Some(Call {
            number: self.calls,
            line: (self.plan.nodes + node) as u16,
            is_reported: false,
        });
    }

    /// What a CCR-U of this session reports, and whether it is the charging identifier.
    fn report(&mut self, session: &Session) -> (Report<'_>, bool) {
        let wants = session.call.as_ref().is_some_and(|call| !call.is_reported);
        let rules = self.sessions.rules(session.number);
        let rule = rules.and_then(|rules| rules.first()).filter(|_| wants);
        match rule {
            Some(rule) => (Report::Charging(rule), true),
            None if self.plan.usage => (Report::Usage, false),
            None => (Report::Access, false),
        }
    }

    fn judge_good(
        &mut self,
        operation: u16,
        mut session: Session,
        answer: MessageRef<'_>,
    ) -> Result<(), Fault> {
        let number = session.number;
        let has = |wanted| {
            let mut avps = answer.walk().map_while(Result::ok);
            avps.any(|avp| avp.key() == wanted)
        };
        let fault = match operation {
            CCR_I if !has(known::CHARGING_RULE_INSTALL.key) => Some("the CCA installs no rule"),
            CCR_I | CCR_U if !names_bearers(answer) => Some(NO_BEARER),
            CCR_U if self.plan.usage && !has(known::USAGE_MONITORING_INFORMATION.key) => {
                Some("the CCA to a report of usage grants no further quota")
            }
            _ => None,
        };
        match operation {
            CCR_T => {
                self.sessions.forget(number);
                return Ok(());
            }
            AAR_I => Counts::add(&self.counts.begun),
            STR => {
                session.call = None;
                Counts::add(&self.counts.ended);
            }
            _ => {}
        }
        self.sessions.keep(session);
        fault.map_or(Ok(()), |fault| Err(Fault::Body(fault.to_owned())))
    }

    /// A RAR of the PCRF for a session at a PCEF; whether the session is known.
    fn re_auth(&mut self, number: u32, request: MessageRef<'_>) -> bool {
        let (mut installed, mut removed) = (Vec::new(), Vec::new());
        for avp in request.walk().map_while(Result::ok) {
            if avp.is(known::CHARGING_RULE_INSTALL) {
                for inner in avp.group().map_while(Result::ok) {
                    if inner.is(known::CHARGING_RULE_DEFINITION) {
                        let name = inner.group().get(known::CHARGING_RULE_NAME);
                        installed.extend(name.ok().flatten().map(<[u8]>::to_vec));
                    }
                }
            } else if avp.is(known::CHARGING_RULE_REMOVE) {
                for inner in avp.group().map_while(Result::ok) {
                    if inner.is(known::CHARGING_RULE_NAME) {
                        removed.push(inner.data.to_vec());
                    }
                }
            }
        }
        let counts = &self.counts;
        match (installed.is_empty(), removed.is_empty()) {
            (false, _) => Counts::add(&counts.installs),
            (true, false) => Counts::add(&counts.removals),
            (true, true) => Counts::add(&counts.other),
        }
        let Some(rules) = self.sessions.rules(number) else {
            return false;
        };
        rules.retain(|rule| !removed.contains(rule) && !installed.contains(rule));
        rules.extend(installed);
        true
    }
}

impl Requests for PcrfClients {
    fn operations(&self) -> Vec<String> {
        OPERATIONS.map(str::to_owned).into()
    }

    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next {
        let (operation, mut session) = self.choose(random);
        if operation == AAR_I {
            self.call(&mut session, random);
        }
        let is_rx = operation >= AAR_I;
        let call = session.call.clone().filter(|_| is_rx);
        let line = call.as_ref().map_or(session.line, |call| call.line);
        let own = self
            .nodes
            .get(usize::from(line))
            .unwrap_or(turn.introduction)
            .clone();
        let mut is_charging = false;
        let message = match (operation, &call) {
            (CCR_U, _) => {
                let plan = self.plan.clone();
                let (report, charging) = self.report(&session);
                is_charging = charging;
                messages::update(&own, &plan, &session, report)
            }
            (CCR_T, _) => messages::termination(&own, &self.plan, &session),
            (STR, Some(call)) => messages::end(&own, &self.plan, &session, call),
            (AAR_I | AAR_U, Some(call)) => {
                messages::media(&own, &self.plan, &session, call, operation == AAR_I)
            }
            _ => messages::initial(&own, &self.plan, &session),
        };
        append(message, out);
        if !is_rx {
            session.requests += 1;
        }
        if let Some(call) = session.call.as_mut().filter(|_| is_charging) {
            call.is_reported = true;
        }
        count(&self.counts.sent, operation);
        let first = session.number;
        self.sessions.begin(session);
        Next {
            ticket: Ticket {
                operation,
                first,
                second: u32::from(is_charging),
            },
            line: usize::from(line),
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        let Some(session) = self.sessions.end(ticket.first) else {
            return Err(Fault::Body("the answer has no pending request".to_owned()));
        };
        let id = answer.get(known::SESSION_ID).ok().flatten().unwrap_or_default();
        let is_mine = number_in(id) == Some(ticket.first);
        if result_of(answer) != ResultCode::SUCCESS.0 {
            // What the PCRF does not know is over; what it has refused is as before.
            let refused = Session {
                call: session.call.clone().filter(|_| ticket.operation != AAR_I),
                ..session
            };
            let is_unknown =
                [ResultCode::UNKNOWN_SESSION_ID.0, NO_IP_CAN_SESSION].contains(&result_of(answer));
            if is_unknown && ticket.operation != CCR_I {
                Counts::add(&self.counts.unknown);
            }
            match ticket.operation {
                CCR_I | CCR_T => self.sessions.forget(ticket.first),
                _ if result_of(answer) == ResultCode::UNKNOWN_SESSION_ID.0 => {
                    self.sessions.forget(ticket.first);
                }
                _ => self.sessions.keep(refused),
            }
            return Err(Fault::Status);
        }
        count(&self.counts.accepted, ticket.operation);
        if ticket.second == 1 {
            Counts::add(&self.counts.reported);
        }
        let good = self.judge_good(ticket.operation, session, answer);
        match is_mine {
            true => good,
            false => Err(Fault::Body(format!(
                "Session-Id {id:?} is that of another request"
            ))),
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        // Whether the PCRF has done it is unknown: the session is left to its audit.
        self.sessions.end(ticket.first);
        self.sessions.forget(ticket.first);
    }

    fn asked(&mut self, turn: Turn<'_>, request: MessageRef<'_>, out: &mut Vec<u8>) {
        let id = request.get(known::SESSION_ID).ok().flatten().unwrap_or_default();
        if id.split(';').next() != Some(turn.introduction.origin.host.as_str()) {
            // Routed to another node than the one whose session it is: it counts as one that has not arrived.
            let code = ResultCode::UNKNOWN_SESSION_ID;
            return turn.introduction.put_result(request, code, out);
        }
        let number = number_in(id).unwrap_or(u32::MAX);
        let is_known = match (request.command(), id.ends_with(";rx")) {
            (command::RE_AUTH, true) => {
                Counts::add(&self.counts.rx);
                self.sessions.knows(number)
            }
            (command::ABORT_SESSION, true) => {
                Counts::add(&self.counts.aborts);
                self.sessions.knows(number)
            }
            (command::RE_AUTH, false) => self.re_auth(number, request),
            _ => {
                let code = ResultCode::COMMAND_UNSUPPORTED;
                return turn.introduction.put_result(request, code, out);
            }
        };
        let code = match is_known {
            true => ResultCode::SUCCESS,
            false => ResultCode::UNKNOWN_SESSION_ID,
        };
        turn.introduction.put_result(request, code, out);
    }
}

/// Counts a request of this operation, if a RAR may follow it.
fn count(counters: &[AtomicU64; 2], operation: u16) {
    let [updates, media] = counters;
    match operation {
        CCR_U => Counts::add(updates),
        AAR_I | AAR_U => Counts::add(media),
        _ => {}
    }
}

/// The number of the session in a Session-Id of either side.
fn number_in(id: &str) -> Option<u32> {
    let rest = id.strip_suffix(";gx").or_else(|| id.strip_suffix(";rx"))?;
    rest.rsplit(';').next()?.parse().ok()
}

const NO_BEARER: &str = "a Charging-Rule-Definition has a QoS-Information without QCI or ARP";

/// Whether each rule with QoS has QCI and ARP, without which gateways of the field refuse it.
pub(super) fn names_bearers(message: MessageRef<'_>) -> bool {
    let named = |qos: &Avp<'_>| {
        let has = |wanted: AvpKey| qos.group().map_while(Result::ok).any(|avp| avp.key() == wanted);
        has(known::QOS_CLASS_IDENTIFIER.key) && has(known::ALLOCATION_RETENTION_PRIORITY.key)
    };
    let defined = |rule: &Avp<'_>| {
        let mut inner = rule.group().map_while(Result::ok);
        inner.all(|avp| !avp.is(known::QOS_INFORMATION) || named(&avp))
    };
    let installed = |install: &Avp<'_>| {
        let mut inner = install.group().map_while(Result::ok);
        inner.all(|avp| !avp.is(known::CHARGING_RULE_DEFINITION) || defined(&avp))
    };
    let mut avps = message.walk().map_while(Result::ok);
    avps.all(|avp| !avp.is(known::CHARGING_RULE_INSTALL) || installed(&avp))
}
