//! Rules, lists, alternates, failures, at the wire.

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr::Event;

use crate::support::{
    MME, answered, available, client, config, counted, one_list, routing, run, ulr, ulr_to, ulr_with, until,
    world,
};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

#[test]
fn rules_decide_and_change_while_running() {
    run(async {
        let rules = "  peerRouteTables:
    - name: default
      rules:
        - {priority: 10, when: {imsi: {startsWith: ['00102']}}, action: {routeList: second}}
        - {priority: 20, when: {destinationRealm: {equals: [EPC.example]}}, action: {routeList: first}}
        - {priority: 5, when: {commands: [321]}, action: {answer: {resultCode: 3001, message: not here}}}
        - {priority: 6, when: {commands: [318]}, action: abandon}
  routeLists:
    - {name: first, groups: [first]}
    - {name: second, groups: [second]}
  routeGroups:
    - {name: first, peers: [{host: hss1.example}]}
    - {name: second, peers: [{host: hss2.example}]}
";
        let (dsr, _servers, mut peers) = world(config(), HSS, rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("001010000000001").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        mme.send(ulr("001020000000001").as_bytes()).await;
        answered(&mut mme, &mut peers[1]).await;
        mme.send_text("PUR app=16777251 { Session-Id = \"x\" }").await;
        let answer = mme.expect_result(321, ResultCode::COMMAND_UNSUPPORTED).await;
        assert_eq!(answer.require(known::ERROR_MESSAGE).unwrap(), "not here");
        mme.send_text("AIR app=16777251 { Session-Id = \"x\" }").await;
        counted(&dsr, Event::Abandoned, 1).await;

        let mut next = dsr.snapshot().config.as_ref().clone();
        routing(&mut next, &rules.replace("'00102'", "'00101'"));
        dsr.reload(&next).unwrap();
        // Workers take a configuration between two messages.
        let (first, second) = peers.split_at_mut(1);
        loop {
            mme.send(ulr("001010000000001").as_bytes()).await;
            let moved = tokio::select! {
                request = first[0].expect(command::UPDATE_LOCATION) => {
                    first[0].answer(&request, ResultCode::SUCCESS).await;
                    false
                }
                request = second[0].expect(command::UPDATE_LOCATION) => {
                    second[0].answer(&request, ResultCode::SUCCESS).await;
                    true
                }
            };
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
            if moved {
                break;
            }
        }
        // A removed peer is disconnected; it is missing in the list.
        next.peers.retain(|peer| peer.host != HSS[1]);
        routing(
            &mut next,
            &rules
                .replace("'00102'", "'00101'")
                .replace("[{host: hss2.example}]", "[]"),
        );
        dsr.reload(&next).unwrap();
        let goodbye = peers[1].expect(command::DISCONNECT_PEER).await;
        peers[1].answer(&goodbye, ResultCode::SUCCESS).await;
        until(|| dsr.hops().get(HSS[1].as_bytes()).is_none()).await;
        mme.send(ulr("001010000000001").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
    });
}

#[test]
fn a_lost_peer_leaves_no_request_pending() {
    run(async {
        let (dsr, servers, mut peers) = world(config(), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let mut first = peers.remove(0);
        for n in 0..100 {
            mme.send(ulr(&n.to_string()).as_bytes()).await;
        }
        for n in 0..100 {
            let request = first.expect(command::UPDATE_LOCATION).await;
            if n < 40 {
                first.answer(&request, ResultCode::SUCCESS).await;
            }
        }
        for _ in 0..40 {
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        first.break_off();
        for _ in 0..60 {
            let again = peers[0].expect(command::UPDATE_LOCATION).await;
            assert!(again.flags().contains(CommandFlags::RETRANSMITTED));
            let records = again
                .avps()
                .filter(|avp| avp.as_ref().is_ok_and(|avp| avp.is(known::ROUTE_RECORD)));
            assert_eq!(records.count(), 1, "the Route-Record is appended once");
            peers[0].answer(&again, ResultCode::SUCCESS).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        assert_eq!(dsr.count(Event::Rerouted), 60);
        assert_eq!(
            dsr.count(Event::Message),
            100 + 60 + 100,
            "a re-route counts as a message"
        );
        // The router reconnects to it, and uses it again.
        let mut back = servers[0].connected(&dsr).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut back).await;
    });
}

#[test]
fn a_request_without_a_hop_is_answered() {
    run(async {
        let mut config = config();
        config.routing.transaction.answer = settings::Period::from_millis(100);
        let (dsr, _servers, mut peers) = world(config, HSS, "").await;
        let mut next = dsr.snapshot().config.as_ref().clone();
        routing(
            &mut next,
            &format!(
                "{}  transaction: {{answer: 100ms, lifetime: 10s, attempts: 2}}\n",
                one_list(&HSS)
            ),
        );
        dsr.reload(&next).unwrap();
        let mut mme = client(&dsr, MME).await;
        // No server answers: sent twice, then abandoned.
        mme.send(ulr("1").as_bytes()).await;
        let first = peers[0].expect(command::UPDATE_LOCATION).await;
        assert!(!first.flags().contains(CommandFlags::RETRANSMITTED));
        let second = peers[1].expect(command::UPDATE_LOCATION).await;
        assert!(second.flags().contains(CommandFlags::RETRANSMITTED));
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        // A late answer matches no request.
        peers[0].answer(&first, ResultCode::SUCCESS).await;
        // The connection is lost, and no other hop is left.
        mme.send(ulr_to(HSS[1]).as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        drop(request);
        peers.remove(0).break_off();
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        drop(request);
        peers.remove(0).break_off();
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(
            (dsr.count(Event::Timeout), dsr.count(Event::ConnectionLost)),
            (1, 1)
        );
    });
}

#[test]
fn configured_results_lead_to_another_peer() {
    run(async {
        let rules = format!(
            "{}  reroute:\n    - {{applications: [16777251], resultCodes: [3004], experimentalCodes: [5420]}}\n",
            one_list(&HSS)
        );
        let (dsr, _servers, mut peers) = world(config(), HSS, &rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode::TOO_BUSY).await;
        let again = peers[1].expect(command::UPDATE_LOCATION).await;
        assert!(
            !again.flags().contains(CommandFlags::RETRANSMITTED),
            "the first did not do it"
        );
        peers[1].answer(&again, ResultCode::TOO_BUSY).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::TOO_BUSY)
            .await;
        mme.send(ulr("1").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0]
            .send_text(&format!(
                "ULA app=16777251 flags=P hbh={} {{ Session-Id = \"x\" Experimental-Result = {{ Vendor-Id = 10415 \
                 Experimental-Result-Code = 5420 }} }}",
                request.hop_by_hop()
            ))
            .await;
        answered(&mut mme, &mut peers[1]).await;
        mme.send(
            ulr_with("1", |b| {
                b.put(known::DRMP, 0);
            })
            .as_bytes(),
        )
        .await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].answer(&request, ResultCode(5001)).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode(5001))
            .await;
        available(&dsr, HSS[0]).await;
    });
}

#[test]
fn a_peer_that_moves_is_followed() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        let moved = crate::support::Waiting::new(HSS[0]).await;
        let mut next = dsr.snapshot().config.as_ref().clone();
        next.peers[0] = moved.peer();
        dsr.reload(&next).unwrap();
        let goodbye = peers[0].expect(command::DISCONNECT_PEER).await;
        peers[0].answer(&goodbye, ResultCode::SUCCESS).await;
        let mut there = moved.connected(&dsr).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut there).await;
    });
}

#[test]
fn tables_are_those_of_the_peer_else_of_the_application() {
    run(async {
        let rules = "  peerRouteTables:
    - {name: default, rules: [{action: {routeList: one}}]}
    - {name: ofPeer, rules: [{action: {table: further}}]}
    - {name: further, rules: [{action: {routeList: two}}]}
    - {name: ofApplication, rules: [{action: {routeList: two}}]}
  applicationRouteTables:
    - {name: noAnswer, rules: [{when: {commands: [321]}, action: {answer: {resultCode: 3005}}}]}
    - {name: refuse, rules: [{when: {commands: [321]}, action: {answer: {resultCode: 3004}}}]}
  tablesByApplication:
    - {application: 16777236, peerRouteTable: ofApplication, applicationRouteTable: refuse}
  routeLists: [{name: one, groups: [one]}, {name: two, groups: [two]}]
  routeGroups:
    - {name: one, peers: [{host: hss1.example}]}
    - {name: two, peers: [{host: hss2.example}]}
";
        let mut config = config();
        // Peers that are not configured meet the tables of their rule.
        config.dynamic_peers.insert(
            0,
            dsr::config::DynamicPeers {
                realms: vec!["special.example".to_owned()],
                peer_route_table: "ofPeer".to_owned(),
                application_route_table: "noAnswer".to_owned(),
                ..dsr::config::DynamicPeers::default()
            },
        );
        let (dsr, _servers, mut peers) = world(config, ["hss1.example", "hss2.example"], rules).await;
        let mut plain = client(&dsr, MME).await;
        let mut special = testpeer::diameter::Peer::connect(dsr.addresses()[0]).await;
        special
            .send_text(
                "CER { Origin-Host = \"special.example\" Origin-Realm = \"special.example\" Host-IP-Address = \
                 127.0.0.1 Vendor-Id = 0 Product-Name = \"test\" Auth-Application-Id = 4294967295 }",
            )
            .await;
        special
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::SUCCESS)
            .await;
        available(&dsr, "special.example").await;
        let text = |application: u32, command: &str| {
            format!(
                "{command} app={application} {{ Session-Id = \"x\" Destination-Realm = \"epc.example\" }}"
            )
        };
        let (s6a, rx) = (16_777_251, 16_777_236);
        for (is_special, application, server) in
            [(false, s6a, 0), (false, rx, 1), (true, s6a, 1), (true, rx, 1)]
        {
            let mme = if is_special { &mut special } else { &mut plain };
            mme.send_text(&text(application, "ULR")).await;
            answered(mme, &mut peers[server]).await;
        }
        // A Purge-UE-Request: the application route table of the peer, else of the application, else the default one.
        for (is_special, application, expected) in [(true, s6a, 3005), (true, rx, 3005), (false, rx, 3004)] {
            let mme = if is_special { &mut special } else { &mut plain };
            mme.send_text(&text(application, "PUR")).await;
            mme.expect_result(command::PURGE_UE, ResultCode(expected)).await;
        }
    });
}

#[test]
fn applications_of_a_packet_core_are_relayed_and_measured_apart() {
    run(async {
        let list = one_list(&HSS[..1]);
        let (dsr, servers, mut peers) = world(config(), ["hss1.example"], &list).await;
        drop(peers.remove(0));
        until(|| dsr.hops().get(b"hss1.example").unwrap()[0].state() == dsr::HopState::Down).await;
        let mut server = servers[0].relay(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        // S6a, Sd, Gx, Rx.
        let applications = [
            (16_777_251, command::UPDATE_LOCATION, "ULR"),
            (16_777_303, command::CREDIT_CONTROL, "CCR"),
            (16_777_238, command::CREDIT_CONTROL, "CCR"),
            (16_777_236, command::AA, "AAR"),
        ];
        for (application, code, name) in applications {
            mme.send_text(&format!(
                "{name} app={application} {{ Session-Id = \"x\" Destination-Realm = \"epc.example\" }}"
            ))
            .await;
            let request = server.expect(code).await;
            assert_eq!(request.application(), application);
            server.answer(&request, ResultCode::SUCCESS).await;
            mme.expect_result(code, ResultCode::SUCCESS).await;
            let measured = format!("application {application} command {code} vendor 0 result 2001");
            until(|| {
                dsr.measurements()
                    .iter()
                    .any(|row| row.name == measured && row.count == 1)
            })
            .await;
        }
    });
}

#[test]
fn realms_have_routes_of_their_own() {
    run(async {
        let hosts = ["hss1.example", "hss2.example"];
        let rules = "  peerRouteTables:
    - {name: default, rules: [{when: {imsi: {equals: ['7']}}, action: {routeList: two}}]}
  realmRoutes:
    - {realm: epc.example, applications: [16777251], routeList: one}
    - {realm: .example, routeList: two}
  routeLists: [{name: one, groups: [one]}, {name: two, groups: [two]}]
  routeGroups:
    - {name: one, peers: [{host: hss1.example}]}
    - {name: two, peers: [{host: hss2.example}]}
";
        let (dsr, _servers, mut peers) = world(config(), hosts, rules).await;
        let mut mme = client(&dsr, MME).await;
        let text = |more: &str| format!("ULR app=16777251 {{ Session-Id = \"x\" {more} }}");
        for (more, expected) in [
            // By its realm, also where no peer has the name of its host.
            ("Destination-Realm = \"EPC.example\"", 0),
            (
                "Destination-Realm = \"epc.example\" Destination-Host = \"other.example\"",
                0,
            ),
            ("Destination-Realm = \"far.epc.example\"", 1),
            // A peer that it names, and a rule, come before.
            (
                "Destination-Realm = \"epc.example\" Destination-Host = \"hss2.example\"",
                1,
            ),
            ("Destination-Realm = \"epc.example\" User-Name = \"7\"", 1),
        ] {
            mme.send_text(&text(more)).await;
            answered(&mut mme, &mut peers[expected]).await;
        }
        mme.send_text(&text("Destination-Realm = \"elsewhere\"")).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        // A peer that is known but not connected is not replaced by another of its realm.
        peers.remove(0).break_off();
        until(|| {
            let hops = dsr.hops();
            hops.get(b"hss1.example").unwrap()[0].state() == dsr::HopState::Down
        })
        .await;
        let named = "Destination-Realm = \"far.epc.example\" Destination-Host = \"hss1.example\"";
        mme.send_text(&text(named)).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let why = dsr.why(MME, &text("Destination-Realm = \"epc.example\""));
        assert_eq!(why["route"]["outcome"], "realm route, route list one");
    });
}
