//! A name server: addresses of simulated producers (A, RFC 1035), and SRV records (RFC 2782) of producers that have
//! alternates. Answers come after the latency of the settings.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ahash::AHashMap;

use super::server::Shared;
use super::stats::add;
use super::{Handle, Settings};
use crate::network::{address_of, name_of, number_named};

/// Resolution of latencies.
const TICK: Duration = Duration::from_millis(1);
/// Answers pending for their latency; further queries are dropped.
const MOST: usize = 10_000;
/// Time to live of an answer, in seconds.
const TTL: u32 = 3600;

const HEADER: usize = 12;
const A: u16 = 1;
const SRV: u16 = 33;
const INTERNET: u16 = 1;
/// A pointer to the name of the question.
const OF_THE_QUESTION: u16 = 0xc000 | HEADER as u16;
/// A response with authority, where recursion is available.
const RESPONSE: u16 = 0x8480;
const RECURSION_DESIRED: u16 = 0x0100;
const NO_SUCH_NAME: u16 = 3;

/// A name server, listening.
#[derive(Debug)]
pub struct NameServer {
    socket: UdpSocket,
    address: SocketAddr,
    latency: Duration,
    /// The port of all producers.
    port: u16,
    /// The alternates of a producer, by its number.
    alternates: AHashMap<u32, Vec<u32>>,
    /// The producer at whose address another one is.
    moved: AHashMap<u32, u32>,
    shared: Arc<Shared>,
}

/// A question.
struct Question<'a> {
    id: u16,
    flags: u16,
    /// Labels, type and class, as they came.
    bytes: &'a [u8],
    name: String,
    kind: u16,
}

impl NameServer {
    /// Binds the first address of the settings.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn bind(settings: &Settings) -> io::Result<Self> {
        let listen = settings.listen.first();
        let socket =
            UdpSocket::bind(listen.ok_or_else(|| io::Error::other("a name server needs `listen`"))?)?;
        socket.set_read_timeout(Some(TICK))?;
        let alternates = settings.names.alternates.iter();
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            latency: settings.latency.duration(),
            port: settings.names.port,
            alternates: alternates.map(|one| (one.of, one.are.clone())).collect(),
            moved: settings.names.moved.iter().map(|one| (one.of, one.to)).collect(),
            shared: Arc::default(),
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            shared: self.shared.clone(),
        }
    }

    /// Runs until [`Handle::stop`].
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(self) -> io::Result<()> {
        let mut pending: VecDeque<(Instant, SocketAddr, Vec<u8>)> = VecDeque::new();
        let mut buffer = [0; 4096];
        while !self.shared.stop.load(Ordering::Relaxed) {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    add(&self.shared.counters.requests, 1);
                    let came = buffer.get(..length).unwrap_or_default();
                    match self.answer(came).filter(|_| pending.len() < MOST) {
                        Some(answer) => pending.push_back((Instant::now() + self.latency, from, answer)),
                        None => add(&self.shared.counters.bad_requests, 1),
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A client has closed its port.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            while let Some((_, to, answer)) = pending.pop_front_if(|(due, ..)| *due <= now) {
                add(&self.shared.counters.answered, 1);
                // A client that has closed its port needs no answer.
                let _ = self.socket.send_to(&answer, to);
            }
        }
        Ok(())
    }

    /// The answer to a message; `None` when the message is not a query.
    fn answer(&self, came: &[u8]) -> Option<Vec<u8>> {
        let question = Question::read(came)?;
        let (service, host) = match question.name.split_once("._tcp.") {
            Some((_, host)) => (true, host),
            None => (false, question.name.as_str()),
        };
        let number = number_named(host);
        let records: Vec<(u16, Vec<u8>)> = match (number, service, question.kind) {
            (Some(number), false, A) => {
                let at = self.moved.get(&number).copied().unwrap_or(number);
                vec![(A, address_of(at).octets().to_vec())]
            }
            (Some(number), true, SRV) => {
                let alternates = self.alternates.get(&number).into_iter().flatten();
                let records = (1..)
                    .zip(alternates)
                    .map(|(priority, number)| self.srv(priority, *number));
                records.map(|data| (SRV, data)).collect()
            }
            _ => Vec::new(),
        };
        let code = if number.is_some() { 0 } else { NO_SUCH_NAME };
        let flags = RESPONSE | (question.flags & RECURSION_DESIRED) | code;
        let mut answer = Vec::with_capacity(512);
        let count = u16::try_from(records.len()).ok()?;
        for field in [question.id, flags, 1, count, 0, 0] {
            answer.extend(field.to_be_bytes());
        }
        answer.extend(question.bytes);
        for (kind, data) in records {
            for field in [OF_THE_QUESTION, kind, INTERNET] {
                answer.extend(field.to_be_bytes());
            }
            answer.extend(TTL.to_be_bytes());
            answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
            answer.extend(data);
        }
        Some(answer)
    }

    /// Priority, weight, port and target of a record.
    fn srv(&self, priority: u16, number: u32) -> Vec<u8> {
        let mut data = Vec::new();
        for field in [priority, 1, self.port] {
            data.extend(field.to_be_bytes());
        }
        for label in name_of(number).split('.') {
            data.push(u8::try_from(label.len()).unwrap_or(0));
            data.extend(label.as_bytes());
        }
        data.push(0);
        data
    }
}

impl<'a> Question<'a> {
    /// Reads a message with one question.
    fn read(came: &'a [u8]) -> Option<Self> {
        let field = |at: usize| Some(u16::from_be_bytes(came.get(at..at + 2)?.try_into().ok()?));
        let (id, flags, questions) = (field(0)?, field(2)?, field(4)?);
        if flags & 0x8000 != 0 || questions != 1 {
            return None;
        }
        let (mut at, mut labels) = (HEADER, Vec::new());
        loop {
            let length = usize::from(*came.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            // A question has no pointers.
            if length > 63 {
                return None;
            }
            labels.push(
                std::str::from_utf8(came.get(at..at + length)?)
                    .ok()?
                    .to_ascii_lowercase(),
            );
            at += length;
        }
        Some(Self {
            id,
            flags,
            bytes: came.get(HEADER..at + 4)?,
            name: labels.join("."),
            kind: field(at)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{AlternatesOf, MovedName, NameServerSettings};

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(INTERNET.to_be_bytes());
        bytes
    }

    #[test]
    fn addresses_and_alternates_are_answered() {
        let server = NameServer::bind(&Settings {
            names: NameServerSettings {
                port: 8080,
                alternates: vec![AlternatesOf {
                    of: 7,
                    are: vec![5, 6],
                }],
                moved: vec![MovedName { of: 8, to: 9 }],
            },
            ..Settings::default()
        })
        .unwrap();
        let of = |name: &str, kind| server.answer(&question(name, kind)).unwrap();
        let code_and_count = |answer: &[u8]| (answer[3] & 0xf, answer[7]);
        let address = of(&name_of(7), A);
        assert_eq!(code_and_count(&address), (0, 1));
        assert_eq!(address[address.len() - 4..], address_of(7).octets());
        let moved = of(&name_of(8), A);
        assert_eq!(moved[moved.len() - 4..], address_of(9).octets());
        let service = format!("_http._tcp.{}", name_of(7));
        let records = of(&service.to_ascii_uppercase(), SRV);
        assert_eq!(code_and_count(&records), (0, 2));
        assert!(records.windows(4).any(|four| four == b"nf-6"));
        assert_eq!(
            code_and_count(&of(&format!("_http._tcp.{}", name_of(8)), SRV)),
            (0, 0)
        );
        assert_eq!(code_and_count(&of("elsewhere.test", A)), (3, 0));
        for length in 0..question("a.b", A).len() {
            assert!(server.answer(&question("a.b", A)[..length]).is_none(), "{length}");
        }
    }
}
