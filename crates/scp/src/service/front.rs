//! What a server calls: the worker of the settings there are now.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use sbi::client::{Client, Guard};
use sbi::dns::Dns;
use sbi::{Request, Response, Service};
use tokio::sync::mpsc;

use super::worker::Worker;
use crate::discovery::Vouched;
use crate::events::Metrics;
use crate::feed::{Running as Feed, Tap};
use crate::live::Live;
use crate::network::Network;
use crate::peers::{Callbacks, Heard};
use crate::protection::Federation;
use crate::target::Bounds;

/// What every worker is made of.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) network: Arc<ArcSwap<Network>>,
    pub(super) changes: mpsc::Sender<Heard>,
    pub(super) callbacks: Arc<Callbacks>,
    pub(super) client_tls: Option<sbi::tls::ClientTls>,
    pub(super) names: Option<Dns>,
    pub(super) metrics: Metrics,
    pub(super) load: Arc<AtomicU8>,
    pub(super) own: Arc<[String]>,
    pub(super) registry: telemetry::Registry,
    pub(super) board: Arc<crate::protection::Board>,
    pub(super) federation: Arc<Federation>,
    pub(super) vouched: Arc<Vouched>,
}

/// The connections of a worker.
#[derive(Clone)]
pub(super) struct Clients {
    /// To what is known.
    pub(super) client: Client,
    /// To what is not.
    pub(super) unknown_client: Client,
}

/// A worker's SCP as its server sees it: made anew when the settings have changed.
pub(super) struct Front {
    parts: Parts,
    index: usize,
    clients: Clients,
    live: RefCell<arc_swap::Cache<Arc<ArcSwap<Live>>, Arc<Live>>>,
    current: RefCell<Rc<Worker>>,
    /// This worker's part of the feed, and of which.
    tap: RefCell<Option<(Arc<Feed>, Rc<Tap>)>>,
}

impl Front {
    pub(super) fn new(parts: Parts, index: usize) -> Self {
        let live = parts.live.load_full();
        let (settings, names) = (Arc::new(live.config.client.clone()), parts.names.clone());
        let guarded = |lets_pass: fn(&Bounds, SocketAddr) -> bool| {
            let live = parts.live.clone();
            let guard = Guard::new(move |address| lets_pass(&live.load().bounds, address));
            let (settings, names) = (settings.clone(), names.clone());
            Client::guarded(settings, parts.client_tls.clone(), names, Some(guard))
        };
        let clients = Clients {
            client: guarded(Bounds::lets_pass),
            unknown_client: guarded(Bounds::lets_pass_unknown),
        };
        let mut tap = None;
        let mine = tap_of(&mut tap, &live, index);
        let worker = Worker::new(live, &parts, index, clients.clone(), mine);
        Self {
            live: RefCell::new(arc_swap::Cache::new(parts.live.clone())),
            current: RefCell::new(Rc::new(worker)),
            parts,
            index,
            clients,
            tap: RefCell::new(tap),
        }
    }

    fn current(&self) -> Rc<Worker> {
        let mut live = self.live.borrow_mut();
        let wanted = live.load();
        let mut current = self.current.borrow_mut();
        if !Arc::ptr_eq(&current.live, wanted) {
            let clients = self.clients.clone();
            let tap = tap_of(&mut self.tap.borrow_mut(), wanted, self.index);
            *current = Rc::new(Worker::new(wanted.clone(), &self.parts, self.index, clients, tap));
        }
        current.clone()
    }

    /// Samples this worker's own CPU load, which decides about discards.
    pub(super) async fn watch_load(self: Rc<Self>) {
        let mut tick = tokio::time::interval(crate::protection::INTERVAL);
        let name = self.index.to_string();
        let (level, cache) = (
            self.parts.metrics.overload.get(&[&name]),
            self.parts.metrics.cache.get(&[&name]),
        );
        loop {
            tick.tick().await;
            let worker = self.current();
            let now = Instant::now();
            let changed = worker.load.sample(now);
            worker.told.update(&worker.load, now);
            worker.peers.told.hear(now);
            if let Some(to) = changed {
                tracing::warn!(worker = self.index, level = to, "the overload level has changed");
                level.set(to as f64);
            }
            cache.set(worker.searcher.remembered() as f64);
            if self.index == 0 {
                self.parts.load.store(worker.load.percent(), Ordering::Relaxed);
            }
        }
    }
}

/// This worker's tap of the feed there is now; `known` is the last one, which another feed replaces.
fn tap_of(known: &mut Option<(Arc<Feed>, Rc<Tap>)>, live: &Live, index: usize) -> Option<Rc<Tap>> {
    let is_same = match (&*known, &live.feed) {
        (Some((of, _)), Some(feed)) => Arc::ptr_eq(of, feed),
        _ => false,
    };
    if !is_same {
        let feed = live.feed.as_ref();
        *known = feed.and_then(|feed| Some((feed.clone(), Rc::new(feed.tap(index)?))));
    }
    known.as_ref().map(|(_, tap)| tap.clone())
}

impl Service for Front {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        self.current().answer(request).await
    }
}
