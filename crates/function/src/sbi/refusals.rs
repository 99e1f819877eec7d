//! Log lines about requests that are refused or fail, for those who ask for them by a filter of the log.

use std::net::IpAddr;

use ::sbi::headers::names;
use ::sbi::name::USER_AGENT;
use ::sbi::{Request, Response};
use http::Method;

/// The log of a function's refusals; made by [`refusal_log!`](crate::refusal_log).
#[derive(Clone, Copy)]
pub struct RefusalLog {
    /// Whether such lines are logged.
    pub is_on: fn() -> bool,
    /// Logs one.
    pub write: fn(&RefusedRequest<'_>),
}

/// Declares the log of a function's refusals: with `refusal_log!("nrf")`, the filter `nrf::refusals=debug` shows them.
#[macro_export]
macro_rules! refusal_log {
    ($function:literal) => {
        $crate::sbi::RefusalLog {
            is_on: || {
                $crate::tracing::enabled!(target: concat!($function, "::refusals"), $crate::tracing::Level::DEBUG)
            },
            write: |request| {
                $crate::tracing::debug!(
                    target: concat!($function, "::refusals"),
                    method = %request.method,
                    target = request.target,
                    status = request.status,
                    cause = request.cause,
                    detail = request.detail,
                    sender = request.sender,
                    correlation = request.correlation,
                    peer = %request.peer,
                    "request refused or failed"
                );
            },
        }
    };
}

/// Fields of such a line.
#[derive(Debug)]
pub struct RefusedRequest<'a> {
    /// Method of the request.
    pub method: &'a Method,
    /// Its path and query.
    pub target: &'a str,
    /// Status of the answer.
    pub status: u16,
    /// `cause` of the problem.
    pub cause: &'a str,
    /// `detail` of the problem.
    pub detail: &'a str,
    /// `User-Agent`: which NF it is.
    pub sender: &'a str,
    /// `3gpp-Sbi-Correlation-Info`: which subscriber it is about.
    pub correlation: &'a str,
    /// The address of the peer.
    pub peer: IpAddr,
}

/// A request that may be refused or fail.
pub(super) struct Refusable {
    method: Method,
    target: String,
    sender: String,
    correlation: String,
    peer: IpAddr,
}

impl Refusable {
    /// `None` unless such lines are logged, so that requests bear no cost otherwise.
    pub(super) fn of(log: &RefusalLog, request: &Request) -> Option<Self> {
        if !(log.is_on)() {
            return None;
        }
        let header = |name| {
            let value = request.headers().get(name);
            let text = value.and_then(|value| value.to_str().ok().map(str::to_owned));
            text.unwrap_or_default()
        };
        Some(Self {
            method: request.method().clone(),
            target: request.target().to_owned(),
            sender: header(USER_AGENT),
            correlation: header(names::CORRELATION_INFO),
            peer: request.peer.addr.ip(),
        })
    }

    /// Logs the request if it was refused or has failed.
    pub(super) fn log(&self, log: &RefusalLog, response: &Response) {
        let status = response.status();
        if !status.is_client_error() && !status.is_server_error() {
            return;
        }
        let body = response.body.to_bytes();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let member = |name: &str| {
            let value = problem.get(name).and_then(serde_json::Value::as_str);
            value.unwrap_or_default()
        };
        (log.write)(&RefusedRequest {
            method: &self.method,
            target: &self.target,
            status: status.as_u16(),
            cause: member("cause"),
            detail: member("detail"),
            sender: &self.sender,
            correlation: &self.correlation,
            peer: self.peer,
        });
    }
}
