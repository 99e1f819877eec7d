//! The steps of a request: may it be worked on now, may its sender ask this, which resource is it, which handler answers it.

use std::pin::Pin;
use std::rc::Rc;

use function::sbi::{Answer, Nature, NotBegun, OperationMetrics, Weight, named_api, unserved};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, path};

use crate::activity::trail;
use crate::api::am::AM;
use crate::api::fault::Fault;
use crate::api::policies::{self, Service};
use crate::api::ue::UE;
use crate::api::{authorization, bdt, callbacks, n1, sm};
use crate::association::callbacks::Producer;
use crate::events::Event;
use crate::worker::Worker;

/// A resource of the PCF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource<'p> {
    SmPolicies,
    SmPolicy(&'p str),
    SmUpdate(&'p str),
    SmDelete(&'p str),
    Policies,
    Policy(&'p str),
    PolicyUpdate(&'p str),
    AppSessions,
    PcscfRestoration,
    AppSession(&'p str),
    AppDelete(&'p str),
    AppEvents(&'p str),
    BdtPolicies,
    BdtPolicy(&'p str),
    /// A notification that the PCF receives.
    Callback(Callback<'p>),
}

/// A notification, with the segment of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callback<'p> {
    PolicyData(&'p str),
    SpendingLimits(&'p str),
    SpendingLimitsEnd(&'p str),
    /// A message of a UE.
    N1Message(&'p str),
    /// An AMF cannot reach a UE; with the procedure transaction identity.
    N1Failure(&'p str, &'p str),
}

/// The first segment of the paths of notifications.
const CALLBACKS: &str = "signalbox-pcf";

/// The services, by the first segment of a path, which is their scope as well.
const SERVICES: &[&str] = &[
    "npcf-smpolicycontrol",
    "npcf-policyauthorization",
    "npcf-am-policy-control",
    "npcf-ue-policy-control",
    bdt::SERVICE,
    CALLBACKS,
];

/// Why a path names no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown<'p> {
    Service(&'p str),
    Version(&'p str),
    Resource,
}

/// The resource of a path, and its service.
fn resource(path: &str) -> Result<(&'static str, Resource<'_>), Unknown<'_>> {
    let mut segments = path.strip_prefix('/').unwrap_or(path).splitn(6, '/');
    let mut next = || segments.next();
    let (service, version) = (next(), next());
    let service = SERVICES.iter().find(|known| Some(**known) == service);
    let unknown = || named_api(path).map_or(Unknown::Resource, Unknown::Service);
    let service = *service.ok_or_else(unknown)?;
    match version {
        Some("v1") => {}
        Some(version) => return Err(Unknown::Version(version)),
        None => return Err(Unknown::Resource),
    }
    let rest = (next(), next(), next(), next());
    // An identity has at least one character: `sm-policies/` is not one of the policies.
    if [rest.0, rest.1, rest.2, rest.3].contains(&Some("")) {
        return Err(Unknown::Resource);
    }
    let resource = match (service, rest) {
        ("npcf-smpolicycontrol", (Some("sm-policies"), id, action, None)) => match (id, action) {
            (None, None) => Resource::SmPolicies,
            (Some(id), None) => Resource::SmPolicy(id),
            (Some(id), Some("update")) => Resource::SmUpdate(id),
            (Some(id), Some("delete")) => Resource::SmDelete(id),
            _ => return Err(Unknown::Resource),
        },
        ("npcf-am-policy-control" | "npcf-ue-policy-control", (Some("policies"), id, action, None)) => {
            match (id, action) {
                (None, None) => Resource::Policies,
                (Some(id), None) => Resource::Policy(id),
                (Some(id), Some("update")) => Resource::PolicyUpdate(id),
                _ => return Err(Unknown::Resource),
            }
        }
        ("npcf-policyauthorization", (Some("app-sessions"), id, action, None)) => match (id, action) {
            (None, None) => Resource::AppSessions,
            (Some("pcscf-restoration"), None) => Resource::PcscfRestoration,
            (Some(id), None) => Resource::AppSession(id),
            (Some(id), Some("delete")) => Resource::AppDelete(id),
            (Some(id), Some("events-subscription")) => Resource::AppEvents(id),
            _ => return Err(Unknown::Resource),
        },
        (bdt::SERVICE, (Some("bdtpolicies"), None, None, None)) => Resource::BdtPolicies,
        (bdt::SERVICE, (Some("bdtpolicies"), Some(id), None, None)) => Resource::BdtPolicy(id),
        (CALLBACKS, (Some("policy-data-change"), Some(id), None, None)) => {
            Resource::Callback(Callback::PolicyData(id))
        }
        (CALLBACKS, (Some("spending-limits"), Some(id), Some("notify"), None)) => {
            Resource::Callback(Callback::SpendingLimits(id))
        }
        (CALLBACKS, (Some("spending-limits"), Some(id), Some("terminate"), None)) => {
            Resource::Callback(Callback::SpendingLimitsEnd(id))
        }
        (CALLBACKS, (Some("ue-policy"), Some(id), Some("n1"), None)) => {
            Resource::Callback(Callback::N1Message(id))
        }
        (CALLBACKS, (Some("ue-policy"), Some(id), Some("failure"), Some(pti))) => {
            Resource::Callback(Callback::N1Failure(id, pti))
        }
        _ => return Err(Unknown::Resource),
    };
    Ok((service, resource))
}

impl Resource<'_> {
    /// Whether a POST creates an association.
    fn is_collection(self) -> bool {
        matches!(
            self,
            Self::SmPolicies | Self::Policies | Self::AppSessions | Self::BdtPolicies
        )
    }

    /// What a request does. A session whose end is refused stays for ever, since its consumer forgets it.
    fn weight(self, method: &http::Method) -> Weight {
        match self {
            Self::SmDelete(_) | Self::AppDelete(_) => Weight::Ends,
            Self::Policy(_) | Self::AppEvents(_) if *method == http::Method::DELETE => Weight::Ends,
            Self::SmUpdate(_) | Self::PolicyUpdate(_) | Self::AppEvents(_) | Self::Callback(_) => {
                Weight::Changes
            }
            Self::AppSession(_) | Self::BdtPolicy(_) if *method == http::Method::PATCH => Weight::Changes,
            _ => Weight::Begins,
        }
    }
}

impl Answer for Worker {
    const OPERATIONS: &'static [&'static str] = &[
        "sm-policies POST",
        "sm-policies GET",
        "sm-policies update",
        "sm-policies delete",
        "am-policies POST",
        "am-policies GET",
        "am-policies update",
        "am-policies DELETE",
        "ue-policies POST",
        "ue-policies GET",
        "ue-policies update",
        "ue-policies DELETE",
        "app-sessions POST",
        "app-sessions GET",
        "app-sessions PATCH",
        "app-sessions delete",
        "app-sessions events-subscription",
        "app-sessions pcscf-restoration",
        "bdtpolicies POST",
        "bdtpolicies GET",
        "bdtpolicies PATCH",
        "notification",
        "other",
    ];

    const METRICS: Option<OperationMetrics> = Some(function::operation_metrics!("pcf"));

    fn operation(request: &Request) -> usize {
        let path = path::usual(request.path());
        let found = resource(&path);
        let is_am = found.is_ok_and(|(service, _)| service == "npcf-am-policy-control");
        let either = |am, ue| if is_am { am } else { ue };
        let name = match (found, request.method().as_str()) {
            (Ok((_, Resource::SmPolicies)), "POST") => "sm-policies POST",
            (Ok((_, Resource::SmPolicy(_))), "GET") => "sm-policies GET",
            (Ok((_, Resource::SmUpdate(_))), "POST") => "sm-policies update",
            (Ok((_, Resource::SmDelete(_))), "POST") => "sm-policies delete",
            (Ok((_, Resource::Policies)), "POST") => either("am-policies POST", "ue-policies POST"),
            (Ok((_, Resource::Policy(_))), "GET") => either("am-policies GET", "ue-policies GET"),
            (Ok((_, Resource::PolicyUpdate(_))), "POST") => {
                either("am-policies update", "ue-policies update")
            }
            (Ok((_, Resource::Policy(_))), "DELETE") => either("am-policies DELETE", "ue-policies DELETE"),
            (Ok((_, Resource::AppSessions)), "POST") => "app-sessions POST",
            (Ok((_, Resource::PcscfRestoration)), "POST") => "app-sessions pcscf-restoration",
            (Ok((_, Resource::AppSession(_))), "GET") => "app-sessions GET",
            (Ok((_, Resource::AppSession(_))), "PATCH") => "app-sessions PATCH",
            (Ok((_, Resource::AppDelete(_))), "POST") => "app-sessions delete",
            (Ok((_, Resource::AppEvents(_))), "PUT" | "DELETE") => "app-sessions events-subscription",
            (Ok((_, Resource::BdtPolicies)), "POST") => "bdtpolicies POST",
            (Ok((_, Resource::BdtPolicy(_))), "GET") => "bdtpolicies GET",
            (Ok((_, Resource::BdtPolicy(_))), "PATCH") => "bdtpolicies PATCH",
            (Ok((_, Resource::Callback(_))), "POST") => "notification",
            _ => "other",
        };
        let place = Self::OPERATIONS.iter().position(|known| *known == name);
        place.unwrap_or(Self::OPERATIONS.len() - 1)
    }

    async fn answer(self: Rc<Self>, request: Request) -> Response {
        let nature = nature(&request);
        match self.queue().slot(&request, nature).await {
            Ok(slot) => slot.run(apart(begun(self, request, nature.weight))).await,
            Err(why) => {
                let mut response = self.not_begun(why);
                self.completion().complete(&mut response);
                response
            }
        }
    }

    fn complete(&self, response: &mut Response) {
        self.completion().complete(response);
    }
}

/// What is known of a request by its path.
fn nature(request: &Request) -> Nature {
    let path = path::usual(request.path());
    let found = resource(&path).ok().map(|(_, resource)| resource);
    let is_post = *request.method() == http::Method::POST;
    Nature {
        weight: found.map_or(Weight::Begins, |resource| resource.weight(request.method())),
        // What is created needs the data of its subscriber; what stands has them, as a rule.
        asks_others: is_post && matches!(found, Some(Resource::SmPolicies | Resource::Policies)),
    }
}

/// Serves a request whose handler may begin.
async fn begun(worker: Rc<Worker>, request: Request, weight: Weight) -> Response {
    if weight == Weight::Begins && request.is_given_up() {
        // Its consumer has reset it while it was queued.
        return worker.not_begun(NotBegun::Late);
    }
    let answered = async {
        answer(&worker, &request, weight).await.unwrap_or_else(|fault| {
            let problem = Problem::from(fault);
            worker.count(match problem.status().is_server_error() {
                true => Event::Failed,
                false => Event::BadRequest,
            });
            problem.into_response()
        })
    };
    let mut response = trail::of_sbi(worker.activity(), &request, worker.max_body(), answered).await;
    worker.completion().complete(&mut response);
    response
}

async fn answer(worker: &Rc<Worker>, request: &Request, weight: Weight) -> Result<Response, Fault> {
    let path = path::usual(request.path());
    let found = resource(&path);
    let is_collection = found.is_ok_and(|(_, resource)| resource.is_collection());
    let creates = is_collection && *request.method() == http::Method::POST;
    if let Some(problem) = worker.turned_away(request, creates, weight) {
        return Ok(problem.into_response());
    }
    let (service, resource) = found.map_err(|unknown| unknown_problem(unknown, request.path()))?;
    // UDRs, CHFs and AMFs send no tokens. Each has a random path of its own.
    if let Resource::Callback(callback) = resource {
        return apart(notified(worker, request, callback)).await;
    }
    if let Some(denied) = worker.denied(request, service) {
        return Ok(denied);
    }
    match resource {
        Resource::SmPolicies => apart(sm::collection(worker, request)).await,
        Resource::SmPolicy(id) => apart(sm::individual(worker, request, id)).await,
        Resource::SmUpdate(id) => apart(sm::update(worker, request, id)).await,
        Resource::SmDelete(id) => apart(sm::delete(worker, request, id)).await,
        Resource::AppSessions => apart(authorization::collection(worker, request)).await,
        Resource::PcscfRestoration => apart(authorization::restoration(worker, request)).await,
        Resource::AppSession(id) => apart(authorization::individual(worker, request, id)).await,
        Resource::AppDelete(id) => apart(authorization::delete(worker, request, id)).await,
        Resource::AppEvents(id) => apart(authorization::events(worker, request, id)).await,
        Resource::BdtPolicies => apart(bdt::collection(worker, request)).await,
        Resource::BdtPolicy(id) => apart(bdt::individual(worker, request, id)).await,
        Resource::Policies => apart(policies::collection(worker, policy_service(service), request)).await,
        Resource::Policy(id) => {
            apart(policies::individual(worker, policy_service(service), request, id)).await
        }
        Resource::PolicyUpdate(id) => {
            apart(policies::update(worker, policy_service(service), request, id)).await
        }
        Resource::Callback(callback) => apart(notified(worker, request, callback)).await,
    }
}

/// Work with memory of its own. Otherwise each request has room for the largest of all handlers, and each future around it
/// for a second one.
fn apart<F: Future>(work: F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), work))
}

/// The policy service of AMFs by its name.
fn policy_service(name: &str) -> &'static Service {
    match name {
        "npcf-am-policy-control" => &AM,
        _ => &UE,
    }
}

async fn notified(worker: &Worker, request: &Request, callback: Callback<'_>) -> Result<Response, Fault> {
    let producer = match callback {
        Callback::PolicyData(_) => Producer::Udr,
        Callback::SpendingLimits(_) | Callback::SpendingLimitsEnd(_) => Producer::Chf,
        Callback::N1Message(_) | Callback::N1Failure(..) => Producer::Amf,
    };
    callbacks::check_sender(worker, request, producer).await?;
    match callback {
        Callback::PolicyData(id) => callbacks::policy_data(worker, request, id).await,
        Callback::SpendingLimits(id) => callbacks::spending_limits(worker, request, id).await,
        Callback::SpendingLimitsEnd(id) => callbacks::spending_limits_end(worker, request, id).await,
        Callback::N1Message(id) => n1::message(worker, request, id).await,
        Callback::N1Failure(id, pti) => n1::failure(worker, request, (id, pti)).await,
    }
}

fn unknown_problem(unknown: Unknown<'_>, path: &str) -> Problem {
    match unknown {
        Unknown::Service(name) => unserved(name, "PCF"),
        Unknown::Version(version) => {
            let shown: String = version.chars().take(32).collect();
            Problem::new(Cause::InvalidApi).detail(format!("version {shown} is not served here; v1 is"))
        }
        Unknown::Resource => {
            let shown: String = path.chars().take(128).collect();
            Problem::new(Cause::ResourceUriStructureNotFound)
                .detail(format!("{shown} is not a resource of this PCF"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a request in flight is what a burst takes for each: the part that is the same for all stays small, and
    /// the futures around it do not multiply that of the handlers.
    #[test]
    fn a_request_in_flight_takes_the_memory_of_its_own_handler() {
        fn size<F: Future>(_: impl FnOnce(Rc<Worker>, Request) -> F) -> usize {
            size_of::<F>()
        }
        let queued = size(<Worker as Answer>::answer);
        assert!(queued <= 1_024, "{queued} bytes");
        let begun = size(|worker, request| begun(worker, request, Weight::Begins));
        assert!(begun <= 4_096, "{begun} bytes");
    }

    #[test]
    fn ends_are_never_refused_for_load_and_changes_last() {
        use http::Method;
        let weight = |method: &Method, path: &str| resource(path).unwrap().1.weight(method);
        for (method, path, expected) in [
            (
                Method::POST,
                "/npcf-smpolicycontrol/v1/sm-policies",
                Weight::Begins,
            ),
            (
                Method::GET,
                "/npcf-smpolicycontrol/v1/sm-policies/7",
                Weight::Begins,
            ),
            (
                Method::POST,
                "/npcf-smpolicycontrol/v1/sm-policies/7/update",
                Weight::Changes,
            ),
            (
                Method::POST,
                "/npcf-smpolicycontrol/v1/sm-policies/7/delete",
                Weight::Ends,
            ),
            (
                Method::DELETE,
                "/npcf-am-policy-control/v1/policies/7",
                Weight::Ends,
            ),
            (
                Method::DELETE,
                "/npcf-ue-policy-control/v1/policies/7",
                Weight::Ends,
            ),
            (
                Method::POST,
                "/npcf-ue-policy-control/v1/policies/7/update",
                Weight::Changes,
            ),
            (
                Method::POST,
                "/npcf-policyauthorization/v1/app-sessions/7/delete",
                Weight::Ends,
            ),
            (
                Method::PATCH,
                "/npcf-policyauthorization/v1/app-sessions/7",
                Weight::Changes,
            ),
            (
                Method::PATCH,
                "/npcf-bdtpolicycontrol/v1/bdtpolicies/7",
                Weight::Changes,
            ),
            (
                Method::POST,
                "/signalbox-pcf/v1/policy-data-change/7",
                Weight::Changes,
            ),
        ] {
            assert_eq!(weight(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn paths_name_resources() {
        const SM: &str = "npcf-smpolicycontrol";
        for (path, expected) in [
            (
                "/npcf-smpolicycontrol/v1/sm-policies",
                Ok((SM, Resource::SmPolicies)),
            ),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/7",
                Ok((SM, Resource::SmPolicy("7"))),
            ),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/7/update",
                Ok((SM, Resource::SmUpdate("7"))),
            ),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/7/delete",
                Ok((SM, Resource::SmDelete("7"))),
            ),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/7/update/x",
                Err(Unknown::Resource),
            ),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/7/other",
                Err(Unknown::Resource),
            ),
            (
                "/npcf-am-policy-control/v1/policies/7/update",
                Ok(("npcf-am-policy-control", Resource::PolicyUpdate("7"))),
            ),
            (
                "/npcf-ue-policy-control/v1/policies/7/delete",
                Err(Unknown::Resource),
            ),
            ("/npcf-smpolicycontrol/v1", Err(Unknown::Resource)),
            ("/npcf-smpolicycontrol", Err(Unknown::Resource)),
            (
                "/npcf-smpolicycontrol/v9/sm-policies",
                Err(Unknown::Version("v9")),
            ),
            ("/other/v1/sm-policies", Err(Unknown::Service("other"))),
            ("/other/sm-policies", Err(Unknown::Resource)),
            ("", Err(Unknown::Resource)),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }
}
