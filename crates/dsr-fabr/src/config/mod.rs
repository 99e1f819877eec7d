//! The settings of a full address resolution.

mod words;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use dsr_app::Answer;
use dsr_app::appended::one_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};
use tls::TlsFiles;

pub use words::{Avp, Entity, Service};

/// Most entities of a lookup, and most AVPs of an entity.
const MOST_ENTITIES: usize = 3;
const MOST_AVPS: usize = 2;
/// Most database processors.
const MOST_PROCESSORS: usize = 32;
/// Most destinations: a position has 16 bits.
const MOST_DESTINATIONS: usize = 65_535;

/// Full address based resolution: each subscriber has destinations of its own, one for each kind of server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Fabr {
    /// What requests are resolved by; the first that applies counts.
    pub lookups: Vec<Lookup>,
    /// Destinations of subscribers.
    pub destinations: Vec<Destination>,
    /// IMSIs and MSISDNs by the million: a file that `signalbox numbers import` has written. Reloaded when it is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<PathBuf>,
    /// Database processors (`signalbox run dp`) that are asked in place of `numbers`, each by one connection of every worker. Queries
    /// are shared among those that answer.
    pub processors: Vec<Processor>,
    /// Time from a query to its answer, whichever processor gives it; after it `onDatabaseError` applies.
    pub processor_deadline: Period,
    /// TLS towards `processors`, which are checked by `authorities`; with `certificate` and `key` the router shows its own
    /// certificate. Absent: cleartext. Changed files are read as `file` is, and make new connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_tls: Option<TlsFiles>,
    /// More subscribers, names and ranges, as text: one `ENTITY,VALUE,DESTINATION[,SERVICE=DESTINATION…]` per line. VALUE is
    /// a number, a name, `00101*` or `00101..00104` (first digits), or `*@realm`. They go before `numbers`. Reloaded when it
    /// changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Bound on entries of `file`, of about 10 bytes for a number and 4 more than its own for a name.
    pub max_entries: usize,
    /// A file of the router's own, in which it keeps subscribers that are changed one by one
    /// (`PUT` and `DELETE /dsr/applications/NAME/subscribers/ENTITY/VALUE`); they go before the others. Absent: none can be
    /// changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<PathBuf>,
    /// Bound on subscribers in `changes`.
    pub max_changes: usize,
    /// Mobile country codes that no IMSI has: `999`, or `980-989`. An IMSI with one of them is not valid.
    pub invalid_mccs: Vec<String>,
    /// Requests that each worker resolves in a second; beyond, the database counts as congested. 0: no bound.
    pub queries_per_second: u32,
    /// Action when no lookup applies to the request's application and command.
    pub on_unknown_command: Otherwise,
    /// Action when the request has no valid address of any entity.
    pub on_no_valid_address: Otherwise,
    /// Action when no address of the request is known, and the lookup has no default.
    pub on_no_match: Otherwise,
    /// Action when the entry of an address is damaged, or no database processor answers.
    pub on_database_error: Otherwise,
    /// Action beyond `queriesPerSecond`, here or at a database processor.
    pub on_database_congested: Otherwise,
}

impl Default for Fabr {
    fn default() -> Self {
        Self {
            lookups: Vec::new(),
            destinations: Vec::new(),
            numbers: None,
            processors: Vec::new(),
            processor_deadline: Period::from_millis(500),
            processor_tls: None,
            file: None,
            max_entries: 10_000_000,
            changes: None,
            max_changes: 1_000_000,
            invalid_mccs: Vec::new(),
            queries_per_second: 0,
            on_unknown_command: Otherwise::default(),
            on_no_valid_address: Otherwise::default(),
            on_no_match: Otherwise::default(),
            on_database_error: Otherwise::default(),
            on_database_congested: Otherwise::default(),
        }
    }
}

/// What requests of some applications and commands are resolved by.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Lookup {
    /// Application ids; empty: any.
    pub applications: Vec<u32>,
    /// Command codes; empty: any.
    pub commands: Vec<u32>,
    /// The kind of server that the requests are for; absent: the destination that has no service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Up to three entities in the order of preference: each is looked up where the request has a valid address of it, until
    /// one is known.
    pub entities: Vec<Source>,
    /// The destination of requests with a valid address that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Where the address of an entity is.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Source {
    /// The entity.
    pub entity: Entity,
    /// Up to two AVPs: the second is read when the first is absent or has no valid address.
    pub avps: Vec<Avp>,
}

/// A destination of subscribers.
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

/// A database processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Processor {
    /// Where it listens.
    #[schemars(extend("format" = "socket-address"))]
    pub address: SocketAddr,
    /// The name in its certificate, with `processorTls`. Absent: the IP address of `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What happens to a request that is not resolved.
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

impl Fabr {
    fn validate_processors(&self, faults: &mut Faults) {
        if self.numbers.is_some() && !self.processors.is_empty() {
            faults
                .at("numbers")
                .say("is set beside processors", "either a file or processors");
        }
        if self.processors.len() > MOST_PROCESSORS {
            faults
                .at("processors")
                .say("has too many entries", format!("at most {MOST_PROCESSORS}"));
        }
        if self
            .processor_tls
            .as_ref()
            .is_some_and(|tls| tls.authorities.is_none())
        {
            faults.at("processorTls.authorities").say(
                "is missing, so that no certificate of a processor would be trusted",
                "a PEM file of authorities",
            );
        }
        if self.processor_deadline.is_zero() {
            faults
                .at("processorDeadline")
                .say("is 0", "a period such as 500ms");
        }
    }

    /// The exceptions with their keys.
    pub(crate) fn exceptions(&self) -> [(&'static str, &Otherwise); 5] {
        [
            ("onUnknownCommand", &self.on_unknown_command),
            ("onNoValidAddress", &self.on_no_valid_address),
            ("onNoMatch", &self.on_no_match),
            ("onDatabaseError", &self.on_database_error),
            ("onDatabaseCongested", &self.on_database_congested),
        ]
    }
}

/// First and last mobile country code of `999` or `980-989`.
pub(crate) fn mccs(text: &str) -> Option<(u16, u16)> {
    let code = |text: &str| {
        let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then(|| text.parse().ok()).flatten()
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (code(first)?, code(last)?);
    (first <= last).then_some((first, last))
}

impl Validate for Fabr {
    fn validate(&self, faults: &mut Faults) {
        if let (Some(file), Some(changes)) = (&self.file, &self.changes)
            && one_name(file) == one_name(changes)
        {
            faults
                .at("changes")
                .say("is the same file as `file`", "a file that only the router writes");
        }
        self.validate_processors(faults);
        let mut names = BTreeSet::new();
        for (index, destination) in self.destinations.iter().enumerate() {
            let at = format!("destinations[{index}]");
            if destination.realm.is_empty() && destination.host.is_empty() {
                faults
                    .at(&at)
                    .say("has neither realm nor host", "a realm, a host or both");
            }
            if let Err(wrong) = name(&destination.name) {
                faults
                    .at(format!("{at}.name"))
                    .say(wrong, "a name as files of subscribers have it");
            }
            if !names.insert(destination.name.as_str()) {
                faults.at(format!("{at}.name")).say(
                    format!("`{}` is there twice", destination.name),
                    "a name of its own",
                );
            }
        }
        if self.destinations.len() > MOST_DESTINATIONS {
            faults
                .at("destinations")
                .say("has too many entries", format!("at most {MOST_DESTINATIONS}"));
        }
        for (index, text) in self.invalid_mccs.iter().enumerate() {
            if mccs(text).is_none() {
                faults
                    .at(format!("invalidMccs[{index}]"))
                    .say(format!("`{text}` is not a country code"), "999 or 980-989");
            }
        }
        let known = |faults: &mut Faults, at: String, name: &str| {
            if !names.contains(name) {
                faults
                    .at(at)
                    .say(format!("unknown destination `{name}`"), "the name of one");
            }
        };
        for (key, otherwise) in self.exceptions() {
            if let Otherwise::Destination(name) = otherwise {
                known(faults, key.to_owned(), name);
            }
        }
        for (index, lookup) in self.lookups.iter().enumerate() {
            if let Some(name) = &lookup.default {
                known(faults, format!("lookups[{index}].default"), name);
            }
            lookup.validate_at(&format!("lookups[{index}].entities"), faults);
        }
    }
}

/// Files of subscribers have it by name, between commas and behind equals signs.
fn name(text: &str) -> Result<(), String> {
    if text.contains([',', '=']) {
        return Err(format!("`{text}` has a comma or an equals sign"));
    }
    let set = numbers::DestinationSet::parse(text);
    set.map(drop).map_err(|error| error.to_string())
}

impl Lookup {
    fn validate_at(&self, at: &str, faults: &mut Faults) {
        if self.entities.is_empty() || self.entities.len() > MOST_ENTITIES {
            let expected = format!("one to {MOST_ENTITIES} entities");
            faults
                .at(at)
                .say(format!("has {} entries", self.entities.len()), expected);
        }
        for (index, source) in self.entities.iter().enumerate() {
            let word = source.entity.as_str();
            let before = self.entities.iter().take(index);
            if before.clone().any(|other| other.entity == source.entity) {
                faults
                    .at(format!("{at}[{index}].entity"))
                    .say(format!("`{word}` is there twice"), "each entity once");
            }
            if source.avps.is_empty() || source.avps.len() > MOST_AVPS {
                let expected = format!("one or {MOST_AVPS} AVPs");
                faults
                    .at(format!("{at}[{index}].avps"))
                    .say(format!("has {} entries", source.avps.len()), expected);
            }
            for (avp, found) in source.avps.iter().enumerate() {
                if found.is_tbcd() && source.entity != Entity::Msisdn {
                    faults.at(format!("{at}[{index}].avps[{avp}]")).say(
                        format!("{} has an MSISDN, which {word} is not", found.name()),
                        "an AVP that has one, or the entity msisdn",
                    );
                }
            }
        }
    }
}
