//! A line of the journal: `{"offset": 17, "changes": [{"imsi": "001010000000001", "destinations": "hss1.example"}]}`.

use std::sync::Arc;

use numbers::{Change, DestinationSet, Key, Kind, MOST_NAME_BYTES};
use serde::Deserialize;

use crate::data::NameChange;

/// Changes that are put into effect together.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Transaction {
    pub(super) offset: u64,
    pub(super) numbers: Vec<Change>,
    pub(super) names: Vec<NameChange>,
}

#[derive(Deserialize)]
struct Line {
    offset: u64,
    changes: Vec<Record>,
}

/// One of the four keys is there. Other members are permitted: a newer server may have more.
#[derive(Deserialize)]
struct Record {
    imsi: Option<String>,
    msisdn: Option<String>,
    imei: Option<String>,
    name: Option<String>,
    /// Required, so that a line which has lost it removes no subscriber.
    #[serde(deserialize_with = "Option::deserialize")]
    destinations: Option<String>,
}

impl Transaction {
    /// Parses a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let mut transaction = Self {
            offset: line.offset,
            ..Self::default()
        };
        for (index, record) in line.changes.into_iter().enumerate() {
            transaction
                .add(record)
                .map_err(|wrong| format!("changes[{index}]: {wrong}"))?;
        }
        Ok(transaction)
    }

    fn add(&mut self, record: Record) -> Result<(), String> {
        let set = record.destinations.as_deref().map(DestinationSet::parse);
        let set = set.transpose().map_err(|error| error.to_string())?;
        let keys = [
            (Kind::Imsi, record.imsi),
            (Kind::Msisdn, record.msisdn),
            (Kind::Imei, record.imei),
        ];
        let mut numbers = keys
            .into_iter()
            .filter_map(|(kind, digits)| Some((kind, digits?)));
        match (numbers.next(), numbers.next(), record.name) {
            (Some((kind, digits)), None, None) => {
                let key = Key::new(kind, digits.as_bytes()).map_err(|error| error.to_string())?;
                self.numbers.push(match set {
                    Some(set) => Change::Put { key, set },
                    None => Change::Remove { key },
                });
            }
            (None, None, Some(name)) => self.names.push((checked(&name)?, set.map(Arc::new))),
            _ => return Err("expected one of imsi, msisdn, imei and name".to_owned()),
        }
        Ok(())
    }
}

/// A name in the form in which names are compared; one that the text of names cannot have is refused.
fn checked(name: &str) -> Result<Box<str>, String> {
    if !(1..=MOST_NAME_BYTES).contains(&name.len()) {
        return Err(format!(
            "the name has {} bytes; expected 1 to {MOST_NAME_BYTES}",
            name.len()
        ));
    }
    if name
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || byte == b',')
    {
        return Err("the name has a blank, a comma or a control character".to_owned());
    }
    Ok(name.to_ascii_lowercase().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_numbers_names_and_members_of_newer_servers() {
        let line = br#"{"offset": 17, "by": "x", "changes": [
            {"imsi": "001010000000001", "destinations": "hss1.example,pcrf=pcrf7.example", "since": 1},
            {"name": "A@b", "destinations": null}]}"#;
        let transaction = Transaction::parse(line).unwrap();
        let key = Key::new(Kind::Imsi, b"001010000000001").unwrap();
        let set = DestinationSet::parse("hss1.example,pcrf=pcrf7.example").unwrap();
        assert_eq!(transaction.offset, 17);
        assert_eq!(transaction.numbers, [Change::Put { key, set }]);
        assert_eq!(transaction.names, [("a@b".into(), None)]);
    }

    #[test]
    fn what_is_not_a_transaction_is_refused_with_the_reason() {
        let refused = |record: &str| {
            let line = format!(r#"{{"offset": 1, "changes": [{record}]}}"#);
            Transaction::parse(line.as_bytes()).unwrap_err()
        };
        assert!(refused(r#"{"imsi": "1", "name": "a@b", "destinations": "x"}"#).contains("expected one of"));
        assert!(refused(r#"{"destinations": "x"}"#).contains("expected one of"));
        assert!(refused(r#"{"imsi": "1"}"#).contains("destinations"));
        assert!(refused(r#"{"imsi": "0010100000000012", "destinations": "x"}"#).contains("16 digits"));
        assert!(refused(r#"{"imsi": "1a", "destinations": "x"}"#).contains("changes[0]"));
        assert!(refused(r#"{"imsi": "1", "destinations": "a,b"}"#).contains("two destinations"));
        assert!(refused(r#"{"name": "a,b", "destinations": "x"}"#).contains("comma"));
        assert!(refused(r#"{"name": "", "destinations": "x"}"#).contains("0 bytes"));
    }
}
