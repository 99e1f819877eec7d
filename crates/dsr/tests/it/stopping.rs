//! The stop of a router while requests are in flight.

use std::time::Duration;

use diameter::proto::ResultCode;
use diameter::proto::known::command;
use dsr::Config;
use dsr::config::LocalNode;
use testpeer::diameter::Peer;

use crate::support::{MME, Waiting, client, config, run, ulr_to, world};

/// Longer than a server of these tests takes to answer.
const LONG: settings::Period = settings::Period::from_secs(60);

/// A stop while `mme` has a request at the server: the client gets its answer first, then its DPR.
async fn is_answered_before_the_end(dsr: dsr::Running, mut mme: Peer, mut server: Peer) {
    mme.send(ulr_to("hss.example").as_bytes()).await;
    let request = server.expect(command::UPDATE_LOCATION).await;
    let stopped = tokio::task::spawn_blocking(move || dsr.stop());
    let early = tokio::time::timeout(Duration::from_millis(300), mme.expect(command::DISCONNECT_PEER));
    assert!(early.await.is_err(), "its answer is still out");
    server.answer(&request, ResultCode::SUCCESS).await;
    mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
        .await;
    for peer in [&mut mme, &mut server] {
        let goodbye = peer.expect(command::DISCONNECT_PEER).await;
        peer.answer(&goodbye, ResultCode::SUCCESS).await;
    }
    drop((mme, server));
    stopped.await.unwrap().unwrap();
}

#[test]
fn a_client_of_another_worker_gets_its_answer_first() {
    run(async {
        let two = Config {
            workers: 2,
            drain: LONG,
            ..config()
        };
        let (dsr, _servers, mut peers) = world(two, ["hss.example"], "").await;
        let mme = client(&dsr, MME).await;
        let connections = [0, 1].map(|worker| dsr.connections_of(worker));
        assert_eq!(connections, [1, 1], "client and server are apart");
        is_answered_before_the_end(dsr, mme, peers.remove(0)).await;
    });
}

#[test]
fn a_client_of_another_local_node_gets_its_answer_first() {
    run(async {
        let mut two = Config {
            drain: LONG,
            ..config()
        };
        let behind = LocalNode {
            name: "behind".to_owned(),
            host: "behind.example".to_owned(),
            ..two.local_nodes[0].clone()
        };
        two.local_nodes.push(behind);
        let server = Waiting::new("hss.example").await;
        two.peers.push(dsr::config::Peer {
            local_nodes: vec!["behind".to_owned()],
            ..server.peer()
        });
        let dsr = dsr::start(two).unwrap();
        let peer = server.connected(&dsr).await;
        let mme = client(&dsr, MME).await;
        is_answered_before_the_end(dsr, mme, peer).await;
    });
}

#[test]
fn what_stays_out_is_answered_by_the_router_before_the_end() {
    run(async {
        let two = Config {
            workers: 2,
            ..config()
        };
        let (dsr, _servers, mut peers) = world(two, ["hss.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        peers[0].expect(command::UPDATE_LOCATION).await;
        let stopped = tokio::task::spawn_blocking(move || dsr.stop());
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        mme.expect(command::DISCONNECT_PEER).await;
        drop((mme, peers));
        stopped.await.unwrap().unwrap();
    });
}
