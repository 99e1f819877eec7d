//! One connection: bytes from one socket to the other through a kernel pipe, without a copy into this process.

use std::cell::Cell;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::handshakes::HalfOpen;

/// Bytes moved at once: what a pipe holds.
const AT_ONCE: usize = 64 * 1024;

/// Relays a connection to its end, in both directions; when one side closes, the other is shut down. Once one side has
/// ended, the other is closed when it has sent no data for `linger`: an unreachable client would hold its slot until
/// the kernel closes it. `until_answered` is dropped when the first bytes have come back.
pub(crate) async fn carry(
    client: &TcpStream,
    backend: &TcpStream,
    bytes: &[AtomicU64; 2],
    linger: Duration,
    until_answered: Option<HalfOpen>,
) -> io::Result<()> {
    let moved = Cell::new(0u64);
    let mut there = pin!(one_way(client, backend, &bytes[0], &moved, None));
    let mut back = pin!(one_way(backend, client, &bytes[1], &moved, until_answered));
    let there_ended = tokio::select! {
        ended = &mut there => { ended?; true }
        ended = &mut back => { ended?; false }
    };
    loop {
        let before = moved.get();
        let rest = async {
            match there_ended {
                true => (&mut back).await,
                false => (&mut there).await,
            }
        };
        match tokio::time::timeout(linger, rest).await {
            Ok(ended) => return ended,
            Err(_) if moved.get() == before => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => {}
        }
    }
}

/// Makes the kernel close a connection whose peer is unreachable for this time: idle ones by probes (`SO_KEEPALIVE`),
/// others by unacknowledged data (`TCP_USER_TIMEOUT`, RFC 5482).
pub(crate) fn bound_silence(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    let part = (silence / 4).max(Duration::from_secs(1));
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, part)?;
    sockopt::set_tcp_keepintvl(stream, part)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    let millis = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, millis)?;
    Ok(())
}

async fn one_way(
    from: &TcpStream,
    to: &TcpStream,
    bytes: &AtomicU64,
    moved: &Cell<u64>,
    mut until_first: Option<HalfOpen>,
) -> io::Result<()> {
    let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    loop {
        let mut held = from
            .async_io(Interest::READABLE, || move_bytes(from, &into, AT_ONCE))
            .await?;
        if held == 0 {
            // The other direction goes on until it ends as well. A socket that is closed already needs no shutdown.
            let _ = shut(to);
            return Ok(());
        }
        bytes.fetch_add(held as u64, Ordering::Relaxed);
        drop(until_first.take());
        while held > 0 {
            held -= to
                .async_io(Interest::WRITABLE, || move_bytes(&out, to, held))
                .await?;
            moved.set(moved.get() + 1);
        }
    }
}

fn move_bytes(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    Ok(splice(from, None, to, None, most, flags)?)
}

/// Shuts down the sending side.
fn shut(stream: &TcpStream) -> io::Result<()> {
    let shared: OwnedFd = stream.as_fd().try_clone_to_owned()?;
    std::net::TcpStream::from(shared).shutdown(Shutdown::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_side_is_bounded_by_the_kernel() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        bound_silence(&stream, Duration::from_secs(60)).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), Duration::from_secs(15));
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 60_000);
    }
}
