//! How often a request is sent, with which flags, and what is counted.

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr::Event;
use dsr::config::{Peer as PeerConfig, ThrottleGroup};

use crate::support::{
    MME, Waiting, answered, available, client, config, counted, one_list, run, ulr, ulr_to, ulr_with, world,
};

const HSS: [&str; 4] = ["hss1.example", "hss2.example", "hss3.example", "hss4.example"];

#[test]
fn a_request_that_may_have_been_processed_keeps_the_t_flag() {
    run(async {
        let rules = format!("{}  reroute: [{{resultCodes: [3004]}}]\n", one_list(&HSS[..3]));
        let (dsr, _servers, mut peers) = world(config(), [HSS[0], HSS[1], HSS[2]], &rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        peers[0].expect(command::UPDATE_LOCATION).await;
        peers.remove(0).break_off();
        let second = peers[0].expect(command::UPDATE_LOCATION).await;
        assert!(second.flags().contains(CommandFlags::RETRANSMITTED));
        peers[0].answer(&second, ResultCode::TOO_BUSY).await;
        let third = peers[1].expect(command::UPDATE_LOCATION).await;
        assert!(
            third.flags().contains(CommandFlags::RETRANSMITTED),
            "the first may have processed it"
        );
        peers[1].answer(&third, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn hops_that_got_nothing_are_no_attempts() {
    run(async {
        let mut config = config();
        config.throttle_groups = vec![ThrottleGroup {
            name: "full".to_owned(),
            peers: HSS[..3].iter().map(|host| (*host).to_owned()).collect(),
            rate: 1,
            ..ThrottleGroup::default()
        }];
        let (dsr, _servers, mut peers) = world(config, HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let (first, last) = peers.split_at_mut(3);
        for _ in 0..10 {
            mme.send(ulr("1").as_bytes()).await;
            tokio::select! {
                request = last[0].expect(command::UPDATE_LOCATION) => last[0].answer(&request, ResultCode::SUCCESS).await,
                request = first[0].expect(command::UPDATE_LOCATION) => first[0].answer(&request, ResultCode::SUCCESS).await,
            }
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        assert!(dsr.count(Event::Throttled) >= 9);
        assert_eq!(
            (dsr.count(Event::Rerouted), dsr.count(Event::Message)),
            (0, 20),
            "ten requests, ten answers, nothing sent twice"
        );
    });
}

#[test]
fn every_sibling_is_asked_in_turn() {
    run(async {
        let names = [
            "mp1.example",
            "mp2.example",
            "mp3.example",
            "mp4.example",
            "mp5.example",
        ];
        let mut config = config();
        let mut waiting = Vec::new();
        for name in names {
            let sibling = Waiting::new(name).await;
            config.peers.push(PeerConfig {
                sibling: true,
                ..sibling.peer()
            });
            waiting.push(sibling);
        }
        let dsr = dsr::start(config).unwrap();
        let asked = std::rc::Rc::new(std::cell::Cell::new(0));
        for sibling in &waiting {
            let mut peer = sibling.connected(&dsr).await;
            let asked = asked.clone();
            tokio::task::spawn_local(async move {
                let request = peer.expect(command::UPDATE_LOCATION).await;
                asked.set(asked.get() + 1);
                // Four do not have the peer; the last one that is asked has.
                let result = match asked.get() {
                    5 => ResultCode::SUCCESS,
                    _ => ResultCode::UNABLE_TO_DELIVER,
                };
                peer.answer(&request, result).await;
                // It stays connected.
                peer.expect_close().await;
            });
        }
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(asked.get(), 5);
    });
}

/// RFC 6733 §5.4: the DPA reports an error while requests to the peer are in flight.
#[test]
fn an_orderly_leave_lets_answers_come() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS[0], HSS[1]], &one_list(&HSS[..2])).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0]
            .send_text(
                "DPR { Origin-Host = \"hss1.example\" Origin-Realm = \"example\" Disconnect-Cause = 0 }",
            )
            .await;
        peers[0]
            .expect_result(command::DISCONNECT_PEER, ResultCode::UNABLE_TO_COMPLY)
            .await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(dsr.count(Event::Rerouted), 0, "no duplicate");
        // New requests go elsewhere, and what stays unanswered when it closes does.
        mme.send(ulr("2").as_bytes()).await;
        answered(&mut mme, &mut peers[1]).await;
    });
}

#[test]
fn a_server_that_left_is_connected_to_when_there_is_something_to_send() {
    run(async {
        let (dsr, servers, mut peers) = world(config(), [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        let mut server = peers.remove(0);
        server
            .send_text(
                "DPR { Origin-Host = \"hss1.example\" Origin-Realm = \"example\" Disconnect-Cause = 2 }",
            )
            .await;
        server
            .expect_result(command::DISCONNECT_PEER, ResultCode::SUCCESS)
            .await;
        drop(server);
        crate::support::counted(&dsr, Event::PeerDown, 1).await;
        // RFC 6733 §5.4: "the connection … in the event there is a message to be forwarded".
        mme.send(ulr("1").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let mut back = servers[0].connected(&dsr).await;
        available(&dsr, HSS[0]).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut back).await;
    });
}

#[test]
fn a_stop_makes_no_duplicates() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS[0], HSS[1]], &one_list(&HSS[..2])).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        peers[0].expect(command::UPDATE_LOCATION).await;
        let stopped = tokio::task::spawn_blocking(move || dsr.stop());
        // The client is answered before it is sent away; the other server gets nothing but its DPR.
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let goodbye = peers[1].expect(command::DISCONNECT_PEER).await;
        peers[1].answer(&goodbye, ResultCode::SUCCESS).await;
        drop((peers, mme));
        stopped.await.unwrap().unwrap();
    });
}

#[test]
fn kept_requests_are_bounded_in_bytes() {
    run(async {
        let mut config = config();
        config.limits.pending_bytes_per_peer = settings::ByteSize(64 * 1024);
        let (dsr, _servers, mut peers) = world(config, [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        let large = ulr_with("1", |b| {
            b.put(known::ERROR_MESSAGE, &"x".repeat(20 * 1024));
        });
        for _ in 0..4 {
            mme.send(large.as_bytes()).await;
        }
        // Three fit; nothing else is left for the fourth.
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::TOO_BUSY)
            .await;
        for _ in 0..3 {
            let request = peers[0].expect(command::UPDATE_LOCATION).await;
            peers[0].answer(&request, ResultCode::SUCCESS).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        // Whatever was answered weighs nothing.
        for _ in 0..10 {
            mme.send(large.as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
    });
}

#[test]
fn a_request_stays_in_its_group_where_it_may_not_go_across() {
    run(async {
        let rules = one_list(&HSS[..2]).replace("{name: all,", "{name: all, acrossGroups: false,");
        let (dsr, _servers, mut peers) = world(config(), [HSS[0], HSS[1]], &rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        peers[0].expect(command::UPDATE_LOCATION).await;
        peers.remove(0).break_off();
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(dsr.count(Event::RequestSent), 1);
        // New ones go to the other group.
        mme.send(ulr("2").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
    });
}

#[test]
fn a_copy_may_be_answered_later() {
    run(async {
        let rules = one_list(&HSS[..2]).replace(
            "rules: [{action: {routeList: all}}]",
            "rules: [{action: {routeList: all}, copyTo: copies}]",
        );
        let rules = rules.replace(
            "  routeLists:\n",
            "  routeLists:\n    - {name: copies, groups: [hss2.example]}\n",
        );
        let (dsr, _servers, mut peers) = world(config(), [HSS[0], HSS[1]], &rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        let copy = peers[1].expect(command::UPDATE_LOCATION).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        peers[1].answer(&copy, ResultCode::SUCCESS).await;
        counted(&dsr, Event::CopyAnswered, 1).await;
    });
}
