//! What a link does with each message that it receives.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache};
use function::live::Live;
use ss7_proto::PointCode;
use ss7_proto::m3ua::{Builder, Class, Data, ErrorCode, Fault, Message, MessageType, Tag};
use tokio::sync::mpsc::Receiver;

use super::End;
use crate::cause::Cause;
use crate::config::{Action, Config};
use crate::control::{Control, Frame, beat, notice, registration};
use crate::metrics::count;
use crate::path::{Decision, Ingress, Notice, Trace, Work, decide, screen};
use crate::state::{Admitted, State};
use crate::tables::Tables;

/// A sender gets one notice of a kind about a point code in this time (Q.704 §13.2.3: T8).
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);
/// Notices that are remembered for it.
const NOTICES: usize = 32;

/// What the links of a worker share.
pub(crate) struct Desk {
    pub(crate) control: Arc<Control>,
    pub(crate) live: Arc<Live<Config, Arc<Tables>>>,
    state: RefCell<Cache<Arc<ArcSwap<State>>, Arc<State>>>,
    work: RefCell<Work>,
}

impl Desk {
    pub(crate) fn new(control: Arc<Control>, live: Arc<Live<Config, Arc<Tables>>>) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(Cache::new(control.state.clone())),
            work: RefCell::default(),
            control,
            live,
        })
    }

    /// Calls `act` with the state.
    pub(super) fn with_state<T>(&self, act: impl FnOnce(&State) -> T) -> T {
        // Without a reference of its own: their count would be one cache line for all workers.
        act(self.state.borrow_mut().load())
    }

    pub(super) fn link_name(&self, link: usize) -> String {
        let state = self.control.state.load();
        state
            .tables
            .links
            .get(link)
            .map_or_else(String::new, |link| link.name.clone())
    }

    /// Counts MSUs that an ended association has not written.
    pub(super) fn count_lost(&self, messages: usize) {
        let state = self.control.state.load();
        (0..messages).for_each(|_| state.meters.dropped(Cause::Association));
    }

    /// Drops what is queued for an association that has ended.
    pub(super) fn drop_queued(&self, receiver: &mut Receiver<Frame>) {
        let frames = std::iter::from_fn(|| receiver.try_recv().ok());
        self.count_lost(frames.filter(|frame| frame.is_data).count());
    }

    pub(super) fn count_end(&self, end: &End) {
        let state = self.control.state.load();
        let connections = &state.meters.connections;
        match end {
            End::Broken(_) => connections.broken.inc(),
            End::Silent => connections.silent.inc(),
            End::Replaced => connections.replaced.inc(),
            End::Closed | End::Ordered | End::OutOfService(_) | End::Stopped | End::Failed(_) => {}
        }
    }
}

/// The receiving side of a link.
pub(super) struct Inbound {
    desk: Rc<Desk>,
    link: usize,
    /// The stream of SCTP by which messages come; none over TCP.
    pub(super) stream: Option<u16>,
    /// Whether a message was one for the control side, which takes its time.
    pub(super) is_slow: bool,
    /// What the peer was notified of lately.
    notices: VecDeque<(Notice, Addressee, Instant)>,
}

impl Inbound {
    pub(super) fn new(desk: Rc<Desk>, link: usize) -> Self {
        Self {
            desk,
            link,
            stream: None,
            is_slow: false,
            notices: VecDeque::new(),
        }
    }

    pub(super) fn heartbeat(&self) -> Duration {
        self.desk.live.load().config.heartbeat.duration()
    }

    pub(super) fn write_beat(&self, out: &mut Vec<u8>) {
        let mut builder = Builder::new(MessageType::Beat, out);
        builder.parameter(Tag::HEARTBEAT_DATA, b"signalbox");
        builder.finish();
    }

    pub(super) fn count_written(&self, octets: usize, messages: u64) {
        let state = self.desk.control.state.load();
        if let Some(counter) = state.meters.sent.get(self.link) {
            counter.add(messages);
        }
        if let Some(counter) = state.meters.sent_bytes.get(self.link) {
            counter.add(octets as u64);
        }
    }

    /// Handles a message; `out` gets what answers it on the same link.
    pub(super) fn handle(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        let desk = self.desk.clone();
        desk.with_state(|state| self.handle_in(state, octets, out));
    }

    pub(super) fn count_octets(&self, octets: usize) {
        self.desk.with_state(|state| {
            if let Some(counter) = state.meters.received_bytes.get(self.link) {
                counter.add(octets as u64);
            }
        });
    }

    /// Counts an MSU that ends within its label.
    pub(super) fn count_unreadable(&self, state: &State) {
        count(&state.meters.received, self.link);
        state.meters.dropped(Cause::Syntax);
    }

    /// Handles an MSU of a link of M2PA.
    pub(super) fn msu(&mut self, state: &State, hop: usize, data: &Data<'_>, out: &mut Vec<u8>) {
        count(&state.meters.received, self.link);
        self.transfer(state, hop, data, out);
    }

    /// Screens a message of network management for this node.
    pub(super) fn admits(&self, state: &State, hop: usize, data: &Data<'_>) -> bool {
        let ingress = Ingress {
            state,
            hop: Some(hop),
            segments: None,
            transactions: None,
        };
        let (action, rules) = screen(&ingress, data, &mut Trace::default());
        state.meters.screened(&rules);
        if action != Action::Allow {
            state.meters.dropped(Cause::Screened);
        }
        action == Action::Allow
    }

    /// Handles an MSU of a link of IPA, whose peer has no way to learn of a refusal.
    pub(super) fn unlabelled(&mut self, state: &State, data: &Data<'_>, out: &mut Vec<u8>) {
        count(&state.meters.received, self.link);
        match admitted(state, self.link, data) {
            Ok(hop) => self.transfer(state, hop, data, out),
            Err(fault) => state.meters.refused(fault.code),
        }
    }

    fn handle_in(&mut self, state: &State, octets: &[u8], out: &mut Vec<u8>) {
        if let Some(counter) = state.meters.received_bytes.get(self.link) {
            counter.add(octets.len() as u64);
        }
        let handled = Message::parse(octets).and_then(|message| match message.message_type().class() {
            Class::Transfer => self.data(state, &message, out).map(|()| Vec::new()),
            Class::Ssnm => {
                self.is_slow = true;
                Ok(self.desk.control.ssnm(self.link, &message))
            }
            // Routing keys are those of an ASP that is up (RFC 4666 §4.3.1).
            Class::Rkm if state.tables.grants(self.link) && state.up.get(self.link) != Some(&true) => {
                Err(Fault::new(ErrorCode::UnexpectedMessage, "the ASP is down"))
            }
            Class::Rkm if registration(state, self.link, &message, out) => Ok(Vec::new()),
            Class::Rkm => Err(Fault::new(ErrorCode::UnexpectedMessage, "nothing was requested")),
            Class::Aspsm | Class::Asptm | Class::Mgmt => {
                self.management(&message, out);
                Ok(Vec::new())
            }
        });
        for fault in handled.unwrap_or_else(|fault| vec![fault]) {
            state.meters.refused(fault.code);
            tracing::debug!(link = self.link, %fault, "message refused");
            fault.write_error(octets, out);
        }
    }

    fn management(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        match message.message_type() {
            MessageType::Beat => beat(message, out),
            // It has shown that the peer lives.
            MessageType::BeatAck => {}
            // Over TCP every message is on the stream for management.
            _ => {
                self.is_slow = true;
                self.desk.control.received(self.link, 0, message);
            }
        }
    }

    fn data(&mut self, state: &State, message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        count(&state.meters.received, self.link);
        let Some(data) = message.data() else {
            return Err(Fault::new(ErrorCode::ProtocolError, "DATA without an MSU"));
        };
        // It MUST NOT be there (RFC 4666 §1.4.7): management waits behind it, and it loses nothing.
        if self.stream == Some(0) {
            count(&state.meters.misplaced, self.link);
            if self.desk.live.load().config.strict_streams {
                let code = ErrorCode::InvalidStreamIdentifier;
                return Err(Fault::new(code, "DATA on stream 0"));
            }
        }
        // DATA has one routing context (RFC 4666 §3.3.1).
        if message.routing_contexts().nth(1).is_some() {
            let reason = "DATA with several routing contexts";
            return Err(Fault::new(ErrorCode::ParameterFieldError, reason));
        }
        let hop = admitted(state, self.link, &data)?;
        self.transfer(state, hop, &data, out);
        Ok(())
    }

    fn transfer(&mut self, state: &State, hop: usize, data: &Data<'_>, out: &mut Vec<u8>) {
        count(&state.meters.ingress, hop);
        let ingress = Ingress {
            state,
            hop: Some(hop),
            segments: self.desk.control.segments.get(hop),
            transactions: Some(&self.desk.control.transactions),
        };
        let decision = decide(
            &ingress,
            data,
            &mut self.desk.work.borrow_mut(),
            &mut Trace::default(),
        );
        self.carry_out(state, hop, data, decision, out);
    }

    fn carry_out(
        &mut self,
        state: &State,
        hop: usize,
        data: &Data<'_>,
        decision: Decision,
        out: &mut Vec<u8>,
    ) {
        let meters = &state.meters;
        meters.screened(&decision.rules);
        if let Some(set) = decision.set {
            count(&meters.translated, set);
        }
        if let Some(outcome) = decision.number {
            count(&meters.numbers, outcome as usize);
        }
        if let Some((service, outcome)) = decision.call {
            meters.call(service, outcome);
        }
        if let Some(found) = decision.equipment {
            count(&meters.equipment, found as usize);
        }
        if let Some(outcome) = decision.segmented {
            count(&meters.segmented, outcome as usize);
        }
        if let Some(outcome) = decision.shared {
            count(&meters.shared, outcome as usize);
        }
        if let Some(cause) = decision.cause {
            meters.dropped(cause);
        }
        if let Some((from, management)) = decision.management {
            self.is_slow = true;
            self.desk.control.subsystem(from, management);
        }
        if let Some((destination, level)) = decision.controlled {
            self.is_slow = true;
            self.desk.control.controlled(state, destination, level);
        }
        if let Some(notice) = decision.notice {
            self.notify(state, hop, data.opc, notice, out);
        }
        if let Some((server, notice)) = decision.advice
            && self.is_new(notice, Addressee::Server(server))
        {
            self.desk.control.advise(state, server, notice);
        }
        let Some(send) = decision.send else {
            return;
        };
        if decision.cause.is_some() {
            meters.returned.inc();
        }
        count(&meters.egress, send.hop);
        let frame = Frame::data(send.octets, send.sls);
        let level = self.desk.control.deliver(state, send.hop, &send.target, frame);
        if level > 0 {
            self.notify(state, hop, data.opc, Notice::Congested(data.dpc, level), out);
        }
    }

    /// Notifies the peer, unless it was notified of the same a moment ago.
    fn notify(&mut self, state: &State, hop: usize, origin: PointCode, what: Notice, out: &mut Vec<u8>) {
        let is_set = state.tables.set_of(self.link).is_some();
        let to = if is_set {
            Addressee::Node(origin)
        } else {
            Addressee::Peer
        };
        if !self.is_new(what, to) {
            return;
        }
        if is_set {
            self.desk.control.inform(state, hop, origin, what);
        } else if state.tables.grants(self.link) || matches!(what, Notice::Congested(..)) {
            // Only a gateway has these messages (RFC 4666 §3.4), and SCON goes either way.
            notice(state, hop, what, out);
        }
    }

    /// Whether a notice was not sent a moment ago.
    fn is_new(&mut self, what: Notice, to: Addressee) -> bool {
        let now = Instant::now();
        self.notices
            .retain(|(_, _, at)| now.duration_since(*at) < NOTICE_INTERVAL);
        let is_known = |one: &(Notice, Addressee, Instant)| (one.0, one.1) == (what, to);
        if self.notices.len() >= NOTICES || self.notices.iter().any(is_known) {
            return false;
        }
        self.notices.push_back((what, to, now));
        true
    }
}

/// Who gets a notice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addressee {
    /// The peer of the link.
    Peer,
    /// The origin of a message that came by a link of M2PA.
    Node(PointCode),
    /// The ASPs of an application server.
    Server(usize),
}

/// The hop of DATA, or why they are refused (RFC 4666 §3.8.1).
fn admitted(state: &State, link: usize, data: &Data<'_>) -> Result<usize, Fault> {
    state.network(data.network_appearance)?;
    match state.admit(link, data.routing_context) {
        Admitted::Hop(hop) => Ok(hop),
        Admitted::Inactive => Err(Fault::new(ErrorCode::UnexpectedMessage, "the peer is not active")),
        Admitted::Foreign => Err(Fault::about(
            ErrorCode::InvalidRoutingContext,
            data.routing_context.into_iter().collect(),
            "the link has no such routing context",
        )),
        Admitted::Ambiguous => Err(Fault::new(
            ErrorCode::MissingParameter,
            "the peer is active for several routing contexts and names none",
        )),
    }
}
