//! Addresses: what the value of an AVP, or of a file, names, in the form in which subscribers are looked up.

mod name;
mod number;

use std::fmt;

use numbers::{Key, Kind};

use crate::config::Entity;

pub(crate) use name::wildcard;

/// Most bytes of a text in which an address is searched: a name of 255 bytes with parameters.
const MOST_BYTES: usize = 1024;

/// What an AVP has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'m> {
    Text(&'m [u8]),
    Tbcd(&'m [u8]),
}

/// An address of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// An IMSI or MSISDN.
    Number(Key),
    /// Any other entity; in the form in which names are compared.
    Name(Entity, Box<str>),
}

impl Address {
    /// The address of an entity that a request has; none: the value is not one.
    pub(crate) fn read(entity: Entity, value: Value<'_>) -> Option<Self> {
        let text = match value {
            Value::Tbcd(bytes) if entity == Entity::Msisdn => {
                return number::key(Kind::Msisdn, &dsr_app::Digits::from_tbcd(bytes)?);
            }
            Value::Text(text) if text.len() <= MOST_BYTES => std::str::from_utf8(text).ok()?,
            _ => return None,
        };
        match entity {
            Entity::Imsi => number::key(Kind::Imsi, &number::imsi(text)?),
            Entity::Msisdn => number::key(Kind::Msisdn, &number::msisdn(text)?),
            entity => Some(Self::Name(entity, name::canonical(entity, text)?)),
        }
    }

    /// The address that an operator writes: digits alone, or a name.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(entity: Entity, text: &str) -> Result<Self, String> {
        let kind = match entity {
            Entity::Imsi => Kind::Imsi,
            Entity::Msisdn => Kind::Msisdn,
            entity => return name::parse(entity, text).map(|name| Self::Name(entity, name)),
        };
        let key = Key::new(kind, text.as_bytes()).map_err(|error| error.to_string())?;
        match kind == Kind::Imsi && key.length() < number::LEAST_IMSI {
            true => Err(format!(
                "the IMSI has {} digits; expected 6 to 15, or a prefix such as {text}*",
                key.length()
            )),
            false => Ok(Self::Number(key)),
        }
    }

    pub(crate) fn entity(&self) -> Entity {
        match self {
            Self::Number(key) if key.kind() == Kind::Msisdn => Entity::Msisdn,
            Self::Number(_) => Entity::Imsi,
            Self::Name(entity, _) => *entity,
        }
    }

    /// The mobile country code of an IMSI.
    pub(crate) fn mcc(&self) -> Option<u16> {
        match self {
            Self::Number(key) if key.kind() == Kind::Imsi => {
                let behind = key.length().checked_sub(3)?;
                Some((key.number() / 10_u64.pow(behind as u32)) as u16)
            }
            _ => None,
        }
    }
}

/// As files have it: the digits, or the name.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(key) => write!(f, "{:0length$}", key.number(), length = key.length()),
            Self::Name(_, name) => f.write_str(name),
        }
    }
}

/// Part of a text of a peer, for an explanation.
pub(crate) fn shown(value: Value<'_>) -> String {
    let (Value::Text(bytes) | Value::Tbcd(bytes)) = value;
    let few = bytes.get(..64).unwrap_or(bytes);
    let mut text = match value {
        Value::Text(_) => String::from_utf8_lossy(few)
            .chars()
            .flat_map(char::escape_debug)
            .collect(),
        Value::Tbcd(_) => few.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
    };
    if few.len() < bytes.len() {
        text += &format!("… ({} bytes)", bytes.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What a request has can be listed, in the form in which it is looked up; a star would be a pattern.
        #[test]
        fn each_address_of_a_request_can_be_listed(
            text in prop_oneof![
                "(sip|SIPS|tel|x)?:?[a-cA-C0-9+.;:!*%-]{0,8}@?[a-c.:;?!\\[\\]@]{0,8}",
                "[0-9]{0,17}(@ims.mnc001.mcc001.3gppnetwork.org)?",
                any::<String>(),
            ],
            tbcd in prop::collection::vec(any::<u8>(), 0..10),
        ) {
            for entity in Entity::ALL {
                for value in [Value::Text(text.as_bytes()), Value::Tbcd(&tbcd)] {
                    let Some(address) = Address::read(entity, value) else { continue };
                    let listed = address.to_string();
                    if !listed.contains([',', '*']) {
                        prop_assert_eq!(Address::parse(entity, &listed), Ok(address.clone()), "{}", entity.as_str());
                    }
                    prop_assert_eq!(address.entity(), entity);
                }
            }
        }
    }

    #[test]
    fn a_country_code_is_three_digits() {
        let mcc = |imsi: &str| Address::parse(Entity::Imsi, imsi).unwrap().mcc();
        assert_eq!(mcc("001010000000001"), Some(1));
        assert_eq!(mcc("262019"), Some(262));
        assert_eq!(Address::parse(Entity::Msisdn, "262019").unwrap().mcc(), None);
    }
}
