//! Step 9, answer: what the consumer gets, from a producer or from this SCP (TS 29.500 §6.10.4, §6.10.8.1).

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode};
use routing::policy::ServicePolicy;
use sbi::client::Origin;
use sbi::headers::names;
use sbi::name::{CONTENT_LENGTH, LOCATION, RETRY_AFTER, SERVER, VIA};
use sbi::problem::Problem;
use sbi::{Fields, Response, Value};

use super::message::{Outgoing, Reply};
use super::{Setup, reverse};
use crate::config::ErrorProfile;
use crate::events::Refusals;
use crate::live::Live;
use crate::protection::Load;
use crate::refusal::Refused;

/// Makes answers.
pub(super) struct Answer {
    live: Arc<Live>,
    worker: usize,
    refused: Refusals,
    /// `2.0 SCP-fqdn`.
    pub(super) via: HeaderValue,
    /// `SCP-fqdn`.
    server: HeaderValue,
    pub(super) name: Rc<str>,
    /// API root of this SCP, without a prefix.
    root: String,
}

impl Answer {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let config = &setup.live.config;
        let name = format!("SCP-{}", config.fqdn);
        // An FQDN is made of characters that headers may have; the configuration was checked.
        let header = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("SCP"));
        Self {
            worker: setup.index,
            refused: setup.shared.metrics.refused.clone(),
            via: header(&format!("2.0 {name}")),
            server: header(&name),
            name: name.into(),
            root: config
                .root()
                .parse::<Origin>()
                .map_or_else(|_| config.root(), |root| root.to_string()),
            live: setup.live.clone(),
        }
    }

    /// Brings the advertised load up to date.
    pub(super) fn advertise(&self, load: &Load) {
        let (percent, reduction) = (load.percent(), load.reduction());
        self.live
            .own_load
            .update(self.worker, percent, reduction, std::time::Instant::now());
    }

    /// Adds the load of this SCP to an answer; that of the producer stays.
    pub(super) fn add_load(&self, response: &mut Response) {
        let protection = &self.live.config.protection;
        if protection.convey_own_lci || protection.convey_own_oci {
            self.live.own_load.add_to(response.headers_mut());
        }
    }

    /// Completes the answer of a producer: `Via` names this SCP, and further headers name the producer if the consumer
    /// did not name it.
    pub(super) fn finish(&self, reply: Reply, outgoing: &Outgoing, policy: &ServicePolicy) -> Response {
        let Reply {
            mut response,
            target,
            elsewhere,
            retried,
        } = reply;
        let headers = response.headers_mut();
        // Content-Length of an answer to HEAD describes an absent body (RFC 9110 §9.3.2).
        if outgoing.method != Method::HEAD {
            headers.remove(CONTENT_LENGTH);
        }
        headers.append(VIA, &self.via);
        if retried {
            say_retransmitted(headers);
        }
        // The consumer may use it at the producer (TS 29.500 §5.2.3.2.13).
        if let Some(token) = &outgoing.conveyed {
            headers.set_sensitive(names::ACCESS_TOKEN, token);
        }
        // Only SCPs and SEPPs name a producer (TS 29.500 §6.10.4); one that names another one would lead its consumers there.
        if target.hops.is_none() {
            headers.remove(names::TARGET_API_ROOT);
        }
        let origin = &target.root.origin;
        if elsewhere {
            resolve_location(headers, origin);
            let named = target.headers();
            let each = [
                (names::TARGET_API_ROOT, &named.root),
                (names::PRODUCER_ID, &named.producer),
            ];
            for (name, value) in each {
                if let Some(value) = value
                    && !headers.contains(name)
                {
                    headers.append(name, value);
                }
            }
        }
        if policy.reverse_proxy_support {
            reverse::cover(headers, &self.root, origin, outgoing.address.service());
        }
        response
    }

    /// Counts a refusal and makes its answer, which names this SCP.
    pub(super) fn refuse(&self, refused: Refused) -> Response {
        self.refused.count(refused.refusal);
        let mut response = respond(&self.live.config.protection.error_profiles, refused);
        self.sign(&mut response);
        response
    }

    /// Marks an answer as one of this SCP (`Server`).
    pub(super) fn sign(&self, response: &mut Response) {
        response.headers_mut().set(SERVER, &self.server);
    }
}

/// Adds to `3gpp-Sbi-Response-Info` that the request was sent to more than one producer; the values of the last one
/// stay.
fn say_retransmitted(headers: &mut Fields) {
    const SAID: &str = "request-retransmitted=true";
    let said = headers
        .get(names::RESPONSE_INFO)
        .and_then(|value| value.to_str().ok());
    match said.map(str::to_owned) {
        Some(said) if said.to_ascii_lowercase().contains(SAID) => {}
        Some(said) => {
            headers.set_printed(names::RESPONSE_INFO, format_args!("{said}; {SAID}"));
        }
        None => headers.set(names::RESPONSE_INFO, Value::from_static(SAID)),
    }
}

/// A `Location` without an authority means that of the producer, which the consumer has not named and so cannot
/// complete (RFC 9110 §10.2.2, TS 29.501 §4.4): it becomes absolute. One with an authority is never touched.
fn resolve_location(headers: &mut Fields, origin: &Origin) {
    let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
        return;
    };
    if !location.starts_with('/') || location.starts_with("//") {
        return;
    }
    let absolute = format!("{origin}{location}");
    headers.set_printed(LOCATION, absolute);
}

/// The answer of a refusal, adapted by the error profile of its reason.
fn respond(profiles: &BTreeMap<String, ErrorProfile>, refused: Refused) -> Response {
    let Refused {
        refusal,
        mut problem,
        mut retry_after,
    } = refused;
    // Most SCPs have no error profiles and need no look-up.
    let profile = (!profiles.is_empty())
        .then(|| profiles.get(refusal.label()))
        .flatten();
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
                // An empty text removes the member.
                *member = Some(wanted.clone()).filter(|text| !text.is_empty());
            }
        };
        replace(&mut details.cause, &profile.cause);
        replace(&mut details.title, &profile.title);
        replace(&mut details.detail, &profile.detail);
        retry_after = profile.retry_after.map(settings::Period::as_secs).or(retry_after);
    }
    let mut response = problem.into_response();
    if let Some(seconds) = retry_after.filter(|seconds| *seconds > 0) {
        response.headers_mut().set_number(RETRY_AFTER, seconds);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Refusal;
    use serde_json::{Value, json};

    #[test]
    fn an_error_profile_shapes_the_answer_of_its_reason_alone() {
        let profile = ErrorProfile {
            status: Some(500),
            cause: Some("OURS".into()),
            detail: Some(String::new()),
            retry_after: Some(settings::Period::from_secs(7)),
            ..ErrorProfile::default()
        };
        let profiles = BTreeMap::from([("overload".to_owned(), profile)]);
        let refuse = |refusal: Refusal| respond(&profiles, *Box::<Refused>::from(refusal));
        let shaped = refuse(Refusal::Overload);
        assert_eq!(shaped.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(shaped.headers().get(RETRY_AFTER).unwrap(), "7");
        let body: Value = serde_json::from_slice(&shaped.into_body().into_bytes()).unwrap();
        assert_eq!(
            body,
            json!({"status": 500, "cause": "OURS", "title": "Internal Server Error"})
        );
        let plain = refuse(Refusal::Timeout);
        assert_eq!(plain.status(), StatusCode::GATEWAY_TIMEOUT);
        assert!(!plain.headers().contains(RETRY_AFTER));
    }
}
