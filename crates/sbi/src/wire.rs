//! The TCP connection under a socket: at first one of the runtime, then one that the event loop of the worker waits for.
//!
//! A connection begins and ends in tasks (connecting, handshakes, last words), for which the runtime waits. In between
//! it belongs to the reactor, whose readiness costs a flag.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::reactor::{Edges, MemberKey, Reactor};

/// A TCP connection.
#[derive(Debug)]
pub(crate) enum Wire {
    /// The runtime waits for it and wakes the task that asked.
    Task(tokio::net::TcpStream),
    /// The reactor waits for it and gives its member a turn.
    Member(Watched),
    /// It was lost when it passed from one to the other.
    Lost,
}

/// A connection that the reactor waits for, until it is closed.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    edges: Rc<Edges>,
}

impl Wire {
    /// From now on the reactor waits for it, if it waits for sockets, and gives its member a turn when it is ready.
    pub(crate) fn join(&mut self, reactor: &Reactor, key: MemberKey) {
        if !reactor.waits() {
            return;
        }
        let Self::Task(stream) = std::mem::replace(self, Self::Lost) else {
            return;
        };
        let Ok(stream) = stream.into_std() else { return };
        *self = match reactor.watch(key, &stream) {
            Some(edges) => Self::Member(Watched { stream, edges }),
            None => tokio::net::TcpStream::from_std(stream).map_or(Self::Lost, Self::Task),
        };
    }

    /// Number of bytes that can be read now.
    pub(crate) fn unread(&self) -> usize {
        match self {
            Self::Task(stream) => worker::unread(stream),
            Self::Member(watched) => worker::unread(&watched.stream),
            Self::Lost => 0,
        }
    }

    /// From now on the runtime waits for it.
    pub(crate) fn leave(&mut self) {
        *self = match std::mem::replace(self, Self::Lost) {
            Self::Member(Watched { stream, edges }) => {
                edges.unwatch(&stream);
                tokio::net::TcpStream::from_std(stream).map_or(Self::Lost, Self::Task)
            }
            other => other,
        };
    }
}

impl Watched {
    /// Reads once, if there may be something.
    fn read(&self, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.edges.is_readable() {
                return Poll::Pending;
            }
            let room = into.initialize_unfilled();
            let most = room.len();
            // Straight to the kernel: the calls of the C library are points at which threads can be cancelled.
            match rustix::io::read(&self.stream, room).map_err(io::Error::from) {
                Ok(came) => {
                    // The kernel had no more. What comes now is reported.
                    if came > 0 && came < most {
                        self.edges.has_read_all();
                    }
                    into.advance(came);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.edges.has_read_all();
                    return Poll::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Writes once, if there may be room.
    fn write(&self, most: usize, write: impl Fn(&TcpStream) -> io::Result<usize>) -> Poll<io::Result<usize>> {
        loop {
            if !self.edges.is_writable() {
                return Poll::Pending;
            }
            match write(&self.stream) {
                Ok(went) => {
                    if went > 0 && went < most {
                        self.edges.has_filled();
                    }
                    return Poll::Ready(Ok(went));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.edges.has_filled();
                    return Poll::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

fn lost() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Task(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Member(watched) => watched.read(into),
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Task(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Member(watched) => {
                watched.write(bytes.len(), |stream| Ok(rustix::io::write(stream, bytes)?))
            }
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Task(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Member(watched) => {
                let most = parts.iter().map(|part| part.len()).sum();
                watched.write(most, |stream| Ok(rustix::io::writev(stream, parts)?))
            }
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TCP has nothing to flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Task(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Member(watched) => Poll::Ready(watched.stream.shutdown(std::net::Shutdown::Write)),
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }
}
