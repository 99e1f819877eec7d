//! What is wrong with a message, in the words of RFC 4666 §3.8.1.

use std::fmt;

use super::build::Builder;
use super::kind::MessageType;
use super::parameter::Tag;
use crate::numbered::numbered;

/// Octets of a faulty message that ERR returns: enough for the header and most parameters. RFC 4666 §3.8.1 wants the
/// first 40 octets for an invalid version, class, type and protocol errors.
pub const RECEIVED_OCTETS: usize = 40;

/// Routing contexts of one ERR: what refuses a long list is not longer than a message that others take.
const CONTEXTS: usize = 1_024;

numbered! {
    /// An Error Code (RFC 4666 §3.8.1).
    ErrorCode: u32 {
        /// The version is not 1.
        InvalidVersion = 0x01 "Invalid Version";
        /// Unknown class.
        UnsupportedMessageClass = 0x03 "Unsupported Message Class";
        /// Unknown type in a known class.
        UnsupportedMessageType = 0x04 "Unsupported Message Type";
        /// A traffic mode that the AS does not have.
        UnsupportedTrafficModeType = 0x05 "Unsupported Traffic Mode Type";
        /// A message that the state does not expect.
        UnexpectedMessage = 0x06 "Unexpected Message";
        /// A message that is broken otherwise.
        ProtocolError = 0x07 "Protocol Error";
        /// A message on a stream where it may not be.
        InvalidStreamIdentifier = 0x09 "Invalid Stream Identifier";
        /// Management keeps the ASP out.
        RefusedManagementBlocking = 0x0d "Refused - Management Blocking";
        /// ASPUP needs an ASP Identifier.
        AspIdentifierRequired = 0x0e "ASP Identifier Required";
        /// Another ASP has this identifier.
        InvalidAspIdentifier = 0x0f "Invalid ASP Identifier";
        /// A value that a parameter cannot have.
        InvalidParameterValue = 0x11 "Invalid Parameter Value";
        /// A parameter of a wrong form or length.
        ParameterFieldError = 0x12 "Parameter Field Error";
        /// A parameter that the message may not have.
        UnexpectedParameter = 0x13 "Unexpected Parameter";
        /// DAUD for a destination whose state we do not know.
        DestinationStatusUnknown = 0x14 "Destination Status Unknown";
        /// A network that is not configured.
        InvalidNetworkAppearance = 0x15 "Invalid Network Appearance";
        /// A parameter that the message needs.
        MissingParameter = 0x16 "Missing Parameter";
        /// A routing context that is not configured.
        InvalidRoutingContext = 0x19 "Invalid Routing Context";
        /// The ASP belongs to no AS.
        NoConfiguredAsForAsp = 0x1a "No Configured AS for ASP";
    }
}

/// Why a message is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The code of ERR.
    pub code: ErrorCode,
    /// The parameter it is about.
    pub parameter: Option<Tag>,
    /// The routing contexts that are invalid, or that the fault is about.
    pub routing_contexts: Vec<u32>,
    /// The network appearance that is invalid.
    pub network_appearance: Option<u32>,
    /// For operators.
    pub reason: &'static str,
}

impl Fault {
    /// A fault of a whole message.
    #[must_use]
    pub const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self {
            code,
            parameter: None,
            routing_contexts: Vec::new(),
            network_appearance: None,
            reason,
        }
    }

    /// A fault of some of the routing contexts of a message.
    #[must_use]
    pub fn about(code: ErrorCode, routing_contexts: Vec<u32>, reason: &'static str) -> Self {
        Self {
            routing_contexts,
            ..Self::new(code, reason)
        }
    }

    /// A network appearance that is not configured.
    #[must_use]
    pub fn network(appearance: u32) -> Self {
        Self {
            network_appearance: Some(appearance),
            ..Self::new(
                ErrorCode::InvalidNetworkAppearance,
                "the network is not configured",
            )
        }
    }

    /// A fault of a parameter.
    pub(super) fn of(code: ErrorCode, tag: Tag, reason: &'static str) -> Self {
        Self {
            parameter: Some(tag),
            ..Self::new(code, reason)
        }
    }

    /// Appends the ERR that answers `received`, unless that was an ERR itself: ERR is never answered by ERR
    /// (RFC 4666 §3.8.1). Returns whether it wrote one.
    pub fn write_error(&self, received: &[u8], out: &mut Vec<u8>) -> bool {
        if matches!(received, [_, _, 0, 0, ..]) {
            return false;
        }
        let mut builder = Builder::new(MessageType::Err, out);
        builder.word(Tag::ERROR_CODE, self.code as u32);
        // What is invalid has to be in ERR: routing contexts, the network appearance (§3.8.1).
        if !self.routing_contexts.is_empty() {
            let first = self.routing_contexts.get(..CONTEXTS);
            builder.words(Tag::ROUTING_CONTEXT, first.unwrap_or(&self.routing_contexts));
        }
        if let Some(appearance) = self.network_appearance {
            builder.word(Tag::NETWORK_APPEARANCE, appearance);
        }
        let first = received.get(..RECEIVED_OCTETS).unwrap_or(received);
        if !first.is_empty() {
            builder.parameter(Tag::DIAGNOSTIC_INFORMATION, first);
        }
        builder.finish();
        true
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.reason)?;
        match self.parameter {
            Some(tag) => write!(f, " ({tag})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
