//! Where the network is learned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How the audit asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditMode {
    /// List retrieval and profile by profile (Nnrf_NFManagement).
    #[default]
    #[serde(rename = "nnrf-mgmt")]
    Management,
    /// One discovery per NF type (Nnrf_NFDiscovery).
    #[serde(rename = "nnrf-disc")]
    Discovery,
}

/// Which NRFs are asked because a request names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AcceptNrfs {
    /// None: what a request names is not heeded.
    Ignore,
    /// Those of `nrf.roots`, `nrf.sets` and `roots` here; a request that names another is refused.
    #[default]
    Known,
    /// Every one. Whoever can send a request then decides who finds its producer, who grants its token, and to
    /// whom this SCP connects: only where all consumers are trusted.
    Any,
}

/// NRFs that requests name in `3gpp-Sbi-Nrf-Uri` (TS 29.500 §5.2.3.2.12).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NamedNrfs {
    /// Which are asked.
    pub accept: AcceptNrfs,
    /// API roots of NRFs that may be named beside those that the network is learned from.
    pub roots: Vec<String>,
    /// With `any`: NRFs not known otherwise that a worker keeps to at a time, for discoveries and for tokens each.
    /// One that has not been asked for a minute gives its place to another; requests for more are refused.
    pub max: usize,
}

impl Default for NamedNrfs {
    fn default() -> Self {
        Self {
            accept: AcceptNrfs::default(),
            roots: Vec::new(),
            max: 64,
        }
    }
}

/// A further set of NRFs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NrfSet {
    /// API roots of its NRFs, as `roots`.
    pub roots: Vec<String>,
    /// Networks (`262-01`) whose producers are discovered at this set, and for which it grants tokens, as
    /// `target-plmn-list` names them. What names no network of a set goes to `nrf.roots`.
    pub plmns: Vec<String>,
    /// Localities whose producers are discovered at this set when they are preferred (`preferred-locality`), and
    /// for whose producers it grants tokens. With `plmns`: among the sets of the network. A preference is no
    /// condition: where the set finds nobody or does not answer, that which would be asked otherwise is asked.
    pub localities: Vec<String>,
    /// Regions of `places.regions` whose localities count as named in `localities`.
    pub regions: Vec<String>,
    /// NF types whose profiles are learned from it; empty: those of `nrf.nfTypes`.
    pub nf_types: Vec<String>,
}

/// The NRFs and what is learned of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Nrf {
    /// API roots of the NRFs of the set, in order of preference; the next is asked when one does not answer.
    /// Empty: no NRF, only `producers`.
    pub roots: Vec<String>,
    /// Further sets of NRFs: each is learned from as well, and asked for the producers of its networks or places.
    pub sets: Vec<NrfSet>,
    /// NRFs that requests name.
    pub named: NamedNrfs,
    /// NF types whose profiles are learned by subscription, notification and audit.
    pub nf_types: Vec<String>,
    /// How often everything is retrieved again, in case a notification was lost.
    pub audit_interval: Period,
    /// How the audit asks.
    pub audit_mode: AuditMode,
    /// How long subscriptions are wished to hold; they are renewed before they end.
    pub subscription_validity: Period,
    /// How long an NRF may take to answer.
    pub timeout: Period,
    /// How long to wait before an NRF is asked again when none answers.
    pub retry_interval: Period,
    /// Whether this SCP registers its own profile and sends heart-beats.
    pub register: bool,
    /// SCP domains in its profile (`scpDomains`).
    pub scp_domains: Vec<String>,
    /// Seconds between heart-beats that are wished for.
    pub heart_beat: Period,
    /// Producers that are known at a time, those of `producers` included; further ones are not learned.
    pub max_producers: usize,
    /// NFs that a notification has named and that are looked up at the NRF, or wait for it; a notification of one
    /// more is dropped, and the audit finds what it told of.
    pub max_lookups_waiting: usize,
    /// NFs that are looked up at the same time.
    pub max_lookups: usize,
    /// How long requests still go to a producer that has deregistered or moved when they name it: it may serve what
    /// it has begun. 0: not at all.
    pub departure_grace: Period,
    /// NFs that are looked up in a second.
    pub lookup_rate: u32,
}

impl Default for Nrf {
    fn default() -> Self {
        let types = [
            "AMF", "AUSF", "BSF", "CHF", "GMLC", "LMF", "NEF", "NSSAAF", "NSSF", "PCF", "SCP", "SMF", "SMSF",
            "UDM", "UDR",
        ];
        Self {
            roots: vec!["http://127.0.0.1:8010".to_owned()],
            sets: Vec::new(),
            named: NamedNrfs::default(),
            nf_types: types.map(str::to_owned).to_vec(),
            audit_interval: Period::from_secs(300),
            audit_mode: AuditMode::default(),
            subscription_validity: Period::from_secs(3_600),
            timeout: Period::from_secs(2),
            retry_interval: Period::from_secs(2),
            register: true,
            scp_domains: Vec::new(),
            heart_beat: Period::from_secs(30),
            max_producers: 20_000,
            max_lookups_waiting: 4_096,
            max_lookups: 16,
            departure_grace: Period::from_secs(60),
            lookup_rate: 1_000,
        }
    }
}

impl Nrf {
    /// Whether the same NRFs are asked: their answers and tokens then outlive a reload.
    pub(crate) fn same_sets(&self, other: &Self) -> bool {
        self.roots == other.roots && self.sets == other.sets && self.named == other.named
    }
}

impl Validate for Nrf {
    fn validate(&self, faults: &mut Faults) {
        for (i, root) in self.roots.iter().enumerate() {
            super::check_root(faults, &format!("roots[{i}]"), root);
        }
        for (i, set) in self.sets.iter().enumerate() {
            if set.roots.is_empty() {
                faults
                    .at(format!("sets[{i}].roots"))
                    .say("is empty", "at least one, such as http://nrf.example.org:8010");
            }
            for (j, root) in set.roots.iter().enumerate() {
                super::check_root(faults, &format!("sets[{i}].roots[{j}]"), root);
            }
            for (j, plmn) in set.plmns.iter().enumerate() {
                super::check_plmn(faults, format!("sets[{i}].plmns[{j}]"), plmn);
            }
        }
        for (i, root) in self.named.roots.iter().enumerate() {
            super::check_root(faults, &format!("named.roots[{i}]"), root);
        }
        for (key, count) in [
            ("maxProducers", self.max_producers),
            ("maxLookupsWaiting", self.max_lookups_waiting),
            ("maxLookups", self.max_lookups),
            ("lookupRate", self.lookup_rate as usize),
        ] {
            if count == 0 {
                faults.at(key).say("is 0", "at least 1");
            }
        }
        if self.max_lookups > 1_024 {
            faults.at("maxLookups").say("is too many", "at most 1024");
        }
        if self.sets.len() > 64 {
            faults.at("sets").say("has too many", "at most 64");
        }
        for (key, period, shown) in [
            ("auditInterval", self.audit_interval, "300s"),
            ("subscriptionValidity", self.subscription_validity, "1h"),
            ("timeout", self.timeout, "2s"),
            ("retryInterval", self.retry_interval, "2s"),
            ("heartBeat", self.heart_beat, "30s"),
        ] {
            if period.is_zero() {
                faults.at(key).say("is 0", format!("a period such as {shown}"));
            }
        }
    }
}
