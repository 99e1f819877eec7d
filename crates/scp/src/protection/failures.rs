//! What the consumer is told when this SCP refuses a request or cannot serve it.

use std::collections::BTreeMap;

use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use sbi::Response;
use sbi::problem::Problem;
use telemetry::Registry;
use telemetry::metrics::Counter;

use crate::config::ErrorProfile;
use crate::events::REFUSED;

/// Every reason, as in metrics and as the key of an error profile.
pub(crate) const REASONS: [&str; 24] = [
    "assertion",
    "circuitOpen",
    "egressRate",
    "ejected",
    "forbidden",
    "header",
    "hops",
    "inFlight",
    "ingressRate",
    "late",
    "loop",
    "mediation",
    "method",
    "noProducer",
    "outstanding",
    "overflow",
    "overload",
    "producerOverload",
    "target",
    "timeout",
    "token",
    "unreachable",
    "unsendable",
    "other",
];

/// Counters of refusals, found without a lock: under overload refusing must be cheap.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    counters: [Counter; REASONS.len()],
}

impl Refusals {
    pub(crate) fn new(registry: &Registry) -> Self {
        let refused = registry.counters(&REFUSED);
        Self {
            counters: REASONS.map(|reason| refused.get(&[reason])),
        }
    }

    pub(crate) fn count(&self, reason: &str) {
        let known = REASONS.iter().position(|one| *one == reason);
        self.counters[known.unwrap_or(REASONS.len() - 1)].inc();
    }
}

/// The answer for a problem, as the profile of its reason wants it. `wait`: after how many seconds another try
/// may do better.
pub(crate) fn respond(
    profiles: &BTreeMap<String, ErrorProfile>,
    reason: &str,
    mut problem: Problem,
    mut wait: Option<u64>,
) -> Response {
    // Most SCPs have no profiles, and then nothing is looked up.
    let profile = (!profiles.is_empty()).then(|| profiles.get(reason)).flatten();
    if let Some(profile) = profile {
        if let Some(status) = profile
            .status
            .and_then(|status| StatusCode::from_u16(status).ok())
        {
            let details = std::mem::take(problem.details_mut());
            problem = Problem::of_status(status);
            let made = problem.details_mut();
            made.detail = details.detail;
            made.cause = details.cause;
            made.invalid_params = details.invalid_params;
        }
        let details = problem.details_mut();
        let replace = |member: &mut Option<String>, wanted: &Option<String>| {
            if let Some(wanted) = wanted {
                // An empty text takes the member away.
                *member = Some(wanted.clone()).filter(|text| !text.is_empty());
            }
        };
        replace(&mut details.cause, &profile.cause);
        replace(&mut details.title, &profile.title);
        replace(&mut details.detail, &profile.detail);
        wait = profile.retry_after.map(settings::Period::as_secs).or(wait);
    }
    let mut response = problem.into_response();
    if let Some(wait) = wait.filter(|wait| *wait > 0) {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use sbi::problem::Cause;
    use serde_json::{Value, json};

    #[test]
    fn a_profile_says_what_is_told() {
        let profile = ErrorProfile {
            status: Some(500),
            cause: Some("OURS".into()),
            detail: Some(String::new()),
            retry_after: Some(settings::Period::from_secs(7)),
            ..ErrorProfile::default()
        };
        let profiles = BTreeMap::from([("overload".to_owned(), profile)]);
        let problem = || Problem::new(Cause::NfCongestion).detail("secret");
        let shaped = respond(&profiles, "overload", problem(), Some(1));
        assert_eq!(shaped.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(shaped.headers()[RETRY_AFTER], "7");
        let body: Value = serde_json::from_slice(&shaped.into_body().into_bytes()).unwrap();
        assert_eq!(
            body,
            json!({"status": 500, "cause": "OURS", "title": "Internal Server Error"})
        );
        let plain = respond(&profiles, "timeout", problem(), None);
        assert_eq!(plain.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(!plain.headers().contains_key(RETRY_AFTER));
    }
}
