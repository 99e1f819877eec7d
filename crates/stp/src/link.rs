//! One association: octets in and out. It belongs to one worker; other workers put frames into its mailbox.

mod connect;
mod framing;
mod inbound;
mod ipa;
mod sctp;
mod signalling;
mod socket;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use function::Shutdown;
use ss7_proto::ipa::Control;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use crate::control::{Frame, Mailbox};

pub(crate) use connect::{accept, accept_sctp, connect};
use framing::Framing;
pub(crate) use inbound::Desk;
use inbound::Inbound;
use ipa::IpaLink;
pub(crate) use sctp::SctpBound;
pub use sctp::is_taken;
use signalling::SignallingLink;
use socket::Socket;

/// Octets that wait to be written: above, a link reads nothing and takes nothing from its mailbox.
const MOST_OUT: usize = 256 * 1024;
/// Frames that are taken from the mailbox at once.
const BATCH: usize = 64;
/// How long messages for the control side are handled at once, and how long those behind them wait then: each costs as much as there
/// are links and destinations, and other links of the worker have their turn between.
const TURN: Duration = Duration::from_millis(1);
/// How long other messages are handled that follow one another without an end, before others have their turn. A task that is ready
/// again and again keeps the runtime from looking at the sockets of others.
const LONG_TURN: Duration = Duration::from_millis(10);
/// How long a new connection waits for the former one of its link to end.
const HANDOVER: Duration = Duration::from_secs(5);

/// Why an association has ended.
enum End {
    Closed,
    Broken(String),
    Silent,
    Replaced,
    /// The peer has ordered a changeover of the link.
    Ordered,
    /// A link of M2PA is out of service.
    OutOfService(String),
    Stopped,
    Failed(io::Error),
}

impl End {
    fn reason(&self) -> String {
        match self {
            Self::Closed => "the peer has closed the association".to_owned(),
            Self::Broken(what) => format!("the peer has sent what cannot be read: {what}"),
            Self::Silent => "the peer has not answered heartbeats".to_owned(),
            Self::Replaced => "the peer has connected again".to_owned(),
            Self::Ordered => "the peer has ordered a changeover".to_owned(),
            Self::OutOfService(what) => what.clone(),
            Self::Stopped => "this STP stops".to_owned(),
            Self::Failed(error) => error.to_string(),
        }
    }
}

/// Carries an association until it ends. A former one of the link ends before.
async fn carry(desk: &Rc<Desk>, link: usize, socket: Socket, peer: SocketAddr, shutdown: &Shutdown) {
    let Some(mailbox) = desk.control.mailboxes.get(link) else {
        return;
    };
    let Some((mut receiver, turn)) = take(mailbox).await else {
        return;
    };
    desk.drop_queued(&mut receiver);
    mailbox.take_order();
    let name = desk.link_name(link);
    tracing::info!(link = name, %peer, "association is up");
    desk.control.associated(link, peer);
    let mut association = Association {
        inbound: Inbound::new(desk.clone(), link),
        signalling: SignallingLink::new(desk, link),
        ipa: IpaLink::new(desk, link),
        framing: Framing::default(),
        resume: None,
        busy: None,
        socket,
        receiver,
        out: Vec::new(),
        written: 0,
        unsent: VecDeque::new(),
        heard: Instant::now(),
        beaten: false,
        turn,
    };
    let end = association.run(mailbox, shutdown).await;
    let reason = end.reason();
    tracing::warn!(link = name, %peer, reason, "association has ended");
    desk.count_end(&end);
    if let Some(signalling) = association.signalling.take() {
        signalling.end(mailbox, &mut association.receiver);
    } else {
        // Messages are not sent another way: their order would be lost.
        desk.count_lost(association.unsent.len());
    }
    desk.control.disassociated(link, &reason);
    desk.drop_queued(&mut association.receiver);
    mailbox.give_back(association.receiver);
}

/// Takes the mailbox of a link, with the number of the request for it; a former association of it ends, and so does this one when
/// the peer connects again meanwhile.
async fn take(mailbox: &Mailbox) -> Option<(Receiver<Frame>, u64)> {
    let deadline = Instant::now() + HANDOVER;
    let number = mailbox.ask();
    loop {
        let released = mailbox.released.notified();
        if !mailbox.is_newest(number) {
            return None;
        }
        if let Some(receiver) = mailbox.take() {
            return Some((receiver, number));
        }
        mailbox.replace();
        tokio::time::timeout_at(deadline, released).await.ok()?;
    }
}

struct Association {
    inbound: Inbound,
    /// Where it is a link of M2PA.
    signalling: Option<SignallingLink>,
    /// Where it is a link of IPA.
    ipa: Option<IpaLink>,
    framing: Framing,
    /// When the messages have their turn that `framing` has still; none: nothing waits.
    resume: Option<Instant>,
    /// Since when the socket has had more each time.
    busy: Option<Instant>,
    socket: Socket,
    receiver: Receiver<Frame>,
    /// What is to be written, of which `written` octets are.
    out: Vec<u8>,
    written: usize,
    /// Where each MSU in `out` ends that is not written as a whole.
    unsent: VecDeque<usize>,
    /// When the peer has sent something.
    heard: Instant,
    /// Whether a heartbeat was sent since.
    beaten: bool,
    /// The number of its request for the mailbox.
    turn: u64,
}

impl Association {
    async fn run(&mut self, mailbox: &Mailbox, shutdown: &Shutdown) -> End {
        let mut batch = Vec::with_capacity(BATCH);
        if let Some(signalling) = &mut self.signalling {
            signalling.begin(&mut self.out);
        }
        if let Some(ipa) = &self.ipa {
            ipa.begin(&mut self.out);
        }
        loop {
            if let Some(end) = self.failure() {
                return end;
            }
            let has_room = self.out.len() - self.written < MOST_OUT;
            let takes = self.signalling.as_ref().is_none_or(SignallingLink::takes);
            if self.signalling.is_some()
                && has_room
                && takes
                && let Err(error) = self.send(mailbox.take_diverted())
            {
                return End::Failed(error);
            }
            let must_write = self.written < self.out.len();
            let due = self.due();
            tokio::select! {
                () = shutdown.fired() => return End::Stopped,
                () = mailbox.replaced(self.turn) => return End::Replaced,
                () = mailbox.attention.notified(), if self.signalling.is_some() => {
                    if mailbox.take_order() {
                        return End::Ordered;
                    }
                }
                ready = self.socket.readable(), if has_room && self.resume.is_none() => {
                    if let Err(end) = ready.map_err(End::Failed).and_then(|()| self.read()) {
                        return end;
                    }
                }
                () = tokio::time::sleep_until(self.resume.unwrap_or(due)), if has_room && self.resume.is_some() => {
                    if let Err(end) = self.handle() {
                        return end;
                    }
                }
                _ = self.receiver.recv_many(&mut batch, BATCH), if has_room && takes => {
                    // What was diverted meanwhile is older.
                    let diverted = if self.signalling.is_some() { mailbox.take_diverted() } else { Vec::new() };
                    if let Err(error) = self.send(diverted.into_iter().chain(batch.drain(..))) {
                        return End::Failed(error);
                    }
                }
                ready = self.socket.writable(), if must_write => {
                    if let Err(error) = ready.and_then(|()| self.write()) {
                        return End::Failed(error);
                    }
                }
                () = tokio::time::sleep_until(due) => {
                    if let Some(signalling) = &mut self.signalling {
                        signalling.tick(&mut self.out);
                        // An error shows when the socket is read.
                        let _ = self.write();
                    } else if self.beat() {
                        return End::Silent;
                    }
                }
            }
        }
    }

    /// Why a link of M2PA is out of service.
    fn failure(&mut self) -> Option<End> {
        let failure = self.signalling.as_mut()?.failure()?;
        // The peer learns of it when it can.
        let _ = self.write();
        Some(End::OutOfService(failure))
    }

    fn send(&mut self, frames: impl IntoIterator<Item = Frame>) -> io::Result<()> {
        for frame in frames {
            let is_data = frame.is_data;
            if let Some(signalling) = &mut self.signalling {
                signalling.send(frame, &mut self.out);
            } else if let Some(ipa) = &self.ipa {
                if !ipa.send(&frame, &mut self.out) {
                    continue;
                }
            } else {
                self.out.extend_from_slice(&frame.octets);
            }
            if is_data {
                self.unsent.push_back(self.out.len());
            }
        }
        self.write()
    }

    /// When a timer of the link, a heartbeat, or the end, is due.
    fn due(&self) -> Instant {
        if let Some(signalling) = &self.signalling {
            let wake = signalling.wake().map(Instant::from_std);
            return wake.unwrap_or_else(|| Instant::now() + Duration::from_secs(60));
        }
        let heartbeat = self.inbound.heartbeat();
        if heartbeat.is_zero() {
            // Looks again whether a reload has set one.
            Instant::now() + Duration::from_secs(60)
        } else {
            self.heard + if self.beaten { 2 * heartbeat } else { heartbeat }
        }
    }

    /// Sends a heartbeat; returns whether the peer has not answered the one before.
    fn beat(&mut self) -> bool {
        if self.inbound.heartbeat().is_zero() || Instant::now() < self.due() {
            return false;
        }
        if self.beaten {
            return true;
        }
        self.beaten = true;
        if self.ipa.is_some() {
            Control::Ping.write(&mut self.out);
        } else {
            self.inbound.write_beat(&mut self.out);
        }
        // An error shows when the socket is read.
        let _ = self.write();
        false
    }

    fn read(&mut self) -> Result<(), End> {
        match self.socket.read(&mut self.framing) {
            Ok(0) => return Err(End::Closed),
            Ok(_) => self.busy = self.busy.or_else(|| Some(Instant::now())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.busy = None;
                return Ok(());
            }
            Err(error) => return Err(End::Failed(error)),
        }
        self.handle()
    }

    /// Handles what was read, for one turn.
    fn handle(&mut self) -> Result<(), End> {
        let began = Instant::now();
        (self.heard, self.beaten) = (began, false);
        let Self {
            framing,
            inbound,
            out,
            signalling,
            ipa,
            resume,
            busy,
            ..
        } = self;
        inbound.stream = framing.stream;
        let goes_on = |inbound: &mut Inbound| !std::mem::take(&mut inbound.is_slow) || began.elapsed() < TURN;
        let framed = match ipa {
            Some(ipa) => framing.each_of_ipa(|octets| {
                ipa.handle(octets, inbound, out);
                goes_on(inbound)
            }),
            None => framing.each(|octets| {
                match signalling {
                    Some(signalling) => signalling.handle(octets, inbound, out),
                    None => inbound.handle(octets, out),
                }
                goes_on(inbound)
            }),
        };
        *resume = (framed == Ok(false)).then(|| Instant::now() + TURN);
        if resume.is_none() && busy.is_some_and(|since| since.elapsed() >= LONG_TURN) {
            (*resume, *busy) = (Some(Instant::now() + TURN), None);
        }
        if let Some(signalling) = signalling {
            signalling.acknowledge(out);
        }
        let written = self.write();
        if let Err(fault) = framed {
            return Err(End::Broken(fault.to_string()));
        }
        written.map_err(End::Failed)
    }

    fn write(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = self.out.get(self.written..).unwrap_or_default();
            match self.socket.write(rest) {
                Ok(count) => {
                    self.written += count;
                    let mut sent = 0;
                    while self.unsent.front().is_some_and(|end| *end <= self.written) {
                        self.unsent.pop_front();
                        sent += 1;
                    }
                    self.inbound.count_written(count, sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }
}
