//! A non-blocking stream socket, with TLS or without: reads in large chunks, writes the output of a connection machine.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Type};

use super::tls::Session;
use super::{ClientTls, Poller, ServerTls};

/// Kernel buffer of each direction, so that a burst of answers does not stop the sender.
const KERNEL_BUFFER: usize = 1 << 20;

/// Outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes are in the buffer.
    Bytes(usize),
    /// No bytes for now.
    Nothing,
    /// The peer has closed, or the connection has failed.
    Closed,
}

/// A non-blocking stream socket.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    tls: Option<Box<Session>>,
    written: usize,
    waits_for_room: bool,
    /// Bytes read so far, after decryption.
    pub bytes_in: u64,
    /// Bytes written so far, before encryption.
    pub bytes_out: u64,
}

impl Socket {
    /// Begins to connect; bytes may be written at once and leave when the connection is established.
    ///
    /// # Errors
    /// When the system refuses a socket, or knows at once that the peer cannot be reached.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        Self::connect_from(None, peer)
    }

    /// As [`Socket::connect`], from an address of this machine.
    ///
    /// # Errors
    /// As there, and when the machine does not have the address.
    pub fn connect_from(source: Option<IpAddr>, peer: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        if let Some(source) = source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        match socket.connect(&peer.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Self::new(socket.into())
    }

    /// Takes over an accepted stream.
    ///
    /// # Errors
    /// When the system refuses the options.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let options = socket2::SockRef::from(&stream);
        // The kernel may give a smaller buffer; then a burst waits a little.
        let _ = options.set_recv_buffer_size(KERNEL_BUFFER);
        let _ = options.set_send_buffer_size(KERNEL_BUFFER);
        Ok(Self {
            stream,
            tls: None,
            written: 0,
            waits_for_room: false,
            bytes_in: 0,
            bytes_out: 0,
        })
    }

    /// Starts TLS as a client that verifies the peer by its address.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn secure(mut self, config: &ClientTls, peer: SocketAddr) -> io::Result<Self> {
        self.tls = Some(Box::new(Session::client(config, peer.ip())?));
        Ok(self)
    }

    /// Starts TLS as a server.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn secured(mut self, config: &ServerTls) -> io::Result<Self> {
        self.tls = Some(Box::new(Session::server(config)?));
        Ok(self)
    }

    /// Reads available bytes into `buffer`. With TLS, half of the buffer is used.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Received {
        if self.tls.is_some() {
            return self.receive_records(buffer);
        }
        loop {
            match (&self.stream).read(buffer) {
                Ok(0) => return Received::Closed,
                Ok(count) => {
                    self.bytes_in += count as u64;
                    return Received::Bytes(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Received::Closed,
            }
        }
    }

    fn receive_records(&mut self, buffer: &mut [u8]) -> Received {
        let Some(tls) = &mut self.tls else {
            return Received::Closed;
        };
        loop {
            let read = tls.receive(&mut &self.stream, buffer);
            // The session answers handshake messages by itself; output without room leaves with the next flush.
            match tls.flush(&mut &self.stream) {
                Err(error) if !is_for_later(&error) => return Received::Closed,
                _ => {}
            }
            return match read {
                Ok(None) => Received::Closed,
                // Handshake records carry no application data.
                Ok(Some(0)) => continue,
                Ok(Some(count)) => {
                    self.bytes_in += count as u64;
                    Received::Bytes(count)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Received::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => Received::Closed,
            };
        }
    }

    /// Writes the bytes in `out`, as far as there is room, and removes them. Registers for the event that there is room
    /// again.
    ///
    /// # Errors
    /// When the connection has failed.
    pub fn flush(&mut self, out: &mut Vec<u8>, poller: &Poller, token: u64) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.say(out)?;
            self.bytes_out += out.len() as u64;
            out.clear();
            let blocked = loop {
                match tls.flush(&mut &self.stream) {
                    Ok(()) => break false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_for_later(&error) => break true,
                    Err(error) => return Err(error),
                }
            };
            return self.watch_room(blocked, poller, token);
        }
        while self.written < out.len() {
            match (&self.stream).write(&out[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    self.bytes_out += count as u64;
                }
                Err(error) if is_for_later(&error) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let blocked = self.written < out.len();
        // While the peer reads less than comes, the buffer is never empty. What is written makes room when it is the larger part:
        // then each byte moves once at most, and the buffer holds twice what is unsent at most.
        if self.written > out.len() / 2 {
            out.drain(..self.written);
            self.written = 0;
        }
        self.watch_room(blocked, poller, token)
    }

    /// Registers or unregisters for the event that there is room.
    fn watch_room(&mut self, blocked: bool, poller: &Poller, token: u64) -> io::Result<()> {
        if blocked != self.waits_for_room {
            self.waits_for_room = blocked;
            poller.watch_writes(&self.stream, token, blocked)?;
        }
        Ok(())
    }

    /// The address of this end.
    #[must_use]
    pub fn local_ip(&self) -> Option<std::net::IpAddr> {
        self.stream.local_addr().ok().map(|address| address.ip())
    }

    /// Resets the connection (RST) instead of closing it in order, when dropped.
    pub fn abort_on_drop(&self) {
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO));
    }
}

/// Whether a write may succeed later: there is no room, or no connection yet.
fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_takes_no_memory_while_more_is_unsent() {
        const PORTION: usize = 256 * 1024;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let poller = Poller::new(std::time::Duration::from_millis(1)).unwrap();
        let mut socket = Socket::connect(listener.local_addr().unwrap()).unwrap();
        poller.add(&socket, 0).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        // Else the system grows it until nothing is unsent.
        socket2::SockRef::from(&peer)
            .set_recv_buffer_size(PORTION)
            .unwrap();
        let mut out = vec![1; 32 * PORTION];
        let mut read = vec![0; PORTION];
        socket.flush(&mut out, &poller, 0).unwrap();
        for _ in 0..400 {
            peer.read_exact(&mut read).unwrap();
            out.resize(out.len() + PORTION, 1);
            socket.flush(&mut out, &poller, 0).unwrap();
            assert!(socket.waits_for_room, "some output is always unsent");
            let unsent = out.len() - socket.written;
            assert!(out.len() <= 2 * unsent + 1, "{} bytes for {unsent}", out.len());
        }
    }

    #[test]
    fn a_connection_comes_from_the_address_that_it_is_given() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        for source in ["127.3.0.1", "127.3.1.1"] {
            let source: IpAddr = source.parse().unwrap();
            let _client = Socket::connect_from(Some(source), peer).unwrap();
            let (_, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), source);
        }
    }
}
