//! The settings of an address resolution.

mod range;

use std::collections::BTreeSet;
use std::path::PathBuf;

use dsr_app::Answer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

pub(crate) use range::Span;

/// Range based address resolution: the subscriber's number decides on the destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rbar {
    /// Identities by which requests are resolved.
    pub lookups: Vec<Lookup>,
    /// Destinations of the ranges.
    pub destinations: Vec<Destination>,
    /// Ranges.
    pub ranges: Vec<Range>,
    /// A file with more ranges, one `identity,start,end,destination` per line; reloaded with each reload of the
    /// configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A file of the router's own, in which it keeps ranges that are changed one by one
    /// (`PUT` and `DELETE /dsr/applications/NAME/ranges/IDENTITY/FIRST`); they go before the others. Absent: none can be
    /// changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<PathBuf>,
    /// Bound on ranges in `changes`.
    pub max_changes: usize,
    /// Action when no lookup applies to the request's application and command.
    pub on_unknown_command: Otherwise,
    /// Action when the request has none of the identities, or only invalid ones.
    pub on_invalid_identity: Otherwise,
    /// Action when no range holds its identity.
    pub on_no_match: Otherwise,
}

impl Default for Rbar {
    fn default() -> Self {
        Self {
            lookups: Vec::new(),
            destinations: Vec::new(),
            ranges: Vec::new(),
            file: None,
            changes: None,
            max_changes: 1_000_000,
            on_unknown_command: Otherwise::default(),
            on_invalid_identity: Otherwise::default(),
            on_no_match: Otherwise::default(),
        }
    }
}

/// Identities by which requests are resolved.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Lookup {
    /// Application ids; empty: any.
    pub applications: Vec<u32>,
    /// Command codes; empty: any.
    pub commands: Vec<u32>,
    /// Identities, tried in this order: the first that the request has is looked up, and where no range holds
    /// it, the next.
    pub identities: Vec<Identity>,
}

/// Identities of subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Identity {
    /// IMSI: ranges of its first digits.
    #[default]
    Imsi,
    /// MSISDN: ranges of its first digits.
    Msisdn,
    /// Private identity: ranges of names in the order of their bytes, in lower case.
    Impi,
    /// Public identity: ranges of names in the order of their bytes, in lower case.
    Impu,
    /// Framed-IP-Address.
    Ipv4,
    /// Framed-IPv6-Prefix: its first address.
    Ipv6Prefix,
}

impl Identity {
    /// Its word in a file of ranges.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Imsi => "imsi",
            Self::Msisdn => "msisdn",
            Self::Impi => "impi",
            Self::Impu => "impu",
            Self::Ipv4 => "ipv4",
            Self::Ipv6Prefix => "ipv6Prefix",
        }
    }

    /// The identity of a word.
    ///
    /// # Errors
    /// When there is none; the words.
    pub fn from_word(word: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|known| known.as_str() == word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("the identity `{word}` does not exist; valid are {known}")
        })
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Imsi,
        Self::Msisdn,
        Self::Impi,
        Self::Impu,
        Self::Ipv4,
        Self::Ipv6Prefix,
    ];
}

/// Destinations of the ranges.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Destination {
    /// Name.
    pub name: String,
    /// The Destination-Realm that requests get; empty: they keep theirs.
    pub realm: String,
    /// The Destination-Host that requests get; empty: they keep theirs.
    pub host: String,
}

/// A range. The first and the last value belong to it.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Range {
    /// Of what.
    pub identity: Identity,
    /// First value: digits, a name, an address, or `2001:db8::/32` for a whole prefix.
    pub start: String,
    /// Last value; empty: the range is `start` alone. Digits have as many places as those of `start`.
    pub end: String,
    /// Name of the destination.
    pub destination: String,
}

/// What happens to a request that cannot be resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Otherwise {
    /// It is routed unchanged.
    #[default]
    Forward,
    /// It goes to this destination.
    Destination(String),
    /// It is answered.
    Answer(Answer),
    /// It is dropped; its sender gets no answer.
    Abandon,
}

impl Validate for Rbar {
    fn validate(&self, faults: &mut Faults) {
        let names: BTreeSet<&str> = self.destinations.iter().map(|one| one.name.as_str()).collect();
        for (index, destination) in self.destinations.iter().enumerate() {
            if destination.realm.is_empty() && destination.host.is_empty() {
                faults
                    .at(format!("destinations[{index}]"))
                    .say("has neither realm nor host", "a realm, a host or both");
            }
        }
        for (index, range) in self.ranges.iter().enumerate() {
            if !names.contains(range.destination.as_str()) {
                faults.at(format!("ranges[{index}].destination")).say(
                    format!("unknown destination `{}`", range.destination),
                    "the name of one",
                );
            }
            if let Err(reason) = Span::parse(range.identity, &range.start, &range.end) {
                faults
                    .at(format!("ranges[{index}]"))
                    .say(reason, "a range that begins before it ends");
            }
        }
        for (key, otherwise) in [
            ("onUnknownCommand", &self.on_unknown_command),
            ("onInvalidIdentity", &self.on_invalid_identity),
            ("onNoMatch", &self.on_no_match),
        ] {
            if let Otherwise::Destination(name) = otherwise
                && !names.contains(name.as_str())
            {
                faults
                    .at(key)
                    .say(format!("unknown destination `{name}`"), "the name of one");
            }
        }
        for (index, lookup) in self.lookups.iter().enumerate() {
            if lookup.identities.is_empty() {
                faults
                    .at(format!("lookups[{index}].identities"))
                    .say("is empty", "at least one identity");
            }
        }
    }
}
