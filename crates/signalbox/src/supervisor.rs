//! States for systemd (`Type=notify`, sd_notify(3)): ready, reloading, stopping, and each few seconds that no worker hangs.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use telemetry::Health;

/// The socket in `NOTIFY_SOCKET`; without one nothing is sent.
#[derive(Debug, Default)]
pub(crate) struct Supervisor(Option<UnixDatagram>);

impl Supervisor {
    pub(crate) fn of_environment() -> Self {
        Self(
            std::env::var("NOTIFY_SOCKET")
                .ok()
                .and_then(|name| connected(&name).ok()),
        )
    }

    /// Sends a state, such as `READY=1`. The function runs on where the supervisor does not listen.
    pub(crate) fn notify(&self, state: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(state.as_bytes());
        }
    }

    /// Reports a reload until the returned value is dropped.
    pub(crate) fn reloading(&self) -> Reloading<'_> {
        // The supervisor orders states by this clock (`Type=notify-reload`).
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        Reloading(self)
    }

    /// Half of the time after which the supervisor takes silence for a hang (`WatchdogSec`); `None` without one.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.0.as_ref()?;
        // The variables may have been inherited from a process that a supervisor watches.
        let process = std::env::var("WATCHDOG_PID").ok();
        if process.is_some_and(|id| id.parse() != Ok(std::process::id())) {
            return None;
        }
        let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
        (micros > 1).then(|| Duration::from_micros(micros / 2))
    }

    /// Reports to the supervisor that the workers of all functions live. Nothing is sent while one hangs: then it restarts us.
    pub(crate) fn beat<'a>(&self, mut all: impl Iterator<Item = &'a Health>) {
        if all.all(|health| health.not_alive().is_empty()) {
            self.notify("WATCHDOG=1");
        }
    }
}

/// A reload in progress. The end of one that was refused is reported as well: the function runs on.
pub(crate) struct Reloading<'a>(&'a Supervisor);

impl Drop for Reloading<'_> {
    fn drop(&mut self) {
        self.0.notify("READY=1");
    }
}

/// A socket by its path, or by its abstract name after `@`.
fn connected(name: &str) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    socket.connect_addr(&address)?;
    // A supervisor that reads nothing must not hold a function up.
    socket.set_nonblocking(true)?;
    Ok(socket)
}
