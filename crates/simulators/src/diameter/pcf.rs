//! A PCF at its Rx end (TS 29.214): AAA, STA, and the RARs and ASRs it sends of its own accord.

use std::time::Duration;

use ahash::AHashSet;
use diameter_proto::known::{self, application, command};
use diameter_proto::{CommandFlags, MessageBuilder, MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{DiameterSettings, Node, Outcome, Role};
use loadgen::diameter::{Introduction, append};

/// Policy control functions: sessions begin with an AAR and end with an STR.
#[derive(Debug)]
pub struct Pcf {
    sessions: AHashSet<Box<str>>,
    rar: (f64, Duration),
    asr: (f64, Duration),
}

impl Pcf {
    /// Functions without sessions.
    #[must_use]
    pub fn new(settings: &DiameterSettings) -> Self {
        Self {
            sessions: AHashSet::new(),
            rar: (settings.rar.fraction(), settings.rar_after.duration()),
            asr: (settings.asr.fraction(), settings.asr_after.duration()),
        }
    }

    /// Sessions that stand.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn begin(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        session: &str,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let has_address = request
            .walk()
            .map_while(Result::ok)
            .any(|avp| avp.is(known::FRAMED_IP_ADDRESS) || avp.is(known::FRAMED_IPV6_PREFIX));
        let origin = (
            request.get(known::ORIGIN_HOST).ok().flatten(),
            request.get(known::ORIGIN_REALM).ok().flatten(),
        );
        let known_session = self.sessions.contains(session);
        let ((Some(host), Some(realm)), true) = (origin, has_address || known_session) else {
            node.introduction
                .put_result(request, ResultCode::MISSING_AVP, out);
            return Outcome::bad();
        };
        if !known_session {
            self.sessions.insert(session.into());
        }
        let mut answer = MessageBuilder::answer(&request);
        answer.put(known::AUTH_APPLICATION_ID, application::RX);
        answer.result(ResultCode::SUCCESS, &node.introduction.origin);
        append(answer, out);
        let drawn: f64 = random.random();
        let then = if drawn < self.rar.0 {
            Some((
                self.rar.1,
                follow_up(
                    (command::RE_AUTH, application::RX),
                    node.introduction,
                    session,
                    (host, realm),
                ),
            ))
        } else if drawn < self.rar.0 + self.asr.0 {
            let abort = follow_up(
                (command::ABORT_SESSION, application::RX),
                node.introduction,
                session,
                (host, realm),
            );
            Some((self.asr.1, abort))
        } else {
            None
        };
        Outcome {
            then: then.into_iter().collect(),
            ..Outcome::default()
        }
    }
}

/// A request to the other end of a session (TS 29.214 §5.6.3, §5.6.7; TS 29.212 §5.6.4).
pub(super) fn follow_up(
    (code, app): (u32, u32),
    me: &Introduction,
    session: &str,
    (host, realm): (&str, &str),
) -> Vec<u8> {
    let mut request = MessageBuilder::request(code, app);
    *request.flags_mut() = CommandFlags::REQUEST.with(CommandFlags::PROXIABLE);
    request
        .put(known::SESSION_ID, session)
        .put(known::ORIGIN_HOST, &me.origin.host)
        .put(known::ORIGIN_REALM, &me.origin.realm)
        .put(known::DESTINATION_REALM, realm)
        .put(known::DESTINATION_HOST, host)
        .put(known::AUTH_APPLICATION_ID, app);
    let dictionary = diameter_proto::Dictionary::standard();
    let (name, value) = match (code, app) {
        // AUTHORIZE_ONLY
        (command::RE_AUTH, application::GX | application::CREDIT_CONTROL) => ("Re-Auth-Request-Type", 0_u32),
        // INDICATION_OF_LOSS_OF_BEARER
        (command::RE_AUTH, _) => ("Specific-Action", 2),
        // BEARER_RELEASED
        _ => ("Abort-Cause", 0),
    };
    if let Some(definition) = dictionary.avp_named(name) {
        request.put_raw(definition.key, definition.flags(), &value.to_be_bytes());
    }
    let mut out = Vec::new();
    append(request, &mut out);
    out
}

impl Role for Pcf {
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let Ok(Some(session)) = request.get(known::SESSION_ID) else {
            node.introduction
                .put_result(request, ResultCode::MISSING_AVP, out);
            return Outcome::bad();
        };
        match request.command() {
            command::AA => self.begin(node, request, session, random, out),
            command::SESSION_TERMINATION => {
                let code = if self.sessions.remove(session) {
                    ResultCode::SUCCESS
                } else {
                    ResultCode::UNKNOWN_SESSION_ID
                };
                node.introduction.put_result(request, code, out);
                Outcome::default()
            }
            _ => {
                node.introduction
                    .put_result(request, ResultCode::COMMAND_UNSUPPORTED, out);
                Outcome::bad()
            }
        }
    }
}
