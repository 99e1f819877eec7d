//! Parameters: tag, length, value, padding to four octets (RFC 4666 §3.2).

use std::fmt;

use crate::octets::be16;

/// A parameter's tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u16);

macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $value:literal $text:literal;)*) => {
        impl Tag {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The standard's name, where there is one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

tags! {
    /// Text for operators, at most 255 octets.
    INFO_STRING = 0x0004 "INFO String";
    /// Which application servers traffic is for: numbers of 32 bits.
    ROUTING_CONTEXT = 0x0006 "Routing Context";
    /// What was wrong: the first octets of the message.
    DIAGNOSTIC_INFORMATION = 0x0007 "Diagnostic Information";
    /// Opaque octets that return in BEAT ACK.
    HEARTBEAT_DATA = 0x0009 "Heartbeat Data";
    /// How the ASPs of an AS share traffic.
    TRAFFIC_MODE_TYPE = 0x000b "Traffic Mode Type";
    /// Why ERR was sent.
    ERROR_CODE = 0x000c "Error Code";
    /// What NTFY reports: type and information.
    STATUS = 0x000d "Status";
    /// Identity of an ASP.
    ASP_IDENTIFIER = 0x0011 "ASP Identifier";
    /// Point codes, each with a mask.
    AFFECTED_POINT_CODE = 0x0012 "Affected Point Code";
    /// Marks MSUs at the beginning of broadcast.
    CORRELATION_ID = 0x0013 "Correlation ID";
    /// Which SS7 network.
    NETWORK_APPEARANCE = 0x0200 "Network Appearance";
    /// User part and cause of its absence.
    USER_CAUSE = 0x0204 "User/Cause";
    /// Congestion level.
    CONGESTION_INDICATIONS = 0x0205 "Congestion Indications";
    /// The point code whose traffic met the congestion.
    CONCERNED_DESTINATION = 0x0206 "Concerned Destination";
    /// What traffic an AS takes.
    ROUTING_KEY = 0x0207 "Routing Key";
    /// The outcome for one routing key.
    REGISTRATION_RESULT = 0x0208 "Registration Result";
    /// The outcome for one routing context.
    DEREGISTRATION_RESULT = 0x0209 "Deregistration Result";
    /// The requester's number of a routing key.
    LOCAL_ROUTING_KEY_IDENTIFIER = 0x020a "Local Routing Key Identifier";
    /// Destination of a routing key.
    DESTINATION_POINT_CODE = 0x020b "Destination Point Code";
    /// Service indicators of a routing key.
    SERVICE_INDICATORS = 0x020c "Service Indicators";
    /// Origins of a routing key.
    ORIGINATING_POINT_CODE_LIST = 0x020e "Originating Point Code List";
    /// An MSU: routing label and user data.
    PROTOCOL_DATA = 0x0210 "Protocol Data";
    /// Status within a registration result.
    REGISTRATION_STATUS = 0x0212 "Registration Status";
    /// Status within a deregistration result.
    DEREGISTRATION_STATUS = 0x0213 "Deregistration Status";
}

/// A number, or a list of numbers, of 32 bits.
const WORDS: &[Tag] = &[
    Tag::ROUTING_CONTEXT,
    Tag::AFFECTED_POINT_CODE,
    Tag::ORIGINATING_POINT_CODE_LIST,
];

const WORD: &[Tag] = &[
    Tag::TRAFFIC_MODE_TYPE,
    Tag::ERROR_CODE,
    Tag::STATUS,
    Tag::ASP_IDENTIFIER,
    Tag::CORRELATION_ID,
    Tag::NETWORK_APPEARANCE,
    Tag::USER_CAUSE,
    Tag::CONGESTION_INDICATIONS,
    Tag::CONCERNED_DESTINATION,
    Tag::LOCAL_ROUTING_KEY_IDENTIFIER,
    Tag::DESTINATION_POINT_CODE,
    Tag::REGISTRATION_STATUS,
    Tag::DEREGISTRATION_STATUS,
];

/// Octets of Protocol Data before the user data.
pub(super) const LABEL_LEN: usize = 12;

impl Tag {
    /// Whether a value of this many octets is possible.
    pub(super) fn takes_length(self, length: usize) -> bool {
        if self == Self::PROTOCOL_DATA {
            // An MSU of MTP3 carries 272 octets, of Q.2210 4,091; the parameter itself bounds it.
            length >= LABEL_LEN
        } else if WORD.contains(&self) {
            length == 4
        } else if WORDS.contains(&self) {
            length != 0 && length.is_multiple_of(4)
        } else if self == Self::INFO_STRING {
            length <= 255
        } else if self == Self::SERVICE_INDICATORS {
            length != 0
        } else {
            true
        }
    }

    /// The tags that the value of this one consists of, when it is a list of parameters (RFC 4666 §3.6): those that it
    /// needs, then those that it may have.
    pub(super) const fn members(self) -> Option<(&'static [Tag], &'static [Tag])> {
        Some(match self {
            Self::ROUTING_KEY => (
                &[Self::LOCAL_ROUTING_KEY_IDENTIFIER, Self::DESTINATION_POINT_CODE],
                &[
                    Self::ROUTING_CONTEXT,
                    Self::TRAFFIC_MODE_TYPE,
                    Self::NETWORK_APPEARANCE,
                    Self::SERVICE_INDICATORS,
                    Self::ORIGINATING_POINT_CODE_LIST,
                ],
            ),
            Self::REGISTRATION_RESULT => (
                &[
                    Self::LOCAL_ROUTING_KEY_IDENTIFIER,
                    Self::REGISTRATION_STATUS,
                    Self::ROUTING_CONTEXT,
                ],
                &[],
            ),
            Self::DEREGISTRATION_RESULT => (&[Self::ROUTING_CONTEXT, Self::DEREGISTRATION_STATUS], &[]),
            _ => return None,
        })
    }

    /// Whether a message or a routing key may have the parameter more than once.
    pub(super) const fn may_repeat(self) -> bool {
        matches!(
            self,
            Self::ROUTING_KEY
                | Self::REGISTRATION_RESULT
                | Self::DEREGISTRATION_RESULT
                | Self::DESTINATION_POINT_CODE
                | Self::SERVICE_INDICATORS
                | Self::ORIGINATING_POINT_CODE_LIST
        )
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `Routing Context (0x0006)`, or the number alone.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#06x})", self.0),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}

/// One parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter<'a> {
    /// The tag.
    pub tag: Tag,
    /// The value, without padding.
    pub value: &'a [u8],
}

/// A list of parameters; [`Parameters::next`] returns an error once, for one that does not fit.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    rest: &'a [u8],
}

/// A parameter whose length is below four or exceeds what is there; or fewer than four octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrokenParameter;

impl<'a> Parameters<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Result<Parameter<'a>, BrokenParameter>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        let (Some(tag), Some(length)) = (be16(rest, 0), be16(rest, 2)) else {
            return Some(Err(BrokenParameter));
        };
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else {
            return Some(Err(BrokenParameter));
        };
        // The last parameter may lack its padding (RFC 4666 §3.1.4).
        self.rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Parameter { tag: Tag(tag), value }))
    }
}
