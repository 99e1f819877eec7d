//! Connections of devices: which MME has one, and how one ends.

use diameter::proto::kind::TimeValue;
use diameter::proto::known::{self, application, command};
use http::StatusCode;
use scef::Event;
use serde_json::json;

use crate::judge;
use crate::network::{ESTABLISH, NOT_CONNECTED, Node, RELEASE, SUCCESS, UPDATE, result_of};
use crate::support::{
    CONFIGURATIONS, DEVICE, configuration, configured, data, local, notified, path_of, server, soon, start,
};

const CMR: (u32, u32) = (command::CONNECTION_MANAGEMENT, application::T6A);

#[test]
fn an_mme_that_does_not_have_the_connection_neither_uses_nor_releases_it() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let mut other = Node::mme_named(scef.diameter(), "mme2.example.org").await;
        configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        assert_eq!(other.uplink(b"forged", 1).await, NOT_CONNECTED);
        assert_eq!(other.manage(RELEASE, 2).await, NOT_CONNECTED);
        assert_eq!(mme.uplink(b"first", 2).await, SUCCESS);
        // The device has moved: a CMR of the new MME says so.
        assert_eq!(other.manage(UPDATE, 3).await, SUCCESS);
        assert_eq!(mme.uplink(b"late", 3).await, NOT_CONNECTED);
        assert_eq!(mme.manage(RELEASE, 4).await, NOT_CONNECTED);
        assert_eq!(other.uplink(b"second", 4).await, SUCCESS);
        let seen = notified(&server, 2).await;
        let octets: Vec<_> = seen.iter().map(|one| &one["data"]).collect();
        assert_eq!(octets, [&json!("Zmlyc3Q="), &json!("c2Vjb25k")]);
        scef.stop();
    });
}

/// Without the MME of the connection its data may reach another one, by its realm. That one knows nothing of the connection, which stays.
#[test]
fn another_mme_does_not_end_a_connection_by_refusing_its_data() {
    local(async {
        let (scef, server) = (
            start(|config| config.nidd.retry_pause = settings::Period::from_secs(1)),
            server(),
        );
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        let mut other = Node::mme_named(scef.diameter(), "mme2.example.org").await;
        drop(mme);
        let refusal = async {
            let tdr = other.downlink().await;
            other.refuse(&tdr, 5651, |_| {}).await;
        };
        let (got, ()) = tokio::join!(scef.api.post(&downlinks, data("AAAA", &json!({}))), refusal);
        path_of(&got);
        let mut mme = Node::mme(scef.diameter()).await;
        let tdr = mme.downlink().await;
        mme.answer(&tdr, |_| {}).await;
        judge::nidd(
            "NiddDownlinkDataDeliveryStatusNotification",
            &notified(&server, 1).await[0],
        );
        assert_eq!(mme.uplink(b"still here", 2).await, SUCCESS);
        scef.stop();
    });
}

#[test]
fn a_device_that_connects_again_gets_its_data_over_the_new_connection() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let mut other = Node::mme_named(scef.diameter(), "mme2.example.org").await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        // It has attached at another MME, with another bearer; the first one never says that it is gone.
        let again = other.request_about(6, CMR, 1, |out| {
            out.put(known::CONNECTION_ACTION, ESTABLISH)
                .put(known::SERVICE_SELECTION, "IoT.example");
        });
        assert_eq!(result_of(&other.ask(&again).await), SUCCESS);
        let answer = async {
            let tdr = other.expect(command::MT_DATA).await;
            assert_eq!(tdr.require(known::BEARER_IDENTIFIER), Ok(&[6_u8][..]));
            other.answer(&tdr, |_| {}).await;
        };
        let (got, ()) = tokio::join!(scef.api.post(&downlinks, data("AAAA", &json!({}))), answer);
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        assert_eq!(mme.uplink(b"late", 2).await, NOT_CONNECTED);
        scef.stop();
    });
}

#[test]
fn a_full_scef_refuses_new_connections_and_keeps_those_it_has() {
    local(async {
        let server = server();
        for (most, first) in [(0, (0, 3004)), (1, SUCCESS)] {
            let scef = start(|config| config.nidd.max_connections = most);
            let mut hss = Node::hss(scef.diameter()).await;
            let mut mme = Node::mme(scef.diameter()).await;
            configured(&scef, &mut hss, &server.root(), &json!({})).await;
            assert_eq!(mme.manage(ESTABLISH, 1).await, first);
            assert_eq!(mme.manage(ESTABLISH, 2).await, first, "the device connects again");
            let refused = scef.running.count(Event::ConnectionRefused);
            assert_eq!(refused, if first == SUCCESS { 0 } else { 2 });
            scef.stop();
        }
    });
}

#[test]
fn a_device_that_connects_with_ever_new_bearers_and_apns_has_one_connection() {
    local(async {
        let (scef, server) = (start(|config| config.nidd.max_connections = 1), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (got, _) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        for number in 10..80_u8 {
            let again = mme.request_about(number, CMR, number.into(), |out| {
                out.put(known::CONNECTION_ACTION, ESTABLISH)
                    .put(known::SERVICE_SELECTION, &format!("apn{number}.example"));
            });
            assert_eq!(result_of(&mme.ask(&again).await), SUCCESS, "{number}");
        }
        for (number, apn) in [(1, "a".repeat(101)), (2, "é".to_owned())] {
            let wrong = mme.request_about(5, CMR, number, |out| {
                out.put(known::CONNECTION_ACTION, ESTABLISH)
                    .put(known::SERVICE_SELECTION, &apn);
            });
            assert_eq!(result_of(&mme.ask(&wrong).await), (0, 5004));
        }
        let path = path_of(&got);
        let (ended, release) = tokio::join!(scef.api.delete(&path), mme.expect(CMR.0));
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert_eq!(release.require(known::BEARER_IDENTIFIER), Ok(&[79_u8][..]));
        assert_eq!(scef.running.count(Event::Disconnected), 1);
        scef.stop();
    });
}

#[test]
fn a_configuration_whose_time_is_over_ends_with_its_connection() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (got, _) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        let path = path_of(&got);
        let changed = scef.api.patch(&path, &json!({"duration": soon()})).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
        let release = mme.expect(command::CONNECTION_MANAGEMENT).await;
        assert_eq!(release.get(known::CONNECTION_ACTION), Ok(Some(RELEASE)));
        mme.answer(&release, |_| {}).await;
        let seen = notified(&server, 1).await;
        judge::nidd("NiddConfigurationStatusNotification", &seen[0]);
        let expected =
            json!({"niddConfiguration": got.json["self"], "externalId": DEVICE, "status": "TERMINATED"});
        assert_eq!(seen[0], expected);
        assert_eq!(mme.uplink(&[1], 2).await, NOT_CONNECTED);
        assert_eq!(scef.api.get(CONFIGURATIONS).await.json, json!([]));
        scef.counted(Event::Unconfigured, 1).await;
        // The device may be configured again.
        configured(&scef, &mut hss, &server.root(), &json!({})).await;
        scef.stop();
    });
}

#[test]
fn a_configuration_lasts_no_longer_than_the_hss_has_granted() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        // 2065-01-24T05:20:00Z.
        let granted = TimeValue::from_unix_seconds(3_000_000_000).unwrap();
        let body = configuration(&server.root(), &json!({"duration": "2090-01-01T00:00:00Z"}));
        let (got, _) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), hss.grant(Some(granted)));
        let path = path_of(&got);
        assert_eq!(got.json["duration"], "2065-01-24T05:20:00Z");
        for (asked, expected) in [
            (json!("2090-01-01T00:00:00Z"), "2065-01-24T05:20:00Z"),
            (json!("2060-01-01T00:00:00Z"), "2060-01-01T00:00:00Z"),
            (json!(null), "2065-01-24T05:20:00Z"),
        ] {
            let changed = scef.api.patch(&path, &json!({"duration": asked})).await;
            assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
            assert_eq!(changed.json["duration"], expected, "{asked}");
        }
        scef.stop();
    });
}
