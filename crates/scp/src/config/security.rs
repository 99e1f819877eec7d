//! Access tokens, client credentials assertions, and access rules.

use sbi::oauth::AssertionSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Audience that a token is requested for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TokenLevel {
    /// All producers of the type.
    #[default]
    NfType,
    /// The NF set of the selected producer; its NF type if it is in no set.
    NfSet,
    /// The NF service set of the selected service instance; its NF type if it is in no set.
    NfServiceSet,
    /// The selected producer.
    NfInstance,
}

/// Audience of the tokens of some services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServiceLevel {
    /// API names.
    pub services: Vec<String>,
    /// Audience of their tokens.
    pub level: TokenLevel,
}

impl Tokens {
    /// Audience of a token for a service.
    #[must_use]
    pub fn level_of(&self, service: &str) -> TokenLevel {
        let named = |one: &&ServiceLevel| one.services.iter().any(|name| name == service);
        self.levels.iter().find(named).map_or(self.level, |one| one.level)
    }
}

/// Requests for which the SCP fetches tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TokenUse {
    /// Requests whose producer this SCP selects (Model D).
    #[default]
    Delegated,
    /// All requests without a token.
    Missing,
}

/// Access tokens fetched from the NRF for consumers (TS 29.500 §6.7.3, TS 33.501 §13.4.1.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tokens {
    /// Whether the SCP fetches tokens.
    pub enabled: bool,
    /// For which requests.
    pub requests: TokenUse,
    /// Audience that tokens are requested for.
    pub level: TokenLevel,
    /// Services with another audience than `level`; the first that names a service counts.
    pub levels: Vec<ServiceLevel>,
    /// API names whose requests get tokens; empty: all.
    pub services: Vec<String>,
    /// Whether the SCP fetches tokens only for consumers that prove their NF instance id by an assertion or by the
    /// certificate of their connection. Otherwise the identity in the request counts; such a token is used only for
    /// requests from the same address with the same assertion.
    pub require_proof: bool,
    /// Whether requests without the NF instance id of the consumer get tokens in the name of this SCP, as its NF type.
    /// Off: they are answered 400 `MISSING_ACCESS_TOKEN_INFO`.
    pub in_own_name: bool,
    /// Whether the answer carries the fetched token in `3gpp-Sbi-Access-Token`, so that the consumer may send further
    /// requests with it.
    pub convey: bool,
    /// Cached tokens at most.
    pub cache_size: usize,
    /// Requests to NRFs for tokens in flight at most, of all workers together. A request that needs one more is answered
    /// 503 `NF_CONGESTION`.
    pub max_fetching: usize,
    /// Remaining life from which the SCP fetches a new token while it still uses the old one.
    pub refresh_before: Period,
    /// Remaining life from which a token is not used.
    pub margin: Period,
    /// Time for which a refusal of the NRF is cached.
    pub remember_refusal: Period,
    /// Timeout of a request to an NRF.
    pub timeout: Period,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            enabled: false,
            requests: TokenUse::default(),
            level: TokenLevel::default(),
            levels: Vec::new(),
            services: Vec::new(),
            require_proof: false,
            in_own_name: false,
            convey: false,
            cache_size: 100_000,
            max_fetching: 10_000,
            refresh_before: Period::from_secs(60),
            margin: Period::from_secs(5),
            remember_refusal: Period::from_secs(1),
            timeout: Period::from_secs(2),
        }
    }
}

/// Decides whether matching consumers may use matching producers. An empty member matches all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AccessRule {
    /// Consumers by NF type, NF instance id, or the whole `User-Agent`.
    pub consumers: Vec<String>,
    /// PLMNs of the consumer (`001-01`), by `3gpp-Sbi-Originating-Network-Id` or by `requester-plmn-list`
    /// of the discovery.
    pub consumer_plmns: Vec<String>,
    /// Producers by NF type, NF instance id or NF set id.
    pub producers: Vec<String>,
    /// API names.
    pub services: Vec<String>,
    /// Slices of the request (`1` or `1-0000ab`), by its discovery parameters.
    pub slices: Vec<String>,
    /// Whether the request is refused; otherwise it is allowed, whatever later rules say.
    pub deny: bool,
}

/// Access control and authentication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Security {
    /// Access tokens fetched for consumers.
    pub tokens: Tokens,
    /// Client credentials assertions.
    pub assertions: AssertionSettings,
    /// Access rules; the first that matches counts. A request without a match is allowed.
    pub access: Vec<AccessRule>,
}

/// A slice as rules write it: `1` or `1-0000ab`.
pub(crate) fn slice(text: &str) -> Option<(u8, Option<u32>)> {
    match text.split_once('-') {
        None => Some((text.parse().ok()?, None)),
        Some((sst, sd)) if sd.len() == 6 => {
            Some((sst.parse().ok()?, Some(u32::from_str_radix(sd, 16).ok()?)))
        }
        Some(_) => None,
    }
}

impl Validate for Security {
    fn validate(&self, faults: &mut Faults) {
        let tokens = &self.tokens;
        if tokens.cache_size == 0 {
            faults.at("tokens.cacheSize").say("is 0", "at least 1");
        }
        if tokens.max_fetching == 0 {
            faults.at("tokens.maxFetching").say("is 0", "at least 1");
        }
        for (i, level) in tokens.levels.iter().enumerate() {
            if level.services.is_empty() {
                faults
                    .at(format!("tokens.levels[{i}].services"))
                    .say("is empty", "at least one API name, such as nudm-sdm");
            }
        }
        if tokens.margin > tokens.refresh_before {
            faults.at("tokens.refreshBefore").say(
                format!("{} is less than `margin`", tokens.refresh_before),
                format!("at least {}", tokens.margin),
            );
        }
        if tokens.timeout.is_zero() {
            faults.at("tokens.timeout").say("is 0", "a period such as 2s");
        }
        faults.within("assertions", &self.assertions);
        for (i, rule) in self.access.iter().enumerate() {
            for (j, plmn) in rule.consumer_plmns.iter().enumerate() {
                super::check_plmn(faults, format!("access[{i}].consumerPlmns[{j}]"), plmn);
            }
            for (j, slice) in rule.slices.iter().enumerate() {
                if self::slice(slice).is_none() {
                    faults.at(format!("access[{i}].slices[{j}]")).say(
                        format!("`{slice}` is not a slice"),
                        "SST or SST-SD, such as 1 or 1-0000ab",
                    );
                }
            }
        }
    }
}
