//! The Diameter node: S6t, S6m, T6a, T6b, T4 and Tsp.
//!
//! It lives on the first worker, so that a device has one place where its data is sent in order; other workers reach it by `orders`.

mod actions;
mod authorization;
mod delivery;
mod devices;
mod reports;
mod senders;
mod triggers;

use std::rc::Rc;

use diameter::endpoint::{Endpoint, Request, RequestError, SendOptions, Service, To};
use diameter::proto::check;
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Dictionary, Fault, MessageMut, ResultCode};
use diameter::{DynamicPeers, NodeConfig, PeerConfig};
use store::{Batch, Error};

use self::delivery::Deliveries;
use crate::clock::after;
use crate::config::Diameter;
use crate::events::Event;
use crate::listeners::Seat;
use crate::orders::{Order, Receiver};
use crate::record::{Answered, Notice};
use crate::worker::{Front, Worker};

/// How long a peer may repeat a request with the same End-to-End Identifier (RFC 6733 §3).
const REPEATED: std::time::Duration = std::time::Duration::from_secs(240);
/// Pause between two searches for a peer that serves S6t.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
/// Longest Origin-Host that is stored.
const LONGEST_HOST: usize = 255;

/// What answers the requests of peers.
pub(crate) struct Agent {
    front: Rc<Front>,
    deliveries: Deliveries,
}

/// Starts the node.
pub(crate) fn run(seat: Seat, front: &Rc<Front>) -> std::io::Result<Endpoint<Agent>> {
    let settings = front.worker().config().diameter.clone();
    let applications = [
        application::S6T,
        application::S6M,
        application::T6A,
        application::T4,
        application::TSP,
    ]
    .map(ApplicationId::tgpp);
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
    let deliveries = Deliveries::new(front.clone());
    let agent = Agent {
        front: front.clone(),
        deliveries: deliveries.clone(),
    };
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let node = Endpoint::with_max_calls(config, agent, None, seed, settings.max_calls);
    for listener in seat.listeners {
        node.node().listen(listener, seat.security.clone())?;
    }
    for peer in settings.peers {
        let peer = PeerConfig {
            security: seat.security.clone(),
            ..PeerConfig::connect(peer.host, peer.addresses)
        };
        node.node()
            .add_peer(peer)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
    }
    deliveries.begin(node.clone());
    tokio::task::spawn_local(take(node.clone(), deliveries, seat.orders));
    tokio::task::spawn_local(watch(node.clone(), front.clone()));
    Ok(node)
}

/// Reports as a dependency that no peer serves S6t, and that one does again. Whether it answers is what requests show. Without
/// `diameter.peers`, an HSS that has not connected yet is not missed. One that is connected and has not answered stays reported.
async fn watch(node: Endpoint<Agent>, front: Rc<Front>) {
    let config = front.worker().config().clone();
    let mut before = config.diameter.peers.is_empty().then_some(false);
    loop {
        let found = is_served(&node, application::S6T);
        if before.replace(found) != Some(found) {
            let hss = &front.function().hss;
            if !found {
                hss.failed("no connected peer serves S6t");
            } else if hss.row().last_error != RequestError::Timeout.to_string() {
                hss.succeeded("connected");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether a connected peer serves an application.
fn is_served(node: &Endpoint<Agent>, application: u32) -> bool {
    let connections = node.node().connections();
    let mut open = connections.iter().filter(|connection| connection.is_open());
    open.any(|connection| {
        connection
            .peer()
            .is_some_and(|peer| peer.remote.serves(application))
    })
}

/// Takes the orders of all workers until the worker ends.
async fn take(node: Endpoint<Agent>, deliveries: Deliveries, mut orders: Receiver) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Request {
                message,
                timeout,
                reply,
            } => {
                let node = node.clone();
                tokio::task::spawn_local(async move {
                    let options = SendOptions {
                        deadline: timeout,
                        failover: true,
                    };
                    let answer = node.request(To::Routed, message, options).await;
                    // An SCS/AS that has given up waits for nothing.
                    let _ = reply.send(answer);
                });
            }
            Order::Deliver {
                configuration,
                waiting,
            } => deliveries.deliver(configuration, waiting),
        }
    }
}

impl Service for Agent {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let worker = self.front.worker();
        worker.count(Event::DiameterRequest);
        let answered = self.answer(&worker, &request).await;
        answered.unwrap_or_else(|fault| {
            worker.count(Event::DiameterRefused);
            tracing::debug!(%fault, "a Diameter request was refused");
            request.refuse(&fault)
        })
    }
}

impl Agent {
    async fn answer(&self, worker: &Rc<Worker>, request: &Request) -> Result<MessageMut, Fault> {
        let message = &request.message;
        own_origin(request, &worker.config().diameter)?;
        check::request(message, Dictionary::standard(), true)?;
        // Members of groups as well: of two User-Names one would be taken.
        check::check(message, Dictionary::standard(), check::Strictness::Interoperable)?;
        match (message.application(), message.command()) {
            (application::S6T | application::T6A, command::REPORTING_INFORMATION) => {
                worker.count(Event::MonitoringMessage);
                once(worker, request, async || reports::take(worker, request).await).await
            }
            (application::T6A, command::CONNECTION_MANAGEMENT) => {
                worker.count(Event::NiddMessage);
                devices::manage(worker, &self.deliveries, request).await
            }
            (application::T6A, command::MO_DATA) => {
                worker.count(Event::NiddMessage);
                once(worker, request, async || devices::uplink(worker, request).await).await
            }
            (application::S6T, command::NIDD_INFORMATION) => {
                worker.count(Event::NiddMessage);
                authorization::update(worker, request).await
            }
            (application::T4, command::DELIVERY_REPORT) => {
                worker.count(Event::TriggerMessage);
                once(worker, request, async || triggers::take(worker, request).await).await
            }
            (application::TSP, command::DEVICE_ACTION) => {
                worker.count(Event::TriggerMessage);
                actions::take(worker, request).await
            }
            _ => Err(Fault::new(
                ResultCode::COMMAND_UNSUPPORTED,
                "RIR and NIR of S6t, RIR, CMR and ODR of T6a, DRR of T4, DAR of Tsp are served here",
            )),
        }
    }
}

/// A peer speaks for itself, unless it is one of `diameter.peers`, which may be a router.
fn own_origin(request: &Request, settings: &Diameter) -> Result<(), Fault> {
    let origin = request.message.require(known::ORIGIN_HOST)?;
    let peer = request.from.peer();
    let peer = peer.as_ref().map_or("", |up| up.remote.origin.host.as_str());
    let configured = settings
        .peers
        .iter()
        .any(|one| one.host.eq_ignore_ascii_case(peer));
    if origin.len() <= LONGEST_HOST && (configured || peer.eq_ignore_ascii_case(origin)) {
        return Ok(());
    }
    Err(Fault::new(
        ResultCode::UNABLE_TO_COMPLY,
        "Origin-Host is not the peer of this connection, which is not among diameter.peers",
    ))
}

/// The answer with this result: Result-Code, or Experimental-Result of 3GPP.
fn result(request: &Request, (vendor, code): (u32, u32)) -> Result<MessageMut, Fault> {
    if vendor != 0 {
        return Err(Fault::new(ResultCode(code), "").of_vendor(vendor));
    }
    let mut answer = request.answer(ResultCode(code));
    // NO_STATE_MAINTAINED (TS 29.336 §7.1.4, TS 29.128 §6.1.4).
    answer.put(known::AUTH_SESSION_STATE, 1);
    answer
        .finish()
        .map_err(|error| Fault::new(ResultCode::UNABLE_TO_COMPLY, error.to_string()))
}

/// Carries a request out; a duplicate gets the first answer. Work that returns `None` is done again: another request has changed what
/// this one is about, or a duplicate was answered.
async fn once(
    worker: &Worker,
    request: &Request,
    work: impl AsyncFn() -> Result<Option<MessageMut>, Fault>,
) -> Result<MessageMut, Fault> {
    let origin = request.message.require(known::ORIGIN_HOST)?;
    let key = Answered::key_of(origin, request.message.end_to_end());
    loop {
        if let Some(first) = worker.repository().answers.get(&key).await.map_err(unable)? {
            worker.count(Event::Duplicate);
            return result(request, (first.vendor, first.code));
        }
        if let Some(answer) = work().await? {
            return Ok(answer);
        }
    }
}

/// Writes what a request has brought, with its answer for duplicates, then answers; `None` if the batch does not fit what is stored now.
async fn written(
    worker: &Worker,
    request: &Request,
    mut batch: Batch,
    notices: Vec<Notice>,
) -> Result<Option<MessageMut>, Fault> {
    let repository = worker.repository();
    let answer = Answered {
        origin: request.message.require(known::ORIGIN_HOST)?.to_owned(),
        end_to_end: request.message.end_to_end(),
        code: ResultCode::SUCCESS.0,
        vendor: 0,
        expires: after(REPEATED),
    };
    batch.insert(&repository.answers, &answer);
    for notice in &notices {
        batch.insert(&repository.notices, notice);
    }
    if !repository.commit(batch).await.map_err(unable)? {
        return Ok(None);
    }
    for notice in &notices {
        worker.shared().notify(notice);
    }
    result(request, (0, answer.code)).map(Some)
}

fn unable(error: Error) -> Fault {
    tracing::warn!(%error, "a Diameter request was not carried out");
    Fault::new(ResultCode::UNABLE_TO_COMPLY, "the store is not available")
}
