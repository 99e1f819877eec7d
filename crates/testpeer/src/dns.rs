//! A name server on loopback: answers from a zone that a test sets, counts queries, and can stay silent.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, NAPTR, SRV};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

/// Records of a name: their time to live in seconds, and what they say.
type Records = Vec<(u32, RData)>;

#[derive(Default)]
struct State {
    zone: Mutex<BTreeMap<(String, RecordType), Records>>,
    asked: AtomicUsize,
    silent: AtomicBool,
}

/// A running name server.
pub struct NameServer {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

impl NameServer {
    /// A server of an empty zone, on a free port.
    ///
    /// # Errors
    /// When the system gives no port.
    pub async fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let state = Arc::<State>::default();
        let task = tokio::spawn(serve(socket, state.clone()));
        Ok(Self { address, state, task })
    }

    /// Sets the addresses of a name.
    pub fn addresses(&self, name: &str, ttl: u32, addresses: &[IpAddr]) {
        let (mut v4, mut v6) = (Records::new(), Records::new());
        for address in addresses {
            match address {
                IpAddr::V4(address) => v4.push((ttl, RData::A(A(*address)))),
                IpAddr::V6(address) => v6.push((ttl, RData::AAAA(AAAA(*address)))),
            }
        }
        self.set(name, RecordType::A, v4);
        self.set(name, RecordType::AAAA, v6);
    }

    /// Sets the SRV records of a name: priority, weight, port and target each.
    ///
    /// # Panics
    /// When a target is not a valid name.
    pub fn services(&self, name: &str, ttl: u32, records: &[(u16, u16, u16, &str)]) {
        let records = records.iter().map(|(priority, weight, port, target)| {
            let target = Name::from_ascii(target).expect("a name");
            (ttl, RData::SRV(SRV::new(*priority, *weight, *port, target)))
        });
        self.set(name, RecordType::SRV, records.collect());
    }

    /// Sets the NAPTR records of a name: order, flags, services and replacement each.
    ///
    /// # Panics
    /// When a replacement is not a valid name.
    pub fn naptrs(&self, name: &str, ttl: u32, records: &[(u16, &str, &str, &str)]) {
        let bytes = |text: &str| text.as_bytes().into();
        let records = records.iter().map(|(order, flags, services, replacement)| {
            let replacement = Name::from_ascii(replacement).expect("a name");
            let data = NAPTR::new(*order, 0, bytes(flags), bytes(services), bytes(""), replacement);
            (ttl, RData::NAPTR(data))
        });
        self.set(name, RecordType::NAPTR, records.collect());
    }

    fn set(&self, name: &str, kind: RecordType, records: Records) {
        let mut zone = self.state.zone.lock().unwrap_or_else(PoisonError::into_inner);
        zone.insert((name.trim_end_matches('.').to_ascii_lowercase(), kind), records);
    }

    /// Number of queries that it has received.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::Relaxed)
    }

    /// Whether it answers nothing from now on.
    pub fn silent(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::Relaxed);
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, state: Arc<State>) {
    let mut buffer = vec![0; 4_096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        state.asked.fetch_add(1, Ordering::Relaxed);
        let Ok(question) = Message::from_vec(&buffer[..length]) else {
            continue;
        };
        if state.silent.load(Ordering::Relaxed) {
            continue;
        }
        if let Ok(answer) = answer(&question, &state).to_vec() {
            // A client that has closed its port does not matter.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

fn answer(question: &Message, state: &State) -> Message {
    let mut answer = Message::response(question.metadata.id, OpCode::Query);
    answer.metadata.authoritative = true;
    answer.metadata.recursion_available = true;
    let zone = state.zone.lock().unwrap_or_else(PoisonError::into_inner);
    for query in &question.queries {
        answer.add_query(query.clone());
        let name = query.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
        let known = zone.keys().any(|(one, _)| *one == name);
        if !known {
            answer.metadata.response_code = ResponseCode::NXDomain;
        }
        for (ttl, data) in zone.get(&(name, query.query_type())).into_iter().flatten() {
            answer.add_answer(Record::from_rdata(query.name().clone(), *ttl, data.clone()));
        }
    }
    answer
}
