//! The service-based interface of a function (TS 29.500): listeners, TLS, and the requests of a worker.

pub mod config;

mod admission;
mod certified;
mod completion;
mod destinations;
mod door;
mod gate;
mod key_sets;
mod measured;
mod metrics;
mod operational;
mod operations;
mod own_load;
mod published;
mod queue;
mod rates;
mod refusals;
mod registration;
mod resources;
mod routed;
mod verification;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use ::sbi::headers::{MessagePriority, SbiHeader};
use ::sbi::server::{Interface, ServerConfig, StatsSnapshot};
use ::sbi::tls::{ClientTls, Tls};
use ::sbi::{Request, Response, Service};
use settings::Listen;
use telemetry::trace::Span;
use telemetry::{Declaration, Registry, events};
use tls::Watched;
use worker::Waiting;

pub use admission::{Offer, admit, admit_as, is_awaited, refusal, waited};
pub use certified::{certify_instance, contradiction};
pub use completion::Completion;
pub use destinations::{Destinations, Use, guard};
pub use door::{Door, TurnedAway, Weight};
pub use gate::{Gate, Proofs, Refused};
pub use key_sets::follow_key_sets;
use measured::Measured;
pub use metrics::{declarations, observe};
pub use operational::{Operational, State};
pub use operations::OperationMetrics;
use operations::Operations;
pub use own_load::{Conveying, OwnLoad};
pub use published::is_unspecified;
pub use queue::{Nature, NotBegun, QueueBounds, QueueMetrics, RequestQueue, elsewhere};
pub use rates::{Exceeded, Rates};
pub use refusals::{RefusalLog, RefusedRequest};
pub use registration::{Profile, Registration, nrfs};
pub use resources::{Access, Answering, Call, Resource, later, named_api, now, unserved};
pub use routed::Routed;
pub use verification::Verification;

use crate::contract::{Common, Front, Listeners, NetworkFunction};
use crate::error::StartError;
use crate::shedder::AdmissionMetrics;

/// Answers requests: what the worker of a function with a service-based interface does.
pub trait Answer: 'static {
    /// Its operations as traces and metrics name them: service and method. The last one stands for any other request.
    const OPERATIONS: &'static [&'static str];

    /// The metrics of its operations, `Some(operation_metrics!("nrf"))`, which are part of
    /// [`NetworkFunction::metrics`]; none where the function measures by other labels.
    const METRICS: Option<OperationMetrics> = None;

    /// The position of a request's operation in [`OPERATIONS`](Self::OPERATIONS).
    fn operation(request: &Request) -> usize;

    /// Serves a request.
    fn answer(self: Rc<Self>, request: Request) -> impl Future<Output = Response>;

    /// Completes an answer that the server makes itself (see [`Service::complete`]).
    fn complete(&self, _response: &mut Response) {}
}

/// Every metric of a function whose worker is `W` and that counts the events `E`: gauges of its own, those of its
/// admission, its operations, its events.
#[must_use]
pub fn metrics_of<W: Answer, E: events::Happening>(
    own: &[Declaration],
    admission: &AdmissionMetrics,
) -> Vec<Declaration> {
    all_metrics::<E>(own, admission, W::METRICS)
}

/// As [`metrics_of`], for a worker with a table of resources.
#[must_use]
pub fn metrics_of_routed<W: Routed, E: events::Happening>(
    own: &[Declaration],
    admission: &AdmissionMetrics,
) -> Vec<Declaration> {
    all_metrics::<E>(own, admission, Some(W::METRICS))
}

fn all_metrics<E: events::Happening>(
    own: &[Declaration],
    admission: &AdmissionMetrics,
    operations: Option<OperationMetrics>,
) -> Vec<Declaration> {
    let operations = operations.into_iter().flat_map(|metrics| metrics.declarations());
    let own = own.iter().copied().chain(admission.declarations());
    own.chain(operations).chain(events::declarations::<E>()).collect()
}

/// Priority of a message without `3gpp-Sbi-Message-Priority` (TS 29.500 §6.8.4 leaves it to the function).
const USUAL_PRIORITY: u8 = 24;

/// The priority of a request, 0 the most important, 31 the least (`3gpp-Sbi-Message-Priority`).
#[must_use]
pub fn priority(request: &Request) -> u8 {
    let priority = MessagePriority::of(request.headers()).ok().flatten();
    priority.map_or(USUAL_PRIORITY, MessagePriority::get)
}

/// A worker as its server sees it.
struct Server<F: NetworkFunction> {
    front: Rc<Front<F>>,
    measured: Measured,
}

impl<F: NetworkFunction> Service for Server<F>
where
    F::Worker: Answer,
{
    async fn call(self: Rc<Self>, mut request: Request) -> Response {
        let worker = self.front.worker();
        let (operation, received) = (F::Worker::operation(&request), request.received);
        let span = self.measured.begin(F::NAME, operation, &mut request);
        // In one place, however it is awaited: it may take kilobytes.
        let work = std::pin::pin!(worker.answer(request));
        let response = match span.as_ref().and_then(Span::scope) {
            None => work.await,
            Some(scope) => scope.around(work).await,
        };
        self.measured.end(F::NAME, span, operation, &response, received);
        response
    }

    fn complete(&self, response: &mut Response) {
        self.front.worker().complete(response);
    }

    fn about(&self) -> String {
        about(F::NAME)
    }
}

/// What a function says to who looks at its service-based interface with a browser.
fn about(function: &str) -> String {
    let name = function.to_uppercase();
    format!("It belongs to the {name}. Its admin pages are at the address that its log names.")
}

/// The listeners of a service-based interface, with the TLS of the function.
#[derive(Debug)]
pub struct Sbi {
    interface: Interface,
    tls: Arc<Tls>,
}

impl Sbi {
    /// Reads TLS files and reserves the addresses of the service-based interface for each worker.
    ///
    /// # Errors
    /// When a file or an address cannot be used.
    pub fn reserve(listen: &Listen, settings: &Common<'_>, workers: usize) -> Result<Self, StartError> {
        let tls = Tls::open(settings.tls, settings.client_tls).map_err(StartError::Config)?;
        if !settings.instance.is_empty() {
            tls.pin_instance(settings.instance);
        }
        let interface = Interface::reserve(listen.iter(), workers, tls.server())?;
        Ok(Self { interface, tls })
    }

    /// The root of URIs at the first address that others can use; empty without a listener. `nrfs` are API roots: a
    /// function that listens at all addresses is where it reaches them from.
    ///
    /// # Errors
    /// When no address of this machine leads anywhere.
    pub fn root(&self, nrfs: &[String]) -> Result<String, StartError> {
        let listens = self.interface.addresses();
        match (published::published(listens, nrfs).first(), listens.first()) {
            (Some(address), _) => Ok(self.interface.root_at(*address)),
            (None, None) => Ok(String::new()),
            (None, Some(address)) => Err(StartError::Config(format!(
                "listen: {address} stands for all addresses of this machine, and none of them leads to an NRF or \
                 elsewhere, so that no peer could reach this function; set `apiRoot`"
            ))),
        }
    }

    /// The files that are checked for changes, for other listeners of the function to add theirs.
    #[must_use]
    pub fn watched(&self) -> &tls::Watched {
        self.tls.watched()
    }

    /// TLS of the connections that the function makes.
    #[must_use]
    pub fn client_tls(&self) -> Option<ClientTls> {
        self.tls.client()
    }

    /// Counts of the servers, one per worker.
    pub fn stats(&self) -> impl Iterator<Item = StatsSnapshot> {
        self.interface.stats()
    }

    /// Serves the requests of one worker until its shutdown fires.
    ///
    /// # Errors
    /// When a listener itself fails.
    pub async fn serve<F>(&self, front: Rc<Front<F>>, limits: Arc<ServerConfig>) -> io::Result<()>
    where
        F: NetworkFunction,
        F::Worker: Answer,
    {
        let context = front.seat().context.clone();
        let metrics = F::Worker::METRICS;
        let operations = Operations::new(F::Worker::OPERATIONS, metrics.as_ref(), &front.seat().registry);
        let measured = Measured(operations);
        let server = Rc::new(Server { front, measured });
        self.interface.serve(&context, server, limits).await
    }

    /// As [`Self::serve`], for a worker with a table of resources.
    ///
    /// # Errors
    /// When a listener itself fails.
    pub async fn serve_routed<F>(&self, front: Rc<Front<F>>, limits: Arc<ServerConfig>) -> io::Result<()>
    where
        F: NetworkFunction,
        F::Worker: Routed,
    {
        let context = front.seat().context.clone();
        let table = resources::Table::new(F::Worker::resources());
        let metrics = F::Worker::METRICS;
        let operations = Operations::new(table.names(), Some(&metrics), &front.seat().registry);
        let measured = Measured(operations);
        let server = routed::Server {
            front,
            table,
            measured,
        };
        self.interface.serve(&context, Rc::new(server), limits).await
    }
}

impl Listeners for Sbi {
    /// All connections belong to the reactor.
    const WAITING: Waiting = Waiting::Sockets;

    fn listen(&self) -> Result<(), StartError> {
        Ok(self.interface.listen()?)
    }

    fn addresses(&self) -> &[SocketAddr] {
        self.interface.addresses()
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let scheme = match self.tls.server() {
            Some(_) => "https",
            None => "http",
        };
        let uri = |address| ("SBI", format!("{scheme}://{address}"));
        self.addresses().iter().map(uri).collect()
    }

    fn watched(&self) -> Option<&Arc<Watched>> {
        Some(self.tls.watched())
    }

    fn reload_files(&self, settings: &Common<'_>) -> Result<bool, String> {
        self.tls.reload(settings.tls, settings.client_tls)
    }

    fn observe(self: &Arc<Self>, registry: &Registry) {
        let sbi = self.clone();
        metrics::observe(registry, move || sbi.stats().collect());
    }
}
