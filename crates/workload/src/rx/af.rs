//! Simulated AFs.

use std::sync::Arc;

use diameter_proto::known::{self, VENDOR_3GPP, application, command};
use diameter_proto::{AvpFlags, AvpKey, AvpWriter, MessageBuilder, MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::held::{Held, Session};
use super::{Ue, Ues};
use crate::Priorities;
use callmodel::PriorityShare;
use loadgen::Weights;
use loadgen::diameter::{Introduction, Next, Requests, Turn, append, result_of};
use loadgen::{Fault, Ticket};

/// Names of the operations.
pub const OPERATIONS: [&str; 3] = ["rxAarInitial", "rxAarUpdate", "rxStr"];
const INITIAL: u16 = 0;
const UPDATE: u16 = 1;
const TERMINATION: u16 = 2;

/// END_USER_IMSI (RFC 8506 §8.47).
const END_USER_IMSI: i32 = 1;
/// DIAMETER_LOGOUT (RFC 6733 §8.15).
const LOGOUT: i32 = 1;
/// Rx-Request-Type (TS 29.214 §5.3.31).
const INITIAL_REQUEST: i32 = 0;
const UPDATE_REQUEST: i32 = 1;
/// IP-Domain-Id (TS 29.214 §5.3.35).
const IP_DOMAIN_ID: AvpKey = AvpKey {
    vendor: VENDOR_3GPP,
    code: 537,
};

/// The introduction of an AF.
#[must_use]
pub fn af(number: usize, realm: &str) -> Introduction {
    Introduction::new(format!("pcscf{number:03}.{realm}"), realm, application::RX)
}

/// Shares of the requests, in proportion to one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// AARs that begin a session.
    pub initial: f64,
    /// AARs of an existing session.
    pub update: f64,
    /// STRs.
    pub termination: f64,
}

/// Requests of AFs.
#[derive(Clone, Debug)]
pub struct AfPlan {
    /// Destination-Realm.
    pub realm: String,
    /// Shares of the requests. Where a session is needed and none exists, one is begun instead.
    pub shares: Shares,
    /// Bound of the sessions of one thread; at the bound, one is ended instead of another begun.
    pub most_sessions: usize,
    /// Priorities of sessions, on the scale of `3gpp-Sbi-Message-Priority`; requests carry half of it as DRMP (RFC 7944).
    pub priorities: Vec<PriorityShare>,
    /// Operations of other threads of the generator, which come before [`OPERATIONS`] in its list.
    pub before: Vec<String>,
    /// Number of the AF on the first connection of this thread; those on the others follow.
    pub first: usize,
}

/// The AFs of one generator thread.
pub struct Afs {
    plan: AfPlan,
    weights: Weights,
    priorities: Priorities,
    ues: Box<dyn Ues>,
    media: Vec<u8>,
    /// Sessions; `first` of a ticket identifies the one with a request in flight.
    held: Held,
    next: u32,
    /// RARs and ASRs that came.
    asked: u64,
}

impl std::fmt::Debug for Afs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Afs")
            .field("sessions", &self.sessions())
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

impl Afs {
    /// AFs with no sessions yet.
    #[must_use]
    pub fn new(plan: AfPlan, ues: Box<dyn Ues>) -> Self {
        let Shares {
            initial,
            update,
            termination,
        } = plan.shares;
        Self {
            weights: Weights::new([initial, update, termination]),
            priorities: Priorities::new(&plan.priorities),
            plan,
            ues,
            media: media(),
            held: Held::default(),
            next: 0,
            asked: 0,
        }
    }

    /// Sessions that exist or are being created.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.held.len()
    }

    /// RARs and ASRs that came.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.asked
    }

    /// The next request and its session.
    fn choose(&mut self, random: &mut SmallRng, line: usize) -> (u16, Session) {
        if let Some(session) = self.held.take_aborted() {
            return (TERMINATION, session);
        }
        let mut operation = self.weights.draw(random) as u16;
        if operation == INITIAL && self.held.idle() >= self.plan.most_sessions {
            operation = TERMINATION;
        }
        if operation != INITIAL && self.held.idle() > 0 {
            let at = random.random_range(0..self.held.idle());
            return (operation, self.held.take_idle(at));
        }
        self.next = self.next.wrapping_add(1);
        let session = Session {
            line: line as u16,
            number: self.next,
            priority: self.priorities.draw(random),
            ue: self.ues.draw(random).map(Arc::new),
        };
        (INITIAL, session)
    }

    fn put_aar(&self, message: &mut MessageBuilder, operation: u16, session: &Session) {
        message.append_encoded(&self.media);
        if let Some(ue) = &session.ue {
            put_ue(message, ue);
        }
        let kind = if operation == INITIAL {
            INITIAL_REQUEST
        } else {
            UPDATE_REQUEST
        };
        message.put(known::RX_REQUEST_TYPE, kind);
    }
}

fn put_ue(message: &mut MessageBuilder, ue: &Ue) {
    if let Some(imsi) = ue.imsi {
        message.group(known::SUBSCRIPTION_ID, |group| {
            group
                .put(known::SUBSCRIPTION_ID_TYPE, END_USER_IMSI)
                .put(known::SUBSCRIPTION_ID_DATA, &format!("{imsi:015}"));
        });
    }
    if let Some(address) = ue.ipv4 {
        message.put(known::FRAMED_IP_ADDRESS, &address.octets());
    }
    if let Some(domain) = &ue.ip_domain {
        message.put_raw(IP_DOMAIN_ID, AvpFlags::default(), domain.as_bytes());
    }
    if let Some((prefix, length)) = ue.ipv6 {
        // RFC 3162 §2.3: a reserved byte, the length, the prefix without what it leaves open.
        let bytes = usize::from(length).div_ceil(8).min(16);
        let mut data = vec![0, length];
        data.extend_from_slice(&prefix.octets()[..bytes]);
        message.put(known::FRAMED_IPV6_PREFIX, &data);
    }
    if let Some(dnn) = &ue.dnn {
        message.put(known::CALLED_STATION_ID, dnn);
    }
}

/// The media of every AAR: a call.
fn media() -> Vec<u8> {
    let text = include_str!("media.txt");
    let dictionary = diameter_proto::Dictionary::standard();
    let mut out = AvpWriter::default();
    // A test holds the text to be right.
    if let Ok(message) = diameter_proto::text::parse(text, dictionary) {
        for avp in message.avps().map_while(Result::ok) {
            out.copy(&avp);
        }
    }
    out.as_bytes().to_vec()
}

impl Requests for Afs {
    fn operations(&self) -> Vec<String> {
        let own = self.priorities.names(&OPERATIONS);
        self.plan.before.iter().cloned().chain(own).collect()
    }

    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next {
        let (operation, session) = self.choose(random, turn.line);
        let line = usize::from(session.line);
        let realm = &turn.introduction.origin.realm;
        let origin = if line == turn.line {
            turn.introduction.origin.host.clone()
        } else {
            af(self.plan.first + line, realm).origin.host
        };
        let code = if operation == TERMINATION {
            command::SESSION_TERMINATION
        } else {
            command::AA
        };
        let mut message = MessageBuilder::request(code, application::RX);
        message
            .put(known::SESSION_ID, &format!("{origin};{};rx", session.number))
            .put(known::AUTH_APPLICATION_ID, application::RX)
            .put(known::ORIGIN_HOST, &origin)
            .put(known::ORIGIN_REALM, realm)
            .put(known::DESTINATION_REALM, &self.plan.realm);
        if let Some(priority) = self.priorities.value(session.priority) {
            message.put(known::DRMP, i32::from(priority / 2));
        }
        if operation == TERMINATION {
            message.put(known::TERMINATION_CAUSE, LOGOUT);
        } else {
            self.put_aar(&mut message, operation, &session);
        }
        append(message, out);
        let second = session.number;
        let number = Priorities::number(session.priority, operation, OPERATIONS.len());
        let first = self.held.begin(session);
        Next {
            ticket: Ticket {
                operation: self.plan.before.len() as u16 + number,
                first,
                second,
            },
            line,
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault> {
        let Some((session, is_doomed)) = self.held.end(ticket.first) else {
            return Err(Fault::Body("the answer has no pending request".to_owned()));
        };
        let result = result_of(answer);
        let operation = (ticket.operation - self.plan.before.len() as u16) % OPERATIONS.len() as u16;
        let suffix = format!(";{};rx", ticket.second);
        let id = answer.get(known::SESSION_ID).ok().flatten();
        let mine = id.is_some_and(|id| id.ends_with(&suffix));
        let good = result == ResultCode::SUCCESS.0;
        let unknown = result == ResultCode::UNKNOWN_SESSION_ID.0;
        if operation != TERMINATION && (good || operation == UPDATE && !unknown) {
            self.held.keep(session, is_doomed);
        }
        match (good, mine) {
            (false, _) => Err(Fault::Status),
            (true, true) => Ok(()),
            (true, false) => Err(Fault::Body(format!(
                "Session-Id {id:?} is that of another request"
            ))),
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        // Whether the session exists is unknown: the audit of the other side removes it.
        self.held.end(ticket.first);
    }

    fn asked(&mut self, turn: Turn<'_>, request: MessageRef<'_>, out: &mut Vec<u8>) {
        self.asked += 1;
        let number = request.get(known::SESSION_ID).ok().flatten().and_then(|id| {
            let rest = id.strip_suffix(";rx")?;
            rest.rsplit(';').next()?.parse::<u32>().ok()
        });
        let is_abort = request.command() == command::ABORT_SESSION;
        if !is_abort && request.command() != command::RE_AUTH {
            return turn
                .introduction
                .put_result(request, ResultCode::COMMAND_UNSUPPORTED, out);
        }
        let known = number.filter(|number| self.held.knows(*number));
        let code = match known {
            Some(_) => ResultCode::SUCCESS,
            None => ResultCode::UNKNOWN_SESSION_ID,
        };
        turn.introduction.put_result(request, code, out);
        if is_abort && let Some(number) = known {
            self.held.abort(number);
        }
    }
}
