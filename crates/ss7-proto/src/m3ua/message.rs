//! A message as a view over its octets.

use super::data::Data;
use super::fault::{ErrorCode, Fault};
use super::kind::{Class, MessageType};
use super::parameter::{Parameter, Parameters, Tag};
use super::values::RoutingContexts;
use crate::octets::be32;

/// Octets of the common header (RFC 4666 §3.1).
pub const HEADER_LEN: usize = 8;

const VERSION: u8 = 1;

/// A message whose header and parameters have been proven.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    octets: &'a [u8],
    message_type: MessageType,
}

impl<'a> Message<'a> {
    /// Takes `octets` as one message: what one SCTP message carried.
    ///
    /// # Errors
    /// The [`Fault`] that ERR reports.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Fault> {
        let Some([version, _, class, number]) = octets.first_chunk::<4>() else {
            return Err(Fault::new(
                ErrorCode::ProtocolError,
                "fewer octets than a common header",
            ));
        };
        if *version != VERSION {
            return Err(Fault::new(ErrorCode::InvalidVersion, "the version is not 1"));
        }
        let Some(class) = Class::from_number(*class) else {
            return Err(Fault::new(
                ErrorCode::UnsupportedMessageClass,
                "unknown message class",
            ));
        };
        let Some(message_type) = MessageType::from_numbers(class, *number) else {
            return Err(Fault::new(
                ErrorCode::UnsupportedMessageType,
                "unknown message type in a known class",
            ));
        };
        let claimed = be32(octets, 4).map_or(0, |length| length as usize);
        // The padding of the last parameter may be missing, counted or not (RFC 4666 §3.1.4): at most three octets of
        // difference, either way.
        if claimed < HEADER_LEN || claimed.next_multiple_of(4) != octets.len().next_multiple_of(4) {
            return Err(Fault::new(
                ErrorCode::ProtocolError,
                "the message length is not that of the octets received",
            ));
        }
        let message = Self { octets, message_type };
        message.prove()?;
        Ok(message)
    }

    /// Walks the parameters once.
    fn prove(&self) -> Result<(), Fault> {
        let kind = self.message_type;
        let mut seen = Seen::default();
        for parameter in self.parameters() {
            let Ok(parameter) = parameter else {
                return Err(Fault::new(
                    ErrorCode::ParameterFieldError,
                    "the length of a parameter is below 4 or exceeds the message",
                ));
            };
            check(parameter)?;
            if parameter.tag.name().is_some() {
                if !kind.allows(parameter.tag) {
                    return Err(Fault::of(
                        ErrorCode::UnexpectedParameter,
                        parameter.tag,
                        "the message may not have this parameter",
                    ));
                }
                if seen.again(parameter.tag) && !parameter.tag.may_repeat() {
                    return Err(Fault::of(
                        ErrorCode::UnexpectedParameter,
                        parameter.tag,
                        "the parameter may occur once",
                    ));
                }
            }
        }
        match kind.mandatory().iter().find(|tag| !seen.has(**tag)) {
            Some(tag) => Err(Fault::of(
                ErrorCode::MissingParameter,
                *tag,
                "the message needs this parameter",
            )),
            None => Ok(()),
        }
    }

    /// The whole message.
    #[must_use]
    pub const fn as_octets(&self) -> &'a [u8] {
        self.octets
    }

    /// The type.
    #[inline]
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        self.message_type
    }

    /// The parameters, proven for [`Message::parse`].
    #[inline]
    #[must_use]
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters::new(self.octets.get(HEADER_LEN..).unwrap_or_default())
    }

    /// The value of the first parameter with a tag.
    #[inline]
    #[must_use]
    pub fn get(&self, tag: Tag) -> Option<&'a [u8]> {
        let mut parameters = self.parameters().flatten();
        parameters
            .find(|parameter| parameter.tag == tag)
            .map(|parameter| parameter.value)
    }

    /// The first parameter with a tag, as a number of 32 bits.
    #[must_use]
    pub fn word(&self, tag: Tag) -> Option<u32> {
        be32(self.get(tag)?, 0)
    }

    /// The routing contexts; empty without the parameter.
    #[must_use]
    pub fn routing_contexts(&self) -> RoutingContexts<'a> {
        RoutingContexts::new(self.get(Tag::ROUTING_CONTEXT).unwrap_or_default())
    }

    /// The MSU of a DATA, in one walk.
    #[inline]
    #[must_use]
    pub fn data(&self) -> Option<Data<'a>> {
        if self.message_type != MessageType::Data {
            return None;
        }
        Data::read(self.parameters())
    }
}

/// Which of the known parameters have occurred: their low octets differ within 0x00xx and within 0x02xx.
#[derive(Default)]
struct Seen(u64);

impl Seen {
    const fn bit(tag: Tag) -> u64 {
        1 << ((tag.0 & 0x1f) | (tag.0 >> 4 & 0x20))
    }

    const fn has(&self, tag: Tag) -> bool {
        self.0 & Self::bit(tag) != 0
    }

    const fn again(&mut self, tag: Tag) -> bool {
        let again = self.has(tag);
        self.0 |= Self::bit(tag);
        again
    }
}

/// The form of a known parameter and of its members.
fn check(parameter: Parameter<'_>) -> Result<(), Fault> {
    let tag = parameter.tag;
    if !tag.takes_length(parameter.value.len()) {
        return Err(Fault::of(
            ErrorCode::ParameterFieldError,
            tag,
            "the parameter has a wrong length",
        ));
    }
    if tag == Tag::TRAFFIC_MODE_TYPE && !matches!(parameter.value, [0, 0, 0, 1..=3]) {
        return Err(Fault::of(
            ErrorCode::UnsupportedTrafficModeType,
            tag,
            "a traffic mode is 1, 2 or 3",
        ));
    }
    let Some((needs, may)) = tag.members() else {
        return Ok(());
    };
    let mut seen = Seen::default();
    // One level: no member has members of its own.
    for member in Parameters::new(parameter.value) {
        let Ok(member) = member else {
            return Err(Fault::of(
                ErrorCode::ParameterFieldError,
                tag,
                "the length of a member is below 4 or exceeds the parameter",
            ));
        };
        if member.tag.name().is_none() {
            continue;
        }
        if !needs.contains(&member.tag) && !may.contains(&member.tag) {
            return Err(Fault::of(
                ErrorCode::UnexpectedParameter,
                member.tag,
                "not a member of this parameter",
            ));
        }
        check(member)?;
        if seen.again(member.tag) && !member.tag.may_repeat() {
            return Err(Fault::of(
                ErrorCode::UnexpectedParameter,
                member.tag,
                "the member may occur once",
            ));
        }
    }
    match needs.iter().find(|need| !seen.has(**need)) {
        Some(need) => Err(Fault::of(
            ErrorCode::MissingParameter,
            *need,
            "the parameter needs this member",
        )),
        None => Ok(()),
    }
}
