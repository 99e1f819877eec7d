//! A socket and the HTTP/2 engine on it: bytes in, bytes out.

use std::cell::RefMut;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http2::{Connection, Fault, Output};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;
use worker::Backlog;

use crate::reactor::{MemberKey, Reactor};
use crate::wire::Wire;

/// The largest frame we take: a usual body arrives in one piece.
pub(crate) const FRAME_SIZE: u32 = 64 * 1024;

/// Bytes and time of a peer's input that are read and discarded after the GOAWAY was sent.
pub(crate) const LINGER: (usize, Duration) = (256 * 1024, Duration::from_millis(500));

/// Bytes that a connection reads before other connections have their turn: few of requests, which add work; many of
/// answers, which finish it.
pub(crate) const REQUESTS: usize = 64 * 1024;
pub(crate) const ANSWERS: usize = 2 * 1024 * 1024;

/// Pieces that one system call writes at most.
const PIECES: usize = 64;

/// Pieces of a few messages: a list of [`PIECES`] takes more instructions to prepare than to write.
const FEW_PIECES: usize = 7;

/// A connection's bytes, cleartext or not.
#[derive(Debug)]
pub(crate) enum Socket {
    Clear(Wire),
    Tls(Box<TlsStream<Wire>>),
}

impl Socket {
    fn wire(&mut self) -> &mut Wire {
        match self {
            Self::Clear(wire) => wire,
            Self::Tls(stream) => stream.get_mut().0,
        }
    }
}

/// A socket with its engine.
pub(crate) struct Link {
    socket: Socket,
    pub(crate) engine: Connection,
    /// Bytes that the engine did not take in its turn.
    left: Vec<u8>,
    /// Since when bytes lie unread.
    backlog: Backlog,
    /// Bytes that came to the engine and are handled now: the backlog counts them before the next read.
    delivered: usize,
    /// Bytes read since this turn began, and how many one turn may read.
    read_this_turn: usize,
    portion: usize,
    /// The engine takes no input before the peer reads its output.
    waits_for_output: bool,
    /// TLS may hold bytes that the socket has not taken.
    unflushed: bool,
    /// When the peer last took bytes, or when there last were none to take.
    progress: Instant,
    bytes_in: u64,
    bytes_out: u64,
}

/// Outcome of a read.
#[derive(Debug)]
pub(crate) enum Read {
    /// The engine got something: there may be events, and more to read.
    Some,
    /// The socket has no input; the peer's next bytes wake the connection.
    Nothing,
    /// The socket may have more input; other connections have their turn first.
    Enough,
    /// The peer has closed its side, or the connection is broken.
    End,
    /// The peer broke a rule or a limit; the engine has written GOAWAY.
    Fault(Fault),
}

impl Link {
    pub(crate) fn new(socket: Socket, engine: Connection, portion: usize, now: Instant) -> Self {
        Self {
            socket,
            engine,
            left: Vec::new(),
            backlog: Backlog::default(),
            delivered: 0,
            read_this_turn: 0,
            portion,
            waits_for_output: false,
            unflushed: false,
            progress: now,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// From now on the reactor waits for the socket of this member.
    pub(crate) fn join(&mut self, reactor: &Reactor, key: MemberKey) {
        self.socket.wire().join(reactor, key);
    }

    /// Bytes that were read before there was an engine.
    pub(crate) fn came_before(&mut self, bytes: Vec<u8>) {
        self.bytes_in += bytes.len() as u64;
        self.left = bytes;
    }

    /// No byte that came last lay unread before this; none: the turn before left none.
    pub(crate) fn left_since(&self) -> Option<Instant> {
        self.backlog.since()
    }

    /// The turn ends with bytes unread.
    fn leave(&mut self, now: Instant) {
        let Self {
            backlog,
            left,
            socket,
            ..
        } = self;
        backlog.left(now, || left.len() + socket.wire().unread());
    }

    /// Reads once and gives what came to the engine.
    fn read(&mut self, scratch: &mut [u8], now: Instant, cx: &mut Context<'_>) -> Read {
        // What came is handled: what comes now may have come later.
        self.backlog.delivered(std::mem::take(&mut self.delivered));
        if self.read_this_turn >= self.portion {
            self.leave(now);
            return Read::Enough;
        }
        if !self.engine.takes_input() {
            // The peer gets more to say when it takes what it has asked for, which wakes the connection.
            self.leave(now);
            self.waits_for_output = true;
            return Read::Nothing;
        }
        self.waits_for_output = false;
        if !self.left.is_empty() {
            let bytes = std::mem::take(&mut self.left);
            self.read_this_turn += bytes.len();
            return self.receive(&bytes, now);
        }
        let most = scratch.len().min(self.portion);
        let mut buffer = ReadBuf::new(&mut scratch[..most]);
        match Pin::new(&mut self.socket).poll_read(cx, &mut buffer) {
            Poll::Pending => {
                self.backlog.drained();
                Read::Nothing
            }
            Poll::Ready(Err(_)) => Read::End,
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Read::End,
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled();
                self.bytes_in += bytes.len() as u64;
                self.read_this_turn += bytes.len();
                self.receive(bytes, now)
            }
        }
    }

    fn receive(&mut self, bytes: &[u8], now: Instant) -> Read {
        match self.engine.receive(bytes, now) {
            Ok(taken) => {
                self.delivered = taken;
                if taken < bytes.len() {
                    // The engine has had its share of frames.
                    self.left = bytes[taken..].to_vec();
                    self.read_this_turn = usize::MAX;
                }
                Read::Some
            }
            Err(fault) => Read::Fault(fault),
        }
    }

    /// Writes what the engine has for the peer; ready when nothing is left.
    pub(crate) fn write(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let output = self.engine.output();
            if output.is_empty() {
                if self.unflushed {
                    ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
                    self.unflushed = false;
                }
                self.progress = now;
                return Poll::Ready(Ok(()));
            }
            let socket = Pin::new(&mut self.socket);
            let wrote = match output.pieces() <= FEW_PIECES {
                true => write_pieces::<FEW_PIECES>(socket, output, cx),
                false => write_pieces::<PIECES>(socket, output, cx),
            };
            let wrote = ready!(wrote)?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            output.advance(wrote);
            self.bytes_out += wrote as u64;
            self.progress = now;
            self.unflushed = matches!(self.socket, Socket::Tls(_));
        }
    }

    /// Whether something waits for the socket to take it.
    pub(crate) fn is_blocked(&mut self) -> bool {
        self.unflushed || !self.engine.output().is_empty()
    }

    /// Whether there is something to write, or to read again after a write. The engine cuts frames from the bodies that
    /// windows let go on.
    pub(crate) fn needs_flush(&mut self) -> bool {
        self.is_blocked() || self.may_read_again()
    }

    /// Whether bytes lie unread that the engine takes now.
    pub(crate) fn may_read_again(&self) -> bool {
        self.waits_for_output && self.engine.takes_input()
    }

    /// Lets memory go that is kept for the next messages: the connection is idle.
    pub(crate) fn rest(&mut self) {
        self.engine.output().rest();
    }

    /// When the peer last took bytes.
    pub(crate) fn progress(&self) -> Instant {
        self.progress
    }

    /// Bytes held for it, but for the answers that others may hold as well.
    pub(crate) fn held(&mut self) -> usize {
        self.left.len() + self.engine.held() + self.engine.output().len()
    }

    /// Bytes read and written so far.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in, self.bytes_out)
    }

    /// Writes the rest of the output, ends this side, then reads and discards the peer's input until the peer ends its
    /// side, or a bound of bytes or time is reached: closing a socket with unread bytes would destroy the GOAWAY that
    /// is still being sent.
    pub(crate) async fn linger(mut self) {
        self.socket.wire().leave();
        let last_words = async {
            let written = std::future::poll_fn(|cx| self.write(Instant::now(), cx)).await;
            if written.is_ok() {
                linger(&mut self.socket).await;
            }
        };
        let _ = tokio::time::timeout(LINGER.1, last_words).await;
    }
}

/// Writes up to `N` pieces of an output.
fn write_pieces<const N: usize>(
    socket: Pin<&mut Socket>,
    output: &Output,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut slices = [IoSlice::new(&[]); N];
    let pieces = output.slices(&mut slices);
    socket.poll_write_vectored(cx, &slices[..pieces])
}

/// A connection that talks through a link.
pub(crate) trait Talks {
    /// Its link, until it has ended.
    fn link(&self) -> RefMut<'_, Option<Link>>;
    /// Handles what the engine has found.
    fn events(&self, now: Instant);
}

/// Reads what the socket has, as much as one turn permits, and passes the events to the connection; returns how it
/// ended. Where there is more to read, the connection gets another turn.
pub(crate) fn read(connection: &impl Talks, key: MemberKey, reactor: &Reactor, cx: &mut Context<'_>) -> Read {
    if let Some(link) = &mut *connection.link() {
        link.read_this_turn = 0;
    }
    loop {
        let now = reactor.now();
        let read = match &mut *connection.link() {
            Some(link) => link.read(&mut reactor.scratch().borrow_mut(), now, cx),
            None => return Read::Nothing,
        };
        match read {
            Read::Some => connection.events(now),
            Read::Fault(_) => {
                // Events before the fault are still handled.
                connection.events(now);
                return read;
            }
            Read::Enough => {
                reactor.has_more(key);
                return read;
            }
            Read::Nothing | Read::End => return read,
        }
    }
}

/// Ends this side and discards the peer's further input.
pub(crate) async fn linger(socket: &mut Socket) {
    let (mut scrap, mut limit) = (vec![0; 16 * 1024], LINGER.0);
    std::future::poll_fn(|cx| {
        if ready!(Pin::new(&mut *socket).poll_shutdown(cx)).is_err() {
            return Poll::Ready(());
        }
        loop {
            let mut buffer = ReadBuf::new(&mut scrap);
            let read = ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer));
            let came = buffer.filled().len();
            limit = limit.saturating_sub(came);
            if read.is_err() || came == 0 || limit == 0 {
                return Poll::Ready(());
            }
        }
    })
    .await;
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
