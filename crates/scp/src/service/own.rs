//! Resources of the SCP's own.

use http::{Method, StatusCode};
use sbi::headers::names;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use super::worker::Worker;
use crate::peers::federation::{self, RATES_PATH};
use crate::peers::{Called, Heard, hint_of};
use crate::target::is_own;

/// Path that tells whether the SCP is well (N050 of the NRF's features looks here).
const HEALTH_PATH: &str = "/health";

impl Worker {
    /// Answers requests that are for the SCP itself.
    pub(super) fn own_resource(&self, request: &Request) -> Option<Response> {
        let path = request.uri().path();
        let called = self.callbacks.called(path);
        if called == Called::Other && path != HEALTH_PATH && path != RATES_PATH {
            return None;
        }
        let is_ours = request
            .uri()
            .authority()
            .is_none_or(|authority| is_own(&self.own, authority.as_str()));
        if !is_ours || request.headers().contains_key(names::TARGET_API_ROOT) {
            return None;
        }
        Some(match (called, path) {
            (Called::Of(set), _) => self.notified(request, set),
            (Called::Unknown, _) => {
                self.metrics.stranger.inc();
                Problem::new(Cause::ResourceUriStructureNotFound).into_response()
            }
            (Called::Other, RATES_PATH) => {
                federation::told(request, &self.live, &self.federation, &self.metrics)
            }
            (Called::Other, _) => Response::default(),
        })
    }

    /// A notification came on the path of a subscription at a set.
    fn notified(&self, request: &Request, set: usize) -> Response {
        if *request.method() != Method::POST {
            return Problem::new(Cause::MethodNotAllowed).into_response();
        }
        let change = match hint_of(&request.body.to_bytes()) {
            Ok(change) => change,
            Err(reason) => {
                return Problem::new(Cause::InvalidMsgFormat)
                    .detail(format!("expected NotificationData: {reason}"))
                    .into_response();
            }
        };
        if self.changes.try_send(Heard { set, change }).is_err() {
            // The NRF tries again, and an audit finds what it does not tell.
            self.metrics.notification_lost.inc();
            return Problem::new(Cause::NfCongestion)
                .detail("too many changes of the network wait")
                .into_response();
        }
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    }
}
