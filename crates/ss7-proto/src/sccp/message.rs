//! Parts of a message: fixed, pointers, variable, optional (Q.713 §1).

use super::connection::Connection;
use super::kind::MessageType;
use super::unitdata::Unitdata;

/// Why octets do not make an SCCP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It is empty.
    #[error("the message is empty")]
    Empty,
    /// Unknown type.
    #[error("unknown message type {0:#04x}")]
    MessageType(u8),
    /// The fixed part or the pointers are not complete.
    #[error("the {0} octets of a message end before its pointers do")]
    Short(usize),
    /// A pointer leads into the pointers or past the end.
    #[error("pointer {pointer} leads to octet {target} of a message whose parts lie in {start}..{length}")]
    Pointer {
        /// Which, from 0.
        pointer: usize,
        /// Where it leads to.
        target: usize,
        /// The first octet behind the pointers.
        start: usize,
        /// Octets of the message.
        length: usize,
    },
    /// A part ends past the end of the message.
    #[error("the part that pointer {0} leads to exceeds the message")]
    PartTooLong(usize),
    /// An optional parameter exceeds the message.
    #[error("optional parameter {0:#04x} exceeds the message")]
    Optional(u8),
}

/// A message whose parts have been proven.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// Without a connection.
    Unitdata(Unitdata<'a>),
    /// Of a connection.
    Connection(Connection<'a>),
}

impl<'a> Message<'a> {
    /// Takes octets as one message: the user data of an MSU.
    ///
    /// # Errors
    /// [`Fault`]. Q.714 §2.4 discards such a message: no node can be informed of it.
    #[inline]
    pub fn parse(octets: &'a [u8]) -> Result<Self, Fault> {
        let number = *octets.first().ok_or(Fault::Empty)?;
        let kind = MessageType::from_number(number).ok_or(Fault::MessageType(number))?;
        let parts = Parts::read(kind, octets)?;
        Ok(if kind.is_connection_oriented() {
            Self::Connection(Connection::new(kind, parts))
        } else {
            Self::Unitdata(Unitdata::new(kind, parts))
        })
    }

    /// The type.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        match self {
            Self::Unitdata(unitdata) => unitdata.message_type,
            Self::Connection(connection) => connection.message_type,
        }
    }
}

/// The parts of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) fixed: &'a [u8],
    pub(super) variable: [&'a [u8]; 3],
    /// Without the end of optional parameters.
    pub(super) optional: &'a [u8],
}

impl<'a> Parts<'a> {
    #[inline]
    fn read(kind: MessageType, octets: &'a [u8]) -> Result<Self, Fault> {
        let (fixed, count, has_optional) = kind.parts();
        let long = kind.is_long();
        let width = if long { 2 } else { 1 };
        let pointers = 1 + fixed;
        let start = pointers + width * (count + usize::from(has_optional));
        if octets.len() < start {
            return Err(Fault::Short(octets.len()));
        }
        let mut parts = Self {
            fixed: octets.get(1..pointers).unwrap_or_default(),
            variable: [&[]; 3],
            optional: &[],
        };
        for (n, part) in parts.variable.iter_mut().take(count).enumerate() {
            let target = target(octets, pointers + width * n, long);
            // The data of LUDT alone have a length of two octets (Q.713 §3.16).
            let long_length = long && n == 2;
            *part = variable(octets, n, target, start, long_length)?;
        }
        if has_optional {
            let at = pointers + width * count;
            let target = target(octets, at, long);
            // A pointer of 0: without an optional part.
            if target != at + usize::from(long) {
                let whole = part(octets, count, target, start)?;
                parts.optional = optional(whole)?;
            }
        }
        Ok(parts)
    }
}

/// Where the pointer at `at` leads to: it counts from its own last octet (Q.713 §1.5; the octets of a long one come least
/// significant first, §2.3).
#[inline]
fn target(octets: &[u8], at: usize, long: bool) -> usize {
    let octet = |at: usize| octets.get(at).map_or(0, |octet| usize::from(*octet));
    if long {
        at + 1 + (octet(at) | octet(at + 1) << 8)
    } else {
        at + octet(at)
    }
}

#[inline]
fn part(octets: &[u8], pointer: usize, target: usize, start: usize) -> Result<&[u8], Fault> {
    match octets.get(target..) {
        Some(rest) if target >= start && !rest.is_empty() => Ok(rest),
        _ => Err(Fault::Pointer {
            pointer,
            target,
            start,
            length: octets.len(),
        }),
    }
}

#[inline]
fn variable(octets: &[u8], pointer: usize, target: usize, start: usize, long: bool) -> Result<&[u8], Fault> {
    let rest = part(octets, pointer, target, start)?;
    let value = match (long, rest) {
        (false, [length, value @ ..]) => value.get(..usize::from(*length)),
        (true, [low, high, value @ ..]) => value.get(..usize::from(u16::from_le_bytes([*low, *high]))),
        _ => None,
    };
    value.ok_or(Fault::PartTooLong(pointer))
}

/// The optional part up to its end.
fn optional(whole: &[u8]) -> Result<&[u8], Fault> {
    let mut at = 0;
    loop {
        match whole.get(at..) {
            None | Some([] | [0, ..]) => return Ok(whole.get(..at).unwrap_or_default()),
            Some([name, length, value @ ..]) if value.len() >= usize::from(*length) => {
                at += 2 + usize::from(*length);
            }
            Some([name, ..]) => return Err(Fault::Optional(*name)),
        }
    }
}

/// An optional parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionalParameter<'a> {
    /// The name code (Q.713 §3.1).
    pub name: u8,
    /// The value.
    pub value: &'a [u8],
}

/// The optional parameters of a proven message.
#[derive(Clone, Copy, Debug)]
pub struct Optionals<'a>(&'a [u8]);

impl<'a> Optionals<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// The first with a name code.
    #[must_use]
    pub fn get(mut self, name: u8) -> Option<&'a [u8]> {
        self.find(|parameter| parameter.name == name)
            .map(|parameter| parameter.value)
    }
}

impl<'a> Iterator for Optionals<'a> {
    type Item = OptionalParameter<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let [name, length, rest @ ..] = self.0 else {
            return None;
        };
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        self.0 = rest;
        Some(OptionalParameter { name: *name, value })
    }
}
