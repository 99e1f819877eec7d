//! Diameter: the node of each worker, which serves Gx and Sd (TS 29.212), Rx (TS 29.214) and Sy (TS 29.219) and sends what PCEFs,
//! TDFs, AFs and OCSs get.
//!
//! Every worker has a node. A peer lives on the worker that accepted its connection; a request of ours for a peer of
//! another worker goes from worker to worker until one is connected to it.

mod delivery;
mod destination;
mod sender;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use diameter::endpoint::{Endpoint, Request, Service};
use diameter::proto::check;
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Avp, Dictionary, Fault, MessageMut, ResultCode};
use diameter::{BoundListener, Directory, DynamicPeers, NodeConfig, PeerConfig, Security, Transport};
use function::StartError;
use parking_lot::Mutex;

use crate::activity::trail;
use crate::config::Diameter;
use crate::events::Event;
use crate::orders::{self, Orders};
use crate::worker::{Front, Worker};
use crate::{gx, rx, sd, sy};
use function::sbi::State;

/// What a worker's node is made of.
pub(crate) struct Seat {
    listeners: Vec<BoundListener>,
    directory: diameter::Seat,
    orders: orders::Receiver,
}

/// What a PCF listens with for Diameter.
pub(crate) struct Seats {
    seats: Mutex<Vec<Option<Seat>>>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) orders: Orders,
    security: Security,
}

impl Seats {
    /// Binds the addresses, so that they are known before a worker runs.
    pub(crate) fn bind(settings: &Diameter, security: Security, workers: usize) -> Result<Self, StartError> {
        let (orders, receivers) = orders::channels(workers, settings.max_orders);
        let mut addresses = Vec::new();
        let mut listeners: Vec<Vec<BoundListener>> = (0..workers).map(|_| Vec::new()).collect();
        let wanted = settings.enabled.then_some(&settings.listen);
        for wanted in wanted.into_iter().flat_map(|listen| listen.iter()) {
            let (bound, address) = worker::bind_each(wanted, workers, |address| {
                let listener = BoundListener::bind(address, Transport::Tcp)
                    .map_err(StartError::io(format!("listening at {address} (Diameter)")))?;
                let at = listener.address();
                Ok::<_, StartError>((listener, at))
            })?;
            for (own, listener) in listeners.iter_mut().zip(bound) {
                own.push(listener);
            }
            addresses.push(address);
        }
        let seats = Directory::seats(workers)
            .into_iter()
            .zip(receivers)
            .zip(listeners);
        let seats = seats.map(|((directory, orders), listeners)| {
            settings.enabled.then_some(Seat {
                listeners,
                directory,
                orders,
            })
        });
        Ok(Self {
            seats: Mutex::new(seats.collect()),
            addresses,
            orders,
            security,
        })
    }

    /// Starts the node of a worker; none where Diameter is disabled.
    pub(crate) fn run(&self, front: &Rc<Front>) -> std::io::Result<Option<Endpoint<Agent>>> {
        let index = front.seat().context.index;
        let seat = self.seats.lock().get_mut(index).and_then(Option::take);
        let Some(seat) = seat else { return Ok(None) };
        let settings = front.worker().config().diameter.clone();
        let applications = [
            ApplicationId::tgpp(application::GX),
            ApplicationId::tgpp(application::RX),
            ApplicationId::tgpp(application::SY),
            ApplicationId::tgpp(application::SD),
        ];
        let local = Capabilities::new(&settings.host, &settings.realm).with_applications(applications);
        let config = NodeConfig {
            dynamic: vec![DynamicPeers {
                realms: settings.realms.clone(),
                networks: settings.networks.clone(),
                max: settings.max_peers,
                ..DynamicPeers::default()
            }],
            ..NodeConfig::new(local)
        };
        let agent = Agent { front: front.clone() };
        let seed = uuid::Uuid::new_v4().as_u64_pair().0;
        let directory = Some(seat.directory);
        let node = Endpoint::with_max_calls(config, agent, directory, seed, settings.max_calls);
        for listener in seat.listeners {
            node.node().listen(listener, self.security.clone())?;
        }
        // Every worker but the first is reached through it.
        for peer in settings.peers.into_iter().filter(|_| index == 0) {
            let peer = PeerConfig {
                security: self.security.clone(),
                ..PeerConfig::connect(peer.host, peer.addresses)
            };
            node.node()
                .add_peer(peer)
                .map_err(|error| std::io::Error::other(error.to_string()))?;
        }
        tokio::task::spawn_local(delivery::deliver(node.clone(), seat.orders, front.clone()));
        Ok(Some(node))
    }
}

/// What answers the requests of peers.
pub(crate) struct Agent {
    front: Rc<Front>,
}

impl Service for Agent {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let worker = self.front.worker();
        worker.count(Event::DiameterRequest);
        let message = &request.message;
        let peer = message.get(known::ORIGIN_HOST).ok().flatten().unwrap_or_default();
        let received = Instant::now();
        let answer = trail::of_peer(worker.activity(), (peer, message), answer(&worker, &request)).await;
        worker
            .latencies()
            .served((message.application(), message.command()), received);
        answer
    }
}

async fn answer(worker: &Rc<Worker>, request: &Request) -> MessageMut {
    let begins = gx::begins(&request.message) || rx::begins(&request.message);
    let unserved = unserved(begins, worker.state());
    // A session that has begun is served: to refuse what it asks for now would leave it half done.
    let settings = &worker.config().diameter;
    let unserved = unserved.or_else(|| looped(request, &settings.host));
    let unserved = unserved.or_else(|| destination::elsewhere(&request.message, settings));
    let unserved = unserved.or_else(|| sender::unnameable(request));
    let unserved = unserved.or_else(|| {
        sender::forged(request, settings).inspect(|_| {
            worker.count(Event::DiameterForged);
            let peer = request.from.peer();
            let peer = peer.as_ref().map(|up| up.remote.origin.host.as_str());
            tracing::debug!(
                peer,
                "a peer sends requests of another node and is not configured as an agent"
            );
        })
    });
    let unserved = unserved.or_else(|| {
        let (dictionary, understood) = (Dictionary::standard(), settings.check_mandatory);
        check::request(&request.message, dictionary, understood).err()
    });
    let unserved = unserved.or_else(|| {
        let discarded = begins && worker.discards(request);
        discarded.then(|| Fault::new(ResultCode::TOO_BUSY, "discarded under overload"))
    });
    if let Some(fault) = unserved {
        worker.count(Event::DiameterRefused);
        return request.refuse(&fault);
    }
    let message = &request.message;
    let answered = match (message.application(), message.command()) {
        (application::GX, command::CREDIT_CONTROL) => gx::credit_control(worker, request).await,
        (application::SD, command::CREDIT_CONTROL) => sd::credit_control(worker, request).await,
        (application::RX, command::AA) => rx::aa(worker, request).await,
        (application::RX, command::SESSION_TERMINATION) => rx::termination(worker, request).await,
        (application::SY, command::SPENDING_STATUS_NOTIFICATION) => sy::notification(worker, request).await,
        _ => Err(Fault::new(
            ResultCode::COMMAND_UNSUPPORTED,
            "CCR of Gx and Sd, AAR and STR of Rx, SNR of Sy are served here",
        )),
    };
    answered.unwrap_or_else(|fault| {
        worker.count(Event::DiameterRefused);
        request.refuse(&fault)
    })
}

/// A request that this node has passed on itself (RFC 6733 §6.1.3).
fn looped(request: &Request, host: &str) -> Option<Fault> {
    let mut records = request.message.avps().map_while(Result::ok);
    let is_own =
        |avp: &Avp<'_>| avp.is(known::ROUTE_RECORD) && avp.data.eq_ignore_ascii_case(host.as_bytes());
    let loops = records.any(|avp| is_own(&avp));
    loops.then(|| Fault::new(ResultCode::LOOP_DETECTED, "this node is in Route-Record"))
}

/// Why no request is served in this state, or none that begins something.
fn unserved(begins: bool, state: State) -> Option<Fault> {
    let serves = match state {
        State::Serving => true,
        State::Partial => !begins,
        State::Complete => false,
    };
    (!serves).then(|| Fault::new(ResultCode::TOO_BUSY, "this PCF is being shut down"))
}
