//! OCSs of one pool at their Gy end (RFC 8506, TS 32.299 §6). They know of one another within a process, and judge the routing
//! before them: a session belongs at the OCS that has begun it, and each of its request numbers is counted once.

use std::io;
use std::time::Duration;

use ahash::AHashMap;
use diameter_proto::known::{self, command};
use diameter_proto::{AvpFlags, AvpKey, CommandFlags, Dictionary, MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::credit::{EVENT, INITIAL, TERMINATION, UPDATE, credit_answer, re_auth};
use super::journal::{Entry, Journal};
use super::{DiameterSettings, Node, Outcome, Role};
use callmodel::ocdra::{fails_over, session_number};
use loadgen::diameter::{Introduction, append};
use settings::Percent;

/// CC-Session-Failover (RFC 8506 §8.4).
const NOT_SUPPORTED: i32 = 0;
const SUPPORTED: i32 = 1;
/// What is granted of the service that was asked for, AVPs by themselves (RFC 8506 §8.16).
const GRANT: [u8; 48] = [
    0, 0, 1, 0xaf, 0x40, 0, 0, 24, // Granted-Service-Unit
    0, 0, 1, 0xa5, 0x40, 0, 0, 16, // CC-Total-Octets
    0, 0, 0, 0, 0, 0x98, 0x96, 0x80, // 10,000,000
    0, 0, 1, 0xb0, 0x40, 0, 0, 12, // Rating-Group
    0, 0, 0, 1, // that of the gateways
    0, 0, 1, 0x0c, 0x40, 0, 0, 12, // Result-Code
    0, 0, 0x07, 0xd1, // 2001
];

/// Online charging systems.
#[derive(Debug)]
pub struct Ocs {
    sessions: AHashMap<Box<str>, Held>,
    failover: Percent,
    rar: f64,
    after: Duration,
    journal: Option<Journal>,
    /// The AVP with what is granted.
    services: Option<(AvpKey, AvpFlags)>,
}

/// A session.
#[derive(Clone, Copy, Debug)]
struct Held {
    node: usize,
    /// CC-Request-Number of its newest request.
    newest: u32,
}

/// What becomes of a CCR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// Its number is counted.
    Counted,
    /// A request that was counted before; the T flag says so.
    Repeated,
    /// Its session is not here.
    Unknown,
    /// It cannot be read, or comes twice without the T flag.
    Wrong,
}

impl Ocs {
    /// OCSs without sessions.
    ///
    /// # Errors
    /// When their journal cannot be made.
    pub fn new(settings: &DiameterSettings) -> io::Result<Self> {
        let services = Dictionary::standard().avp_named("Multiple-Services-Credit-Control");
        Ok(Self {
            sessions: AHashMap::new(),
            failover: settings.failover,
            rar: settings.ccr_rar.fraction(),
            after: settings.rar_after.duration(),
            journal: settings.journal.as_deref().map(Journal::create).transpose()?,
            services: services.map(|avp| (avp.key, avp.flags())),
        })
    }

    /// Judges a CCR of this type and number at a node. A session of no node here that may move was at one of another process.
    fn judge(&mut self, node: usize, id: &str, (kind, number): (i32, u32), is_again: bool) -> Judged {
        let Some(session) = session_number(id) else {
            return Judged::Wrong;
        };
        let held = self.sessions.get(id).copied();
        match (kind, held) {
            (EVENT, _) => return Judged::Counted,
            (INITIAL | UPDATE | TERMINATION, Some(held)) if held.node != node => return Judged::Unknown,
            (INITIAL | UPDATE | TERMINATION, Some(held)) if number <= held.newest => {
                let is_repeated = is_again && number == held.newest;
                return if is_repeated {
                    Judged::Repeated
                } else {
                    Judged::Wrong
                };
            }
            (INITIAL, None) if number == 0 => {}
            (UPDATE | TERMINATION, Some(_)) => {}
            (UPDATE | TERMINATION, None) if fails_over(session, self.failover) => {}
            (UPDATE | TERMINATION, None) => return Judged::Unknown,
            _ => return Judged::Wrong,
        }
        if kind == TERMINATION {
            self.sessions.remove(id);
        } else {
            let now = Held { node, newest: number };
            self.sessions.insert(id.into(), now);
        }
        Judged::Counted
    }

    fn put_answer(
        &self,
        own: &Introduction,
        request: MessageRef<'_>,
        code: ResultCode,
        may_move: bool,
        out: &mut Vec<u8>,
    ) {
        let mut answer = credit_answer(own, request, code);
        if code == ResultCode::SUCCESS {
            let failover = if may_move { SUPPORTED } else { NOT_SUPPORTED };
            answer.put(known::CC_SESSION_FAILOVER, failover);
            if let Some((key, flags)) = self.services {
                answer.put_raw(key, flags, &GRANT);
            }
        }
        append(answer, out);
    }
}

impl Role for Ocs {
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let own = node.introduction;
        let kind = request.get(known::CC_REQUEST_TYPE).ok().flatten();
        let number = request.get(known::CC_REQUEST_NUMBER).ok().flatten();
        let (Ok(Some(id)), Some(kind), Some(number)) = (request.get(known::SESSION_ID), kind, number) else {
            own.put_result(request, ResultCode::MISSING_AVP, out);
            return Outcome::bad();
        };
        if request.command() != command::CREDIT_CONTROL {
            own.put_result(request, ResultCode::COMMAND_UNSUPPORTED, out);
            return Outcome::bad();
        }
        let is_again = request.flags().contains(CommandFlags::RETRANSMITTED);
        let mut judged = self.judge(node.number, id, (kind, number), is_again);
        let session = session_number(id).unwrap_or_default();
        if let (Judged::Counted, Some(journal)) = (judged, &mut self.journal) {
            let is_written = journal.add(Entry {
                session,
                number,
                node: node.number as u16,
                is_again,
            });
            // What is not written must not be answered as if it were.
            if !is_written {
                judged = Judged::Wrong;
            }
        }
        let code = match judged {
            Judged::Counted | Judged::Repeated => ResultCode::SUCCESS,
            Judged::Unknown => ResultCode::UNKNOWN_SESSION_ID,
            Judged::Wrong => ResultCode::UNABLE_TO_COMPLY,
        };
        self.put_answer(own, request, code, fails_over(session, self.failover), out);
        let is_rar =
            code == ResultCode::SUCCESS && kind == UPDATE && random.random_bool(self.rar.clamp(0.0, 1.0));
        let rar = is_rar.then(|| re_auth(own, request, id, self.after)).flatten();
        Outcome {
            bad: code != ResultCode::SUCCESS,
            then: rar.into_iter().collect(),
            ..Outcome::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diameter::journal;
    use diameter_proto::known::application;
    use diameter_proto::{Message, MessageBuilder, check};
    use rand::SeedableRng;

    /// The result of a CCR of this type and number at an OCS, and the CC-Session-Failover of its answer.
    fn sent(
        ocs: &mut Ocs,
        number: usize,
        session: u32,
        (kind, count): (i32, u32),
        again: bool,
    ) -> (u32, Option<i32>) {
        let mut request = MessageBuilder::request(command::CREDIT_CONTROL, application::CREDIT_CONTROL);
        if again {
            *request.flags_mut() = request.flags_mut().with(CommandFlags::RETRANSMITTED);
        }
        request
            .put(known::SESSION_ID, &format!("ctf.example;{session};gy"))
            .put(known::ORIGIN_HOST, "ctf.example")
            .put(known::ORIGIN_REALM, "example")
            .put(known::CC_REQUEST_TYPE, kind)
            .put(known::CC_REQUEST_NUMBER, count);
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        let own = Introduction::new("ocs.example", "example", application::CREDIT_CONTROL);
        let (mut out, mut random) = (Vec::new(), SmallRng::seed_from_u64(1));
        let node = Node {
            number,
            introduction: &own,
        };
        let outcome = ocs.answer(node, Message::parse(&bytes[..]).unwrap(), &mut random, &mut out);
        let answer = Message::parse(&out[..]).unwrap();
        let code = loadgen::diameter::result_of(answer);
        if code == 2001 {
            check::check(&answer, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
        }
        assert_eq!(outcome.bad, code != 2001);
        (code, answer.get(known::CC_SESSION_FAILOVER).unwrap())
    }

    #[test]
    fn each_number_is_counted_once_where_its_session_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal");
        let mut ocs = Ocs::new(&DiameterSettings {
            failover: Percent::new(50.0),
            journal: Some(file.clone()),
            ..DiameterSettings::default()
        })
        .unwrap();
        // Sessions 1 and 2 may move, 99 may not.
        for (node, session, request, again, expected) in [
            (0, 1, (INITIAL, 0), false, (2001, Some(1))),
            (0, 99, (INITIAL, 0), false, (2001, Some(0))),
            (0, 1, (INITIAL, 0), true, (2001, Some(1))),
            (0, 1, (INITIAL, 0), false, (5012, None)),
            (1, 1, (UPDATE, 1), false, (5002, None)),
            (0, 1, (UPDATE, 1), false, (2001, Some(1))),
            (0, 1, (UPDATE, 0), true, (5012, None)),
            (1, 2, (UPDATE, 4), true, (2001, Some(1))),
            (1, 98, (UPDATE, 4), true, (5002, None)),
            (0, 1, (TERMINATION, 2), false, (2001, Some(1))),
            (0, 3, (EVENT, 0), false, (2001, Some(1))),
            (0, 4, (INITIAL, 1), false, (5012, None)),
            (0, 4, (7, 0), false, (5012, None)),
        ] {
            let got = sent(&mut ocs, node, session, request, again);
            assert_eq!(got, expected, "{session}, {request:?} at {node}");
        }
        let mut counted = Vec::new();
        journal::read(&file, |entry| {
            counted.push((entry.session, entry.number, entry.node, entry.is_again));
        })
        .unwrap();
        let expected = [
            (1, 0, 0, false),
            (99, 0, 0, false),
            (1, 1, 0, false),
            (2, 4, 1, true),
            (1, 2, 0, false),
            (3, 0, 0, false),
        ];
        assert_eq!(counted, expected);
    }
}
