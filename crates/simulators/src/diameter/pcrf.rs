//! PCRFs of one pool at their Gx end (TS 29.212) and Rx end (TS 29.214). They know of one another, and judge the routing before
//! them: all sessions of a subscriber belong at one, and an AAR to the one that has the session of its address.

use std::time::Duration;

use ahash::AHashMap;
use diameter_proto::known::{self, command};
use diameter_proto::{MessageRef, ResultCode};
use rand::Rng;
use rand::rngs::SmallRng;

use super::credit::{INITIAL, TERMINATION, credit_answer, re_auth};
use super::{DiameterSettings, Node, Outcome, Place, Placed, Role};
use loadgen::diameter::{Introduction, append};

/// IP-CAN_SESSION_NOT_AVAILABLE (TS 29.214 §5.5).
const NO_SESSION: u32 = 5065;
/// END_USER_IMSI (RFC 8506 §8.47).
const END_USER_IMSI: i32 = 1;
/// The part of an address that is the prefix of a session, behind the reserved octet and the length (RFC 3162 §2.3).
const PREFIX: std::ops::Range<usize> = 2..10;

type Prefix = [u8; 8];

/// Policy and charging rules functions.
#[derive(Debug)]
pub struct Pcrf {
    gx: AHashMap<Box<str>, Gateway>,
    /// The node that has the session with this prefix.
    prefixes: AHashMap<Prefix, usize>,
    /// The node of each session of a subscriber.
    subscribers: AHashMap<Box<str>, Vec<usize>>,
    /// Sessions of applications, and the nodes that have them.
    rx: AHashMap<Box<str>, usize>,
    gx_rar: f64,
    rx_rar: f64,
    after: Duration,
    serves_strays: bool,
}

/// What a PCRF makes of a request.
#[derive(Clone, Copy, Debug)]
struct Judged {
    code: ResultCode,
    is_wrong: bool,
    placed: Option<Placed>,
}

impl Judged {
    const RIGHT: Self = Self {
        code: ResultCode::SUCCESS,
        is_wrong: false,
        placed: None,
    };

    /// Refused, and wrong here or not.
    fn refused(code: ResultCode, is_wrong: bool) -> Self {
        Self {
            code,
            is_wrong,
            placed: None,
        }
    }
}

/// A session at a gateway.
#[derive(Debug)]
struct Gateway {
    node: usize,
    imsi: Box<str>,
    prefix: Prefix,
}

impl Pcrf {
    /// Functions without sessions.
    #[must_use]
    pub fn new(settings: &DiameterSettings) -> Self {
        Self {
            gx: AHashMap::new(),
            prefixes: AHashMap::new(),
            subscribers: AHashMap::new(),
            rx: AHashMap::new(),
            gx_rar: settings.ccr_rar.fraction(),
            rx_rar: settings.rar.fraction(),
            after: settings.rar_after.duration(),
            serves_strays: settings.serve_strays,
        }
    }

    /// What begins at a node: what belongs at another one is served, or refused with this code.
    fn placed(&self, kind: Place, is_stray: bool, code: ResultCode) -> Judged {
        let is_refused = is_stray && !self.serves_strays;
        Judged {
            code: if is_refused { code } else { ResultCode::SUCCESS },
            is_wrong: is_stray,
            placed: Some(Placed { kind, is_stray }),
        }
    }

    fn credit(&mut self, node: usize, request: MessageRef<'_>, id: &str) -> Judged {
        let kind = request.get(known::CC_REQUEST_TYPE).ok().flatten();
        if kind == Some(INITIAL) {
            return self.begin(node, request, id);
        }
        match self.gx.get(id) {
            Some(gateway) if gateway.node == node => {}
            other => return Judged::refused(ResultCode::UNKNOWN_SESSION_ID, other.is_some()),
        }
        if kind == Some(TERMINATION) {
            self.end(id);
        }
        Judged::RIGHT
    }

    fn begin(&mut self, node: usize, request: MessageRef<'_>, id: &str) -> Judged {
        let (Some(imsi), Some(prefix)) = (imsi_of(request), prefix_of(request)) else {
            return Judged::refused(ResultCode::MISSING_AVP, true);
        };
        // Sent again after another PCRF has failed, or the router.
        self.end(id);
        let nodes = self.subscribers.get(&imsi).map_or(&[][..], Vec::as_slice);
        let is_stray = nodes.iter().any(|other| *other != node);
        let judged = self.placed(Place::Session, is_stray, ResultCode::UNABLE_TO_COMPLY);
        if judged.code != ResultCode::SUCCESS {
            return judged;
        }
        self.subscribers.entry(imsi.clone()).or_default().push(node);
        self.prefixes.insert(prefix, node);
        self.gx.insert(id.into(), Gateway { node, imsi, prefix });
        judged
    }

    fn end(&mut self, id: &str) {
        let Some(gateway) = self.gx.remove(id) else {
            return;
        };
        self.prefixes.remove(&gateway.prefix);
        if let Some(nodes) = self.subscribers.get_mut(&gateway.imsi) {
            if let Some(at) = nodes.iter().position(|node| *node == gateway.node) {
                nodes.swap_remove(at);
            }
            if nodes.is_empty() {
                self.subscribers.remove(&gateway.imsi);
            }
        }
    }

    /// An AAR, which may be at a node where its subscriber's session is.
    fn media(&mut self, node: usize, request: MessageRef<'_>, id: &str) -> Judged {
        let own = self.rx.get(id).copied();
        let found = own.or_else(|| prefix_of(request).and_then(|prefix| self.prefixes.get(&prefix).copied()));
        let judged = self.placed(Place::Media, found != Some(node), ResultCode(NO_SESSION));
        if judged.code == ResultCode::SUCCESS {
            self.rx.insert(id.into(), node);
        }
        judged
    }

    fn end_media(&mut self, node: usize, id: &str) -> Judged {
        match self.rx.remove(id) {
            Some(at) if at == node => Judged::RIGHT,
            other => Judged::refused(ResultCode::UNKNOWN_SESSION_ID, other.is_some()),
        }
    }
}

fn imsi_of(request: MessageRef<'_>) -> Option<Box<str>> {
    let mut ids = request.walk().map_while(Result::ok);
    ids.find_map(|avp| {
        if !avp.is(known::SUBSCRIPTION_ID) {
            return None;
        }
        let kind = avp.group().get(known::SUBSCRIPTION_ID_TYPE).ok().flatten();
        let data = avp.group().get(known::SUBSCRIPTION_ID_DATA).ok().flatten();
        data.filter(|_| kind == Some(END_USER_IMSI)).map(Into::into)
    })
}

fn prefix_of(request: MessageRef<'_>) -> Option<Prefix> {
    let data = request.get(known::FRAMED_IPV6_PREFIX).ok().flatten()?;
    data.get(PREFIX)?.try_into().ok()
}

impl Role for Pcrf {
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let own = node.introduction;
        let Ok(Some(id)) = request.get(known::SESSION_ID) else {
            own.put_result(request, ResultCode::MISSING_AVP, out);
            return Outcome::bad();
        };
        let (judged, share) = match request.command() {
            command::CREDIT_CONTROL => {
                let is_update = !matches!(
                    request.get(known::CC_REQUEST_TYPE),
                    Ok(Some(INITIAL | TERMINATION))
                );
                let share = if is_update { self.gx_rar } else { 0.0 };
                (self.credit(node.number, request, id), share)
            }
            command::AA => (self.media(node.number, request, id), self.rx_rar),
            command::SESSION_TERMINATION => (self.end_media(node.number, id), 0.0),
            _ => (Judged::refused(ResultCode::COMMAND_UNSUPPORTED, true), 0.0),
        };
        put_answer(own, request, judged.code, out);
        let is_rar = judged.code == ResultCode::SUCCESS && random.random_bool(share.clamp(0.0, 1.0));
        let rar = is_rar.then(|| re_auth(own, request, id, self.after)).flatten();
        Outcome {
            bad: judged.is_wrong,
            placed: judged.placed,
            then: rar.into_iter().collect(),
        }
    }
}

/// The first CCA installs a rule, as the default bearer needs one.
fn put_answer(own: &Introduction, request: MessageRef<'_>, code: ResultCode, out: &mut Vec<u8>) {
    if code.0 == NO_SESSION {
        return own.put_experimental_result(request, NO_SESSION, out);
    }
    if request.command() != command::CREDIT_CONTROL {
        return own.put_result(request, code, out);
    }
    let mut answer = credit_answer(own, request, code);
    if code == ResultCode::SUCCESS {
        answer.group(known::CHARGING_RULE_INSTALL, |group| {
            group.put(known::CHARGING_RULE_NAME, b"default".as_slice());
        });
    }
    append(answer, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::known::application;
    use diameter_proto::{Message, MessageBuilder};
    use rand::SeedableRng;

    /// What comes of a request of this kind (CC-Request-Type; none: an AAR) at a PCRF.
    fn sent(pcrf: &mut Pcrf, number: usize, id: &str, kind: Option<i32>, subscriber: u8) -> (u32, bool) {
        let (code, outcome) = judged(pcrf, number, id, kind, subscriber);
        (code, outcome.bad)
    }

    fn judged(pcrf: &mut Pcrf, number: usize, id: &str, kind: Option<i32>, subscriber: u8) -> (u32, Outcome) {
        let (code, app) = match kind {
            Some(_) => (command::CREDIT_CONTROL, application::GX),
            None => (command::AA, application::RX),
        };
        let mut request = MessageBuilder::request(code, app);
        request
            .put(known::SESSION_ID, id)
            .put(known::ORIGIN_HOST, "gw.example")
            .put(known::ORIGIN_REALM, "example");
        if let Some(kind) = kind {
            request.put(known::CC_REQUEST_TYPE, kind);
            request.group(known::SUBSCRIPTION_ID, |group| {
                group
                    .put(known::SUBSCRIPTION_ID_TYPE, END_USER_IMSI)
                    .put(known::SUBSCRIPTION_ID_DATA, &format!("{subscriber:015}"));
            });
        }
        let prefix = [0, 64, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, subscriber];
        request.put(known::FRAMED_IPV6_PREFIX, &prefix);
        let mut bytes = Vec::new();
        append(request, &mut bytes);
        let own = Introduction::new("pcrf.example", "example", app);
        let (mut out, mut random) = (Vec::new(), SmallRng::seed_from_u64(1));
        let node = Node {
            number,
            introduction: &own,
        };
        let outcome = pcrf.answer(node, Message::parse(&bytes[..]).unwrap(), &mut random, &mut out);
        let answer = Message::parse(&out[..]).unwrap();
        (loadgen::diameter::result_of(answer), outcome)
    }

    #[test]
    fn what_is_at_the_wrong_one_is_refused_and_counted() {
        let mut pcrf = Pcrf::new(&DiameterSettings::default());
        let update = Some(2);
        for (number, id, kind, subscriber, expected) in [
            (0, "a", Some(INITIAL), 1, (2001, false)),
            (1, "b", Some(INITIAL), 1, (5012, true)),
            (0, "c", Some(INITIAL), 1, (2001, false)),
            (1, "d", Some(INITIAL), 2, (2001, false)),
            (0, "a", update, 1, (2001, false)),
            (1, "a", update, 1, (5002, true)),
            (1, "nowhere", update, 1, (5002, false)),
            (1, "rx", None, 2, (2001, false)),
            (0, "rx", None, 2, (5065, true)),
            (0, "rx2", None, 9, (5065, true)),
            (0, "a", Some(TERMINATION), 1, (2001, false)),
            (0, "c", Some(TERMINATION), 1, (2001, false)),
            (1, "e", Some(INITIAL), 1, (2001, false)),
        ] {
            assert_eq!(
                sent(&mut pcrf, number, id, kind, subscriber),
                expected,
                "{id} at {number}"
            );
        }
    }

    #[test]
    fn what_is_at_the_wrong_one_may_be_served_and_is_counted() {
        let mut pcrf = Pcrf::new(&DiameterSettings {
            serve_strays: true,
            ..DiameterSettings::default()
        });
        let placed = |kind, is_stray| (2001, Some(Placed { kind, is_stray }));
        for (number, id, kind, subscriber, expected) in [
            (0, "a", Some(INITIAL), 1, placed(Place::Session, false)),
            (1, "b", Some(INITIAL), 1, placed(Place::Session, true)),
            // The address is that of the session that began last.
            (0, "rx", None, 1, placed(Place::Media, true)),
            (0, "rx", None, 1, placed(Place::Media, false)),
            (1, "rx2", None, 1, placed(Place::Media, false)),
            (0, "a", Some(TERMINATION), 1, (2001, None)),
            (1, "b", Some(2), 1, (2001, None)),
            (0, "b", Some(2), 1, (5002, None)),
            (1, "c", Some(INITIAL), 1, placed(Place::Session, false)),
        ] {
            let (code, outcome) = judged(&mut pcrf, number, id, kind, subscriber);
            assert_eq!((code, outcome.placed), expected, "{id} at {number}");
        }
    }
}
