//! A link: alignment, proving, transfer, outages, congestion (RFC 4165 §4.1, Q.703 §7 to §10).

use std::time::Instant;

use super::buffer::{Buffer, next};
use super::event::{Failure, LinkEvent, Received, Retrieval};
use super::{Content, LinkStatus, Message, Timers};

/// *Proving* messages of one proving period: they show that the association carries messages.
const PROVING_MESSAGES: u32 = 8;

/// State of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// Neither aligned nor to be aligned.
    OutOfService,
    /// This side has sent *Alignment*, the peer has not.
    NotAligned,
    /// Both sides have sent *Alignment*.
    Aligned,
    /// Both sides prove the link.
    Proving,
    /// This side has sent *Ready*, the peer has not.
    Ready,
    /// MSUs are carried, unless a side has a processor outage.
    InService,
}

/// A link of MTP over an association that keeps the order of user data. Messages `M` are octets that begin with room for the
/// header.
#[derive(Debug)]
pub struct Link<M> {
    timers: Timers,
    state: LinkState,
    buffer: Buffer<M>,
    /// Whether this side proves the link for the short period only.
    emergency: bool,
    /// Whether the peer does.
    remote_emergency: bool,
    /// Whether the peer has sent *Ready* while this side still proves.
    remote_ready: bool,
    local_outage: bool,
    remote_outage: bool,
    /// This side has recovered; MSUs that the peer has sent before its *Ready* were not accepted.
    resynchronizing: bool,
    busy: bool,
    remote_busy: bool,
    /// Whether the peer has yet to be sent an acknowledgement.
    owes: bool,
    /// T1 to T4, of which one runs at a time.
    alignment: Option<Instant>,
    proving: Option<Instant>,
    t5: Option<Instant>,
    t6: Option<Instant>,
    t7: Option<Instant>,
}

impl<M: AsRef<[u8]> + AsMut<[u8]>> Link<M> {
    /// Out of service.
    #[must_use]
    pub const fn new(timers: Timers) -> Self {
        Self {
            timers,
            state: LinkState::OutOfService,
            buffer: Buffer::new(),
            emergency: false,
            remote_emergency: false,
            remote_ready: false,
            local_outage: false,
            remote_outage: false,
            resynchronizing: false,
            busy: false,
            remote_busy: false,
            owes: false,
            alignment: None,
            proving: None,
            t5: None,
            t6: None,
            t7: None,
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> LinkState {
        self.state
    }

    /// MSUs that the peer has not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.buffer.len()
    }

    /// Whether [`Self::send`] sends.
    #[must_use]
    pub fn takes(&self) -> bool {
        let open = !self.local_outage && !self.remote_outage && !self.remote_busy;
        self.state == LinkState::InService && open
    }

    /// When [`Self::tick`] has something to do.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        let all = [self.alignment, self.proving, self.t5, self.t6, self.t7];
        all.into_iter().flatten().min()
    }

    /// The association is up: *Out of Service* is sent (RFC 4165 §2.3.2).
    pub fn associated(&mut self, out: &mut Vec<u8>) {
        self.status(LinkStatus::OutOfService, out);
    }

    /// Begins the alignment, with the short proving period in an emergency. What is not acknowledged from before is dropped:
    /// retrieve it first.
    pub fn start(&mut self, emergency: bool, now: Instant, out: &mut Vec<u8>) {
        self.reset();
        self.buffer = Buffer::new();
        self.emergency = emergency;
        self.state = LinkState::NotAligned;
        self.alignment = Some(now + self.timers.not_aligned);
        self.status(LinkStatus::Alignment, out);
    }

    /// Takes the link out of service.
    pub fn stop(&mut self, out: &mut Vec<u8>) {
        if self.state != LinkState::OutOfService {
            self.reset();
            self.status(LinkStatus::OutOfService, out);
        }
    }

    /// Takes what the peer has not acknowledged.
    pub fn retrieve(&mut self) -> Retrieval<M> {
        Retrieval {
            accepted: self.buffer.accepted,
            unacknowledged: self.buffer.take(),
        }
    }

    /// Sends a message of user data: gives it its numbers, appends it to `out` and keeps it until it is acknowledged.
    ///
    /// # Errors
    /// The message, when the link takes none.
    pub fn send(&mut self, mut message: M, now: Instant, out: &mut Vec<u8>) -> Result<(), M> {
        if !self.takes() {
            return Err(message);
        }
        let fsn = next(self.buffer.sent);
        set_number(message.as_mut(), FSN, fsn);
        set_number(message.as_mut(), BSN, self.buffer.accepted);
        out.extend_from_slice(message.as_ref());
        self.buffer.sent = fsn;
        self.owes = false;
        self.buffer.push(message);
        if self.t7.is_none() {
            self.t7 = Some(now + self.timers.acknowledgement);
        }
        Ok(())
    }

    /// Acknowledges what was accepted, if no MSU has done so: after each batch of received messages.
    pub fn acknowledge(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.owes) {
            self.write(Content::Acknowledgement, out);
        }
    }

    /// A condition above this link keeps it from taking MSUs, or no longer (RFC 4165 §4.1.4). MSUs that come meanwhile are not
    /// accepted: the peer sends them again after its recovery.
    pub fn outage(&mut self, outage: bool, out: &mut Vec<u8>) {
        if self.local_outage == outage {
            return;
        }
        self.local_outage = outage;
        if self.state == LinkState::InService {
            self.resynchronizing = !outage;
            self.status(outage_status(outage), out);
        }
    }

    /// This side cannot take MSUs as fast as they come, or can again (RFC 4165 §4.1.5).
    pub fn busy(&mut self, busy: bool, now: Instant, out: &mut Vec<u8>) {
        if self.busy == busy || self.state != LinkState::InService {
            return;
        }
        self.busy = busy;
        self.t5 = busy.then(|| now + self.timers.busy);
        let status = if busy {
            LinkStatus::Busy
        } else {
            LinkStatus::BusyEnded
        };
        self.status(status, out);
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<LinkEvent> {
        let due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        if due(self.alignment) {
            match self.state {
                LinkState::NotAligned => return Some(self.fail(Failure::NotAligned, out)),
                LinkState::Aligned => return Some(self.fail(Failure::NotProved, out)),
                LinkState::Ready => return Some(self.fail(Failure::NotReady, out)),
                LinkState::Proving => return self.proved(now, out),
                LinkState::OutOfService | LinkState::InService => self.alignment = None,
            }
        }
        if due(self.proving) {
            self.prove(now, out);
        }
        if due(self.t5) {
            self.t5 = Some(now + self.timers.busy);
            self.status(LinkStatus::Busy, out);
        }
        if due(self.t6) {
            return Some(self.fail(Failure::Busy, out));
        }
        if due(self.t7) {
            return Some(self.fail(Failure::Unacknowledged, out));
        }
        None
    }

    /// Handles a message.
    pub fn received<'a>(&mut self, octets: &'a [u8], now: Instant, out: &mut Vec<u8>) -> Received<'a> {
        let message = match Message::parse(octets) {
            Ok(message) => message,
            Err(fault) => return self.fail(fault.into(), out).into(),
        };
        match message.content {
            Content::LinkStatus(status) => self.link_status(status, message.bsn, now, out).into(),
            Content::Acknowledgement => self.data(&message, None, now, out),
            Content::UserData { msu, .. } => self.data(&message, Some(msu), now, out),
        }
    }

    fn data<'a>(
        &mut self,
        message: &Message<'_>,
        msu: Option<&'a [u8]>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Received<'a> {
        let mut received = Received::default();
        match self.state {
            LinkState::InService => {}
            // It has received this side's Ready, and its own may be on its way in the other stream.
            LinkState::Ready => received.event = Some(self.enter()),
            // What an earlier use of the association has left.
            _ => return received,
        }
        let progress = self.buffer.len();
        if !self.buffer.acknowledge(message.bsn) {
            return self.fail(Failure::Backward(message.bsn), out).into();
        }
        if self.buffer.is_empty() || self.remote_busy {
            self.t7 = None;
        } else if self.buffer.len() < progress {
            self.t7 = Some(now + self.timers.acknowledgement);
        }
        let Some(msu) = msu.filter(|_| !self.local_outage && !self.resynchronizing) else {
            return received;
        };
        if !self.buffer.accept(message.fsn) {
            return self.fail(Failure::Forward(message.fsn), out).into();
        }
        self.owes = true;
        received.msu = Some(msu);
        received
    }

    fn link_status(
        &mut self,
        status: LinkStatus,
        bsn: u32,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<LinkEvent> {
        match (self.state, status) {
            (LinkState::OutOfService, _) => None,
            (LinkState::InService, _) => self.in_service(status, bsn, now, out),
            // The peer begins later than this side.
            (LinkState::NotAligned, LinkStatus::OutOfService) => None,
            (_, LinkStatus::OutOfService) => Some(self.fail(Failure::Status(status), out)),
            (LinkState::NotAligned | LinkState::Proving, LinkStatus::Alignment) => {
                self.aligned(now, out);
                None
            }
            (LinkState::Aligned, LinkStatus::Alignment) => None,
            // It has begun again, and missed this side's Ready.
            (LinkState::Ready, LinkStatus::Alignment) => Some(self.fail(Failure::Status(status), out)),
            (
                LinkState::NotAligned | LinkState::Aligned | LinkState::Proving,
                LinkStatus::ProvingNormal | LinkStatus::ProvingEmergency,
            ) => {
                self.remote_proves(status == LinkStatus::ProvingEmergency, now, out);
                None
            }
            (LinkState::Proving, LinkStatus::Ready | LinkStatus::ProcessorOutage) => {
                self.remote_ready = true;
                self.remote_outage = status == LinkStatus::ProcessorOutage;
                None
            }
            (LinkState::Ready, LinkStatus::Ready) => Some(self.enter()),
            (LinkState::Ready, LinkStatus::ProcessorOutage) => {
                self.enter();
                self.remote_outage = true;
                Some(LinkEvent::RemoteOutage)
            }
            _ => None,
        }
    }

    fn in_service(
        &mut self,
        status: LinkStatus,
        bsn: u32,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<LinkEvent> {
        match status {
            LinkStatus::Alignment
            | LinkStatus::ProvingNormal
            | LinkStatus::ProvingEmergency
            | LinkStatus::OutOfService => Some(self.fail(Failure::Status(status), out)),
            LinkStatus::Ready => {
                // It acknowledges the recovery of this side; its MSUs come behind it.
                self.resynchronizing = false;
                None
            }
            LinkStatus::ProcessorOutage => {
                let is_new = !std::mem::replace(&mut self.remote_outage, true);
                self.t7 = None;
                is_new.then_some(LinkEvent::RemoteOutage)
            }
            LinkStatus::ProcessorRecovered => {
                if !std::mem::take(&mut self.remote_outage) {
                    return None;
                }
                if !self.buffer.acknowledge(bsn) {
                    return Some(self.fail(Failure::Backward(bsn), out));
                }
                self.status(LinkStatus::Ready, out);
                self.repeat(now, out);
                Some(LinkEvent::RemoteRecovered)
            }
            LinkStatus::Busy => {
                if !std::mem::replace(&mut self.remote_busy, true) {
                    self.t6 = Some(now + self.timers.remote_busy);
                }
                self.t7 = None;
                None
            }
            LinkStatus::BusyEnded => {
                self.remote_busy = false;
                self.t6 = None;
                let pending = !self.buffer.is_empty();
                self.t7 = pending.then(|| now + self.timers.acknowledgement);
                None
            }
        }
    }

    /// *Alignment* of the peer: proving begins once it proves, too.
    fn aligned(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.state = LinkState::Aligned;
        self.remote_ready = false;
        self.alignment = Some(now + self.timers.aligned);
        self.prove(now, out);
    }

    /// *Proving* of the peer.
    fn remote_proves(&mut self, emergency: bool, now: Instant, out: &mut Vec<u8>) {
        // An emergency of either side shortens the period of both (Q.703 §7.3).
        let shortens = emergency && !self.remote_emergency && !self.emergency;
        self.remote_emergency |= emergency;
        if self.state == LinkState::Proving && !shortens {
            return;
        }
        self.state = LinkState::Proving;
        self.alignment = Some(now + self.proving_period());
        self.prove(now, out);
    }

    fn proving_period(&self) -> std::time::Duration {
        if self.emergency || self.remote_emergency {
            self.timers.emergency_proving
        } else {
            self.timers.proving
        }
    }

    fn prove(&mut self, now: Instant, out: &mut Vec<u8>) {
        let status = if self.emergency {
            LinkStatus::ProvingEmergency
        } else {
            LinkStatus::ProvingNormal
        };
        self.status(status, out);
        self.proving = Some(now + self.proving_period() / PROVING_MESSAGES);
    }

    /// The end of proving (T4).
    fn proved(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<LinkEvent> {
        self.proving = None;
        self.state = LinkState::Ready;
        self.alignment = Some(now + self.timers.ready);
        let ready = if self.local_outage {
            LinkStatus::ProcessorOutage
        } else {
            LinkStatus::Ready
        };
        self.status(ready, out);
        if !self.remote_ready {
            return None;
        }
        let event = self.enter();
        Some(if self.remote_outage {
            LinkEvent::RemoteOutage
        } else {
            event
        })
    }

    fn enter(&mut self) -> LinkEvent {
        self.state = LinkState::InService;
        self.alignment = None;
        LinkEvent::InService
    }

    /// Sends what is not acknowledged once more, with the numbers that it had.
    fn repeat(&mut self, now: Instant, out: &mut Vec<u8>) {
        let accepted = self.buffer.accepted;
        for message in self.buffer.iter_mut() {
            set_number(message.as_mut(), BSN, accepted);
            out.extend_from_slice(message.as_ref());
        }
        self.t7 = (!self.buffer.is_empty()).then(|| now + self.timers.acknowledgement);
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<u8>) -> LinkEvent {
        self.reset();
        self.status(LinkStatus::OutOfService, out);
        LinkEvent::Failed(failure)
    }

    /// Out of service, with the buffer as it is; an outage of this side lasts.
    fn reset(&mut self) {
        let buffer = std::mem::replace(&mut self.buffer, Buffer::new());
        *self = Self {
            buffer,
            local_outage: self.local_outage,
            ..Self::new(self.timers)
        };
    }

    fn status(&self, status: LinkStatus, out: &mut Vec<u8>) {
        self.write(Content::LinkStatus(status), out);
    }

    fn write(&self, content: Content<'_>, out: &mut Vec<u8>) {
        let message = Message {
            bsn: self.buffer.accepted,
            fsn: self.buffer.sent,
            content,
        };
        message.write(out);
    }
}

const fn outage_status(outage: bool) -> LinkStatus {
    if outage {
        LinkStatus::ProcessorOutage
    } else {
        LinkStatus::ProcessorRecovered
    }
}

/// Where the numbers stand in the header.
const BSN: usize = 8;
pub(super) const FSN: usize = 12;

fn set_number(message: &mut [u8], at: usize, number: u32) {
    if let Some(field) = message.get_mut(at..at + 4) {
        field.copy_from_slice(&number.to_be_bytes());
    }
}
