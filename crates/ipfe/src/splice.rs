//! One connection: bytes from one socket to the other, through a pipe of the kernel. Nothing of them comes into
//! this process.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Bytes moved at once: what a pipe holds.
const AT_ONCE: usize = 64 * 1024;

/// Carries a connection to its end, both ways; what one side closes is closed on the other.
pub(crate) async fn carry(client: &TcpStream, backend: &TcpStream, bytes: &[AtomicU64; 2]) -> io::Result<()> {
    tokio::try_join!(
        one_way(client, backend, &bytes[0]),
        one_way(backend, client, &bytes[1])
    )?;
    Ok(())
}

async fn one_way(from: &TcpStream, to: &TcpStream, bytes: &AtomicU64) -> io::Result<()> {
    let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    loop {
        let mut held = from
            .async_io(Interest::READABLE, || move_bytes(from, &into, AT_ONCE))
            .await?;
        if held == 0 {
            // The other direction goes on until it ends as well. One that is gone already needs no shutdown.
            let _ = shut(to);
            return Ok(());
        }
        bytes.fetch_add(held as u64, Ordering::Relaxed);
        while held > 0 {
            held -= to
                .async_io(Interest::WRITABLE, || move_bytes(&out, to, held))
                .await?;
        }
    }
}

fn move_bytes(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    Ok(splice(from, None, to, None, most, flags)?)
}

/// Says that nothing more will come.
fn shut(stream: &TcpStream) -> io::Result<()> {
    let shared: OwnedFd = stream.as_fd().try_clone_to_owned()?;
    std::net::TcpStream::from(shared).shutdown(Shutdown::Write)
}
