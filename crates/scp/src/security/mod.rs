//! Assertions of consumers, access rules, and access tokens.

mod access;
mod applicant;
mod fetch;
mod tokens;

pub(crate) use access::{Access, Asked};
pub(crate) use applicant::applicant;
pub(crate) use fetch::{Fetcher, Proof, Wanted};
pub(crate) use tokens::{Shown, TokenError, TokenLimits, TokenStore};

telemetry::declare! {
    /// Metrics of security.
    pub METRICS;
    counter TOKENS = "signalbox_scp_tokens_total" ["outcome"]: "Access tokens for requests: cached, fetched, refreshed, waited, refused, failed, overflow (too many fetches in flight).";
    counter ASSERTIONS = "signalbox_scp_assertions_total" ["outcome"]: "Client credentials assertions: accepted, refused, missing.";
    gauge TOKEN_CACHE = "signalbox_scp_token_cache_entries" []: "Cached access tokens.";
}
