//! What a router believes, from whom, and what it does not relay.

use diameter::proto::known::{self, command};
use diameter::proto::overload::doic::{LOSS, Report, SupportedFeatures};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use dsr::Config;
use dsr::config::{DynamicPeers, Peer as PeerConfig};

use crate::support::{
    DSR, MME, REALM, Waiting, answered, client, config, one_list, routing, run, ulr, ulr_to, ulr_with, until,
    world,
};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];
const ROAMING: &str = "hss.roaming.example";

/// An answer in the name of another, with a report about that host (0) or its realm (1).
fn report(request: &MessageMut, host: &str, kind: u32) -> String {
    format!(
        "ULA app=16777251 flags=P hbh={} {{ Session-Id = \"x\" Result-Code = 2001 Origin-Host = \"{host}\" \
         Origin-Realm = \"{REALM}\" OC-Supported-Features = {{ }} OC-OLR = {{ OC-Sequence-Number = 7 \
         OC-Report-Type = {kind} OC-Reduction-Percentage = 100 OC-Validity-Duration = 86400 }} }}",
        request.hop_by_hop()
    )
}

#[test]
fn overload_reports_of_foreign_networks_are_neither_heeded_nor_passed_on() {
    run(async {
        let (home, foreign) = (Waiting::new(HSS[0]).await, Waiting::new(ROAMING).await);
        let mut config = config();
        let untrusted = PeerConfig {
            untrusted: true,
            ..foreign.peer()
        };
        config.peers = vec![home.peer(), untrusted];
        let rules = one_list(&HSS[..1]).replace(
            "{action: {routeList: all}}",
            "{when: {destinationHost: {present: false}}, action: {routeList: all}}",
        );
        routing(&mut config, &rules);
        let dsr = dsr::start(config).unwrap();
        let mut home = home.connected(&dsr).await;
        let mut foreign = foreign.connected(&dsr).await;
        let mut mme = client(&dsr, MME).await;
        for kind in [0, 1] {
            mme.send(
                ulr_with("1", |b| {
                    b.put(known::DESTINATION_HOST, ROAMING);
                    SupportedFeatures { vector: LOSS }.write(b);
                })
                .as_bytes(),
            )
            .await;
            let request = foreign.expect(command::UPDATE_LOCATION).await;
            foreign.send_text(&report(&request, HSS[0], kind)).await;
            let answer = mme
                .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
            assert_eq!(Report::all(&answer).count(), 0, "RFC 7683 §10.4: removed");
            assert_eq!(answer.as_bytes().len(), answer.header().length as usize);
            mme.send(ulr_to(HSS[0]).as_bytes()).await;
            answered(&mut mme, &mut home).await;
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut home).await;
        }
        assert_eq!(dsr.count(dsr::Event::ReportHeard), 0);
    });
}

#[test]
fn overload_reports_of_ours_do_not_reach_foreign_networks() {
    run(async {
        let foreign = Config {
            dynamic_peers: vec![DynamicPeers {
                untrusted: true,
                ..DynamicPeers::default()
            }],
            ..config()
        };
        let (dsr, _servers, mut peers) = world(foreign, [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr_with("1", |b| SupportedFeatures { vector: LOSS }.write(b)).as_bytes())
            .await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        peers[0].send_text(&report(&request, HSS[0], 0)).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(Report::all(&answer).count(), 0, "RFC 7683 §10.4: removed");
        until(|| dsr.count(dsr::Event::ReportHeard) == 1).await;
    });
}

#[test]
fn requests_that_must_be_processed_here_are_not_relayed() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), [HSS[0]], &one_list(&HSS[..1])).await;
        let mut mme = client(&dsr, MME).await;
        // RFC 6733 §3: without the P flag.
        let mut local = ulr("1");
        local.set_flags(CommandFlags::REQUEST);
        mme.send(local.as_bytes()).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_HDR_BITS)
            .await;
        assert!(answer.flags().contains(CommandFlags::ERROR));
        // §6.1.4: the Destination-Host is the router.
        mme.send(ulr_to(DSR).as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::APPLICATION_UNSUPPORTED)
            .await;
        // §7.1.3: a command of the base protocol that the router does not have.
        mme.send_text(&format!(
            "299 app=0 flags=RP {{ Session-Id = \"x\" Destination-Realm = \"{REALM}\" }}"
        ))
        .await;
        mme.expect_result(299, ResultCode::COMMAND_UNSUPPORTED).await;
        // Without the P flag it is processed here, where it is just as unknown.
        mme.send_text("299 app=0 flags=R { Session-Id = \"x\" Destination-Realm = \"x\" }")
            .await;
        mme.expect_result(299, ResultCode::COMMAND_UNSUPPORTED).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
    });
}

#[test]
fn hops_that_a_request_has_passed_are_left_out() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let passed = |hosts: &[&str]| {
            ulr_with("1", |b| {
                for host in hosts {
                    b.put(known::ROUTE_RECORD, host);
                }
            })
        };
        mme.send(passed(&["HSS1.example"]).as_bytes()).await;
        answered(&mut mme, &mut peers[1]).await;
        mme.send(passed(&HSS).as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(
            dsr.count(dsr::Event::RequestSent),
            1,
            "not sent to a hop it has passed"
        );
    });
}

#[test]
fn answers_can_be_experimental_results() {
    run(async {
        let rules = "  peerRouteTables:
    - name: default
      rules:
        - {priority: 1, when: {commands: [316]}, action: {answer: {resultCode: 5001, vendorId: 10415}}}
        - {priority: 2, action: {answer: {resultCode: 5012}}}
";
        let (dsr, _servers, _peers) = world(config(), [], rules).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let answer = mme.expect(command::UPDATE_LOCATION).await;
        let routing = diameter::proto::Routing::scan(&answer, b"").unwrap();
        assert_eq!(routing.experimental_result(), Some((10415, 5001)));
        assert_eq!(answer.get(known::RESULT_CODE).unwrap(), None);
        assert_eq!(answer.get(known::AUTH_SESSION_STATE).unwrap(), Some(1));
        assert!(!answer.flags().contains(CommandFlags::ERROR));
        assert!(
            answer.get(known::ERROR_MESSAGE).unwrap().is_none(),
            "without a message there is none"
        );
        // RFC 6733 §7.2: a relay does not know what else the command's answer has to have.
        mme.send_text(&format!(
            "318 app=16777251 flags=RP {{ Session-Id = \"x\" Destination-Realm = \"{REALM}\" }}"
        ))
        .await;
        let answer = mme.expect_result(318, ResultCode::UNABLE_TO_COMPLY).await;
        assert!(answer.flags().contains(CommandFlags::ERROR));
    });
}
