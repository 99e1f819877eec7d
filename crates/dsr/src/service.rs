//! The router as a network function: how it binds and opens, and the life of a worker.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router as Pages;
use diameter::proto::overload::doic::ReportNumbers;
use diameter::{Directory, Node};
use function::{
    Beginning, Common, Counts, Front, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Declaration};
use tokio::sync::mpsc;

use crate::config::{Config, TransportKind};
use crate::derived::{Derived, Effective};
use crate::hosting::Hosting;
use crate::listen::Bound;
use crate::peers::ConfiguredPeers;
use crate::router::{Core, Gauges, Router, Tools};
use crate::shared::{Dsr, Place};
use crate::watch::Control;
use crate::watch::alarms::ALARMS;
use crate::{metrics, pages, trace};

/// Interval at which a worker checks whether a peer whose connection changes has been disconnected.
const RETRY: Duration = Duration::from_millis(100);

/// A running router.
pub type Running = function::Running<Dsr>;

/// Starts a router. Blocks until it listens.
///
/// # Errors
/// When a setting, an address or a file cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

impl NetworkFunction for Dsr {
    const NAME: &'static str = "dsr";
    const TITLE: &'static str = "DSR";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Derived;
    type Listeners = Bound;
    type Worker = Core;

    fn common(config: &Config) -> Common<'_> {
        let nodes = config.local_nodes.iter().enumerate();
        // Ports of SCTP are apart from those of TCP.
        let over_tcp = |key: String, transport, listen: &_| match transport {
            TransportKind::Tcp => listening(&key, listen),
            TransportKind::Sctp => Vec::new(),
        };
        let listens = nodes.flat_map(|(index, node)| {
            let key = format!("localNodes[{index}]");
            let first = over_tcp(format!("{key}.listen"), node.transport, &node.listen);
            let further = node.listen_also.iter().enumerate();
            let further = further.flat_map(move |(number, one)| {
                let key = format!("{key}.listenAlso[{number}].listen");
                over_tcp(key, one.transport, &one.listen)
            });
            first.into_iter().chain(further)
        });
        Common {
            admin: config.admin,
            instance: "",
            listen: listens.collect(),
            directory: Some(&config.trace.directory),
            workers: config.workers,
            cores: &config.cores,
            tls: None,
            client_tls: None,
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Bound, StartError> {
        config.size_by_profile();
        Bound::new(config, workers)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    /// An operator who asks for a reload does not wait until files have settled.
    fn rederive(now: &Effective) -> Result<Option<Derived>, String> {
        Derived::reread(now)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let (count, config) = (opening.workers, opening.live.load().config.clone());
        opening.live.load().watch(&opening.listeners.watched);
        let (tracer, records) = mpsc::channel(trace::QUEUE);
        let (hosting, resumed) = Hosting::new(count, config.limits.handover, &opening.registry);
        let tools = Tools {
            gauges: Arc::new((0..count).map(|_| Gauges::default()).collect()),
            hold: opening.registry.histogram(&metrics::HOLD),
            // RFC 7683 §5.2.1.4: numbers of a new run are above those of the last. In milliseconds: a report is
            // renewed less often.
            report_numbers: Arc::new(ReportNumbers::after(seed() / 1_000_000)),
            demands: Arc::default(),
            incidents: Arc::default(),
            tracer,
            hosting: Arc::new(hosting),
        };
        let posts = worker::posts(count, config.limits.handover).into_iter();
        let places = posts.zip(resumed).map(|((post, mailbox), resumed)| Place {
            post: Some(post),
            mailbox: Some(mailbox),
            resumed: Some(resumed),
            seats: Vec::new(),
        });
        let mut places: Vec<Place> = places.collect();
        for _ in &config.local_nodes {
            for (place, seat) in places.iter_mut().zip(Directory::seats(count)) {
                place.seats.push(seat);
            }
        }
        let dsr = Arc::new(Self {
            counts: Counts::new(count, &opening.registry),
            reports: (0..count).map(|_| ArcSwap::default()).collect(),
            measures: (0..count).map(|_| ArcSwap::default()).collect(),
            indicators: Mutex::default(),
            places: Mutex::new(places),
            live: opening.live,
            traces: trace::Cache::default(),
            tools,
        });
        metrics::observe(&opening.registry, &Arc::downgrade(&dsr));
        let control = Control::new(dsr.clone(), opening.alarms, &opening.health);
        Ok(Opened::new(dsr, control.run(records, opening.drained)))
    }

    fn worker(
        self: &Arc<Self>,
        seat: &Seat<Self>,
        now: &Arc<Effective>,
        before: Option<&Rc<Core>>,
    ) -> Rc<Core> {
        if let Some(core) = before {
            core.reconfigure(now.snapshot.clone());
            return core.clone();
        }
        let index = seat.context.index;
        let post = self
            .places
            .lock()
            .get_mut(index)
            .and_then(|place| place.post.take());
        Core::new(
            index,
            now.snapshot.clone(),
            now.registry.clone(),
            post.unwrap_or_default(),
            self.counts.of(index),
            self.tools.clone(),
            seed() ^ (index as u64) << 48,
        )
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let (core, seat, dsr) = (front.worker(), front.seat(), front.function());
        let index = seat.context.index;
        let place = dsr.places.lock().get_mut(index).map(std::mem::take);
        let place = place.unwrap_or_default();
        let nodes = open_nodes(&core, seat, place.seats)?;
        drop(beginning);
        let first = seat.live.load_full();
        let share = core_share(&first.config.cores, seat.context.count);
        let tasks = [
            tokio::task::spawn_local(core.clone().deliver_post()),
            tokio::task::spawn_local(core.clone().watch_load(share)),
            tokio::task::spawn_local(core.clone().keep_time()),
            tokio::task::spawn_local(pages::report(core.clone(), dsr.clone(), index)),
        ];
        let mailbox = place
            .mailbox
            .map(|mailbox| tokio::task::spawn_local(core.clone().take_post(mailbox)));
        let resumed = place
            .resumed
            .map(|queue| tokio::task::spawn_local(core.clone().take_resumed(queue)));
        let mut peers = ConfiguredPeers::default();
        let mut changes = seat.live.changes();
        let mut follow = || peers.follow(&seat.live.load_full(), &nodes, index);
        let mut done = follow();
        loop {
            tokio::select! {
                () = seat.context.shutdown.fired() => break,
                () = tokio::time::sleep(RETRY), if !done => done = follow(),
                more = changes.next() => {
                    if !more {
                        break;
                    }
                    done = follow();
                }
            }
        }
        core.stop(first.config.drain.duration()).await;
        for task in tasks.into_iter().chain(mailbox).chain(resumed) {
            task.abort();
        }
        core.disband();
        Ok(())
    }

    fn routes(self: &Arc<Self>) -> Pages {
        pages::routes(&Arc::downgrade(self))
    }

    fn metrics() -> Vec<Declaration> {
        metrics::declarations()
    }

    fn alarms() -> Vec<AlarmKind> {
        ALARMS.to_vec()
    }

    fn hints(_: &str) -> Vec<String> {
        vec!["signalbox dsr peers".to_owned()]
    }
}

/// The nodes of a worker, which listen from now on.
fn open_nodes(
    core: &Rc<Core>,
    seat: &Seat<Dsr>,
    seats: Vec<diameter::Seat>,
) -> io::Result<Vec<Node<Router>>> {
    let (bound, index) = (&seat.listeners, seat.context.index);
    let nodes = bound.nodes.iter().zip(seats).enumerate();
    let nodes = nodes.map(|(position, (config, seat))| {
        let seed = seed() ^ (index as u64) << 48;
        let seed = seed.wrapping_add(position as u64);
        Node::new(config.clone(), core.router(position), Some(seat), seed)
    });
    let nodes: Vec<Node<Router>> = nodes.collect();
    core.adopt(nodes.clone());
    for (node, entrances) in nodes.iter().zip(bound.take(index)) {
        for entrance in entrances {
            node.listen_behind(entrance.listener, entrance.security, entrance.front_ends)?;
        }
    }
    Ok(nodes)
}

/// The part of a core that each worker can have.
fn core_share(cores: &[usize], workers: usize) -> f64 {
    let available = match cores {
        [] => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores.iter().collect::<std::collections::BTreeSet<_>>().len(),
    };
    (available as f64 / workers.max(1) as f64).min(1.0)
}

/// RFC 6733 §3: identifiers of two runs should differ.
fn seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}
