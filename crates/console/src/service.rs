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
use telemetry::Declaration;
use telemetry::admin::{Limits, serve_at};

use crate::config::Config;
use crate::pages;
use crate::stream::Feed;
use crate::summary::Watch;
use crate::web;

/// The console: what its threads share.
#[derive(Debug)]
pub struct Console {
    watch: Arc<Watch>,
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
}

impl Bound {
    /// Binds the first address that is free.
    fn new(config: &Config) -> Result<Self, StartError> {
        let mut taken = None;
        for address in config.addresses() {
            match bind(address) {
                Ok((listener, at)) => {
                    return Ok(Self {
                        listener: Mutex::new(Some(listener)),
                        addresses: [at],
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
        addresses
            .map(|address| ("HTTP", format!("http://{address}")))
            .collect()
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
            directory: None,
            workers: 1,
            cores: &[],
            tls: None,
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
        let watch = Arc::new(Watch::new(opening.alarms.journal().clone()));
        // Before what is in effect is read: a change between both would be missed.
        let mut changes = opening.live.changes();
        watch.follow(&opening.live.load().config.functions);
        let function = Arc::new(Self { watch: watch.clone() });
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
        let router = web::router(console.watch.clone(), feed);
        let serving = serve_at(listener, router, Limits::default())?;
        drop(beginning);
        seat.context.shutdown.fired().await;
        feeding.abort();
        serving.stop().await;
        Ok(())
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&self.watch)
    }

    fn metrics() -> Vec<Declaration> {
        Vec::new()
    }

    fn hints(_: &str) -> Vec<String> {
        vec!["signalbox console functions".to_owned()]
    }
}
