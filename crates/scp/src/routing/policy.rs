//! What may be done for the requests of a service: how the producer is chosen, where another one may be
//! looked for, how long and how often.

use std::time::Duration;

use ahash::AHashMap;
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the producer of a request is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Route {
    /// To the producer that the request names; another only by rerouting.
    #[default]
    Forward,
    /// To any member of the set of the producer that the request names, by priority, capacity and load.
    LoadBalance,
}

/// Where another producer is looked for when an attempt failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Reroute {
    /// Nowhere: the failure is the answer.
    None,
    /// On this site.
    WithinSite,
    /// In this region, this site first.
    #[default]
    WithinRegion,
    /// Everywhere, the nearest first.
    Anywhere,
}

/// Which producers belong to a deployment of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Those of this site.
    SiteWide,
    /// Those of this region.
    Regional,
    /// All.
    #[default]
    Global,
}

/// Choice and re-choice for one phase of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct StagePolicy {
    /// How the producer is chosen.
    pub route: Route,
    /// Where another one is looked for.
    pub reroute: Reroute,
}

/// Where in a conversation a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It begins one: a `POST` to a collection without a routing binding, or anything to be discovered.
    Initial,
    /// It goes on with a resource that some producer holds.
    Subsequent,
}

/// The policy of a service. The defaults suit services that keep their state in a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ServicePolicy {
    /// Service names this policy is for (`npcf-smpolicycontrol`); empty: all that no other policy names.
    pub services: Vec<String>,
    /// Requests that begin a conversation.
    pub initial: StagePolicy,
    /// Requests that continue one.
    pub subsequent: StagePolicy,
    /// Which producers belong to the deployment.
    pub scope: Scope,
    /// How long one producer may take to answer, in milliseconds; 1 to 600000.
    pub response_timeout_ms: u32,
    /// How long all attempts together may take, in milliseconds. A shorter `3gpp-Sbi-Max-Rsp-Time` counts.
    pub total_timeout_ms: u32,
    /// How many producers are tried at most, the first included; 1 to 10.
    pub attempts: u8,
    /// Status codes of a producer that make the SCP try another.
    pub reroute_on_status: Vec<u16>,
    /// Try another producer also when a request that is not idempotent may have had effect already (it was
    /// sent, and no answer came). Off: only failures known to precede any processing are followed by
    /// another attempt for such requests.
    pub reroute_unsafe: bool,
    /// Whether alternates of a producer that failed are looked for in DNS, too: at the targets of the SRV
    /// records `_http._tcp` or `_https._tcp` of its FQDN, when no other producer that is known may be tried
    /// (RFC 2782). What `reroute` and `attempts` allow is allowed there as well.
    pub dns_srv_alternates: bool,
    /// Whether this SCP stands in the place of the producers: the URI in `Location` gets an API root at this SCP
    /// (`apiRoot`) that says where the resource is, and answers do not name the producer in
    /// `3gpp-Sbi-Target-apiRoot`. For consumers that go where `Location` says and know of no SCP; those that do
    /// need it not. URIs in bodies stay.
    pub reverse_proxy_support: bool,
}

impl Default for ServicePolicy {
    fn default() -> Self {
        Self {
            services: Vec::new(),
            initial: StagePolicy::default(),
            subsequent: StagePolicy::default(),
            scope: Scope::default(),
            response_timeout_ms: 3_000,
            total_timeout_ms: 10_000,
            attempts: 3,
            reroute_on_status: vec![503],
            reroute_unsafe: false,
            dns_srv_alternates: false,
            reverse_proxy_support: false,
        }
    }
}

impl ServicePolicy {
    /// The policy of this phase.
    #[must_use]
    pub fn stage(&self, phase: Phase) -> StagePolicy {
        match phase {
            Phase::Initial => self.initial,
            Phase::Subsequent => self.subsequent,
        }
    }

    /// `response_timeout_ms`.
    #[must_use]
    pub fn response_timeout(&self) -> Duration {
        Duration::from_millis(self.response_timeout_ms.into())
    }

    /// `total_timeout_ms`.
    #[must_use]
    pub fn total_timeout(&self) -> Duration {
        Duration::from_millis(self.total_timeout_ms.into())
    }

    /// What is wrong with it: the member, and what would be right.
    #[must_use]
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if !(1..=600_000).contains(&self.response_timeout_ms) {
            faults.push(("responseTimeoutMs", "expected 1 to 600000".to_owned()));
        }
        if self.total_timeout_ms < self.response_timeout_ms {
            let message = format!(
                "expected at least responseTimeoutMs ({})",
                self.response_timeout_ms
            );
            faults.push(("totalTimeoutMs", message));
        }
        if !(1..=10).contains(&self.attempts) {
            faults.push(("attempts", "expected 1 to 10".to_owned()));
        }
        if let Some(status) = self
            .reroute_on_status
            .iter()
            .find(|status| !(300..=599).contains(*status))
        {
            faults.push((
                "rerouteOnStatus",
                format!("{status} is no failure: expected 300 to 599"),
            ));
        }
        faults
    }
}

impl Reroute {
    /// The greatest distance at which another producer may be; `None`: there is to be no other.
    #[must_use]
    pub fn reach(self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::WithinSite => Some(super::Places::SITE),
            Self::WithinRegion => Some(super::Places::REGION),
            Self::Anywhere => Some(super::Places::ELSEWHERE),
        }
    }
}

impl Scope {
    /// The greatest distance of a producer of the deployment.
    #[must_use]
    pub fn reach(self) -> u8 {
        match self {
            Self::SiteWide => super::Places::SITE,
            Self::Regional => super::Places::REGION,
            Self::Global => super::Places::ELSEWHERE,
        }
    }
}

impl Phase {
    /// The phase of a request: by its method, its path (`/{apiName}/{version}/{resource…}` without prefix),
    /// and whether it carries a routing binding or is to be discovered.
    #[must_use]
    pub fn of(method: &Method, path: &str, bound: bool, to_discover: bool) -> Self {
        if bound {
            return Self::Subsequent;
        }
        let segments = path.split('/').filter(|segment| !segment.is_empty()).count();
        if to_discover || (*method == Method::POST && segments <= 3) {
            Self::Initial
        } else {
            Self::Subsequent
        }
    }
}

/// The policies of all services.
#[derive(Clone, Debug, Default)]
pub struct PolicyTable {
    by_service: AHashMap<String, std::sync::Arc<ServicePolicy>>,
    others: std::sync::Arc<ServicePolicy>,
}

impl PolicyTable {
    /// Of policies as configured; the first one that names a service (or names none) counts.
    #[must_use]
    pub fn new(policies: &[ServicePolicy]) -> Self {
        let mut table = Self::default();
        let mut general = None;
        for policy in policies {
            let policy = std::sync::Arc::new(policy.clone());
            if policy.services.is_empty() {
                general.get_or_insert(policy);
                continue;
            }
            for service in &policy.services {
                table
                    .by_service
                    .entry(service.clone())
                    .or_insert_with(|| policy.clone());
            }
        }
        table.others = general.unwrap_or_default();
        table
    }

    /// Whether this SCP stands in the place of the producers of any service.
    #[must_use]
    pub fn any_reverse_proxy(&self) -> bool {
        let all = self.by_service.values().chain([&self.others]);
        all.into_iter().any(|policy| policy.reverse_proxy_support)
    }

    /// The policy of this service.
    #[must_use]
    pub fn of(&self, service: &str) -> &ServicePolicy {
        self.by_service.get(service).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases() {
        let of = |method: &Method, path, bound, discover| Phase::of(method, path, bound, discover);
        assert_eq!(
            of(
                &Method::POST,
                "/npcf-smpolicycontrol/v1/sm-policies",
                false,
                false
            ),
            Phase::Initial
        );
        assert_eq!(
            of(
                &Method::POST,
                "/npcf-smpolicycontrol/v1/sm-policies/7/update",
                false,
                false
            ),
            Phase::Subsequent
        );
        assert_eq!(
            of(&Method::POST, "/npcf-smpolicycontrol/v1/sm-policies", true, true),
            Phase::Subsequent
        );
        assert_eq!(
            of(&Method::GET, "/nudm-sdm/v2/imsi-1/am-data", false, true),
            Phase::Initial
        );
        assert_eq!(
            of(&Method::DELETE, "/nudm-uecm/v1/x", false, false),
            Phase::Subsequent
        );
    }

    #[test]
    fn the_policy_that_names_the_service_counts() {
        let named = ServicePolicy {
            services: vec!["a".into()],
            attempts: 1,
            ..Default::default()
        };
        let general = ServicePolicy {
            attempts: 2,
            ..Default::default()
        };
        let table = PolicyTable::new(&[general, named]);
        assert_eq!((table.of("a").attempts, table.of("b").attempts), (1, 2));
        assert_eq!(PolicyTable::new(&[]).of("b"), &ServicePolicy::default());
    }

    #[test]
    fn mistakes_are_told() {
        assert!(ServicePolicy::default().faults().is_empty());
        let wrong = ServicePolicy {
            response_timeout_ms: 0,
            attempts: 11,
            reroute_on_status: vec![503, 200],
            ..Default::default()
        };
        let members: Vec<_> = wrong.faults().into_iter().map(|(member, _)| member).collect();
        assert_eq!(members, ["responseTimeoutMs", "attempts", "rerouteOnStatus"]);
    }
}
