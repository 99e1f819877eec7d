//! Requests and answers through the router: unchanged, matched, refused where they must be.

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr::Event;
use testpeer::diameter::Peer;

use crate::support::{
    APPLICATIONS, DSR, MME, answered, available, client, config, counted, one_list, run, ulr, ulr_to,
    ulr_with, until, world,
};

#[test]
fn a_relay_touches_only_what_it_must() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), ["hss.example"], &one_list(&["hss.example"])).await;
        let mut mme = client(&dsr, MME).await;
        let mut request = ulr("001010000000001");
        request.set_hop_by_hop(77);
        request.set_end_to_end(88);
        mme.send(request.as_bytes()).await;
        let relayed = peers[0].expect(command::UPDATE_LOCATION).await;
        let sent = request.as_bytes();
        assert_eq!(relayed.end_to_end(), 88);
        assert_eq!(relayed.flags(), request.flags());
        assert_eq!(
            relayed.as_bytes()[20..sent.len()],
            sent[20..],
            "every AVP as it was"
        );
        assert_eq!(relayed.require(known::ROUTE_RECORD).unwrap(), MME);
        assert_eq!(relayed.avps().count(), request.avps().count() + 1);
        peers[0].answer(&relayed, ResultCode::SUCCESS).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!((answer.hop_by_hop(), answer.end_to_end()), (77, 88));
        assert_eq!(answer.avps().count(), 4, "answers are not touched either");
        // One request and one answer are two messages in the sense of MPS.
        assert_eq!(dsr.count(Event::Message), 2);
        dsr.stop().unwrap();
    });
}

#[test]
fn a_server_reaches_a_client_by_its_name() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), ["hss.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        peers[0].send(ulr_to("MME.example").as_bytes()).await;
        let request = mme.expect(command::UPDATE_LOCATION).await;
        mme.answer(&request, ResultCode::SUCCESS).await;
        peers[0]
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn what_cannot_be_routed_is_answered() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), ["hss.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert!(answer.flags().contains(CommandFlags::ERROR));
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), DSR);
        // An unknown name, the sender's own: none of them has a route. What names the router is for itself.
        for (host, result) in [
            (DSR, ResultCode::APPLICATION_UNSUPPORTED),
            ("unknown.example", ResultCode::UNABLE_TO_DELIVER),
            (MME, ResultCode::UNABLE_TO_DELIVER),
        ] {
            mme.send(ulr_to(host).as_bytes()).await;
            mme.expect_result(command::UPDATE_LOCATION, result).await;
        }
        let looped = ulr_with("1", |b| {
            b.put(known::DESTINATION_HOST, "hss.example")
                .put(known::ROUTE_RECORD, "DSR.example");
        });
        mme.send(looped.as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::LOOP_DETECTED)
            .await;
        assert_eq!((dsr.count(Event::Loop), dsr.count(Event::NoRoute)), (1, 3));
        // An application the server did not announce.
        mme.send_text("CCR app=16777238 { Session-Id = \"x\" Destination-Host = \"hss.example\" }")
            .await;
        mme.expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
            .await;
        peers[0]
            .send_text("ULA app=16777251 hbh=9 { Session-Id = \"x\" Result-Code = DIAMETER_SUCCESS }")
            .await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn malformed_input_affects_no_other_peer() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), ["hss.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        let mut bad = client(&dsr, "bad.example").await;
        let mut cut = ulr_to("hss.example").as_bytes().to_vec();
        // The length of the first AVP reaches beyond the message.
        cut[25..28].copy_from_slice(&[0, 0xff, 0xff]);
        bad.send(&cut).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_AVP_LENGTH)
            .await;
        let mut flags = ulr_to("hss.example");
        flags.set_flags(flags.flags().with(CommandFlags::ERROR));
        bad.send(flags.as_bytes()).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_HDR_BITS)
            .await;
        // A malformed answer does not reach the client; it gets an error.
        mme.send(ulr_to("hss.example").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        let mut answer = request.as_bytes().to_vec();
        answer[4] = 0x40;
        answer[25..28].copy_from_slice(&[0, 0xff, 0xff]);
        peers[0].send(&answer).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(
            (dsr.count(Event::BadRequest), dsr.count(Event::BadAnswer)),
            (2, 1)
        );
        // Sixteen megabytes are claimed: the connection ends, before any of it is waited for.
        bad.send(&[
            1, 0xff, 0xff, 0xfc, 0xc0, 0, 1, 0x3c, 1, 0, 0, 0x23, 0, 0, 0, 1, 0, 0, 0, 1,
        ])
        .await;
        bad.expect(command::UPDATE_LOCATION).await;
        bad.expect_close().await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn a_client_that_reconnects_under_its_name_gets_its_answers() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), ["hss.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        let mut requests = Vec::new();
        for n in 0..50u32 {
            let mut request = ulr_to("hss.example");
            request.set_hop_by_hop(n + 1);
            mme.send(request.as_bytes()).await;
            requests.push(peers[0].expect(command::UPDATE_LOCATION).await);
        }
        // No DPR, the old connection still stands.
        let mut again = Peer::connect(dsr.addresses()[0]).await;
        again.capabilities(MME, APPLICATIONS).await;
        available(&dsr, MME).await;
        for request in &requests {
            peers[0].answer(request, ResultCode::SUCCESS).await;
        }
        for n in 0..50u32 {
            let answer = again
                .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
            assert_eq!(answer.hop_by_hop(), n + 1);
        }
        assert_eq!(dsr.count(Event::AnswerFollowed), 50);
        // Requests go to the new connection as well.
        peers[0].send(ulr_to(MME).as_bytes()).await;
        again.expect(command::UPDATE_LOCATION).await;
        drop(mme);
        again.break_off();
        until(|| dsr.hops().get(&b"mme.example"[..]).is_none()).await;
    });
}

#[test]
fn an_answer_to_an_earlier_connection_never_matches_a_new_request() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), ["hss.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        let numbered = |id: u32, user: &str| {
            let mut request = ulr_with(user, |b| {
                b.put(known::DESTINATION_HOST, "hss.example");
            });
            request.set_hop_by_hop(id);
            request
        };
        let mut old = Vec::new();
        for id in 1..=3 {
            mme.send(numbered(id, "1").as_bytes()).await;
            old.push(peers[0].expect(command::UPDATE_LOCATION).await);
        }
        // The client restarts: it counts from 1 again.
        let mut again = Peer::connect(dsr.addresses()[0]).await;
        again.capabilities(MME, APPLICATIONS).await;
        available(&dsr, MME).await;
        again.send(numbered(2, "2").as_bytes()).await;
        let new = peers[0].expect(command::UPDATE_LOCATION).await;
        for request in &old {
            peers[0].answer(request, ResultCode::SUCCESS).await;
        }
        // 1 and 3 come; 2 means another request now, whose own answer comes later.
        for id in [1, 3] {
            let answer = again.expect(command::UPDATE_LOCATION).await;
            assert_eq!(answer.hop_by_hop(), id);
        }
        assert_eq!(
            (
                dsr.count(Event::AnswerFollowed),
                dsr.count(Event::AnswerAmbiguous)
            ),
            (2, 1)
        );
        peers[0].answer(&new, ResultCode::SUCCESS).await;
        let answer = again.expect(command::UPDATE_LOCATION).await;
        assert_eq!((answer.hop_by_hop(), answer.end_to_end()), (2, new.end_to_end()));
        // With another Origin-State-Id it has lost its state (RFC 6733 §8.16): it gets no answers to former requests.
        again.send(numbered(9, "1").as_bytes()).await;
        let last = peers[0].expect(command::UPDATE_LOCATION).await;
        let mut third = Peer::connect(dsr.addresses()[0]).await;
        third
            .send_text(
                "CER { Origin-Host = \"mme.example\" Origin-Realm = \"example\" Host-IP-Address = 127.0.0.1 \
                 Vendor-Id = 10415 Product-Name = \"x\" Origin-State-Id = 7 Auth-Application-Id = 16777251 }",
            )
            .await;
        third
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::SUCCESS)
            .await;
        available(&dsr, MME).await;
        peers[0].answer(&last, ResultCode::SUCCESS).await;
        counted(&dsr, Event::AnswerLost, 2).await;
        assert_eq!(dsr.count(Event::AnswerAmbiguous), 2);
        third.send(numbered(1, "3").as_bytes()).await;
        answered(&mut third, &mut peers[0]).await;
    });
}

#[test]
fn several_workers_are_one_router() {
    run(async {
        let mut several = config();
        several.workers = 3;
        let hosts = ["hss1.example", "hss2.example", "hss3.example"];
        let list = "  peerRouteTables:\n    - {name: default, rules: [{action: {routeList: all}}]}\n  \
             routeLists:\n    - {name: all, groups: [all]}\n  routeGroups:\n    \
             - {name: all, peers: [{host: hss1.example}, {host: hss2.example}, {host: hss3.example}]}\n";
        let (dsr, _servers, peers) = world(several, hosts, list).await;
        let servers: Vec<_> = peers
            .into_iter()
            .map(|mut peer| {
                tokio::task::spawn_local(async move {
                    let mut count = 0;
                    while let Some(request) = peer.next().await {
                        if request.command() == command::UPDATE_LOCATION {
                            peer.answer(&request, ResultCode::SUCCESS).await;
                            count += 1;
                        }
                    }
                    count
                })
            })
            .collect();
        let mut clients = Vec::new();
        for n in 0..6 {
            clients.push(client(&dsr, &format!("mme{n}.example")).await);
        }
        for mme in &mut clients {
            for n in 0..100u32 {
                let mut request = ulr("1");
                request.set_hop_by_hop(n);
                mme.send(request.as_bytes()).await;
                let answer = mme
                    .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                    .await;
                assert_eq!(answer.hop_by_hop(), n);
            }
        }
        counted(&dsr, Event::AnswerSent, 600).await;
        assert!(
            dsr.count(Event::HandedOver) > 600,
            "two of three hops live elsewhere, both ways"
        );
        assert_eq!(
            dsr.count(Event::Message),
            1200,
            "a message counts once, however it travels"
        );
        dsr.stop().unwrap();
        for server in servers {
            assert!(server.await.unwrap() > 100);
        }
    });
}
