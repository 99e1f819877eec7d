//! Other NRFs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Requests that other NRFs answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Forwarding {
    /// Rules in order; the first that fits counts.
    pub rules: Vec<ForwardingRule>,
    /// Whether queries with `hnrf-uri`, or for other PLMNs only, go to the NRF of the home network. The latter needs
    /// `ownPlmns`.
    pub roaming: bool,
    /// PLMNs of this network (`001-01`).
    pub own_plmns: Vec<String>,
    /// NRFs of other networks, queried for their PLMNs when a query has no `hnrf-uri`.
    pub home_networks: Vec<HomeNetwork>,
    /// Whether requests for a network without an entry in `homeNetworks` go to the NRF name of TS 23.003
    /// (`https://nrf.5gc.mnc002.mcc262.3gppnetwork.org`).
    pub derive_home_nrf: bool,
    /// NRFs that `hnrf-uri`, `hnrfUri` and `hnrfAccessTokenUri` may name: API roots, or hosts (`nrf.example.org`,
    /// `*.3gppnetwork.org`). Empty: any that `outgoing` permits.
    pub allowed_home_nrfs: Vec<String>,
    /// API root of the SEPP for requests to NRFs of other networks (`3gpp-Sbi-Target-apiRoot`); absent: no SEPP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sepp: Option<String>,
    /// Whether a discovery that finds nothing here goes to an NRF that has registered with this one, and whose
    /// `nrfInfo` has an NF that matches.
    pub by_nrf_info: bool,
    /// Requests per second that all workers send to other NRFs together, further attempts included. Beyond it the consumer is answered
    /// 503. 0: no bound.
    pub rate: u32,
    /// Timeout of a request to another NRF.
    pub timeout: Period,
    /// NRFs a query may pass at most, this one included.
    pub max_hops: u8,
}

/// The NRFs of another network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct HomeNetwork {
    /// Its PLMNs (`262-02`).
    pub plmns: Vec<String>,
    /// API roots of its NRFs, in order of preference.
    pub nrfs: Vec<String>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ForwardingRule {
    /// Target NF types; empty: all.
    pub nf_types: Vec<String>,
    /// Service names, one of which the query must name; empty: all.
    pub services: Vec<String>,
    /// Operations to which the rule applies.
    pub operations: Vec<ForwardedOperation>,
    /// API roots of the other NRFs, in order of preference.
    pub targets: Vec<String>,
    /// Whether the NRF forwards only if it has no match itself: no profile to discover, to issue a token for, or of the
    /// type of the subscription.
    pub when_empty: bool,
}

/// Operations that the NRF can forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ForwardedOperation {
    /// Nnrf_NFDiscovery (TS 29.510 §5.3.2.2.3).
    Discovery,
    /// Nnrf_AccessToken (TS 29.510 §5.4.2.2.3).
    AccessToken,
    /// Nnrf_NFManagement_NFStatusSubscribe (TS 29.510 §5.2.2.5.4); the subscription is the other NRF's.
    Subscription,
}

impl Default for ForwardingRule {
    fn default() -> Self {
        Self {
            nf_types: Vec::new(),
            services: Vec::new(),
            operations: vec![ForwardedOperation::Discovery],
            targets: Vec::new(),
            when_empty: false,
        }
    }
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            roaming: true,
            own_plmns: Vec::new(),
            home_networks: Vec::new(),
            derive_home_nrf: true,
            allowed_home_nrfs: Vec::new(),
            sepp: None,
            by_nrf_info: true,
            rate: 0,
            timeout: Period::from_secs(2),
            max_hops: 4,
        }
    }
}

impl Forwarding {
    /// The networks of this NRF.
    #[must_use]
    pub fn plmns(&self) -> Vec<model::PlmnId> {
        let texts = self.own_plmns.iter();
        texts.filter_map(|plmn| plmn.parse().ok()).collect()
    }

    /// Whether a consumer may name an NRF of another network.
    #[must_use]
    pub fn allows_home_nrf(&self, origin: &sbi::client::Origin) -> bool {
        let host = origin.host();
        let fits = |allowed: &String| match allowed.parse::<sbi::client::Origin>() {
            Ok(allowed) => allowed == *origin,
            Err(_) => match allowed.strip_prefix('*') {
                Some(domain) => {
                    let at = host.len().checked_sub(domain.len());
                    let end = at.and_then(|at| host.get(at..));
                    at != Some(0) && end.is_some_and(|end| end.eq_ignore_ascii_case(domain))
                }
                None => host.eq_ignore_ascii_case(allowed),
            },
        };
        self.allowed_home_nrfs.is_empty() || self.allowed_home_nrfs.iter().any(fits)
    }
}

impl Validate for Forwarding {
    fn validate(&self, faults: &mut Faults) {
        for (i, rule) in self.rules.iter().enumerate() {
            if rule.targets.is_empty() {
                faults
                    .at(format!("rules[{i}].targets"))
                    .say("is empty", "at least one API root");
            }
            check_roots(&format!("rules[{i}].targets"), &rule.targets, faults);
        }
        check_plmns("ownPlmns", &self.own_plmns, faults);
        for (i, home) in self.home_networks.iter().enumerate() {
            if home.nrfs.is_empty() {
                faults
                    .at(format!("homeNetworks[{i}].nrfs"))
                    .say("is empty", "at least one API root");
            }
            check_plmns(&format!("homeNetworks[{i}].plmns"), &home.plmns, faults);
            check_roots(&format!("homeNetworks[{i}].nrfs"), &home.nrfs, faults);
        }
        for (i, allowed) in self.allowed_home_nrfs.iter().enumerate() {
            let host = allowed.strip_prefix('*').unwrap_or(allowed);
            if allowed.contains('/') && allowed.parse::<sbi::client::Origin>().is_err() || host.is_empty() {
                faults.at(format!("allowedHomeNrfs[{i}]")).say(
                    format!("`{allowed}` is neither an API root nor a host"),
                    "https://nrf.example.org, nrf.example.org or *.example.org",
                );
            }
        }
        check_roots("sepp", self.sepp.as_slice(), faults);
    }
}

fn check_roots(at: &str, roots: &[String], faults: &mut Faults) {
    for (i, root) in roots.iter().enumerate() {
        if root.parse::<sbi::client::Origin>().is_err() {
            faults
                .at(format!("{at}[{i}]"))
                .say(format!("`{root}` is not an API root"), "http://host:port");
        }
    }
}

fn check_plmns(at: &str, plmns: &[String], faults: &mut Faults) {
    for (i, plmn) in plmns.iter().enumerate() {
        if plmn.parse::<model::PlmnId>().is_err() {
            faults
                .at(format!("{at}[{i}]"))
                .say(format!("`{plmn}` is not a PLMN"), "MCC-MNC: 001-01");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_nrfs_may_be_listed() {
        let settings = Forwarding {
            allowed_home_nrfs: ["https://a.example.org", "b.example.org", "*.3gppnetwork.org"]
                .map(str::to_owned)
                .into(),
            ..Forwarding::default()
        };
        let allows = |uri: &str| settings.allows_home_nrf(&uri.parse().unwrap());
        for good in [
            "https://a.example.org",
            "http://B.example.org:8080",
            "https://nrf.5gc.mnc002.mcc262.3gppnetwork.org",
        ] {
            assert!(allows(good), "{good}");
        }
        for bad in [
            "http://a.example.org",
            "https://evil3gppnetwork.org",
            "http://10.0.0.1",
            "https://x.b.example.org",
        ] {
            assert!(!allows(bad), "{bad}");
        }
        assert!(Forwarding::default().allows_home_nrf(&"http://10.0.0.1".parse().unwrap()));
    }
}
