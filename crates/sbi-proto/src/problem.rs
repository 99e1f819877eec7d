//! Problem details (RFC 9457; TS 29.571 §5.2.4.1) with the causes of TS 29.500, made in one place.

use http::StatusCode;
use http2::Value as FieldValue;
use http2::name::{ACCEPT_ENCODING, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Response;

/// Media type of problem details.
pub const PROBLEM_JSON: http2::Value<'static> = http2::Value::from_static("application/problem+json");

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $status:literal, $wire:literal, $title:literal;)+) => {
        /// A protocol error, by the name of its cause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Cause { $($(#[$doc])* $variant,)+ }

        impl Cause {
            /// Every cause this release knows.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),+];

            /// The HTTP status the cause goes with.
            #[must_use]
            pub fn status(self) -> StatusCode {
                let status = match self { $(Cause::$variant => $status,)+ };
                // The table holds valid status codes only; a test reads each.
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }

            /// The value of the `cause` member; empty where the standard names none.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Cause::$variant => $wire,)+ }
            }

            /// A short text for people.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Cause::$variant => $title,)+ }
            }
        }
    };
}

causes! {
    /// The API name is not served here.
    InvalidApi = 400, "INVALID_API", "The API is not served here";
    /// The message cannot be parsed.
    InvalidMsgFormat = 400, "INVALID_MSG_FORMAT", "The message has an invalid format";
    /// A query parameter has an unusable value.
    InvalidQueryParam = 400, "INVALID_QUERY_PARAM", "A query parameter cannot be used";
    /// A mandatory query parameter has a semantically wrong value.
    MandatoryQueryParamIncorrect = 400, "MANDATORY_QUERY_PARAM_INCORRECT", "A mandatory query parameter is incorrect";
    /// An optional query parameter has a semantically wrong value.
    OptionalQueryParamIncorrect = 400, "OPTIONAL_QUERY_PARAM_INCORRECT", "An optional query parameter is incorrect";
    /// A mandatory query parameter is missing.
    MandatoryQueryParamMissing = 400, "MANDATORY_QUERY_PARAM_MISSING", "A mandatory query parameter is missing";
    /// A mandatory member or header is semantically wrong.
    MandatoryIeIncorrect = 400, "MANDATORY_IE_INCORRECT", "A mandatory information element is incorrect";
    /// An optional member or header is semantically wrong.
    OptionalIeIncorrect = 400, "OPTIONAL_IE_INCORRECT", "An optional information element is incorrect";
    /// A mandatory member or header is missing.
    MandatoryIeMissing = 400, "MANDATORY_IE_MISSING", "A mandatory information element is missing";
    /// A client error without a better cause.
    UnspecifiedMsgFailure = 400, "UNSPECIFIED_MSG_FAILURE", "The request is rejected";
    /// The SCP discovered no producer.
    NfDiscoveryFailure = 400, "NF_DISCOVERY_FAILURE", "No network function could be discovered";
    /// A discovery parameter cannot be used.
    InvalidDiscoveryParam = 400, "INVALID_DISCOVERY_PARAM", "A discovery parameter cannot be used";
    /// The request does not say enough for a token to be asked for.
    MissingAccessTokenInfo = 400, "MISSING_ACCESS_TOKEN_INFO", "Information for an access token is missing";
    /// The message came round again.
    MsgLoopDetected = 400, "MSG_LOOP_DETECTED", "The message has been here before";
    /// The client credentials assertion failed.
    CcaVerificationFailure = 403, "CCA_VERIFICATION_FAILURE", "The client credentials assertion is not valid";
    /// The token in use was not accepted by the producer's side.
    TokenCcaMismatch = 403, "TOKEN_CCA_MISMATCH", "Access token and client credentials assertion do not match";
    /// The NRF refused the SCP an access token.
    AccessTokenDenied = 403, "ACCESS_TOKEN_DENIED", "The access token was denied";
    /// No token, or not a valid one.
    Unauthorized = 401, "", "An access token is needed";
    /// The consumer may not do this.
    Forbidden = 403, "", "Not allowed";
    /// The resource may not be changed so.
    ModificationNotAllowed = 403, "MODIFICATION_NOT_ALLOWED", "The modification is not allowed";
    /// The resource of a subscription is unknown.
    SubscriptionNotFound = 404, "SUBSCRIPTION_NOT_FOUND", "The subscription does not exist";
    /// The resource is unknown (collection level: the structure of the URI).
    ResourceUriStructureNotFound = 404, "RESOURCE_URI_STRUCTURE_NOT_FOUND", "No such resource structure";
    /// The resource does not exist.
    ResourceNotFound = 404, "RESOURCE_NOT_FOUND", "The resource does not exist";
    /// The context does not exist.
    ContextNotFound = 404, "CONTEXT_NOT_FOUND", "The context does not exist";
    /// The method is not one of the resource's.
    MethodNotAllowed = 405, "", "The method is not allowed on this resource";
    /// No representation the client accepts.
    NotAcceptable = 406, "", "No acceptable representation";
    /// The request did not arrive in time.
    RequestTimeout = 408, "", "The request did not arrive in time";
    /// The request conflicts with the state of the resource.
    Conflict = 409, "", "The request conflicts with the resource";
    /// A body without a length.
    IncorrectLength = 411, "INCORRECT_LENGTH", "The length of the content is incorrect";
    /// A condition of the request (If-Match) does not hold.
    PreconditionFailed = 412, "", "A precondition does not hold";
    /// The body is too large.
    PayloadTooLarge = 413, "", "The content is too large";
    /// The URI is too long.
    UriTooLong = 414, "", "The URI is too long";
    /// The media type is not supported.
    UnsupportedMediaType = 415, "", "The media type is not supported";
    /// The consumer sends so much that it may lead to overload.
    TooManyRequests = 429, "NF_CONGESTION_RISK", "Too many requests";
    /// The headers are too large.
    HeadersTooLarge = 431, "", "The header fields are too large";
    /// An error of ours without a better cause.
    UnspecifiedNfFailure = 500, "UNSPECIFIED_NF_FAILURE", "The request failed";
    /// A resource of ours is used up.
    InsufficientResources = 500, "INSUFFICIENT_RESOURCES", "Resources are used up";
    /// Ours: it could not be done.
    SystemFailure = 500, "SYSTEM_FAILURE", "The request failed";
    /// Not implemented.
    NotImplemented = 501, "", "Not implemented";
    /// We are overloaded.
    NfCongestion = 503, "NF_CONGESTION", "Congestion";
    /// A function behind us failed.
    NfFailover = 500, "NF_FAILOVER", "The network function has failed over";
    /// The NRF answered the SCP's discovery with an error of its own.
    NfDiscoveryError = 502, "NF_DISCOVERY_ERROR", "The discovery failed at the NRF";
    /// The request has passed as many SCPs as it may.
    MaxScpHopsReached = 502, "MAX_SCP_HOPS_REACHED", "The request has passed as many SCPs as it may";
    /// The producer cannot be reached.
    TargetNfNotReachable = 504, "TARGET_NF_NOT_REACHABLE", "The target network function is not reachable";
    /// The consumer does not wait for the answer any more (TS 29.500 §6.11.2).
    TimedOutRequest = 504, "TIMED_OUT_REQUEST", "The request has timed out at its sender";
    /// The NRF cannot be reached.
    NrfNotReachable = 504, "NRF_NOT_REACHABLE", "The NRF is not reachable";
}

/// A member, header or parameter that is wrong (TS 29.571 §5.2.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidParam {
    /// JSON pointer of the member, name of the header (`header …`) or of the query parameter (`query …`).
    pub param: String,
    /// What was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Problem details as they stand on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProblemDetails {
    /// URI of the kind of problem.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Short text of the kind of problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Text about this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// URI of this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The cause of TS 29.500 or of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What was wrong where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_params: Vec<InvalidParam>,
    /// Every other member, kept.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A problem being put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    status: StatusCode,
    details: Box<ProblemDetails>,
    /// `Accept-Encoding` of the answer: the codings that a request may have (RFC 9110 §12.5.3).
    codings: Option<&'static str>,
}

impl Problem {
    /// A problem of a cause of TS 29.500.
    #[must_use]
    pub fn new(cause: Cause) -> Self {
        let mut problem = Self::of_status(cause.status()).title(cause.title());
        if !cause.as_str().is_empty() {
            problem.details.cause = Some(cause.as_str().to_owned());
        }
        problem
    }

    /// A problem with the cause of a service's own specification.
    #[must_use]
    pub fn with_cause(status: StatusCode, cause: &str) -> Self {
        let mut problem = Self::of_status(status);
        problem.details.cause = Some(cause.to_owned());
        problem
    }

    /// A problem without a cause.
    #[must_use]
    pub fn of_status(status: StatusCode) -> Self {
        let details = ProblemDetails {
            status: Some(status.as_u16()),
            title: status.canonical_reason().map(str::to_owned),
            ..ProblemDetails::default()
        };
        Self {
            status,
            details: Box::new(details),
            codings: None,
        }
    }

    /// Says which content codings a request may have.
    #[must_use]
    pub fn accepts(mut self, codings: &'static str) -> Self {
        self.codings = Some(codings);
        self
    }

    /// Sets the short text.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.details.title = Some(title.into());
        self
    }

    /// Sets the text about this occurrence.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.detail = Some(detail.into());
        self
    }

    /// Says what was wrong where, and what was expected.
    #[must_use]
    pub fn invalid_param(mut self, param: impl Into<String>, reason: impl Into<String>) -> Self {
        self.details.invalid_params.push(InvalidParam {
            param: param.into(),
            reason: Some(reason.into()),
        });
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The details.
    #[must_use]
    pub fn details(&self) -> &ProblemDetails {
        &self.details
    }

    /// The details, to be changed.
    pub fn details_mut(&mut self) -> &mut ProblemDetails {
        &mut self.details
    }

    /// The response.
    #[must_use]
    pub fn into_response(self) -> Response {
        // Problem details hold text, numbers and JSON values only: they always serialise.
        let body = serde_json::to_vec(&self.details).unwrap_or_default();
        let response = Response::new(self.status)
            .with(CONTENT_TYPE, PROBLEM_JSON)
            .with_body(body);
        match self.codings {
            Some(codings) => response.with(ACCEPT_ENCODING, FieldValue::from_static(codings)),
            None => response,
        }
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        problem.into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_status() {
        for cause in Cause::ALL {
            assert!(
                cause.status().is_client_error() || cause.status().is_server_error(),
                "{cause:?}"
            );
            assert!(!cause.title().is_empty());
        }
        assert_eq!(Cause::NfCongestion.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn on_the_wire() {
        let problem = Problem::new(Cause::MandatoryIeMissing).invalid_param("/nfType", "expected an NF type");
        let response = problem.into_response();
        assert_eq!(response.headers().get(CONTENT_TYPE), Some(PROBLEM_JSON));
        let details: ProblemDetails = serde_json::from_slice(&response.into_body().into_bytes()).unwrap();
        assert_eq!(details.cause.as_deref(), Some("MANDATORY_IE_MISSING"));
        assert_eq!(details.invalid_params[0].param, "/nfType");
    }
}
