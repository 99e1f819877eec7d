//! Rules for dynamic peers, changed while such peers connect and disconnect.

use std::net::SocketAddr;

use diameter::endpoint::Endpoint;
use diameter::proto::known::{command, disconnect_cause};
use diameter::proto::peer::{Duplicate, PeerSettings, State};
use diameter::proto::{MessageMut, ResultCode};
use diameter::{DynamicPeers, PeerConfig, Security};
use testpeer::diameter::Peer;

use crate::support::{Hss, S6A, config, listen, run, ulr, until};

const HOME: &str = "home.example";
const ROAMING: &str = "roaming.example";

/// A peer that reconnects replaces its former connection, also while that is being closed: only the rules keep a peer
/// out.
fn replacing() -> PeerSettings {
    PeerSettings {
        duplicate: Duplicate::Replace,
        ..PeerSettings::default()
    }
}

fn rule(realm: &str, max: usize) -> DynamicPeers {
    DynamicPeers {
        realms: vec![realm.to_owned()],
        max,
        settings: replacing(),
        ..DynamicPeers::default()
    }
}

fn node(rules: &[DynamicPeers]) -> (Endpoint<Hss>, SocketAddr) {
    let mut config = config("hss.example", S6A);
    config.dynamic = rules.to_vec();
    let server = Endpoint::new(config, Hss::default(), None, 1);
    let address = listen(server.node(), Security::None);
    (server, address)
}

async fn admitted(address: SocketAddr, host: &str, realm: &str) -> Peer {
    Peer::admitted(address, host, realm, S6A).await
}

async fn refused(address: SocketAddr, host: &str, realm: &str, why: ResultCode) {
    Peer::refused(address, host, realm, S6A, why).await;
}

async fn served(peer: &mut Peer) {
    peer.send(ulr("mme.example", "1").as_bytes()).await;
    peer.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
        .await;
}

async fn told_to_go(peer: &mut Peer) -> MessageMut {
    peer.expect_disconnect(disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU)
        .await
}

#[test]
fn admitted_peers_stay_and_the_others_get_a_dpr() {
    run(async {
        let (server, address) = node(&[rule(ROAMING, 9), rule(HOME, 9)]);
        let mut stays = admitted(address, "mme.home.example", HOME).await;
        let mut goes = admitted(address, "mme.roaming.example", ROAMING).await;
        // Connected, without a CER yet.
        let mut late = Peer::connect(address).await;
        until(|| server.node().connections().len() == 3).await;
        server.node().set_dynamic(vec![rule(HOME, 9)]);
        let dpr = told_to_go(&mut goes).await;
        served(&mut stays).await;
        late.send_cer("late.example", S6A).await;
        late.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::UNKNOWN_PEER)
            .await;
        // The node still waits for the DPA, and has the peer in its table: a new connection is refused all the same.
        let unknown = ResultCode::UNKNOWN_PEER;
        refused(address, "mme.roaming.example", ROAMING, unknown).await;
        goes.answer(&dpr, ResultCode::SUCCESS).await;
        goes.expect_close().await;
        refused(address, "mme.roaming.example", ROAMING, unknown).await;
        // Nor does the name of a connected peer admit a client at another address.
        refused(address, "mme.home.example", ROAMING, unknown).await;
        served(&mut stays).await;
        until(|| server.node().peers().len() == 1).await;
        server.node().set_dynamic(vec![rule(ROAMING, 9), rule(HOME, 9)]);
        served(&mut admitted(address, "mme.roaming.example", ROAMING).await).await;
        served(&mut stays).await;
    });
}

#[test]
fn peers_count_under_the_rule_that_fits_now() {
    run(async {
        let (server, address) = node(&[rule(HOME, 9)]);
        let mut first = admitted(address, "a", HOME).await;
        let mut second = admitted(address, "b", HOME).await;
        // Both stay, although the rule permits one now, at another position.
        server.node().set_dynamic(vec![rule(ROAMING, 1), rule(HOME, 1)]);
        served(&mut first).await;
        served(&mut second).await;
        refused(address, "c", HOME, ResultCode::TOO_BUSY).await;
        let roaming = admitted(address, "r", ROAMING).await;
        refused(address, "s", ROAMING, ResultCode::TOO_BUSY).await;
        first.break_off();
        until(|| server.node().peers().len() == 2).await;
        refused(address, "c", HOME, ResultCode::TOO_BUSY).await;
        // A peer that reconnects replaces itself, also where the rule is full.
        let again = admitted(address, "b", HOME).await;
        again.break_off();
        until(|| server.node().peers().len() == 1).await;
        served(&mut admitted(address, "c", HOME).await).await;
        roaming.break_off();
    });
}

#[test]
fn a_peer_removed_from_the_configuration_reconnects_by_a_rule_only() {
    run(async {
        let (server, address) = node(&[]);
        let configured = || {
            server.node().add_peer(PeerConfig {
                settings: replacing(),
                ..PeerConfig::await_from("mme.home.example")
            })
        };
        let cause = disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU;
        let id = configured().unwrap();
        let mut mme = admitted(address, "mme.home.example", HOME).await;
        server.node().remove_peer(id, cause);
        told_to_go(&mut mme).await;
        refused(address, "mme.home.example", HOME, ResultCode::UNKNOWN_PEER).await;
        server.node().set_dynamic(vec![rule(HOME, 1)]);
        // Its entry is that of a dynamic peer from now on, and can be configured again.
        let mut again = admitted(address, "mme.home.example", HOME).await;
        mme.expect_close().await;
        served(&mut again).await;
        refused(address, "other", HOME, ResultCode::TOO_BUSY).await;
        configured().unwrap();
        server.node().set_dynamic(Vec::new());
        served(&mut again).await;
        assert!(server.node().peers()[0].configured);
    });
}

#[test]
fn a_peer_that_is_being_disconnected_must_be_closed_before_it_is_configured() {
    run(async {
        let (server, address) = node(&[rule(HOME, 1)]);
        let configured = || server.node().add_peer(PeerConfig::await_from("mme.home.example"));
        let mut mme = admitted(address, "mme.home.example", HOME).await;
        server.node().set_dynamic(Vec::new());
        let dpr = told_to_go(&mut mme).await;
        assert!(configured().is_err());
        mme.answer(&dpr, ResultCode::SUCCESS).await;
        until(|| server.node().peers().is_empty()).await;
        configured().unwrap();
        served(&mut admitted(address, "mme.home.example", HOME).await).await;
    });
}

#[test]
fn a_peer_that_has_not_begun_the_agreed_tls_is_not_admitted_by_a_former_rule() {
    run(async {
        let authority = crate::security::Authority::new();
        let mut config = config("hss.example", S6A);
        config.local.inband_tls = true;
        let server = Endpoint::new(config, Hss::default(), None, 1);
        let address = listen(server.node(), Security::Inband(authority.tls("hss.example")));
        let mut mme = Peer::connect(address).await;
        mme.send_text(
            "CER { Origin-Host = \"mme.example\" Origin-Realm = \"home.example\" Host-IP-Address = 127.0.0.1 \
             Vendor-Id = 10415 Product-Name = \"x\" Inband-Security-Id = 1 Auth-Application-Id = 16777251 }",
        )
        .await;
        mme.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::SUCCESS)
            .await;
        assert_eq!(server.node().peers()[0].state, State::ROpen);
        server.node().set_dynamic(Vec::new());
        let peers = server.node().peers();
        assert_eq!((peers[0].state, peers[0].connection), (State::Closing, None));
        mme.break_off();
        until(|| server.node().peers().is_empty()).await;
    });
}
