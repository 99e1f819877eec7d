//! What changes while the router runs, as those meet it who are connected.

use std::net::SocketAddr;

use diameter::proto::ResultCode;
use diameter::proto::known::{command, disconnect_cause};
use dsr::Config;
use dsr::config::{DynamicPeers, LocalNode};
use testpeer::diameter::Peer;

use crate::support::{APPLICATIONS, MME, answered, available, client, config, run, ulr_to, until, world};

const HSS: &str = "hss.example";
/// The realm of scripted peers.
const HOME: &str = "example";
const ROAMING: &str = "roaming.example";

fn rule(realm: &str, max: usize) -> DynamicPeers {
    DynamicPeers {
        realms: vec![realm.to_owned()],
        max,
        ..DynamicPeers::default()
    }
}

async fn admitted(at: SocketAddr, host: &str, realm: &str) -> Peer {
    Peer::admitted(at, host, realm, APPLICATIONS).await
}

async fn refused(at: SocketAddr, host: &str, realm: &str, why: ResultCode) {
    Peer::refused(at, host, realm, APPLICATIONS, why).await;
}

async fn told_to_go(peer: &mut Peer) {
    let cause = disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU;
    let dpr = peer.expect_disconnect(cause).await;
    peer.answer(&dpr, ResultCode::SUCCESS).await;
    peer.expect_close().await;
}

#[test]
fn rules_for_strangers_change_and_judge_those_who_are_connected() {
    run(async {
        let rules = |rules: &[DynamicPeers]| Config {
            dynamic_peers: rules.to_vec(),
            ..config()
        };
        let (dsr, listening, mut peers) = world(rules(&[rule(ROAMING, 9), rule(HOME, 9)]), [HSS], "").await;
        let at = dsr.addresses()[0];
        let change = |to: &[DynamicPeers]| {
            let next = Config {
                peers: listening.iter().map(crate::support::Waiting::peer).collect(),
                ..rules(to)
            };
            dsr.reload(&next).unwrap();
        };
        let mut home = client(&dsr, MME).await;
        let mut roaming = admitted(at, "mme.roaming.example", ROAMING).await;
        // A request that is under way goes on, whatever becomes of the rules.
        home.send(ulr_to(HSS).as_bytes()).await;
        let under_way = peers[0].expect(command::UPDATE_LOCATION).await;
        change(&[rule(HOME, 1)]);
        told_to_go(&mut roaming).await;
        peers[0].answer(&under_way, ResultCode::SUCCESS).await;
        home.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        refused(at, "mme.roaming.example", ROAMING, ResultCode::UNKNOWN_PEER).await;
        home.send(ulr_to(HSS).as_bytes()).await;
        answered(&mut home, &mut peers[0]).await;
        // It takes the one place of the rule that fits it now.
        refused(at, "second.example", HOME, ResultCode::TOO_BUSY).await;
        home.break_off();
        until(|| dsr.hops().get(MME.as_bytes()).is_none()).await;
        let mut second = client(&dsr, "second.example").await;
        // Who gets configured by the reload that takes the rule away stays, too.
        let next = Config {
            peers: [HSS, "second.example"]
                .iter()
                .map(
                    |host| match listening.iter().find(|server| server.host == *host) {
                        Some(server) => server.peer(),
                        None => dsr::config::Peer {
                            host: (*host).to_owned(),
                            ..dsr::config::Peer::default()
                        },
                    },
                )
                .collect(),
            ..rules(&[])
        };
        dsr.reload(&next).unwrap();
        until(|| {
            dsr.hops()
                .get(&b"second.example"[..])
                .is_some_and(|hops| hops[0].is_configured())
        })
        .await;
        // The rule leaves right after the peer got its entry, which is what was seen above.
        while Peer::refusal(at, MME, HOME, APPLICATIONS).await == ResultCode::TOO_BUSY {}
        refused(at, MME, HOME, ResultCode::UNKNOWN_PEER).await;
        second.send(ulr_to(HSS).as_bytes()).await;
        answered(&mut second, &mut peers[0]).await;
    });
}

#[test]
fn rules_for_strangers_change_on_every_worker_and_local_node() {
    run(async {
        let base = config();
        let first = base.local_nodes[0].clone();
        let second = LocalNode {
            name: "second".to_owned(),
            host: "dsr2.example".to_owned(),
            ..first.clone()
        };
        let several = Config {
            workers: 3,
            local_nodes: vec![first, second],
            dynamic_peers: vec![rule(HOME, 9)],
            ..base
        };
        let dsr = dsr::start(several.clone()).unwrap();
        let mut clients = Vec::new();
        for n in 0..12 {
            let host = format!("mme{n}.example");
            clients.push(admitted(dsr.addresses()[n % 2], &host, HOME).await);
            available(&dsr, &host).await;
        }
        assert!((0..3).all(|worker| dsr.connections_of(worker) > 0));
        let next = Config {
            dynamic_peers: vec![rule(ROAMING, 9)],
            ..several
        };
        dsr.reload(&next).unwrap();
        for client in &mut clients {
            told_to_go(client).await;
        }
        for at in dsr.addresses().iter().cycle().take(12) {
            refused(*at, MME, HOME, ResultCode::UNKNOWN_PEER).await;
            admitted(*at, "mme.roaming.example", ROAMING).await;
        }
    });
}

#[test]
fn timers_of_a_peer_change_on_its_connection() {
    run(async {
        let hss = crate::support::Waiting::new(HSS).await;
        let peer = |watchdog: u64| dsr::config::Peer {
            host: MME.to_owned(),
            timers: dsr::config::Timers {
                watchdog: settings::Period::from_secs(watchdog),
                ..dsr::config::Timers::default()
            },
            ..dsr::config::Peer::default()
        };
        let with = |watchdog: u64, message: &str| {
            let mut config = Config {
                peers: vec![hss.peer(), peer(watchdog)],
                ..config()
            };
            crate::support::routing(
                &mut config,
                &format!(
                    "  peerRouteTables: [{{name: default, rules: [{{when: {{commands: [318]}}, action: {{answer: \
                     {{resultCode: 3001, message: {message}}}}}}}]}}]\n"
                ),
            );
            config
        };
        let dsr = dsr::start(with(30, "before")).unwrap();
        let mut server = hss.connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        dsr.reload(&with(20, "after")).unwrap();
        loop {
            mme.send_text("AIR app=16777251 { Session-Id = \"x\" }").await;
            let answer = mme.expect_result(318, ResultCode::COMMAND_UNSUPPORTED).await;
            let message = answer.require(diameter::proto::known::ERROR_MESSAGE).unwrap();
            if message == "after" {
                break;
            }
        }
        // Were it sent away, its DPR would come before the answers.
        for _ in 0..10 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            mme.send(ulr_to(HSS).as_bytes()).await;
            answered(&mut mme, &mut server).await;
        }
    });
}

#[test]
fn a_peer_whose_connection_changes_is_asked_to_come_back() {
    run(async {
        let peer = |bind: Option<&str>| dsr::config::Peer {
            host: MME.to_owned(),
            bind: bind.map(|ip| ip.parse().unwrap()),
            ..dsr::config::Peer::default()
        };
        let with = |bind| Config {
            peers: vec![peer(bind)],
            ..config()
        };
        let dsr = dsr::start(with(None)).unwrap();
        let mut mme = client(&dsr, MME).await;
        dsr.reload(&with(Some("127.0.0.1"))).unwrap();
        // RFC 6733 §5.4.3: after any other cause it would stay away.
        mme.expect_disconnect(disconnect_cause::REBOOTING).await;
    });
}
