//! Messages to text.

use std::fmt::{self, Write};

use crate::avp::{Avp, AvpFlags, Avps};
use crate::check;
use crate::dictionary::{AvpDefinition, Dictionary};
use crate::kind::{Address, AddressValue, AvpType, Kind, TimeValue};
use crate::message::{Message, MessageRef};

/// Depth to which groups are printed as groups; deeper ones are printed as bytes.
const MAX_DEPTH: usize = check::MAX_DEPTH;

/// A message that prints itself; see [`print`].
#[derive(Debug)]
pub struct PrintMessage<'m> {
    message: MessageRef<'m>,
    dictionary: &'m Dictionary,
}

/// The message as text, in the form of [`crate::text`].
#[must_use]
pub fn print<'m, B: AsRef<[u8]>>(message: &'m Message<B>, dictionary: &'m Dictionary) -> PrintMessage<'m> {
    PrintMessage {
        message: message.view(),
        dictionary,
    }
}

impl fmt::Display for PrintMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message;
        match self.dictionary.command(message.command(), message.application()) {
            Some(command) => f.write_str(&command.full_name(message.is_request()))?,
            None => write!(f, "{}", message.command())?,
        }
        writeln!(
            f,
            " app={} flags={} hbh={:#010x} e2e={:#010x} {{",
            message.application(),
            message.flags(),
            message.hop_by_hop(),
            message.end_to_end()
        )?;
        let mut rest = message.avps();
        loop {
            let left = rest.remaining();
            match rest.next() {
                None => break,
                Some(Ok(avp)) => self.avp(f, &avp, 1)?,
                // An AVP that cannot be walked is printed as a comment.
                Some(Err(error)) => writeln!(f, "  # {error}: {}", Hex(left))?,
            }
        }
        f.write_str("}")
    }
}

impl PrintMessage<'_> {
    fn avp(&self, f: &mut fmt::Formatter<'_>, avp: &Avp<'_>, depth: usize) -> fmt::Result {
        let indent = depth * 2;
        let Some(definition) = self.dictionary.avp(avp.key()) else {
            return writeln!(
                f,
                "{:indent$}avp {} flags={} = {}",
                "",
                avp.key(),
                avp.flags,
                Hex(avp.data)
            );
        };
        write!(f, "{:indent$}{}", "", self.dictionary.unique_name(definition))?;
        if avp.flags != definition.flags() {
            write!(f, " flags={}", avp.flags)?;
        }
        f.write_str(" = ")?;
        // A V flag with vendor 0 is wrong, and would be lost in the name: shown by the flags, kept as bytes.
        let odd = avp.flags.contains(AvpFlags::VENDOR) && avp.vendor == 0;
        if odd || check::value(definition.kind, avp.data).is_err() {
            return writeln!(f, "raw {}", Hex(avp.data));
        }
        if definition.kind == AvpType::Grouped {
            return self.group(f, avp, depth);
        }
        Self::value(f, definition, avp.data)?;
        f.write_char('\n')
    }

    fn group(&self, f: &mut fmt::Formatter<'_>, avp: &Avp<'_>, depth: usize) -> fmt::Result {
        if depth > MAX_DEPTH || avp.group().any(|member| member.is_err()) {
            return writeln!(f, "raw {}", Hex(avp.data));
        }
        if avp.data.is_empty() {
            return f.write_str("{}\n");
        }
        f.write_str("{\n")?;
        for member in Avps::new(avp.data).map_while(Result::ok) {
            self.avp(f, &member, depth + 1)?;
        }
        let indent = depth * 2;
        writeln!(f, "{:indent$}}}", "")
    }

    /// The data has been checked against the type; a value that cannot be read would be a defect of the check, and is
    /// printed as bytes.
    fn value(f: &mut fmt::Formatter<'_>, definition: &AvpDefinition, data: &[u8]) -> fmt::Result {
        let raw = |f: &mut fmt::Formatter<'_>| write!(f, "raw {}", Hex(data));
        match definition.kind {
            AvpType::Integer32 | AvpType::Enumerated => match data.try_into() {
                Ok(bytes) => Self::number(f, definition, i64::from(i32::from_be_bytes(bytes))),
                Err(_) => raw(f),
            },
            AvpType::Unsigned32 => match data.try_into() {
                Ok(bytes) => Self::number(f, definition, i64::from(u32::from_be_bytes(bytes))),
                Err(_) => raw(f),
            },
            AvpType::Integer64 => match data.try_into() {
                Ok(bytes) => write!(f, "{}", i64::from_be_bytes(bytes)),
                Err(_) => raw(f),
            },
            AvpType::Unsigned64 => match data.try_into() {
                Ok(bytes) => {
                    let number = u64::from_be_bytes(bytes);
                    match i64::try_from(number)
                        .ok()
                        .and_then(|number| definition.value_name(number))
                    {
                        Some(name) => f.write_str(name),
                        None => write!(f, "{number}"),
                    }
                }
                Err(_) => raw(f),
            },
            // Floats as their bits: text would not always give the same bits back.
            AvpType::Float32 | AvpType::Float64 | AvpType::OctetString | AvpType::Grouped => {
                write!(f, "{}", Hex(data))
            }
            AvpType::Time => match data.try_into().map(|bytes| TimeValue(u32::from_be_bytes(bytes))) {
                Ok(time) => write!(f, "time {}", unix(time)),
                Err(_) => raw(f),
            },
            AvpType::Address => match Address::read(data) {
                Ok(AddressValue::Ip(ip)) => write!(f, "{ip}"),
                _ => raw(f),
            },
            AvpType::Utf8String
            | AvpType::DiameterIdentity
            | AvpType::DiameterUri
            | AvpType::IpFilterRule
            | AvpType::QosFilterRule => match std::str::from_utf8(data) {
                Ok(text) => write!(f, "{}", Quoted(text)),
                Err(_) => raw(f),
            },
        }
    }

    fn number(f: &mut fmt::Formatter<'_>, definition: &AvpDefinition, number: i64) -> fmt::Result {
        match definition.value_name(number) {
            Some(name) => f.write_str(name),
            None => write!(f, "{number}"),
        }
    }
}

/// Seconds since 1970; below zero before.
fn unix(time: TimeValue) -> i64 {
    match time
        .to_system_time()
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
    {
        Ok(since) => since.as_secs().cast_signed(),
        Err(before) => -before.duration().as_secs().cast_signed(),
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                control if control.is_control() => write!(f, "\\u{{{:x}}}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}
