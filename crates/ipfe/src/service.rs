//! The front end as a network function: workers accept and carry connections, the control thread checks processors.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use function::live::{Changes, Effective, Live};
use function::{
    Beginning, Common, Front, Listeners, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Alarms, Declaration};

use crate::accept::{ADDRESS_UNAVAILABLE, Desk, Origin, SERVER_UNAVAILABLE, listen};
use crate::backend::{Backend, BackendRow, Behind, Set, Side};
use crate::check::{STASIS, UNAVAILABLE, look_after};
use crate::config::Config;
use crate::metrics::{self, Counters};
use crate::pages;
use crate::pair::{MATE_UNAVAILABLE, Pairing, Role, follow_mate, release};

/// Interval at which a worker that drains checks whether connections are left.
const DRAIN_CHECK: Duration = Duration::from_millis(20);

/// An IP front end: what its threads share.
#[derive(Debug)]
pub struct Ipfe {
    sets: Vec<Arc<Set>>,
    counters: Counters,
    pairing: Arc<Pairing>,
}

/// A running front end.
pub type Running = function::Running<Ipfe>;

/// Starts a front end: binds everything. Blocks until it listens.
///
/// # Errors
/// When an address cannot be bound; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// A listener, and the set whose address it has.
type SetListener = (Origin, Arc<Set>);

/// The sets, and the listeners of every worker.
#[derive(Debug)]
pub struct Bound {
    sets: Vec<Arc<Set>>,
    /// By worker, which takes its own.
    listeners: Mutex<Vec<Vec<SetListener>>>,
    addresses: Vec<SocketAddr>,
}

impl Bound {
    fn new(config: &Config, workers: usize) -> Result<Self, StartError> {
        let sets: Vec<Arc<Set>> = sets(config).collect();
        let mut listeners: Vec<Vec<SetListener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        let is_alone = config.pair.is_none();
        for ((_, listen), set) in config.listening().zip(&sets) {
            for wanted in listen.iter() {
                let (bound, address) = worker::bind_each(wanted, workers, |address| match is_alone {
                    true => {
                        let listener = worker::bind(address).and_then(|one| Ok((one.local_addr()?, one)));
                        let listener = listener.map_err(|source| StartError::Listen { address, source });
                        listener.map(|(at, listener)| (Origin::Bound(listener), at))
                    }
                    false => Ok((Origin::Address(address), address)),
                })?;
                for (mine, listener) in listeners.iter_mut().zip(bound) {
                    mine.push((listener, set.clone()));
                }
                addresses.push(address);
            }
        }
        Ok(Self {
            sets,
            listeners: Mutex::new(listeners),
            addresses,
        })
    }

    /// The listeners of a worker; the first call takes them.
    fn take(&self, worker: usize) -> Vec<SetListener> {
        let mut all = self.listeners.lock();
        all.get_mut(worker).map(std::mem::take).unwrap_or_default()
    }
}

/// The sets of a configuration, target sets first.
fn sets(config: &Config) -> impl Iterator<Item = Arc<Set>> {
    let behind = behind(config, &[]);
    config
        .listening()
        .zip(behind)
        .map(|((name, _), (side, behind))| Arc::new(Set::new(name, side, behind)))
}

/// What is behind each set, target sets first; processors that were there before stay what they are.
fn behind(config: &Config, sets: &[Arc<Set>]) -> Vec<(Side, Behind)> {
    let before = |at: usize| sets.get(at).map(|set| set.behind());
    let known = |at| before(at).map_or_else(Vec::new, |behind| behind.backends.clone());
    let target = config.target_sets.iter().enumerate();
    let target = target.map(|(at, set)| (Side::Ingress, Behind::of_target(set, &known(at))));
    let egress = config.egress_sets.iter().enumerate();
    let first = config.target_sets.len();
    let egress = egress.map(|(at, set)| (Side::Egress, Behind::of_egress(set, &known(first + at))));
    target.chain(egress).collect()
}

/// Begins to check processors. The checks end with the control thread.
fn check(set: &Set, backends: &[Arc<Backend>], live: &Arc<Live<Config, ()>>, alarms: &Alarms) {
    // Servers are not checked: a server would take a check for a Diameter peer. Connections to it show its state.
    if set.side == Side::Egress {
        return;
    }
    for backend in backends {
        let task = look_after(set.name.clone(), backend.clone(), live.clone(), alarms.clone());
        tokio::task::spawn_local(task);
    }
}

/// Follows reloads until the front end ends.
async fn follow_settings(
    sets: Vec<Arc<Set>>,
    live: Arc<Live<Config, ()>>,
    mut changes: Changes,
    alarms: Alarms,
) {
    while changes.next().await {
        let config = live.load().config.clone();
        for (set, (_, now)) in sets.iter().zip(behind(&config, &sets)) {
            let added = set.replace(now);
            check(set, &added, &live, &alarms);
        }
    }
}

impl Listeners for Bound {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let addresses = self.addresses.iter();
        addresses.map(|address| ("TCP", address.to_string())).collect()
    }
}

impl NetworkFunction for Ipfe {
    const NAME: &'static str = "ipfe";
    const TITLE: &'static str = "IP front end";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = ();
    type Listeners = Bound;
    type Worker = ();

    fn common(config: &Config) -> Common<'_> {
        let target = config.target_sets.iter().enumerate();
        let target =
            target.map(|(index, set)| listening(&format!("targetSets[{index}].listen"), &set.listen));
        let egress = config.egress_sets.iter().enumerate();
        let egress =
            egress.map(|(index, set)| listening(&format!("egressSets[{index}].listen"), &set.listen));
        Common {
            admin: config.admin,
            instance: "",
            listen: target.chain(egress).flatten().collect(),
            directory: None,
            workers: config.workers,
            cores: &[],
            tls: None,
            client_tls: None,
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Bound, StartError> {
        Bound::new(config, workers)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective<Config, ()>>) -> Result<(), String> {
        let Some(before) = before else {
            return Ok(());
        };
        let sides = |config: &Config| (config.target_sets.len(), config.egress_sets.len());
        match sides(config) == sides(&before.config) && config.listening().eq(before.config.listening()) {
            true => Ok(()),
            false => Err("targetSets, egressSets: the name or address (`listen`) of a set is another than at the start; \
                          restart the front end to change these"
                .to_owned()),
        }
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let sets = opening.listeners.sets.clone();
        let (live, alarms) = (opening.live, opening.alarms);
        // Before what is in effect is read: a change between both would be missed.
        let changes = live.changes();
        let pair = live.load().config.pair.clone();
        let pairing = Pairing::new(pair.as_ref());
        for set in &sets {
            check(set, &set.behind().backends, &live, &alarms);
        }
        tokio::task::spawn_local(follow_settings(
            sets.clone(),
            live.clone(),
            changes,
            alarms.clone(),
        ));
        let counters = metrics::observe(&opening.registry, &sets, &pairing);
        let following = pair.clone().map(|pair| {
            let takeovers = opening.registry.counter(&metrics::TAKEOVERS);
            let following = follow_mate(pairing.clone(), pair, live, alarms, takeovers);
            tokio::task::spawn_local(following)
        });
        let (shutdown, drained, role) = (opening.shutdown, opening.drained, pairing.clone());
        let function = Arc::new(Self {
            sets,
            counters,
            pairing,
        });
        Ok(Opened::new(function, async move {
            shutdown.fired().await;
            // A front end that stops does not become active again.
            following.inspect(tokio::task::JoinHandle::abort);
            drained.fired().await;
            if let Some(pair) = &pair {
                release(&role, pair).await;
            }
        }))
    }

    fn worker(
        self: &Arc<Self>,
        _: &Seat<Self>,
        _: &Arc<Effective<Config, ()>>,
        _: Option<&Rc<()>>,
    ) -> Rc<()> {
        Rc::default()
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let (seat, ipfe) = (front.seat(), front.function());
        let mine = seat.listeners.take(seat.context.index);
        let desk = Rc::new(Desk {
            counters: ipfe.counters.clone(),
            live: seat.live.clone(),
            alarms: seat.alarms.clone(),
            pairing: ipfe.pairing.clone(),
        });
        let tasks: Vec<_> = mine
            .into_iter()
            .map(|(origin, set)| listen(origin, set, desk.clone()))
            .collect();
        drop(beginning);
        seat.context.shutdown.fired().await;
        // No new connections; open ones may end by themselves for a while.
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let drain = seat.live.load().config.drain.duration();
        let end = tokio::time::Instant::now() + drain;
        let any = || ipfe.sets.iter().any(|set| set.connections() > 0);
        while any() && tokio::time::Instant::now() < end {
            tokio::time::sleep(DRAIN_CHECK).await;
        }
        Ok(())
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&self.sets, &self.pairing)
    }

    fn metrics() -> Vec<Declaration> {
        metrics::METRICS.to_vec()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![
            STASIS,
            UNAVAILABLE,
            SERVER_UNAVAILABLE,
            ADDRESS_UNAVAILABLE,
            MATE_UNAVAILABLE,
        ]
    }

    fn hints(_: &str) -> Vec<String> {
        vec!["signalbox ipfe backends".to_owned()]
    }
}

impl Ipfe {
    /// The message processors and their state.
    #[must_use]
    pub fn backends(&self) -> Vec<BackendRow> {
        self.sets.iter().flat_map(|set| set.rows()).collect()
    }

    /// Whether it listens: always, except for the standby of a pair.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.pairing.role() == Role::Active
    }
}
