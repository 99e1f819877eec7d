//! Values of parameters.

use super::parameter::{Parameters, Tag};
use crate::numbered::numbered;
use crate::octets::be32;
use crate::point_code::PointCode;

numbered! {
    /// How the ASPs of an application server share its traffic (RFC 4666 §3.7.1).
    TrafficMode: u32 {
        /// One takes all.
        Override = 1;
        /// Each takes a share.
        Loadshare = 2;
        /// Each takes everything.
        Broadcast = 3;
    }
}

/// What NTFY reports (RFC 4666 §3.8.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// The AS is inactive.
    AsInactive,
    /// The AS is active.
    AsActive,
    /// The last active ASP left; traffic is queued for T(r).
    AsPending,
    /// Fewer ASPs are active than the AS needs.
    InsufficientAspResources,
    /// Another ASP overrides this one.
    AlternateAspActive,
    /// An ASP of the AS failed.
    AspFailure,
    /// Type and information that this crate does not know.
    Other(u16, u16),
}

impl Status {
    /// From the number of 32 bits.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match ((number >> 16) as u16, number as u16) {
            (1, 2) => Self::AsInactive,
            (1, 3) => Self::AsActive,
            (1, 4) => Self::AsPending,
            (2, 1) => Self::InsufficientAspResources,
            (2, 2) => Self::AlternateAspActive,
            (2, 3) => Self::AspFailure,
            (status, information) => Self::Other(status, information),
        }
    }

    /// The number of 32 bits.
    #[must_use]
    pub const fn number(self) -> u32 {
        let (status, information) = match self {
            Self::AsInactive => (1, 2),
            Self::AsActive => (1, 3),
            Self::AsPending => (1, 4),
            Self::InsufficientAspResources => (2, 1),
            Self::AlternateAspActive => (2, 2),
            Self::AspFailure => (2, 3),
            Self::Other(status, information) => (status, information),
        };
        (status as u32) << 16 | information as u32
    }
}

/// The values of a Routing Context.
#[derive(Clone, Copy, Debug)]
pub struct RoutingContexts<'a>(&'a [u8]);

impl<'a> RoutingContexts<'a> {
    pub(super) const fn new(value: &'a [u8]) -> Self {
        Self(value)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Iterator for RoutingContexts<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }
}

/// A point code with a mask: the number of its last bits that are wild (RFC 4666 §3.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AffectedPointCode {
    /// How many of the last bits are wild.
    pub mask: u8,
    /// The point code.
    pub code: PointCode,
}

impl AffectedPointCode {
    /// The list of an Affected Point Code or Originating Point Code List.
    pub fn list(value: &[u8]) -> impl Iterator<Item = Self> {
        RoutingContexts::new(value).map(Self::from_number)
    }

    /// From the number of 32 bits.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self {
            mask: (number >> 24) as u8,
            code: PointCode(number & 0x00ff_ffff),
        }
    }

    /// The number of 32 bits.
    #[must_use]
    pub const fn number(self) -> u32 {
        (self.mask as u32) << 24 | self.code.0 & 0x00ff_ffff
    }

    /// Whether the mask covers a point code.
    #[must_use]
    pub const fn covers(self, code: PointCode) -> bool {
        let wild = if self.mask >= 24 { 24 } else { self.mask };
        self.code.0 >> wild == code.0 >> wild
    }
}

/// A routing key: which traffic an application server takes (RFC 4666 §3.6.1).
#[derive(Clone, Copy, Debug)]
pub struct RoutingKey<'a>(&'a [u8]);

impl<'a> RoutingKey<'a> {
    /// From the value of a parameter of a proven message.
    #[must_use]
    pub const fn new(value: &'a [u8]) -> Self {
        Self(value)
    }

    /// The members in their order: each Destination Point Code begins a group that Service Indicators and
    /// Originating Point Code List narrow.
    #[must_use]
    pub fn members(&self) -> Parameters<'a> {
        Parameters::new(self.0)
    }

    fn word(&self, tag: Tag) -> Option<u32> {
        let mut members = self.members().flatten();
        be32(members.find(|member| member.tag == tag)?.value, 0)
    }

    /// The requester's number of the key.
    #[must_use]
    pub fn local_identifier(&self) -> u32 {
        self.word(Tag::LOCAL_ROUTING_KEY_IDENTIFIER).unwrap_or_default()
    }

    /// The first destination.
    #[must_use]
    pub fn destination(&self) -> PointCode {
        PointCode(self.word(Tag::DESTINATION_POINT_CODE).unwrap_or_default())
    }

    /// All destinations, in their order.
    pub fn destinations(&self) -> impl Iterator<Item = PointCode> + use<'a> {
        let members = self.members().flatten();
        let codes = members.filter(|member| member.tag == Tag::DESTINATION_POINT_CODE);
        codes.filter_map(|member| be32(member.value, 0).map(PointCode))
    }

    /// A routing context that the requester wants changed.
    #[must_use]
    pub fn routing_context(&self) -> Option<u32> {
        self.word(Tag::ROUTING_CONTEXT)
    }

    /// The traffic mode.
    #[must_use]
    pub fn traffic_mode(&self) -> Option<TrafficMode> {
        self.word(Tag::TRAFFIC_MODE_TYPE)
            .and_then(TrafficMode::from_number)
    }
}

numbered! {
    /// The outcome of a registration (RFC 4666 §3.6.2).
    RegistrationStatus: u32 {
        /// Registered.
        Success = 0;
        /// Another error.
        Unknown = 1;
        /// Invalid DPC.
        InvalidDpc = 2;
        /// Invalid network appearance.
        InvalidNetworkAppearance = 3;
        /// Invalid routing key.
        InvalidRoutingKey = 4;
        /// Permission denied.
        PermissionDenied = 5;
        /// Cannot support unique routing.
        CannotSupportUniqueRouting = 6;
        /// The routing key is not provisioned.
        NotProvisioned = 7;
        /// Insufficient resources.
        InsufficientResources = 8;
        /// Unsupported field of the routing key.
        UnsupportedField = 9;
        /// Unsupported or invalid traffic mode.
        UnsupportedTrafficMode = 10;
        /// The change was refused.
        ChangeRefused = 11;
        /// Registered already.
        AlreadyRegistered = 12;
    }
}

/// One result of a REG RSP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrationResult {
    /// The requester's number of the key.
    pub local_identifier: u32,
    /// Status, a [`RegistrationStatus`] where known.
    pub status: u32,
    /// The routing context; 0 where refused.
    pub routing_context: u32,
}

impl RegistrationResult {
    /// From the value of a parameter of a proven message.
    #[must_use]
    pub fn read(value: &[u8]) -> Self {
        let key = RoutingKey::new(value);
        Self {
            local_identifier: key.local_identifier(),
            status: key.word(Tag::REGISTRATION_STATUS).unwrap_or_default(),
            routing_context: key.routing_context().unwrap_or_default(),
        }
    }
}
