//! The settings of a Policy DRA.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use dsr_app::Answer;
use sbr::config::{Sbr, Settings};
pub use sbr::pool::Server as Pcrf;
use sbr::pool::validate_servers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

use crate::facts::network_identifier;

/// Policy DRA: keeps all Gx, Gxx, S9, Sd and Rx sessions of a subscriber at one PCRF (TS 29.213 §7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Pdra {
    /// Which messages pass the router (TS 29.213 §7.1).
    pub mode: Mode,
    /// Where sessions and bindings are kept.
    pub repository: Sbr,
    /// Pools of PCRFs, by APN. A subscriber is bound to one PCRF of each pool.
    pub pools: Vec<Pool>,
    /// By what a request of an AF or TDF finds the session of its subscriber, in this order. Where it names a Called-Station-Id,
    /// sessions of other APNs are left out, and so are those that contradict another of its keys.
    pub keys: Vec<Key>,
    /// IP domains whose IPv4 addresses overlap. A request of an AF with an IP-Domain-Id (TS 29.214 §5.3.35) finds no session of
    /// another domain; a session of none fits each.
    pub ip_domains: Vec<IpDomain>,
    /// What a request that begins a session does while another one of its subscriber has chosen a PCRF that has not answered.
    pub early: Early,
    /// Time that it waits for the other one, at most.
    pub wait: Period,
    /// PCRFs that a request which begins a session is sent to, at most, one after another. One that may have got it gets it
    /// first; the next gets it with the T flag.
    pub attempts: u8,
    /// When a subscriber whose PCRF fails is bound to another one by its next session.
    pub rebind: Rebind,
    /// Time that a PCRF which was unreachable or did not answer is chosen last.
    pub suspect: Period,
    /// When the binding of a subscriber is removed because its PCRF does not serve it.
    pub suspect_bindings: SuspectBindings,
    /// What becomes of an AF's request whose subscriber has no session.
    pub on_not_found: NotFound,
    /// The answer to an AF's request whose PCRF is known and unreachable; absent: that of the router's exceptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unreachable: Option<Answer>,
}

impl Default for Pdra {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            repository: Sbr::default(),
            pools: Vec::new(),
            keys: vec![Key::Ipv6, Key::Ipv4, Key::Msisdn, Key::Imsi],
            ip_domains: Vec::new(),
            early: Early::default(),
            wait: Period::from_secs(2),
            attempts: 3,
            rebind: Rebind::default(),
            suspect: Period::from_secs(10),
            suspect_bindings: SuspectBindings::default(),
            on_not_found: NotFound::default(),
            on_unreachable: None,
        }
    }
}

/// Which messages pass the router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// All of them: a proxy agent (PA1).
    #[default]
    Pa1,
    /// Those that begin sessions, and those that end sessions of gateways: a proxy agent (PA2). Clients send the others to their
    /// PCRF. Sessions of AFs and TDFs are not kept.
    Pa2,
    /// The same, which are answered with the name of the PCRF (DIAMETER_REDIRECT_INDICATION): a redirect agent. Clients send them
    /// there again.
    Redirect,
}

/// A pool of PCRFs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Pool {
    /// Name. Bindings are kept under it: a pool that is renamed has none.
    pub name: String,
    /// Called-Station-Ids whose sessions it serves, without the operator's part (`.mnc001.mcc001.gprs`); empty: those of no
    /// other pool.
    pub apns: Vec<String>,
    /// Its PCRFs.
    pub pcrfs: Vec<Pcrf>,
}

/// An IP domain.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct IpDomain {
    /// The IP-Domain-Id by which AFs name it.
    pub id: String,
    /// Origin-Hosts of the gateways whose sessions are in it; empty: any.
    pub gateways: Vec<String>,
    /// Called-Station-Ids of the sessions that are in it, without the operator's part; empty: any.
    pub apns: Vec<String>,
}

/// By what the session of a subscriber is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Key {
    /// Framed-IPv6-Prefix: the session's prefix holds it.
    #[default]
    Ipv6,
    /// Framed-IP-Address.
    Ipv4,
    /// MSISDN.
    Msisdn,
    /// IMSI.
    Imsi,
}

impl Key {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ipv6 => "ipv6",
            Self::Ipv4 => "ipv4",
            Self::Msisdn => "msisdn",
            Self::Imsi => "imsi",
        }
    }
}

/// What requests of one subscriber do that come at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Early {
    /// They wait until the first one has its answer.
    #[default]
    Wait,
    /// They take its PCRF at once.
    Follow,
}

/// When a subscriber gets another PCRF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Rebind {
    /// Never: its requests fail until the PCRF is back or its sessions have ended.
    Never,
    /// When the PCRF is unreachable.
    #[default]
    Unreachable,
    /// When the PCRF is unreachable, or was lost or silent after it got the request.
    Unanswered,
}

/// When a binding is removed: its sessions are, and the next session of the subscriber chooses a PCRF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SuspectBindings {
    /// Result-Codes of the PCRF's answers that count against the binding; 3002 stands for no answer too. Empty: none is removed.
    pub results: Vec<u32>,
    /// Results that remove it.
    pub count: u32,
    /// Time in which they come.
    pub within: Period,
}

impl Default for SuspectBindings {
    fn default() -> Self {
        Self {
            results: Vec::new(),
            count: 3,
            within: Period::from_secs(60),
        }
    }
}

/// What becomes of a request whose subscriber has no session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NotFound {
    /// It is answered.
    Answer(Answer),
    /// It goes on without a PCRF's name, by its realm.
    Route,
}

impl Default for NotFound {
    /// IP-CAN_SESSION_NOT_AVAILABLE (TS 29.214 §5.5), as a PCRF answers that has no session.
    fn default() -> Self {
        Self::Answer(Answer {
            result_code: 5065,
            vendor_id: 10415,
            message: "no IP-CAN session of this subscriber is known".to_owned(),
        })
    }
}

/// A key has the name of a pool and up to 386 other bytes (`MOST_OF_SESSION`), and a store takes 512.
const MAX_NAME: usize = 100;

impl Pdra {
    /// The directory of its repository; none: a database.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.repository.directory()
    }

    /// A name by which its repository differs from others.
    #[must_use]
    pub fn repository_name(&self) -> PathBuf {
        self.repository.name()
    }
}

impl Validate for Pdra {
    fn validate(&self, faults: &mut Faults) {
        faults.within("repository", &self.repository);
        if self.pools.is_empty() {
            faults.at("pools").say("is empty", "at least one pool of PCRFs");
        }
        if self.keys.is_empty() {
            faults
                .at("keys")
                .say("is empty", "at least one key, such as ipv4");
        }
        if self.attempts == 0 {
            faults.at("attempts").say("is 0", "at least 1");
        }
        if self.wait.is_zero() {
            faults.at("wait").say("is 0", "some time, such as 2s");
        }
        faults.within("suspectBindings", &self.suspect_bindings);
        for (index, domain) in self.ip_domains.iter().enumerate() {
            let at = format!("ipDomains[{index}]");
            if domain.id.is_empty() {
                faults.at(format!("{at}.id")).say("is empty", "an IP-Domain-Id");
            }
            if domain.gateways.is_empty() && domain.apns.is_empty() {
                faults
                    .at(&at)
                    .say("has neither gateways nor apns", "one of them, or both");
            }
        }
        let (mut names, mut apns) = (BTreeSet::new(), BTreeSet::new());
        for (index, pool) in self.pools.iter().enumerate() {
            let at = format!("pools[{index}]");
            if pool.name.is_empty()
                || pool.name.len() > MAX_NAME
                || pool.name.contains('/')
                || !names.insert(&pool.name)
            {
                let name = format!("{at}.name");
                faults.at(&name).say(
                    "is empty, too long, has a slash, or is that of another pool",
                    "a name of its own of at most 100 bytes",
                );
            }
            validate_servers(&pool.pcrfs, &format!("{at}.pcrfs"), faults);
            let named = pool.apns.iter().map(|apn| network_identifier(apn.as_bytes()));
            let served: Vec<String> = if pool.apns.is_empty() {
                vec![String::new()]
            } else {
                named.collect()
            };
            if served.into_iter().any(|apn| !apns.insert(apn)) {
                let other = "an APN of another pool, or as that has none";
                faults
                    .at(format!("{at}.apns"))
                    .say(format!("has {other}"), "each APN in one pool");
            }
        }
    }
}

impl Validate for SuspectBindings {
    fn validate(&self, faults: &mut Faults) {
        for (index, code) in self.results.iter().enumerate() {
            // Those below do not say that a request has failed (RFC 6733 §7.1).
            if !FAILURES.contains(code) {
                faults
                    .at(format!("results[{index}]"))
                    .say(format!("is {code}"), "the Result-Code of a failure, 3001 to 5999");
            }
        }
        if self.count == 0 {
            faults.at("count").say("is 0", "at least 1");
        }
        if self.within.is_zero() {
            faults.at("within").say("is 0", "some time, such as 1m");
        }
    }
}

/// Result-Codes of protocol errors, transient and permanent failures.
const FAILURES: RangeInclusive<u32> = 3001..=5999;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(name: &str, apns: [&str; 2]) -> bool {
        let pool = |name: &str, apn: &str| Pool {
            name: name.to_owned(),
            apns: vec![apn.to_owned()],
            pcrfs: vec![Pcrf {
                host: "pcrf".to_owned(),
                ..Pcrf::default()
            }],
        };
        let settings = Pdra {
            pools: vec![pool(name, apns[0]), pool("other", apns[1])],
            ..Pdra::default()
        };
        let mut faults = Faults::default();
        settings.validate(&mut faults);
        faults.is_empty()
    }

    #[test]
    fn an_apn_is_in_one_pool_and_names_fit_into_keys() {
        assert!(is_valid("one", ["ims", "internet"]));
        assert!(!is_valid("one", ["ims", "IMS.mnc001.mcc001.gprs"]));
        assert!(is_valid(&"p".repeat(MAX_NAME), ["ims", "internet"]));
        assert!(!is_valid(&"p".repeat(MAX_NAME + 1), ["ims", "internet"]));
    }

    #[test]
    fn bindings_are_suspected_for_failures_alone() {
        let is_valid = |code| {
            let mut faults = Faults::default();
            let results = vec![3002, code];
            let suspected = SuspectBindings {
                results,
                ..SuspectBindings::default()
            };
            suspected.validate(&mut faults);
            faults.is_empty()
        };
        assert!([3004, 4002, 5012].into_iter().all(is_valid));
        assert!(![1001, 2001, 2002, 6001].into_iter().any(is_valid));
    }
}
