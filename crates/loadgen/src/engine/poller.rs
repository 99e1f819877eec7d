//! `epoll` and a periodic timer, without unsafe code.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// The token that stands for the timer.
const TIMER: u64 = u64::MAX;
/// Ready sockets that one call reports.
const BATCH: usize = 256;

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// The token it was added with.
    pub token: u64,
    /// It can be read, or has failed.
    pub readable: bool,
    /// It can be written, or has failed.
    pub writable: bool,
}

/// Waits for sockets and for the next tick.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Poller {
    /// A poller that wakes up every `tick`.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn new(tick: Duration) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let period = Timespec {
            tv_sec: tick.as_secs() as i64,
            tv_nsec: i64::from(tick.subsec_nanos()),
        };
        timerfd_settime(
            &timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec {
                it_interval: period,
                it_value: period,
            },
        )?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(Self { epoll, timer })
    }

    /// Watches a socket for bytes to read.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn add(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(token),
            EventFlags::IN | EventFlags::RDHUP,
        )?)
    }

    /// Also watches (or no longer watches) a socket for room to write.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn watch_writes(&self, socket: impl AsFd, token: u64, on: bool) -> io::Result<()> {
        let mut flags = EventFlags::IN | EventFlags::RDHUP;
        flags.set(EventFlags::OUT, on);
        Ok(epoll::modify(
            &self.epoll,
            socket,
            EventData::new_u64(token),
            flags,
        )?)
    }

    /// Removes a socket; to be called before it is closed.
    pub fn remove(&self, socket: impl AsFd) {
        // The kernel may have removed the socket already; then there is nothing to do.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits until a socket is ready or a tick has passed. What is ready goes to `ready`; true when at least
    /// one tick has passed.
    ///
    /// # Errors
    /// When the system fails to wait.
    pub fn wait(&self, ready: &mut Vec<Readiness>) -> io::Result<bool> {
        ready.clear();
        let mut room = [const { MaybeUninit::<Event>::uninit() }; BATCH];
        let events = match epoll::wait(&self.epoll, &mut room, None) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let mut ticked = false;
        for event in events {
            let flags = event.flags;
            if event.data.u64() == TIMER {
                let mut count = [MaybeUninit::uninit(); 8];
                let _ = rustix::io::read(&self.timer, &mut count[..]);
                ticked = true;
                continue;
            }
            let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            ready.push(Readiness {
                token: event.data.u64(),
                readable: failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: failed || flags.contains(EventFlags::OUT),
            });
        }
        Ok(ticked)
    }
}
