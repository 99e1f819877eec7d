//! The gateways of a generator thread, and the judge of the answers that they get.

use std::sync::Arc;

use diameter_proto::known::{self, application, command};
use diameter_proto::{AvpKey, Dictionary, MessageRef, ResultCode};
use rand::rngs::SmallRng;

use super::counts::{Counts, Refused};
use super::messages::{Kind, Messages};
use crate::pcrf::{REALM, take};
use callmodel::ocdra::session_number;
use callmodel::policy::Rates;
use loadgen::diameter::{Introduction, Next, Requests, Turn, result_of};
use loadgen::{Fault, Ticket, Weights};

/// With fewer sessions than this, none of them ends.
const FEW: usize = 8;

/// The introduction of a gateway.
#[must_use]
pub fn ctf(number: usize) -> Introduction {
    let host = format!("ctf{number:03}.{REALM}");
    Introduction::new(host, REALM, application::CREDIT_CONTROL)
}

/// What a thread sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Shares of CCR-I, CCR-U and CCR-T.
    pub gy: Rates,
    /// Share of one-time events.
    pub events: f64,
    /// Gateways of the thread.
    pub nodes: usize,
    /// Number of the first gateway.
    pub first_node: usize,
    /// Number of the first session.
    pub first: u32,
    /// How far the numbers of the thread's sessions are apart.
    pub step: u32,
    /// Sessions of all threads that stand already: those of the first numbers.
    pub standing: u32,
    /// Bound of the sessions; at the bound, one is ended instead of another begun.
    pub most_sessions: usize,
}

impl Plan {
    /// The position of a session's gateway among those of the thread.
    fn line(&self, session: u32) -> usize {
        (session / self.step.max(1)) as usize % self.nodes.max(1)
    }

    /// The gateway of a session.
    #[must_use]
    pub fn gateway(&self, session: u32) -> usize {
        self.first_node + self.line(session)
    }

    /// The sessions of the thread that stand already.
    pub fn standing(&self) -> impl Iterator<Item = u32> + use<> {
        (self.first..self.standing).step_by(self.step.max(1) as usize)
    }
}

/// A session without a request in flight.
#[derive(Clone, Copy, Debug)]
struct Session {
    number: u32,
    /// CC-Request-Number of its next request.
    requests: u32,
}

/// The nodes of a generator thread.
#[derive(Debug)]
pub struct ChargingClients {
    plan: Plan,
    messages: Arc<Messages>,
    weights: Weights,
    idle: Vec<Session>,
    /// The number of the next session.
    next: u32,
    counts: Arc<Counts>,
    /// The AVP with what is granted.
    services: Option<AvpKey>,
}

impl ChargingClients {
    /// Nodes with the sessions that stand already.
    #[must_use]
    pub fn new(plan: Plan, messages: &Arc<Messages>, counts: &Arc<Counts>) -> Self {
        let gy = plan.gy;
        let services = Dictionary::standard().avp_named("Multiple-Services-Credit-Control");
        let idle: Vec<Session> = plan
            .standing()
            .map(|number| Session { number, requests: 1 })
            .collect();
        Self {
            weights: Weights::new([gy.create, gy.update, gy.delete, plan.events]),
            next: plan.first.wrapping_add(plan.step.wrapping_mul(idle.len() as u32)),
            idle,
            plan,
            messages: messages.clone(),
            counts: counts.clone(),
            services: services.map(|avp| avp.key),
        }
    }

    /// The introduction of each connection.
    #[must_use]
    pub fn nodes(&self) -> Vec<Introduction> {
        let first = self.plan.first_node;
        (first..first + self.plan.nodes).map(ctf).collect()
    }

    /// The next request and its session. Where no session fits what was drawn, one begins.
    fn choose(&mut self, random: &mut SmallRng) -> (Kind, Session) {
        let drawn = Kind::ALL.get(self.weights.draw(random)).copied();
        let found = match drawn {
            Some(Kind::Initial) if self.idle.len() >= self.plan.most_sessions => Some(Kind::Termination),
            Some(Kind::Update) => Some(Kind::Update),
            Some(Kind::Termination) if self.idle.len() > FEW => Some(Kind::Termination),
            _ => None,
        };
        let chosen = found.and_then(|kind| Some((kind, take(&mut self.idle, random)?)));
        chosen.unwrap_or_else(|| {
            let number = self.next;
            self.next = number.wrapping_add(self.plan.step);
            let kind = drawn.filter(|kind| *kind == Kind::Event).unwrap_or(Kind::Initial);
            (kind, Session { number, requests: 0 })
        })
    }

    /// What is wrong with an answer of success.
    fn fault(&self, kind: Kind, number: u32, answer: MessageRef<'_>) -> Option<&'static str> {
        let (mut has_type, mut has_number, mut is_granted) = (false, false, false);
        for avp in answer.walk().map_while(Result::ok) {
            if avp.is(known::CC_REQUEST_TYPE) {
                let value = avp.read::<diameter_proto::kind::Integer32>();
                has_type = value.ok() == Some(kind.request_type().1);
            } else if avp.is(known::CC_REQUEST_NUMBER) {
                let value = avp.read::<diameter_proto::kind::Unsigned32>();
                has_number = value.ok() == Some(number);
            } else if Some(avp.key()) == self.services {
                is_granted = true;
            }
        }
        match (has_type, has_number) {
            (false, _) => Some("the CCA has another CC-Request-Type than the CCR"),
            (_, false) => Some("the CCA has another CC-Request-Number than the CCR"),
            _ if !is_granted && kind != Kind::Termination => Some("the CCA grants nothing"),
            _ => None,
        }
    }
}

impl Requests for ChargingClients {
    fn operations(&self) -> Vec<String> {
        Kind::ALL.map(|kind| kind.operation().to_owned()).into()
    }

    fn next(&mut self, random: &mut SmallRng, _: Turn<'_>, out: &mut Vec<u8>) -> Next {
        let (kind, session) = self.choose(random);
        let gateway = self.plan.gateway(session.number);
        self.messages
            .put(kind, gateway, session.number, session.requests, out);
        Counts::add(&self.counts.sent);
        if kind == Kind::Update {
            Counts::add(&self.counts.updates[0]);
        }
        Next {
            ticket: Ticket {
                operation: kind as u16,
                first: session.number,
                second: session.requests,
            },
            line: self.plan.line(session.number),
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        let kind = Kind::ALL.get(usize::from(ticket.operation)).copied();
        let kind = kind.unwrap_or(Kind::Event);
        let (session, number) = (ticket.first, ticket.second);
        let code = result_of(answer);
        if code != ResultCode::SUCCESS.0 {
            self.counts.refuse(Refused {
                kind,
                session,
                number,
                code,
            });
            return Err(Fault::Status);
        }
        Counts::add(&self.counts.answered);
        if kind == Kind::Update {
            Counts::add(&self.counts.updates[1]);
        }
        if matches!(kind, Kind::Initial | Kind::Update) {
            self.idle.push(Session {
                number: session,
                requests: number.wrapping_add(1),
            });
        }
        let id = answer.get(known::SESSION_ID).ok().flatten().unwrap_or_default();
        if session_number(id) != Some(session) {
            return Err(Fault::Body(format!(
                "Session-Id {id:?} is that of another request"
            )));
        }
        let fault = self.fault(kind, number, answer);
        fault.map_or(Ok(()), |fault| Err(Fault::Body(fault.to_owned())))
    }

    fn asked(&mut self, turn: Turn<'_>, request: MessageRef<'_>, out: &mut Vec<u8>) {
        let own = turn.introduction;
        let id = request.get(known::SESSION_ID).ok().flatten().unwrap_or_default();
        let is_own = id.split(';').next() == Some(own.origin.host.as_str());
        let code = match request.command() {
            command::RE_AUTH if is_own => {
                Counts::add(&self.counts.re_auths);
                ResultCode::SUCCESS
            }
            command::RE_AUTH => ResultCode::UNKNOWN_SESSION_ID,
            _ => ResultCode::COMMAND_UNSUPPORTED,
        };
        own.put_result(request, code, out);
    }
}
