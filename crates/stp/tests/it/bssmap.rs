//! Base station controllers and an MSC of Osmocom (Debian: `osmo-bsc`, `osmo-msc` 1.9) across the STP, in a kernel that has SCTP:
//! without it `osmo-msc` does not start.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use settings::Listen;
use socket2::{Domain, Protocol, Socket, Type};
use stp::config::{ApplicationServer, Link, Role, Transport};
use testpeer::pcap::{ETHERNET, Pcap};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::osmo::{Osmo, is_installed};
use crate::support::{address, config, link, metric, server, start, until};

/// Point codes 0.23.1, 0.23.3 and 0.23.4.
const MSC: u32 = 185;
const BSC_OF_IPA: u32 = 187;
const BSC_OF_M3UA: u32 = 188;
const SCTP_PORT: u16 = 29_053;

/// Message types (3GPP TS 48.008 §3.2.2.1).
const RESET: &str = "0x30";
const RESET_ACK: &str = "0x31";

/// The last octets of the addresses.
const FROM: [u8; 3] = [31, 32, 33];

/// What goes by the loopback from or to a peer.
struct Capture {
    socket: Socket,
    file: Pcap,
}

impl Capture {
    /// None where the user may not.
    fn start() -> Option<Self> {
        // ETH_P_ALL, in the order of the network.
        let all = Protocol::from(i32::from(3_u16.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(all)).ok()?;
        socket.set_nonblocking(true).unwrap();
        Some(Self {
            socket,
            file: Pcap::new(ETHERNET),
        })
    }

    fn take(&mut self) {
        use std::io::Read as _;
        let mut frame = vec![0; 65_536];
        while let Ok(length) = self.socket.read(&mut frame) {
            let is_peer = |at: usize| FROM.iter().any(|from| frame[at..at + 4] == [127, 0, 0, *from]);
            if length >= 34 && frame[12..14] == [8, 0] && (is_peer(26) || is_peer(30)) {
                self.file.packet(&frame[..length]);
            }
        }
    }

    /// tshark reads both messages by M3UA with their point codes, and by IPA, which has none.
    fn judge(&mut self, ipa: u16) {
        self.take();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lo.pcap");
        std::fs::write(&file, self.file.bytes()).unwrap();
        let fields = [
            "m3ua.protocol_data_opc",
            "m3ua.protocol_data_dpc",
            "gsm_a.bssmap.msgtype",
        ];
        let decode = format!("tcp.port=={ipa},gsm_ipa");
        let mut arguments = vec![
            "-d",
            decode.as_str(),
            "-Y",
            "gsm_a.bssmap.msgtype",
            "-T",
            "fields",
        ];
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let Some(read) = tshark(&arguments, &file) else {
            return;
        };
        let seen: BTreeSet<_> = read.lines().flat_map(messages).collect();
        let (ipa, m3ua, msc) = (BSC_OF_IPA.to_string(), BSC_OF_M3UA.to_string(), MSC.to_string());
        let wanted = [
            ["", "", RESET],
            ["", "", RESET_ACK],
            [&ipa, &msc, RESET],
            [&m3ua, &msc, RESET],
            [&msc, &ipa, RESET_ACK],
            [&msc, &m3ua, RESET_ACK],
        ];
        assert_eq!(seen, BTreeSet::from(wanted));
        let complaints = format!("gsm_a.bssmap.msgtype && ({COMPLAINTS})");
        assert_eq!(
            tshark(&["-d", &decode, "-Y", &complaints, "-V"], &file).unwrap(),
            ""
        );
    }
}

/// Origin, destination and type of each message of a packet, which may have several.
fn messages(line: &str) -> Vec<[&str; 3]> {
    let mut columns = line.split('\t').map(|column| column.split(','));
    let mut column = || columns.next().unwrap();
    let (mut origins, mut destinations, types) = (column(), column(), column());
    let read = |kind| {
        [
            origins.next().unwrap_or(""),
            destinations.next().unwrap_or(""),
            kind,
        ]
    };
    types.map(read).collect()
}

/// The STP: a link of IPA, and two of M3UA over SCTP.
fn stp() -> stp::Running {
    let mut settings = config();
    settings.sctp_listen = Listen(vec![SocketAddr::new(address(1), SCTP_PORT)]);
    let over_sctp = |name, from| Link {
        transport: Transport::Sctp,
        ..link(name, from)
    };
    settings.links = vec![
        Link {
            role: Role::Ipa,
            ..link("bsc-1", FROM[0])
        },
        over_sctp("bsc-2", FROM[1]),
        over_sctp("msc", FROM[2]),
    ];
    settings.application_servers = vec![
        ApplicationServer {
            destination: Some(MSC.to_string()),
            ..server("bsc-1", 10, BSC_OF_IPA, &["bsc-1"])
        },
        server("bsc-2", 20, BSC_OF_M3UA, &["bsc-2"]),
        server("msc", 30, MSC, &["msc"]),
    ];
    start(settings)
}

/// `cs7 instance 0`: the point code, an ASP that connects to the STP, its application server.
fn instance(code: &str, from: u8, (protocol, port): (&str, u16), server: &str) -> String {
    format!(
        "cs7 instance 0\n point-code {code}\n asp stp {port} 0 {protocol}\n  local-ip {}\n  remote-ip 127.0.0.1\n  role asp\n  sctp-role client\n as stp {protocol}\n  asp stp\n  {server}\n",
        address(from)
    )
}

const NETWORK: &str = "network\n network country code 1\n mobile network code 1\n";

fn osmo_bsc(code: &str, from: u8, (protocol, port): (&str, u16), server: &str) -> Osmo {
    let node = |name: &str, code: &str| {
        format!(" sccp-address {name}\n  routing-indicator PC\n  point-code {code}\n  subsystem-number 254\n")
    };
    let nodes = [
        control(address(from)),
        instance(code, from, (protocol, port), server),
        node("bsc", code),
        node("msc", "0.23.1"),
        NETWORK.to_owned(),
        format!("msc 0\n asp-protocol {protocol}\n bsc-addr bsc\n msc-addr msc\n"),
    ];
    Osmo::start("osmo-bsc", SocketAddr::new(address(from), 4242), &nodes.concat())
}

fn osmo_msc(port: u16) -> Osmo {
    let at = address(FROM[2]);
    let nodes = [
        control(at),
        format!("smpp\n local-tcp-ip {at} 2775\nsgs\n local-ip {at}\n"),
        instance("0.23.1", FROM[2], ("m3ua", port), "routing-key 30 0.23.1"),
        NETWORK.to_owned(),
        "msc\n cs7-instance-a 0\n".to_owned(),
    ];
    Osmo::start("osmo-msc", SocketAddr::new(at, 4254), &nodes.concat())
}

/// The control interface at the address of the program.
fn control(at: IpAddr) -> String {
    format!("ctrl\n bind {at}\n")
}

/// Whether the controller has had the acknowledgement of its MSC: the state of its machine for that.
fn is_reset(controller: &Osmo) -> bool {
    let machines = controller.ask("show fsm-instances all");
    let mut machines = machines.split("FSM Instance Name: '");
    machines.any(|machine| machine.starts_with("bssmap_reset(msc-0)") && machine.contains("State: 'CONN'"))
}

/// Both controllers reset the A interface, one by IPA, one by M3UA; the MSC acknowledges.
#[test]
fn osmo_bsc_and_osmo_msc_reset_the_a_interface() {
    if !is_installed("osmo-bsc") || !is_installed("osmo-msc") {
        return;
    }
    if !testpeer::sctp::is_here("bssmap::osmo_bsc_and_osmo_msc_reset_the_a_interface") {
        return;
    }
    let mut capture = Capture::start();
    let stp = stp();
    let mut ports = stp.addresses().iter().map(SocketAddr::port);
    let ipa = ports.find(|port| *port != SCTP_PORT).unwrap();
    let msc = osmo_msc(SCTP_PORT);
    let controllers = [
        osmo_bsc(
            "0.23.3",
            FROM[0],
            ("ipa", ipa),
            "routing-key 0 0.23.3\n  point-code override dpc 0.23.1",
        ),
        osmo_bsc("0.23.4", FROM[1], ("m3ua", SCTP_PORT), "routing-key 20 0.23.4"),
    ];
    let mut waits = |what: &str, done: &dyn Fn() -> bool| {
        until(what, || {
            if let Some(capture) = &mut capture {
                capture.take();
            }
            done()
        });
    };
    for controller in &controllers {
        waits("a controller has no acknowledgement", &|| is_reset(controller));
    }
    waits("the MSC is not ready for both", &|| {
        let shown = msc.ask("show bsc");
        ["0.23.3", "0.23.4"]
            .iter()
            .all(|code| shown.contains(&format!("BSC RI=SSN_PC,PC={code},SSN=BSSAP READY")))
    });
    for (hop, messages) in [("bsc-1", 1.0), ("bsc-2", 1.0), ("msc", 2.0)] {
        for direction in ["ingress", "egress"] {
            let name = format!("signalbox_stp_{direction}_messages_total{{hop=\"{hop}\"}}");
            assert!(metric(&stp, &name) >= messages, "{name}");
        }
    }
    match &mut capture {
        Some(capture) => capture.judge(ipa),
        None => testpeer::skip::unavailable("packets can be captured by root alone"),
    }
}
