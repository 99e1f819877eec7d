//! NRFs and the profiles learned from them.

use function::sbi::config::check_root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// API of the audit.
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

/// Which NRFs the SCP queries because a request names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AcceptNrfs {
    /// None: the header is ignored.
    Ignore,
    /// Those of `nrf.roots`, `nrf.sets` and `roots` here; a request that names another is refused.
    #[default]
    Known,
    /// Every one. A consumer then decides which NRF finds the producer and grants the token, and to which host this SCP
    /// connects: use it only if all consumers are trusted.
    Any,
}

/// NRFs that requests name in `3gpp-Sbi-Nrf-Uri` (TS 29.500 §5.2.3.2.12).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NamedNrfs {
    /// Which NRFs requests may name.
    pub accept: AcceptNrfs,
    /// API roots of further NRFs that requests may name, beside `nrf.roots` and `nrf.sets`.
    pub roots: Vec<String>,
    /// With `any`: unknown NRFs that a worker uses at a time, for discoveries and for tokens each. An NRF without a
    /// query for 60 s may be evicted; requests that name a further one are refused.
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
    /// Networks (`262-01`) whose producers this set discovers and for which it grants tokens, by `target-plmn-list`.
    /// Queries without a network of a set go to `nrf.roots`.
    pub plmns: Vec<String>,
    /// Localities (`preferred-locality`) whose producers this set discovers and for which it grants tokens. With
    /// `plmns`: among the sets of the network. Where the set finds no producer or does not answer, the SCP queries the
    /// set that it would query without the preference.
    pub localities: Vec<String>,
    /// Regions of `places.regions` whose localities count as named in `localities`.
    pub regions: Vec<String>,
    /// NF types whose profiles are learned from it; empty: those of `nrf.nfTypes`.
    pub nf_types: Vec<String>,
}

/// NRFs and the profiles learned from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Nrf {
    /// API roots of the NRFs of the set, in order of preference; if one does not answer, the SCP queries the next.
    /// Empty: no NRF, only `producers`.
    pub roots: Vec<String>,
    /// Further sets of NRFs: the SCP learns their profiles as well, and queries them for producers of their networks or
    /// localities.
    pub sets: Vec<NrfSet>,
    /// NRFs that requests name.
    pub named: NamedNrfs,
    /// NF types whose profiles are learned by subscription, notification and audit.
    pub nf_types: Vec<String>,
    /// Interval of the audit, which retrieves all profiles in case a notification was lost.
    pub audit_interval: Period,
    /// API of the audit.
    pub audit_mode: AuditMode,
    /// Validity that subscriptions request; the SCP renews them before they end.
    pub subscription_validity: Period,
    /// Timeout of a request to an NRF.
    pub timeout: Period,
    /// Pause before the next request when no NRF answers.
    pub retry_interval: Period,
    /// Whether this SCP registers its own profile and sends heart-beats.
    pub register: bool,
    /// SCP domains in its profile (`scpDomains`).
    pub scp_domains: Vec<String>,
    /// Interval of heart-beats that the profile requests.
    pub heart_beat: Period,
    /// Known producers at most, those of `producers` included; the SCP ignores further ones.
    pub max_producers: usize,
    /// Pending look-ups at NRFs of NFs that notifications name, those in flight included; a further notification is
    /// dropped, and the audit finds its change.
    pub max_lookups_waiting: usize,
    /// Look-ups in flight at most; 1 to 1024.
    pub max_lookups: usize,
    /// Time for which the SCP still forwards requests to a deregistered or moved producer that they name, because it may
    /// still hold their resources. 0: not at all.
    pub departure_grace: Period,
    /// Look-ups per second at most.
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
    /// Whether both settings name the same NRFs: their answers and tokens then outlive a reload.
    pub(crate) fn same_sets(&self, other: &Self) -> bool {
        self.roots == other.roots && self.sets == other.sets && self.named == other.named
    }
}

impl Validate for Nrf {
    fn validate(&self, faults: &mut Faults) {
        for (i, root) in self.roots.iter().enumerate() {
            check_root(root, &format!("roots[{i}]"), faults);
        }
        for (i, set) in self.sets.iter().enumerate() {
            if set.roots.is_empty() {
                faults
                    .at(format!("sets[{i}].roots"))
                    .say("is empty", "at least one, such as http://nrf.example.org:8010");
            }
            for (j, root) in set.roots.iter().enumerate() {
                check_root(root, &format!("sets[{i}].roots[{j}]"), faults);
            }
            for (j, plmn) in set.plmns.iter().enumerate() {
                super::check_plmn(faults, format!("sets[{i}].plmns[{j}]"), plmn);
            }
        }
        for (i, root) in self.named.roots.iter().enumerate() {
            check_root(root, &format!("named.roots[{i}]"), faults);
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
