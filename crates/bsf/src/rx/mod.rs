//! Diameter Rx: finds the PCF of a UE's session and keeps the Rx session on that path (TS 29.214, TS 29.513
//! §8.2).
//!
//! * An initial AAR leads to the PCF that the session's binding names.
//! * What names a Destination-Host goes there: later AAR and STR of AFs that learnt the PCF's name, RAR and ASR.
//! * What does not is kept on the path by its Session-Id: in memory, and in the store for other runs, workers and
//!   instances.
//!
//! Every worker has an agent. A peer lives on one worker, chosen by its name; a request whose next hop lives
//! elsewhere crosses over, and so does its answer.
//!
//! | file | what happens there |
//! |---|---|
//! | `mod` (this) | the agent, its peers |
//! | `request`, `check`, `identity`, `lookup` | the way of a request |
//! | `answer`, `redirect` | the way back, and answers of our own |
//! | `again` | another way for a request whose next hop was lost |
//! | `reports` | overload reports and loads of PCFs |
//! | `sessions`, `expiry` | paths of sessions in memory, and how those in the store end |
//! | `latency` | how long requests take |
//! | `places`, `post` | which worker a peer lives on, and the way there |

mod again;
mod answer;
mod check;
mod expiry;
mod identity;
mod latency;
mod lookup;
mod places;
mod post;
mod redirect;
mod reports;
mod request;
mod sessions;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use diameter::proto::known::{application, disconnect_cause};
use diameter::proto::peer::{ApplicationId, Capabilities, DownReason, Health};
use diameter::proto::{MessageMut, Origin};
use diameter::{
    Application, BoundListener, Connection, Directory, DynamicPeers, Node, NodeConfig, PeerConfig, PeerUp,
    Security, Transport, Unanswered,
};
use function::StartError;
use function::diameter_names::lookup;
use overload::{Rate, RateLimiter};
use telemetry::Journal;
use telemetry::journal::Kind;

use self::answer::Transit;
use self::places::{Places, Published, home_of};
use self::post::{Mailbox, Packet, Post};
use self::reports::Reports;
use self::sessions::Sessions;
use crate::config::{Rx, RxTransport};
use crate::events::Counters;
use crate::flights::Flights;
use crate::repository::Repository;
use crate::worker::Front;

pub(crate) use self::expiry::tidy;

/// Longest wait for answers when the BSF stops.
const LONGEST_END: Duration = Duration::from_secs(10);
/// Time for Diameter peers to answer a DPR.
const DISCONNECT_GRACE: Duration = Duration::from_secs(1);

type Link = Rc<Connection<PeerState>>;

/// The agent of a worker.
pub(crate) struct Agent {
    front: Rc<Front>,
    repository: Repository,
    counters: Arc<Counters>,
    origin: Origin,
    worker: usize,
    workers: usize,
    places: Places,
    post: Post,
    sessions: RefCell<Sessions>,
    lookups: Lookups,
    reports: Reports,
    flights: Flights,
    /// It takes no requests any more.
    stopping: Cell<bool>,
}

/// State of an open connection: the rate it keeps to, and how much it has sent.
pub(crate) struct PeerState(RefCell<(u32, RateLimiter)>);

impl PeerState {
    fn new() -> Self {
        Self(RefCell::new((0, RateLimiter::new(Rate::per_second(0.0)))))
    }

    /// Whether a request is within `rate` per second; 0: unlimited.
    fn admits(&self, rate: u32) -> bool {
        let (current, limiter) = &mut *self.0.borrow_mut();
        if *current != rate {
            *current = rate;
            limiter.set_rate(Rate::per_second(f64::from(rate)));
        }
        rate == 0 || limiter.allow(std::time::Instant::now())
    }
}

/// Requests that wait for the store.
#[derive(Clone, Default)]
struct Lookups(Rc<Cell<usize>>);

/// One of them, until dropped.
struct Lookup(Rc<Cell<usize>>);

impl Lookups {
    /// One more, if there are fewer than `most`.
    fn take(&self, most: usize) -> Option<Lookup> {
        let now = self.0.get();
        (now < most).then(|| {
            self.0.set(now + 1);
            Lookup(self.0.clone())
        })
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// What a worker's agent is made of.
pub(crate) struct Seat {
    worker: usize,
    workers: usize,
    listeners: Vec<BoundListener>,
    security: Security,
    directory: diameter::Seat,
    published: Published,
    post: Post,
    mailbox: Mailbox,
}

/// Seats for the agents of all workers, and the addresses they listen at: bound here, so that they are known
/// before a worker runs. None when there is to be no agent.
pub(crate) fn seats(
    settings: &Rx,
    security: &Security,
    workers: usize,
) -> Result<(Vec<Option<Seat>>, Vec<SocketAddr>), StartError> {
    if !settings.enabled {
        return Ok(((0..workers).map(|_| None).collect(), Vec::new()));
    }
    let mut listeners: Vec<Vec<BoundListener>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    let listens = [
        (&settings.listen, Transport::Tcp),
        (&settings.sctp_listen, Transport::Sctp),
    ];
    let end_points = listens.into_iter().flat_map(|(listen, transport)| {
        let end_points = diameter::end_points(&listen.0, transport);
        end_points.into_iter().map(move |one| (one, transport))
    });
    for (end_point, transport) in end_points {
        let Some((wanted, others)) = end_point.split_first() else {
            continue;
        };
        let others: Vec<IpAddr> = others.iter().map(SocketAddr::ip).collect();
        let (bound, address) = worker::bind_each(*wanted, workers, |address| {
            let over = match transport {
                Transport::Tcp => "Diameter",
                Transport::Sctp => "Diameter over SCTP",
            };
            let listener = BoundListener::bind_all(address, &others, transport)
                .map_err(StartError::io(format!("listening at {address} ({over})")))?;
            let at = listener.address();
            Ok::<_, StartError>((listener, at))
        })?;
        for (mine, listener) in listeners.iter_mut().zip(bound) {
            mine.push(listener);
        }
        addresses.push(address);
    }
    let published = Published::default();
    let seats = Directory::seats(workers)
        .into_iter()
        .zip(worker::posts(workers, settings.max_crossing))
        .zip(listeners)
        .enumerate();
    let seats = seats.map(|(worker, ((directory, (post, mailbox)), listeners))| {
        Some(Seat {
            worker,
            workers,
            listeners,
            security: security.clone(),
            directory,
            published: published.clone(),
            post,
            mailbox,
        })
    });
    Ok((seats.collect(), addresses))
}

/// Starts the agent of this worker.
pub(crate) fn run(seat: Seat, front: Rc<Front>) -> std::io::Result<Node<Agent>> {
    let settings = front.worker().config().rx.clone();
    let applications = [ApplicationId::tgpp(application::RX)];
    let local = Capabilities::new(&settings.host, &settings.realm).with_applications(applications);
    let config = NodeConfig {
        dynamic: vec![DynamicPeers {
            realms: settings.realms.clone(),
            max: settings.max_peers,
            ..DynamicPeers::default()
        }],
        ..NodeConfig::new(local)
    };
    let agent = Agent {
        flights: front.function().flights.clone(),
        stopping: Cell::new(false),
        repository: front.function().repository().clone(),
        counters: front.function().counts.of(seat.worker),
        front,
        origin: Origin::new(&settings.host, &settings.realm),
        worker: seat.worker,
        workers: seat.workers,
        places: Places::new(seat.published, seat.worker),
        post: seat.post,
        // A session is known on the worker of its AF and on that of its PCF.
        sessions: RefCell::new(Sessions::new(
            settings
                .max_sessions
                .min(settings.max_sessions / seat.workers.max(1) * 2),
        )),
        lookups: Lookups::default(),
        reports: Reports::new(),
    };
    let names = agent.front.function().names.clone();
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let node = Node::new(config, agent, Some(seat.directory), seed);
    for listener in seat.listeners {
        node.listen(listener, seat.security.clone())?;
    }
    for peer in settings.peers {
        if home_of(&peer.host, seat.workers) == seat.worker {
            let (transport, security) = match peer.transport {
                RxTransport::Tcp => (Transport::Tcp, seat.security.clone()),
                RxTransport::Sctp => (Transport::Sctp, Security::None),
            };
            let tls = !matches!(security, Security::None);
            let lookup = lookup(&peer.names, transport, tls, names.as_ref());
            let peer = PeerConfig {
                transport,
                security,
                lookup,
                ..PeerConfig::connect(peer.host, peer.addresses)
            };
            node.add_peer(peer)
                .map_err(|error| std::io::Error::other(error.to_string()))?;
        }
    }
    let posting = node.clone();
    tokio::task::spawn_local(async move { match posting.app().post.deliver().await {} });
    tokio::task::spawn_local(take_post(node.clone(), seat.mailbox));
    Ok(node)
}

/// Ends an agent in order: it takes no further requests, which their senders send elsewhere, and those that it has taken are
/// answered before the DPR (RFC 6733 §5.4).
pub(crate) async fn stop(node: Node<Agent>) {
    let agent = node.app();
    agent.stopping.set(true);
    let timeout = agent.front.worker().config().rx.timeout.duration();
    agent.flights.end(timeout.min(LONGEST_END)).await;
    node.stop(DISCONNECT_GRACE, disconnect_cause::REBOOTING).await;
}

/// Takes what other workers send, until the worker ends.
async fn take_post(node: Node<Agent>, mut mailbox: Mailbox) {
    while let Some(batch) = mailbox.next().await {
        node.refresh();
        for packet in batch {
            match packet {
                Packet::Request(crossing) => node.app().send_here(&node, crossing),
                Packet::Answer(transit, message) => node.app().deliver(&node, transit, message),
                Packet::Report(received) => node.app().learn_handed_on(&node, &received),
            }
        }
    }
}

/// Why a peer is down, for the journal.
fn in_words(reason: &DownReason) -> String {
    match reason {
        DownReason::Silent => "watchdogs went unanswered".to_owned(),
        DownReason::PeerSaid(cause) => format!("the peer disconnected: Disconnect-Cause {cause}"),
        DownReason::Replaced => "the peer has reconnected".to_owned(),
        DownReason::Lost => "the connection broke".to_owned(),
        DownReason::WeSaid => "the BSF disconnected".to_owned(),
    }
}

impl Agent {
    fn journal(&self) -> &Journal {
        self.front.seat().alarms.journal()
    }
}

impl Application for Agent {
    type Context = Transit;
    type State = PeerState;

    fn peer_up(&self, _: &Node<Self>, _: &Link, peer: &PeerUp) -> PeerState {
        tracing::info!(host = %peer.remote.origin.host, worker = self.worker, "Diameter peer up");
        let about = format!("Diameter peer {}", peer.remote.origin.host);
        self.journal()
            .record(Kind::PeerUp, &about, "its connection is open");
        PeerState::new()
    }

    fn peer_down(&self, node: &Node<Self>, connection: &Link, reason: DownReason) {
        let Some(up) = connection.peer() else { return };
        tracing::info!(host = %up.remote.origin.host, ?reason, "Diameter peer down");
        let about = format!("Diameter peer {}", up.remote.origin.host);
        self.journal().record(Kind::PeerDown, &about, &in_words(&reason));
        // It may have connected again already.
        if node
            .open_connection(up.id)
            .is_none_or(|open| open.id() == connection.id())
        {
            self.places.set(&up.remote.origin.host, false);
        }
    }

    fn peer_health(&self, _: &Node<Self>, connection: &Link, health: Health) {
        if let Some(up) = connection.peer() {
            self.places.set(&up.remote.origin.host, health == Health::Okay);
        }
    }

    fn place(&self, _: &Node<Self>, host: &str) -> Option<usize> {
        Some(home_of(host, self.workers))
    }

    fn request(&self, node: &Node<Self>, from: &Link, message: MessageMut) {
        self.received(node, from, message);
    }

    fn answer(&self, node: &Node<Self>, from: &Link, transit: Transit, message: MessageMut) {
        let message = self.take_reports(node, from, &transit, message);
        self.deliver(node, transit, message);
    }

    fn unanswered(&self, node: &Node<Self>, lost: Unanswered<Transit, PeerState>) {
        self.lost(node, lost);
    }
}
