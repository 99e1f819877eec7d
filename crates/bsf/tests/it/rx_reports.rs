//! Overload reports (RFC 7683) and loads (RFC 8583) of PCFs.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bsf::Event;
use bsf::config::{RxPeer, RxTransport};
use diameter::endpoint::{Endpoint, Request, SendOptions, Service, To};
use diameter::proto::known::{self, application, command};
use diameter::proto::overload::doic::{LOSS, Report, ReportType, SupportedFeatures};
use diameter::proto::overload::load::{IDLE, Load, LoadType};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Message, MessageBuilder, MessageMut, ResultCode};
use diameter::{BoundListener, NodeConfig, PeerConfig, Security, Transport};
use serde_json::json;
use testpeer::sbi::Server;

use crate::rx::{AF, BSF, aar, ask, begun, connect, peer, result, rx_peer};
use crate::rx_rainy::{nrf, of_set};
use crate::support::{Bsf, binding, local, start};

const PCF1: &str = "pcf1.example.org";
const PCF2: &str = "pcf2.example.org";
const UNABLE_TO_COMPLY: u32 = 5012;

/// A PCF that answers with success, and with these reports.
#[derive(Default)]
struct Pcf {
    report: Cell<Option<Report>>,
    loads: RefCell<Vec<Load>>,
    /// The name that it answers in, if not its own.
    forged: Cell<Option<&'static str>>,
    /// Whether each request came with OC-Supported-Features.
    seen: RefCell<Vec<bool>>,
}

impl Service for Pcf {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let features = SupportedFeatures::of(&request.message);
        self.seen.borrow_mut().push(features.is_some());
        let mut answer = match self.forged.get() {
            None => request.answer(ResultCode::SUCCESS),
            Some(name) => {
                let mut answer = MessageBuilder::answer(&request.message);
                answer
                    .put(known::RESULT_CODE, ResultCode::SUCCESS.0)
                    .put(known::ORIGIN_HOST, name)
                    .put(known::ORIGIN_REALM, "example.org");
                answer
            }
        };
        if let (Some(features), Some(report)) = (features, self.report.get()) {
            features.write(&mut answer);
            report.write(&mut answer);
        }
        self.loads
            .borrow()
            .iter()
            .for_each(|load| load.write(&mut answer));
        answer.finish().unwrap()
    }
}

fn pcf(host: &str) -> (Endpoint<Pcf>, SocketAddr) {
    let local =
        Capabilities::new(host, "example.org").with_applications([ApplicationId::tgpp(application::RX)]);
    let config = NodeConfig {
        dynamic: vec![diameter::DynamicPeers::default()],
        ..NodeConfig::new(local)
    };
    let endpoint = Endpoint::new(config, Pcf::default(), None, 1);
    let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
    let address = listener.address();
    endpoint.node().listen(listener, Security::None).unwrap();
    (endpoint, address)
}

async fn with_pcfs(pcfs: &[(&str, &Endpoint<Pcf>, SocketAddr)], nrf: Option<&Server>) -> Bsf {
    let bsf = start(|config| {
        config.workers = 3;
        config.rx.peers = pcfs
            .iter()
            .map(|(host, _, address)| RxPeer {
                host: (*host).to_owned(),
                addresses: vec![*address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            })
            .collect();
        config.nrf.api_roots = nrf.map(Server::root).into_iter().collect();
    });
    for (_, pcf, _) in pcfs {
        pcf.available(BSF).await;
    }
    bsf
}

fn report(sequence: u64, reduction: u8, seconds: u64) -> Report {
    Report {
        sequence,
        kind: ReportType::Host,
        reduction,
        validity: Duration::from_secs(seconds),
    }
}

fn has_reports(answer: &Message) -> bool {
    let all = answer.avps().map_while(Result::ok);
    all.into_iter()
        .any(|avp| avp.is(known::OC_OLR) || avp.is(known::OC_SUPPORTED_FEATURES))
}

fn seen(pcf: &Endpoint<Pcf>) -> usize {
    pcf.service().seen.borrow().len()
}

#[test]
fn a_reduction_of_a_pcf_holds_requests_back_until_it_ends() {
    local(async {
        let (pcf1, address) = pcf(PCF1);
        let bsf = with_pcfs(&[(PCF1, &pcf1, address)], None).await;
        let running = bsf.running.as_ref().unwrap();
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;

        // The AF does not take part: the agent asks in its place, and the reports end here.
        pcf1.service().report.set(Some(report(1, 100, 600)));
        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!((result(&answer), has_reports(&answer)), (2001, false));
        assert_eq!(*pcf1.service().seen.borrow(), [true]);
        assert_eq!(running.count(Event::RxReport), 1);
        for number in 2..5 {
            let answer = ask(&af, BSF, aar(&format!("af;1;{number}"), [10, 0, 0, 1])).await;
            assert_eq!(result(&answer), UNABLE_TO_COMPLY);
        }
        let mut end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        end.put(known::DESTINATION_HOST, PCF1);
        assert_eq!(result(&ask(&af, BSF, end).await), UNABLE_TO_COMPLY);
        assert_eq!((seen(&pcf1), running.count(Event::RxAbated)), (1, 4));

        // An AF that takes part and names the PCF reacts itself.
        let features = |mut message: MessageBuilder| {
            SupportedFeatures { vector: LOSS }.write(&mut message);
            message
        };
        pcf1.service().report.set(Some(report(2, 0, 0)));
        let mut own = features(aar("af;1;9", [10, 0, 0, 1]));
        own.put(known::DESTINATION_HOST, PCF1);
        let answer = ask(&af, BSF, own).await;
        assert_eq!((result(&answer), has_reports(&answer)), (2001, true));
        // That was the end of the overload.
        assert_eq!(result(&ask(&af, BSF, aar("af;1;10", [10, 0, 0, 1])).await), 2001);
        // A report that was delayed does not begin it again.
        pcf1.service().report.set(Some(report(1, 100, 600)));
        for number in 11..13 {
            let answer = ask(&af, BSF, aar(&format!("af;1;{number}"), [10, 0, 0, 1])).await;
            assert_eq!(result(&answer), 2001);
        }
        // Half of the sessions that begin go, and no request of one that exists.
        pcf1.service().report.set(Some(report(3, 40, 600)));
        let mut refused = 0;
        for number in 20..220 {
            let session = format!("af;1;{number}");
            let answer = ask(&af, BSF, aar(&session, [10, 0, 0, 1])).await;
            if result(&answer) == UNABLE_TO_COMPLY {
                refused += 1;
                continue;
            }
            assert_eq!(result(&answer), 2001);
            let end = begun(command::SESSION_TERMINATION, &session, AF);
            assert_eq!(result(&ask(&af, BSF, end).await), 2001, "{session}");
        }
        assert!((40..190).contains(&refused), "{refused} of 200");
    });
}

#[test]
fn sessions_of_a_set_go_to_another_pcf_while_theirs_is_overloaded() {
    local(async {
        let ((pcf1, address1), (pcf2, address2)) = (pcf(PCF1), pcf(PCF2));
        let nrf = nrf();
        let pcfs = [(PCF1, &pcf1, address1), (PCF2, &pcf2, address2)];
        let bsf = with_pcfs(&pcfs, Some(&nrf)).await;
        bsf.path(&bsf.post("pcfBindings", &of_set(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf1.service().report.set(Some(report(1, 100, 600)));
        for (number, expected) in (0..).zip([PCF1, PCF2, PCF2]) {
            let answer = ask(&af, BSF, aar(&format!("af;2;{number}"), [10, 0, 0, 1])).await;
            assert_eq!(result(&answer), 2001);
            assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), expected, "{number}");
        }
        // The session stays where it began.
        let end = begun(command::SESSION_TERMINATION, "af;2;1", AF);
        let answer = ask(&af, BSF, end).await;
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), PCF2);
        // Where the other one has too much to do as well, the session is refused.
        pcf2.service().report.set(Some(report(1, 100, 600)));
        let last = ask(&af, BSF, aar("af;2;8", [10, 0, 0, 1])).await;
        assert_eq!(result(&last), 2001);
        let none = ask(&af, BSF, aar("af;2;9", [10, 0, 0, 1])).await;
        assert_eq!(result(&none), UNABLE_TO_COMPLY);
    });
}

#[test]
fn the_load_of_a_neighbour_ends_here_and_that_of_a_pcf_reaches_the_af() {
    local(async {
        let (pcf1, address) = pcf(PCF1);
        let bsf = with_pcfs(&[(PCF1, &pcf1, address)], None).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let load = |kind, value| Load {
            kind,
            value,
            source: PCF1.to_owned(),
        };
        *pcf1.service().loads.borrow_mut() = vec![load(LoadType::Peer, 7), load(LoadType::Host, IDLE)];
        let answer = ask(&af, BSF, aar("af;3;1", [10, 0, 0, 1])).await;
        assert_eq!(result(&answer), 2001);
        assert_eq!(
            Load::all(&answer).collect::<Vec<_>>(),
            [load(LoadType::Host, IDLE)]
        );
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::RxLoad), 2);
    });
}

/// An AF says in the name of a PCF that there is too much to do: no other AF may suffer for it.
#[test]
fn a_peer_reports_for_itself_alone() {
    local(async {
        let (pcf1, address) = peer(PCF1);
        let bsf = start(|config| config.rx.peers = vec![rx_peer(PCF1, address)]);
        pcf1.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (forger, _) = pcf("forger.example");
        let there = bsf.running.as_ref().unwrap().diameter_addresses()[0];
        forger.node().add_peer(PeerConfig::connect(BSF, [there])).unwrap();
        forger.available(BSF).await;
        let mut begin = begun(command::AA, "forger;1", "forger.example");
        begin.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
        let options = SendOptions {
            deadline: Duration::from_secs(20),
            failover: false,
        };
        let answer = forger
            .request(To::Peer(BSF), begin.finish().unwrap(), options)
            .await;
        assert_eq!(result(&answer.unwrap()), 2001);
        forger.service().forged.set(Some(PCF1));
        for kind in [ReportType::Host, ReportType::Realm] {
            forger.service().report.set(Some(Report {
                kind,
                ..report(1, 100, 600)
            }));
            let request = begun(command::RE_AUTH, "forger;1", PCF1);
            assert_eq!(result(&ask(&pcf1, BSF, request).await), 2001);
        }
        assert_eq!(
            *forger.service().seen.borrow(),
            [true, true],
            "it was asked for reports"
        );
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;4;1", [10, 0, 0, 1])).await), 2001);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::RxReport), 0);
    });
}
