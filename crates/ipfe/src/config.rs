//! Every setting of a front end.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};

/// Settings of an IP front end. Without target sets and egress sets it listens nowhere.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads; each accepts and carries connections of its own. 0: one per core.
    pub workers: usize,
    /// Addresses that clients connect to, and the message processors behind each. Message processors and bounds change
    /// with a reload, names and addresses (`listen`) with a restart.
    #[schemars(extend("x-reload" = true))]
    pub target_sets: Vec<TargetSet>,
    /// Addresses at which message processors reach servers: a server sees the front end instead of each processor.
    /// Servers and bounds change with a reload, names and addresses (`listen`) with a restart.
    #[schemars(extend("x-reload" = true))]
    pub egress_sets: Vec<EgressSet>,
    /// The other front end of an active/standby pair; absent: this one is alone and always active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<Pair>,
    /// How message processors, and the mate of a pair, are checked.
    #[schemars(extend("x-reload" = true))]
    pub check: Check,
    /// Bounds on clients of a target set that are not served yet.
    #[schemars(extend("x-reload" = true))]
    pub handshakes: Handshakes,
    /// How long a message processor or server may take to accept a connection before the next one is tried.
    #[schemars(extend("x-reload" = true))]
    pub connect: Period,
    /// A connection of which one side has ended ends when the other has sent nothing for this time.
    #[schemars(extend("x-reload" = true))]
    pub linger: Period,
    /// A client or message processor that has become unreachable loses its connection after this time, also when no
    /// data is in flight; its connection no longer counts.
    #[schemars(extend("x-reload" = true))]
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
            egress_sets: Vec::new(),
            pair: None,
            check: Check::default(),
            handshakes: Handshakes::default(),
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
    /// Bound of concurrent connections; 0: 2000. Connections above it are refused.
    pub max_connections: usize,
    /// Of which from one address (of IPv6: from one network of 64 bits); 0: not bounded.
    pub max_connections_per_address: usize,
}

/// Bounds on clients of a target set that are not served yet: the message processor has not answered. A client gets a
/// message processor when it has sent its first byte; Diameter and TLS clients speak first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Handshakes {
    /// How long a client may be silent before its first byte.
    pub silence: Period,
    /// Such clients of one set. At this bound a new client takes the position of the longest silent one; it is refused where
    /// none is silent.
    #[schemars(range(min = 1))]
    pub maximum: usize,
    /// Of which from one address (of IPv6: from one network of 64 bits).
    #[schemars(range(min = 1))]
    pub per_address: usize,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            silence: Period::from_secs(5),
            maximum: 1024,
            per_address: 32,
        }
    }
}

impl Validate for Handshakes {
    fn validate(&self, faults: &mut Faults) {
        if self.silence.is_zero() {
            faults.at("silence").say("is 0", "a period such as 5s");
        }
        for (key, value) in [("maximum", self.maximum), ("perAddress", self.per_address)] {
            if value == 0 {
                faults.at(key).say("admits no client", "at least 1");
            }
        }
    }
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
    /// Its admin endpoint, queried for `/readyz`: while it is not ready (every processor of it at CL1 or above), it
    /// gets no new connections. Absent: the front end only checks whether it accepts connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "socket-address"))]
    pub admin: Option<SocketAddr>,
    /// Whether it gets the client's address in a PROXY header of version 2 before the client's bytes. A router accepts it
    /// from the networks in its `localNodes[].frontEnds`; its bounds and rules by address then see clients in
    /// place of the front end.
    pub proxy_protocol: bool,
}

impl Default for Backend {
    fn default() -> Self {
        Self {
            name: String::new(),
            address: SocketAddr::from(([127, 0, 0, 1], 3868)),
            admin: None,
            proxy_protocol: false,
        }
    }
}

/// An address at which message processors reach a server through the front end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct EgressSet {
    /// Name in metrics and alarms.
    pub name: String,
    /// Where message processors connect: in their settings it is the address of the server.
    pub listen: Listen,
    /// Addresses of the server, the first that accepts gets a connection; one that refused the last connection comes after
    /// the others.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<SocketAddr>,
    /// The address that servers see: a target set address. Absent: the system's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// Networks of the message processors; other clients are refused. Empty: this machine.
    #[schemars(with = "Vec<String>")]
    pub processors: Vec<IpNet>,
    /// Bound of concurrent connections; 0: 2000. Connections above it are refused.
    pub max_connections: usize,
}

/// The mate of an active/standby pair. One of the two listens at the addresses of the sets; the other does so when the
/// first does not answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Pair {
    /// Admin endpoint of the mate, queried for `/ipfe/pair` at each `check.interval`. After `check.failures` queries
    /// without an answer this front end becomes active.
    #[schemars(extend("format" = "socket-address"))]
    pub mate: SocketAddr,
    /// Whether this front end has precedence where both could be active: when both start, and when both were active
    /// because each found the other unreachable. Exactly one of the two must set it. A preferred front end that
    /// restarts does not replace a mate that is active alone.
    #[serde(default)]
    pub preferred: bool,
    /// Program and arguments that move the addresses to this machine (`ip address add`, `arping`, the interface of a
    /// cloud); runs before the front end listens. Empty: no program.
    #[serde(default)]
    pub takeover: Vec<String>,
    /// Program and arguments that remove the addresses from this machine; runs when the front end stops being active.
    #[serde(default)]
    pub release: Vec<String>,
    /// How long either program may take.
    #[serde(default = "command_timeout")]
    pub command_timeout: Period,
}

const fn command_timeout() -> Period {
    Period::from_secs(5)
}

/// How message processors are checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Check {
    /// Interval of the checks.
    pub interval: Period,
    /// Timeout of a check.
    pub timeout: Period,
    /// Checks in a row without an answer after which the processor is unavailable.
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

/// The bound on connections that a setting stands for.
pub(crate) const fn most(max_connections: usize) -> usize {
    match max_connections {
        0 => 2000,
        most => most,
    }
}

impl Config {
    /// Names and addresses of all sets, target sets first.
    pub(crate) fn listening(&self) -> impl Iterator<Item = (&str, &Listen)> {
        let target = self.target_sets.iter().map(|set| (&*set.name, &set.listen));
        let egress = self.egress_sets.iter().map(|set| (&*set.name, &set.listen));
        target.chain(egress)
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.check.interval.is_zero() {
            faults.at("check.interval").say("is 0", "a period such as 1s");
        }
        for (key, period, least) in [
            ("linger", self.linger, Period::from_millis(1)),
            ("silence", self.silence, Period::from_secs(4)),
        ] {
            if period.duration() < least.duration() {
                faults.at(key).say("is too short", format!("at least {least}"));
            }
        }
        faults.within("handshakes", &self.handshakes);
        if self.check.failures == 0 {
            faults.at("check.failures").say("is never reached", "at least 1");
        }
        if let Some(pair) = &self.pair {
            if pair.mate == self.admin {
                faults
                    .at("pair.mate")
                    .say("is the admin endpoint of this front end", "that of the other one");
            }
            let mut addresses = self.listening().flat_map(|(_, listen)| listen.iter());
            if addresses.any(|address| address.port() == 0) {
                faults.at("pair").say(
                    "needs addresses that both front ends know; a set listens at port 0",
                    "a port for each set",
                );
            }
        }
        let mut names = BTreeSet::new();
        for (index, set) in self.target_sets.iter().enumerate() {
            let at = format!("targetSets[{index}]");
            name_and_listen(faults, &at, &mut names, &set.name, &set.listen);
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
        for (index, set) in self.egress_sets.iter().enumerate() {
            let at = format!("egressSets[{index}]");
            name_and_listen(faults, &at, &mut names, &set.name, &set.listen);
            if set.servers.is_empty() {
                faults
                    .at(format!("{at}.servers"))
                    .say("is empty", "at least one address of the server");
            }
            for (number, server) in set.servers.iter().enumerate() {
                let key = format!("{at}.servers[{number}]");
                if set.listen.iter().any(|own| own == *server) {
                    let right = "the address of the server";
                    faults.at(key).say("is where the front end itself listens", right);
                } else if set.from.is_some_and(|from| from.is_ipv4() != server.is_ipv4()) {
                    let right = "addresses of one family, IPv4 or IPv6";
                    faults.at(key).say("cannot be reached from `from`", right);
                }
            }
        }
    }
}

fn name_and_listen<'c>(
    faults: &mut Faults,
    at: &str,
    names: &mut BTreeSet<&'c str>,
    name: &'c str,
    listen: &Listen,
) {
    if name.is_empty() || !names.insert(name) {
        let right = "a name of its own";
        let key = format!("{at}.name");
        faults
            .at(key)
            .say("is empty, or the name of another target set or egress set", right);
    }
    if listen.first().is_none() {
        let right = "an address to listen at";
        faults.at(format!("{at}.listen")).say("is empty", right);
    }
}
