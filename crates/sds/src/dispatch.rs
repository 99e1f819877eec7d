//! The table of an SDS: its resources, who may use them, who answers.

use function::sbi::{
    Access, Completion, OperationMetrics, RefusalLog, Resource, Routed, State, Weight, later, now,
};
use http::Method;
use sbi::problem::Problem;
use sbi::{Request, Response};

use crate::api::{bulk, checkpoint, export, groups, journal, subscribers, transactions, xml};
use crate::events::Event;
use crate::worker::Worker;

/// Scope of those that provision records.
pub(crate) const PROVISIONING: &str = "sds-provisioning";
/// Scope of database processors.
pub(crate) const JOURNAL: &str = "sds-journal";

impl Routed for Worker {
    const NF_TYPE: &'static str = "SDS";
    const METRICS: OperationMetrics = function::operation_metrics!("sds");
    const REFUSALS: RefusalLog = function::refusal_log!("sds");

    type Class = Weight;
    type Sender = ();
    type Fault = Problem;

    #[rustfmt::skip]
    fn resources() -> Vec<Resource<Self>> {
        use Weight::{Begins, Changes};
        vec![
            Resource::new("/journal", Some(JOURNAL))
                .on(Method::GET, "journal GET", Begins, |call| later(journal::read(call))),
            Resource::new("/subscribers/{kind}/{value}", Some(PROVISIONING))
                .on(Method::GET, "subscriber GET", Begins, |call| now(subscribers::read(&call)))
                .on(Method::PUT, "subscriber PUT", Changes, |call| later(subscribers::set(call)))
                .on(Method::DELETE, "subscriber DELETE", Changes, |call| later(subscribers::remove(call))),
            Resource::new("/transactions", Some(PROVISIONING))
                .on(Method::POST, "transactions POST", Changes, |call| later(transactions::write_all(call))),
            Resource::new("/groups/{group}", Some(PROVISIONING))
                .on(Method::GET, "group GET", Begins, |call| later(groups::read(call)))
                .on(Method::PUT, "group PUT", Changes, |call| later(groups::set(call)))
                .on(Method::DELETE, "group DELETE", Changes, |call| later(groups::remove(call))),
            Resource::new("/records", Some(PROVISIONING))
                .on(Method::GET, "records GET", Begins, |call| now(export::read(&call)))
                .on(Method::POST, "records POST", Changes, |call| later(bulk::write_all(call))),
            Resource::new("/xml", Some(PROVISIONING))
                .on(Method::POST, "xml POST", Changes, |call| later(xml::carry_out(call))),
            Resource::new("/checkpoint", Some(JOURNAL))
                .on(Method::GET, "checkpoint GET", Begins, |call| now(checkpoint::read(&call))),
        ]
    }

    fn completion(&self) -> &Completion {
        &self.effective().completion
    }

    fn turned_away(&self, request: &Request, class: Option<Weight>) -> Option<Problem> {
        let creates = class == Some(Weight::Changes);
        let weight = class.unwrap_or(Weight::Begins);
        let turned_away = self
            .door()
            .turned_away_by(request, State::Serving, creates, weight);
        let (why, problem) = turned_away?;
        self.count(Event::of(why));
        Some(problem)
    }

    fn sender(&self, request: &Request, access: Access<'_, Weight>) -> Result<(), Response> {
        let Some(scope) = access.scope else { return Ok(()) };
        let Some((why, response)) = self.door().denied(request, scope, "") else {
            return Ok(());
        };
        self.count(Event::of(why));
        Err(response)
    }

    fn failed(&self, problem: &Problem) {
        self.count(Event::of_problem(problem));
    }
}
