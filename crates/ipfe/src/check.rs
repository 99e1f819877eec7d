//! Asks message processors whether they take connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use telemetry::{AlarmKind, Alarms, Severity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backend::{Backend, Set, State};
use crate::config::Check;

/// Bytes of an answer that are read: its first line says all.
const MOST: u64 = 64;

/// A processor is congested.
pub(crate) const STASIS: AlarmKind = AlarmKind {
    number: 5005,
    name: "IPFE Backend in Stasis",
    severity: Severity::Minor,
    text: "A congested message processor gets no new connections and keeps those it has.",
    advice: "Add message processors, or lower the load; see the processor's own alarm 22200.",
};
/// A processor does not answer. The number is ours: the benchmarking guide gives none.
pub(crate) const UNAVAILABLE: AlarmKind = AlarmKind {
    number: 10510,
    name: "IPFE Backend Unavailable",
    severity: Severity::Major,
    text: "A message processor does not answer: new connections go to the others.",
    advice: "Check that the processor runs and that its admin endpoint answers at `health`.",
};

/// Looks after a processor until the front end ends.
pub(crate) async fn look_after(set: Arc<Set>, backend: Arc<Backend>, check: Check, alarms: Alarms) {
    let mut every = tokio::time::interval(check.interval.duration());
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let instance = format!("{} of {}", backend.name, set.name);
    loop {
        every.tick().await;
        let before = backend.state();
        let found = ask(&backend, check.timeout.duration()).await;
        backend.found(found, check.failures);
        let now = backend.state();
        if now != before {
            tracing::info!(
                backend = backend.name,
                set = set.name,
                state = now.as_str(),
                "message processor"
            );
        }
        alarms.set(
            &STASIS,
            &instance,
            (now == State::Stasis).then(|| "it is not ready for more".to_owned()),
        );
        alarms.set(
            &UNAVAILABLE,
            &instance,
            (now == State::Down).then(|| format!("{} does not answer", backend.address)),
        );
    }
}

/// How it stands; none when it does not answer.
async fn ask(backend: &Backend, timeout: Duration) -> Option<State> {
    let answer = async {
        match backend.admin {
            Some(admin) => ready(admin).await,
            None => TcpStream::connect(backend.address).await.map(|_| State::Up),
        }
    };
    tokio::time::timeout(timeout, answer).await.ok()?.ok()
}

/// What `/readyz` says.
async fn ready(admin: SocketAddr) -> std::io::Result<State> {
    let mut stream = TcpStream::connect(admin).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    let status = answer.split(|byte| *byte == b' ').nth(1);
    match status {
        Some(b"200") => Ok(State::Up),
        Some(b"503") => Ok(State::Stasis),
        _ => Err(std::io::ErrorKind::InvalidData.into()),
    }
}
