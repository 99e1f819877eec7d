//! The table of the BSF: its resources, who may use them, who answers.

use std::time::Duration;

use function::sbi::{Access, Completion, OperationMetrics, RefusalLog, Resource, Routed, later, now};
use http::Method;
use sbi::problem::Problem;
use sbi::{Request, Response};

use crate::api::fault::Fault;
use crate::api::{bindings, nf_status, subscriptions};
use crate::binding::{MbsBinding, PcfBinding, UeBinding};
use crate::events::Event;
use crate::peers::pcfs;
use crate::worker::{SCOPE, Worker};

impl Routed for Worker {
    const NF_TYPE: &'static str = "BSF";
    const METRICS: OperationMetrics = function::operation_metrics!("bsf");
    const REFUSALS: RefusalLog = function::refusal_log!("bsf");

    type Class = ();
    type Sender = ();
    type Fault = Fault;

    #[rustfmt::skip]
    fn resources() -> Vec<Resource<Self>> {
        let served = |path| Resource::new(path, Some(SCOPE));
        vec![
            served("/nbsf-management/v1/pcfBindings")
                .on(Method::GET, "pcfBindings GET", (), |call| later(bindings::discover::<PcfBinding>(call)))
                .on(Method::POST, "pcfBindings POST", (), |call| later(bindings::register::<PcfBinding>(call))),
            served("/nbsf-management/v1/pcfBindings/{bindingId}")
                .on(Method::DELETE, "pcfBindings DELETE", (), |call| later(bindings::deregister::<PcfBinding>(call)))
                .on(Method::PATCH, "pcfBindings PATCH", (), |call| later(bindings::update::<PcfBinding>(call))),
            served("/nbsf-management/v1/pcf-ue-bindings")
                .on(Method::GET, "pcf-ue-bindings GET", (), |call| later(bindings::discover::<UeBinding>(call)))
                .on(Method::POST, "pcf-ue-bindings POST", (), |call| later(bindings::register::<UeBinding>(call))),
            served("/nbsf-management/v1/pcf-ue-bindings/{bindingId}")
                .on(Method::DELETE, "pcf-ue-bindings DELETE", (), |call| later(bindings::deregister::<UeBinding>(call)))
                .on(Method::PATCH, "pcf-ue-bindings PATCH", (), |call| later(bindings::update::<UeBinding>(call))),
            served("/nbsf-management/v1/pcf-mbs-bindings")
                .on(Method::GET, "pcf-mbs-bindings GET", (), |call| later(bindings::discover::<MbsBinding>(call)))
                .on(Method::POST, "pcf-mbs-bindings POST", (), |call| later(bindings::register::<MbsBinding>(call))),
            served("/nbsf-management/v1/pcf-mbs-bindings/{bindingId}")
                .on(Method::DELETE, "pcf-mbs-bindings DELETE", (), |call| later(bindings::deregister::<MbsBinding>(call)))
                .on(Method::PATCH, "pcf-mbs-bindings PATCH", (), |call| later(bindings::update::<MbsBinding>(call))),
            served("/nbsf-management/v1/subscriptions")
                .on(Method::POST, "subscriptions POST", (), |call| later(subscriptions::create(call))),
            served("/nbsf-management/v1/subscriptions/{subId}")
                .on(Method::DELETE, "subscriptions DELETE", (), |call| later(subscriptions::end(call)))
                .on(Method::PUT, "subscriptions PUT", (), |call| later(subscriptions::replace(call))),
            // The NRF sends no token: its notification is a hint, and the audit asks the NRF before it acts on it.
            Resource::new(pcfs::CALLBACK_PATH, None)
                .on(Method::POST, "nf-status-notify POST", (), |call| now(nf_status::notify(call))),
        ]
    }

    fn completion(&self) -> &Completion {
        &self.effective().completion
    }

    fn turned_away(&self, request: &Request, _: Option<()>) -> Option<Problem> {
        let creates = *request.method() == Method::POST;
        let (why, problem) = self.door().turned_away(request, self.state(), creates)?;
        self.count(Event::of(why));
        Some(problem)
    }

    fn sender(&self, request: &Request, access: Access<'_, ()>) -> Result<(), Response> {
        let Some(scope) = access.scope else { return Ok(()) };
        let Some((why, response)) = self.door().denied(request, scope, self.root()) else {
            return Ok(());
        };
        self.count(Event::of(why));
        Err(response)
    }

    fn failed(&self, problem: &Problem) {
        self.count(if problem.status().is_server_error() {
            Event::Failed
        } else {
            Event::BadRequest
        });
    }

    fn answered(&self, response: &Response, after: Duration) {
        self.note_answer(response.status().is_server_error(), after);
    }
}
