//! SCTP of the kernel, one-to-one style (RFC 6458 §4): a stream socket whose writes are messages. One
//! Diameter message is one SCTP message (RFC 6733 §2.1), with the payload protocol identifier 46.
//!
//! Where the kernel has no SCTP, the creation of the socket fails with that reason; no other transport depends on it.

use std::io::{self, IoSlice, Read};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::unix::AsyncFd;

/// Payload protocol identifier of Diameter in clear text (RFC 6733 §11.4).
const PAYLOAD_PROTOCOL: u32 = 46;
const SOL_SCTP: i32 = 132;
const SCTP_DEFAULT_SEND_PARAM: i32 = 10;
/// The option behind `sctp_bindx` (RFC 6458 §9.1) in Linux.
const SCTP_SOCKOPT_BINDX_ADD: i32 = 100;
/// The option behind `sctp_connectx` (RFC 6458 §9.9) in Linux.
const SCTP_SOCKOPT_CONNECTX: i32 = 110;
/// Read at once.
const CHUNK: usize = 64 * 1024;

/// An association.
#[derive(Debug)]
pub(crate) struct SctpStream {
    socket: AsyncFd<Socket>,
    chunk: Box<[u8]>,
}

impl AsFd for SctpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl SctpStream {
    fn new(socket: Socket) -> io::Result<Self> {
        set_payload_protocol(&socket)?;
        Ok(Self {
            socket: register(socket)?,
            chunk: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    /// Connects to the addresses of one end point. The association moves to another of them, and to another of `bind`, where
    /// a path fails (RFC 9260 §5.4, §8.2).
    pub(crate) async fn connect(addresses: &[SocketAddr], bind: &[IpAddr]) -> io::Result<Self> {
        let Some(first) = addresses.first() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no address to connect to",
            ));
        };
        let kind = Type::STREAM.nonblocking().cloexec();
        let protocol = Some(Protocol::from(libc::IPPROTO_SCTP));
        let socket = Socket::new(Domain::for_address(*first), kind, protocol)
            .map_err(|error| io::Error::new(error.kind(), format!("the kernel has no SCTP: {error}")))?;
        if let Some((ip, others)) = bind.split_first() {
            socket.bind(&SocketAddr::new(*ip, 0).into())?;
            bind_also(&socket, others)?;
        }
        match set_addresses(&socket, SCTP_SOCKOPT_CONNECTX, addresses) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let stream = Self::new(socket)?;
        let _ready = stream.socket.writable().await?;
        match stream.socket.get_ref().take_error()? {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    /// The socket, off this thread's runtime.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket.into_inner()
    }

    /// An association that another thread has had, on this thread's runtime.
    pub(crate) fn resume(socket: Socket) -> io::Result<Self> {
        Ok(Self {
            socket: register(socket)?,
            chunk: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        as_ip(&self.socket.get_ref().local_addr()?)
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            if let Ok(read) = guard.try_io(|socket| socket.get_ref().read(&mut self.chunk)) {
                let read = read?;
                buffer.extend_from_slice(&self.chunk[..read]);
                return Poll::Ready(Ok(read));
            }
        }
    }

    /// Sends one message.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.socket.poll_write_ready(cx))?;
            if let Ok(written) = guard.try_io(|socket| socket.get_ref().send_vectored(slices)) {
                return Poll::Ready(written);
            }
        }
    }

    pub(crate) fn shutdown_write(&self) {
        let _ = self.socket.get_ref().shutdown(Shutdown::Write);
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct SctpListener(AsyncFd<Socket>);

impl SctpListener {
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        Ok(Self(register(socket)?))
    }

    pub(crate) async fn accept(&self) -> io::Result<(SctpStream, SocketAddr)> {
        loop {
            let mut guard = self.0.readable().await?;
            if let Ok(accepted) = guard.try_io(|socket| socket.get_ref().accept()) {
                let (socket, remote) = accepted?;
                socket.set_nonblocking(true)?;
                return Ok((SctpStream::new(socket)?, as_ip(&remote)?));
            }
        }
    }
}

fn as_ip(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    address
        .as_socket()
        .ok_or_else(|| io::Error::other("an SCTP address is not one of the Internet's"))
}

/// Puts a socket on this thread's runtime.
#[allow(unsafe_code)]
fn register(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: a `Socket` owns its descriptor: it is open, stays the same and is closed when the socket is
    // dropped, which happens with the `AsyncFd` it is moved into.
    Ok(unsafe { AsyncFd::register(socket) }?)
}

/// Marks what is sent as Diameter (`SCTP_DEFAULT_SEND_PARAM`, RFC 6458 §8.1.13).
fn set_payload_protocol(socket: &Socket) -> io::Result<()> {
    // `struct sctp_sndrcvinfo` (RFC 6458 §5.3.2) as Linux lays it out: stream, ssn and flags of 16 bits, two bytes of padding,
    // then ppid, context, time to live, tsn, cumulative tsn and association of 32 bits. All but the ppid are 0.
    let mut parameters = [0; 32];
    parameters[8..12].copy_from_slice(&PAYLOAD_PROTOCOL.to_be_bytes());
    set_option(socket, SCTP_DEFAULT_SEND_PARAM, &parameters)
}

/// Further addresses of a bound socket, with its port.
pub(crate) fn bind_also(socket: &Socket, others: &[IpAddr]) -> io::Result<()> {
    let port = as_ip(&socket.local_addr()?)?.port();
    for ip in others {
        // One by one, so that an error names the address.
        let address = SocketAddr::new(*ip, port);
        set_addresses(socket, SCTP_SOCKOPT_BINDX_ADD, &[address])
            .map_err(|error| io::Error::new(error.kind(), format!("{ip}: {error}")))?;
    }
    Ok(())
}

fn set_addresses(socket: &Socket, option: i32, addresses: &[SocketAddr]) -> io::Result<()> {
    let packed: Vec<u8> = addresses.iter().flat_map(|address| packed(*address)).collect();
    set_option(socket, option, &packed)
}

/// An address as `struct sockaddr_in` or `struct sockaddr_in6`, without padding behind it.
fn packed(address: SocketAddr) -> Vec<u8> {
    let (family, port) = match address {
        SocketAddr::V4(_) => (libc::AF_INET, address.port()),
        SocketAddr::V6(_) => (libc::AF_INET6, address.port()),
    };
    let mut bytes = (family as libc::sa_family_t).to_ne_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend(v6.flowinfo().to_be_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

/// Sets an option of SCTP.
#[allow(unsafe_code)]
fn set_option(socket: &Socket, option: i32, value: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the pointer and the length are those of one live slice, which the kernel only reads during the call; the
    // descriptor is open because `socket` owns it.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            SOL_SCTP,
            option,
            value.as_ptr().cast(),
            length,
        )
    };
    // `SCTP_SOCKOPT_CONNECTX` returns the number of the association.
    match outcome {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_packed_as_the_kernel_reads_them() {
        let v4 = packed("192.0.2.1:3868".parse().unwrap());
        assert_eq!(v4.len(), size_of::<libc::sockaddr_in>());
        assert_eq!(v4[2..8], [0x0f, 0x1c, 192, 0, 2, 1]);
        let v6 = packed("[2001:db8::1]:3868".parse().unwrap());
        assert_eq!(v6.len(), size_of::<libc::sockaddr_in6>());
        assert_eq!(
            (v6[2..4].to_vec(), v6[8..12].to_vec(), v6[23]),
            (vec![0x0f, 0x1c], vec![0x20, 1, 0x0d, 0xb8], 1)
        );
        // As the library makes them.
        let made = socket2::SockAddr::from("[2001:db8::1]:3868".parse::<SocketAddr>().unwrap());
        assert_eq!(made.len() as usize, v6.len());
    }
}
