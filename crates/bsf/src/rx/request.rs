//! The way of a request: may it come in, is it in order, where does it go.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use diameter::proto::known::{self, application, command};
use diameter::proto::{CommandFlags, Fault, MessageBuilder, MessageMut, ResultCode, Routing, encode_one};
use diameter::{Forward, Node};
use function::{Admission, Drmp};
use store::Clock;

use super::answer::{Effect, Sender, Transit};
use super::identity::Target;
use super::lookup::{self, Found};
use super::post::{Crossing, Packet};
use super::sessions::Path;
use super::{Agent, Link, check, identity, redirect};
use crate::config::Overload;
use crate::config::RxMode;
use crate::events::Event;
use crate::flights::Flight;
use crate::worker::Worker;
use function::sbi::State;

/// DIAMETER_UNKNOWN_SESSION_ID (RFC 6733 §7.1.5).
const UNKNOWN_SESSION_ID: ResultCode = ResultCode(5002);
/// Rx-Request-Type (TS 29.214 §5.3.31), and its value for a session that exists.
const RX_REQUEST_TYPE: u32 = 533;
const INITIAL_REQUEST: [u8; 4] = [0, 0, 0, 0];

/// A request on its way.
pub(super) struct Request {
    pub(super) from: Link,
    pub(super) hop_by_hop: u32,
    pub(super) message: MessageMut,
    session: Option<Bytes>,
    pub(super) has_destination: bool,
    /// Its sender reacts to overload reports (RFC 7683).
    pub(super) takes_part: bool,
    /// DRMP (RFC 7944).
    pub(super) priority: Option<u8>,
    pub(super) begun: Instant,
    flight: Flight,
}

/// What is known of the PCF of a session that begins, beside its name.
#[derive(Default)]
struct Beginning {
    realm: Option<String>,
    /// Its set, where the binding holds for that.
    set: Option<Box<str>>,
    /// No overload report holds it back.
    admitted: bool,
}

/// What a request asks for, once its AVPs are read.
enum Step {
    /// To this host.
    To(String),
    /// To this host, as the request that begins its session.
    Begin(String),
    /// By the bindings.
    Find(Box<Target>),
    /// By the path that the store may have; if it has none, this.
    Recall(Box<Step>),
    /// Nowhere.
    Refuse(Fault),
}

impl Agent {
    pub(super) fn received(&self, node: &Node<Self>, from: &Link, mut message: MessageMut) {
        self.counters.count(Event::RxRequest);
        let worker = self.front.worker();
        let (step, session, destination, takes_part, priority) =
            match Routing::scan(&message, self.origin.host.as_bytes()) {
                Ok(routing) => (
                    self.step(&worker, from, &message, &routing),
                    routing.session_id.map(Bytes::copy_from_slice),
                    routing.destination_host.map(|host| self.is_own(host)),
                    routing.supports_overload,
                    routing.priority,
                ),
                Err(error) => (Step::Refuse(error.into()), None, None, false, None),
            };
        // Who names this BSF means the agent: the next hop gets the name of its own (RFC 6733 §6.1.4).
        if destination == Some(true)
            && let Some(unnamed) = without(&message, &[DESTINATION_HOST])
        {
            message = unnamed;
        }
        let request = Request {
            from: from.clone(),
            hop_by_hop: message.hop_by_hop(),
            message,
            session,
            has_destination: destination == Some(false),
            takes_part,
            priority,
            begun: node.now(),
            flight: self.flights.begin(),
        };
        self.take(node, request, step);
    }

    fn take(&self, node: &Node<Self>, request: Request, step: Step) {
        match step {
            Step::To(host) => self.send(node, request, &host, None),
            Step::Begin(host) => self.send(node, request, &host, Some(Beginning::default())),
            Step::Refuse(fault) => self.refuse(node, &request, &fault),
            Step::Find(_) | Step::Recall(_) => {
                let Some(place) = self.lookups.take(self.front.worker().config().rx.max_lookups) else {
                    let fault = Fault::new(ResultCode::TOO_BUSY, "too many requests wait for the bindings");
                    return self.refuse(node, &request, &fault);
                };
                let node = node.clone();
                tokio::task::spawn_local(async move {
                    let agent = node.app();
                    match step {
                        Step::Find(target) => agent.initial(&node, request, &target).await,
                        Step::Recall(otherwise) => agent.recall(&node, request, *otherwise).await,
                        _ => {}
                    }
                    drop(place);
                });
            }
        }
    }

    /// In order, for us to pass on, open for it, then by name, by session, by binding.
    fn step(&self, worker: &Worker, from: &Link, message: &MessageMut, routing: &Routing<'_>) -> Step {
        let refuse = |code, why: &'static str| Step::Refuse(Fault::new(code, why));
        let settings = &worker.config().rx;
        if !from.state().is_none_or(|state| state.admits(settings.peer_rate)) {
            self.counters.count(Event::RxPeerLimited);
            return refuse(
                ResultCode::TOO_BUSY,
                "this peer sends more than it may (peerRate)",
            );
        }
        // Without the P flag a request is for the node that it reaches (RFC 6733 §3), and nothing of Rx is for an agent.
        if !message.flags().contains(CommandFlags::PROXIABLE) {
            return refuse(ResultCode::INVALID_HDR_BITS, "a request without the P flag");
        }
        if routing.loops {
            return refuse(ResultCode::LOOP_DETECTED, "been here before");
        }
        if message.application() != application::RX {
            return refuse(ResultCode::APPLICATION_UNSUPPORTED, "this agent serves Rx");
        }
        let by_af = match message.command() {
            command::AA | command::SESSION_TERMINATION => true,
            command::RE_AUTH | command::ABORT_SESSION => false,
            _ => return refuse(ResultCode::COMMAND_UNSUPPORTED, "not a command of Rx"),
        };
        let in_order = check::addressed(routing).and_then(|()| {
            match settings.check_mandatory && settings.mode == RxMode::Proxy {
                true => check::understood(message),
                false => Ok(()),
            }
        });
        if let Err(fault) = in_order {
            return Step::Refuse(fault);
        }
        if worker.state() == State::Complete || self.stopping.get() {
            return refuse(ResultCode::TOO_BUSY, "this BSF is shut down");
        }
        let session = routing.session_id.unwrap_or_default();
        let path = self.sessions.borrow().get(session);
        let kept = settings.keep_sessions && settings.mode == RxMode::Proxy;
        if let Some(path) = path.as_ref().filter(|_| kept) {
            self.renew(session, path);
        }
        let recall = |otherwise: Step| match kept {
            true => Step::Recall(Box::new(otherwise)),
            false => otherwise,
        };
        let destination = routing
            .destination_host
            .filter(|host| !self.is_own(host))
            .map(|host| std::str::from_utf8(host).map(str::to_owned));
        match (destination, path) {
            (Some(Err(_)), _) => refuse(ResultCode::UNABLE_TO_DELIVER, "Destination-Host is no name"),
            // An AF behind an agent is reached by the way its session came.
            (Some(Ok(_)), Some(path)) if !by_af => Step::To(path.af.to_string()),
            (Some(Ok(host)), None) if !by_af && self.places.home(&host).is_none() => recall(Step::To(host)),
            (Some(Ok(host)), _) => Step::To(host),
            // Sent again, perhaps because the first one failed.
            (None, Some(path)) if by_af && is_initial(message) => Step::Begin(path.pcf.to_string()),
            (None, Some(path)) if by_af => Step::To(path.pcf.to_string()),
            (None, Some(path)) => Step::To(path.af.to_string()),
            (None, None) if message.command() == command::AA => {
                let first = self.begins(worker, from, message, routing);
                match &first {
                    Step::Find(_) if is_initial(message) => first,
                    // Without an address only a session that exists can be meant; with one, it may be.
                    _ => recall(first),
                }
            }
            (None, None) => recall(refuse(UNKNOWN_SESSION_ID, "no path of this session is known")),
        }
    }

    fn is_own(&self, host: &[u8]) -> bool {
        host.eq_ignore_ascii_case(self.origin.host.as_bytes())
    }

    /// What becomes of an AAR of an unknown session.
    fn begins(&self, worker: &Worker, from: &Link, message: &MessageMut, routing: &Routing<'_>) -> Step {
        let refuse = |code, why: &'static str| Step::Refuse(Fault::new(code, why));
        if worker.state() != State::Serving {
            return refuse(ResultCode::TOO_BUSY, "this BSF takes no new sessions");
        }
        let (now, shedder) = (Instant::now(), worker.shedder());
        let admission = shedder.admit(
            now,
            shedder.waited(now, from.unread_since()),
            Overload::DIAMETER,
            &Drmp(routing.priority),
        );
        if admission != Admission::Admitted {
            self.counters.count(Event::RxDiscarded);
            return refuse(ResultCode::TOO_BUSY, "discarded under overload");
        }
        match identity::of(message, routing) {
            Ok(target) => Step::Find(Box::new(target)),
            Err(fault) => Step::Refuse(fault),
        }
    }

    /// That a request cannot be delivered, or that there is too much to do, is a failure of this instance.
    pub(super) fn refuse(&self, node: &Node<Self>, request: &Request, fault: &Fault) {
        let failed = matches!(fault.code, ResultCode::UNABLE_TO_DELIVER | ResultCode::TOO_BUSY);
        self.refuse_as(node, request, fault, failed);
    }

    pub(super) fn refuse_as(&self, node: &Node<Self>, request: &Request, fault: &Fault, failed: bool) {
        self.counters.count(Event::RxRefused);
        self.refused(request, node.now(), failed);
        let answer = MessageBuilder::error_answer(&request.message, &self.origin, fault);
        node.answer(&request.from, answer, request.hop_by_hop);
    }

    /// An initial AAR: asks the bindings.
    async fn initial(&self, node: &Node<Self>, request: Request, target: &Target) {
        let found = match lookup::find(&self.repository, target).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "an AAR could not be routed");
                let fault = Fault::new(ResultCode::TOO_BUSY, "bindings cannot be read");
                return self.refuse(node, &request, &fault);
            }
        };
        node.refresh();
        let worker = self.front.worker();
        let settings = &worker.config().rx;
        let no_binding = |why| redirect::no_binding(self, node, &request, settings.no_binding, why);
        let binding = match found {
            Found::One(binding) => binding,
            Found::None => return no_binding("no binding of this UE"),
            Found::Ambiguous => {
                return no_binding("several sessions match; IP-Domain-Id or Called-Station-Id would tell");
            }
        };
        let text = |name| binding.0.text_of(name);
        let mut host = match (text("pcfDiamHost"), text("pcfDiamRealm")) {
            (Some(host), _) => host.to_owned(),
            // A relay finds a PCF of the realm.
            (None, Some(_)) if settings.mode == RxMode::Proxy => String::new(),
            _ => {
                return no_binding(
                    "the binding of this session has neither pcfDiamHost nor pcfDiamRealm, by which an AF reaches its PCF over Rx",
                );
            }
        };
        if settings.mode == RxMode::Redirect {
            return redirect::redirect(self, node, &request, settings, &host);
        }
        // What holds for the set, each PCF of it can serve (TS 29.500 §6.12.1).
        let set = text("pcfSetId").filter(|_| text("bindLevel") == Some("NF_SET"));
        let mut realm = text("pcfDiamRealm").map(str::to_owned);
        let mut abated = self.abates(&request, &host, true);
        if !host.is_empty()
            && (abated || self.next_hop(&host, None).is_none())
            && let Some(set) = set
            && let Some(other) = self.sibling(set, &host).await
        {
            node.refresh();
            // The other one may have too much to do as well.
            abated = self.abates(&request, &other, true);
            self.counters.count(Event::RxOtherPcf);
            (host, realm) = (other, None);
        }
        if abated {
            return self.refuse(node, &request, &self.abated());
        }
        let beginning = Beginning {
            realm,
            set: set.map(Into::into),
            admitted: true,
        };
        self.send(node, request, &host, Some(beginning));
    }

    /// A request of a session that this worker does not know: another run, worker or instance may have kept it.
    async fn recall(&self, node: &Node<Self>, request: Request, otherwise: Step) {
        let Some(session) = request.session.clone() else {
            return self.take(node, request, otherwise);
        };
        let found = self.repository.paths.get(&session).await;
        node.refresh();
        match found {
            Ok(Some(stored)) => {
                self.counters.count(Event::RxSessionRecalled);
                let path = Path::new(&stored.record.af, &stored.record.pcf, stored.record.began);
                self.sessions.borrow_mut().insert(&session, path.clone());
                self.renew(&session, &path);
                let by_af = matches!(
                    request.message.command(),
                    command::AA | command::SESSION_TERMINATION
                );
                let host = if by_af {
                    &stored.record.pcf
                } else {
                    &stored.record.af
                };
                self.send(node, request, host, None);
            }
            Ok(None) => self.take(node, request, otherwise),
            Err(error) => {
                tracing::warn!(%error, "the path of an Rx session could not be read");
                let fault = Fault::new(ResultCode::TOO_BUSY, "paths of sessions cannot be read");
                self.refuse(node, &request, &fault);
            }
        }
    }

    /// Sends a request to a host, or to a relay when the host is not connected, on whatever worker they are. Without a
    /// host, to a relay, by the realm.
    fn send(&self, node: &Node<Self>, mut request: Request, host: &str, begins: Option<Beginning>) {
        let Some((hop, home)) = self.next_hop(host, None) else {
            let why = format!("{host} is not connected, nor is a relay");
            return self.refuse(node, &request, &Fault::new(ResultCode::UNABLE_TO_DELIVER, why));
        };
        let admitted = begins.as_ref().is_some_and(|begins| begins.admitted);
        if !admitted && self.abates(&request, host, begins.is_some()) {
            return self.refuse(node, &request, &self.abated());
        }
        // Requests that follow at once take the same way; if this one fails, it is removed again.
        if begins.is_some()
            && !host.is_empty()
            && let (Some(session), Some(af)) = (&request.session, request.from.peer())
        {
            let path = Path::new(&af.remote.origin.host, host, Clock::default().micros());
            self.sessions.borrow_mut().insert(session, path);
        }
        let asked = !self.asking(&request).is_empty();
        let realm = begins.as_ref().and_then(|begins| begins.realm.as_deref());
        let append = self.appended(&mut request, host, realm);
        let mut own = MessageBuilder::new(request.message.header());
        if let Ok(Some(session)) = request.message.avps().find(known::SESSION_ID) {
            own.copy(&session);
        }
        let Ok(own) = own.finish() else { return };
        let effect = match (request.message.command(), begins) {
            (command::SESSION_TERMINATION, _) => Effect::Ends,
            (command::AA, Some(Beginning { set, .. })) => Effect::Begins {
                af: request
                    .from
                    .peer()
                    .map(|up| up.remote.origin.host.as_str().into())
                    .unwrap_or_default(),
                pcf: host.into(),
                set,
            },
            _ => Effect::None,
        };
        let transit = Transit {
            sender: Sender {
                worker: self.worker,
                connection: request.from.id(),
                peer: request.from.peer().map(|up| up.id),
                hop_by_hop: request.hop_by_hop,
            },
            request: own.freeze(),
            effect,
            begun: request.begun,
            deadline: node.now() + self.front.worker().config().rx.timeout.duration(),
            sent: 0,
            moved: false,
            asked,
            failed: false,
            _flight: request.flight,
        };
        let crossing = Crossing {
            hop: hop.into(),
            message: request.message,
            append: append.freeze(),
            transit,
        };
        if home == self.worker {
            self.send_here(node, crossing);
        } else if let Err(Packet::Request(crossing)) = self.post.send(home, Packet::Request(crossing)) {
            let fault = Fault::new(ResultCode::TOO_BUSY, "too many requests wait for a worker");
            self.fail(node, crossing.transit, &fault);
        }
    }

    /// What is appended to a request that goes to this host, in this realm. Where the request has another realm, that is
    /// taken out of it.
    fn appended(&self, request: &mut Request, host: &str, realm: Option<&str>) -> BytesMut {
        /// Heads and padding of the two names.
        const ROOM: usize = 64;
        let asking = self.asking(request);
        let route_record = request.from.route_record();
        let names = host.len() + realm.map_or(0, str::len) + ROOM;
        let mut append = BytesMut::with_capacity(route_record.len() + asking.len() + names);
        append.extend_from_slice(route_record);
        append.extend_from_slice(asking);
        if request.has_destination {
            return append;
        }
        // Behind a relay, only its name and realm lead to the PCF (RFC 6733 §6.1.4).
        if !host.is_empty() {
            append.extend_from_slice(&encode_one(known::DESTINATION_HOST, host));
        }
        let given = request.message.get(known::DESTINATION_REALM).ok().flatten();
        if let Some(realm) = realm
            && given.is_none_or(|given| !given.eq_ignore_ascii_case(realm))
            && let Some(unnamed) = without(&request.message, &[DESTINATION_REALM])
        {
            append.extend_from_slice(&encode_one(known::DESTINATION_REALM, realm));
            request.message = unnamed;
        }
        append
    }

    /// Sends a request to a peer that lives here.
    pub(super) fn send_here(&self, node: &Node<Self>, crossing: Crossing) {
        let Crossing {
            hop,
            message,
            append,
            mut transit,
        } = crossing;
        let link = node
            .peer(&hop)
            .and_then(|peer| node.open_connection(peer))
            .filter(|link| link.is_available());
        let Some(link) = link else {
            let why = format!("{hop} is not connected any more");
            return self.fail(node, transit, &Fault::new(ResultCode::UNABLE_TO_DELIVER, why));
        };
        // Both workers of a session know its path.
        if transit.sender.worker != self.worker
            && let Effect::Begins { af, pcf, .. } = &transit.effect
            && !pcf.is_empty()
            && let Ok(session) = transit.request.require(known::SESSION_ID)
        {
            let session = Bytes::copy_from_slice(session.as_bytes());
            let path = Path::new(af, pcf, Clock::default().micros());
            self.sessions.borrow_mut().insert(&session, path);
        }
        let how = Forward {
            deadline: transit.deadline,
            append: &append,
            keep: true,
        };
        transit.sent += 1;
        match node.forward(&link, message, how, transit) {
            Ok(()) => self.counters.count(Event::RxForwarded),
            Err(refused) => {
                let fault = Fault::new(ResultCode::TOO_BUSY, refused.why.to_string());
                self.fail(node, refused.context, &fault);
            }
        }
    }

    /// A request that came from anywhere goes nowhere.
    pub(super) fn fail(&self, node: &Node<Self>, mut transit: Transit, fault: &Fault) {
        self.counters.count(Event::RxRefused);
        transit.failed = true;
        let answer = MessageBuilder::error_answer(&transit.request, &self.origin, fault);
        self.deliver(node, transit, answer);
    }
}

/// Whether an AAR says that it begins its session.
fn is_initial(message: &MessageMut) -> bool {
    message.command() == command::AA
        && message.avps().map_while(Result::ok).any(|avp| {
            avp.vendor == known::VENDOR_3GPP && avp.code == RX_REQUEST_TYPE && avp.data == INITIAL_REQUEST
        })
}

/// Codes of Destination-Realm and Destination-Host (RFC 6733 §6.6, §6.5).
const DESTINATION_REALM: u32 = 283;
pub(super) const DESTINATION_HOST: u32 = 293;

/// The message without its AVPs of the base protocol with these codes.
pub(super) fn without(message: &MessageMut, codes: &[u32]) -> Option<MessageMut> {
    let mut rest = MessageBuilder::new(message.header());
    for avp in message.avps().map_while(Result::ok) {
        if avp.vendor != 0 || !codes.contains(&avp.code) {
            rest.copy(&avp);
        }
    }
    rest.finish().ok()
}
