//! Step 2, own resources: health, notifications of NRFs, and the rates of other SCPs are for the SCP itself.

use std::sync::Arc;

use http::{Method, StatusCode};
use routing::target::{OwnNames, authority};
use sbi::headers::names;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use tokio::sync::mpsc;

use super::Setup;
use crate::events::Metrics;
use crate::federation::{self, RATES_PATH};
use crate::live::Live;
use crate::peers::{Callbacks, Called, Heard, hint_of};
use crate::protection::Federation;

/// Path of the health check (N050 of the NRF).
const HEALTH_PATH: &str = "/health";

/// The resources of the SCP itself.
pub(super) struct OwnResources {
    live: Arc<Live>,
    own: Arc<OwnNames>,
    callbacks: Arc<Callbacks>,
    changes: mpsc::Sender<Heard>,
    federation: Arc<Federation>,
    metrics: Metrics,
}

impl OwnResources {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let shared = setup.shared;
        Self {
            live: setup.live.clone(),
            own: shared.own.clone(),
            callbacks: shared.callbacks.clone(),
            changes: shared.changes.clone(),
            federation: shared.federation.clone(),
            metrics: shared.metrics.clone(),
        }
    }

    /// Whether a request is for the SCP itself, whose path is `path`.
    pub(super) fn is_own(&self, request: &Request, path: &str) -> bool {
        self.called(request, path).is_some()
    }

    fn called(&self, request: &Request, path: &str) -> Option<Called> {
        let called = self.callbacks.called(path);
        if called == Called::Other && path != HEALTH_PATH && path != RATES_PATH {
            return None;
        }
        let is_ours = authority(request).is_none_or(|authority| self.own.has(authority, request.peer.local));
        (is_ours && !request.headers().contains(names::TARGET_API_ROOT)).then_some(called)
    }

    /// The answer to a request for the SCP itself, whose path is `path`; `None` for any other.
    pub(super) fn answer(&self, request: &Request, path: &str) -> Option<Response> {
        let called = self.called(request, path)?;
        Some(match (called, path) {
            (Called::Of(set), _) => self.notified(request, set),
            (Called::Unknown, _) => {
                self.metrics.stranger.inc();
                Problem::new(Cause::ResourceUriStructureNotFound).into_response()
            }
            (Called::Other, RATES_PATH) => {
                federation::receive(request, &self.live, &self.federation, &self.metrics)
            }
            (Called::Other, _) => Response::default(),
        })
    }

    /// Handles a notification on the callback path of a subscription at a set.
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
            // The NRF retries, and the audit finds lost changes.
            self.metrics.notification_lost.inc();
            return Problem::new(Cause::NfCongestion)
                .detail("too many changes of the network are pending")
                .into_response();
        }
        Response::new(StatusCode::NO_CONTENT)
    }
}
