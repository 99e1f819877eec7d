//! Hand-made ASPs, and an STP between them.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use settings::{Listen, Period};
use socket2::{Domain, Socket, Type};
use ss7_proto::PointCode;
use ss7_proto::m3ua::{Builder, Data, Message, MessageType, ServiceIndicator, Tag};
use stp::Config;
use stp::config::{ApplicationServer, Link, Transport};

/// Bound of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An ASP on a connection of its own.
pub(crate) struct Asp {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// The address of a peer; each link has another one.
pub(crate) const fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Connects to an address, from another one.
pub(crate) fn connection(to: SocketAddr, from: u8) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(address(from), 0).into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

impl Asp {
    /// Connects from an address.
    pub(crate) fn connect(stp: SocketAddr, from: u8) -> Self {
        Self::over(connection(stp, from).unwrap())
    }

    /// With a connected socket.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Connects, and becomes active for a routing context.
    pub(crate) fn active(stp: SocketAddr, from: u8, context: u32) -> Self {
        let mut asp = Self::connect(stp, from);
        asp.up();
        asp.send(&aspac(context));
        asp.expect(MessageType::AspacAck);
        // DATA for the peer are held until what follows from its ASPAC is published: it is when the next message is answered.
        let before = asp.settle().concat();
        asp.buffer.splice(0..0, before);
        asp
    }

    pub(crate) fn up(&mut self) {
        self.send(&plain(MessageType::Aspup));
        self.expect(MessageType::AspupAck);
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).unwrap();
    }

    /// The next message other than NTFY; none when the STP has closed the connection.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let message = self.any()?;
            if Message::parse(&message).unwrap().message_type() != MessageType::Ntfy {
                return Some(message);
            }
        }
    }

    /// The next message.
    pub(crate) fn any(&mut self) -> Option<Vec<u8>> {
        next_of(&mut self.stream, &mut self.buffer, |octets| {
            let length = octets.get(4..8)?;
            Some(u32::from_be_bytes(length.try_into().unwrap()) as usize)
        })
    }

    /// Waits for a message of a type; others before it are skipped.
    pub(crate) fn expect(&mut self, kind: MessageType) -> Vec<u8> {
        loop {
            let octets = self
                .any()
                .unwrap_or_else(|| panic!("closed before {}", kind.name()));
            if Message::parse(&octets).unwrap().message_type() == kind {
                return octets;
            }
        }
    }

    /// Waits until all that was sent before is handled: the answer to a heartbeat comes behind it.
    pub(crate) fn settle(&mut self) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let mut builder = Builder::new(MessageType::Beat, &mut out);
        builder.parameter(Tag::HEARTBEAT_DATA, b"settle");
        builder.finish();
        self.send(&out);
        let mut before = Vec::new();
        loop {
            let octets = self.any().expect("closed");
            if Message::parse(&octets).unwrap().message_type() == MessageType::BeatAck {
                return before;
            }
            before.push(octets);
        }
    }
}

/// The next message of a stream, whose length stands at its beginning; none when the STP has closed the connection.
pub(crate) fn next_of(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    length: impl Fn(&[u8]) -> Option<usize>,
) -> Option<Vec<u8>> {
    loop {
        if let Some(length) = length(buffer).filter(|length| *length <= buffer.len()) {
            return Some(buffer.drain(..length).collect());
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) => return None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            Ok(count) => buffer.extend_from_slice(&chunk[..count]),
            Err(error) => panic!("nothing comes: {error}"),
        }
    }
}

/// A message without parameters.
pub(crate) fn plain(kind: MessageType) -> Vec<u8> {
    let mut out = Vec::new();
    Builder::new(kind, &mut out).finish();
    out
}

pub(crate) fn aspac(context: u32) -> Vec<u8> {
    with_word(MessageType::Aspac, Tag::ROUTING_CONTEXT, context)
}

pub(crate) fn with_word(kind: MessageType, tag: Tag, word: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = Builder::new(kind, &mut out);
    builder.word(tag, word);
    builder.finish();
    out
}

/// An MSU of ISUP.
pub(crate) fn isup(context: u32, opc: u32, dpc: u32, sls: u8, user_data: &[u8]) -> Vec<u8> {
    msu(context, opc, dpc, sls, ServiceIndicator::ISUP, user_data)
}

pub(crate) fn msu(
    context: u32,
    opc: u32,
    dpc: u32,
    sls: u8,
    si: ServiceIndicator,
    user_data: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    Data {
        network_appearance: None,
        routing_context: Some(context),
        opc: PointCode(opc),
        dpc: PointCode(dpc),
        si,
        ni: 2,
        mp: 0,
        sls,
        user_data,
        correlation_id: None,
    }
    .write(&mut out);
    out
}

/// The user data and label of DATA.
pub(crate) fn data(octets: &[u8]) -> Data<'_> {
    Message::parse(octets).unwrap().data().unwrap()
}

/// The own point code in tests.
pub(crate) const OWN: u32 = 100;

/// A link that waits for a peer from an address.
pub(crate) fn link(name: &str, from: u8) -> Link {
    Link {
        name: name.to_owned(),
        transport: Transport::Tcp,
        peer: vec![address(from)],
        ..Link::default()
    }
}

/// An application server of links.
pub(crate) fn server(name: &str, context: u32, code: u32, links: &[&str]) -> ApplicationServer {
    ApplicationServer {
        name: name.to_owned(),
        routing_context: context,
        links: links.iter().map(|link| (*link).to_owned()).collect(),
        point_codes: vec![code.to_string()],
        recovery: Period::from_millis(50),
        ..ApplicationServer::default()
    }
}

/// Two application servers: `one` (point code 1, routing context 11, from 127.0.0.11), `two` (2, 12, 127.0.0.12).
pub(crate) fn config() -> Config {
    let mut config = Config {
        workers: 2,
        admin: SocketAddr::from(([127, 0, 0, 1], 0)),
        listen: Listen(vec![SocketAddr::from(([127, 0, 0, 1], 0))]),
        links: vec![link("a", 11), link("b", 12)],
        application_servers: vec![server("one", 11, 1, &["a"]), server("two", 12, 2, &["b"])],
        ..Config::default()
    };
    config.point_codes.own = OWN.to_string();
    config
}

pub(crate) fn start(config: Config) -> stp::Running {
    stp::start(config).unwrap()
}

/// The value of a metric, by the beginning of its line.
pub(crate) fn metric(stp: &stp::Running, name: &str) -> f64 {
    let page = stp.handle().registry().render();
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

/// The settings that are wrong.
pub(crate) fn faults(config: &Config) -> Vec<String> {
    let mut faults = settings::Faults::default();
    settings::Validate::validate(config, &mut faults);
    faults.into_vec().into_iter().map(|fault| fault.path).collect()
}
