//! Links of IPA: SCCP over TCP without a routing label.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};

use settings::Period;
use ss7_proto::ipa::{Control, Frame, length, unit_name, write_identity, write_sccp};
use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use stp::Config;
use stp::config::{ApplicationServer, Link, Role, Traffic};

use crate::support::{
    Asp, PATIENCE, config, data, faults, isup, link, metric, msu, next_of, server, start, until,
};

/// A message of SCCP; the STP does not read it where the destination is another node.
pub(crate) const SCCP: &[u8] = &[9, 0x81, 3, 5, 7, 2, 0x42, 6, 2, 0x42, 8, 1, 0xaa];
/// The point code of the unit.
pub(crate) const UNIT: u32 = 5;

/// The other end of a link.
pub(crate) struct Unit {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Unit {
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    fn connect(stp: SocketAddr) -> Self {
        Self::over(Asp::connect(stp, 15).stream)
    }

    /// Connects, is asked for its identity, and acknowledges that of the gateway.
    pub(crate) fn identified(mut self, name: &str) -> Self {
        self.expect(Control::Get);
        let mut identity = Vec::new();
        write_identity(name, &mut identity);
        self.send(&identity);
        self.expect(Control::Ack);
        self.control(Control::Ack);
        self
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).unwrap();
    }

    pub(crate) fn control(&mut self, control: Control<'_>) {
        let mut out = Vec::new();
        control.write(&mut out);
        self.send(&out);
    }

    pub(crate) fn sccp(&mut self, message: &[u8]) {
        let mut out = Vec::new();
        assert!(write_sccp(message, &mut out));
        self.send(&out);
    }

    /// The next frame; none when the STP has closed the connection.
    fn any(&mut self) -> Option<Vec<u8>> {
        next_of(&mut self.stream, &mut self.buffer, length)
    }

    /// The next frame is this message.
    pub(crate) fn expect(&mut self, control: Control<'_>) {
        let octets = self.any().expect("closed");
        // The value does not have the elements of a request: libosmocore wants others than this STP.
        assert_eq!(Frame::read(&octets), Frame::Control(control));
    }

    /// The next message of SCCP.
    pub(crate) fn next_sccp(&mut self) -> Vec<u8> {
        loop {
            let octets = self.any().expect("closed");
            match Frame::read(&octets) {
                Frame::Sccp(message) => return message.to_vec(),
                Frame::Control(Control::Ping) => self.control(Control::Pong),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Beside the two application servers of M3UA one with a link of IPA, whose messages go to point code 1.
pub(crate) fn with_unit() -> Config {
    let mut config = config();
    config.links.push(Link {
        role: Role::Ipa,
        ..link("c", 15)
    });
    config.application_servers.push(ApplicationServer {
        destination: Some("1".to_owned()),
        ..server("unit", 13, UNIT, &["c"])
    });
    config
}

/// The settings by which the STP connects to a gateway.
pub(crate) fn connecting(port: u16) -> Config {
    let mut config = with_unit();
    config.reconnect = Period::from_millis(20);
    let link = config.links.last_mut().unwrap();
    link.peer = vec![crate::support::address(1)];
    (link.connect, link.port) = (true, Some(port));
    config
}

pub(crate) fn is_available(stp: &stp::Running) -> bool {
    metric(stp, "signalbox_stp_link_available{link=\"c\"}") == 1.0
}

fn sccp(context: u32, opc: u32, dpc: u32) -> Vec<u8> {
    msu(context, opc, dpc, 3, ServiceIndicator::SCCP, SCCP)
}

/// Sends SCCP both ways between a unit and point code 1, to which it goes.
pub(crate) fn exchange(unit: &mut Unit, one: &mut Asp) {
    unit.sccp(SCCP);
    let octets = one.expect(MessageType::Data);
    let received = data(&octets);
    assert_eq!(
        (received.opc.0, received.dpc.0, received.si, received.ni),
        (UNIT, 1, ServiceIndicator::SCCP, 2)
    );
    assert_eq!(received.user_data, SCCP);
    one.send(&sccp(11, 1, UNIT));
    assert_eq!(unit.next_sccp(), SCCP);
}

#[test]
fn sccp_without_a_label_gets_that_of_its_application_server() {
    let stp = start(with_unit());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut unit = Unit::connect(at).identified("unit");
    until("the unit is not active", || is_available(&stp));
    exchange(&mut unit, &mut one);
    // IPA carries no other user part.
    one.send(&isup(11, 1, UNIT, 0, b"call"));
    until("ISUP was not dropped", || {
        metric(
            &stp,
            "signalbox_stp_undelivered_messages_total{why=\"user_part\"}",
        ) == 1.0
    });
    exchange(&mut unit, &mut one);
    unit.control(Control::Ping);
    unit.expect(Control::Pong);
    assert_eq!(metric(&stp, "signalbox_stp_sent_messages_total{link=\"c\"}"), 2.0);
    drop(unit);
    until("the unit is active without an association", || {
        !is_available(&stp)
    });
}

/// Some peers acknowledge before they name themselves, and some name themselves by other elements.
#[test]
fn identities_may_come_in_either_order() {
    let stp = start(with_unit());
    let mut unit = Unit::connect(stp.addresses()[0]);
    unit.expect(Control::Get);
    unit.control(Control::Ack);
    unit.send(&[0, 8, 254, 5, 0, 6, 0, b'0', b'/', b'0', 0]);
    unit.expect(Control::Ack);
    until("the unit is not active", || is_available(&stp));
}

#[test]
fn the_stp_names_itself_to_a_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stp = start(connecting(listener.local_addr().unwrap().port()));
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut gateway = Unit::over(listener.accept().unwrap().0);
    gateway.control(Control::Get);
    let identity = gateway.any().unwrap();
    let Frame::Control(Control::Response(elements)) = Frame::read(&identity) else {
        panic!("{identity:?}");
    };
    assert_eq!(unit_name(elements), Some(&b"c"[..]));
    gateway.control(Control::Ack);
    gateway.expect(Control::Ack);
    until("the gateway is not active", || is_available(&stp));
    exchange(&mut gateway, &mut one);
    // The STP connects again.
    drop(gateway);
    let mut again = Unit::over(listener.accept().unwrap().0);
    again.control(Control::Ack);
    again.expect(Control::Ack);
    until("the gateway is not active", || is_available(&stp));
    exchange(&mut again, &mut one);
}

#[test]
fn what_is_no_ipa_harms_its_own_link_alone() {
    let stp = start(with_unit());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    // SCCP before the identities are exchanged is refused.
    let mut early = Unit::connect(at);
    early.expect(Control::Get);
    early.sccp(SCCP);
    until("SCCP was not refused", || {
        metric(
            &stp,
            "signalbox_stp_refused_messages_total{error=\"Unexpected Message\"}",
        ) == 1.0
    });
    for octets in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff, 0xff, 253, 9],
        &[1, 0, 3, 1, 0, 0, 0, 8, 0xff, 0xff, 0xff],
    ] {
        let mut stranger = Unit::connect(at);
        stranger.expect(Control::Get);
        stranger.send(octets);
        let _ = stranger.stream.shutdown(std::net::Shutdown::Write);
        assert_eq!(stranger.any(), None, "{octets:?}");
    }
    let mut unit = Unit::connect(at).identified("unit");
    // Empty frames, unknown streams and messages, identities without end, SCCP that is none.
    let odd = [
        &[0, 0, 254][..],
        &[0, 0, 253],
        &[0, 1, 238, 0],
        &[0, 1, 254, 99],
        &[0, 4, 254, 5, 0xff, 0xff, 1],
        &[0, 1, 254, 6],
    ];
    unit.send(&odd.concat());
    let empty = one.expect(MessageType::Data);
    assert_eq!(data(&empty).user_data, b"");
    exchange(&mut unit, &mut one);
}

#[test]
fn settings_of_ipa_that_do_not_fit() {
    let wrong = |change: fn(&mut Config)| {
        let mut config = with_unit();
        change(&mut config);
        faults(&config)
    };
    assert_eq!(wrong(|_| {}), Vec::<String>::new());
    let destination = "applicationServers[2].destination";
    let links = "applicationServers[2].links";
    assert_eq!(
        wrong(|config| config.application_servers[2].destination = None),
        [destination]
    );
    assert_eq!(
        wrong(|config| config.application_servers[2].destination = Some("9-9-9".to_owned())),
        [destination]
    );
    assert_eq!(
        wrong(|config| config.application_servers[0].destination = Some("5".to_owned())),
        ["applicationServers[0].destination"]
    );
    assert_eq!(
        wrong(|config| config.application_servers[2].point_codes.push("6".to_owned())),
        ["applicationServers[2].pointCodes"]
    );
    let takes_over = wrong(|config| {
        config.links.push(Link {
            role: Role::Ipa,
            ..link("d", 16)
        });
        let unit = &mut config.application_servers[2];
        unit.links.push("d".to_owned());
        unit.traffic_mode = Traffic::Override;
    });
    assert_eq!(takes_over, ["applicationServers[2].trafficMode"]);
    let mixed = wrong(|config| config.application_servers[2].links.push("b".to_owned()));
    assert!(mixed.contains(&links.to_owned()), "{mixed:?}");
    let sctp = wrong(|config| config.links[2].transport = stp::config::Transport::Sctp);
    assert!(sctp.contains(&links.to_owned()), "{sctp:?}");
    let shared = wrong(|config| {
        let other = server("other", 14, 6, &["c"]);
        config.application_servers.push(ApplicationServer {
            destination: Some("1".to_owned()),
            ..other
        });
    });
    assert!(shared.contains(&links.to_owned()), "{shared:?}");
}
