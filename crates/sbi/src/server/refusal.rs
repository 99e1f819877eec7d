//! Answers of the server itself, without the service.

use http2::Oversize;
use http2::name::RETRY_AFTER;
use sbi_proto::Response;
use sbi_proto::problem::{Cause, Problem};

use super::config::ServerConfig;

/// 431: the head is larger than this server takes.
pub(super) fn oversized(what: Oversize, config: &ServerConfig) -> Response {
    let detail = match what {
        Oversize::Fields => format!("more than {} header fields", config.max_header_fields),
        Oversize::List => format!("the headers are larger than {}", config.max_header_list),
    };
    Problem::new(Cause::HeadersTooLarge)
        .detail(detail)
        .into_response()
}

/// 400: which server the request is for is ambiguous.
pub(super) fn ambiguous(detail: &str) -> Response {
    Problem::new(Cause::InvalidMsgFormat)
        .detail(detail)
        .into_response()
}

/// 429 (TS 29.500 §6.4.2.3).
pub(super) fn over_rate() -> Response {
    let mut response = Problem::new(Cause::TooManyRequests)
        .detail("more requests per second on this connection than this server admits")
        .into_response();
    response.headers_mut().set_number(RETRY_AFTER, 1);
    response
}

/// 413.
pub(super) fn body_too_large(config: &ServerConfig) -> Response {
    let limit = config.max_body;
    Problem::new(Cause::PayloadTooLarge)
        .detail(format!(
            "the body is larger than {limit}, the limit of this server"
        ))
        .into_response()
}

/// 408.
pub(super) fn body_too_slow() -> Response {
    Problem::new(Cause::RequestTimeout)
        .detail("the body did not arrive in time")
        .into_response()
}
