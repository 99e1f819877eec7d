//! The CCRs of gateways, made once.

use diameter_proto::known;

use crate::policy::FIRST_IMSI;
use loadgen::diameter::{Places, Template, TemplateError, fill_in};

/// The IMSI in the text.
const IMSI: &[u8] = b"999999999999999";

/// What a CCR does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It begins a session.
    Initial,
    /// It reports what is used, and wants more.
    Update,
    /// It ends a session.
    Termination,
    /// A one-time event.
    Event,
}

impl Kind {
    /// All of them, in the order of the operations.
    pub const ALL: [Self; 4] = [Self::Initial, Self::Update, Self::Termination, Self::Event];

    /// The name of its operation.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Initial => "ccrInitial",
            Self::Update => "ccrUpdate",
            Self::Termination => "ccrTermination",
            Self::Event => "ccrEvent",
        }
    }

    /// CC-Request-Type (RFC 8506 §8.3): its name, and its value.
    pub(super) const fn request_type(self) -> (&'static str, i32) {
        match self {
            Self::Initial => ("INITIAL_REQUEST", 1),
            Self::Update => ("UPDATE_REQUEST", 2),
            Self::Termination => ("TERMINATION_REQUEST", 3),
            Self::Event => ("EVENT_REQUEST", 4),
        }
    }

    /// The AVPs that it has besides those of all (TS 32.299 §6.4.2).
    const fn more(self) -> &'static str {
        match self {
            Self::Initial => {
                "Multiple-Services-Indicator = MULTIPLE_SERVICES_SUPPORTED
                Multiple-Services-Credit-Control = { Requested-Service-Unit = { CC-Total-Octets = 10000000 } Rating-Group = 1 }"
            }
            Self::Update => {
                "Multiple-Services-Credit-Control = { Requested-Service-Unit = { CC-Total-Octets = 10000000 }
                Used-Service-Unit = { CC-Total-Octets = 9000000 } Rating-Group = 1 }"
            }
            Self::Termination => {
                "Termination-Cause = DIAMETER_LOGOUT
                Multiple-Services-Credit-Control = { Used-Service-Unit = { CC-Total-Octets = 500000 } Rating-Group = 1 }"
            }
            Self::Event => {
                "Requested-Action = DIRECT_DEBITING
                Multiple-Services-Credit-Control = { Requested-Service-Unit = { CC-Total-Octets = 100 } Rating-Group = 1 }"
            }
        }
    }
}

/// The CCRs of all generator threads.
#[derive(Clone, Debug)]
pub struct Messages {
    messages: Vec<CreditRequest>,
    subscribers: u64,
}

/// A CCR of one kind.
#[derive(Clone, Debug)]
struct CreditRequest {
    template: Template,
    client: Places,
    session: Places,
    /// Where CC-Request-Number and IMSI are.
    number: usize,
    imsi: usize,
}

impl Messages {
    /// CCRs for this realm, about this number of subscribers.
    ///
    /// # Errors
    /// When a template is not a valid message, which a test rules out.
    pub fn new(realm: &str, subscribers: u64) -> Result<Self, TemplateError> {
        let messages = Kind::ALL.map(|kind| CreditRequest::new(realm, kind));
        Ok(Self {
            messages: messages.into_iter().collect::<Result<_, _>>()?,
            subscribers: subscribers.max(1),
        })
    }

    /// Appends the CCR of this number of a session at a gateway.
    pub fn put(&self, kind: Kind, gateway: usize, session: u32, number: u32, out: &mut Vec<u8>) {
        let Some(message) = self.messages.get(kind as usize) else {
            return;
        };
        let begin = out.len();
        out.extend_from_slice(message.template.as_bytes());
        let Some(own) = out.get_mut(begin..) else { return };
        fill_in(own, &message.client, gateway as u64);
        fill_in(own, &message.session, u64::from(session));
        let imsi = FIRST_IMSI + u64::from(session) % self.subscribers;
        for (at, bytes) in [
            (message.number, &number.to_be_bytes()[..]),
            (message.imsi, format!("{imsi:015}").as_bytes()),
        ] {
            if let Some(place) = own.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
    }
}

impl CreditRequest {
    fn new(realm: &str, kind: Kind) -> Result<Self, TemplateError> {
        let text = include_str!("ccr.txt")
            .replace("REALM", realm)
            .replace("TYPE", kind.request_type().0)
            .replace("MORE", kind.more());
        let template = Template::parse(&text)?;
        let bytes = template.as_bytes();
        let message = template.message();
        let mut avps = message.avps().map_while(Result::ok);
        let number = avps.find(|avp| avp.is(known::CC_REQUEST_NUMBER));
        let number = number.map(|avp| avp.data.as_ptr() as usize - bytes.as_ptr() as usize);
        let imsi = bytes.windows(IMSI.len()).position(|part| part == IMSI);
        let missing = |what: &str| TemplateError::Hole(what.to_owned());
        Ok(Self {
            number: number.ok_or_else(|| missing("CC-Request-Number"))?,
            imsi: imsi.ok_or_else(|| missing("the IMSI"))?,
            client: template.places("client"),
            session: template.places("session"),
            template,
        })
    }
}
