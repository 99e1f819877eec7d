//! Checks at the admin endpoint of message processors whether they take connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use function::live::Live;
use telemetry::{AlarmKind, Alarms, Severity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backend::{Backend, State};
use crate::config::Config;

/// Bytes of an answer that are read.
const MOST: u64 = 2048;

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
    advice: "Check that the processor runs and that its admin endpoint answers at `/readyz`.",
};

/// Checks a processor until it is removed or the front end ends.
pub(crate) async fn look_after(
    set: String,
    backend: Arc<Backend>,
    live: Arc<Live<Config, ()>>,
    alarms: Alarms,
) {
    let instance = format!("{} of {set}", backend.name);
    while !backend.is_removed() {
        let check = live.load().config.check.clone();
        let before = backend.state();
        let found = ask(&backend, check.timeout.duration()).await;
        if backend.is_removed() {
            break;
        }
        backend.found(found, check.failures);
        let now = backend.state();
        if now != before {
            let state = now.as_str();
            tracing::info!(backend = backend.name, set, state, "message processor");
        }
        let stasis = (now == State::Stasis).then(|| "its /readyz does not answer 200".to_owned());
        alarms.set(&STASIS, &instance, stasis);
        let down = (now == State::Down).then(|| format!("{} does not answer", backend.address));
        alarms.set(&UNAVAILABLE, &instance, down);
        tokio::time::sleep(check.interval.duration()).await;
    }
    alarms.clear(&STASIS, &instance);
    alarms.clear(&UNAVAILABLE, &instance);
}

/// Returns its state; none when it does not answer.
async fn ask(backend: &Backend, timeout: Duration) -> Option<State> {
    let answer = async {
        match backend.admin {
            Some(admin) => ready(admin).await,
            None => TcpStream::connect(backend.address).await.map(|_| State::Up),
        }
    };
    tokio::time::timeout(timeout, answer).await.ok()?.ok()
}

/// The status of `/readyz`.
async fn ready(admin: SocketAddr) -> std::io::Result<State> {
    let answer = get(admin, "/readyz").await?;
    match answer.split(|byte| *byte == b' ').nth(1) {
        Some(b"200") => Ok(State::Up),
        Some(b"503") => Ok(State::Stasis),
        _ => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

/// The answer of an admin endpoint, with its head, or the beginning of a long one.
pub(crate) async fn get(admin: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(admin).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    Ok(answer)
}
