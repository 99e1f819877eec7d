//! What a foreign network sees, and that what it sends back arrives.

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
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
