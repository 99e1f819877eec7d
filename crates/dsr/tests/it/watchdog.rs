//! Peers in doubt, and connections that prove themselves (RFC 3539 §3.4.1).

use diameter::proto::known::command;
use diameter::proto::{CommandFlags, ResultCode};
use dsr::config::ReopenPolicy;
use dsr::{Config, Event, HopState, Running};

use crate::support::{MME, Waiting, answered, client, config, one_list, routing, run, ulr, until};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

/// A router with these servers, whose watchdogs go at this interval.
async fn servers(hosts: &[&str], interval: settings::Period) -> (Config, Vec<Waiting>) {
    let (mut config, mut servers) = (config(), Vec::new());
    for host in hosts {
        let server = Waiting::new(host).await;
        let mut peer = server.peer();
        peer.timers.reopen = ReopenPolicy::default();
        config.peers.push(peer);
        servers.push(server);
    }
    // No request ends before its peer is in doubt.
    let transaction = "  transaction: {answer: 60s, lifetime: 90s}\n";
    routing(&mut config, &format!("{}{transaction}", one_list(hosts)));
    // Shorter than a configuration may say.
    config.peers[0].timers.watchdog = interval;
    (config, servers)
}

fn state(dsr: &Running) -> HopState {
    dsr.hops().get(HSS[0].as_bytes()).unwrap()[0].state()
}

#[test]
fn requests_of_a_peer_in_doubt_go_elsewhere() {
    run(async {
        let (config, servers) = servers(&HSS, settings::Period::from_secs(2)).await;
        let dsr = dsr::start(config).unwrap();
        let mut hss1 = servers[0].connected(&dsr).await;
        let mut hss2 = servers[1].connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        hss1.expect(command::UPDATE_LOCATION).await;
        // It reads no more, and so answers no watchdog.
        let request = answered(&mut mme, &mut hss2).await;
        assert!(request.flags().contains(CommandFlags::RETRANSMITTED));
        assert_eq!(dsr.count(Event::PeerDown), 0, "its connection is still open");
    });
}

/// A peer that hangs is noticed by the requests that it does not answer, long before the interval is over.
#[test]
fn an_unanswered_request_brings_a_watchdog_at_once() {
    run(async {
        let (mut config, servers) = servers(&HSS, settings::Period::from_secs(300)).await;
        let transaction = "  transaction: {answer: 1500ms, lifetime: 90s}\n";
        routing(&mut config, &format!("{}{transaction}", one_list(&HSS)));
        let dsr = dsr::start(config).unwrap();
        let mut hss1 = servers[0].connected(&dsr).await;
        let mut hss2 = servers[1].connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        hss1.expect(command::UPDATE_LOCATION).await;
        answered(&mut mme, &mut hss2).await;
        let watchdog = hss1.expect(command::DEVICE_WATCHDOG).await;
        hss1.answer(&watchdog, ResultCode::SUCCESS).await;
        assert_eq!(state(&dsr), HopState::Available);
    });
}

#[test]
fn the_only_peer_may_answer_although_it_is_in_doubt() {
    run(async {
        let (config, servers) = servers(&HSS[..1], settings::Period::from_secs(2)).await;
        let dsr = dsr::start(config).unwrap();
        let mut hss = servers[0].connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let request = hss.expect(command::UPDATE_LOCATION).await;
        until(|| state(&dsr) == HopState::Degraded).await;
        hss.answer(&request, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        until(|| state(&dsr) == HopState::Available).await;
    });
}

#[test]
fn a_connection_that_broke_proves_itself_while_another_serves() {
    run(async {
        let (config, servers) = servers(&HSS, settings::Period::from_secs(2)).await;
        let dsr = dsr::start(config).unwrap();
        let hss1 = servers[0].connected(&dsr).await;
        let mut hss2 = servers[1].connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        hss1.break_off();
        until(|| state(&dsr) == HopState::Down).await;
        let mut hss1 = servers[0].reconnected().await;
        for _ in 0..3 {
            let watchdog = hss1.expect(command::DEVICE_WATCHDOG).await;
            assert_eq!(state(&dsr), HopState::Degraded);
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut hss2).await;
            hss1.answer(&watchdog, ResultCode::SUCCESS).await;
        }
        until(|| state(&dsr) == HopState::Available).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut hss1).await;
    });
}
