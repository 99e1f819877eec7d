//! Sessions that stay with their server, answers that belong to their request, redirects, and a client that leaves.

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use dsr::Event;
use testpeer::diameter::Peer;

use crate::support::{
    MME, answered, client, config, counted, one_list, routing, run, ulr, ulr_to, until, world,
};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

/// One group of both servers, in which sessions stay.
fn by_session() -> String {
    let rules = "  peerRouteTables:\n    - {name: default, rules: [{action: {routeList: all}}]}\n";
    let groups = "  routeLists:\n    - {name: all, groups: [g]}\n  routeGroups:\n";
    let members = HSS.map(|host| format!("{{host: {host}}}")).join(", ");
    format!("{rules}{groups}    - {{name: g, bySession: true, peers: [{members}]}}\n")
}

/// The position of the server that gets this request, which answers it.
async fn served_by(mme: &mut Peer, servers: &mut [Peer], request: &MessageMut) -> usize {
    mme.send(request.as_bytes()).await;
    let [first, second] = servers else {
        panic!("two servers")
    };
    let (position, got) = tokio::select! {
        got = first.expect(command::UPDATE_LOCATION) => (0, got),
        got = second.expect(command::UPDATE_LOCATION) => (1, got),
    };
    servers[position].answer(&got, ResultCode::SUCCESS).await;
    mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
        .await;
    position
}

#[test]
fn a_session_stays_with_its_server_without_a_destination_host() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, &by_session()).await;
        let mut mme = client(&dsr, MME).await;
        let mut met = [0; 2];
        for user in 0..20 {
            let request = ulr(&user.to_string());
            let first = served_by(&mut mme, &mut peers, &request).await;
            met[first] += 1;
            for _ in 0..3 {
                assert_eq!(served_by(&mut mme, &mut peers, &request).await, first);
            }
        }
        assert!(met.iter().all(|count| *count > 3), "{met:?}");
        // A client that names its server late is sent there.
        let mut named = ulr_to(HSS[0]);
        for _ in 0..5 {
            named.set_end_to_end(named.end_to_end().wrapping_add(1));
            assert_eq!(served_by(&mut mme, &mut peers, &named).await, 0);
        }
    });
}

#[test]
fn an_answer_of_another_request_does_not_reach_the_client() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        let answer = |code: u32, application: u32, hbh: u32, e2e: u32| {
            format!(
                "{code} app={application} flags=P hbh={hbh} e2e={e2e} {{ Session-Id = \"x\" Result-Code = 2001 \
                 Origin-Host = \"hss1.example\" Origin-Realm = \"example\" }}"
            )
        };
        for wrong in 0..3u32 {
            mme.send(ulr("1").as_bytes()).await;
            let request = peers[0].expect(command::UPDATE_LOCATION).await;
            let (code, application, e2e) = match wrong {
                0 => (318, request.application(), request.end_to_end()),
                1 => (316, request.application() + 1, request.end_to_end()),
                _ => (316, request.application(), request.end_to_end() ^ 1),
            };
            let text = answer(code, application, request.hop_by_hop(), e2e);
            peers[0].send_text(&text).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
                .await;
        }
        assert_eq!(dsr.count(Event::AnswerMismatched), 3);
        until(|| {
            let active = dsr.handle().alarms().active();
            active
                .iter()
                .any(|alarm| alarm.number == 10519 && alarm.instance.contains(HSS[0]))
        })
        .await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
    });
}

#[test]
fn a_redirected_request_names_the_host_that_it_goes_to() {
    run(async {
        let mut base = config();
        base.peers = Vec::new();
        let (dsr, _servers, mut peers) = {
            let rules = format!("  followRedirects: true\n{}", one_list(&HSS[..1]));
            let mut servers = Vec::new();
            for host in HSS {
                let server = crate::support::Waiting::new(host).await;
                base.peers.push(server.peer());
                servers.push(server);
            }
            let rules = rules.replace(
                "rules: [{action: {routeList: all}}]",
                "rules: [{when: {destinationHost: {present: false}}, action: {routeList: all}}]",
            );
            routing(&mut base, &rules);
            let dsr = dsr::start(base).unwrap();
            let mut peers = Vec::new();
            for server in &servers {
                peers.push(server.connected(&dsr).await);
            }
            (dsr, servers, peers)
        };
        let mut mme = client(&dsr, MME).await;
        // With a Destination-Host, and without one: none is added.
        for (request, named) in [(ulr_to(HSS[0]), Some(HSS[1])), (ulr("1"), None)] {
            mme.send(request.as_bytes()).await;
            let first = peers[0].expect(command::UPDATE_LOCATION).await;
            peers[0]
                .send_text(&format!(
                    "ULA app=16777251 flags=PE hbh={} e2e={} {{ Session-Id = \"x\" Result-Code = 3006 Redirect-Host = \
                     \"aaa://hss2.example\" Origin-Host = \"hss1.example\" Origin-Realm = \"example\" }}",
                    first.hop_by_hop(),
                    first.end_to_end()
                ))
                .await;
            let second = answered(&mut mme, &mut peers[1]).await;
            assert_eq!(second.get(known::DESTINATION_HOST).unwrap(), named);
            assert_eq!(second.as_bytes().len(), second.header().length as usize);
            assert!(second.avps().flatten().any(|avp| avp.is(known::ROUTE_RECORD)));
            assert!(second.flags().contains(CommandFlags::PROXIABLE));
        }
        assert_eq!(dsr.count(Event::Redirected), 2);
    });
}

/// RFC 6733 §5.4: the DPA "SHOULD contain an error if messages have recently been forwarded, and are likely in flight".
#[test]
fn a_client_that_leaves_with_requests_in_flight_is_told() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        let dpr = "DPR { Origin-Host = \"mme.example\" Origin-Realm = \"epc.example\" Disconnect-Cause = 0 }";
        mme.send(ulr("1").as_bytes()).await;
        let _request = peers[0].expect(command::UPDATE_LOCATION).await;
        mme.send_text(dpr).await;
        mme.expect_result(command::DISCONNECT_PEER, ResultCode::UNABLE_TO_COMPLY)
            .await;
        counted(&dsr, Event::PeerDown, 1).await;
        // One without is not.
        let mut mme = client(&dsr, "mme2.example").await;
        mme.send(ulr("2").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        mme.send_text(dpr).await;
        mme.expect_result(command::DISCONNECT_PEER, ResultCode::SUCCESS)
            .await;
    });
}
