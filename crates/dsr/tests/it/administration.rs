//! Peers that an operator drains, disables, enables and reconnects, at the wire.

use diameter::proto::known::{command, disconnect_cause};
use diameter::proto::{MessageMut, ResultCode};
use dsr::{Running, Verb};
use testpeer::diameter::Peer;

use crate::support::{MME, answered, available, client, config, one_list, run, ulr, until, world};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

fn is(dsr: &Running, host: &str, wanted: &str) -> bool {
    let rows = dsr.peers();
    rows.iter()
        .any(|row| row.host == host && row.administration == wanted)
}

/// The peer answers the DPR that it gets next, and closes.
async fn leaves(mut peer: Peer, cause: i32) -> MessageMut {
    let dpr = peer.expect_disconnect(cause).await;
    peer.answer(&dpr, ResultCode::SUCCESS).await;
    dpr
}

#[test]
fn a_peer_is_drained_and_enabled() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        // What it has, it answers; what is new goes elsewhere.
        mme.send(ulr("1").as_bytes()).await;
        let first = peers[0].expect(command::UPDATE_LOCATION).await;
        dsr.administer("HSS1.example", Verb::Drain).unwrap();
        mme.send(ulr("2").as_bytes()).await;
        answered(&mut mme, &mut peers[1]).await;
        peers[0].answer(&first, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        until(|| is(&dsr, HSS[0], "draining")).await;
        dsr.administer(HSS[0], Verb::Enable).unwrap();
        mme.send(ulr("3").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        assert!(dsr.administer("no.example", Verb::Drain).is_err());
        assert!(
            dsr.administer(MME, Verb::Disable).is_err(),
            "it is not configured"
        );
    });
}

#[test]
fn a_peer_is_disabled_enabled_and_reconnected() {
    run(async {
        let (dsr, servers, mut peers) = world(config(), [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        dsr.administer(HSS[0], Verb::Disable).unwrap();
        leaves(peers.remove(0), disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU).await;
        until(|| is(&dsr, HSS[0], "disabled")).await;
        mme.send(ulr("1").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        // It comes itself, and is sent away.
        let mut again = Peer::connect(dsr.addresses()[0]).await;
        again.capabilities(HSS[0], crate::support::APPLICATIONS).await;
        leaves(again, disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU).await;
        dsr.administer(HSS[0], Verb::Enable).unwrap();
        let mut back = servers[0].connected(&dsr).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut back).await;
        dsr.administer(HSS[0], Verb::Reconnect).unwrap();
        leaves(back, disconnect_cause::REBOOTING).await;
        let mut back = servers[0].connected(&dsr).await;
        available(&dsr, HSS[0]).await;
        until(|| is(&dsr, HSS[0], "enabled")).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut back).await;
    });
}
