//! The base protocol's own requests as RFC 6733 wants them: what is refused, with which result.

use diameter::proto::known::{self, command};
use diameter::proto::{Avps, CommandFlags, MessageMut, ResultCode};
use testpeer::diameter::Peer;

use crate::support::{
    MME, Waiting, answered, available, client, config, counted, one_list, run, ulr, ulr_with, world,
};

const HSS: &str = "hss1.example";
const NAMES: &str = "Origin-Host = \"x.example\" Origin-Realm = \"example\"";
const REST: &str = "Host-IP-Address = 127.0.0.1 Vendor-Id = 1 Product-Name = \"x\"";

/// The AVPs in the Failed-AVP, by code.
fn failed(answer: &MessageMut) -> Vec<u32> {
    let group = answer.avps().find(known::FAILED_AVP).unwrap();
    let inside = group.map(|avp| avp.data).unwrap_or_default();
    Avps::new(inside).flatten().map(|avp| avp.code).collect()
}

#[test]
fn a_cer_is_judged_by_its_grammar() {
    run(async {
        let dsr = dsr::start(config()).unwrap();
        let app = "Auth-Application-Id = 16777251";
        let vendor = |inside: &str| {
            format!("{REST} Vendor-Specific-Application-Id = {{ Vendor-Id = 10415 {inside} }}")
        };
        let cases = [
            (
                format!("Host-IP-Address = 127.0.0.1 Product-Name = \"x\" {app}"),
                5005,
                vec![266],
            ),
            (
                format!("Host-IP-Address = 127.0.0.1 Vendor-Id = 1 {app}"),
                5005,
                vec![269],
            ),
            (
                vendor(&format!("{app} Acct-Application-Id = 3")),
                5009,
                vec![258, 259],
            ),
            (vendor(""), 5005, vec![258, 259]),
            (format!("{REST} {app} Inband-Security-Id = 1"), 5017, vec![]),
            (format!("{REST} {app} Inband-Security-Id = 9"), 5017, vec![]),
            (
                format!("{REST} {app} Origin-Host = \"y.example\""),
                5009,
                vec![264],
            ),
            (format!("{REST} {app} Vendor-Id = 2"), 5009, vec![266]),
            (REST.to_owned(), 5010, vec![]),
        ];
        for (avps, code, codes) in cases {
            let mut peer = Peer::connect(dsr.addresses()[0]).await;
            peer.send_text(&format!("CER {{ {NAMES} {avps} }}")).await;
            let answer = peer
                .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode(code))
                .await;
            assert_eq!(failed(&answer), codes, "{avps}");
            // §5.3.2: without the E flag a CEA has what its grammar requires, whatever its result.
            assert!(!answer.flags().contains(CommandFlags::ERROR));
            for name in [
                known::HOST_IP_ADDRESS.key,
                known::VENDOR_ID.key,
                known::PRODUCT_NAME.key,
            ] {
                let has = answer.avps().flatten().any(|avp| avp.key() == name);
                assert!(has, "{avps}: {name}");
            }
            peer.expect_close().await;
        }
        let mut peer = Peer::connect(dsr.addresses()[0]).await;
        peer.send_text(&format!("CER flags=RE {{ {NAMES} {REST} {app} }}"))
            .await;
        let answer = peer
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::INVALID_HDR_BITS)
            .await;
        assert!(answer.flags().contains(CommandFlags::ERROR));
        peer.expect_close().await;
        // Command 257 of another application is not a CER.
        let mut peer = Peer::connect(dsr.addresses()[0]).await;
        peer.send_text(&format!("CER app=5 {{ {NAMES} {REST} {app} }}"))
            .await;
        peer.expect_close().await;
        // One that offers both goes on in the clear.
        let mut peer = Peer::connect(dsr.addresses()[0]).await;
        let both = format!("CER {{ {NAMES} {REST} {app} Inband-Security-Id = 0 Inband-Security-Id = 1 }}");
        peer.send_text(&both).await;
        peer.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn a_watchdog_or_disconnection_is_judged_by_its_grammar() {
    run(async {
        let dsr = dsr::start(config()).unwrap();
        let mut mme = client(&dsr, MME).await;
        mme.send_text("DWR { Origin-Host = \"mme.example\" }").await;
        let answer = mme
            .expect_result(command::DEVICE_WATCHDOG, ResultCode::MISSING_AVP)
            .await;
        assert_eq!(failed(&answer), [296]);
        mme.send_text(&format!("DWR flags=RE {{ {NAMES} }}")).await;
        let answer = mme
            .expect_result(command::DEVICE_WATCHDOG, ResultCode::INVALID_HDR_BITS)
            .await;
        assert!(answer.flags().contains(CommandFlags::ERROR));
        // It goes all the same.
        mme.send_text(&format!("DPR {{ {NAMES} }}")).await;
        let answer = mme
            .expect_result(command::DISCONNECT_PEER, ResultCode::MISSING_AVP)
            .await;
        assert_eq!(failed(&answer), [273]);
        counted(&dsr, dsr::Event::PeerDown, 1).await;
    });
}

/// RFC 6733 §5.4: no periodic attempts to connect to a peer that is busy.
#[test]
fn a_busy_server_is_left_alone() {
    run(async {
        let hss = Waiting::new(HSS).await;
        let mut config = config();
        let mut peer = hss.peer();
        peer.timers.reconnect_max = settings::Period::from_millis(400);
        config.peers.push(peer);
        crate::support::routing(&mut config, &one_list(&[HSS]));
        let dsr = dsr::start(config).unwrap();
        let server = hss.connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        leave(server, "DO_NOT_WANT_TO_TALK_TO_YOU").await;
        counted(&dsr, dsr::Event::PeerDown, 1).await;
        // Longer than the longest pause: traffic of any kind leads to an attempt.
        assert!(hss.is_left_alone(std::time::Duration::from_millis(500)).await);
        mme.send(ulr("1").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let server = hss.connected(&dsr).await;
        leave(server, "BUSY").await;
        counted(&dsr, dsr::Event::PeerDown, 2).await;
        // Several of the longest pauses. The request before was for the connection that there was since.
        assert!(hss.is_left_alone(std::time::Duration::from_millis(1600)).await);
        mme.send(ulr("1").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let mut back = hss.connected(&dsr).await;
        available(&dsr, HSS).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut back).await;
    });
}

/// The server disconnects for this cause.
async fn leave(mut server: Peer, cause: &str) {
    let dpr = format!(
        "DPR {{ Origin-Host = \"hss1.example\" Origin-Realm = \"example\" Disconnect-Cause = {cause} }}"
    );
    server.send_text(&dpr).await;
    server
        .expect_result(command::DISCONNECT_PEER, ResultCode::SUCCESS)
        .await;
}

/// RFC 6733 §6.1.4 and §7.1.3 (3002).
#[test]
fn a_request_without_a_realm_is_not_relayed() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS], &one_list(&[HSS])).await;
        let mut mme = client(&dsr, MME).await;
        let names = "Session-Id = \"x\" Origin-Host = \"mme.example\" Origin-Realm = \"epc.example\"";
        for (destination, result) in [
            ("", ResultCode::UNABLE_TO_DELIVER),
            (
                "Destination-Host = \"hss1.example\"",
                ResultCode::UNABLE_TO_DELIVER,
            ),
            // For the router itself, which serves no application.
            (
                "Destination-Host = \"dsr.example\"",
                ResultCode::APPLICATION_UNSUPPORTED,
            ),
        ] {
            mme.send_text(&format!("ULR app=16777251 {{ {names} {destination} }}"))
                .await;
            mme.expect_result(command::UPDATE_LOCATION, result).await;
        }
        // Nor where its name routes it.
        let own = ulr_with("1", |b| {
            b.put(known::DESTINATION_HOST, crate::support::DSR);
        });
        mme.send(own.as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::APPLICATION_UNSUPPORTED)
            .await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
    });
}

/// RFC 6733 §3: answers with an unknown Hop-by-Hop Identifier are discarded.
#[test]
fn an_answer_to_no_request_of_ours_has_no_effect() {
    run(async {
        let hss = Waiting::new(HSS).await;
        let mut config = config();
        config.peers.push(hss.peer());
        let dsr = dsr::start(config).unwrap();
        let mut server = hss.accepted().await;
        let cer = server.expect(command::CAPABILITIES_EXCHANGE).await;
        let cea = |id: u32, code: u32| {
            let names =
                "Origin-Host = \"hss1.example\" Origin-Realm = \"example\" Auth-Application-Id = 16777251";
            format!("CEA hbh={id} {{ Result-Code = {code} {names} {REST} }}")
        };
        // It would end the connection.
        server.send_text(&cea(cer.hop_by_hop() ^ 1, 5012)).await;
        server.send_text(&cea(cer.hop_by_hop(), 2001)).await;
        available(&dsr, HSS).await;
        assert_eq!(dsr.count(dsr::Event::PeerDown), 0);
    });
}

#[test]
fn a_watchdog_interval_is_at_least_6_seconds() {
    let read = |watchdog: &str| {
        let yaml = format!("peers: [{{host: a.example, timers: {{watchdog: {watchdog}}}}}]");
        settings::from_str::<dsr::Config>(&yaml, "test")
    };
    assert!(read("6s").is_ok());
    let report = read("5999ms").unwrap_err().to_string();
    assert!(report.contains("RFC 3539"), "{report}");
}
