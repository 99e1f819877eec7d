//! The granting side: states of ASPs and application servers as an SGP keeps them (RFC 4666 §4.3).

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use super::client::AspState;
use super::server::{ApplicationServer, AsSettings, AsState};
use crate::m3ua::{Builder, ErrorCode, Fault, Message, MessageType, Status, Tag, TrafficMode};

/// An ASP of a gateway: the association that it has, or would have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AspId(pub u32);

/// An application server of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AsId(pub usize);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GatewayEvent {
    /// A message for an ASP.
    Send(AspId, Vec<u8>),
    /// A message of an ASP was refused: the ERR is sent.
    Refused(AspId, Fault),
    /// The state of an application server changed. From pending to active, what is queued leaves; from pending to another
    /// state, it is dropped.
    State(AsId, AsState),
}

/// The machine.
#[derive(Debug)]
pub struct Gateway {
    servers: Vec<ApplicationServer>,
    /// ASPs whose association is up, with their identifier.
    up: Vec<(AspId, Option<u32>)>,
    associated: Vec<AspId>,
    events: Vec<GatewayEvent>,
}

impl Gateway {
    /// With these application servers.
    #[must_use]
    pub fn new(servers: Vec<AsSettings>) -> Self {
        Self {
            servers: servers.into_iter().map(ApplicationServer::new).collect(),
            up: Vec::new(),
            associated: Vec::new(),
            events: Vec::new(),
        }
    }

    /// An application server.
    #[must_use]
    pub fn server(&self, id: AsId) -> Option<&ApplicationServer> {
        self.servers.get(id.0)
    }

    /// What happened since the last call.
    pub fn events(&mut self) -> Vec<GatewayEvent> {
        std::mem::take(&mut self.events)
    }

    /// When [`Gateway::tick`] has something to do.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        self.servers.iter().filter_map(ApplicationServer::wake).min()
    }

    /// An association is up.
    pub fn associated(&mut self, asp: AspId) {
        if !self.associated.contains(&asp) {
            self.associated.push(asp);
        }
    }

    /// An association is lost.
    pub fn disassociated(&mut self, asp: AspId, now: Instant) {
        self.associated.retain(|other| *other != asp);
        self.down(asp, now, true);
    }

    /// Whether DATA and SSNM of an ASP are taken, for a routing context: it is active for it (§4.3.4.3).
    #[must_use]
    pub fn may_send(&self, asp: AspId, routing_context: Option<u32>) -> bool {
        let mut servers = self
            .servers
            .iter()
            .filter(|server| routing_context.is_none_or(|context| context == server.routing_context()));
        servers.any(|server| server.active().contains(&asp))
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant) {
        for id in 0..self.servers.len() {
            self.settle(AsId(id), now);
        }
    }

    /// A message of an ASP arrived on a stream. DATA, SSNM and RKM are for the caller, after [`Gateway::may_send`];
    /// acknowledgements belong to [`super::Asp`].
    pub fn received(&mut self, asp: AspId, stream: u16, message: &Message<'_>, now: Instant) {
        let kind = message.message_type();
        if !kind.may_use_stream(stream) {
            self.refuse(
                asp,
                message,
                Fault::new(ErrorCode::InvalidStreamIdentifier, "wrong stream"),
            );
            return;
        }
        match kind {
            MessageType::Aspup => self.asp_up(asp, message, now),
            MessageType::Aspdn => {
                self.down(asp, now, false);
                self.answer(asp, MessageType::AspdnAck, |_| {});
            }
            MessageType::Beat => self.answer(asp, MessageType::BeatAck, |builder| {
                if let Some(data) = message.get(Tag::HEARTBEAT_DATA) {
                    builder.parameter(Tag::HEARTBEAT_DATA, data);
                }
            }),
            MessageType::Aspac | MessageType::Aspia if !self.is_up(asp) => {
                self.refuse(
                    asp,
                    message,
                    Fault::new(ErrorCode::UnexpectedMessage, "the ASP is down"),
                );
            }
            MessageType::Aspac => self.asp_active(asp, message, now),
            MessageType::Aspia => self.asp_inactive(asp, message, now),
            MessageType::Data if !self.may_send(asp, message.word(Tag::ROUTING_CONTEXT)) => {
                self.refuse(
                    asp,
                    message,
                    Fault::new(ErrorCode::UnexpectedMessage, "the ASP is not active"),
                );
            }
            _ => {}
        }
    }

    /// Whether an ASP is up: its ASPUP was acknowledged.
    #[must_use]
    pub fn is_up(&self, asp: AspId) -> bool {
        self.up.iter().any(|(up, _)| *up == asp)
    }

    fn asp_up(&mut self, asp: AspId, message: &Message<'_>, now: Instant) {
        let identifier = message.word(Tag::ASP_IDENTIFIER);
        let taken = |(other, theirs): &(AspId, Option<u32>)| {
            *other != asp && identifier.is_some() && *theirs == identifier
        };
        if self.up.iter().any(taken) {
            let fault = Fault::new(ErrorCode::InvalidAspIdentifier, "another ASP has this identifier");
            self.refuse(asp, message, fault);
            return;
        }
        let was_active = self.servers.iter().any(|server| server.active().contains(&asp));
        if !self.is_up(asp) {
            self.up.push((asp, identifier));
        }
        self.answer(asp, MessageType::AspupAck, |_| {});
        if was_active {
            // ASPUP of an active ASP: acknowledged, reported as unexpected, and it is inactive (§4.3.4.1).
            self.refuse(
                asp,
                message,
                Fault::new(ErrorCode::UnexpectedMessage, "the ASP was active"),
            );
        }
        for id in 0..self.servers.len() {
            if self.servers[id].state_of(asp).is_none() {
                continue;
            }
            self.servers[id].set(asp, AspState::Inactive);
            let before = self.servers[id].state();
            self.settle(AsId(id), now);
            // An ASP that comes up learns of the state that the others know already (§4.3.4.5).
            let server = &self.servers[id];
            let status = match server.state() {
                same if same != before => None,
                AsState::Active => Some(Status::AsActive),
                AsState::Inactive => Some(Status::AsInactive),
                AsState::Pending => Some(Status::AsPending),
                AsState::Down => None,
            };
            if let Some(status) = status {
                self.notify(id, &[asp], status, None);
            }
        }
    }

    fn asp_active(&mut self, asp: AspId, message: &Message<'_>, now: Instant) {
        let mode = message
            .word(Tag::TRAFFIC_MODE_TYPE)
            .and_then(TrafficMode::from_number);
        let named = message.get(Tag::ROUTING_CONTEXT).is_some();
        let (mut servers, mut faults) = self.meant(asp, message);
        let is_other = |id: &usize| {
            let theirs = self.servers[*id].mode;
            mode.is_some() && theirs.is_some() && mode != theirs
        };
        let others: Vec<usize> = servers.extract_if(.., |id| is_other(id)).collect();
        if !others.is_empty() {
            let contexts = self.contexts(&others);
            faults.push(Fault::about(
                ErrorCode::UnsupportedTrafficModeType,
                contexts,
                "the application server has another traffic mode",
            ));
        }
        for id in &servers {
            let server = &mut self.servers[*id];
            // Without a mode from either side an AS shares load: the only mode in which a second ASP takes nothing away.
            server.mode = server.mode.or(mode).or(Some(TrafficMode::Loadshare));
        }
        // Contexts are acknowledged and refused independently of one another (§4.3.4.3).
        if !servers.is_empty() {
            let contexts = self.contexts(&servers);
            // An ASPAC without contexts that succeeds in part has to say for which.
            let names = named || !others.is_empty();
            self.answer(asp, MessageType::AspacAck, |builder| {
                if let Some(mode) = mode {
                    builder.word(Tag::TRAFFIC_MODE_TYPE, mode as u32);
                }
                if names {
                    builder.words(Tag::ROUTING_CONTEXT, &contexts);
                }
            });
        }
        for fault in faults {
            self.refuse(asp, message, fault);
        }
        for id in servers {
            if let Some(overridden) = self.servers[id].set(asp, AspState::Active) {
                self.notify(id, &[overridden], Status::AlternateAspActive, Some(asp));
            }
            self.settle(AsId(id), now);
        }
    }

    fn asp_inactive(&mut self, asp: AspId, message: &Message<'_>, now: Instant) {
        let (servers, faults) = self.meant(asp, message);
        if !servers.is_empty() {
            let contexts = self.contexts(&servers);
            let named = message.get(Tag::ROUTING_CONTEXT).is_some();
            self.answer(asp, MessageType::AspiaAck, |builder| {
                if named {
                    builder.words(Tag::ROUTING_CONTEXT, &contexts);
                }
            });
        }
        for fault in faults {
            self.refuse(asp, message, fault);
        }
        for id in servers {
            self.servers[id].set(asp, AspState::Inactive);
            self.settle(AsId(id), now);
            self.report_shortage(id);
        }
    }

    fn contexts(&self, servers: &[usize]) -> Vec<u32> {
        let contexts = servers.iter().map(|id| self.servers[*id].routing_context());
        contexts.collect()
    }

    /// The application servers that a message is about: those of its routing contexts, or all of the ASP; and what is wrong with
    /// the others that it names.
    fn meant(&self, asp: AspId, message: &Message<'_>) -> (Vec<usize>, Vec<Fault>) {
        let ours = self.servers.iter().enumerate();
        let ours = ours.filter(|(_, server)| server.state_of(asp).is_some());
        let contexts = message.routing_contexts();
        let all: Vec<usize> = ours.clone().map(|(id, _)| id).collect();
        if contexts.is_empty() {
            let none = Fault::new(
                ErrorCode::NoConfiguredAsForAsp,
                "no application server has this ASP",
            );
            let faults = all.is_empty().then_some(none);
            return (all, faults.into_iter().collect());
        }
        let ours: HashMap<u32, usize> = ours.map(|(id, server)| (server.routing_context(), id)).collect();
        let (mut found, mut foreign, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for context in contexts.filter(|context| seen.insert(*context)) {
            match ours.get(&context) {
                Some(id) => found.push(*id),
                None => foreign.push(context),
            }
        }
        let fault = (!foreign.is_empty()).then(|| {
            let reason = "no such routing context of the ASP";
            Fault::about(ErrorCode::InvalidRoutingContext, foreign, reason)
        });
        (found, fault.into_iter().collect())
    }

    fn down(&mut self, asp: AspId, now: Instant, failed: bool) {
        self.up.retain(|(up, _)| *up != asp);
        for id in 0..self.servers.len() {
            let before = self.servers[id].state_of(asp);
            if before.is_none_or(|state| state == AspState::Down) {
                continue;
            }
            self.servers[id].set(asp, AspState::Down);
            if failed && before == Some(AspState::Active) {
                let others: Vec<AspId> = self.servers[id].up().collect();
                self.notify(id, &others, Status::AspFailure, Some(asp));
            }
            self.settle(AsId(id), now);
            self.report_shortage(id);
        }
    }

    fn settle(&mut self, id: AsId, now: Instant) {
        let Some(server) = self.servers.get_mut(id.0) else {
            return;
        };
        let before = server.state();
        let status = server.settle(now);
        let state = server.state();
        if before != state {
            self.events.push(GatewayEvent::State(id, state));
        }
        if let Some(status) = status {
            let up: Vec<AspId> = self.servers[id.0].up().collect();
            self.notify(id.0, &up, status, None);
        }
    }

    fn report_shortage(&mut self, id: usize) {
        if self.servers[id].is_short() {
            let server = &self.servers[id];
            let inactive: Vec<AspId> = server.up().filter(|asp| !server.active().contains(asp)).collect();
            self.notify(id, &inactive, Status::InsufficientAspResources, None);
        }
    }

    /// NTFY with the routing context; the ASP that it is about has its identifier there, where it gave one (§3.8.2).
    fn notify(&mut self, id: usize, asps: &[AspId], status: Status, about: Option<AspId>) {
        let context = self.servers[id].routing_context();
        let about = self.up.iter().find(|(asp, _)| Some(*asp) == about);
        let identifier = about.and_then(|(_, identifier)| *identifier);
        for asp in asps {
            self.answer(*asp, MessageType::Ntfy, |builder| {
                builder.word(Tag::STATUS, status.number());
                if let Some(identifier) = identifier {
                    builder.word(Tag::ASP_IDENTIFIER, identifier);
                }
                builder.word(Tag::ROUTING_CONTEXT, context);
            });
        }
    }

    fn answer(&mut self, asp: AspId, kind: MessageType, parameters: impl FnOnce(&mut Builder<'_>)) {
        let mut octets = Vec::new();
        let mut builder = Builder::new(kind, &mut octets);
        parameters(&mut builder);
        builder.finish();
        self.events.push(GatewayEvent::Send(asp, octets));
    }

    fn refuse(&mut self, asp: AspId, message: &Message<'_>, fault: Fault) {
        let mut octets = Vec::new();
        if fault.write_error(message.as_octets(), &mut octets) {
            self.events.push(GatewayEvent::Send(asp, octets));
            self.events.push(GatewayEvent::Refused(asp, fault));
        }
    }
}
