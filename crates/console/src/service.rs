//! The console as a function: its one worker serves browsers, its control thread follows functions.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use axum::Router;
use function::{
    Beginning, Common, Effective, Front, Listeners, NetworkFunction, Opened, Opening, Page, Seat, StartError,
};
use parking_lot::Mutex;
use telemetry::{Declaration, Journal};
use tls::{ServerTls, Watched};

use crate::access::Access;
use crate::acknowledged::Acknowledged;
use crate::config::Config;
use crate::metrics::{METRICS, Meters};
use crate::pages;
use crate::server::serve;
use crate::stream::Feed;
use crate::summary::Watch;
use crate::web;

/// The console: what its threads share.
#[derive(Debug)]
pub struct Console {
    watch: Arc<Watch>,
    access: Arc<Access>,
    meters: Arc<Meters>,
}

/// A running console.
pub type Running = function::Running<Console>;

/// Starts a console. Blocks until it listens.
///
/// # Errors
/// When its address cannot be bound; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// The listener for browsers; the worker takes it.
#[derive(Debug)]
pub struct Bound {
    listener: Mutex<Option<TcpListener>>,
    addresses: [SocketAddr; 1],
    watched: Arc<Watched>,
    tls: Option<ServerTls>,
}

/// The setting of the TLS files.
const TLS: &str = "tls";

impl Bound {
    /// Binds the first address that is free.
    fn new(config: &Config) -> Result<Self, StartError> {
        let watched = Arc::<Watched>::default();
        let tls = config.tls.as_ref();
        let tls = tls.map(|files| watched.open(TLS, files, |material| material.server(&[b"http/1.1"])));
        let tls = tls.transpose().map_err(StartError::Config)?;
        let mut taken = None;
        for address in config.addresses() {
            match bind(address) {
                Ok((listener, at)) => {
                    return Ok(Self {
                        listener: Mutex::new(Some(listener)),
                        addresses: [at],
                        watched,
                        tls,
                    });
                }
                Err(source) => taken = taken.or(Some(StartError::Listen { address, source })),
            }
        }
        Err(taken.unwrap_or_else(|| StartError::Config("listen: an address is needed".to_owned())))
    }
}

fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}

impl Listeners for Bound {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let addresses = self.addresses.iter();
        let (name, scheme) = if self.tls.is_some() {
            ("HTTPS", "https")
        } else {
            ("HTTP", "http")
        };
        addresses
            .map(|address| (name, format!("{scheme}://{address}")))
            .collect()
    }

    fn watched(&self) -> Option<&Arc<Watched>> {
        Some(&self.watched)
    }

    fn reload_files(&self, settings: &Common<'_>) -> Result<bool, String> {
        Ok(self.watched.prepare(&[(TLS, settings.tls)])?.apply())
    }
}

impl NetworkFunction for Console {
    const NAME: &'static str = "console";
    const TITLE: &'static str = "console";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = ();
    type Listeners = Bound;
    type Worker = ();

    fn common(config: &Config) -> Common<'_> {
        Common {
            admin: config.admin,
            instance: "",
            listen: vec![("listen".to_owned(), config.listen)],
            directory: config.directory.as_deref(),
            workers: 1,
            cores: &[],
            tls: config.tls.as_ref(),
            client_tls: None,
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, _workers: usize) -> Result<Bound, StartError> {
        Bound::new(config)
    }

    fn derive(_: &Arc<Config>, _: Option<&Effective<Self>>) -> Result<(), String> {
        Ok(())
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let journal = opening.alarms.journal().clone();
        let meters = Arc::new(Meters::new(&opening.registry));
        let access = access(&opening.live.load().config, &journal, &meters)?;
        let directory = opening.live.load().config.directory.clone();
        let acknowledged = Acknowledged::open(directory.as_deref());
        let watch = Arc::new(Watch::new(journal, acknowledged));
        // Before what is in effect is read: a change between both would be missed.
        let mut changes = opening.live.changes();
        watch.follow(&opening.live.load().config.functions);
        let function = Arc::new(Self {
            watch: watch.clone(),
            access,
            meters,
        });
        let (live, drained) = (opening.live, opening.drained);
        Ok(Opened::new(function, async move {
            let following = async {
                while changes.next().await {
                    watch.follow(&live.load().config.functions);
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = following => {}
                () = drained.fired() => {}
            }
            watch.follow(&[]);
        }))
    }

    fn worker(self: &Arc<Self>, _: &Seat<Self>, _: &Arc<Effective<Self>>, _: Option<&Rc<()>>) -> Rc<()> {
        Rc::default()
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let (seat, console) = (front.seat(), front.function());
        let Some(listener) = seat.listeners.listener.lock().take() else {
            return Err(io::Error::other("the worker of the console was started twice"));
        };
        let feed = Feed::new();
        let feeding = tokio::spawn(feed.clone().run(console.watch.clone()));
        let hosts = seat.live.load().config.hosts.clone();
        let router = web::router(console.watch.clone(), feed, console.access.clone(), &hosts);
        let (tls, meters) = (seat.listeners.tls.clone(), console.meters.clone());
        let serving = serve(listener, tls, router, meters, seat.context.shutdown.clone());
        drop(beginning);
        let served = serving.await;
        feeding.abort();
        served
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&self.watch)
    }

    fn metrics() -> Vec<Declaration> {
        METRICS.to_vec()
    }

    fn hints(_: &str) -> Vec<String> {
        vec!["signalbox console functions".to_owned()]
    }
}

/// Access by the settings. Where unauthenticated peers reach the console, it needs a user who can sign in.
fn access(config: &Config, journal: &Journal, meters: &Arc<Meters>) -> Result<Arc<Access>, StartError> {
    let directory = config.directory.as_deref();
    let opened = Access::open(directory, config.tls.is_some(), journal.clone(), meters.clone());
    let access = opened.map_err(StartError::Config)?;
    if !config.listen.ip().is_loopback() && access.users() == 0 {
        let words = "listen: other machines could reach it, and it has no user yet: signalbox console user add NAME --config FILE";
        return Err(StartError::Config(words.to_owned()));
    }
    Ok(Arc::new(access))
}
