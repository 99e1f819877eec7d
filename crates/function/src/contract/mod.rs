//! The contract of a network function: the trait that each one implements.

mod beginning;
mod common;
mod front;
mod page;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use axum::Router;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use settings::Validate;
use telemetry::{AlarmKind, Alarms, Declaration, Health, Registry};
use tls::Watched;
use worker::{Shutdown, Waiting, WorkerContext};

use crate::error::StartError;
use crate::live;

pub use beginning::Beginning;
pub(crate) use beginning::Beginnings;
pub use common::{Common, listening};
pub use front::Front;
pub use page::Page;

/// Settings of a function: a section of the configuration file.
pub trait Settings:
    Clone + Serialize + DeserializeOwned + JsonSchema + Validate + Send + Sync + 'static
{
}

impl<C> Settings for C where
    C: Clone + Serialize + DeserializeOwned + JsonSchema + Validate + Send + Sync + 'static
{
}

/// What is in effect in a function.
pub type Effective<F> = live::Effective<<F as NetworkFunction>::Config, <F as NetworkFunction>::Derived>;

/// Holds what is in effect in a function.
pub type Live<F> = live::Live<<F as NetworkFunction>::Config, <F as NetworkFunction>::Derived>;

/// A network function. The implementing type is what its threads share: snapshots, the store, queues.
///
/// The order of calls is that of the items: the function binds its addresses, derives what it needs of its settings,
/// opens its store on the control thread, and only then do its listeners accept and its workers start.
pub trait NetworkFunction: Sized + Send + Sync + 'static {
    /// Its section in the configuration, prefix of its threads, spans and metrics.
    const NAME: &'static str;
    /// Its name in messages to people: `NRF`.
    const TITLE: &'static str;
    /// Its own admin pages, as the command line shows them; [`routes`](Self::routes) serves them.
    const PAGES: &'static [Page] = &[];
    /// Series that a metric with labels holds at most; what exceeds them is counted as `other`.
    const SERIES: usize = 1_024;

    /// Its settings. Fields that may change while it runs have the mark of [`settings::reload`].
    type Config: Settings;
    /// What is derived from settings and changes with them.
    type Derived: Send + Sync + 'static;
    /// What it listens with.
    type Listeners: Listeners;
    /// What one worker thread has: caches, clients, its view of the settings.
    type Worker: 'static;

    /// What its settings have in common with those of every function.
    fn common(config: &Self::Config) -> Common<'_>;

    /// Reserves its addresses and reads its TLS files. May complete settings by values that only the bound sockets
    /// show: the port that URIs name.
    ///
    /// # Errors
    /// When an address or a file cannot be used.
    fn bind(config: &mut Self::Config, workers: usize) -> Result<Self::Listeners, StartError>;

    /// Derives what is needed of settings; `before` is what was in effect until now, for parts that stay.
    ///
    /// # Errors
    /// Which setting cannot be used, and why.
    fn derive(config: &Arc<Self::Config>, before: Option<&Effective<Self>>) -> Result<Self::Derived, String>;

    /// Derives again where files that settings name have changed, beside those of TLS; none: nothing has changed. Runs when an
    /// operator asks for a reload and no setting has changed.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    fn rederive(_now: &Effective<Self>) -> Result<Option<Self::Derived>, String> {
        Ok(None)
    }

    /// Opens it, on the control thread: its store, its tasks.
    ///
    /// # Errors
    /// The reason why the function cannot start.
    fn open(opening: Opening<Self>) -> impl Future<Output = Result<Opened<Self>, StartError>>;

    /// One worker's share. After a reload it is made from the one `before`, so that caches and measurements stay unless
    /// a changed setting invalidates them; requests in progress end with the worker that they began with.
    fn worker(
        self: &Arc<Self>,
        seat: &Seat<Self>,
        now: &Arc<Effective<Self>>,
        before: Option<&Rc<Self::Worker>>,
    ) -> Rc<Self::Worker>;

    /// The life of a worker: it serves until the shutdown of its seat fires and no request is in flight. It drops
    /// `beginning` as soon as it accepts connections on all that it listens with.
    fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> impl Future<Output = io::Result<()>>;

    /// The admin endpoints of the other functions in this process, for a function that sends where requests say.
    fn beside(_config: &mut Self::Config, _admins: &[SocketAddr]) {}

    /// Runs after a reload, under its lock: for what is neither derived nor a worker's.
    fn reloaded(&self, _before: &Arc<Effective<Self>>, _now: &Arc<Effective<Self>>) {}

    /// Serves [`PAGES`](Self::PAGES). Pages look through a weak handle if they outlive the function.
    fn routes(self: &Arc<Self>) -> Router {
        Router::new()
    }

    /// Every metric of its own.
    fn metrics() -> Vec<Declaration>;

    /// Every alarm of its own; the skeleton adds those of its store, its certificates and its overload.
    fn alarms() -> Vec<AlarmKind> {
        Vec::new()
    }

    /// Commands worth trying, once its first interface listens at this URI; empty where it has none.
    fn hints(_uri: &str) -> Vec<String> {
        Vec::new()
    }
}

/// What a function listens with: bound for every worker before anything else, accepting when the function is open.
pub trait Listeners: Send + Sync + 'static {
    /// What the workers wait with.
    const WAITING: Waiting = Waiting::Runtime;

    /// Begins to accept connections, where binding does not do so already.
    ///
    /// # Errors
    /// When the system refuses.
    fn listen(&self) -> Result<(), StartError> {
        Ok(())
    }

    /// The addresses it listens at, those of its main interface first.
    fn addresses(&self) -> &[SocketAddr];

    /// The name of each interface with its URI.
    fn interfaces(&self) -> Vec<(&'static str, String)>;

    /// The TLS files of its listeners and clients.
    fn watched(&self) -> Option<&Arc<Watched>> {
        None
    }

    /// Reloads the files that listeners and clients use: TLS certificates, keys, trust. Returns whether any of them has
    /// changed. Listeners whose settings name other files by now use those.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    fn reload_files(&self, _settings: &Common<'_>) -> Result<bool, String> {
        self.watched().map_or(Ok(false), |watched| watched.reread())
    }

    /// Shows what it counts.
    fn observe(self: &Arc<Self>, _registry: &Registry) {}
}

/// What a function is opened with.
pub struct Opening<F: NetworkFunction> {
    /// What is in effect.
    pub live: Arc<Live<F>>,
    /// Its listeners; they do not accept yet.
    pub listeners: Arc<F::Listeners>,
    /// How many workers there will be.
    pub workers: usize,
    /// Its metrics.
    pub registry: Registry,
    /// Whether it is ready.
    pub health: Health,
    /// Its alarms.
    pub alarms: Alarms,
    /// Fires when the function is to stop.
    pub shutdown: Shutdown,
    /// Fires when all workers have ended after that: no request follows.
    pub drained: Shutdown,
}

/// A function that is open.
pub struct Opened<F> {
    /// What its threads share.
    pub function: Arc<F>,
    /// What its control thread does; ends soon after [`Opening::drained`].
    pub control: Pin<Box<dyn Future<Output = ()>>>,
}

impl<F> Opened<F> {
    /// With what the control thread does from now on.
    pub fn new(function: Arc<F>, control: impl Future<Output = ()> + 'static) -> Self {
        Self {
            function,
            control: Box::pin(control),
        }
    }
}

/// The seat of a worker in its function.
pub struct Seat<F: NetworkFunction> {
    /// Its number, and when it is to end.
    pub context: WorkerContext,
    /// What it listens with, among others.
    pub listeners: Arc<F::Listeners>,
    /// What is in effect.
    pub live: Arc<Live<F>>,
    /// The metrics of the function.
    pub registry: Registry,
    /// The alarms of the function.
    pub alarms: Alarms,
}
