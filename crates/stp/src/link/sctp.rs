//! SCTP of the kernel, one-to-one style (RFC 6458 §4). Each M3UA message is one SCTP message with payload protocol identifier 3
//! (RFC 4666 §7.1); management uses stream 0, DATA one of the others by link selection (§1.4.7). Messages of M2PA have identifier 5;
//! link status uses stream 0, user data stream 1 (RFC 4165 §2.1).
//!
//! Where the kernel has no SCTP, sockets cannot be created; links over TCP do not depend on it.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};

use libc::{IPPROTO_SCTP, c_int, socklen_t};
use socket2::{Domain, Protocol, Socket, Type};
use ss7_proto::m2pa;
use ss7_proto::m3ua::{HEADER_LEN, Message, PPID};
use tokio::io::unix::AsyncFd;

use super::framing::Framing;

/// Streams that are asked for: one for management, one for each link selection of ITU.
const STREAMS: u16 = 17;
/// Associations that wait to be accepted.
const BACKLOG: c_int = 1_024;
/// Octets that are read at once.
const CHUNK: usize = 64 * 1024;

const SCTP_INITMSG: c_int = 2;
const SCTP_NODELAY: c_int = 3;
const SCTP_DEFAULT_SEND_PARAM: c_int = 10;
const SCTP_STATUS: c_int = 14;
/// Each message comes with its stream (RFC 6458 §8.1.29), in a control message of this type (§5.3.5).
const SCTP_RECVRCVINFO: c_int = 32;
const SCTP_RCVINFO: c_int = 3;
/// The option behind `sctp_bindx` (RFC 6458 §9.1) in Linux.
const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;
/// The option behind `sctp_connectx` (RFC 6458 §9.9) in Linux.
const SCTP_SOCKOPT_CONNECTX: c_int = 110;

/// An association.
pub(super) struct Sctp {
    socket: AsyncFd<Socket>,
    /// Streams to the peer.
    streams: u16,
    /// The stream of the last message, and its payload protocol identifier.
    stream: Cell<(u16, u32)>,
}

impl Sctp {
    fn new(socket: AsyncFd<Socket>) -> io::Result<Self> {
        let streams = streams(socket.get_ref())?;
        set_stream(socket.get_ref(), 0, PPID)?;
        set_option(socket.get_ref(), SCTP_RECVRCVINFO, &1_u32.to_ne_bytes())?;
        Ok(Self {
            socket,
            streams,
            stream: Cell::new((0, PPID)),
        })
    }

    /// Connects to the addresses of one peer; the association moves to another of them where a path fails.
    pub(super) async fn connect(addresses: &[SocketAddr]) -> io::Result<Self> {
        let first = addresses.first().copied();
        let first = first.ok_or_else(|| io::Error::other("the peer has no address"))?;
        let socket = create(first)?;
        let all: Vec<u8> = addresses.iter().flat_map(|address| packed(*address)).collect();
        match set_option(&socket, SCTP_SOCKOPT_CONNECTX, &all) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let socket = register(socket)?;
        let _ready = socket.writable().await?;
        match socket.get_ref().take_error()? {
            Some(error) => Err(error),
            None => Self::new(socket),
        }
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await.map(|mut ready| ready.retain_ready())
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await.map(|mut ready| ready.retain_ready())
    }

    /// Appends what can be read; 0 at the end.
    pub(super) fn read(&self, into: &mut Framing) -> io::Result<usize> {
        let start = into.octets.len();
        into.octets.resize(start + CHUNK, 0);
        let free = into.octets.get_mut(start..).unwrap_or_default();
        let read = self
            .socket
            .try_io(tokio::io::Interest::READABLE, |socket| receive(socket, free));
        let (count, stream, is_whole) = read.as_ref().map_or((0, None, false), |read| *read);
        into.octets.truncate(start + count);
        into.stream = stream;
        into.is_whole = Some(is_whole);
        read.map(|(count, ..)| count)
    }

    /// Sends the first message of `octets`.
    pub(super) fn write(&self, octets: &[u8]) -> io::Result<usize> {
        let length = octets
            .get(4..HEADER_LEN)
            .and_then(|length| length.try_into().ok());
        let length = length.map_or(octets.len(), |length| u32::from_be_bytes(length) as usize);
        let message = octets.get(..length).unwrap_or(octets);
        let wanted = if let Ok(message) = m2pa::Message::parse(message) {
            (message.stream().min(self.streams.saturating_sub(1)), m2pa::PPID)
        } else {
            let data = Message::parse(message).ok().and_then(|message| message.data());
            (data.map_or(0, |data| data.stream(self.streams)), PPID)
        };
        if wanted != self.stream.get() {
            set_stream(self.socket.get_ref(), wanted.0, wanted.1)?;
            self.stream.set(wanted);
        }
        self.socket
            .try_io(tokio::io::Interest::WRITABLE, |socket| socket.send(message))
    }
}

/// A listening end point, which may have several addresses.
pub(crate) struct SctpListener(AsyncFd<Socket>);

/// As [`SctpListener`], for any thread to take.
pub(crate) struct SctpBound(Socket);

impl SctpBound {
    /// Binds and listens. Several may have the same addresses: the kernel spreads associations over them.
    pub(crate) fn bind(address: SocketAddr, others: &[IpAddr]) -> io::Result<(Self, SocketAddr)> {
        let socket = create(address)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        let port = socket
            .local_addr()?
            .as_socket()
            .map_or(address.port(), |bound| bound.port());
        for ip in others {
            set_option(
                &socket,
                SCTP_SOCKOPT_BINDX_ADD,
                &packed(SocketAddr::new(*ip, port)),
            )
            .map_err(|error| io::Error::new(error.kind(), format!("{ip}: {error}")))?;
        }
        socket.listen(BACKLOG)?;
        Ok((Self(socket), SocketAddr::new(address.ip(), port)))
    }

    pub(crate) fn into_listener(self) -> io::Result<SctpListener> {
        register(self.0).map(SctpListener)
    }
}

impl SctpListener {
    pub(super) async fn accept(&self) -> io::Result<(Sctp, SocketAddr)> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(accepted) = ready.try_io(|socket| socket.get_ref().accept()) {
                let (socket, peer) = accepted?;
                socket.set_nonblocking(true)?;
                set_option(&socket, SCTP_NODELAY, &1_u32.to_ne_bytes())?;
                let peer = peer
                    .as_socket()
                    .ok_or_else(|| io::Error::other("the peer has no IP address"))?;
                return Ok((Sctp::new(register(socket)?)?, peer));
            }
        }
    }
}

/// Whether a process listens at an address over SCTP; not where the kernel has none. Two processes of one user would share the port.
#[must_use]
pub fn is_taken(address: SocketAddr) -> bool {
    let bind = || {
        let protocol = Some(Protocol::from(IPPROTO_SCTP));
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, protocol)?;
        // Without `SO_REUSEPORT` every listener is in the way, and associations that have ended are not. Linux refuses a taken
        // port at `listen`.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(1)
    };
    bind().is_err_and(|error: io::Error| error.kind() == io::ErrorKind::AddrInUse)
}

fn create(address: SocketAddr) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let protocol = Some(Protocol::from(IPPROTO_SCTP));
    let socket = Socket::new(Domain::for_address(address), kind, protocol)
        .map_err(|error| io::Error::new(error.kind(), format!("the kernel has no SCTP: {error}")))?;
    // `struct sctp_initmsg` (RFC 6458 §8.1.3): outbound streams, inbound streams, attempts, timeout; 0 for the system's.
    let [low, high] = STREAMS.to_ne_bytes();
    set_option(&socket, SCTP_INITMSG, &[low, high, low, high, 0, 0, 0, 0])?;
    set_option(&socket, SCTP_NODELAY, &1_u32.to_ne_bytes())?;
    Ok(socket)
}

/// Sets stream and payload protocol identifier of what is sent from now on (RFC 6458 §8.1.13).
fn set_stream(socket: &Socket, stream: u16, ppid: u32) -> io::Result<()> {
    // `struct sctp_sndrcvinfo` (RFC 6458 §5.3.2) as Linux lays it out: stream, ssn and flags of 16 bits, two octets of padding,
    // then ppid, context, time to live, tsn, cumulative tsn and association of 32 bits.
    let mut parameters = [0; 32];
    parameters[..2].copy_from_slice(&stream.to_ne_bytes());
    parameters[8..12].copy_from_slice(&ppid.to_be_bytes());
    set_option(socket, SCTP_DEFAULT_SEND_PARAM, &parameters)
}

/// An address as `struct sockaddr_in` or `struct sockaddr_in6`.
fn packed(address: SocketAddr) -> Vec<u8> {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let mut octets = (family as libc::sa_family_t).to_ne_bytes().to_vec();
    octets.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            octets.extend(v4.ip().octets());
            octets.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            octets.extend(v6.flowinfo().to_be_bytes());
            octets.extend(v6.ip().octets());
            octets.extend(v6.scope_id().to_ne_bytes());
        }
    }
    octets
}

/// Puts a socket on this thread's runtime.
#[allow(unsafe_code)]
fn register(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: a `Socket` owns its descriptor: it is open, stays the same and is closed when the socket is dropped, which
    // happens with the `AsyncFd` it is moved into.
    Ok(unsafe { AsyncFd::register(socket) }?)
}

#[allow(unsafe_code)]
fn set_option(socket: &Socket, option: c_int, value: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let length = socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: pointer and length are those of one live slice, which the kernel only reads during the call; the descriptor is
    // open because `socket` owns it.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            IPPROTO_SCTP,
            option,
            value.as_ptr().cast(),
            length,
        )
    };
    // `SCTP_SOCKOPT_CONNECTX` returns the number of the association.
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Reads a message, or a part of one, the stream that it came by, and whether it is the end of the message (RFC 6458 §3.1.3).
#[allow(unsafe_code)]
fn receive(socket: &Socket, into: &mut [u8]) -> io::Result<(usize, Option<u16>, bool)> {
    use std::os::fd::AsRawFd as _;
    let mut octets = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // Room for the information about one message, aligned for its header.
    let mut control = [0_u64; 16];
    // SAFETY: all fields of `msghdr` are integers and pointers, for which 0 is a value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut octets;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header names one live buffer for octets and one for control messages, each with its length; the descriptor is
    // open because `socket` owns it.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let mut stream = None;
    // SAFETY: the kernel has written control messages and their whole length into the header, whose buffer lives; a control message
    // of this type has `struct sctp_rcvinfo`, which begins with the stream.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(one) = next.as_ref() {
            if (one.cmsg_level, one.cmsg_type) == (IPPROTO_SCTP, SCTP_RCVINFO) {
                stream = Some(libc::CMSG_DATA(next).cast::<u16>().read_unaligned());
            }
            next = libc::CMSG_NXTHDR(&raw const header, next);
        }
    }
    Ok((count, stream, header.msg_flags & libc::MSG_EOR != 0))
}

/// How many streams lead to the peer (`SCTP_STATUS`, RFC 6458 §8.2.1).
#[allow(unsafe_code)]
fn streams(socket: &Socket) -> io::Result<u16> {
    use std::os::fd::AsRawFd as _;
    // `struct sctp_status`: association, state, window of 32 bits; unacknowledged, pending, inbound, outbound of 16 bits.
    let mut status = [0_u8; 256];
    let mut length = status.len() as socklen_t;
    // SAFETY: pointer and length are those of one live array, which the kernel writes within its length; the descriptor is
    // open because `socket` owns it.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            IPPROTO_SCTP,
            SCTP_STATUS,
            status.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u16::from_ne_bytes([status[18], status[19]]))
}
