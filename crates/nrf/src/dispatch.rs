//! The table of the NRF: its resources, who may use them, what overload control discards, who answers.

use function::Admission;
use function::sbi::{
    Access, Completion, OperationMetrics, RefusalLog, Refused, Resource, Routed, later, now,
};
use http::Method;
use sbi::identity::Actor;
use sbi::problem::Problem;
use sbi::{Request, Response};

use crate::api::{access_token, bootstrapping, discovery, management, searches, subscriptions};
use crate::events::Event;
use crate::gate::Proof;
use crate::growth;
use crate::worker::Worker;

/// What the table says of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// The class as overload levels have it. Without one it is never discarded: a subscription that ends relieves the NRF, one
    /// that is extended stays.
    load: Option<usize>,
    proof: Proof,
}

/// Discoveries.
const DISCOVERY: Class = Class::new(Some(0), Proof::Service);
/// Tokens: their handler judges the sender by the instance that the body names.
const TOKEN: Class = Class::new(Some(1), Proof::Handler);
/// The keys of tokens.
const KEYS: Class = Class::new(Some(1), Proof::Service);
/// New subscriptions.
const NEW_SUBSCRIPTION: Class = Class::new(Some(2), Proof::Handler);
/// Subscriptions that stand.
const SUBSCRIPTION: Class = Class::new(None, Proof::Handler);
/// Changes of the NF instance that the path names.
const CHANGE: Class = Class::new(None, Proof::Instance);
/// All else.
const ANY: Class = Class::new(None, Proof::Service);

impl Class {
    const fn new(load: Option<usize>, proof: Proof) -> Self {
        Self { load, proof }
    }
}

impl Routed for Worker {
    const NF_TYPE: &'static str = "NRF";
    const METRICS: OperationMetrics = function::operation_metrics!("nrf");
    const REFUSALS: RefusalLog = function::refusal_log!("nrf");

    type Class = Class;
    type Sender = Actor;
    type Fault = Problem;

    #[rustfmt::skip]
    fn resources() -> Vec<Resource<Self>> {
        let (discovers, manages) = (Some("nnrf-disc"), Some("nnrf-nfm"));
        vec![
            Resource::new("/nnrf-disc/v1/nf-instances", discovers)
                .on(Method::GET, "Nnrf_NFDiscovery GET", DISCOVERY, discovery::discover),
            Resource::new("/nnrf-disc/v1/searches/{searchId}", discovers)
                .on(Method::GET, "Nnrf_NFDiscovery GET", DISCOVERY, |call| now(searches::stored(&call))),
            Resource::new("/nnrf-disc/v1/searches/{searchId}/complete", discovers)
                .on(Method::GET, "Nnrf_NFDiscovery GET", DISCOVERY, |call| now(searches::complete(&call))),
            Resource::new("/nnrf-nfm/v1/nf-instances/{nfInstanceID}", manages)
                .on(Method::GET, "Nnrf_NFManagement GET", ANY, |call| later(management::retrieve(call)))
                .on(Method::PUT, "Nnrf_NFManagement PUT", CHANGE, |call| later(management::change(call)))
                .on(Method::PATCH, "Nnrf_NFManagement PATCH", CHANGE, |call| later(management::change(call)))
                .on(Method::DELETE, "Nnrf_NFManagement DELETE", CHANGE, |call| later(management::change(call))),
            Resource::new("/nnrf-nfm/v1/nf-instances", manages)
                .on(Method::GET, "Nnrf_NFManagement GET", ANY, |call| now(management::list(&call)))
                .on(Method::OPTIONS, "Nnrf_NFManagement OPTIONS", ANY, |_| now(Ok(management::options()))),
            Resource::new("/nnrf-nfm/v1/subscriptions", manages)
                .on(Method::POST, "Nnrf_NFManagement POST", NEW_SUBSCRIPTION, |call| later(subscriptions::subscribe(call))),
            Resource::new("/nnrf-nfm/v1/subscriptions/{subscriptionID}", manages)
                .on(Method::PATCH, "Nnrf_NFManagement PATCH", SUBSCRIPTION, |call| later(subscriptions::change(call)))
                .on(Method::DELETE, "Nnrf_NFManagement DELETE", SUBSCRIPTION, |call| later(subscriptions::change(call))),
            Resource::new("/oauth2/token", None)
                .on(Method::POST, "Nnrf_AccessToken POST", TOKEN, |call| later(access_token::token(call))),
            Resource::new("/oauth2/jwks", None)
                .on(Method::GET, "jwks GET", KEYS, |call| now(Ok(access_token::jwks(&call)))),
            Resource::new("/bootstrapping", None)
                .on(Method::GET, "Nnrf_Bootstrapping GET", ANY, |call| now(Ok(bootstrapping::bootstrapping(&call)))),
            // Another set reads what management lists.
            Resource::new(growth::PROFILES, manages)
                .on(Method::GET, "growth GET", ANY, |call| now(growth::answer(&call.worker.snapshot(), &call.request))),
        ]
    }

    fn completion(&self) -> &Completion {
        &self.effective().completion
    }

    fn turned_away(&self, request: &Request, class: Option<Class>) -> Option<Problem> {
        let load = class.and_then(|class| class.load);
        let admission = function::sbi::admit(self.shedder(), request, load);
        let problem = function::sbi::refusal(admission)?;
        self.counters().count(if admission == Admission::Late {
            Event::TooLate
        } else {
            Event::Discarded
        });
        Some(problem)
    }

    fn sender(&self, request: &Request, access: Access<'_, Class>) -> Result<Actor, Response> {
        let proof = access.class.map_or(Proof::Service, |class| class.proof);
        let admitted = self.gate().admit(request, access.scope, proof, access.id);
        admitted.map_err(|refused| {
            if let Refused::Identity(_) = &refused {
                self.counters().count(Event::IdentityRefused);
            }
            refused.into_response(self.root())
        })
    }

    /// Those who find a fault count it: not each refusal of a change is one of its request.
    fn failed(&self, _: &Problem) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_discards_new_subscriptions_only() {
        assert_eq!(NEW_SUBSCRIPTION.load, Some(2));
        assert_eq!((SUBSCRIPTION.load, CHANGE.load), (None, None));
    }
}
