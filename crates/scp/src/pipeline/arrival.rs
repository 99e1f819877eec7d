//! Step 1, arrival: normalises the path, which all later steps use.

use std::rc::Rc;
use std::sync::Arc;

use http::Method;
use routing::target::{self, OwnNames};
use sbi::Request;
use sbi::headers::{SbiHeader as _, TargetApiRoot, names};
use sbi::name::PATH;
use sbi::problem::Problem;

use super::message::{Address, Step};
use super::view::View;
use super::{Setup, reverse};
use crate::live::Live;
use crate::refusal::Refusal;

/// Normalises the paths of requests.
pub(super) struct Arrival {
    live: Arc<Live>,
    view: Rc<View>,
    own: Arc<OwnNames>,
}

impl Arrival {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self {
            live: setup.live.clone(),
            view: setup.view.clone(),
            own: setup.shared.own.clone(),
        }
    }

    /// Normalises the path of a request for access control and routing. Returns it, and whether any segment of it may be
    /// the API name. A path that is only written another way reaches the producer as it came (RFC 9110 §7.7).
    pub(super) fn read(&self, request: &mut Request) -> Step<(Address, bool)> {
        // TRACE would disclose headers, CONNECT would open a tunnel (RFC 9110 §9.3.6, §9.3.8); others are none of the
        // service-based interface (TS 29.501 §5.1), and methods have a case.
        let relayed = matches!(
            *request.method(),
            Method::GET
                | Method::POST
                | Method::PUT
                | Method::PATCH
                | Method::DELETE
                | Method::OPTIONS
                | Method::HEAD
        );
        if !relayed {
            return Err(Refusal::Method.into());
        }
        if self.live.reverse_proxy {
            reverse::undo(request, &self.own, &self.live.policies);
        }
        self.normalise(request)
            .map_err(|problem| Refusal::Target.with(problem))
    }

    fn normalise(&self, request: &mut Request) -> Result<(Address, bool), Problem> {
        let path = request.target();
        let normal = target::normal(path)?;
        let network = self.view.network();
        let named = request.headers().get(names::TARGET_API_ROOT);
        let prefixed = named.is_some_and(|value| value.as_bytes().iter().filter(|b| **b == b'/').count() > 2);
        let placed = if prefixed || network.has_prefixes() {
            let root = match named {
                // The planner refuses an invalid header.
                Some(named) => named
                    .to_str()
                    .ok()
                    .and_then(|text| TargetApiRoot::parse(text).ok()),
                None => target::of_authority(request)
                    .filter(|root| !self.own.has(root.origin.authority(), request.peer.local)),
            };
            let path = normal.as_deref().unwrap_or(path);
            root.map(|root| target::placed(&root, path, &network))
                .transpose()?
                .flatten()
        } else {
            None
        };
        let unsure = placed.as_ref().is_some_and(|placed| placed.unsure);
        let is_known = |name: &str| !network.of_service(name).is_empty() || self.live.services.contains(name);
        let taken = placed.as_ref().map(|placed| placed.path.as_str());
        let address = Address::of(taken.or(normal.as_deref()).unwrap_or(path));
        target::check_name(address.service(), is_known)?;
        if let Some(placed) = &placed {
            request.headers_mut().set_printed(PATH, &placed.path);
            placed.root.set_in(request.headers_mut());
        } else if let Some(path) = normal {
            let written = Rc::from(request.target());
            request.headers_mut().set_printed(PATH, &path);
            return Ok((Address::of(&path).written(Some(written)), unsure));
        } else {
            return Ok((address, unsure));
        }
        Ok((Address::of(request.target()), unsure))
    }
}
