//! Access tokens, client credentials assertions, and who may use what.

use sbi::oauth::AssertionSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Whom a token is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TokenLevel {
    /// All producers of the type.
    #[default]
    NfType,
    /// The NF set of the chosen producer; its type where it is in none.
    NfSet,
    /// The NF service set of the chosen service instance; its type where it is in none.
    NfServiceSet,
    /// The chosen producer.
    NfInstance,
}

/// Whom the tokens of some services are asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServiceLevel {
    /// API names.
    pub services: Vec<String>,
    /// Whom their tokens are asked for.
    pub level: TokenLevel,
}

impl Tokens {
    /// Whom a token for a service is asked for.
    #[must_use]
    pub fn level_of(&self, service: &str) -> TokenLevel {
        let named = |one: &&ServiceLevel| one.services.iter().any(|name| name == service);
        self.levels.iter().find(named).map_or(self.level, |one| one.level)
    }
}

/// For which requests tokens are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TokenUse {
    /// Those whose producer this SCP has chosen (Model D).
    #[default]
    Delegated,
    /// All that come without a token.
    Missing,
}

/// Access tokens fetched from the NRF for consumers (TS 29.500 §6.7.3, TS 33.501 §13.4.1.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tokens {
    /// Whether tokens are fetched.
    pub enabled: bool,
    /// For which requests.
    pub requests: TokenUse,
    /// Whom a token is asked for.
    pub level: TokenLevel,
    /// Services whose tokens are for others than `level` says; the first that names a service counts.
    pub levels: Vec<ServiceLevel>,
    /// API names whose requests get tokens; empty: all.
    pub services: Vec<String>,
    /// Whether tokens are fetched only for consumers that have proved their NF instance id, by an assertion or by
    /// the certificate of their connection. Otherwise what a request says of its consumer counts; a token that was
    /// fetched so is for requests from the same address, with the same assertion, only.
    pub require_proof: bool,
    /// Whether requests of consumers that give no NF instance id get tokens in the name of this SCP, as its NF type.
    /// Off: they are answered 400 `MISSING_ACCESS_TOKEN_INFO`.
    pub in_own_name: bool,
    /// Whether a consumer gets the token that was fetched for its request, in `3gpp-Sbi-Access-Token`: it may then send
    /// further requests with it.
    pub convey: bool,
    /// Tokens that are remembered.
    pub cache_size: usize,
    /// A token that ends this soon is fetched again while the old one is still used.
    pub refresh_before: Period,
    /// A token that ends this soon is not used.
    pub margin: Period,
    /// How long the NRF's refusal is remembered.
    pub remember_refusal: Period,
    /// How long an NRF may take to answer.
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
            refresh_before: Period::from_secs(60),
            margin: Period::from_secs(5),
            remember_refusal: Period::from_secs(1),
            timeout: Period::from_secs(2),
        }
    }
}

/// Says whether some consumers may use some producers. What is empty fits everybody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AccessRule {
    /// Consumers by NF type, NF instance id, or the whole `User-Agent`.
    pub consumers: Vec<String>,
    /// PLMNs of the consumer (`001-01`), as `3gpp-Sbi-Originating-Network-Id` or the discovery's
    /// `requester-plmn-list` tells them.
    pub consumer_plmns: Vec<String>,
    /// Producers by NF type, NF instance id or NF set id.
    pub producers: Vec<String>,
    /// API names.
    pub services: Vec<String>,
    /// Slices that the request is for (`1` or `1-0000ab`), as discovery parameters tell them.
    pub slices: Vec<String>,
    /// Whether the request is refused; otherwise it is let through, whatever later rules say.
    pub deny: bool,
}

/// Who may do what, and how it is proved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Security {
    /// Access tokens fetched for consumers.
    pub tokens: Tokens,
    /// Client credentials assertions.
    pub assertions: AssertionSettings,
    /// Rules of access; the first that fits counts, and what none fits is let through.
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
                        format!("`{slice}` is no slice"),
                        "SST or SST-SD, such as 1 or 1-0000ab",
                    );
                }
            }
        }
    }
}
