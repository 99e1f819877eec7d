//! Sockets of one thread, and waiting until one of them is ready: epoll, without a runtime in between.
//!
//! Readiness is reported by its edges: the user of a socket keeps in mind that it is ready until an operation on it
//! would block.

use std::cell::RefCell;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{fmt, io};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Sockets that one wait reports at most; the next one reports the others.
const EVENTS: usize = 1_024;

/// The key that no socket has: another thread has woken the wait.
const WOKEN: u64 = u64::MAX;

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
///
/// It calls the kernel itself, as the sockets do: the functions of the C library are points at which threads can be
/// cancelled, which costs more instructions than the call.
pub struct Sockets {
    epoll: OwnedFd,
    events: RefCell<Vec<Event>>,
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets")
            .field("epoll", &self.epoll)
            .finish_non_exhaustive()
    }
}

/// Ends a wait from another thread.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Sockets {
    /// An empty set.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: RefCell::new(Vec::with_capacity(EVENTS)),
        })
    }

    /// Adds a socket that does not block. It is reported once for each change of its readiness, first for what it is
    /// ready for now.
    ///
    /// # Errors
    /// When the system refuses another one.
    pub fn add(&self, socket: &TcpStream, key: u64) -> io::Result<()> {
        let both = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key), both)?)
    }

    /// Removes a socket. What was reported of it before may still be passed on.
    pub fn remove(&self, socket: &TcpStream) {
        // A socket that is not in the set any longer needs no removal.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits until a socket is ready, or the time has passed; with `None` as long as it takes. Passes on which sockets
    /// are ready.
    pub fn wait(&self, most: Option<Duration>, mut ready: impl FnMut(u64, Readiness)) {
        let mut events = self.events.borrow_mut();
        events.clear();
        let most = most.map(timespec);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), most.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return,
            Err(error) => {
                tracing::error!(%error, "waiting for sockets failed");
                return;
            }
        }
        for event in events.iter() {
            let (key, flags) = (event.data.u64(), event.flags);
            if key != WOKEN {
                ready(key, Readiness::of(flags));
            }
        }
    }

    /// What ends a wait from another thread. There can be one.
    pub(crate) fn waker(&self) -> io::Result<Waker> {
        let woken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &woken, EventData::new_u64(WOKEN), flags)?;
        Ok(Waker(woken))
    }
}

impl Readiness {
    fn of(flags: EventFlags) -> Self {
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let closed = broken || flags.contains(EventFlags::RDHUP);
        Self {
            readable: closed || flags.contains(EventFlags::IN),
            writable: broken || flags.contains(EventFlags::OUT),
            closed,
        }
    }
}

impl Waker {
    /// Ends the wait, or the next one.
    pub(crate) fn wake(&self) -> io::Result<()> {
        // Nothing reads the count, as each write is an edge. It is full after 2^64 writes.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes())?;
        Ok(())
    }
}

/// A time as the kernel takes it, which counts whole milliseconds, rounded up; a day if it is longer: the wait ends early,
/// and is repeated.
fn timespec(time: Duration) -> Timespec {
    const DAY: u32 = 86_400;
    let seconds = u32::try_from(time.as_secs()).map_or(DAY, |seconds| seconds.min(DAY));
    Timespec {
        tv_sec: seconds.into(),
        tv_nsec: time.subsec_nanos().into(),
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
    fn a_wait_lasts_as_long_as_asked_for() {
        let sockets = Sockets::new().unwrap();
        for most in [Duration::from_micros(1), Duration::from_micros(2_500)] {
            let began = std::time::Instant::now();
            sockets.wait(Some(most), |_, _| panic!("no socket was added"));
            assert!(began.elapsed() >= most, "{most:?}");
        }
        let day = timespec(Duration::MAX);
        assert_eq!(day.tv_sec, 86_400, "more than the kernel takes");
    }

    #[test]
    fn another_thread_ends_a_wait() {
        let sockets = Sockets::new().unwrap();
        let waker = sockets.waker().unwrap();
        // The waker lives on: dropped before the wait begins, it takes its wake with it.
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake().unwrap());
            sockets.wait(None, |_, _| panic!("no socket was added"));
        });
    }
}
