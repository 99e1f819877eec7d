//! What a foreign network sees, and that what it sends back arrives.

use diameter::proto::known::{self, command};
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use dsr::Event;

use crate::support::{MME, client, config, read, run, ulr_with, world};

const HSS: &str = "hss1.home.example";
const FOREIGN: &str = "dra.foreign.example";

const SETTINGS: &str = "topologyHiding:
  realms: [home.example, epc.example]
  pathPseudoHost: edge.example
  hosts: [{actual: mme.example, pseudo: mme-a.example}]
  hssPseudoHost: hss.example
  hssHosts: [hss1.home.example]
";

#[test]
fn policy_servers_have_another_name_in_foreign_networks() {
    run(async {
        const PCRF: &str = "pcrf1.home.example";
        let settings = "topologyHiding: {realms: [home.example], pathPseudoHost: edge.example, hosts: [{actual: \
                        pcrf1.home.example, pseudo: pcrf-a.example}]}\n";
        let mut config = read(config(), settings);
        for rule in &mut config.dynamic_peers {
            rule.untrusted = true;
        }
        let (dsr, servers, mut peers) = world(config, [PCRF], "").await;
        drop(peers.remove(0));
        crate::support::until(|| dsr.hops().get(PCRF.as_bytes()).unwrap()[0].state() == dsr::HopState::Down)
            .await;
        let mut pcrf = servers[0].relay(&dsr).await;
        let mut foreign = client(&dsr, FOREIGN).await;
        // Gx and Rx.
        for (application, name, code) in [
            (16_777_238, "CCR", command::CREDIT_CONTROL),
            (16_777_236, "AAR", command::AA),
        ] {
            foreign
                .send_text(&format!(
                    "{name} app={application} hbh=7 {{ Session-Id = \"pgw.foreign.example;1\" Origin-Host = \
                     \"pgw.foreign.example\" Origin-Realm = \"foreign.example\" Destination-Host = \"pcrf-a.example\" \
                     Destination-Realm = \"home.example\" Class = \"pcrf-a.example\" }}"
                ))
                .await;
            let request = pcrf.expect(code).await;
            assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), PCRF);
            // What an answer has given the client comes back as it was.
            assert_eq!(request.require(known::CLASS).unwrap(), PCRF.as_bytes());
            let mut answer = MessageBuilder::answer(&request);
            answer
                .put(known::RESULT_CODE, ResultCode::SUCCESS.0)
                .put(known::ORIGIN_HOST, PCRF)
                .put(known::CLASS, PCRF.as_bytes())
                .put(known::ERROR_MESSAGE, "pcrf1.home.example, at least")
                .group(known::FAILED_AVP, |group| {
                    group.put(known::DESTINATION_HOST, PCRF);
                });
            pcrf.send(answer.finish().unwrap().as_bytes()).await;
            let answer = foreign.expect_result(code, ResultCode::SUCCESS).await;
            assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), "pcrf-a.example");
            let bytes = answer.as_bytes();
            assert!(!bytes.windows(PCRF.len()).any(|text| text == PCRF.as_bytes()));
        }
    });
}

/// Every text in the message that names a host of ours.
fn leaks(message: &MessageMut) -> bool {
    let bytes = message.as_bytes();
    [HSS, MME, "pgw.home.example"].iter().any(|name| {
        // Not where it ends a longer name.
        bytes.windows(name.len()).enumerate().any(|(at, window)| {
            window.eq_ignore_ascii_case(name.as_bytes())
                && bytes.get(at.wrapping_sub(1)).is_none_or(|b| *b != b'-')
        })
    })
}

#[test]
fn nothing_of_ours_is_seen_and_everything_comes_back() {
    run(async {
        let mut config = read(config(), SETTINGS);
        config.routing.transaction.attempts = 2;
        let (dsr, _servers, mut peers) = world(config, [HSS, FOREIGN], "").await;
        let mut next = dsr.snapshot().config.as_ref().clone();
        next.peers[1].untrusted = true;
        dsr.reload(&next).unwrap();
        let mut mme = client(&dsr, MME).await;
        // Ours to theirs: an MME's request. The configuration may take a moment to reach the worker.
        let request = ulr_with("1", |b| {
            b.put(known::DESTINATION_HOST, FOREIGN)
                .put(known::ROUTE_RECORD, "pgw.home.example");
        });
        let out = loop {
            mme.send(request.as_bytes()).await;
            let out = peers[1].expect(command::UPDATE_LOCATION).await;
            if !leaks(&out) {
                break out;
            }
            peers[1].answer(&out, ResultCode::SUCCESS).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        };
        assert_eq!(out.require(known::ORIGIN_HOST).unwrap(), "mme-a.example");
        assert!(
            out.require(known::SESSION_ID)
                .unwrap()
                .starts_with("mme-a.example;")
        );
        let path: Vec<_> = out
            .avps()
            .flatten()
            .filter(|avp| avp.is(known::ROUTE_RECORD))
            .collect();
        assert_eq!(path.len(), 1);
        assert_eq!(path[0].data, b"edge.example");
        assert_eq!(out.as_bytes().len(), out.header().length as usize);
        peers[1].answer(&out, ResultCode::SUCCESS).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(
            answer.require(known::SESSION_ID).unwrap(),
            request.require(known::SESSION_ID).unwrap()
        );

        // Theirs to ours: by the name they know, in a session they know by that name.
        peers[1]
            .send_text(
                "CLR app=16777251 hbh=5 { Session-Id = \"mme-a.example;9\" Origin-Host = \"hss.foreign.example\" \
                 Origin-Realm = \"foreign.example\" Destination-Host = \"MME-A.example\" Destination-Realm = \
                 \"epc.example\" User-Name = \"1\" }",
            )
            .await;
        let request = mme.expect(command::CANCEL_LOCATION).await;
        assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), MME);
        assert_eq!(request.require(known::SESSION_ID).unwrap(), "mme.example;9");
        mme.answer(&request, ResultCode::SUCCESS).await;
        let answer = peers[1]
            .expect_result(command::CANCEL_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), "mme-a.example");
        assert_eq!(answer.require(known::SESSION_ID).unwrap(), "mme-a.example;9");
        assert!(!leaks(&answer));
        assert!(dsr.count(Event::Hidden) >= 3);

        // The name of all HSSs: the request is routed as if it named none.
        peers[1]
            .send_text(
                "ULR app=16777251 hbh=6 { Session-Id = \"x;1\" Origin-Host = \"mme.foreign.example\" Origin-Realm = \
                 \"foreign.example\" Destination-Host = \"hss.example\" Destination-Realm = \"home.example\" }",
            )
            .await;
        peers[1]
            .expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let mut next = dsr.snapshot().config.as_ref().clone();
        crate::support::routing(&mut next, &crate::support::one_list(&[HSS]));
        dsr.reload(&next).unwrap();
        let loops = "ULR app=16777251 hbh=7 { Session-Id = \"x;1\" Origin-Host = \"a.foreign.example\" Origin-Realm = \
                     \"foreign.example\" Route-Record = \"EDGE.example\" }";
        peers[1].send_text(loops).await;
        peers[1]
            .expect_result(command::UPDATE_LOCATION, ResultCode::LOOP_DETECTED)
            .await;
        peers[1]
            .send_text(
                "ULR app=16777251 hbh=8 { Session-Id = \"x;1\" Origin-Host = \"mme.foreign.example\" Origin-Realm = \
                 \"foreign.example\" Destination-Host = \"hss.example\" Destination-Realm = \"home.example\" }",
            )
            .await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        assert_eq!(request.get(known::DESTINATION_HOST).unwrap(), None);
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        let answer = peers[1]
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), "hss.example");
    });
}

/// Names of hosts of hidden realms that are not listed, and the real names of those that are.
#[test]
fn hosts_without_a_name_outside_do_not_leave_and_real_names_lead_nowhere() {
    run(async {
        let mut config = read(config(), SETTINGS);
        config.dynamic_peers[0].untrusted = true;
        let (dsr, _servers, mut peers) = world(config, [HSS], &crate::support::one_list(&[HSS])).await;
        let mut foreign = client(&dsr, FOREIGN).await;
        let request = ulr_with("1", |_| ());
        foreign.send(request.as_bytes()).await;
        let seen = peers[0].expect(command::UPDATE_LOCATION).await;
        let (hbh, e2e) = (seen.hop_by_hop(), seen.end_to_end());
        peers[0]
            .send_text(&format!(
                "ULA flags=E app=16777251 hbh={hbh} e2e={e2e} {{ Session-Id = \"x\" Result-Code = 3006 Origin-Host = \"{HSS}\" \
                 Origin-Realm = \"home.example\" Error-Reporting-Host = \"slf.home.example\" Route-Record = \
                 \"pgw.home.example\" Redirect-Host = \"aaa://hss7.home.example:3868;transport=tcp\" \
                 Redirect-Host = \"aaa://{HSS}\" Redirect-Host = \"aaa://hss.foreign.example\" }}"
            ))
            .await;
        let answer = foreign.expect(command::UPDATE_LOCATION).await;
        let all = |code: u32| -> Vec<String> {
            let avps = answer.avps().flatten().filter(|avp| avp.code == code);
            avps.map(|avp| String::from_utf8_lossy(avp.data).into_owned())
                .collect()
        };
        assert_eq!((all(294), all(282)), (vec![], vec![]));
        assert_eq!(
            all(292),
            [
                "aaa://edge.example:3868;transport=tcp",
                "aaa://hss.example",
                "aaa://hss.foreign.example"
            ]
        );
        // The real name of an HSS: as if there were none.
        foreign.send(crate::support::ulr_to(HSS).as_bytes()).await;
        foreign
            .expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
    });
}
