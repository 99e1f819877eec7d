//! The socket of a connection of HTTP/1.1, and what the checks of its timeouts ask.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::message::Held;
use crate::link::Socket;
use crate::server::activity::Activity;
use crate::server::config::ServerConfig;
use crate::stats::{ServerStats, add};

/// The timeout that a peer has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// There has been no request for too long.
    Request,
    /// The head of a request did not arrive in time.
    Head,
    /// It does not read its answers.
    Reading,
}

/// How far a connection is.
pub(super) struct Progress {
    activity: Rc<Activity>,
    stats: Arc<ServerStats>,
    /// When the head that is arriving began.
    head: Cell<Option<Instant>>,
    /// Since when the peer takes no bytes.
    blocked: Cell<Option<Instant>>,
    /// Since when there has been no request, as far as the checks have seen.
    quiet: Cell<Instant>,
    /// The last answer, until the socket has taken it.
    answer: RefCell<Option<Rc<Held>>>,
}

impl Progress {
    pub(super) fn new(activity: Rc<Activity>, stats: Arc<ServerStats>, now: Instant) -> Self {
        Self {
            activity,
            stats,
            head: Cell::default(),
            blocked: Cell::default(),
            quiet: Cell::new(now),
            answer: RefCell::default(),
        }
    }

    /// The head of a request is whole.
    pub(super) fn begins(&self) {
        self.head.set(None);
    }

    /// A request is answered.
    pub(super) fn answers(&self, held: Rc<Held>) {
        self.answer.replace(Some(held));
    }

    /// The timeout that the peer has exceeded.
    pub(super) fn overdue(&self, config: &ServerConfig, now: Instant) -> Option<Overdue> {
        let exceeds = |since: Instant, most: Duration| now.saturating_duration_since(since) >= most;
        let blocked = self.blocked.get();
        if blocked.is_some_and(|since| exceeds(since, config.write_stall_timeout.duration())) {
            return Some(Overdue::Reading);
        }
        if self.activity.moved() || self.activity.open() > 0 {
            self.quiet.set(now);
            return None;
        }
        match self.head.get() {
            Some(since) => exceeds(since, config.header_timeout.duration()).then_some(Overdue::Head),
            None => exceeds(self.quiet.get(), config.idle_timeout.duration()).then_some(Overdue::Request),
        }
    }

    fn came(&self, count: usize) {
        add(&self.stats.bytes_in, count as u64);
        if count > 0 && self.activity.open() == 0 && self.head.get().is_none() {
            self.head.set(Some(Instant::now()));
        }
    }

    fn went(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending if self.blocked.get().is_none() => self.blocked.set(Some(Instant::now())),
            Poll::Pending => {}
            Poll::Ready(written) => {
                self.blocked.set(None);
                add(&self.stats.bytes_out, *written.as_ref().unwrap_or(&0) as u64);
            }
        }
    }

    /// The socket has taken all that there was: an answer that is not being read any more has left.
    fn flushed(&self) {
        self.blocked.set(None);
        let mut answer = self.answer.borrow_mut();
        let has_left = answer.as_ref().is_some_and(|held| Rc::strong_count(held) == 1);
        let left = if has_left { answer.take() } else { None };
        drop(answer);
        drop(left);
    }
}

/// A socket, before whose bytes those come that were read already.
pub(super) struct Followed {
    pub(super) socket: Socket,
    pub(super) came: Vec<u8>,
    pub(super) progress: Rc<Progress>,
}

impl AsyncRead for Followed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        if self.came.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_read(cx, into))?;
        } else {
            let count = self.came.len().min(into.remaining());
            into.put_slice(&self.came[..count]);
            self.came.drain(..count);
        }
        self.progress.came(into.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Followed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.progress.went(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, parts);
        self.progress.went(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
