//! Diameter Rx through the BSF, with real Diameter peers on both sides.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bsf::Event;
use bsf::config::{NoBinding, RxMode, RxPeer, RxTransport};
use diameter::endpoint::{Endpoint, Request, SendOptions, Service, To};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Message, MessageBuilder, MessageMut, ResultCode};
use diameter::{BoundListener, NodeConfig, PeerConfig, Security, Transport};
use serde_json::json;
use testpeer::freediameter::{FreeDiameter, Setup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Bsf, binding, local, start};

pub const BSF: &str = "bsf.example.org";
pub const AF: &str = "af.example";
pub const PCF: &str = "pcf1.example.org";

/// Answers every request with success; remembers command and Destination-Host.
#[derive(Default)]
pub struct Peer {
    pub seen: RefCell<Vec<(u32, Option<String>)>>,
}

impl Service for Peer {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let host = request.message.get(known::DESTINATION_HOST).ok().flatten();
        let seen = (request.message.command(), host.map(str::to_owned));
        self.seen.borrow_mut().push(seen);
        request.answer(ResultCode::SUCCESS).finish().unwrap()
    }
}

pub fn peer(host: &str) -> (Endpoint<Peer>, SocketAddr) {
    let local =
        Capabilities::new(host, "example.org").with_applications([ApplicationId::tgpp(application::RX)]);
    let config = NodeConfig {
        dynamic: vec![diameter::DynamicPeers::default()],
        ..NodeConfig::new(local)
    };
    let endpoint = Endpoint::new(config, Peer::default(), None, 1);
    let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
    let address = listener.address();
    endpoint.node().listen(listener, Security::None).unwrap();
    (endpoint, address)
}

pub async fn connect(af: &Endpoint<Peer>, bsf: &Bsf) {
    let address = bsf.running.as_ref().unwrap().diameter_addresses()[0];
    af.node().add_peer(PeerConfig::connect(BSF, [address])).unwrap();
    af.available(BSF).await;
}

pub fn begun(code: u32, session: &str, origin: &str) -> MessageBuilder {
    let mut builder = MessageBuilder::request(code, application::RX);
    builder
        .put(known::SESSION_ID, session)
        .put(known::AUTH_APPLICATION_ID, application::RX)
        .put(known::ORIGIN_HOST, origin)
        .put(known::ORIGIN_REALM, "example.org")
        .put(known::DESTINATION_REALM, "example.org");
    builder
}

pub fn aar(session: &str, address: [u8; 4]) -> MessageBuilder {
    let mut builder = begun(command::AA, session, AF);
    builder.put(known::FRAMED_IP_ADDRESS, &address);
    builder
}

pub async fn ask(from: &Endpoint<Peer>, to: &str, message: MessageBuilder) -> Message {
    let options = SendOptions {
        deadline: Duration::from_secs(20),
        failover: false,
    };
    from.request(To::Peer(to), message.finish().unwrap(), options)
        .await
        .unwrap()
}

pub fn result(answer: &Message) -> u32 {
    answer.get(known::RESULT_CODE).unwrap().unwrap_or_default()
}

#[test]
fn a_session_stays_on_one_path() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"ipv6Prefix": "2001:db8::/64"})))
                .await,
        );

        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(
            (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
            (2001, PCF)
        );
        let mut v6 = begun(command::AA, "af;1;2", AF);
        v6.put(
            known::FRAMED_IPV6_PREFIX,
            &[0, 128, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        );
        assert_eq!(result(&ask(&af, BSF, v6).await), 2001);
        // Later requests of the session, without an address and without a name.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;1", AF)).await),
            2001
        );
        // What the PCF asks of the AF, by name and by session.
        let mut rar = begun(command::RE_AUTH, "af;1;1", PCF);
        rar.put(known::DESTINATION_HOST, AF);
        assert_eq!(result(&ask(&pcf, BSF, rar).await), 2001);
        assert_eq!(
            result(&ask(&pcf, BSF, begun(command::ABORT_SESSION, "af;1;1", PCF)).await),
            2001
        );
        assert_eq!(
            result(&ask(&af, BSF, begun(command::SESSION_TERMINATION, "af;1;1", AF)).await),
            2001
        );
        // It has ended: nothing is known of it any more.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::SESSION_TERMINATION, "af;1;1", AF)).await),
            5002
        );
        let at_pcf: Vec<u32> = pcf.service().seen.borrow().iter().map(|seen| seen.0).collect();
        assert_eq!(at_pcf, [265, 265, 265, 275]);
        assert!(
            pcf.service()
                .seen
                .borrow()
                .iter()
                .all(|seen| seen.1.as_deref() == Some(PCF))
        );
        let at_af: Vec<u32> = af.service().seen.borrow().iter().map(|seen| seen.0).collect();
        assert_eq!(at_af, [258, 274]);
    });
}

#[test]
fn no_binding_no_peer_and_nonsense_are_told_by_result_codes() {
    local(async {
        let bsf = start(|_| {});
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 9])).await), 3002);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 3002);
        let mut short = begun(command::AA, "af;1;2", AF);
        short.put(known::FRAMED_IP_ADDRESS, &[10, 0]);
        assert_eq!(result(&ask(&af, BSF, short).await), 5004);
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;3", AF)).await),
            5005
        );
        let mut looped = aar("af;1;4", [10, 0, 0, 1]);
        looped.put(known::ROUTE_RECORD, BSF);
        assert_eq!(result(&ask(&af, BSF, looped).await), 3005);
        assert_eq!(
            result(&ask(&af, BSF, begun(command::ACCOUNTING, "af;1;5", AF)).await),
            3001
        );
        bsf.running
            .as_ref()
            .unwrap()
            .set_state(bsf::State::Partial)
            .await
            .unwrap();
        assert_eq!(result(&ask(&af, BSF, aar("af;1;6", [10, 0, 0, 1])).await), 3004);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::RxNoBinding), 1);
    });
}

#[test]
fn as_a_redirect_agent() {
    local(async {
        let bsf = start(|config| {
            config.rx.mode = RxMode::Redirect;
            config.rx.no_binding = NoBinding::IpCanSessionNotAvailable;
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(result(&answer), 3006);
        assert!(format!("{:?}", answer.require(known::REDIRECT_HOST).unwrap()).contains(PCF));
        let answer = ask(&af, BSF, aar("af;1;2", [10, 0, 0, 2])).await;
        let group = answer.avps().find(known::EXPERIMENTAL_RESULT).unwrap().unwrap();
        assert_eq!(
            group.group().require(known::EXPERIMENTAL_RESULT_CODE).unwrap(),
            5065
        );
    });
}

#[test]
fn a_free_diameter_relay_on_each_side() {
    local(async {
        // AF -> freeDiameter -> BSF -> freeDiameter -> PCF: it routes by realm and by Destination-Host.
        let (pcf, pcf_address) = peer("pcf.example");
        let beyond = Setup {
            identity: "fd2.example",
            realm: "fd2.example",
            port: 0,
            peers: &[("pcf.example", pcf_address)],
        };
        let Some(second) = FreeDiameter::start(beyond).await else {
            return;
        };
        let second_address = second.address();
        let bsf = start(move |config| {
            config.rx.host = "bsf.example".to_owned();
            config.rx.relays = vec!["fd2.example".to_owned()];
            config.rx.peers = vec![RxPeer {
                host: "fd2.example".to_owned(),
                addresses: vec![second_address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let own = bsf.running.as_ref().unwrap().diameter_addresses()[0];
        let before = Setup {
            identity: "fd1.example",
            realm: "fd1.example",
            port: 0,
            peers: &[("bsf.example", own)],
        };
        let Some(first) = FreeDiameter::start(before).await else {
            return;
        };
        pcf.available("fd2.example").await;
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"pcfDiamHost": "pcf.example"})))
                .await,
        );
        let (af, _) = peer(AF);
        af.node()
            .add_peer(PeerConfig::connect("fd1.example", [first.address()]))
            .unwrap();
        af.available("fd1.example").await;
        let mut good = 0;
        for round in 0..200 {
            // Until every connection is up, an agent on the way says that it cannot deliver.
            let answer = ask(&af, "fd1.example", aar(&format!("af;2;{round}"), [10, 0, 0, 1])).await;
            good += usize::from(result(&answer) == 2001);
            if good < 5 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            // The PCF asks the AF over the same way back, by name and, for the BSF, by session.
            let session = format!("af;2;{round}");
            for code in [command::RE_AUTH, command::ABORT_SESSION] {
                let mut request = begun(code, &session, "pcf.example");
                request.put(known::DESTINATION_HOST, AF);
                let answer = ask(&pcf, "fd2.example", request).await;
                assert_eq!(
                    (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                    (2001, AF)
                );
            }
            let mut end = begun(command::SESSION_TERMINATION, &session, AF);
            end.put(known::DESTINATION_HOST, "pcf.example");
            let answer = ask(&af, "fd1.example", end).await;
            assert_eq!(
                (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                (2001, "pcf.example")
            );
            let at_af: Vec<u32> = af.service().seen.borrow().iter().map(|seen| seen.0).collect();
            assert_eq!(at_af, [258, 274]);
            return;
        }
        panic!("{good} of 5 answers; {} {}", first.log(), second.log());
    });
}

#[test]
fn between_a_free_diameter_as_af_and_one_as_pcf() {
    local(async {
        let own = testpeer::freediameter::free_port();
        let bsf_address: SocketAddr = ([127, 0, 0, 1], own).into();
        // freeDiameter sends by realm to peers of that realm.
        let setup = |identity| Setup {
            identity,
            realm: "example.org",
            port: 0,
            peers: &[],
        };
        let Some(pcf) = FreeDiameter::start_rx(setup("pcf.example"), "pcf").await else {
            return;
        };
        let pcf_address = pcf.address();
        let bsf = start(|config| {
            config.rx.host = "bsf.example".to_owned();
            config.rx.listen = settings::Listen(vec![bsf_address]);
            config.rx.peers = vec![RxPeer {
                host: "pcf.example".to_owned(),
                addresses: vec![pcf_address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"pcfDiamHost": "pcf.example"})))
                .await,
        );
        for _ in 0..400 {
            if pcf.log().contains("STATE_OPEN") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let peers = [("bsf.example", bsf_address)];
        let af = FreeDiameter::start_rx(
            Setup {
                peers: &peers,
                ..setup("af.example")
            },
            "af bsf.example",
        );
        let af = af.await.unwrap();
        for _ in 0..400 {
            if af.log().contains("STA ") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let said = |log: &str, lines: &[&str]| {
            for line in lines {
                assert!(
                    log.lines().any(|one| one == *line),
                    "{line} is missing:\n{}\n{}",
                    af.log(),
                    pcf.log()
                );
            }
        };
        said(
            &af.log(),
            &[
                "AAA 2001 pcf.example",
                "RAR 0 pcf.example",
                "STA 2001 pcf.example",
            ],
        );
        said(
            &pcf.log(),
            &["AAR 0 af.example", "RAA 2001 af.example", "STR 0 af.example"],
        );
    });
}

#[test]
fn a_path_outlives_the_bsf() {
    local(async {
        let (pcf, address) = peer(PCF);
        let peers = vec![RxPeer {
            host: PCF.to_owned(),
            addresses: vec![address],
            transport: RxTransport::Tcp,
            names: Vec::new(),
        }];
        let mut bsf = start(|config| config.rx.peers.clone_from(&peers));
        {
            let (af, _) = peer(AF);
            connect(&af, &bsf).await;
            pcf.available(BSF).await;
            bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
            for session in ["af;1;1", "af;1;2", "af;1;3"] {
                assert_eq!(result(&ask(&af, BSF, aar(session, [10, 0, 0, 1])).await), 2001);
            }
            assert_eq!(
                result(&ask(&af, BSF, begun(command::SESSION_TERMINATION, "af;1;1", AF)).await),
                2001
            );
        }
        bsf.stop();
        let mut config = crate::support::config(bsf.directory.path());
        config.rx.peers = peers;
        bsf.running = Some(bsf::start(config).unwrap());
        // The binding may be gone by then: what counts is the path.
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        let str = |session| begun(command::SESSION_TERMINATION, session, AF);
        assert_eq!(
            result(&ask(&af, BSF, str("af;1;1")).await),
            5002,
            "it has ended before"
        );
        assert_eq!(
            result(&ask(&pcf, BSF, begun(command::RE_AUTH, "af;1;2", PCF)).await),
            2001
        );
        assert_eq!(result(&ask(&af, BSF, str("af;1;2")).await), 2001);
        assert_eq!(result(&ask(&af, BSF, str("af;1;2")).await), 5002);
        // Of an update neither the address nor the PCF's name is needed.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;3", AF)).await),
            2001
        );
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(bsf::Event::RxSessionRecalled), 2);
        while running.repository().paths_held.get() != 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// A BSF that is connected to a PCF, the PCF, and an AF that is connected to the BSF.
async fn connected() -> (Bsf, Endpoint<Peer>, Endpoint<Peer>) {
    let (pcf, address) = peer(PCF);
    let bsf = start(|config| config.rx.peers = vec![rx_peer(PCF, address)]);
    let (af, _) = peer(AF);
    connect(&af, &bsf).await;
    pcf.available(BSF).await;
    (bsf, pcf, af)
}

/// RFC 6733 §6.1.4 and §6.5: who names the agent does not name the PCF.
#[test]
fn a_request_that_names_the_bsf_reaches_the_pcf_by_its_own_name() {
    local(async {
        let (bsf, pcf, af) = connected().await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let mut first = aar("af;1;1", [10, 0, 0, 1]);
        first.put(known::DESTINATION_HOST, BSF);
        assert_eq!(result(&ask(&af, BSF, first).await), 2001);
        let mut end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        end.put(known::DESTINATION_HOST, BSF);
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        let seen = pcf.service().seen.borrow();
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|seen| seen.1.as_deref() == Some(PCF)), "{seen:?}");
    });
}

/// A session that has not begun is not bound to the PCF that could not be reached.
#[test]
fn an_initial_request_that_failed_is_sent_where_the_binding_points_next() {
    local(async {
        let (bsf, _pcf, af) = connected().await;
        let gone = json!({"pcfDiamHost": "pcf9.example.org"});
        bsf.path(&bsf.post("pcfBindings", &binding(&gone)).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 3002);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
    });
}

/// Rx-Request-Type is not needed to know that a session exists.
#[test]
fn an_update_with_an_address_stays_at_its_pcf_after_a_restart() {
    local(async {
        let ((pcf, address), (other, elsewhere)) = (peer(PCF), peer("pcf2.example.org"));
        let peers = vec![rx_peer(PCF, address), rx_peer("pcf2.example.org", elsewhere)];
        let mut bsf = start(|config| config.rx.peers.clone_from(&peers));
        {
            let (af, _) = peer(AF);
            connect(&af, &bsf).await;
            pcf.available(BSF).await;
            bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
            assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
            let moved = json!({"pcfDiamHost": "pcf2.example.org"});
            bsf.path(&bsf.post("pcfBindings", &binding(&moved)).await);
        }
        bsf.stop();
        let mut config = crate::support::config(bsf.directory.path());
        config.rx.peers = peers;
        bsf.running = Some(bsf::start(config).unwrap());
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        other.available(BSF).await;
        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(
            (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
            (2001, PCF)
        );
    });
}

pub fn rx_peer(host: &str, address: SocketAddr) -> RxPeer {
    RxPeer {
        host: host.to_owned(),
        addresses: vec![address],
        transport: RxTransport::Tcp,
        names: Vec::new(),
    }
}

#[test]
fn paths_in_the_store_are_bounded() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.max_sessions = 8;
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        for session in 0..50 {
            let answer = ask(&af, BSF, aar(&format!("af;1;{session}"), [10, 0, 0, 1])).await;
            assert_eq!(result(&answer), 2001);
        }
        let running = bsf.running.as_ref().unwrap();
        let held = running.repository().paths_held.clone();
        assert!(held.get() <= 9, "{}", held.get());
        while held.get() > 8 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(running.count(bsf::Event::RxSessionNotKept) >= 41);
    });
}

#[test]
fn a_path_that_is_not_ended_expires_with_its_age() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.session_lifetime = settings::Period::from_millis(50);
            config.rx.peers = vec![RxPeer {
                host: PCF.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::RxSessionExpired) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(running.repository().paths_held.get(), 0);
        // In memory it lives on.
        assert_eq!(
            result(&ask(&af, BSF, begun(command::AA, "af;1;1", AF)).await),
            2001
        );
    });
}

/// TLS by what is in the files now.
fn by_files(files: &tls::TlsFiles) -> Security {
    let config = diameter::TlsConfig::open(&tls::Watched::default(), "test", files);
    Security::Tls(config.unwrap())
}

#[test]
fn over_tls() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let authority = tls::authority::Authority::new("lab").unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let trust = write("ca.pem", authority.pem());
        let identity = |host: &str| {
            let issued = authority.issue(&[host]).unwrap();
            let certificate = write(&format!("{host}.pem"), &issued.certificate);
            (certificate, write(&format!("{host}.key"), &issued.key))
        };
        let own = identity(BSF);
        let bsf = start(|config| {
            config.rx.tls = Some(tls::TlsFiles {
                certificate: own.0,
                key: own.1,
                authorities: Some(trust.clone()),
                require_client_certificate: Some(true),
                ..Default::default()
            });
        });
        let address = bsf.running.as_ref().unwrap().diameter_addresses()[0];
        let (certificate, key) = identity(AF);
        let secured = tls::TlsFiles {
            certificate,
            key,
            authorities: Some(trust),
            ..Default::default()
        };
        let (af, _) = peer(AF);
        af.node()
            .add_peer(PeerConfig {
                security: by_files(&secured),
                ..PeerConfig::connect(BSF, [address])
            })
            .unwrap();
        af.available(BSF).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 9])).await), 3002);
        // A connection in the clear is refused: it ends.
        let mut clear = tokio::net::TcpStream::connect(address).await.unwrap();
        let cer = begun(command::CAPABILITIES_EXCHANGE, "x", "clear.example")
            .finish()
            .unwrap();
        clear.write_all(cer.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), clear.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "still open");
        // Another authority, in the same files: new connections meet it, open ones stay.
        let running = bsf.running.as_ref().unwrap();
        assert!(!running.reread().unwrap());
        let other = tls::authority::Authority::new("another").unwrap();
        write("ca.pem", other.pem());
        let issued = other.issue(&[BSF]).unwrap();
        write(&format!("{BSF}.pem"), &issued.certificate);
        assert!(running.reread().is_err(), "the key is not the certificate's");
        write(&format!("{BSF}.key"), &issued.key);
        assert!(running.reread().unwrap());
        let issued = other.issue(&["later.example"]).unwrap();
        let secured = tls::TlsFiles {
            certificate: write("later.pem", &issued.certificate),
            key: write("later.key", &issued.key),
            ..secured
        };
        let (later, _) = peer("later.example");
        later
            .node()
            .add_peer(PeerConfig {
                security: by_files(&secured),
                ..PeerConfig::connect(BSF, [address])
            })
            .unwrap();
        later.available(BSF).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;2", [10, 0, 0, 9])).await), 3002);
    });
}

#[test]
fn on_several_workers() {
    local(async {
        let pcfs: Vec<_> = (0..6).map(|n| peer(&format!("pcf{n}.example"))).collect();
        let bsf = start(|config| {
            config.workers = 3;
            config.rx.peers = (pcfs.iter().enumerate())
                .map(|(n, (_, address))| RxPeer {
                    host: format!("pcf{n}.example"),
                    addresses: vec![*address],
                    transport: RxTransport::Tcp,
                    names: Vec::new(),
                })
                .collect();
        });
        for (pcf, _) in &pcfs {
            pcf.available(BSF).await;
        }
        for n in 0..6 {
            let one = binding(
                &json!({"ipv4Addr": format!("10.0.0.{n}"), "pcfDiamHost": format!("PCF{n}.example")}),
            );
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
        for a in 0..4 {
            let name = format!("af{a}.example");
            let (af, _) = peer(&name);
            connect(&af, &bsf).await;
            for n in 0..6_u8 {
                let (session, host) = (format!("{name};{n}"), format!("pcf{n}.example"));
                let mut first = begun(command::AA, &session, &name);
                first.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, n]);
                let answer = ask(&af, BSF, first).await;
                assert_eq!(
                    (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
                    (2001, host.as_str())
                );
                let pcf = &pcfs[usize::from(n)].0;
                let rar = begun(command::RE_AUTH, &session, &host);
                assert_eq!(result(&ask(pcf, BSF, rar).await), 2001);
                let end = begun(command::SESSION_TERMINATION, &session, &name);
                assert_eq!(result(&ask(&af, BSF, end).await), 2001);
                let again = begun(command::RE_AUTH, &session, &host);
                assert_eq!(result(&ask(pcf, BSF, again).await), 5002);
            }
            assert_eq!(af.service().seen.borrow().len(), 6);
        }
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(bsf::Event::RxAnswerDropped), 0);
        assert_eq!(running.count(bsf::Event::RxForwarded), 4 * 6 * 3);
    });
}
