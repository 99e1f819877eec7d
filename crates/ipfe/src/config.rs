//! Every setting of a front end.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};

/// Settings of an IP front end. Without target sets it listens nowhere.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads; each accepts and carries connections of its own. 0: one per core.
    pub workers: usize,
    /// Addresses that clients connect to, and the message processors behind each.
    pub target_sets: Vec<TargetSet>,
    /// How message processors are looked after.
    pub check: Check,
    /// How long a message processor may take to accept a connection before the next one is tried.
    pub connect: Period,
    /// A connection of which one side has ended ends when the other has sent nothing for so long.
    pub linger: Period,
    /// A client or message processor that the network does not reach any more loses its connection after so long, also
    /// when nothing is sent: its place goes to others.
    pub silence: Period,
    /// How long connections may last when the front end stops. Diameter connections never end by themselves.
    pub drain: Period,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admin: SocketAddr::from(([127, 0, 0, 1], 9060)),
            workers: 0,
            target_sets: Vec::new(),
            check: Check::default(),
            connect: Period::from_secs(2),
            linger: Period::from_secs(5),
            silence: Period::from_secs(60),
            drain: Period::from_secs(1),
        }
    }
}

/// An address that clients connect to (TSA).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TargetSet {
    /// Name in metrics and alarms.
    pub name: String,
    /// Where clients connect.
    pub listen: Listen,
    /// The message processors.
    pub backends: Vec<Backend>,
    /// Connections at once; 0: 2000. What comes beyond is refused.
    pub max_connections: usize,
}

/// A message processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Backend {
    /// Name in metrics and alarms.
    pub name: String,
    /// Where it takes connections.
    #[schemars(extend("format" = "socket-address"))]
    pub address: SocketAddr,
    /// Its admin endpoint, asked for `/readyz`: while it is not ready (every processor of it at CL1 or above), it
    /// gets no new connections. Absent: it is only seen whether it accepts connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "socket-address"))]
    pub admin: Option<SocketAddr>,
}

impl Default for Backend {
    fn default() -> Self {
        Self {
            name: String::new(),
            address: SocketAddr::from(([127, 0, 0, 1], 3868)),
            admin: None,
        }
    }
}

/// How message processors are looked after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Check {
    /// How often each is asked.
    pub interval: Period,
    /// How long it may take to answer.
    pub timeout: Period,
    /// So many times without an answer, and it is unavailable.
    #[schemars(range(min = 1))]
    pub failures: u32,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            interval: Period::from_secs(1),
            timeout: Period::from_secs(1),
            failures: 2,
        }
    }
}

impl TargetSet {
    /// Connections at once.
    #[must_use]
    pub const fn most(&self) -> usize {
        match self.max_connections {
            0 => 2000,
            most => most,
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.check.interval.is_zero() {
            faults
                .at("check.interval")
                .say("is no time at all", "a period such as 1s");
        }
        for (key, period, least) in [
            ("linger", self.linger, Period::from_millis(1)),
            ("silence", self.silence, Period::from_secs(4)),
        ] {
            if period.duration() < least.duration() {
                faults.at(key).say("is too short", format!("at least {least}"));
            }
        }
        if self.check.failures == 0 {
            faults.at("check.failures").say("is never reached", "at least 1");
        }
        let mut names = BTreeSet::new();
        for (index, set) in self.target_sets.iter().enumerate() {
            let at = format!("targetSets[{index}]");
            if set.name.is_empty() || !names.insert(&set.name) {
                faults
                    .at(format!("{at}.name"))
                    .say("is empty, or the name of another target set", "a name of its own");
            }
            if set.listen.first().is_none() {
                faults
                    .at(format!("{at}.listen"))
                    .say("is empty", "an address that clients connect to");
            }
            if set.backends.is_empty() {
                faults
                    .at(format!("{at}.backends"))
                    .say("is empty", "at least one message processor");
            }
            let mut processors = BTreeSet::new();
            for (number, backend) in set.backends.iter().enumerate() {
                if backend.name.is_empty() || !processors.insert(&backend.name) {
                    faults.at(format!("{at}.backends[{number}].name")).say(
                        "is empty, or the name of another message processor",
                        "a name of its own",
                    );
                }
                if set.listen.iter().any(|own| own == backend.address) {
                    faults.at(format!("{at}.backends[{number}].address")).say(
                        "is where the front end itself listens",
                        "the address of a message processor",
                    );
                }
            }
        }
    }
}
