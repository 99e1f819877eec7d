//! Diameter Rx: finds the PCF of a UE's session and keeps the Rx session on that path (TS 29.214, TS 29.513
//! §8.2).
//!
//! * An initial AAR leads to the PCF that the session's binding names.
//! * What names a Destination-Host goes there: later AAR and STR of AFs that learnt the PCF's name, RAR and ASR.
//! * What does not is kept on the path by its Session-Id, as long as that is remembered.
//!
//! The agent lives on one worker.

mod identity;
mod sessions;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities, DownReason, Health};
use diameter::proto::{Fault, Message, MessageBuilder, MessageMut, Origin, ResultCode, Routing};
use diameter::{
    Application, BoundListener, Connection, ConnectionId, DynamicPeers, Forward, Node, NodeConfig,
    PeerConfig, PeerUp, Security, Transport, Unanswered,
};

use self::sessions::{Path, Sessions};
use crate::binding::{Query, Selection, select};
use crate::config::{NoBinding, Rx, RxMode};
use crate::error::StartError;
use crate::events::{Counters, Event};
use crate::repository::Repository;
use crate::service::{State, Switches};

/// DIAMETER_UNKNOWN_SESSION_ID (RFC 6733 §7.1.5).
const UNKNOWN_SESSION_ID: ResultCode = ResultCode(5002);
/// IP-CAN_SESSION_NOT_AVAILABLE (TS 29.214 §5.5).
const IP_CAN_SESSION_NOT_AVAILABLE: u32 = 5065;
/// Redirect-Host-Usage: for this session (RFC 6733 §6.13).
const ALL_SESSION: i32 = 1;

/// The agent.
pub(crate) struct Agent {
    settings: Rx,
    origin: Origin,
    repository: Repository,
    switches: Arc<Switches>,
    counters: Arc<Counters>,
    sessions: RefCell<Sessions>,
}

/// Who waits for an answer.
pub(crate) struct Transit {
    from: ConnectionId,
    /// Should the connection be gone, its peer may have made another.
    peer: Option<diameter::PeerId>,
    hop_by_hop: u32,
    /// Header and Session-Id of the request, for an answer of our own.
    request: Message,
    /// The session ends with a good answer.
    ends: bool,
}

/// Binds the listeners, so that their addresses are known before the worker runs.
pub(crate) fn bind(settings: &Rx) -> Result<Vec<BoundListener>, StartError> {
    if !settings.enabled {
        return Ok(Vec::new());
    }
    let bound = settings.listen.iter().map(|address: SocketAddr| {
        BoundListener::bind(address, Transport::Tcp)
            .map_err(StartError::io(format!("listening at {address} (Diameter)")))
    });
    bound.collect()
}

/// Starts the agent on this worker.
pub(crate) fn run(
    settings: Rx,
    repository: Repository,
    switches: Arc<Switches>,
    counters: Arc<Counters>,
    listeners: Vec<BoundListener>,
) -> std::io::Result<Node<Agent>> {
    let applications = [ApplicationId::tgpp(application::RX)];
    let local = Capabilities::new(&settings.host, &settings.realm).with_applications(applications);
    let config = NodeConfig {
        dynamic: vec![DynamicPeers::default()],
        ..NodeConfig::new(local)
    };
    let agent = Agent {
        origin: Origin::new(&settings.host, &settings.realm),
        sessions: RefCell::new(Sessions::new(settings.max_sessions)),
        repository,
        switches,
        counters,
        settings,
    };
    let peers = agent.settings.peers.clone();
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let node = Node::new(config, agent, None, seed);
    for listener in listeners {
        node.listen(listener, Security::None)?;
    }
    for peer in peers {
        node.add_peer(PeerConfig::connect(peer.host, peer.addresses))
            .map_err(|error| std::io::Error::other(error.to_string()))?;
    }
    Ok(node)
}

/// A request on its way.
struct Request {
    from: Rc<Connection<()>>,
    hop_by_hop: u32,
    message: MessageMut,
    session: Option<Bytes>,
    has_destination: bool,
}

type Link = Rc<Connection<()>>;

impl Agent {
    fn count(&self, event: Event) {
        self.counters.count(event);
    }

    fn refuse(&self, node: &Node<Self>, request: &Request, fault: &Fault) {
        self.count(Event::RxRefused);
        let answer = MessageBuilder::error_answer(&request.message, &self.origin, fault);
        node.answer(&request.from, answer, request.hop_by_hop);
    }

    /// Where a request that names a host goes: there, or to a relay.
    fn link_to(&self, node: &Node<Self>, host: &str) -> Option<Link> {
        let open = |host: &str| {
            let peer = node.peer(host)?;
            node.open_connection(peer).filter(|link| link.is_available())
        };
        open(host).or_else(|| self.settings.relays.iter().find_map(|relay| open(relay)))
    }

    /// Sends a request to a host.
    fn send(&self, node: &Node<Self>, request: Request, host: &str) {
        let Some(link) = self.link_to(node, host) else {
            let fault = Fault::new(
                ResultCode::UNABLE_TO_DELIVER,
                format!("{host} is not connected, nor is a relay"),
            );
            return self.refuse(node, &request, &fault);
        };
        self.send_on(node, request, &link, host);
    }

    fn send_on(&self, node: &Node<Self>, request: Request, link: &Link, host: &str) {
        let mut append = BytesMut::from(&request.from.route_record()[..]);
        if !request.has_destination {
            // Behind a relay, only its name leads to the PCF (RFC 6733 §6.1.4).
            append.extend_from_slice(&diameter::proto::build::encode_one(known::DESTINATION_HOST, host));
        }
        let append = append.freeze();
        let how = Forward {
            deadline: node.now() + self.settings.timeout.duration(),
            append: &append,
            keep: false,
        };
        let mut own = MessageBuilder::new(request.message.header());
        if let Ok(Some(session)) = request.message.avps().find(known::SESSION_ID) {
            own.copy(&session);
        }
        let Ok(own) = own.finish() else { return };
        let transit = Transit {
            from: request.from.id(),
            peer: request.from.peer().map(|up| up.id),
            hop_by_hop: request.hop_by_hop,
            request: own.freeze(),
            ends: request.message.command() == command::SESSION_TERMINATION,
        };
        if let Err(refused) = node.forward(link, request.message, how, transit) {
            let back = Request {
                message: refused.message,
                from: request.from,
                hop_by_hop: request.hop_by_hop,
                session: None,
                has_destination: true,
            };
            let fault = Fault::new(ResultCode::TOO_BUSY, refused.why.to_string());
            return self.refuse(node, &back, &fault);
        }
        self.count(Event::RxForwarded);
    }

    /// An initial AAR: asks the bindings.
    async fn initial(&self, node: &Node<Self>, request: Request, query: Query) {
        let matching = match self.repository.matching(&query).await {
            Ok(matching) => matching,
            Err(error) => {
                tracing::warn!(%error, "an AAR could not be routed");
                let fault = Fault::new(ResultCode::TOO_BUSY, "bindings cannot be read");
                return self.refuse(node, &request, &fault);
            }
        };
        node.refresh();
        let binding = match select(&matching, &query) {
            Selection::One(binding) => binding,
            Selection::None => return self.no_binding(node, &request, "no binding of this UE"),
            Selection::Ambiguous => {
                return self.no_binding(
                    node,
                    &request,
                    "several sessions match; IP-Domain-Id or Called-Station-Id would tell",
                );
            }
        };
        let Some(host) = binding.0.text_of("pcfDiamHost") else {
            return self.no_binding(node, &request, "the PCF of this session has no Diameter name");
        };
        if self.settings.mode == RxMode::Redirect {
            return self.redirect(node, &request, host);
        }
        if let (Some(session), Some(af)) = (&request.session, request.from.peer()) {
            let path = Path::new(&af.remote.origin.host, host);
            self.sessions.borrow_mut().insert(session, path);
        }
        self.send(node, request, host);
    }

    fn no_binding(&self, node: &Node<Self>, request: &Request, why: &'static str) {
        self.count(Event::RxNoBinding);
        match self.settings.no_binding {
            NoBinding::UnableToDeliver => {
                self.refuse(node, request, &Fault::new(ResultCode::UNABLE_TO_DELIVER, why));
            }
            NoBinding::IpCanSessionNotAvailable => {
                let mut answer = MessageBuilder::answer(&request.message);
                answer
                    .put(known::ORIGIN_HOST, &self.origin.host)
                    .put(known::ORIGIN_REALM, &self.origin.realm)
                    .group(known::EXPERIMENTAL_RESULT, |group| {
                        group
                            .put(known::VENDOR_ID, known::VENDOR_3GPP)
                            .put(known::EXPERIMENTAL_RESULT_CODE, IP_CAN_SESSION_NOT_AVAILABLE);
                    })
                    .put(known::ERROR_MESSAGE, why);
                if let Ok(answer) = answer.finish() {
                    node.answer(&request.from, answer, request.hop_by_hop);
                }
            }
        }
    }

    /// DIAMETER_REDIRECT_INDICATION with the PCF's name (RFC 6733 §6.12 to §6.14).
    fn redirect(&self, node: &Node<Self>, request: &Request, host: &str) {
        self.count(Event::RxRedirected);
        let seconds =
            u32::try_from(self.settings.redirect_cache_time.duration().as_secs()).unwrap_or(u32::MAX);
        let mut answer = MessageBuilder::answer(&request.message);
        let flags = answer.flags_mut();
        *flags = flags.with(diameter::proto::CommandFlags::ERROR);
        answer
            .result(ResultCode::REDIRECT_INDICATION, &self.origin)
            .put(known::REDIRECT_HOST, &format!("aaa://{host}"))
            .put(known::REDIRECT_HOST_USAGE, ALL_SESSION)
            .put(known::REDIRECT_MAX_CACHE_TIME, seconds);
        if let Ok(answer) = answer.finish() {
            node.answer(&request.from, answer, request.hop_by_hop);
        }
    }

    /// Where an answer goes: the connection its request came on, or the one that peer has made since.
    fn origin_of(node: &Node<Self>, transit: &Transit) -> Option<Link> {
        let same = node.connection(transit.from);
        same.or_else(|| node.open_connection(transit.peer?))
    }
}

/// What a request asks for, once its AVPs are read.
enum Step {
    /// To this host.
    To(String),
    /// By the bindings.
    Find(Query),
    /// Nowhere.
    Refuse(Fault),
}

impl Agent {
    /// The way of a request: well formed, for us to pass on, open for it, then by name, by session, by binding.
    fn step(&self, message: &MessageMut, routing: &Routing<'_>) -> Step {
        let refuse = |code, why: &'static str| Step::Refuse(Fault::new(code, why));
        if routing.loops {
            return refuse(ResultCode::LOOP_DETECTED, "been here before");
        }
        if message.application() != application::RX {
            return refuse(ResultCode::APPLICATION_UNSUPPORTED, "this agent serves Rx");
        }
        let initiated_by_af = match message.command() {
            command::AA | command::SESSION_TERMINATION => true,
            command::RE_AUTH | command::ABORT_SESSION => false,
            _ => return refuse(ResultCode::COMMAND_UNSUPPORTED, "not a command of Rx"),
        };
        if self.switches.state() == State::Complete {
            return refuse(ResultCode::TOO_BUSY, "this BSF is shut down");
        }
        let path = routing
            .session_id
            .and_then(|id| self.sessions.borrow_mut().get(id));
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        let destination = routing
            .destination_host
            .filter(|host| !host.eq_ignore_ascii_case(self.origin.host.as_bytes()));
        match (destination.map(text), path) {
            (Some(None), _) => refuse(ResultCode::UNABLE_TO_DELIVER, "Destination-Host is no name"),
            // An AF behind an agent is reached by the way its session came.
            (Some(Some(_)), Some(path)) if !initiated_by_af => Step::To(path.af.to_string()),
            (Some(Some(host)), _) => Step::To(host),
            (None, Some(path)) if initiated_by_af => Step::To(path.pcf.to_string()),
            (None, Some(path)) => Step::To(path.af.to_string()),
            (None, None) if message.command() == command::AA => {
                if self.switches.state() != State::Serving {
                    return refuse(ResultCode::TOO_BUSY, "this BSF takes no new sessions");
                }
                match identity::of(message, routing) {
                    Ok(query) => Step::Find(query),
                    Err(fault) => Step::Refuse(fault),
                }
            }
            (None, None) => refuse(UNKNOWN_SESSION_ID, "no path of this session is known"),
        }
    }
}

impl Application for Agent {
    type Context = Transit;
    type State = ();

    fn peer_up(&self, _: &Node<Self>, _: &Link, peer: &PeerUp) {
        tracing::info!(host = %peer.remote.origin.host, "Diameter peer up");
    }

    fn peer_down(&self, _: &Node<Self>, connection: &Link, reason: DownReason) {
        let host = connection.peer().map(|up| up.remote.origin.host.clone());
        tracing::info!(?host, ?reason, "Diameter peer down");
    }

    fn peer_health(&self, _: &Node<Self>, _: &Link, _: Health) {}

    fn request(&self, node: &Node<Self>, from: &Link, message: MessageMut) {
        self.count(Event::RxRequest);
        let (step, session, has_destination) = match Routing::scan(&message, self.origin.host.as_bytes()) {
            Ok(routing) => (
                self.step(&message, &routing),
                routing.session_id.map(Bytes::copy_from_slice),
                routing.destination_host.is_some(),
            ),
            Err(error) => (Step::Refuse(error.into()), None, false),
        };
        let request = Request {
            from: from.clone(),
            hop_by_hop: message.hop_by_hop(),
            message,
            session,
            has_destination,
        };
        match step {
            Step::To(host) => self.send(node, request, &host),
            Step::Refuse(fault) => self.refuse(node, &request, &fault),
            Step::Find(query) => {
                let node = node.clone();
                tokio::task::spawn_local(async move { node.app().initial(&node, request, query).await });
            }
        }
    }

    fn answer(&self, node: &Node<Self>, _: &Link, transit: Transit, message: MessageMut) {
        if transit.ends
            && let Ok(id) = transit.request.require(known::SESSION_ID)
        {
            self.sessions.borrow_mut().remove(id.as_bytes());
        }
        if let Some(link) = Self::origin_of(node, &transit) {
            node.answer(&link, message, transit.hop_by_hop);
        }
    }

    fn unanswered(&self, node: &Node<Self>, lost: Unanswered<Transit, ()>) {
        self.count(Event::RxUnanswered);
        let Some(link) = Self::origin_of(node, &lost.context) else {
            return;
        };
        let fault = Fault::new(ResultCode::UNABLE_TO_DELIVER, "the next hop did not answer");
        let answer = MessageBuilder::error_answer(&lost.context.request, &self.origin, &fault);
        node.answer(&link, answer, lost.context.hop_by_hop);
    }
}
