//! The socket of an association.

use std::io;

use tokio::net::TcpStream;

use super::framing::Framing;
use super::sctp::Sctp;

/// Octets that are read at once.
const CHUNK: usize = 64 * 1024;

/// A connected socket.
pub(super) enum Socket {
    Tcp(TcpStream),
    Sctp(Sctp),
}

impl Socket {
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.readable().await,
            Self::Sctp(sctp) => sctp.readable().await,
        }
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.writable().await,
            Self::Sctp(sctp) => sctp.writable().await,
        }
    }

    /// Appends what can be read; 0 at the end.
    pub(super) fn read(&self, into: &mut Framing) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => {
                into.octets.reserve(CHUNK);
                tcp.try_read_buf(&mut into.octets)
            }
            Self::Sctp(sctp) => sctp.read(into),
        }
    }

    /// Writes some of `octets`: over SCTP the first message.
    pub(super) fn write(&self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.try_write(octets),
            Self::Sctp(sctp) => sctp.write(octets),
        }
    }
}
