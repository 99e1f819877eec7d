//! The steps of a request: may it be worked on now, may its sender ask this, whose resource is it, who answers it.

use std::rc::Rc;

use function::sbi::{Answer, OperationMetrics};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, path};

use crate::api::{self, bindings};
use crate::binding::{MbsBinding, PcfBinding, UeBinding};
use crate::events::Event;
use crate::peers::pcfs;
use crate::worker::Worker;

/// Resources of Nbsf_Management, four methods each.
const RESOURCES: [&str; 4] = [
    "pcfBindings",
    "pcf-ue-bindings",
    "pcf-mbs-bindings",
    "subscriptions",
];

impl Answer for Worker {
    const OPERATIONS: &'static [&'static str] = &[
        "pcfBindings POST",
        "pcfBindings GET",
        "pcfBindings PATCH",
        "pcfBindings DELETE",
        "pcf-ue-bindings POST",
        "pcf-ue-bindings GET",
        "pcf-ue-bindings PATCH",
        "pcf-ue-bindings DELETE",
        "pcf-mbs-bindings POST",
        "pcf-mbs-bindings GET",
        "pcf-mbs-bindings PATCH",
        "pcf-mbs-bindings DELETE",
        "subscriptions POST",
        "subscriptions GET",
        "subscriptions PUT",
        "subscriptions DELETE",
        "other",
    ];

    const METRICS: Option<OperationMetrics> = Some(function::operation_metrics!("bsf"));

    fn operation(request: &Request) -> usize {
        let path = path::usual(request.path());
        let resource = path
            .strip_prefix("/nbsf-management/v1/")
            .and_then(|path| path.split('/').next());
        let resource = RESOURCES.iter().position(|name| Some(*name) == resource);
        let method = match request.method().as_str() {
            "POST" => Some(0),
            "GET" => Some(1),
            "PATCH" | "PUT" => Some(2),
            "DELETE" => Some(3),
            _ => None,
        };
        let known = resource.zip(method);
        known.map_or(Self::OPERATIONS.len() - 1, |(resource, method)| {
            4 * resource + method
        })
    }

    async fn answer(self: Rc<Self>, request: Request) -> Response {
        let received = request.received;
        let mut response = answer(self.clone(), request).await;
        self.completion().complete(&mut response);
        self.answered(response.status().is_server_error(), received.elapsed());
        response
    }

    fn complete(&self, response: &mut Response) {
        self.completion().complete(response);
    }
}

async fn answer(worker: Rc<Worker>, request: Request) -> Response {
    // The path outlives the request, which the handlers take apart.
    let path = path::usual(request.path()).into_owned();
    if let Some(problem) = worker.turned_away(&request) {
        return problem.into_response();
    }
    // The NRF sends no token: its notification is a hint, and the audit asks the NRF before it acts on it.
    if path == pcfs::CALLBACK_PATH {
        return api::nf_status::notify(&worker, request);
    }
    if let Some(denied) = worker.denied(&request) {
        return denied;
    }
    let mut segments = path.trim_start_matches('/').splitn(4, '/');
    let at = (segments.next(), segments.next(), segments.next(), segments.next());
    let handler = worker.clone();
    let answer = match at {
        (Some("nbsf-management"), Some("v1"), Some(resource), id) => {
            let id = id.map(str::to_owned);
            match (resource, id) {
                ("pcfBindings", None) => bindings::collection::<PcfBinding>(handler, request).await,
                ("pcfBindings", Some(id)) => bindings::individual::<PcfBinding>(handler, request, id).await,
                ("pcf-ue-bindings", None) => bindings::collection::<UeBinding>(handler, request).await,
                ("pcf-ue-bindings", Some(id)) => {
                    bindings::individual::<UeBinding>(handler, request, id).await
                }
                ("pcf-mbs-bindings", None) => bindings::collection::<MbsBinding>(handler, request).await,
                ("pcf-mbs-bindings", Some(id)) => {
                    bindings::individual::<MbsBinding>(handler, request, id).await
                }
                ("subscriptions", None) => api::subscriptions::collection(handler, request).await,
                ("subscriptions", Some(id)) => api::subscriptions::individual(handler, request, id).await,
                _ => Err(unknown(&path).into()),
            }
        }
        (Some("nbsf-management"), Some(version), _, _) if version != "v1" => {
            let detail = format!("version {version} is not served here; v1 is");
            Err(Problem::new(Cause::InvalidApi).detail(detail).into())
        }
        _ => Err(unknown(&path).into()),
    };
    answer.unwrap_or_else(|fault| {
        let problem = Problem::from(fault);
        worker.count(match problem.status().is_server_error() {
            true => Event::Failed,
            false => Event::BadRequest,
        });
        problem.into_response()
    })
}

fn unknown(path: &str) -> Problem {
    let shown: String = path.chars().take(128).collect();
    Problem::new(Cause::ResourceUriStructureNotFound).detail(format!("{shown} is not a resource of this BSF"))
}
