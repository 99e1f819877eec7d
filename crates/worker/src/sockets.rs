//! Sockets of one thread, and waiting until one of them is ready: epoll, without a runtime in between.
//!
//! Readiness is reported by its edges: the user of a socket keeps in mind that it is ready until an operation on it
//! would block.

use std::cell::RefCell;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};

/// Sockets that one wait reports at most; the next one reports the others.
const EVENTS: usize = 1_024;

// Keys are those of `epoll_data`.
const _: () = assert!(size_of::<usize>() >= size_of::<u64>());

/// The key that no socket has: another thread has woken the wait.
const WOKEN: Token = Token(usize::MAX);

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Bytes have come, or the peer has closed its side.
    pub readable: bool,
    /// There is room for output.
    pub writable: bool,
    /// The peer has closed its side, or the connection is broken: reading says which, from now on without waiting.
    pub closed: bool,
}

/// A set of sockets, each with a key.
#[derive(Debug)]
pub struct Sockets {
    poll: RefCell<Poll>,
    events: RefCell<Events>,
    registry: Registry,
}

impl Sockets {
    /// An empty set.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Self {
            registry: poll.registry().try_clone()?,
            poll: RefCell::new(poll),
            events: RefCell::new(Events::with_capacity(EVENTS)),
        })
    }

    /// Adds a socket that does not block. It is reported once for each change of its readiness, first for what it is
    /// ready for now.
    ///
    /// # Errors
    /// When the system refuses another one.
    pub fn add(&self, socket: &TcpStream, key: u64) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        self.registry
            .register(&mut SourceFd(&socket.as_raw_fd()), Token(key as usize), both)
    }

    /// Removes a socket. What was reported of it before may still be passed on.
    pub fn remove(&self, socket: &TcpStream) {
        // A socket that is not in the set any longer needs no removal.
        let _ = self.registry.deregister(&mut SourceFd(&socket.as_raw_fd()));
    }

    /// Waits until a socket is ready, or the time has passed; with `None` as long as it takes. Passes on which sockets
    /// are ready.
    pub fn wait(&self, most: Option<Duration>, mut ready: impl FnMut(u64, Readiness)) {
        let mut events = self.events.borrow_mut();
        match self.poll.borrow_mut().poll(&mut events, most) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(error) => {
                tracing::error!(%error, "waiting for sockets failed");
                return;
            }
        }
        for event in events.iter() {
            if event.token() == WOKEN {
                continue;
            }
            let closed = event.is_read_closed() || event.is_error();
            let readiness = Readiness {
                readable: event.is_readable() || closed,
                writable: event.is_writable() || event.is_error(),
                closed,
            };
            ready(event.token().0 as u64, readiness);
        }
    }

    /// What ends a wait from another thread. There can be one.
    pub(crate) fn waker(&self) -> io::Result<Waker> {
        Waker::new(&self.registry, WOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        one.set_nonblocking(true).unwrap();
        (one, other)
    }

    fn wait(sockets: &Sockets) -> Vec<(u64, Readiness)> {
        let mut seen = Vec::new();
        sockets.wait(Some(Duration::from_secs(60)), |key, readiness| {
            seen.push((key, readiness));
        });
        seen
    }

    #[test]
    fn each_change_of_a_socket_is_reported_once() {
        let sockets = Sockets::new().unwrap();
        let (mut one, mut other) = pair();
        sockets.add(&one, 7).unwrap();
        let [(7, first)] = wait(&sockets)[..] else {
            panic!()
        };
        assert!(first.writable && !first.readable && !first.closed);
        other.write_all(b"bytes").unwrap();
        let [(7, second)] = wait(&sockets)[..] else {
            panic!()
        };
        assert!(second.readable && !second.closed);
        sockets.wait(Some(Duration::ZERO), |_, _| panic!("nothing has changed"));
        assert_eq!(one.read(&mut [0; 16]).unwrap(), 5);
        drop(other);
        let [(7, last)] = wait(&sockets)[..] else { panic!() };
        assert!(last.readable && last.closed);
        sockets.remove(&one);
    }

    #[test]
    fn another_thread_ends_a_wait() {
        let sockets = Sockets::new().unwrap();
        let waker = sockets.waker().unwrap();
        // The waker lives on: dropped before the wait begins, it takes its wake with it.
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake().unwrap());
            sockets.wait(None, |_, _| panic!("there is no socket"));
        });
    }
}
