//! Policies of services: how the SCP selects the producer, where it may look for another one, timeouts and the number
//! of attempts.

use std::time::Duration;

use ahash::AHashMap;
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::created::Resource;

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

/// Where the SCP looks for another producer when an attempt failed.
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

/// Selection and reselection for one phase of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct StagePolicy {
    /// How the producer is chosen.
    pub route: Route,
    /// Where the SCP looks for another producer.
    pub reroute: Reroute,
}

/// Phase of a conversation that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The request begins a conversation: a producer has not created its resource before.
    Initial,
    /// The request is for a resource that a producer holds.
    Subsequent,
}

/// Decides for matching error answers whether the SCP tries another producer. An empty member matches every answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RerouteRule {
    /// Status codes.
    pub status: Vec<u16>,
    /// `cause` of the problem details (`NF_CONGESTION`).
    pub causes: Vec<String>,
    /// Methods of the request.
    pub methods: Vec<String>,
    /// Only answers with a `Retry-After` of at least this many seconds; 0: with or without one.
    pub retry_after_from: u64,
    /// Whether another producer is tried.
    pub reroute: bool,
}

impl RerouteRule {
    /// Whether the rule matches an answer: `cause` reads the problem details, `retry_after` is in seconds.
    fn fits(
        &self,
        method: &Method,
        status: u16,
        cause: &mut dyn FnMut() -> Option<String>,
        retry_after: Option<u64>,
    ) -> bool {
        (self.status.is_empty() || self.status.contains(&status))
            && (self.methods.is_empty() || self.methods.iter().any(|one| one == method.as_str()))
            && (self.retry_after_from == 0 || retry_after.is_some_and(|after| after >= self.retry_after_from))
            && (self.causes.is_empty() || cause().is_some_and(|cause| self.causes.contains(&cause)))
    }
}

/// The policy of a service. The defaults suit services that keep their state in a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ServicePolicy {
    /// Service names this policy is for (`npcf-smpolicycontrol`); empty: all services that no other policy names.
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
    /// Rules that decide for matching error answers whether the SCP tries another producer; the first match counts, and
    /// `rerouteOnStatus` if no rule matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reroute_rules: Vec<RerouteRule>,
    /// Whether the SCP tries another producer also for a request that is not idempotent and was sent but not answered,
    /// so that it may have had an effect. Off: for such requests another attempt follows only a failure that is known
    /// to precede any processing.
    pub reroute_unsafe: bool,
    /// Whether a request that is not idempotent may go to another producer after the stream was refused
    /// (RST_STREAM with REFUSED_STREAM). RFC 9113 §8.7 says that such a request was not processed, but proxies before a
    /// producer (HAProxy, Envoy, nghttpx) also say it of requests that they have passed on and lost. Off: the consumer
    /// gets the error, as for any request whose outcome is unknown. On: only for producers without such a proxy.
    pub refused_is_unprocessed: bool,
    /// Whether the SCP also looks in DNS for alternates of a producer that failed: the targets of the SRV records
    /// `_http._tcp` or `_https._tcp` of its FQDN (RFC 2782), when no other known producer may be tried. The limits of
    /// `reroute` and `attempts` hold for them as well.
    pub dns_srv_alternates: bool,
    /// Whether this SCP acts as a reverse proxy of the producers: it replaces the API root of the URI in `Location` by
    /// one of its own (`apiRoot`) that encodes the producer, and answers do not carry `3gpp-Sbi-Target-apiRoot`. Meant
    /// for consumers that follow `Location` without knowing an SCP; others do not need it. URIs in bodies stay
    /// unchanged.
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
            reroute_rules: Vec::new(),
            reroute_unsafe: false,
            refused_is_unprocessed: false,
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

    /// Whether the SCP may try another producer after an error answer. Calls `cause` only if a rule names causes.
    pub fn reroutes_answer(
        &self,
        method: &Method,
        status: u16,
        mut cause: impl FnMut() -> Option<String>,
        retry_after: Option<u64>,
    ) -> bool {
        let mut rules = self.reroute_rules.iter();
        let rule = rules.find(|rule| rule.fits(method, status, &mut cause, retry_after));
        rule.map_or_else(|| self.reroute_on_status.contains(&status), |rule| rule.reroute)
    }

    /// `total_timeout_ms`.
    #[must_use]
    pub fn total_timeout(&self) -> Duration {
        Duration::from_millis(self.total_timeout_ms.into())
    }

    /// Returns each invalid member, and what would be right.
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
            .chain(self.reroute_rules.iter().flat_map(|rule| &rule.status))
            .find(|status| !(300..=599).contains(*status))
        {
            faults.push((
                "rerouteOnStatus",
                format!("{status} is not a redirection or an error: expected 300 to 599"),
            ));
        }
        faults
    }
}

impl Route {
    /// Describes where a request goes.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Forward => "the producer that the request names, or to the best candidate",
            Self::LoadBalance => "any member of the named producer's set",
        }
    }
}

impl Reroute {
    /// Describes where another attempt may go.
    pub fn describe(self) -> &'static str {
        match self {
            Self::None => "if it fails, the SCP tries no other producer",
            Self::WithinSite => "if it fails, the SCP tries another producer of this site",
            Self::WithinRegion => "if it fails, the SCP tries another producer of this region",
            Self::Anywhere => "if it fails, the SCP tries another producer of any region",
        }
    }

    /// The greatest distance at which another producer may be; `None`: no other producer may be tried.
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
    /// Describes the phase of a request.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Initial => "begins a conversation",
            Self::Subsequent => "continues a conversation",
        }
    }

    /// Returns the phase of a request by its method, the kind of resource of its path
    /// (`/{apiName}/{version}/{resource…}`, without a prefix), and whether it carries a routing binding. A `POST`, `PUT`
    /// or `GET` begins a conversation unless it is for a resource that a producer has created.
    #[must_use]
    pub fn of(method: &Method, path: &str, bound: bool) -> Self {
        if bound {
            return Self::Subsequent;
        }
        let begins = match Resource::of(path) {
            Resource::Created => false,
            Resource::Other => matches!(*method, Method::POST | Method::PUT | Method::GET),
            Resource::Unknown(segments) => *method == Method::POST && segments <= 3,
        };
        match begins {
            true => Self::Initial,
            false => Self::Subsequent,
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
    /// Builds the table; the first policy that names a service (or names none) counts.
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

    /// Whether this SCP is a reverse proxy for any service.
    #[must_use]
    pub fn any_reverse_proxy(&self) -> bool {
        let all = self.by_service.values().chain([&self.others]);
        all.into_iter().any(|policy| policy.reverse_proxy_support)
    }

    /// The policy of all services, where none has its own.
    #[must_use]
    pub fn of_all(&self) -> Option<&ServicePolicy> {
        self.by_service.is_empty().then_some(&self.others)
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
        let of = |method: &Method, path| Phase::of(method, path, false);
        for (method, path) in [
            (Method::POST, "/npcf-smpolicycontrol/v1/sm-policies"),
            (Method::PUT, "/nudm-uecm/v1/imsi-1/registrations/amf-3gpp-access"),
            (
                Method::POST,
                "/nudm-ueau/v1/imsi-1/security-information/generate-auth-data",
            ),
            (Method::POST, "/namf-comm/v1/ue-contexts/imsi-1/n1-n2-messages"),
            (Method::POST, "/nudm-sdm/v2/imsi-1/sdm-subscriptions"),
            (Method::GET, "/nudm-sdm/v2/imsi-1/am-data"),
            (Method::POST, "/x/v1/things"),
        ] {
            assert_eq!(of(&method, path), Phase::Initial, "{method} {path}");
            assert_eq!(
                Phase::of(&method, path, true),
                Phase::Subsequent,
                "{method} {path}"
            );
        }
        for (method, path) in [
            (Method::POST, "/npcf-smpolicycontrol/v1/sm-policies/7/update"),
            (Method::GET, "/npcf-smpolicycontrol/v1/sm-policies/7"),
            (Method::PUT, "/nbsf-management/v1/subscriptions/7"),
            (Method::DELETE, "/nudm-sdm/v2/imsi-1/sdm-subscriptions/5"),
            (Method::DELETE, "/nudm-uecm/v1/x"),
            (
                Method::PATCH,
                "/nudm-uecm/v1/imsi-1/registrations/amf-3gpp-access",
            ),
            (Method::POST, "/x/v1/things/7/change"),
        ] {
            assert_eq!(of(&method, path), Phase::Subsequent, "{method} {path}");
        }
    }

    #[test]
    fn rules_decide_by_cause_method_and_retry_after_before_the_status() {
        let policy = ServicePolicy {
            reroute_rules: vec![
                RerouteRule {
                    causes: vec!["CONTEXT_NOT_FOUND".into()],
                    status: vec![404],
                    reroute: true,
                    ..RerouteRule::default()
                },
                RerouteRule {
                    methods: vec!["POST".into()],
                    retry_after_from: 10,
                    ..RerouteRule::default()
                },
            ],
            ..ServicePolicy::default()
        };
        let of = |method: &Method, status, cause: &str, after| {
            policy.reroutes_answer(method, status, || Some(cause.to_owned()), after)
        };
        assert!(of(&Method::GET, 404, "CONTEXT_NOT_FOUND", None));
        assert!(!of(&Method::GET, 404, "USER_NOT_FOUND", None));
        assert!(of(&Method::POST, 503, "NF_CONGESTION", Some(5)));
        assert!(!of(&Method::POST, 503, "NF_CONGESTION", Some(10)));
        assert!(of(&Method::PUT, 503, "NF_CONGESTION", Some(10)));
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
