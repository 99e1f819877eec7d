//! Rx when PCFs and relays are lost: another way, another PCF of the set, a realm instead of a name.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bsf::binding::RxSession;
use bsf::config::{RxPeer, RxTransport};
use diameter::endpoint::{Endpoint, Request, Service};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use diameter::{BoundListener, NodeConfig, Security, Transport};
use http::StatusCode;
use serde_json::{Value, json};
use testpeer::sbi::Server;

use crate::rx::{AF, BSF, aar, ask, begun, connect, peer, result};
use crate::support::{Bsf, binding, local, start};

const PCF1: &str = "pcf1.example.org";
const PCF2: &str = "pcf2.example.org";
const RELAYS: [&str; 2] = ["relay1.example.org", "relay2.example.org"];

/// What a request said, as its receiver saw it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    command: u32,
    host: Option<String>,
    realm: Option<String>,
    again: bool,
}

/// A next hop: a PCF, or a relay that answers for one. `silent`: it never answers.
struct Hop {
    answers_as: &'static str,
    silent: bool,
    seen: RefCell<Vec<Seen>>,
}

impl Service for Hop {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let text = |avp| request.message.get(avp).ok().flatten().map(str::to_owned);
        self.seen.borrow_mut().push(Seen {
            command: request.message.command(),
            host: text(known::DESTINATION_HOST),
            realm: text(known::DESTINATION_REALM),
            again: request.message.flags().contains(CommandFlags::RETRANSMITTED),
        });
        if self.silent {
            std::future::pending::<()>().await;
        }
        let mut answer = diameter::proto::MessageBuilder::answer(&request.message);
        answer
            .put(known::RESULT_CODE, ResultCode::SUCCESS.0)
            .put(known::ORIGIN_HOST, self.answers_as)
            .put(known::ORIGIN_REALM, "example.org");
        answer.finish().unwrap()
    }
}

fn hop(host: &str, answers_as: &'static str, silent: bool) -> (Endpoint<Hop>, SocketAddr) {
    let local =
        Capabilities::new(host, "example.org").with_applications([ApplicationId::tgpp(application::RX)]);
    let config = NodeConfig {
        dynamic: vec![diameter::DynamicPeers::default()],
        ..NodeConfig::new(local)
    };
    let service = Hop {
        answers_as,
        silent,
        seen: RefCell::default(),
    };
    let endpoint = Endpoint::new(config, service, None, 1);
    let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
    let address = listener.address();
    endpoint.node().listen(listener, Security::None).unwrap();
    (endpoint, address)
}

fn seen(hop: &Endpoint<Hop>) -> Vec<Seen> {
    hop.service().seen.borrow().clone()
}

/// A BSF with these peers; those of [`RELAYS`] are relays.
async fn with_peers(hops: &[(&str, &Endpoint<Hop>, SocketAddr)], nrf: Option<&Server>) -> Bsf {
    let peers = hops.iter().map(|(host, _, address)| RxPeer {
        host: (*host).to_owned(),
        addresses: vec![*address],
        transport: RxTransport::Tcp,
        names: Vec::new(),
    });
    let peers: Vec<RxPeer> = peers.collect();
    let bsf = start(|config| {
        config.rx.relays = RELAYS.map(str::to_owned).to_vec();
        config.rx.peers = peers;
        // Nothing in these tests waits for it.
        config.rx.timeout = settings::Period::from_secs(60);
        if let Some(nrf) = nrf {
            config.nrf.api_roots = vec![nrf.root()];
        }
    });
    for (_, hop, _) in hops {
        hop.available(BSF).await;
    }
    bsf
}

/// Ends the connections of a hop as soon as a request has come to it.
async fn die(hop: &Endpoint<Hop>) {
    while seen(hop).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    hop.node().stop(Duration::ZERO, 0).await;
}

/// An NRF that knows a set of two PCFs.
pub(crate) fn nrf() -> Server {
    Server::start(|seen| {
        let known = seen.path.starts_with("/nnrf-disc/v1/nf-instances?")
            && seen.path.contains("target-nf-type=PCF")
            && seen.path.contains("set1%2Epcfset");
        let found: Value = match known {
            true => json!([{"pcfInfo": {"rxDiamHost": PCF1}}, {"pcfInfo": {"rxDiamHost": PCF2}}]),
            false => json!([]),
        };
        let answer = json!({"nfInstances": found, "validityPeriod": 1, "heartBeatTimer": 100});
        sbi::json::response(StatusCode::OK, &answer)
    })
}

pub(crate) fn of_set(more: &Value) -> Value {
    let mut value = binding(
        &json!({"pcfDiamHost": PCF1, "pcfSetId": "set1.pcfset.5gc.mnc001.mcc001",
        "bindLevel": "NF_SET"}),
    );
    json_patch::merge(&mut value, more);
    value
}

#[test]
fn another_relay_gets_what_the_first_did_not_answer() {
    local(async {
        let (first, first_address) = hop(RELAYS[0], PCF1, true);
        let (second, second_address) = hop(RELAYS[1], PCF1, false);
        let bsf = with_peers(
            &[
                (RELAYS[0], &first, first_address),
                (RELAYS[1], &second, second_address),
            ],
            None,
        )
        .await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let (answer, ()) = tokio::join!(ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])), die(&first));
        assert_eq!(result(&answer), 2001);
        let sent = |again| Seen {
            command: command::AA,
            host: Some(PCF1.to_owned()),
            realm: Some("example.org".to_owned()),
            again,
        };
        assert_eq!(seen(&first), [sent(false)]);
        assert_eq!(seen(&second), [sent(true)], "once, with the T flag");
        assert_eq!(bsf.running.as_ref().unwrap().count(bsf::Event::RxRetried), 1);
        // The session goes on there.
        let end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        assert_eq!(seen(&second)[1].host.as_deref(), Some(PCF1));
    });
}

#[test]
fn without_another_way_the_request_is_answered_3002() {
    local(async {
        let (first, address) = hop(PCF1, PCF1, true);
        let bsf = with_peers(&[(PCF1, &first, address)], None).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let (answer, ()) = tokio::join!(ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])), die(&first));
        assert_eq!(result(&answer), 3002);
        assert_eq!(bsf.running.as_ref().unwrap().count(bsf::Event::RxRetried), 0);
    });
}

#[test]
fn another_pcf_of_the_set_takes_a_session_whose_pcf_is_not_connected() {
    local(async {
        let nrf = nrf();
        let (second, address) = hop(PCF2, PCF2, false);
        let bsf = with_peers(&[(PCF2, &second, address)], Some(&nrf)).await;
        bsf.path(&bsf.post("pcfBindings", &of_set(&json!({}))).await);
        // What holds for one PCF alone is not another's.
        let alone = of_set(&json!({"bindLevel": "NF_INSTANCE", "ipv4Addr": "10.0.0.2"}));
        bsf.path(&bsf.post("pcfBindings", &alone).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let answer = ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await;
        assert_eq!(
            (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
            (2001, PCF2)
        );
        assert_eq!(result(&ask(&af, BSF, aar("af;1;2", [10, 0, 0, 2])).await), 3002);
        let end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        let hosts: Vec<_> = seen(&second).into_iter().map(|seen| seen.host).collect();
        assert_eq!(hosts, [Some(PCF2.to_owned()), Some(PCF2.to_owned())]);
        assert_eq!(bsf.running.as_ref().unwrap().count(bsf::Event::RxOtherPcf), 1);
    });
}

#[test]
fn another_pcf_of_the_set_gets_what_the_first_did_not_answer() {
    local(async {
        let nrf = nrf();
        let (first, first_address) = hop(PCF1, PCF1, true);
        let (second, second_address) = hop(PCF2, PCF2, false);
        let bsf = with_peers(
            &[(PCF1, &first, first_address), (PCF2, &second, second_address)],
            Some(&nrf),
        )
        .await;
        bsf.path(&bsf.post("pcfBindings", &of_set(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        let (answer, ()) = tokio::join!(ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])), die(&first));
        assert_eq!(
            (result(&answer), answer.require(known::ORIGIN_HOST).unwrap()),
            (2001, PCF2)
        );
        let end = begun(command::SESSION_TERMINATION, "af;1;1", AF);
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        let at_second: Vec<_> = seen(&second)
            .into_iter()
            .map(|seen| (seen.host, seen.again))
            .collect();
        let named = Some(PCF2.to_owned());
        assert_eq!(at_second, [(named.clone(), true), (named, false)]);
    });
}

#[test]
fn the_realm_of_the_pcf_is_named_to_relays_and_may_stand_alone() {
    local(async {
        let (relay, address) = hop(RELAYS[0], PCF2, false);
        let bsf = with_peers(&[(RELAYS[0], &relay, address)], None).await;
        let both = json!({"pcfDiamHost": PCF2, "pcfDiamRealm": "home.example.net"});
        bsf.path(&bsf.post("pcfBindings", &binding(&both)).await);
        let realm = json!({"pcfDiamHost": null, "pcfDiamRealm": "home.example.net", "ipv4Addr": "10.0.0.2"});
        bsf.path(&bsf.post("pcfBindings", &binding(&realm)).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        assert_eq!(result(&ask(&af, BSF, aar("af;1;1", [10, 0, 0, 1])).await), 2001);
        assert_eq!(result(&ask(&af, BSF, aar("af;1;2", [10, 0, 0, 2])).await), 2001);
        // The PCF's name is known by its answer.
        let end = begun(command::SESSION_TERMINATION, "af;1;2", AF);
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        let seen: Vec<_> = seen(&relay)
            .into_iter()
            .map(|seen| (seen.host, seen.realm))
            .collect();
        let (home, own) = (
            Some("home.example.net".to_owned()),
            Some("example.org".to_owned()),
        );
        let pcf = Some(PCF2.to_owned());
        assert_eq!(seen, [(pcf.clone(), home.clone()), (None, home), (pcf, own)]);
    });
}

/// `sessionLifetime` counts from the last request of an Rx session.
#[test]
fn a_path_that_is_used_is_not_forgotten_for_its_age() {
    const DAY: u64 = 86_400_000_000;
    local(async {
        let (pcf, address) = peer(PCF1);
        let directory = tempfile::tempdir().unwrap();
        let config = crate::support::config(directory.path());
        let table = || [store::TableDef::of::<RxSession>()];
        let now = store::Clock::default().micros();
        let before = store::Store::open(&config.store, &table()).await.unwrap();
        let mut batch = store::Batch::default();
        for session in ["af;1;1", "af;1;2"] {
            let path = RxSession::new(session.as_bytes(), AF, PCF1, now - 6 * DAY).unwrap();
            batch.insert(&before.table::<RxSession>().unwrap(), &path);
        }
        before.commit(batch).await.unwrap();
        before.close().await;
        let mut bsf = start(|config| {
            config.store.embedded.directory = directory.path().to_owned();
            config.rx.peers = vec![RxPeer {
                host: PCF1.to_owned(),
                addresses: vec![address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            }];
        });
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        pcf.available(BSF).await;
        for _ in 0..2 {
            let update = begun(command::AA, "af;1;1", AF);
            assert_eq!(result(&ask(&af, BSF, update).await), 2001);
        }
        bsf.stop();
        let after = store::Store::open(&config.store, &table()).await.unwrap();
        let paths = after.table::<RxSession>().unwrap();
        let used = paths.get(b"af;1;1").await.unwrap().unwrap().record;
        assert!(used.began >= now, "{used:?}");
        let unused = paths.get(b"af;1;2").await.unwrap().unwrap().record;
        assert_eq!(unused.began, now - 6 * DAY);
        after.close().await;
    });
}
