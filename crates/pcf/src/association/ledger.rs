//! The ledger of a subscriber: the quotas of all its sessions, which outlives them (TS 29.512 §4.2.6.5.3, TS 29.212 §4.5.16).
//! No IO.

use pcc::usage::{Account, Accounts};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema, Version};

use super::subscriber_state::StateDraft;
use super::unconfirmed::Unconfirmed;
use super::{Association, address};

/// The room of an association that has the identifiers of its limits.
const ROOM: &str = "quotas";

/// The quotas of a subscriber, as the store keeps them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// SUPI, or GPSI where no SUPI is known; the key of the record.
    pub subscriber: String,
    /// What is left and used, by limit.
    pub accounts: Accounts,
    /// Limits that the UDR has: it gets what is left of them.
    pub at_udr: Vec<String>,
    /// When the record expires unless it is written again, in microseconds since 1970.
    pub expires: u64,
}

/// The form of a record in bytes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    subscriber: String,
    accounts: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    at_udr: Vec<String>,
    expires: u64,
}

impl Ledger {
    /// The subscriber whose ledger counts for an association; `None`: it names none.
    #[must_use]
    pub fn subscriber_of(association: &Association) -> Option<&str> {
        let named = association.text_of("supi").filter(|supi| !supi.is_empty());
        named.or_else(|| association.text_of("gpsi"))
    }

    /// The key of a subscriber's ledger.
    #[must_use]
    pub fn key_of(subscriber: &str) -> Key {
        address::text_key(subscriber)
    }

    /// `umData` for the UDR: what is left of the limits that it has.
    #[must_use]
    pub fn um_data(&self) -> Value {
        let ids: Vec<&str> = self.at_udr.iter().map(String::as_str).collect();
        self.accounts.only(&ids).to_um_data()
    }

    /// Identifiers of the limits that are used up.
    #[must_use]
    pub fn exhausted(&self) -> Vec<String> {
        let exhausted = self.accounts.all().iter().filter(|one| one.is_exhausted());
        exhausted.map(|one| one.id().to_owned()).collect()
    }
}

impl Record for Ledger {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_ledger",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Self::key_of(&self.subscriber)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let stored = Stored {
            subscriber: self.subscriber.clone(),
            accounts: self.accounts.to_json(),
            at_udr: self.at_udr.clone(),
            expires: self.expires,
        };
        // Values of serde_json and texts: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(&stored).unwrap_or_default());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let stored: Stored = serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            subscriber: stored.subscriber,
            accounts: Accounts::from_json(&stored.accounts),
            at_udr: stored.at_udr,
            expires: stored.expires,
        })
    }
}

/// The records of a subscriber that a request has read, and what it changes of them; written together with the association.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The ledger; `None`: the request has not read it.
    pub ledger: Option<Ledger>,
    /// The version that was read; `None`: there was no record.
    pub version: Option<Version>,
    /// Limits that were used up when it was read.
    exhausted: Vec<String>,
    /// Whether it is to be written.
    pub is_changed: bool,
    /// Whether usage was reported.
    pub is_reported: bool,
    /// The state variables of the subscriber.
    pub state: StateDraft,
    /// Messages to AFs that the change causes.
    pub owed: Vec<Unconfirmed>,
}

impl Draft {
    /// Of what the store has of a subscriber.
    pub fn read(&mut self, subscriber: &str, stored: Option<store::Stored<Ledger>>) -> &mut Ledger {
        let (ledger, version) = match stored {
            Some(stored) => (stored.record, Some(stored.version)),
            None => (Ledger::default(), None),
        };
        self.exhausted = ledger.exhausted();
        self.version = version;
        self.ledger.insert(Ledger {
            subscriber: subscriber.to_owned(),
            ..ledger
        })
    }

    /// Puts accounts into the ledger.
    pub fn put(&mut self, accounts: &Accounts) {
        let Some(ledger) = &mut self.ledger else { return };
        for account in accounts.all() {
            self.is_changed |= ledger.accounts.put(Account::clone(account));
        }
    }

    /// The ledger, where it is to be written.
    #[must_use]
    pub fn to_write(&self) -> Option<&Ledger> {
        self.ledger.as_ref().filter(|_| self.is_changed)
    }

    /// Whether there is anything to write.
    #[must_use]
    pub fn is_to_write(&self) -> bool {
        self.to_write().is_some() || self.state.to_write().is_some() || !self.owed.is_empty()
    }

    /// Limits that the request has used up.
    pub fn newly_exhausted(&self) -> impl Iterator<Item = String> {
        let now = self.to_write().map(Ledger::exhausted).unwrap_or_default();
        now.into_iter().filter(|id| !self.exhausted.contains(id))
    }

    /// Whether other sessions of the subscriber are to be decided again: a quota was used up, or is whole again.
    #[must_use]
    pub fn concerns_others(&self) -> bool {
        self.to_write()
            .is_some_and(|ledger| ledger.exhausted() != self.exhausted)
    }
}

/// Identifiers of the limits of an association.
#[must_use]
pub fn limits_of(association: &Association) -> Vec<&str> {
    let ids = association.rooms.get(ROOM).and_then(Value::as_array);
    ids.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Keeps the identifiers of its limits with an association.
pub fn keep_limits(association: &mut Association, ids: Vec<String>) {
    match ids.is_empty() {
        true => drop(association.rooms.shift_remove(ROOM)),
        false => drop(association.rooms.insert(ROOM.to_owned(), ids.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::OffsetDateTime;

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let data = json!({"umDataLimits": {"month": {"limitId": "month", "usageLimit": {"totalVolume": 70},
            "scopes": {"1": {"snssai": {"sst": 1}}}}}});
        let accounts = Accounts::of_subscriber(
            &data,
            Some("1"),
            "internet",
            OffsetDateTime::from_unix_timestamp(0).unwrap(),
        );
        let ledger = Ledger {
            subscriber: "imsi-1".to_owned(),
            accounts,
            at_udr: vec!["month".to_owned()],
            expires: 7,
        };
        let mut bytes = Vec::new();
        ledger.encode(&mut bytes);
        assert_eq!(Ledger::decode(&ledger.key(), &bytes), Ok(ledger.clone()));
        assert_eq!(ledger.um_data()["month"]["allowedUsage"]["totalVolume"], 70);
        assert!(Ledger::decode(&ledger.key(), b"[]").is_err());
    }
}
