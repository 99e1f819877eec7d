//! What a record is about: a number or a name.

use std::fmt;

use numbers::{DestinationSet, Key, KeyError, Kind, MOST_NAME_BYTES};

/// The kind of names in texts and paths.
pub(crate) const NAME: &str = "name";

/// A number (IMSI, MSISDN, IMEI) or a name (IMPI, IMPU, NAI, External Identifier).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Number(Key),
    /// In lower case: names are compared so.
    Name(Box<str>),
}

/// Why a text is not a subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubjectError {
    #[error("unknown kind; use imei, imsi, msisdn or name")]
    Kind,
    #[error(transparent)]
    Number(#[from] KeyError),
    #[error("the name has {0} bytes; expected 1 to {MOST_NAME_BYTES}")]
    Length(usize),
    #[error("character {0} of the name is a space, a comma or a control character")]
    Character(usize),
}

impl Subject {
    pub(crate) fn parse(kind: &str, value: &str) -> Result<Self, SubjectError> {
        if kind == NAME {
            return name(value).map(Self::Name);
        }
        let kind = Kind::ALL.into_iter().find(|one| one.name() == kind);
        let key = Key::new(kind.ok_or(SubjectError::Kind)?, value.as_bytes())?;
        Ok(Self::Number(key))
    }

    /// `imei`, `imsi`, `msisdn` or `name`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Number(key) => key.kind().name(),
            Self::Name(_) => NAME,
        }
    }

    /// The digits, or the name.
    pub(crate) fn value(&self) -> String {
        match self {
            Self::Number(key) => format!("{:0length$}", key.number(), length = key.length()),
            Self::Name(name) => name.to_string(),
        }
    }
}

/// `imsi,001010000000001`, as in the text of numbers.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(key) => key.fmt(f),
            Self::Name(name) => write!(f, "{NAME},{name}"),
        }
    }
}

/// A record as a line of text, as `POST /records` takes it: kind, number or name in lower case, destinations.
///
/// # Errors
/// What is wrong with it.
pub fn record_line(kind: &str, value: &str, destinations: &str) -> Result<String, String> {
    let subject = Subject::parse(kind, value).map_err(|error| error.to_string())?;
    let set = DestinationSet::parse(destinations).map_err(|error| format!("destinations: {error}"))?;
    Ok(format!("{subject},{set}"))
}

fn name(text: &str) -> Result<Box<str>, SubjectError> {
    if text.is_empty() || text.len() > MOST_NAME_BYTES {
        return Err(SubjectError::Length(text.len()));
    }
    let wrong = |c: char| c.is_whitespace() || c.is_control() || c == ',';
    if let Some(place) = text.chars().position(wrong) {
        return Err(SubjectError::Character(place + 1));
    }
    Ok(text.to_ascii_lowercase().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_subject_is_refused_with_the_reason() {
        let refused = |kind, value| Subject::parse(kind, value).unwrap_err().to_string();
        assert_eq!(
            refused("imsi", "0010100000000012"),
            "the number has 16 digits; expected 1 to 15"
        );
        assert!(refused("imsi", "00101A").contains("character 6"));
        assert!(refused("nai", "a@b").contains("unknown kind"));
        assert!(refused("name", "").contains("0 bytes"));
        assert!(refused("name", "a b").contains("character 2"));
        assert!(refused("name", "a,b").contains("character 2"));
        assert!(refused("name", &"x".repeat(256)).contains("256 bytes"));
    }

    #[test]
    fn a_subject_reads_as_the_text_of_numbers() {
        let shown = |kind, value| Subject::parse(kind, value).unwrap().to_string();
        assert_eq!(shown("imsi", "001"), "imsi,001");
        assert_eq!(
            shown("name", "SIP:Alice@ims.example"),
            "name,sip:alice@ims.example"
        );
        assert_eq!(Subject::parse("msisdn", "0049").unwrap().value(), "0049");
    }
}
