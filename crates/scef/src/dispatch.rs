//! The table of T8: its resources, who may use them, who answers.

use function::sbi::{Access, Completion, OperationMetrics, RefusalLog, Resource, Routed, State, later};
use http::Method;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use crate::api::{configurations, downlinks, subscriptions, triggers};
use crate::events::Event;
use crate::tsp;
use crate::worker::Worker;

/// Scope of the MonitoringEvent API (TS 29.122 §5.3).
const MONITORING: &str = "3gpp-monitoring-event";
/// Scope of the NIDD API (TS 29.122 §5.6).
const NIDD: &str = "3gpp-nidd";
/// Scope of the DeviceTriggering API (TS 29.122 §5.7).
const TRIGGERING: &str = "3gpp-device-triggering";

impl Routed for Worker {
    const NF_TYPE: &'static str = "SCEF";
    const METRICS: OperationMetrics = function::operation_metrics!("scef");
    const REFUSALS: RefusalLog = function::refusal_log!("scef");
    /// Mandatory for T8, where HTTP/2 is recommended (TS 29.122 §5.2.2).
    const HTTP1: bool = true;

    type Class = ();
    type Sender = ();
    type Fault = Problem;

    #[rustfmt::skip]
    fn resources() -> Vec<Resource<Self>> {
        vec![
            Resource::new("/3gpp-monitoring-event/v1/{scsAsId}/subscriptions", Some(MONITORING))
                .on(Method::GET, "subscriptions GET", (), |call| later(subscriptions::list(call)))
                .on(Method::POST, "subscriptions POST", (), |call| later(subscriptions::create(call))),
            Resource::new("/3gpp-monitoring-event/v1/{scsAsId}/subscriptions/{subscriptionId}", Some(MONITORING))
                .on(Method::GET, "subscription GET", (), |call| later(subscriptions::read(call)))
                .on(Method::PUT, "subscription PUT", (), |call| later(subscriptions::replace(call)))
                .on(Method::DELETE, "subscription DELETE", (), |call| later(subscriptions::end(call))),
            Resource::new("/3gpp-nidd/v1/{scsAsId}/configurations", Some(NIDD))
                .on(Method::GET, "configurations GET", (), |call| later(configurations::list(call)))
                .on(Method::POST, "configurations POST", (), |call| later(configurations::create(call))),
            Resource::new("/3gpp-nidd/v1/{scsAsId}/configurations/{configurationId}", Some(NIDD))
                .on(Method::GET, "configuration GET", (), |call| later(configurations::read(call)))
                .on(Method::PATCH, "configuration PATCH", (), |call| later(configurations::modify(call)))
                .on(Method::DELETE, "configuration DELETE", (), |call| later(configurations::end(call))),
            Resource::new("/3gpp-nidd/v1/{scsAsId}/configurations/{configurationId}/downlink-data-deliveries", Some(NIDD))
                .on(Method::GET, "downlinks GET", (), |call| later(downlinks::list(call)))
                .on(Method::POST, "downlinks POST", (), |call| later(downlinks::create(call))),
            Resource::new("/3gpp-nidd/v1/{scsAsId}/configurations/{configurationId}/downlink-data-deliveries/{downlinkDataDeliveryId}", Some(NIDD))
                .on(Method::GET, "downlink GET", (), |call| later(downlinks::read(call)))
                .on(Method::PUT, "downlink PUT", (), |call| later(downlinks::replace(call)))
                .on(Method::PATCH, "downlink PATCH", (), |call| later(downlinks::modify(call)))
                .on(Method::DELETE, "downlink DELETE", (), |call| later(downlinks::cancel(call))),
            Resource::new("/3gpp-device-triggering/v1/{scsAsId}/transactions", Some(TRIGGERING))
                .on(Method::GET, "triggers GET", (), |call| later(triggers::list(call)))
                .on(Method::POST, "triggers POST", (), |call| later(triggers::create(call))),
            Resource::new("/3gpp-device-triggering/v1/{scsAsId}/transactions/{transactionId}", Some(TRIGGERING))
                .on(Method::GET, "trigger GET", (), |call| later(triggers::read(call)))
                .on(Method::PUT, "trigger PUT", (), |call| later(triggers::replace(call)))
                .on(Method::PATCH, "trigger PATCH", (), |call| later(triggers::modify(call)))
                .on(Method::DELETE, "trigger DELETE", (), |call| later(triggers::recall(call))),
        ]
    }

    fn completion(&self) -> &Completion {
        &self.effective().completion
    }

    fn turned_away(&self, request: &Request, _: Option<()>) -> Option<Problem> {
        let creates = *request.method() == Method::POST;
        let (why, problem) = self.door().turned_away(request, State::Serving, creates)?;
        self.count(Event::of(why));
        Some(problem)
    }

    fn sender(&self, request: &Request, access: Access<'_, ()>) -> Result<(), Response> {
        let Some(scope) = access.scope else { return Ok(()) };
        if let Some((why, response)) = self.door().denied(request, scope, self.root()) {
            self.count(Event::of(why));
            return Err(response);
        }
        if access.id.is_empty() {
            return Ok(());
        }
        self.count(match scope {
            NIDD => Event::NiddMessage,
            TRIGGERING => Event::TriggerMessage,
            _ => Event::MonitoringMessage,
        });
        let judged = self.door().gate().may_act_for(request, scope, access.id);
        judged.map_err(|problem| {
            self.count(Event::IdentityRefused);
            problem.into_response()
        })?;
        if access.id.len() > 255 || access.id.starts_with(tsp::PREFIX) {
            let detail = "scsAsId: expected 1 to 255 characters, which do not begin as the name of an SCS";
            return Err(Problem::new(Cause::ResourceNotFound)
                .detail(detail)
                .into_response());
        }
        if !self.admits(access.id) {
            self.count(Event::RateExceeded);
            let detail = "more requests a second than an SCS/AS may send (limits.rate)";
            return Err(Problem::new(Cause::TooManyRequests)
                .detail(detail)
                .into_response());
        }
        Ok(())
    }

    fn failed(&self, problem: &Problem) {
        // A monitoring type that is not served is a fault of the request, whatever its status.
        let unserved = problem.details().cause.as_deref() == Some(subscriptions::UNSUPPORTED);
        self.count(if problem.status().is_server_error() && !unserved {
            Event::Failed
        } else {
            Event::BadRequest
        });
    }
}
