//! A worker whose requests a table routes: admission, sender, handler, and what all answers have in common.

use std::rc::Rc;
use std::time::Duration;

use ::sbi::problem::Problem;
use ::sbi::{Request, Response, Service};
use telemetry::trace::Span;

use super::about;
use super::completion::Completion;
use super::measured::Measured;
use super::operations::OperationMetrics;
use super::refusals::{Refusable, RefusalLog};
use super::resources::{Access, Answering, Resource, Route, Table, allowing};
use crate::contract::{Front, NetworkFunction};

/// A worker with a table of resources.
pub trait Routed: Sized + 'static {
    /// The type of the network function as refusals name it, `NRF`.
    const NF_TYPE: &'static str;
    /// The metrics of its operations, `operation_metrics!("nrf")`, which are part of [`NetworkFunction::metrics`].
    const METRICS: OperationMetrics;
    /// Lines about requests that are refused or fail, `refusal_log!("nrf")`.
    const REFUSALS: RefusalLog;
    /// Whether HTTP/1.1 is served beside HTTP/2.
    const HTTP1: bool = false;

    /// What the table says of an operation to those who admit it.
    type Class: Copy + 'static;
    /// What handlers learn of a sender.
    type Sender: 'static;
    /// Why a handler refuses or fails.
    type Fault: Into<Problem> + 'static;

    /// The table; rows that are requested most come first.
    fn resources() -> Vec<Resource<Self>>;

    /// What completes answers.
    fn completion(&self) -> &Completion;

    /// Why a request is not admitted now, counted; `class` is none for an operation that does not exist.
    fn turned_away(&self, request: &Request, class: Option<Self::Class>) -> Option<Problem>;

    /// What its handler learns of the sender of a request.
    ///
    /// # Errors
    /// The answer to a sender that may not send it, counted.
    fn sender(&self, request: &Request, access: Access<'_, Self::Class>) -> Result<Self::Sender, Response>;

    /// Counts a request that no handler answers, or that one refuses or cannot carry out.
    fn failed(&self, problem: &Problem);

    /// Notes an answer, and how long it took.
    fn answered(&self, _response: &Response, _after: Duration) {}
}

/// A worker as its server sees it.
pub(super) struct Server<F: NetworkFunction>
where
    F::Worker: Routed,
{
    pub(super) front: Rc<Front<F>>,
    pub(super) table: Table<F::Worker>,
    pub(super) measured: Measured,
}

impl<F: NetworkFunction> Server<F>
where
    F::Worker: Routed,
{
    /// Refuses a request or hands it to its handler.
    fn begin(&self, worker: &Rc<F::Worker>, request: Request, route: Route) -> Answering<F::Worker> {
        let access = self.table.access(&request, &route);
        if let Some(problem) = worker.turned_away(&request, access.class) {
            return Answering::Now(Ok(problem.into_response()));
        }
        let sender = match worker.sender(&request, access) {
            Ok(sender) => sender,
            Err(denied) => return Answering::Now(Ok(denied)),
        };
        let begun = self.table.begin(worker, request, route, sender);
        begun.unwrap_or_else(|(problem, allowed)| {
            worker.failed(&problem);
            Answering::Now(Ok(allowing(problem.into_response(), allowed)))
        })
    }
}

impl<F: NetworkFunction> Service for Server<F>
where
    F::Worker: Routed,
{
    async fn call(self: Rc<Self>, mut request: Request) -> Response {
        let (worker, received) = (self.front.worker(), request.received);
        let route = self.table.route(&request);
        let operation = route.operation;
        let span = self.measured.begin(F::NAME, operation, &mut request);
        let about = Refusable::of(&F::Worker::REFUSALS, &request);
        let outcome = match self.begin(&worker, request, route) {
            Answering::Now(outcome) => outcome,
            Answering::Later(work) => match span.as_ref().and_then(Span::scope) {
                None => work.await,
                Some(scope) => scope.around(work).await,
            },
        };
        let mut response = outcome.unwrap_or_else(|fault| {
            let problem = fault.into();
            worker.failed(&problem);
            problem.into_response()
        });
        worker.completion().complete(&mut response);
        if let Some(about) = about {
            about.log(&F::Worker::REFUSALS, &response);
        }
        worker.answered(&response, received.elapsed());
        self.measured.end(F::NAME, span, operation, &response, received);
        response
    }

    fn complete(&self, response: &mut Response) {
        self.front.worker().completion().complete(response);
    }

    fn has_http1(&self) -> bool {
        F::Worker::HTTP1
    }

    fn about(&self) -> String {
        about(F::NAME)
    }
}
