//! An application server and the states of its ASPs (RFC 4666 §4.3.2).

use std::time::{Duration, Instant};

use super::client::AspState;
use super::gateway::AspId;
use crate::m3ua::{Status, TrafficMode};

/// State of an application server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AsState {
    /// Every ASP is down.
    Down,
    /// An ASP is up, none is active.
    Inactive,
    /// ASPs are active.
    Active,
    /// The last active ASP left less than T(r) ago; traffic is queued.
    Pending,
}

/// Settings of an application server.
#[derive(Clone, Debug)]
pub struct AsSettings {
    /// Its routing context.
    pub routing_context: u32,
    /// How its ASPs share traffic; what the first ASPAC says where none.
    pub traffic_mode: Option<TrafficMode>,
    /// How many ASPs have to be active before a load-shared or broadcast AS is; 1 by default.
    pub wanted: usize,
    /// T(r): how long traffic is queued after the last active ASP left.
    pub recovery: Duration,
    /// ASPs that may serve it.
    pub asps: Vec<AspId>,
}

/// Which ASPs take an MSU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution<'a> {
    /// One.
    One(AspId),
    /// Each of these.
    Each(&'a [AspId]),
    /// None now; queue it: the AS is pending.
    Queue,
    /// None; drop it.
    Drop,
}

/// An application server.
#[derive(Debug)]
pub struct ApplicationServer {
    pub(super) settings: AsSettings,
    pub(super) mode: Option<TrafficMode>,
    state: AsState,
    /// Of each ASP of the settings.
    states: Vec<AspState>,
    /// Those active, in the order of settings.
    active: Vec<AspId>,
    recovery: Option<Instant>,
}

impl ApplicationServer {
    pub(super) fn new(settings: AsSettings) -> Self {
        Self {
            mode: settings.traffic_mode,
            state: AsState::Down,
            states: vec![AspState::Down; settings.asps.len()],
            active: Vec::new(),
            recovery: None,
            settings,
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> AsState {
        self.state
    }

    /// The routing context.
    #[must_use]
    pub const fn routing_context(&self) -> u32 {
        self.settings.routing_context
    }

    /// ASPs that are active.
    #[must_use]
    pub fn active(&self) -> &[AspId] {
        &self.active
    }

    /// ASPs that are up.
    pub(super) fn up(&self) -> impl Iterator<Item = AspId> {
        let asps = self.settings.asps.iter().zip(&self.states);
        asps.filter(|(_, state)| **state > AspState::Down)
            .map(|(asp, _)| *asp)
    }

    pub(super) const fn wake(&self) -> Option<Instant> {
        self.recovery
    }

    pub(super) fn state_of(&self, asp: AspId) -> Option<AspState> {
        let place = self.settings.asps.iter().position(|member| *member == asp)?;
        self.states.get(place).copied()
    }

    /// Which ASPs take an MSU: by its link selection among load-sharing ones, so that its order holds.
    #[must_use]
    pub fn distribute(&self, sls: u8) -> Distribution<'_> {
        match (self.state, self.mode) {
            (AsState::Pending, _) => Distribution::Queue,
            (AsState::Down | AsState::Inactive, _) => Distribution::Drop,
            (AsState::Active, Some(TrafficMode::Broadcast)) => Distribution::Each(&self.active),
            (AsState::Active, _) => match usize::from(sls).checked_rem(self.active.len()) {
                Some(place) => self
                    .active
                    .get(place)
                    .map_or(Distribution::Drop, |asp| Distribution::One(*asp)),
                None => Distribution::Drop,
            },
        }
    }

    /// Sets the state of one ASP. Returns the ASP that it overrides.
    pub(super) fn set(&mut self, asp: AspId, state: AspState) -> Option<AspId> {
        let place = self.settings.asps.iter().position(|member| *member == asp)?;
        let mut overridden = None;
        if state == AspState::Active && self.mode == Some(TrafficMode::Override) {
            let others = self.settings.asps.iter().zip(&mut self.states);
            for (other, other_state) in others.filter(|(other, _)| **other != asp) {
                if *other_state == AspState::Active {
                    *other_state = AspState::Inactive;
                    overridden = Some(*other);
                }
            }
        }
        if let Some(slot) = self.states.get_mut(place) {
            *slot = state;
        }
        let asps = self.settings.asps.iter().zip(&self.states);
        let active = asps
            .filter(|(_, state)| **state == AspState::Active)
            .map(|(asp, _)| *asp);
        self.active = active.collect();
        overridden
    }

    /// The state that follows from those of the ASPs. Returns what NTFY reports of it.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Status> {
        let up = self.states.iter().any(|state| *state > AspState::Down);
        let active = self.active.len();
        let enough = match self.mode {
            Some(TrafficMode::Loadshare | TrafficMode::Broadcast) => self.settings.wanted.max(1),
            _ => 1,
        };
        let rest = if up { AsState::Inactive } else { AsState::Down };
        let next = match self.state {
            AsState::Down | AsState::Inactive if active >= enough => AsState::Active,
            AsState::Down | AsState::Inactive => rest,
            // One active ASP ends the recovery: the AS served traffic before with fewer than it wants (§4.3.2).
            AsState::Pending if active > 0 => AsState::Active,
            AsState::Pending if self.recovery.is_some_and(|at| at <= now) => rest,
            AsState::Active if active == 0 => AsState::Pending,
            same => same,
        };
        if next == self.state {
            return None;
        }
        self.state = next;
        self.recovery = (next == AsState::Pending).then(|| now + self.settings.recovery);
        match next {
            AsState::Active => Some(Status::AsActive),
            AsState::Pending => Some(Status::AsPending),
            AsState::Inactive => Some(Status::AsInactive),
            // No ASP is left that could be notified.
            AsState::Down => None,
        }
    }

    /// Whether an active AS has fewer ASPs than it wants.
    pub(super) fn is_short(&self) -> bool {
        let shared = matches!(self.mode, Some(TrafficMode::Loadshare | TrafficMode::Broadcast));
        shared && self.state == AsState::Active && self.active.len() < self.settings.wanted
    }
}
