//! A server, and clients made by hand.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use domain::base::iana::Rcode;
use domain::base::{Message, Rtype};
use domain::rdata::Naptr;
use enum_server::Config;
use enum_server::config::{NumberRange, Profile, Record, Tree};
use http_body_util::BodyExt as _;
use settings::{Listen, Period};
use tower::ServiceExt as _;

/// Bound of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn record(preference: u16, service: &str, regexp: &str) -> Record {
    Record {
        preference,
        service: service.to_owned(),
        regexp: regexp.to_owned(),
        ..Record::default()
    }
}

fn profile(name: &str, records: Vec<Record>) -> Profile {
    Profile {
        name: name.to_owned(),
        ttl: Period::from_secs(600),
        records,
    }
}

pub(crate) fn tree(apex: &str, digits: &str) -> Tree {
    Tree {
        apex: apex.to_owned(),
        digits: digits.to_owned(),
        name_servers: vec!["ns1.example.net".to_owned(), "ns2.example.net".to_owned()],
        ..Tree::default()
    }
}

pub(crate) fn range(digits: &str, profile: &str, least: usize, most: usize) -> NumberRange {
    NumberRange {
        digits: digits.to_owned(),
        profile: profile.to_owned(),
        min_digits: least,
        max_digits: most,
    }
}

/// Two trees with two ranges: 43660 (`ims`, 10 to 12 digits), of which 4366099 does not exist.
pub(crate) fn config() -> Config {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let sip = record(10, "E2U+sip", "!^.*$!sip:+{number}@ims.example.net!");
    let tel = record(20, "E2U+pstn:tel", "!^.*$!tel:+{number};npdi;rn={rn}!");
    let many = (0..12).map(|at| {
        record(
            at,
            "E2U+sip",
            &format!("!^.*$!sip:+{{number}}@proxy-{at}.ims.mnc001.mcc232.3gppnetwork.org!"),
        )
    });
    let mut carrier = tree("e164enum.net", "");
    carrier.ranges = vec![range("43660", "ims", 10, 12), range("4366099", "none", 0, 15)];
    let mut national = tree("3.4.e164.arpa", "43");
    national.service = "public".to_owned();
    Config {
        workers: 2,
        admin: local,
        listen: Listen(vec![local]),
        trees: vec![carrier, national],
        profiles: vec![
            profile("ims", vec![sip.clone(), tel.clone()]),
            profile("ported", vec![tel, sip]),
            profile("many", many.collect()),
        ],
        ..Config::default()
    }
}

pub(crate) fn start(config: Config) -> enum_server::Running {
    enum_server::start(config).unwrap()
}

/// A name in the form of the wire.
pub(crate) fn wire(name: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        octets.push(label.len() as u8);
        octets.extend_from_slice(label.as_bytes());
    }
    octets.push(0);
    octets
}

/// The name of a number.
pub(crate) fn name(number: &str, apex: &str) -> String {
    let digits: Vec<String> = number.chars().rev().map(String::from).collect();
    format!("{}.{apex}", digits.join("."))
}

/// A query; with `udp_bytes` it has OPT.
pub(crate) fn query(id: u16, name: &str, kind: Rtype, udp_bytes: Option<u16>) -> Vec<u8> {
    let mut octets = Vec::new();
    octets.extend_from_slice(&id.to_be_bytes());
    octets.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(udp_bytes.is_some())]);
    octets.extend_from_slice(&wire(name));
    octets.extend_from_slice(&kind.to_int().to_be_bytes());
    octets.extend_from_slice(&[0, 1]);
    if let Some(size) = udp_bytes {
        octets.extend_from_slice(&[0, 0, 41]);
        octets.extend_from_slice(&size.to_be_bytes());
        octets.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
    }
    octets
}

/// A client over UDP.
pub(crate) struct Client(pub(crate) UdpSocket);

impl Client {
    pub(crate) fn new(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// The answer to a datagram. A dropped one is not sent again: loopback with one in flight drops none.
    pub(crate) fn ask(&self, octets: &[u8]) -> Message<Vec<u8>> {
        self.0.send(octets).unwrap();
        self.next()
    }

    pub(crate) fn next(&self) -> Message<Vec<u8>> {
        let mut buffer = vec![0; 65_535];
        let length = self.0.recv(&mut buffer).expect("no answer");
        buffer.truncate(length);
        Message::from_octets(buffer).unwrap()
    }

    /// What is answered to the next query shows that a datagram before it got no answer.
    pub(crate) fn assert_silent(&self, octets: &[u8]) {
        self.0.send(octets).unwrap();
        let marker = 0x7e57;
        let next = self.ask(&query(marker, "e164enum.net", Rtype::SOA, None));
        assert_eq!(next.header().id(), marker, "an answer came to {octets:02x?}");
    }

    pub(crate) fn naptr(&self, name: &str) -> Message<Vec<u8>> {
        self.ask(&query(1, name, Rtype::NAPTR, None))
    }
}

/// Order, preference, service and expression of each record.
pub(crate) fn naptrs(message: &Message<Vec<u8>>) -> Vec<(u16, u16, String, String)> {
    let records = message.answer().unwrap().limit_to::<Naptr<_, _>>();
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    let rows = records.map(|record| {
        let record = record.unwrap();
        let data = record.data();
        (
            data.order(),
            data.preference(),
            text(data.services().as_slice()),
            text(data.regexp().as_slice()),
        )
    });
    rows.collect()
}

pub(crate) fn expressions(message: &Message<Vec<u8>>) -> Vec<String> {
    naptrs(message).into_iter().map(|(.., regexp)| regexp).collect()
}

/// Whether the answer is negative, as RFC 2308 has it: no answer, and the SOA of the tree.
pub(crate) fn is_negative(message: &Message<Vec<u8>>, rcode: Rcode) -> bool {
    let counts = message.header_counts();
    let soa = message
        .authority()
        .unwrap()
        .next()
        .is_some_and(|record| record.unwrap().rtype() == Rtype::SOA);
    message.header().rcode() == rcode
        && message.header().aa()
        && counts.ancount() == 0
        && counts.nscount() == 1
        && soa
}

/// Sends messages over TCP, each with its length.
pub(crate) fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = Vec::new();
    for message in messages {
        octets.extend_from_slice(&(message.len() as u16).to_be_bytes());
        octets.extend_from_slice(message);
    }
    octets
}

pub(crate) fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) fn send(stream: &mut TcpStream, messages: &[Vec<u8>]) {
    stream.write_all(&framed(messages)).unwrap();
}

/// The next message over TCP; none when the server has closed the connection.
pub(crate) fn receive(stream: &mut TcpStream) -> Option<Message<Vec<u8>>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut octets = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut octets).ok()?;
    Some(Message::from_octets(octets).unwrap())
}

/// What the admin endpoint answers: status and body.
pub(crate) fn admin(server: &enum_server::Running, method: &str, path: &str, body: &str) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Body::from(body.to_owned()))
        .unwrap();
    let routes = server.handle().routes();
    runtime.block_on(async {
        let answer = routes.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    })
}

/// The value of a metric, by the beginning of its line.
pub(crate) fn metric(server: &enum_server::Running, name: &str) -> f64 {
    let page = server.handle().registry().render();
    let line = page.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A file of numbers of these lines.
pub(crate) fn numbers(path: &std::path::Path, lines: &str) {
    let options = numbers::csv::Options {
        sort: true,
        sort_memory: 1 << 20,
    };
    numbers::csv::import(lines.as_bytes(), path, options, |_| Ok(())).unwrap();
}
