//! Datagrams in batches: one call of the system reads those that wait, another one sends their answers.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use rustix::net::addr::SocketAddrArg as _;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Octets of a datagram that are read. A longer one is malformed.
const MOST_OCTETS: usize = 4_096;
/// Datagrams of a batch.
const MOST: usize = 32;

/// The datagrams of a batch.
pub(super) struct Inbox {
    octets: Vec<u8>,
    headers: MultiHeaders<SockaddrStorage>,
}

/// The answers of a batch.
#[derive(Default)]
pub(super) struct Outbox {
    octets: Vec<u8>,
    answers: Vec<(Range<usize>, SocketAddrAny)>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            octets: vec![0; MOST * MOST_OCTETS],
            headers: MultiHeaders::preallocate(MOST, None),
        }
    }

    /// Hands those that wait to `handle`. Returns whether more may wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when none waits; others are those of the system.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut handle: impl FnMut(&[u8], SocketAddr),
    ) -> io::Result<bool> {
        let Self { octets, headers } = self;
        socket.try_io(Interest::READABLE, || {
            let mut slices: Vec<_> = octets
                .chunks_exact_mut(MOST_OCTETS)
                .map(|room| [IoSliceMut::new(room)])
                .collect();
            let flags = MsgFlags::MSG_DONTWAIT;
            let datagrams = recvmmsg(socket.as_raw_fd(), headers, slices.iter_mut(), flags, None)?;
            let mut count = 0;
            for datagram in datagrams {
                count += 1;
                if let Some(client) = datagram.address.as_ref().and_then(address) {
                    // What was read is in one piece.
                    handle(datagram.iovs().next().unwrap_or_default(), client);
                }
            }
            Ok(count == MOST)
        })
    }
}

fn address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

impl Outbox {
    pub(super) fn push(&mut self, answer: &[u8], client: SocketAddr) {
        let begin = self.octets.len();
        self.octets.extend_from_slice(answer);
        self.answers.push((begin..self.octets.len(), client.as_any()));
    }

    /// Sends all answers, and forgets them. Returns how many the system has refused: a client that misses its answer asks again.
    pub(super) fn send(&mut self, socket: &UdpSocket) -> usize {
        let octets = &self.octets;
        let slices: Vec<_> = self
            .answers
            .iter()
            .map(|(range, _)| [IoSlice::new(octets.get(range.clone()).unwrap_or_default())])
            .collect();
        let mut controls: Vec<_> = slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: Vec<_> = (self.answers.iter().zip(&slices).zip(&mut controls))
            .map(|(((_, client), slice), control)| MMsgHdr::new_with_addr(client, slice, control))
            .collect();
        let (mut rest, mut refused) = (messages.as_mut_slice(), 0);
        while !rest.is_empty() {
            let done = match sendmmsg(socket, rest, SendFlags::DONTWAIT) {
                Ok(sent) => sent.max(1),
                // The error is that of the first of them.
                Err(_) => {
                    refused += 1;
                    1
                }
            };
            rest = rest.get_mut(done..).unwrap_or_default();
        }
        self.octets.clear();
        self.answers.clear();
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_datagram_is_handled_once_and_answered_at_its_client() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = UdpSocket::bind(local).await else {
                continue;
            };
            let at = server.local_addr().unwrap();
            let clients: Vec<_> = (0..3)
                .map(|_| std::net::UdpSocket::bind(local).unwrap())
                .collect();
            let octets = |client: usize, number: usize| vec![(client * 100 + number) as u8; 1 + number];
            for number in 0..40 {
                for (index, client) in clients.iter().enumerate() {
                    client.send_to(&octets(index, number), at).unwrap();
                }
            }
            let (mut inbox, mut outbox) = (Inbox::new(), Outbox::default());
            let mut handled = 0;
            while handled < 120 {
                server.readable().await.unwrap();
                let before = handled;
                let read = inbox.receive(&server, |datagram, client| {
                    handled += 1;
                    outbox.push(datagram, client);
                });
                assert!(read.is_ok_and(|more| more == (handled - before == MOST)));
                assert_eq!(outbox.send(&server), 0);
            }
            for (index, client) in clients.iter().enumerate() {
                for number in 0..40 {
                    let mut answer = [0; 64];
                    let (length, from) = client.recv_from(&mut answer).unwrap();
                    assert_eq!((&answer[..length], from), (&*octets(index, number), at));
                }
            }
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_refused_keeps_no_other() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut outbox = Outbox::default();
        outbox.push(b"one", client.local_addr().unwrap());
        // An address of another family.
        outbox.push(b"two", "[2001:db8::1]:53".parse().unwrap());
        outbox.push(b"three", client.local_addr().unwrap());
        assert_eq!(outbox.send(&server), 1);
        for expected in [&b"one"[..], b"three"] {
            let mut answer = [0; 64];
            let length = client.recv(&mut answer).unwrap();
            assert_eq!(&answer[..length], expected);
        }
        assert_eq!(outbox.send(&server), 0, "nothing is left");
    }
}
