//! The owner of each peer when several workers serve one address: a peer is one machine, on one worker. A connection
//! that another worker accepted moves to the owner, with the bytes read from it, once its CER has shown the peer's
//! name. Used when connections are made and lost, never per message.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ahash::AHashMap;
use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::config::Security;
use crate::transport::Stream;
use crate::transport::sctp::SctpStream;
use crate::transport::tls::TlsStream;

/// Connections in transfer to a worker that has not accepted them yet. Further ones are closed.
const MAILBOX: usize = 64;

/// Shared by the workers of one function.
#[derive(Debug)]
pub struct Directory {
    /// Worker by peer, in lower case, with the number of claims.
    homes: Mutex<AHashMap<Box<str>, (usize, usize)>>,
    mailboxes: Vec<mpsc::Sender<Handover>>,
}

/// A worker's seat in the directory.
#[derive(Debug)]
pub struct Seat {
    pub(crate) directory: Arc<Directory>,
    pub(crate) worker: usize,
    pub(crate) mailbox: mpsc::Receiver<Handover>,
}

/// A connection between two workers.
#[derive(Debug)]
pub(crate) struct Handover {
    stream: HandoverStream,
    pub(crate) read: BytesMut,
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) security: Security,
}

#[derive(Debug)]
enum HandoverStream {
    Tcp(std::net::TcpStream),
    Tls(std::net::TcpStream, Box<rustls::Connection>, BytesMut),
    Sctp(socket2::Socket),
}

impl Directory {
    /// Seats for `workers` workers, to be given to their nodes.
    #[must_use]
    pub fn seats(workers: usize) -> Vec<Seat> {
        let (mailboxes, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel(MAILBOX)).unzip();
        let directory = Arc::new(Self {
            homes: Mutex::default(),
            mailboxes,
        });
        receivers
            .into_iter()
            .enumerate()
            .map(|(worker, mailbox)| Seat {
                directory: directory.clone(),
                worker,
                mailbox,
            })
            .collect()
    }

    /// The worker that owns this peer. A peer without an owner belongs to `worker` from now on.
    pub(crate) fn claim(&self, host: &str, worker: usize) -> usize {
        self.claim_for(host, worker, worker)
    }

    /// As [`Directory::claim`], but a peer without an owner belongs to `preferred` from now on; that worker claims it
    /// once it gets the connection.
    pub(crate) fn claim_for(&self, host: &str, worker: usize, preferred: usize) -> usize {
        let preferred = preferred.min(self.mailboxes.len().saturating_sub(1));
        let mut homes = self.homes.lock();
        let home = homes
            .entry(host.to_ascii_lowercase().into())
            .or_insert((preferred, 0));
        if home.0 == worker {
            home.1 += 1;
        }
        home.0
    }

    /// Removes peers without a claim: a connection did not reach its worker. Connections in transfer claim their peers
    /// on arrival.
    pub(crate) fn forget_unclaimed(&self) {
        self.homes.lock().retain(|_, home| home.1 > 0);
    }

    /// Releases one claim.
    pub(crate) fn release(&self, host: &str, worker: usize) {
        let host = host.to_ascii_lowercase();
        let mut homes = self.homes.lock();
        if let Some(home) = homes.get_mut(&*host)
            && home.0 == worker
        {
            home.1 = home.1.saturating_sub(1);
            if home.1 == 0 {
                homes.remove(&*host);
            }
        }
    }

    /// Sends a connection to `worker`. False when that worker cannot accept it; the connection is then closed.
    pub(crate) fn hand_over(&self, worker: usize, connection: Handover) -> bool {
        self.mailboxes
            .get(worker)
            .is_some_and(|mailbox| mailbox.try_send(connection).is_ok())
    }
}

impl Handover {
    /// Takes a connection off this thread's runtime.
    pub(crate) fn pack(
        stream: Stream,
        read: BytesMut,
        remote: SocketAddr,
        local: SocketAddr,
        security: Security,
    ) -> io::Result<Self> {
        let stream = match stream {
            Stream::Tcp(tcp) => HandoverStream::Tcp(tcp.into_std()?),
            Stream::Tls(tls) => {
                let (tcp, session, early) = tls.into_parts();
                HandoverStream::Tls(tcp.into_std()?, Box::new(session), early)
            }
            Stream::Sctp(sctp) => HandoverStream::Sctp(sctp.into_socket()),
            Stream::Changing => return Err(io::ErrorKind::NotConnected.into()),
        };
        Ok(Self {
            stream,
            read,
            remote,
            local,
            security,
        })
    }

    /// Puts the connection on this thread's runtime.
    pub(crate) fn unpack(self) -> io::Result<(Stream, BytesMut)> {
        let stream = match self.stream {
            HandoverStream::Tcp(tcp) => Stream::Tcp(tokio::net::TcpStream::from_std(tcp)?),
            HandoverStream::Sctp(socket) => Stream::Sctp(SctpStream::resume(socket)?),
            HandoverStream::Tls(tcp, session, early) => Stream::Tls(Box::new(TlsStream::new(
                tokio::net::TcpStream::from_std(tcp)?,
                *session,
                early,
            ))),
        };
        Ok((stream, self.read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket pair of whole messages stands for an association, which not every kernel has.
    #[test]
    fn an_association_goes_on_at_another_worker() {
        use socket2::{Domain, Socket, Type};
        let kind = Type::SEQPACKET.nonblocking().cloexec();
        let (ours, theirs) = Socket::pair(Domain::UNIX, kind, None).unwrap();
        let on = |task: std::pin::Pin<Box<dyn Future<Output = Option<Handover>> + Send>>| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(task)
        };
        let any = SocketAddr::from(([127, 0, 0, 1], 1));
        let packed = on(Box::pin(async move {
            let stream = Stream::Sctp(SctpStream::resume(ours).unwrap());
            let read = BytesMut::from(&b"CER"[..]);
            Some(Handover::pack(stream, read, any, any, Security::None).unwrap())
        }));
        theirs.send(b"first").unwrap();
        let there = std::thread::spawn(move || {
            let packed = packed.unwrap();
            on(Box::pin(async move {
                let (mut stream, mut read) = packed.unpack().unwrap();
                let more = std::future::poll_fn(|cx| stream.poll_read(cx, &mut read)).await;
                assert_eq!((more.unwrap(), &read[..]), (5, &b"CERfirst"[..]));
                None
            }))
        });
        there.join().unwrap();
    }

    #[test]
    fn a_peer_belongs_to_its_first_claimant_until_the_last_claim_is_released() {
        let seats = Directory::seats(2);
        let directory = &seats[0].directory;
        assert_eq!(directory.claim("MME.example", 1), 1);
        assert_eq!(directory.claim("mme.example", 0), 1);
        assert_eq!(directory.claim("mme.example", 1), 1);
        directory.release("mme.example", 1);
        assert_eq!(directory.claim("mme.example", 0), 1);
        directory.release("mme.EXAMPLE", 1);
        assert_eq!(directory.claim("mme.example", 0), 0);
        assert_eq!(directory.claim_for("pgw.example", 0, 1), 1);
        directory.forget_unclaimed();
        assert_eq!(
            directory.claim_for("pgw.example", 0, 7),
            1,
            "the last worker there is"
        );
        assert_eq!(directory.claim("pgw.example", 1), 1);
        directory.forget_unclaimed();
        assert_eq!(directory.claim("pgw.example", 0), 1);
    }
}
