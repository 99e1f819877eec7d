//! The actions of the rows of [`super::table`].
//!
//! A [`Machine`] stands for one peer. It takes events ([`Input`]) and returns actions ([`Machine::output`]);
//! [`Machine::deadline`] is the time of its next [`Input::Timer`]. It distinguishes the two connections only by
//! [`Side`]; the driver maps those to sockets.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::capabilities::Capabilities;
use super::events::{DownReason, Duplicate, Input, Output, PeerSettings};
use super::messages::SentIds;
use super::table::{Action, Event, Side, State, row};
use super::watchdog::{Command, Health, Watchdog};
use crate::fault::{Fault, ResultCode};
use crate::known::{self, command, disconnect_cause};
use crate::message::{Message, MessageRef};

/// Number of longest pauses after which a busy peer without pending requests is connected to.
const BUSY_PAUSES: u32 = 10;

/// Time for which the peer's CER waits for the outcome of our own attempt to connect, which a firewall may swallow.
const ELECTION_PATIENCE: Duration = Duration::from_secs(2);

/// One peer.
#[derive(Debug)]
pub struct Machine {
    pub(super) local: Arc<Capabilities>,
    settings: PeerSettings,
    state: State,
    /// Whether we were started and not stopped since.
    wanted: bool,
    /// Whether `Up` was returned and `Down` not yet.
    up: bool,
    /// The connections that exist or are being made.
    initiator: bool,
    responder: bool,
    /// Our address on each.
    pub(super) addresses: [Option<IpAddr>; 2],
    /// Whether TLS is offered in Inband-Security-Id on each.
    pub(super) inband: [bool; 2],
    remote: Option<Arc<Capabilities>>,
    common: Vec<u32>,
    /// The CER that is still unanswered.
    pub(super) cer: Option<Message>,
    watchdog: Watchdog,
    /// Deadline of the present state, for states that have one.
    due: Option<Instant>,
    reconnect_at: Option<Instant>,
    /// Since when this node does not reconnect because the peer sent a DPR with DO_NOT_WANT_TO_TALK_TO_YOU or BUSY.
    idle_since: Option<Instant>,
    /// Whether the last DPR of the peer had the cause BUSY.
    busy: bool,
    pause: Duration,
    pub(super) stop_cause: i32,
    pub(super) next_id: u32,
    pub(super) sent_ids: SentIds,
    /// Whether requests to the peer are unanswered at the arrival of its DPR.
    pub(super) in_flight: bool,
    /// Why the last attempt to connect failed after the connection was made.
    failure: Option<Fault>,
    pub(super) outputs: VecDeque<Output>,
}

impl Machine {
    /// A peer without a connection. `seed` makes identifiers and jitter differ between machines.
    #[must_use]
    pub fn new(local: Arc<Capabilities>, settings: PeerSettings, seed: u64) -> Self {
        Self {
            inband: [local.inband_tls; 2],
            local,
            state: State::Closed,
            wanted: settings.initiate,
            up: false,
            initiator: false,
            responder: false,
            addresses: [None; 2],
            remote: None,
            common: Vec::new(),
            cer: None,
            watchdog: Watchdog::new(
                settings.watchdog,
                settings.reopen,
                seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
            due: None,
            reconnect_at: None,
            idle_since: None,
            busy: false,
            pause: settings.reconnect_min,
            stop_cause: disconnect_cause::REBOOTING,
            next_id: seed as u32,
            sent_ids: SentIds::default(),
            in_flight: false,
            failure: None,
            outputs: VecDeque::new(),
            settings,
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &PeerSettings {
        &self.settings
    }

    /// Changes the settings; timers that run are not touched.
    pub fn configure(&mut self, settings: PeerSettings) {
        self.wanted |= settings.initiate;
        self.pause = self.pause.clamp(settings.reconnect_min, settings.reconnect_max);
        self.watchdog.configure(settings.watchdog, settings.reopen);
        self.settings = settings;
    }

    /// Whether to connect with [`Input::Start`] to a peer to which no attempt was made since its DPR (RFC 6733 §5.4):
    /// `wanted`: a request for it is pending; `traffic`: requests flow at all, which does not wake a busy peer.
    #[must_use]
    pub fn wakes(&self, now: Instant, traffic: bool, wanted: impl FnOnce() -> bool) -> bool {
        let is_left = self.state == State::Closed && self.wanted;
        let Some(since) = self.idle_since.filter(|_| is_left) else {
            return false;
        };
        let rested = now.saturating_duration_since(since) >= self.settings.reconnect_max;
        (traffic && rested && !self.busy) || ((rested || !self.busy) && wanted())
    }

    /// The status of the watchdog.
    #[must_use]
    pub const fn health(&self) -> Health {
        self.watchdog.health()
    }

    /// The capabilities of the peer, while it is open (or about to be).
    #[must_use]
    pub const fn remote(&self) -> Option<&Arc<Capabilities>> {
        self.remote.as_ref()
    }

    /// The side that is open.
    #[must_use]
    pub const fn open_side(&self) -> Option<Side> {
        match self.state {
            State::IOpen => Some(Side::Initiator),
            State::ROpen => Some(Side::Responder),
            _ => None,
        }
    }

    /// The time of the next [`Input::Timer`].
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let reconnect = if self.state == State::Closed {
            self.reconnect_at
        } else {
            None
        };
        [self.due, self.watchdog.deadline(), reconnect]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes the next action.
    pub fn output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes the reason why the last attempt to connect has failed: the peer's CEA, or that none came.
    pub const fn take_failure(&mut self) -> Option<Fault> {
        self.failure.take()
    }

    /// A message of an application arrived, which proves that the peer is alive. Call it for every message while the
    /// health is not [`Health::Okay`], and at least once per read while it is.
    #[inline]
    pub fn traffic(&mut self, now: Instant) {
        if let Some(command) = self.watchdog.traffic(now) {
            self.watchdog_says(now, command);
        }
    }

    /// Whether the next connection of this side offers TLS in Inband-Security-Id: a node may have listeners of both
    /// kinds.
    pub const fn offer_tls(&mut self, side: Side, offers: bool) {
        self.inband[side as usize] = offers;
    }

    /// Requests to the peer are unanswered, or none are, as its DPR arrives. RFC 6733 §5.4: the DPA "SHOULD contain an
    /// error if messages have recently been forwarded, and are likely in flight".
    pub const fn set_in_flight(&mut self, in_flight: bool) {
        self.in_flight = in_flight;
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start => {
                self.idle_since = None;
                self.wanted = true;
                self.event(now, Event::Start, None);
            }
            Input::Connected { local } => {
                self.addresses[Side::Initiator as usize] = Some(local);
                self.event(now, Event::IRcvConnAck, None);
            }
            Input::ConnectFailed => {
                self.initiator = false;
                self.event(now, Event::IRcvConnNack, None);
            }
            Input::ConnectedBy {
                cer,
                remote,
                local,
                same_address,
            } => {
                self.connected_by(now, cer, remote, local, same_address);
            }
            Input::Received(side, message) => self.received(now, side, message),
            Input::Disconnected(Side::Initiator) => {
                self.initiator = false;
                self.event(now, Event::IPeerDisc, None);
            }
            Input::Disconnected(Side::Responder) => {
                self.responder = false;
                self.event(now, Event::RPeerDisc, None);
            }
            Input::Timer => self.timer(now),
            Input::Unanswered => {
                if let Some(command) = self.watchdog.unanswered(now) {
                    self.watchdog_says(now, command);
                }
            }
            Input::Stop(cause) => {
                self.stop_cause = cause;
                self.wanted = false;
                self.reconnect_at = None;
                self.event(now, Event::Stop, None);
            }
        }
    }

    fn timer(&mut self, now: Instant) {
        let over = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
        if over(self.due) {
            self.due = None;
            if self.state == State::WaitConnAckElect {
                // Our attempt has failed; the peer's connection is there (row I-Rcv-Conn-Nack).
                self.close(Side::Initiator);
                self.event(now, Event::IRcvConnNack, None);
            } else {
                self.event(now, Event::Timeout, None);
            }
        }
        if over(self.watchdog.deadline())
            && let Some(command) = self.watchdog.timer(now)
        {
            self.watchdog_says(now, command);
        }
        if self.state == State::Closed && over(self.reconnect_at) {
            (self.reconnect_at, self.idle_since) = (None, None);
            self.event(now, Event::Start, None);
        }
    }

    fn watchdog_says(&mut self, now: Instant, command: Command) {
        match command {
            Command::SendWatchdog => self.send_watchdog(),
            Command::Failover | Command::Failback => {
                self.outputs.push_back(Output::Health(self.watchdog.health()));
            }
            Command::CloseConnection => self.event(now, Event::Timeout, None),
        }
    }

    fn connected_by(
        &mut self,
        now: Instant,
        cer: MessageRef<'_>,
        remote: Capabilities,
        local: IpAddr,
        same_address: bool,
    ) {
        if let Err(fault) = self.acceptable(&remote) {
            let answer = self.capabilities_answer(cer, Side::Responder, Some(local), Err(&fault));
            self.outputs.push_back(Output::Reject(answer));
            return;
        }
        let replace = match self.settings.duplicate {
            Duplicate::Reject => false,
            Duplicate::ReplaceSameAddress => same_address && self.open_side() != Some(Side::Initiator),
            Duplicate::Replace => true,
        };
        if replace && (self.open_side().is_some() || self.state == State::Closing) {
            self.go_down(now, DownReason::Replaced);
            self.event(
                now,
                if self.initiator {
                    Event::IPeerDisc
                } else {
                    Event::RPeerDisc
                },
                None,
            );
            self.reconnect_at = None;
        }
        let accepts =
            row(self.state, Event::RConnCer).is_some_and(|row| row.actions.contains(&Action::RAccept));
        if accepts {
            self.addresses[Side::Responder as usize] = Some(local);
            self.remote = Some(Arc::new(remote));
        }
        self.event(now, Event::RConnCer, Some(cer));
    }

    /// Process-CER and Process-CEA: checks the identity of the peer and the common applications.
    fn acceptable(&self, remote: &Capabilities) -> Result<Vec<u32>, Fault> {
        if let Some(expected) = &self.settings.host
            && !expected.eq_ignore_ascii_case(&remote.origin.host)
        {
            return Err(Fault::new(
                ResultCode::UNKNOWN_PEER,
                format!("Origin-Host is {}, expected {expected}", remote.origin.host),
            ));
        }
        if remote.origin.host.eq_ignore_ascii_case(&self.local.origin.host) {
            return Err(Fault::new(
                ResultCode::UNKNOWN_PEER,
                "the peer gives our own name as its Origin-Host",
            ));
        }
        self.local.common(remote)
    }

    fn received(&mut self, now: Instant, side: Side, message: MessageRef<'_>) {
        // The commands of the base protocol are those of application 0 (RFC 6733 §3).
        let is_base = message.application() == known::application::COMMON;
        let code = if is_base { message.command() } else { 0 };
        let request = message.is_request();
        if !request && self.sent_ids.is_unknown(code, message.hop_by_hop()) {
            return;
        }
        let pick = |i: Event, r: Event| if side == Side::Initiator { i } else { r };
        let event = match (code, request) {
            (command::CAPABILITIES_EXCHANGE, false) if side == Side::Initiator => {
                return self.capabilities_came(now, message);
            }
            (command::CAPABILITIES_EXCHANGE, true) => return self.second_cer(now, side, message),
            _ if side == Side::Initiator && matches!(self.state, State::WaitICea | State::WaitReturns) => {
                Event::IRcvNonCea
            }
            (command::DEVICE_WATCHDOG, true) => pick(Event::IRcvDwr, Event::RRcvDwr),
            (command::DEVICE_WATCHDOG, false) => pick(Event::IRcvDwa, Event::RRcvDwa),
            (command::DISCONNECT_PEER, true) => pick(Event::IRcvDpr, Event::RRcvDpr),
            (command::DISCONNECT_PEER, false) => pick(Event::IRcvDpa, Event::RRcvDpa),
            _ => pick(Event::IRcvMessage, Event::RRcvMessage),
        };
        self.event(now, event, Some(message));
    }

    fn capabilities_came(&mut self, now: Instant, cea: MessageRef<'_>) {
        let outcome = Capabilities::read(&cea).and_then(|remote| {
            let code = ResultCode(cea.require(known::RESULT_CODE)?);
            if code.is_success() {
                self.acceptable(&remote).map(|common| (remote, common))
            } else {
                let why = cea.get(known::ERROR_MESSAGE).ok().flatten();
                let why = why.unwrap_or("the peer refuses the capabilities exchange");
                Err(Fault::new(
                    code,
                    format!("the peer's CEA: {}", why.escape_debug()),
                ))
            }
        });
        match outcome {
            Ok((remote, common)) => {
                if matches!(self.state, State::WaitICea | State::WaitReturns) {
                    (self.remote, self.common) = (Some(Arc::new(remote)), common);
                }
                self.event(now, Event::IRcvCea, Some(cea));
            }
            Err(fault) => {
                self.failure = Some(fault);
                self.event(now, Event::IRcvNonCea, Some(cea));
            }
        }
    }

    /// A CER on a connection that had its own: capabilities are not renegotiated (RFC 6737 is another
    /// application).
    fn second_cer(&mut self, now: Instant, side: Side, cer: MessageRef<'_>) {
        let fault = Fault::new(
            ResultCode::UNABLE_TO_COMPLY,
            "capabilities were exchanged already",
        );
        let answer = self.capabilities_answer(cer, side, self.addresses[side as usize], Err(&fault));
        self.outputs.push_back(Output::Send(side, answer));
        if side == Side::Initiator && matches!(self.state, State::WaitICea | State::WaitReturns) {
            self.event(now, Event::IRcvNonCea, None);
        }
    }

    fn event(&mut self, now: Instant, event: Event, message: Option<MessageRef<'_>>) {
        let Some(row) = row(self.state, event) else { return };
        let from = self.state;
        if matches!(from, State::WaitICea | State::WaitReturns) {
            let why = match event {
                Event::Timeout => Some("no CEA came in time"),
                Event::IPeerDisc => Some("the peer closed the connection before its CEA"),
                _ => None,
            };
            if let Some(why) = why {
                self.failure = Some(Fault::new(ResultCode::UNABLE_TO_COMPLY, why));
            }
        }
        let was_open = self.open_side().is_some();
        // The election's outcome is an event of its own, in the state that this row leads to.
        let mut won = false;
        for action in row.actions {
            self.act(now, *action, event, message, &mut won);
        }
        self.state = row.next;
        if was_open && self.open_side().is_none() {
            self.go_down(now, self.reason(event, message));
        }
        if self.state != from {
            self.entered(now, from);
        }
        if won {
            self.event(now, Event::WinElection, None);
        }
    }

    fn reason(&self, event: Event, message: Option<MessageRef<'_>>) -> DownReason {
        match event {
            Event::Stop => DownReason::WeSaid,
            Event::Timeout => DownReason::Silent,
            Event::IRcvDpr | Event::RRcvDpr => DownReason::PeerSaid(disconnect_cause_of(message)),
            _ => DownReason::Lost,
        }
    }

    fn go_down(&mut self, now: Instant, reason: DownReason) {
        if !std::mem::take(&mut self.up) {
            return;
        }
        self.watchdog.connection_down(reason == DownReason::Lost);
        self.outputs.push_back(Output::Down(reason));
        // RFC 6733 §5.4: a peer that is busy or does not want to talk gets no periodic attempts. The next attempt is
        // made when a request for it is pending; to a busy peer after the longest pause at the earliest, and at some
        // time in any case.
        self.busy = reason == DownReason::PeerSaid(disconnect_cause::BUSY);
        let unwilling = reason == DownReason::PeerSaid(disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU);
        let pause = match self.busy {
            true => self.settings.reconnect_max * BUSY_PAUSES,
            false => self.pause,
        };
        self.reconnect_at = (!unwilling && self.wanted).then(|| now + pause);
        let is_left = self.busy || unwilling;
        self.idle_since = (is_left && self.wanted).then_some(now);
    }

    /// Timers of the state just entered.
    fn entered(&mut self, now: Instant, from: State) {
        match self.state {
            State::Closed => {
                self.due = None;
                self.cer = None;
                self.remote = None;
                self.common.clear();
                (self.initiator, self.responder) = (false, false);
                if !matches!(from, State::IOpen | State::ROpen | State::Closing) {
                    self.try_again_later(now);
                }
            }
            State::WaitConnAck => {
                self.reconnect_at = None;
                self.due = Some(self.due.unwrap_or(now + self.settings.connect_timeout));
            }
            State::WaitConnAckElect => {
                let due = self.due.unwrap_or(now + self.settings.connect_timeout);
                self.due = Some(due.min(now + ELECTION_PATIENCE));
            }
            State::WaitICea | State::WaitReturns => {
                self.due = Some(now + self.settings.capabilities_timeout);
            }
            State::ROpen | State::IOpen => self.opened(now),
            State::Closing => self.due = Some(now + self.settings.disconnect_timeout),
        }
    }

    /// Back in Closed after a failed attempt: the pause doubles, and varies by a quarter so that many nodes do not
    /// reconnect at once.
    fn try_again_later(&mut self, now: Instant) {
        if !self.wanted {
            return;
        }
        self.next_id = self.next_id.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let quarter = self.pause.as_millis() as u64 / 4;
        let jitter = Duration::from_millis(u64::from(self.next_id) % (quarter + 1));
        self.reconnect_at = Some(now + self.pause + jitter);
        self.pause = (self.pause * 2).min(self.settings.reconnect_max);
    }

    fn opened(&mut self, now: Instant) {
        self.up = true;
        self.due = None;
        self.reconnect_at = None;
        self.pause = self.settings.reconnect_min;
        let (Some(side), Some(remote)) = (self.open_side(), self.remote.clone()) else {
            return;
        };
        let common = match side {
            Side::Initiator => std::mem::take(&mut self.common),
            Side::Responder => self.local.common(&remote).unwrap_or_default(),
        };
        let secure = self.inband[side as usize] && remote.inband_tls;
        self.outputs.push_back(Output::Up {
            side,
            remote,
            common,
            secure,
        });
        match self.watchdog.connection_up(now) {
            Command::SendWatchdog => {
                self.outputs.push_back(Output::Health(self.watchdog.health()));
                self.send_watchdog();
            }
            _ => self.outputs.push_back(Output::Health(self.watchdog.health())),
        }
    }

    fn act(
        &mut self,
        now: Instant,
        action: Action,
        event: Event,
        message: Option<MessageRef<'_>>,
        won: &mut bool,
    ) {
        match action {
            Action::ISndConnReq => {
                self.initiator = true;
                self.outputs.push_back(Output::Connect);
            }
            Action::Cleanup => self.initiator = false,
            Action::ISndCer => self.send_cer(),
            Action::RAccept => {
                self.responder = true;
                self.cer = message.and_then(|cer| Message::parse(cer.as_bytes().to_vec().into()).ok());
                self.outputs.push_back(Output::Accept);
            }
            Action::RReject => {
                if let Some(cer) = message {
                    let fault = Fault::new(ResultCode::UNABLE_TO_COMPLY, "this peer is connected already");
                    let local = self.addresses[Side::Responder as usize];
                    let answer = self.capabilities_answer(cer, Side::Responder, local, Err(&fault));
                    self.outputs.push_back(Output::Reject(answer));
                }
                if let Some(command) = self.watchdog.probe(now) {
                    self.watchdog_says(now, command);
                }
            }
            Action::RSndCea => self.send_cea(),
            Action::Elect => *won = self.wins(),
            Action::Error => {
                self.close(Side::Initiator);
                self.close(Side::Responder);
            }
            Action::IDisc => self.close(Side::Initiator),
            Action::RDisc => self.close(Side::Responder),
            Action::ProcessDwr => self.traffic(now),
            Action::ProcessDwa => {
                if let Some(command) = self.watchdog.answer(now) {
                    self.watchdog_says(now, command);
                }
            }
            Action::ISndDwa | Action::RSndDwa | Action::ISndDpa | Action::RSndDpa => {
                if let Some(request) = message {
                    let side = match event {
                        Event::IRcvDwr | Event::IRcvDpr => Side::Initiator,
                        _ => Side::Responder,
                    };
                    self.answer(side, request);
                }
            }
            Action::ISndDpr => self.send_dpr(Side::Initiator),
            Action::RSndDpr => self.send_dpr(Side::Responder),
            // Checked before the event was raised: a CER or CEA that is not acceptable raises another.
            Action::ProcessCer | Action::ProcessCea => {}
            // Messages of applications go between the driver and the application.
            Action::Process | Action::ISndMessage | Action::RSndMessage => {}
        }
    }

    /// §5.6.4: this node keeps the peer's connection if its own name succeeds the peer's.
    fn wins(&self) -> bool {
        let ours = self.local.origin.host.to_ascii_lowercase();
        self.remote
            .as_ref()
            .is_some_and(|remote| ours > remote.origin.host.to_ascii_lowercase())
    }

    fn close(&mut self, side: Side) {
        let there = match side {
            Side::Initiator => std::mem::take(&mut self.initiator),
            Side::Responder => std::mem::take(&mut self.responder),
        };
        if there {
            self.outputs.push_back(Output::Close(side));
        }
        if side == Side::Responder {
            self.cer = None;
        }
    }
}

/// Disconnect-Cause of a DPR; a DPR without one counts as REBOOTING.
fn disconnect_cause_of(dpr: Option<MessageRef<'_>>) -> i32 {
    dpr.and_then(|dpr| dpr.get(known::DISCONNECT_CAUSE).ok().flatten())
        .unwrap_or(disconnect_cause::REBOOTING)
}
