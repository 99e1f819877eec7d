//! The task of one connection: it reads many messages at once, gives each to the node, and writes the messages queued
//! meanwhile with one system call.
//!
//! A turn of the task reads at most [`READS_PER_TURN`] buffers and delivers at most [`crate::Limits::turn`] messages for at
//! most [`crate::Limits::turn_time`], so that one busy peer does not delay the others. Messages for other connections are queued there and wake their
//! tasks, which run after all tasks that are ready now: so their queues have filled by then, and one call writes all of
//! it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use diameter_proto::frame::{next_frame, wanted};
use diameter_proto::{CommandFlags, MessageBuilder, MessageMut};
use worker::Backlog;

use super::{Application, Node, Verdict};
use crate::config::Limits;
use crate::connection::{Connection, Ending, count};
use crate::directory::Handover;
use crate::transport::Stream;

/// Buffers read in one turn of the task.
const READS_PER_TURN: usize = 4;
/// See [`Turn::new`].
const LATE: u32 = 8;
/// The clock is read again after as many messages.
const CLOCK: u64 = 16;
/// Free space below which the buffer is renewed before reading.
const LEAST_ROOM: usize = 16 * 1024;
/// Bytes discarded while waiting for the peer to close after us.
const DISCARD: usize = 64 * 1024;

/// Why the task ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The peer closed, or the connection broke.
    Lost(io::Error),
    /// We closed it.
    Closed,
    /// It moves to another worker, with this message read but not handled.
    Elsewhere(usize, MessageMut),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// TLS is being negotiated.
    Handshake,
    /// Messages are exchanged.
    Running,
    /// This side has closed its half and waits for the peer's.
    Draining,
}

/// State of the task.
pub(crate) struct Io<A: Application> {
    node: Node<A>,
    connection: Rc<Connection<A::State>>,
    stream: Stream,
    buffer: BytesMut,
    phase: Phase,
    /// Messages were left in the buffer when the turn ended.
    more: bool,
    backlog: Backlog,
}

/// What is left of a turn.
struct Turn {
    messages: usize,
    time: Duration,
    /// None before bytes are delivered: a turn that reads nothing needs no clock.
    ends: Option<Instant>,
}

impl Turn {
    /// The turn of a connection whose bytes have waited for this time. It takes an eighth of that, so that connections
    /// with more than their part of the traffic do not fall behind the others; at most eight turns.
    fn new(limits: &Limits, waited: Duration) -> Self {
        Self {
            messages: limits.turn,
            time: (waited / LATE).clamp(limits.turn_time, limits.turn_time * LATE),
            ends: None,
        }
    }

    /// It begins at the latest now.
    fn begin(&mut self, now: Instant) {
        self.ends.get_or_insert(now + self.time);
    }

    fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| now >= ends)
    }

    /// Takes the next message of the turn; false: the turn is over.
    fn take<A: Application>(&mut self, node: &Node<A>, delivered: u64) -> bool {
        let is_over = self.messages == 0
            || delivered > 0 && delivered.is_multiple_of(CLOCK) && self.is_over(node.refresh());
        if !is_over {
            self.messages -= 1;
        }
        !is_over
    }
}

impl<A: Application> Io<A> {
    pub(crate) fn new(
        node: Node<A>,
        connection: Rc<Connection<A::State>>,
        stream: Stream,
        read: BytesMut,
    ) -> Self {
        Self {
            node,
            connection,
            stream,
            buffer: read,
            phase: Phase::Handshake,
            more: false,
            backlog: Backlog::default(),
        }
    }

    /// Runs the connection to its end.
    pub(crate) async fn run(mut self) {
        // Bytes that another worker had read before it transferred the connection: a handshake came before them, so that
        // the CER among them is judged by its certificate.
        if !self.buffer.is_empty() {
            self.phase = Phase::Running;
            if let Err(error) = self.node.secured(&self.connection, self.stream.tls()) {
                return self.finish(End::Lost(error));
            }
        }
        let mut turn = Turn::new(self.node.limits(), Duration::ZERO);
        if let Err(end) = self.contained(|io| io.deliver(&mut turn)).unwrap_or_else(Err) {
            return self.finish(end);
        }
        let end =
            std::future::poll_fn(|cx| self.contained(|io| io.poll(cx)).unwrap_or_else(Poll::Ready)).await;
        self.finish(end);
    }

    /// Runs a step of the connection. A panic of the application in it ends this connection, so that the peer and the
    /// requests pending here are given up in order.
    fn contained<T>(&mut self, step: impl FnOnce(&mut Self) -> T) -> Result<T, End> {
        catch_unwind(AssertUnwindSafe(|| step(self))).map_err(|_| {
            self.node.panicked(Some(self.connection.remote()));
            End::Lost(io::Error::other("the application panicked"))
        })
    }

    fn finish(self, end: End) {
        self.connection.waker.set(None);
        self.connection.open.set(false);
        self.connection.queue.borrow_mut().clear();
        match end {
            End::Elsewhere(worker, message) => {
                let mut read = message.into_bytes();
                read.unsplit(self.buffer);
                let (remote, local) = (self.connection.remote(), self.connection.local());
                let security = self.node.security(&self.connection);
                let outcome = Handover::pack(self.stream, read, remote, local, security);
                self.node.hand_over(&self.connection, worker, outcome);
            }
            End::Lost(error) => self.node.ended(&self.connection, Some(&error)),
            End::Closed => self.node.ended(&self.connection, None),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.remember_waker(cx);
        if self.connection.ending.get() == Ending::Now {
            return Poll::Ready(End::Closed);
        }
        if self.phase == Phase::Handshake {
            match self.stream.poll_handshake(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    self.node.handshake_failed(&self.connection, &error);
                    return Poll::Ready(End::Lost(error));
                }
                Poll::Ready(Ok(())) => {}
            }
            self.phase = Phase::Running;
            if let Err(error) = self.node.secured(&self.connection, self.stream.tls()) {
                return Poll::Ready(End::Lost(error));
            }
        }
        if self.phase == Phase::Draining {
            return self.drain(cx);
        }
        if let Err(end) = self.read(cx) {
            return Poll::Ready(end);
        }
        match self.write(cx) {
            Ok(true) => {}
            Ok(false) => return Poll::Pending,
            Err(error) => return Poll::Ready(End::Lost(error)),
        }
        // Everything queued has been written.
        match self.connection.ending.get() {
            Ending::Open if self.connection.secure.get() => self.begin_tls(cx),
            Ending::Open => Poll::Pending,
            Ending::Now => Poll::Ready(End::Closed),
            Ending::AfterFlush => {
                // Closing with unread bytes would reset the connection, and a reset may overtake the last message in
                // flight. So only our half is closed; a deadline bounds the wait (see tick).
                self.stream.shutdown_write(cx);
                self.phase = Phase::Draining;
                self.drain(cx)
            }
        }
    }

    fn remember_waker(&self, cx: &Context<'_>) {
        match self.connection.waker.take() {
            Some(waker) if waker.will_wake(cx.waker()) => self.connection.waker.set(Some(waker)),
            _ => self.connection.waker.set(Some(cx.waker().clone())),
        }
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut turn = Turn::new(self.node.limits(), self.waited());
        if self.more {
            self.deliver(&mut turn)?;
        }
        for _ in 0..READS_PER_TURN {
            if self.more {
                break;
            }
            if self.connection.paused.get()
                || self.connection.secure.get()
                || self.connection.ending.get() != Ending::Open
            {
                return Ok(());
            }
            self.make_room();
            match self.stream.poll_read(cx, &mut self.buffer) {
                Poll::Pending => {
                    self.backlog.drained();
                    return Ok(());
                }
                Poll::Ready(Ok(0)) => return Err(End::Lost(io::ErrorKind::UnexpectedEof.into())),
                Poll::Ready(Err(error)) => return Err(End::Lost(error)),
                Poll::Ready(Ok(read)) => {
                    let figures = self.connection.figures();
                    count(&figures.reads, 1);
                    count(&figures.bytes_in, read as u64);
                    self.deliver(&mut turn)?;
                }
            }
            if turn.is_over(self.node.now()) {
                break;
            }
        }
        let buffered = self.buffer.len();
        self.backlog
            .left(self.node.now(), || buffered + self.stream.unread());
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// How long the next message has waited in the socket, as far as that is known.
    fn waited(&self) -> Duration {
        let since = self.backlog.since();
        since.map_or(Duration::ZERO, |since| {
            self.node.now().saturating_duration_since(since)
        })
    }

    fn make_room(&mut self) {
        let limits = self.node.limits();
        let missing = wanted(&self.buffer, limits.message).saturating_sub(self.buffer.len());
        if self.buffer.capacity() - self.buffer.len() < missing.max(LEAST_ROOM.min(limits.read_buffer)) {
            self.buffer.reserve(missing.max(limits.read_buffer));
        }
    }

    /// Gives complete messages to the node, as long as the turn lasts.
    fn deliver(&mut self, turn: &mut Turn) -> Result<(), End> {
        self.more = false;
        let now = self.node.refresh();
        turn.begin(now);
        let max = self.node.limits().message;
        let mut messages = 0;
        let before = self.buffer.len();
        self.connection.unread_since.set(self.backlog.since());
        while self.connection.ending.get() == Ending::Open && !self.connection.secure.get() {
            if !turn.take(&self.node, messages) {
                self.more = true;
                break;
            }
            match next_frame(&mut self.buffer, max) {
                Ok(Some(message)) => {
                    messages += 1;
                    count(&self.connection.figures().messages_in, 1);
                    if let Verdict::Elsewhere(worker, message) = self.node.received(&self.connection, message)
                    {
                        return Err(End::Elsewhere(worker, message));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    // The stream is lost: the start of the next message is unknown.
                    self.node.frame_error(&self.connection, &error);
                    if let Some(header) = error.header
                        && header.flags.contains(CommandFlags::REQUEST)
                    {
                        let fault = error.fault();
                        let origin = &self.node.local().origin;
                        let answer = MessageBuilder::error_answer_to_header(&header, origin, &fault);
                        self.connection.enqueue_base(answer);
                    }
                    self.connection.end(Ending::AfterFlush);
                    break;
                }
            }
        }
        self.backlog.delivered(before - self.buffer.len());
        if messages > 0 {
            self.node.heard(&self.connection, now, messages);
        }
        let stalled = (!self.buffer.is_empty()).then_some(());
        match (stalled, messages > 0, self.connection.read_stalled.get()) {
            (None, ..) => self.connection.read_stalled.set(None),
            (Some(()), false, Some(_)) => {}
            (Some(()), ..) => self.connection.read_stalled.set(Some(now)),
        }
        Ok(())
    }

    /// Writes until the queue is empty (true) or the socket accepts no more (false).
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let figures = self.connection.figures();
        let mut queue = self.connection.queue.borrow_mut();
        while !queue.is_empty() {
            match self.stream.poll_write(cx, &mut queue) {
                Poll::Ready(Ok(written)) => {
                    count(&figures.writes, 1);
                    count(&figures.bytes_out, written as u64);
                    self.connection.write_stalled.set(None);
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    if self.connection.write_stalled.get().is_none() {
                        self.connection.write_stalled.set(Some(self.node.now()));
                    }
                    return Ok(false);
                }
            }
        }
        match self.stream.poll_flush(cx) {
            Poll::Ready(outcome) => outcome.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Reads until the peer has closed. Messages are discarded, unless the peer has reconnected.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.connection.replaced.get() {
            return self.read_rest(cx);
        }
        let mut total = 0;
        while total < DISCARD {
            self.buffer.clear();
            self.buffer.reserve(LEAST_ROOM);
            match self.stream.poll_read(cx, &mut self.buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(End::Closed),
                Poll::Ready(Ok(read)) => total += read,
            }
        }
        // A peer that goes on sending after the connection was shut down is not waited for.
        Poll::Ready(End::Closed)
    }

    /// The peer has reconnected, and requests that it sent here before may still be in flight: they are served like all
    /// others; their answers go to the new connection. A deadline bounds this (see `tick`).
    fn read_rest(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        for _ in 0..READS_PER_TURN {
            if !self.deliver_rest() {
                return Poll::Ready(End::Closed);
            }
            self.make_room();
            match self.stream.poll_read(cx, &mut self.buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(End::Closed),
                Poll::Ready(Ok(read)) => count(&self.connection.figures().bytes_in, read as u64),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Gives every complete message to the node; false when the bytes are not Diameter messages.
    fn deliver_rest(&mut self) -> bool {
        self.node.refresh();
        loop {
            match next_frame(&mut self.buffer, self.node.limits().message) {
                Ok(Some(message)) => {
                    count(&self.connection.figures().messages_in, 1);
                    self.node.received(&self.connection, message);
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// CER and CEA agreed on TLS: the handshake follows on the same connection.
    fn begin_tls(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match std::mem::replace(&mut self.stream, Stream::Changing) {
            Stream::Tcp(tcp) => {
                match self.node.begin_tls(&self.connection, tcp, self.buffer.split()) {
                    Ok(stream) => self.stream = stream,
                    Err(error) => return Poll::Ready(End::Lost(error)),
                }
                self.connection.secure.set(false);
                self.phase = Phase::Handshake;
                self.poll(cx)
            }
            other => {
                self.stream = other;
                self.connection.secure.set(false);
                Poll::Ready(End::Lost(io::Error::other(
                    "TLS was agreed on where it cannot begin",
                )))
            }
        }
    }
}
