//! What is wrong with a message, in the words of RFC 6733 §7: a result code, the AVP it is about, a reason.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

/// A Result-Code (RFC 6733 §7.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultCode(pub u32);

macro_rules! result_codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl ResultCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The standard's name of the code, where there is one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!("DIAMETER_", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

result_codes! {
    /// More exchanges are needed.
    MULTI_ROUND_AUTH = 1001;
    /// The request was completed.
    SUCCESS = 2001;
    /// Completed, but further processing by the application is needed.
    LIMITED_SUCCESS = 2002;
    /// The command code is not known.
    COMMAND_UNSUPPORTED = 3001;
    /// No route to the destination, or the destination is not reachable.
    UNABLE_TO_DELIVER = 3002;
    /// The realm is not known.
    REALM_NOT_SERVED = 3003;
    /// The peer cannot process more requests now.
    TOO_BUSY = 3004;
    /// An agent found itself in the Route-Records.
    LOOP_DETECTED = 3005;
    /// Send the request to one of the Redirect-Hosts.
    REDIRECT_INDICATION = 3006;
    /// The application is not supported.
    APPLICATION_UNSUPPORTED = 3007;
    /// The header's flags contradict one another or the command.
    INVALID_HDR_BITS = 3008;
    /// An AVP's flags are not known or contradict its definition.
    INVALID_AVP_BITS = 3009;
    /// A CER came from a peer that is not known.
    UNKNOWN_PEER = 3010;
    /// The authentication failed.
    AUTHENTICATION_REJECTED = 4001;
    /// No space on the accounting server.
    OUT_OF_SPACE = 4002;
    /// This connection lost the election.
    ELECTION_LOST = 4003;
    /// An AVP with the M flag is not understood.
    AVP_UNSUPPORTED = 5001;
    /// The Session-Id is not known.
    UNKNOWN_SESSION_ID = 5002;
    /// The user is not authorised.
    AUTHORIZATION_REJECTED = 5003;
    /// An AVP has a value that cannot be.
    INVALID_AVP_VALUE = 5004;
    /// An AVP that has to be there is missing.
    MISSING_AVP = 5005;
    /// A request cannot be authorised: resources are used up.
    RESOURCES_EXCEEDED = 5006;
    /// AVPs of one message contradict one another.
    CONTRADICTING_AVPS = 5007;
    /// An AVP is present that must not be.
    AVP_NOT_ALLOWED = 5008;
    /// An AVP is present more often than it may be.
    AVP_OCCURS_TOO_MANY_TIMES = 5009;
    /// The peers have no application in common.
    NO_COMMON_APPLICATION = 5010;
    /// The version is not 1.
    UNSUPPORTED_VERSION = 5011;
    /// The request failed for a reason that has no code.
    UNABLE_TO_COMPLY = 5012;
    /// A reserved bit of the header is set.
    INVALID_BIT_IN_HEADER = 5013;
    /// An AVP's length does not fit its type or its place.
    INVALID_AVP_LENGTH = 5014;
    /// The message's length is wrong.
    INVALID_MESSAGE_LENGTH = 5015;
    /// The bits of an AVP's value contradict one another.
    INVALID_AVP_BIT_COMBO = 5016;
    /// The peers have no security mechanism in common.
    NO_COMMON_SECURITY = 5017;
}

impl ResultCode {
    /// Whether the code is a protocol error (3xxx), so that the answer carries the E flag (§7.1.3).
    #[must_use]
    pub const fn is_protocol_error(self) -> bool {
        self.0 / 1000 == 3
    }

    /// Whether the code is a success (2xxx).
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 / 1000 == 2
    }
}

impl fmt::Debug for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `DIAMETER_MISSING_AVP (5005)`, or the number alone.
impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Why a message is refused, ready to be answered: [`crate::MessageBuilder::error_answer`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The result code of the answer.
    pub code: ResultCode,
    /// Whose code it is: the Vendor-Id of an Experimental-Result (RFC 6733 §7.6); 0 for a Result-Code.
    pub vendor: u32,
    /// The offending AVP, whole and padded: what goes into Failed-AVP.
    pub failed_avp: Option<Bytes>,
    /// For operators and the Error-Message AVP: what was wrong, where.
    pub reason: Cow<'static, str>,
}

impl Fault {
    /// A fault that does not concern one AVP.
    #[must_use]
    pub fn new(code: ResultCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            vendor: 0,
            failed_avp: None,
            reason: reason.into(),
        }
    }

    /// The same fault, with a code of this vendor.
    #[must_use]
    pub const fn of_vendor(mut self, vendor: u32) -> Self {
        self.vendor = vendor;
        self
    }

    /// The same fault, about this (whole, padded) AVP.
    #[must_use]
    pub fn about(mut self, avp: Bytes) -> Self {
        self.failed_avp = Some(avp);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Fault {}
