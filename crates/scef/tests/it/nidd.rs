//! Non-IP data delivery: T8 to S6t and T6a.

use std::time::{Duration, SystemTime};

use diameter::proto::known::{self, command};
use http::StatusCode;
use scef::Event;
use serde_json::json;

use crate::judge;
use crate::network::{ESTABLISH, NOT_CONNECTED, Node, RELEASE, SUCCESS, UPDATE, is_repeated};
use crate::support::{
    CONFIGURATIONS, DEVICE, configuration, configured, data, local, notified, path_of, server, start,
};

const TRANSFER: &str = "NiddDownlinkDataTransfer";
const STATUS: &str = "NiddDownlinkDataDeliveryStatusNotification";

#[test]
fn data_passes_both_ways_over_a_connection() {
    local(async {
        let (scef, server) = (start(|config| config.nidd.apn = "iot.example".into()), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        assert_eq!(
            mme.manage(ESTABLISH, 1).await,
            (known::VENDOR_3GPP, 5652),
            "not configured"
        );
        assert_eq!(mme.uplink(&[1], 2).await, NOT_CONNECTED);
        let (got, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(
            (&got.json["status"], &got.json["maximumPacketSize"]),
            (&json!("ACTIVE"), &json!(10_864))
        );
        assert_eq!(mme.manage(ESTABLISH, 3).await, SUCCESS);

        let answer = async {
            let tdr = mme.downlink().await;
            assert_eq!(tdr.get(known::NON_IP_DATA), Ok(Some(&b"hello"[..])));
            assert_eq!(tdr.get(known::DESTINATION_HOST), Ok(Some("mme.example.org")));
            assert!(tdr.get(known::SCEF_WAIT_TIME).unwrap().is_some() && !is_repeated(&tdr));
            mme.answer(&tdr, |answer| {
                answer.put(known::TDA_FLAGS, 1);
            })
            .await;
        };
        let (sent, ()) = tokio::join!(scef.api.post(&downlinks, data("aGVsbG8=", &json!({}))), answer);
        assert_eq!(sent.status, StatusCode::OK, "{}", sent.json);
        judge::nidd(TRANSFER, &sent.json);
        assert_eq!(sent.json["deliveryStatus"], "SUCCESS_NEXT_HOP_ACKNOWLEDGED");

        assert_eq!(mme.uplink(b"world", 4).await, SUCCESS);
        assert_eq!(mme.uplink(b"world", 4).await, SUCCESS);
        assert_eq!(scef.running.count(Event::Duplicate), 1);
        assert_eq!(mme.uplink(b"again", 5).await, SUCCESS);
        let seen = notified(&server, 2).await;
        assert_eq!(seen.len(), 2);
        judge::nidd("NiddUplinkDataNotification", &seen[0]);
        let first = json!({"niddConfiguration": got.json["self"], "externalId": DEVICE, "data": "d29ybGQ="});
        assert_eq!(seen[0], first);
        assert_eq!(seen[1]["data"], "YWdhaW4=");
        assert_eq!(mme.manage(RELEASE, 6).await, SUCCESS);
        assert_eq!(mme.uplink(&[1], 7).await, NOT_CONNECTED);
        scef.stop();
    });
}

#[test]
fn data_waits_for_the_device_in_order() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let mut waiting = Vec::new();
        for text in ["AAAA", "BBBB", "CCCC"] {
            let got = scef
                .api
                .post(&downlinks, data(text, &json!({"maximumLatency": 600})))
                .await;
            judge::nidd(TRANSFER, &got.json);
            assert_eq!(got.json["deliveryStatus"], "BUFFERING");
            waiting.push(path_of(&got));
        }
        assert_eq!(scef.api.delete(&waiting[1]).await.status, StatusCode::NO_CONTENT);
        let replaced = scef.api.put(&waiting[2], &data("DDDD", &json!({}))).await;
        assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.json);
        assert_eq!(scef.api.get(&downlinks).await.json.as_array().unwrap().len(), 2);

        let mut mme = Node::mme(scef.diameter()).await;
        let establish = mme.establish();
        mme.0.send(establish.as_bytes()).await;
        // The answer and the data come in any order.
        let mut octets = Vec::new();
        let mut seen = 0;
        while seen < 3 {
            let message = mme.0.next().await.unwrap();
            seen += 1;
            if message.is_request() {
                octets.push(message.require(known::NON_IP_DATA).unwrap().to_vec());
                mme.answer(&message, |_| {}).await;
            }
        }
        assert_eq!(octets, [vec![0, 0, 0], vec![0x0c, 0x30, 0xc3]]);
        let seen = notified(&server, 2).await;
        for (one, path) in seen.iter().zip([&waiting[0], &waiting[2]]) {
            judge::nidd(STATUS, one);
            assert!(
                one["niddDownlinkDataTransfer"]
                    .as_str()
                    .unwrap()
                    .ends_with(path.as_str())
            );
            assert_eq!(one["deliveryStatus"], "SUCCESS_NEXT_HOP_UNACKNOWLEDGED");
        }
        let gone = scef.api.get(&waiting[0]).await;
        assert_eq!(
            (gone.status, gone.cause()),
            (StatusCode::NOT_FOUND, "ALREADY_DELIVERED")
        );
        scef.stop();
    });
}

/// The Diameter node writes why data waits, at the time at which its SCS/AS changes its mind.
#[test]
fn data_that_waits_is_replaced_and_cancelled_at_once() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        for _ in 0..25 {
            let waiting = path_of(&scef.api.post(&downlinks, data("AAAA", &json!({}))).await);
            let replaced = scef.api.put(&waiting, &data("BBBB", &json!({}))).await;
            assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.json);
            let waiting = path_of(&scef.api.post(&downlinks, data("CCCC", &json!({}))).await);
            let cancelled = scef.api.delete(&waiting).await;
            assert_eq!(cancelled.status, StatusCode::NO_CONTENT, "{}", cancelled.json);
            for one in scef.api.get(&downlinks).await.json.as_array().unwrap() {
                let uri: http::Uri = one["self"].as_str().unwrap().parse().unwrap();
                assert_eq!(scef.api.delete(uri.path()).await.status, StatusCode::NO_CONTENT);
            }
        }
        scef.stop();
    });
}

#[test]
fn an_unreachable_device_gets_its_data_when_it_is_reachable() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        let refusal = async {
            let tdr = mme.downlink().await;
            let at = SystemTime::now() + Duration::from_secs(3_600);
            mme.refuse_until(&tdr, at).await;
        };
        let (got, ()) = tokio::join!(scef.api.post(&downlinks, data("AAAA", &json!({}))), refusal);
        let path = path_of(&got);
        assert_eq!(got.json["deliveryStatus"], "BUFFERING_TEMPORARILY_NOT_REACHABLE");
        // What may not be buffered fails at once, and sends nothing.
        let none = scef
            .api
            .post(&downlinks, data("BBBB", &json!({"maximumLatency": 0})))
            .await;
        assert_eq!(none.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", none.json);
        judge::nidd("NiddDownlinkDataDeliveryFailure", &none.json);
        assert_eq!(none.json["problemDetail"]["cause"], "TEMPORARILY_NOT_REACHABLE");
        assert_eq!(
            scef.api.get(&path).await.json["deliveryStatus"],
            "BUFFERING_TEMPORARILY_NOT_REACHABLE"
        );

        // It is reachable at another MME by now.
        let mut other = Node::mme_named(scef.diameter(), "mme2.example.org").await;
        let update = other.request(
            (command::CONNECTION_MANAGEMENT, known::application::T6A),
            1,
            |out| {
                out.put(known::CMR_FLAGS, 1).put(known::CONNECTION_ACTION, UPDATE);
            },
        );
        other.0.send(update.as_bytes()).await;
        for _ in 0..2 {
            let message = other.0.next().await.unwrap();
            if message.is_request() {
                assert!(!is_repeated(&message), "the first MME does not have it");
                other.answer(&message, |_| {}).await;
            }
        }
        let seen = notified(&server, 1).await;
        judge::nidd(STATUS, &seen[0]);
        scef.stop();
    });
}

#[test]
fn data_that_is_not_answered_is_repeated_and_recognised() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        let (got, first) = tokio::join!(
            scef.api
                .post(&downlinks, data("AAAA", &json!({"maximumLatency": 600}))),
            mme.downlink()
        );
        let path = path_of(&got);
        let conflict = scef.api.delete(&path).await;
        assert_eq!(
            (conflict.status, conflict.cause()),
            (StatusCode::CONFLICT, "SENDING")
        );
        let second = mme.downlink().await;
        assert!(is_repeated(&second) && !is_repeated(&first));
        assert_eq!(second.end_to_end(), first.end_to_end());
        assert_eq!(
            second.require(known::SESSION_ID).unwrap(),
            first.require(known::SESSION_ID).unwrap()
        );
        mme.answer(&second, |_| {}).await;
        judge::nidd(STATUS, &notified(&server, 1).await[0]);
        scef.stop();
    });
}

#[test]
fn data_is_dropped_when_its_time_is_over() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let got = scef
            .api
            .post(&downlinks, data("AAAA", &json!({"maximumLatency": 1})))
            .await;
        let path = path_of(&got);
        let seen = notified(&server, 1).await;
        judge::nidd(STATUS, &seen[0]);
        assert_eq!(seen[0]["deliveryStatus"], "FAILURE_TIMEOUT");
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        let refused = json!({"pdnEstablishmentOption": "INDICATE_ERROR"});
        let none = scef.api.post(&downlinks, data("BBBB", &refused)).await;
        assert_eq!(none.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", none.json);
        assert_eq!(scef.api.get(&downlinks).await.json, json!([]));
        scef.stop();
    });
}

#[test]
fn a_configuration_is_changed_and_ended_with_its_connection() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (got, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let path = path_of(&got);
        let (second, _) = tokio::join!(
            scef.api
                .post(CONFIGURATIONS, configuration(&server.root(), &json!({}))),
            hss.authorize()
        );
        assert_eq!(
            second.status,
            StatusCode::FORBIDDEN,
            "a device has one: {}",
            second.json
        );
        let patch = json!({"duration": "2100-01-01T00:00:00Z", "pdnEstablishmentOption": null});
        let changed = scef.api.patch(&path, &patch).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
        judge::nidd("NiddConfiguration", &changed.json);
        assert_eq!(changed.json["duration"], "2100-01-01T00:00:00Z");
        let fixed = json!({"externalId": "other@example.org"});
        let refused = scef.api.patch(&path, &fixed).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);

        let waiting = path_of(&scef.api.post(&downlinks, data("AAAA", &json!({}))).await);
        assert_eq!(scef.api.get(&waiting).await.status, StatusCode::OK);
        assert_eq!(mme.manage_and_deliver(1).await, SUCCESS);
        let (ended, release) =
            tokio::join!(scef.api.delete(&path), mme.expect(command::CONNECTION_MANAGEMENT));
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert_eq!(release.get(known::CONNECTION_ACTION), Ok(Some(RELEASE)));
        mme.answer(&release, |_| {}).await;
        assert_eq!(scef.api.get(&waiting).await.status, StatusCode::NOT_FOUND);
        assert_eq!(scef.api.get(CONFIGURATIONS).await.json, json!([]));
        scef.counted(Event::Unconfigured, 1).await;
        scef.stop();
    });
}
