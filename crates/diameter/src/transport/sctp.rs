//! SCTP of the kernel, one-to-one style (RFC 6458 §4): a stream socket whose writes are messages. One
//! Diameter message is one SCTP message (RFC 6733 §2.1), with the payload protocol identifier 46.
//!
//! Where the kernel has no SCTP, making the socket fails and the error says so; nothing else depends on it.

use std::io::{self, IoSlice, Read};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::unix::AsyncFd;

/// Payload protocol identifier of Diameter in clear text (RFC 6733 §11.4).
const PAYLOAD_PROTOCOL: u32 = 46;
/// Read at once.
const CHUNK: usize = 64 * 1024;

/// An association.
#[derive(Debug)]
pub(crate) struct SctpStream {
    socket: AsyncFd<Socket>,
    chunk: Box<[u8]>,
}

impl SctpStream {
    fn new(socket: Socket) -> io::Result<Self> {
        set_payload_protocol(&socket)?;
        Ok(Self {
            socket: register(socket)?,
            chunk: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    pub(crate) async fn connect(address: SocketAddr, bind: Option<IpAddr>) -> io::Result<Self> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(
            Domain::for_address(address),
            kind,
            Some(Protocol::from(libc::IPPROTO_SCTP)),
        )
        .map_err(|error| io::Error::new(error.kind(), format!("the kernel has no SCTP: {error}")))?;
        if let Some(ip) = bind {
            socket.bind(&SocketAddr::new(ip, 0).into())?;
        }
        match socket.connect(&address.into()) {
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
#[allow(unsafe_code)]
fn set_payload_protocol(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // RFC 6458 §5.3.2, as Linux lays it out (`struct sctp_sndrcvinfo`).
    #[repr(C)]
    #[derive(Default)]
    struct SendParameters {
        stream: u16,
        ssn: u16,
        flags: u16,
        ppid: u32,
        context: u32,
        time_to_live: u32,
        tsn: u32,
        cumulative_tsn: u32,
        association: i32,
    }
    const SOL_SCTP: i32 = 132;
    const SCTP_DEFAULT_SEND_PARAM: i32 = 10;
    let parameters = SendParameters {
        ppid: PAYLOAD_PROTOCOL.to_be(),
        ..SendParameters::default()
    };
    // SAFETY: the pointer and the length are those of one live, initialised value, which the kernel only
    // reads during the call; the descriptor is open because `socket` owns it.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            SOL_SCTP,
            SCTP_DEFAULT_SEND_PARAM,
            (&raw const parameters).cast(),
            size_of::<SendParameters>() as libc::socklen_t,
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
