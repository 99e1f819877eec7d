//! Return causes (Q.713 §3.12).

use std::fmt;

/// Why data return.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReturnCause(pub u8);

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $value:literal $text:literal;)*) => {
        impl ReturnCause {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The standard's words, where there are some.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($value => Some($text),)* _ => None }
            }
        }
    };
}

causes! {
    /// No translation for addresses of this kind.
    NO_TRANSLATION_FOR_NATURE = 0 "no translation for an address of such nature";
    /// No translation for this address.
    NO_TRANSLATION_FOR_ADDRESS = 1 "no translation for this specific address";
    /// The subsystem is congested.
    SUBSYSTEM_CONGESTION = 2 "subsystem congestion";
    /// The subsystem is unavailable.
    SUBSYSTEM_FAILURE = 3 "subsystem failure";
    /// Without such a user.
    UNEQUIPPED_USER = 4 "unequipped user";
    /// MTP cannot reach the destination.
    MTP_FAILURE = 5 "MTP failure";
    /// The network is congested.
    NETWORK_CONGESTION = 6 "network congestion";
    /// Another reason.
    UNQUALIFIED = 7 "unqualified";
    /// The transport made an error.
    ERROR_IN_MESSAGE_TRANSPORT = 8 "error in message transport";
    /// The node made an error.
    ERROR_IN_LOCAL_PROCESSING = 9 "error in local processing";
    /// The destination does not reassemble.
    DESTINATION_CANNOT_REASSEMBLE = 10 "destination cannot perform reassembly";
    /// SCCP at the destination is unavailable.
    SCCP_FAILURE = 11 "SCCP failure";
    /// The message was relayed too often.
    HOP_COUNTER_VIOLATION = 12 "hop counter violation";
    /// Segmentation is not available.
    SEGMENTATION_NOT_SUPPORTED = 13 "segmentation not supported";
    /// Segmentation failed.
    SEGMENTATION_FAILURE = 14 "segmentation failure";
}

impl fmt::Display for ReturnCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
