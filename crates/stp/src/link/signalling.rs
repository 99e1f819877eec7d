//! What an association carries where it is a link of M2PA: alignment, tests, MSUs, and what it leaves when it fails.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use ss7_proto::m2pa::{Failure, Link, LinkEvent, LinkState};
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::{LinkTest, LinkTestOutcome, Management, TestMessage, link_code, test_indicator};
use tokio::sync::mpsc::Receiver;

use super::Desk;
use super::inbound::Inbound;
use crate::control::{Frame, Mailbox, Remains};
use crate::metrics::count;
use crate::path::{is_management, own_frame, read_msu};
use crate::state::State;

/// MSUs that a peer may leave unacknowledged: nothing more is sent until it has acknowledged some.
const WINDOW: usize = 8_192;
/// How often a link that may not be aligned yet asks again: its changeover is in progress.
const RETRY: std::time::Duration = std::time::Duration::from_millis(50);

/// A link and its test.
pub(super) struct SignallingLink {
    desk: Rc<Desk>,
    /// Its number, that of its hop, and its link code.
    number: usize,
    hop: usize,
    code: u8,
    link: Link<Frame>,
    test: LinkTest,
    /// When the alignment is tried; none once it has begun.
    align: Option<Instant>,
    /// Why the association has to end.
    failure: Option<String>,
    /// MSUs that could not be sent any more.
    unsent: Vec<Frame>,
}

impl SignallingLink {
    /// The link of an association, if it is one of M2PA.
    pub(super) fn new(desk: &Rc<Desk>, number: usize) -> Option<Self> {
        let config = desk.live.load().config.clone();
        let state = desk.control.state.load();
        let hop = state.tables.set_of(number)?;
        let links = &state.tables.hops.get(hop)?.links;
        let code = links.iter().position(|link| *link == number)?;
        Some(Self {
            desk: desk.clone(),
            number,
            hop,
            code: code as u8,
            link: Link::new(config.m2pa.timers()),
            test: LinkTest::new(config.mtp.test_timers()),
            align: Some(Instant::now()),
            failure: None,
            unsent: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        self.desk.control.stage(self.number, "which is out of service");
        self.link.associated(out);
    }

    /// Whether MSUs of the mailbox are taken.
    pub(super) fn takes(&self) -> bool {
        self.link.takes() && self.link.unacknowledged() < WINDOW
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn wake(&self) -> Option<Instant> {
        let test = self.test.wake().filter(|_| self.link.takes());
        let all = [self.align, self.link.wake(), test];
        all.into_iter().flatten().min()
    }

    /// Why the association has to end.
    pub(super) fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    pub(super) fn tick(&mut self, out: &mut Vec<u8>) {
        let now = Instant::now();
        if self.align.is_some_and(|at| at <= now) {
            let emergency = self.desk.control.may_align(self.number);
            self.align = match emergency {
                None => Some(now + RETRY),
                Some(emergency) => {
                    // A reload may have changed the timers since the last attempt.
                    self.link = Link::new(self.desk.live.load().config.m2pa.timers());
                    self.link.start(emergency, now, out);
                    self.desk.control.stage(self.number, "which is aligned");
                    None
                }
            };
        }
        let event = self.link.tick(now, out);
        self.follow(event, out);
        // A test that is due while the peer is busy comes after it, for T6 at most: it could not be sent.
        if !self.link.takes() {
            return;
        }
        match self.test.tick(now) {
            Some(Ok(pattern)) => self.begin_test(&pattern, out),
            Some(Err(_)) => self.failure = Some("the peer has not acknowledged link tests (SLTM)".to_owned()),
            None => {}
        }
    }

    pub(super) fn send(&mut self, frame: Frame, out: &mut Vec<u8>) {
        // Link tests are repeated: one that the peer is too busy for is not kept.
        if let Err(frame) = self.link.send(frame, Instant::now(), out)
            && frame.is_data
        {
            self.unsent.push(frame);
        }
    }

    /// Handles a message of the peer.
    pub(super) fn handle(&mut self, octets: &[u8], inbound: &mut Inbound, out: &mut Vec<u8>) {
        inbound.count_octets(octets.len());
        let now = Instant::now();
        let received = self.link.received(octets, now, out);
        self.follow(received.event, out);
        let Some(msu) = received.msu else {
            return;
        };
        let desk = self.desk.clone();
        desk.with_state(|state| self.msu(state, msu, inbound, out));
    }

    /// After each batch of messages.
    pub(super) fn acknowledge(&mut self, out: &mut Vec<u8>) {
        if self.link.state() == LinkState::InService {
            self.link.acknowledge(out);
        }
    }

    fn msu(&mut self, state: &State, msu: &[u8], inbound: &mut Inbound, out: &mut Vec<u8>) {
        let plan = state.tables.points.plan;
        let Some(data) = read_msu(msu, plan) else {
            inbound.count_unreadable(state);
            return;
        };
        let adjacent = state.tables.hops.get(self.hop).and_then(|hop| hop.adjacent);
        let points = &state.tables.points;
        let is_mine =
            data.dpc == points.own && data.ni == points.network_indicator && Some(data.opc) == adjacent;
        let code = link_code(data.sls, data.user_data, plan);
        match data.si {
            ServiceIndicator::SNM if is_mine => {
                // Messages about links are between the two nodes; what is said of destinations is screened.
                let heading = data.user_data.first();
                let is_screened = heading.is_some_and(|one| Management::names_destination(*one));
                if is_screened && !inbound.admits(state, self.hop, &data) {
                    return;
                }
                inbound.is_slow = true;
                match Management::read(data.user_data, plan) {
                    Some(Management::TransferControlled { destination, level }) => {
                        self.desk.control.controlled(state, destination, level);
                    }
                    // UPU concerns messages that this node has sent, none of which it holds back.
                    Some(Management::UserPartUnavailable { .. } | Management::CongestionTest) | None => {}
                    Some(message) => {
                        self.desk.control.network_management(self.number, code, message);
                    }
                }
            }
            ServiceIndicator::SNM => inbound.msu(state, self.hop, &data, out),
            si if !is_management(si, plan) => inbound.msu(state, self.hop, &data, out),
            // Some nodes of ANSI (Yate, libss7) leave the code in the message at 0, and name the link in the label.
            si if is_mine && (code == self.code || code == 0 && data.sls == self.code) => {
                self.tested(si, data.user_data, out);
            }
            // The link is connected to a wrong node, or is another one of the set (Q.707 §2.2): behind this node the test would be
            // taken for that of another link.
            _ => {
                count(&state.meters.link_tests, self.number);
                tracing::debug!(
                    link = self.number,
                    opc = data.opc.0,
                    dpc = data.dpc.0,
                    ni = data.ni,
                    code,
                    "link test for another node, network or link"
                );
            }
        }
    }

    fn tested(&mut self, si: ServiceIndicator, user_data: &[u8], out: &mut Vec<u8>) {
        let Some(message) = TestMessage::read(user_data) else {
            return;
        };
        if !message.acknowledges {
            self.send_test(si, true, message.pattern, out);
            return;
        }
        if self.test.acknowledged(message.pattern, Instant::now()) == Some(LinkTestOutcome::Passed) {
            self.desk.control.restored(self.number);
        }
    }

    fn begin_test(&mut self, pattern: &[u8], out: &mut Vec<u8>) {
        let si = test_indicator(self.desk.control.state.load().tables.points.plan);
        self.send_test(si, false, pattern, out);
    }

    fn send_test(&mut self, si: ServiceIndicator, acknowledges: bool, pattern: &[u8], out: &mut Vec<u8>) {
        let state = self.desk.control.state.load();
        let mut user_data = Vec::new();
        TestMessage {
            acknowledges,
            pattern,
        }
        .write(state.tables.points.plan, self.code, &mut user_data);
        if let Some(octets) = own_frame(&state.tables, self.hop, self.code, si, &user_data) {
            drop(state);
            self.send(Frame::management(octets), out);
        }
    }

    fn follow(&mut self, event: Option<LinkEvent>, out: &mut Vec<u8>) {
        let now = Instant::now();
        match event {
            Some(LinkEvent::InService) => {
                self.desk.control.in_service(self.number);
                let pattern = self.test.start(now);
                self.begin_test(&pattern, out);
            }
            // The peer may not have been started yet: the association stays (RFC 4165 §4.1.3).
            Some(LinkEvent::Failed(Failure::NotAligned | Failure::NotProved | Failure::NotReady)) => {
                self.desk
                    .control
                    .stage(self.number, "which does not align the link");
                self.align = Some(now);
            }
            Some(LinkEvent::Failed(failure)) => self.failure = Some(failure.to_string()),
            // Traffic takes the other links; the outage ends with another alignment.
            Some(LinkEvent::RemoteOutage) => {
                self.failure = Some("the peer has a processor outage".to_owned());
            }
            Some(LinkEvent::RemoteRecovered) | None => {}
        }
    }

    /// The end of the association: nothing is taken from the peer or put into the mailbox any more.
    pub(super) fn end(mut self, mailbox: &Mailbox, receiver: &mut Receiver<Frame>) {
        mailbox.close();
        let retrieval = self.link.retrieve();
        self.unsent.append(&mut mailbox.take_diverted());
        self.unsent
            .extend(std::iter::from_fn(|| receiver.try_recv().ok()));
        let remains = Remains {
            accepted: retrieval.accepted,
            sent: VecDeque::from_iter(retrieval.unacknowledged),
            unsent: self.unsent,
        };
        self.desk.control.failed(self.number, remains);
    }
}
