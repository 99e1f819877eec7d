//! An ASP as it sees its own state (RFC 4666 §4.3.1).

use std::time::{Duration, Instant};

use crate::m3ua::{Builder, ErrorCode, Message, MessageType, Status, Tag, TrafficMode};

/// State of an ASP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AspState {
    /// Without an association, or not up.
    Down,
    /// Up; no traffic.
    Inactive,
    /// Up; takes traffic.
    Active,
}

/// Settings of an ASP.
#[derive(Clone, Debug)]
pub struct AspSettings {
    /// Identity, where the gateway wants one.
    pub identifier: Option<u32>,
    /// Routing contexts; empty where the gateway has one AS for us.
    pub routing_contexts: Vec<u32>,
    /// Traffic mode; the gateway's where none.
    pub traffic_mode: Option<TrafficMode>,
    /// T(ack): how long an acknowledgement may take before the message is sent again (§4.3.4.1), 2 s by default.
    pub ack_timeout: Duration,
    /// How often heartbeats are sent; zero for never.
    pub heartbeat_interval: Duration,
}

impl Default for AspSettings {
    fn default() -> Self {
        Self {
            identifier: None,
            routing_contexts: Vec::new(),
            traffic_mode: None,
            ack_timeout: Duration::from_secs(2),
            heartbeat_interval: Duration::from_secs(30),
        }
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AspEvent {
    /// The state changed.
    State(AspState),
    /// The gateway reports.
    Notified(Status),
    /// The gateway reports an error; its code.
    Refused(u32),
    /// A second heartbeat was due and the first was not answered: the driver ends the association (§4.3.4.6).
    PeerSilent,
}

/// What the user wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Goal {
    Down,
    Inactive,
    Active,
}

/// The machine. It stands for the routing contexts of one association; a gateway may grant some and refuse others.
#[derive(Debug)]
pub struct Asp {
    settings: AspSettings,
    state: AspState,
    /// Routing contexts that the gateway has acknowledged while active.
    granted: Vec<u32>,
    /// Those that it has refused on this association.
    refused: Vec<u32>,
    /// What management wants.
    wanted: Goal,
    /// What it can be on this association: a gateway that refuses, or has another ASP instead, lowers it.
    goal: Goal,
    associated: bool,
    /// When the pending request is sent again, or one after a pause.
    retry: Option<Instant>,
    pending: Option<MessageType>,
    heartbeat: Option<Instant>,
    beats: u32,
    answered: bool,
}

impl Asp {
    /// Down, with the goal of being active.
    #[must_use]
    pub const fn new(settings: AspSettings) -> Self {
        Self {
            settings,
            state: AspState::Down,
            granted: Vec::new(),
            refused: Vec::new(),
            wanted: Goal::Active,
            goal: Goal::Active,
            associated: false,
            retry: None,
            pending: None,
            heartbeat: None,
            beats: 0,
            answered: true,
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> AspState {
        self.state
    }

    /// Whether the ASP is active for a routing context; `None` for one without a number.
    #[must_use]
    pub fn is_active_for(&self, context: Option<u32>) -> bool {
        let all = self.settings.routing_contexts.is_empty();
        self.state == AspState::Active && context.is_none_or(|context| all || self.granted.contains(&context))
    }

    /// When [`Asp::tick`] has something to do.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        [self.retry, self.heartbeat].into_iter().flatten().min()
    }

    /// The association is up.
    pub fn associated(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.associated = true;
        self.answered = true;
        if !self.settings.heartbeat_interval.is_zero() {
            self.heartbeat = Some(now + self.settings.heartbeat_interval);
        }
        self.advance(now, out);
    }

    /// The association is lost.
    pub fn disassociated(&mut self, events: &mut Vec<AspEvent>) {
        (self.associated, self.heartbeat) = (false, None);
        self.refused.clear();
        self.goal = self.wanted;
        self.settle();
        self.change(AspState::Down, events);
    }

    /// Management wants traffic.
    pub fn activate(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.aim(Goal::Active, now, out);
    }

    /// Management wants no traffic.
    pub fn deactivate(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.aim(Goal::Inactive, now, out);
    }

    /// Management wants the ASP down.
    pub fn take_down(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.aim(Goal::Down, now, out);
    }

    /// A request that is pending is answered first: until then the state that the gateway has is unknown.
    fn aim(&mut self, goal: Goal, now: Instant, out: &mut Vec<Vec<u8>>) {
        (self.wanted, self.goal) = (goal, goal);
        if self.pending.is_none() {
            self.advance(now, out);
        }
    }

    /// Sends what leads one step towards the goal.
    fn advance(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        self.settle();
        let kind = match (self.state, self.goal) {
            (AspState::Down, Goal::Inactive | Goal::Active) => MessageType::Aspup,
            (AspState::Inactive, Goal::Active) => MessageType::Aspac,
            (AspState::Active, Goal::Inactive) => MessageType::Aspia,
            (AspState::Inactive | AspState::Active, Goal::Down) => MessageType::Aspdn,
            _ => return,
        };
        if self.associated {
            self.request(kind, now, out);
        }
    }

    /// No request is pending any more.
    const fn settle(&mut self) {
        (self.retry, self.pending) = (None, None);
    }

    fn request(&mut self, kind: MessageType, now: Instant, out: &mut Vec<Vec<u8>>) {
        let mut octets = Vec::new();
        let mut builder = Builder::new(kind, &mut octets);
        if let (MessageType::Aspup, Some(identifier)) = (kind, self.settings.identifier) {
            builder.word(Tag::ASP_IDENTIFIER, identifier);
        }
        if let (MessageType::Aspac, Some(mode)) = (kind, self.settings.traffic_mode) {
            builder.word(Tag::TRAFFIC_MODE_TYPE, mode as u32);
        }
        let contexts = matches!(kind, MessageType::Aspac | MessageType::Aspia);
        if contexts && !self.settings.routing_contexts.is_empty() {
            builder.words(Tag::ROUTING_CONTEXT, &self.contexts());
        }
        builder.finish();
        out.push(octets);
        self.retry = Some(now + self.settings.ack_timeout);
        self.pending = Some(kind);
    }

    /// The contexts that the gateway has not refused.
    fn contexts(&self) -> Vec<u32> {
        let ours = self.settings.routing_contexts.iter().copied();
        ours.filter(|context| !self.refused.contains(context)).collect()
    }

    /// A message arrived. Those of the other half of an IPSP are ignored.
    pub fn received(
        &mut self,
        message: &Message<'_>,
        now: Instant,
        out: &mut Vec<Vec<u8>>,
        events: &mut Vec<AspEvent>,
    ) {
        match message.message_type() {
            // Late acknowledgements of an earlier request change nothing.
            MessageType::AspupAck if self.state == AspState::Down => self.change(AspState::Inactive, events),
            MessageType::AspacAck if self.state >= AspState::Inactive => {
                self.grant(message);
                self.change(AspState::Active, events);
            }

            MessageType::AspiaAck if self.state == AspState::Active && self.withdraw(message) => {
                // Without a request: the gateway takes the traffic away, and ASPAC is for management to send again
                // (§4.3.4.4).
                if self.pending != Some(MessageType::Aspia) {
                    self.goal = self.goal.min(Goal::Inactive);
                }
                self.change(AspState::Inactive, events);
            }
            // ASPDN ACK without a request: management of the gateway (§4.3.4.2). ASPUP is sent again after T(ack).
            MessageType::AspdnAck => {
                self.change(AspState::Down, events);
                self.settle();
                self.retry = (self.goal > Goal::Down).then(|| now + self.settings.ack_timeout);
                return;
            }
            MessageType::BeatAck => {
                if message.get(Tag::HEARTBEAT_DATA) == Some(&self.beats.to_be_bytes()) {
                    self.answered = true;
                }
                return;
            }
            MessageType::Ntfy => {
                self.notified(message, events);
                return;
            }
            MessageType::Err => {
                self.refused(message, events);
                return;
            }
            _ => return,
        }
        self.advance(now, out);
    }

    /// An acknowledgement is for the contexts that it names, or for all (§4.3.4.3).
    fn grant(&mut self, message: &Message<'_>) {
        let ours = &self.settings.routing_contexts;
        let named: Vec<u32> = message
            .routing_contexts()
            .filter(|one| ours.contains(one))
            .collect();
        // A gateway that numbers otherwise has one application server for us.
        let granted = if named.is_empty() { ours } else { &named };
        for context in granted {
            if !self.granted.contains(context) {
                self.granted.push(*context);
            }
        }
    }

    /// The gateway takes contexts away; returns whether none is left.
    fn withdraw(&mut self, message: &Message<'_>) -> bool {
        let named: Vec<u32> = message.routing_contexts().collect();
        self.granted
            .retain(|context| !named.is_empty() && !named.contains(context));
        self.granted.is_empty()
    }

    fn notified(&mut self, message: &Message<'_>, events: &mut Vec<AspEvent>) {
        let Some(status) = message.word(Tag::STATUS).map(Status::from_number) else {
            return;
        };
        events.push(AspEvent::Notified(status));
        // Another ASP has taken the traffic over: this one is inactive, and sends no ASPAC of its own accord, or the two
        // would override one another for ever (§4.3.4.3).
        if status == Status::AlternateAspActive && self.state == AspState::Active {
            self.goal = Goal::Inactive;
            self.settle();
            self.change(AspState::Inactive, events);
        }
    }

    fn refused(&mut self, message: &Message<'_>, events: &mut Vec<AspEvent>) {
        let code = message.word(Tag::ERROR_CODE).unwrap_or_default();
        events.push(AspEvent::Refused(code));
        // The gateway has us down, an acknowledgement of ASPDN or ASPUP was lost: begin again after T(ack).
        if ErrorCode::from_number(code) == Some(ErrorCode::UnexpectedMessage)
            && self.state == AspState::Inactive
        {
            self.change(AspState::Down, events);
            self.pending = None;
            return;
        }
        // Sending the same again would get the same answer: the goal falls to what we have, until management decides or
        // another association begins.
        let lasting = matches!(
            ErrorCode::from_number(code),
            Some(
                ErrorCode::RefusedManagementBlocking
                    | ErrorCode::InvalidRoutingContext
                    | ErrorCode::NoConfiguredAsForAsp
                    | ErrorCode::UnsupportedTrafficModeType
                    | ErrorCode::AspIdentifierRequired
                    | ErrorCode::InvalidAspIdentifier
            )
        );
        if lasting && self.pending.is_some() {
            let ours = &self.settings.routing_contexts;
            let named: Vec<u32> = message
                .routing_contexts()
                .filter(|one| ours.contains(one))
                .collect();
            self.refused.extend(&named);
            // The others may be acknowledged still; after T(ack) they are asked for without these.
            if !named.is_empty() && !self.contexts().is_empty() {
                return;
            }
            // Management that tries again asks for all.
            self.refused.clear();
            self.settle();
            self.goal = match self.state {
                AspState::Down => Goal::Down,
                AspState::Inactive => Goal::Inactive,
                AspState::Active => Goal::Active,
            };
        }
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>, events: &mut Vec<AspEvent>) {
        if self.retry.is_some_and(|at| at <= now) {
            match self.pending {
                Some(kind) => self.request(kind, now, out),
                None => self.advance(now, out),
            }
        }
        if self.heartbeat.is_none_or(|at| at > now) {
            return;
        }
        if !self.answered {
            self.heartbeat = None;
            events.push(AspEvent::PeerSilent);
            return;
        }
        self.beats = self.beats.wrapping_add(1);
        self.answered = false;
        let mut octets = Vec::new();
        let mut builder = Builder::new(MessageType::Beat, &mut octets);
        builder.parameter(Tag::HEARTBEAT_DATA, &self.beats.to_be_bytes());
        builder.finish();
        out.push(octets);
        self.heartbeat = Some(now + self.settings.heartbeat_interval);
    }

    fn change(&mut self, state: AspState, events: &mut Vec<AspEvent>) {
        if state != AspState::Active {
            self.granted.clear();
        }
        if self.state != state {
            self.state = state;
            events.push(AspEvent::State(state));
        }
    }
}
