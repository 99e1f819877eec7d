//! Queries over TCP (RFC 7766): pipelined, answered in their order.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use function::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Desk;
use super::places::{Admission, Place, Places};
use crate::message::Transport;

/// Octets of a query. What is longer is none that this server would answer.
const MOST_OCTETS: usize = 4_096;
/// Octets of the length in front of a message (RFC 1035 §4.2.2).
const LENGTH: usize = 2;
/// Octets of answers that are written at once.
const MOST_OUT: usize = 64 * 1024;

/// Why a connection has ended.
enum End {
    /// The client has ended it, or is unreachable.
    Closed,
    Idle,
    Evicted,
    Broken,
    Stopped,
}

/// Accepts connections until the task is aborted.
pub(crate) async fn accept(listener: TcpListener, desk: Rc<Desk>, shutdown: Shutdown) {
    let places = Rc::new(Places::default());
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Without descriptors the next attempt would fail at once.
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let bounds = desk.live.load().config.tcp.clone();
        let connections = &desk.meters.connections;
        let place = match places.admit(peer.ip(), &bounds) {
            Admission::Place(place) => place,
            Admission::Evicted(place) => {
                connections.evicted.inc();
                place
            }
            Admission::TooMany => {
                connections.refused.inc();
                continue;
            }
        };
        connections.accepted.inc();
        let (desk, shutdown) = (desk.clone(), shutdown.clone());
        tokio::task::spawn_local(async move {
            desk.meters.open.inc();
            match carry(stream, peer, &desk, &place, &shutdown).await {
                Ok(End::Idle) => desk.meters.connections.idle.inc(),
                Ok(End::Broken) => desk.meters.connections.broken.inc(),
                // Eviction was counted where it happened.
                Ok(End::Closed | End::Evicted | End::Stopped) | Err(_) => {}
            }
            desk.meters.open.dec();
        });
    }
}

async fn carry(
    mut stream: TcpStream,
    peer: SocketAddr,
    desk: &Desk,
    place: &Place,
    shutdown: &Shutdown,
) -> io::Result<End> {
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (Vec::new(), Vec::new());
    loop {
        let idle = desk.live.load().config.tcp.idle.duration();
        // From one whole query to the next: a client that sends an octet now and then is idle as well.
        let turn = async {
            // What has no answer is not a query: the client is idle still.
            while output.is_empty() {
                while !holds_message(&input) {
                    if stream.read_buf(&mut input).await? == 0 {
                        return Ok(Some(End::Closed));
                    }
                    if length(&input).is_some_and(|length| length > MOST_OCTETS) {
                        return Ok(Some(End::Broken));
                    }
                }
                answer(&mut input, &mut output, desk, peer);
            }
            place.used();
            stream.write_all(&output).await?;
            output.clear();
            Ok::<_, io::Error>(None)
        };
        let end = tokio::select! {
            () = shutdown.fired() => Some(End::Stopped),
            () = place.evicted() => Some(End::Evicted),
            done = tokio::time::timeout(idle, turn) => match done {
                Ok(turn) => turn?,
                Err(_) => Some(End::Idle),
            },
        };
        if let Some(end) = end {
            return Ok(end);
        }
        // An idle connection holds no memory for what it may send.
        if input.is_empty() {
            input = Vec::new();
            output = Vec::new();
        }
    }
}

/// The length of the message that begins.
fn length(input: &[u8]) -> Option<usize> {
    match input {
        [high, low, ..] => Some(usize::from(u16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

fn holds_message(input: &[u8]) -> bool {
    length(input).is_some_and(|length| input.len() >= LENGTH + length)
}

/// Answers the messages that are whole.
fn answer(input: &mut Vec<u8>, output: &mut Vec<u8>, desk: &Desk, peer: SocketAddr) {
    let mut done = 0;
    while output.len() < MOST_OUT {
        let rest = input.get(done..).unwrap_or_default();
        let Some(message) = length(rest).and_then(|length| rest.get(LENGTH..LENGTH + length)) else {
            break;
        };
        done += LENGTH + message.len();
        desk.answer(message, peer, Transport::Tcp, |answer| {
            if let Ok(length) = u16::try_from(answer.len())
                && length > 0
            {
                output.extend_from_slice(&length.to_be_bytes());
                output.extend_from_slice(answer);
            }
        });
    }
    input.drain(..done);
}
