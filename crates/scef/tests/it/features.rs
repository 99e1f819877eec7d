//! Optional features of the APIs, and what goes with them (TS 29.122 §5.2.5.3, §5.2.7, §5.3.4, §5.6.4, §5.7.4).

use http::{Method, StatusCode};
use scef::Event;
use serde_json::{Value, json};

use crate::judge;
use crate::network::Node;
use crate::support::{
    CONFIGURATIONS, SUBSCRIPTIONS, TRIGGERS, configuration, configured, data, local, notified, path_of,
    server, start, subscription, trigger,
};

#[test]
fn a_monitoring_type_without_its_feature_is_refused() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        // Ue-reachability_notification alone, and none.
        for features in ["2", "0"] {
            let body = subscription(&server.root(), &json!({"supportedFeatures": features}));
            let got = scef.api.post(SUBSCRIPTIONS, &body).await;
            let mismatch = (StatusCode::BAD_REQUEST, "EVENT_FEATURE_MISMATCH");
            assert_eq!((got.status, got.cause()), mismatch, "{}", got.json);
        }
        let body = subscription(&server.root(), &json!({"monitoringType": "NUM_OF_REGD_UES"}));
        let got = scef.api.post(SUBSCRIPTIONS, &body).await;
        let unsupported = (StatusCode::INTERNAL_SERVER_ERROR, "EVENT_UNSUPPORTED");
        assert_eq!((got.status, got.cause()), unsupported);
        // It is the request that is wrong: no alarm is raised for it.
        assert_eq!(scef.running.count(Event::Failed), 0);
        assert_eq!(scef.running.count(Event::BadRequest), 3);
        for (kind, features) in [
            ("LOSS_OF_CONNECTIVITY", "1"),
            ("AVAILABILITY_AFTER_DDN_FAILURE", "40"),
        ] {
            let more = json!({"monitoringType": kind, "supportedFeatures": features});
            let body = subscription(&server.root(), &more);
            let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
            path_of(&got);
            assert_eq!(got.json["supportedFeatures"], features);
        }
        scef.stop();
    });
}

#[test]
fn a_replaced_subscription_keeps_its_features() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut body = subscription(&server.root(), &json!({"supportedFeatures": "401"}));
        let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        body["supportedFeatures"] = json!("1");
        let (put, _) = tokio::join!(scef.api.put(&path, &body), hss.configure());
        assert_eq!(
            (put.status, &put.json["supportedFeatures"]),
            (StatusCode::OK, &json!("401"))
        );
        body["mtcProviderId"] = json!("other");
        let refused = scef.api.put(&path, &body).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::FORBIDDEN, "MODIFICATION_NOT_ALLOWED")
        );
        scef.stop();
    });
}

#[test]
fn an_scs_as_tests_whether_notifications_reach_it() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut sms_sc = Node::sms_sc(scef.diameter()).await;
        let ask = json!({"requestTestNotification": true, "supportedFeatures": "FFF"});
        let mut body = subscription(&server.root(), &ask);
        let (event, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&event);
        let (device, _) = configured(&scef, &mut hss, &server.root(), &ask).await;
        let body_of_trigger = trigger(&server.root(), &ask);
        let (fired, ..) = tokio::join!(
            scef.api.post(TRIGGERS, &body_of_trigger),
            hss.locate_for_trigger(None),
            sms_sc.accept()
        );
        path_of(&fired);
        // Once: a replacement has the member as before.
        let (put, _) = tokio::join!(scef.api.put(&path, &body), hss.configure());
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        let mut seen = notified(&server, 3).await;
        let place = |uri: &Value| {
            let uris = [&event, &device, &fired].map(|got| got.json["self"].clone());
            uris.iter().position(|one| one == uri)
        };
        seen.sort_by_key(|one| place(&one["subscription"]));
        for (number, one) in seen.iter().enumerate() {
            judge::common("TestNotification", one);
            assert_eq!(place(&one["subscription"]), Some(number), "{one}");
            assert_eq!(one.as_object().unwrap().len(), 1);
        }
        // One that has not the feature gets none.
        body["supportedFeatures"] = json!("1");
        let (event, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&event);
        scef.counted(Event::Notified, 3).await;
        assert_eq!(server.count(), 3);
        scef.stop();
    });
}

#[test]
fn data_comes_with_the_configuration_of_its_device() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let one = data("AAAA", &json!({}));
        for (wrong, cause) in [
            (json!([one, one]), "OPTIONAL_IE_INCORRECT"),
            (json!([]), "OPTIONAL_IE_INCORRECT"),
            (
                json!([{"externalId": "other@iot.example.org", "data": "AAAA"}]),
                "MANDATORY_IE_INCORRECT",
            ),
        ] {
            let body = configuration(&server.root(), &json!({"niddDownlinkDataTransfers": wrong}));
            let got = scef.api.post(CONFIGURATIONS, &body).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, cause),
                "{wrong}"
            );
        }
        let with = json!({"niddDownlinkDataTransfers": [one], "supportedFeatures": "FF"});
        let (got, downlinks) = configured(&scef, &mut hss, &server.root(), &with).await;
        assert_eq!(got.json["supportedFeatures"], "8D");
        let transfer = &got.json["niddDownlinkDataTransfers"][0];
        assert_eq!(transfer["deliveryStatus"], "BUFFERING");
        let pending = scef.api.get(&downlinks).await.json;
        assert_eq!(pending, json!([transfer]));
        let mut mme = Node::mme(scef.diameter()).await;
        assert_eq!(mme.manage_and_deliver(1).await, crate::network::SUCCESS);
        let seen = notified(&server, 1).await;
        assert_eq!(seen[0]["niddDownlinkDataTransfer"], transfer["self"]);
        assert_eq!(seen[0]["deliveryStatus"], "SUCCESS_NEXT_HOP_UNACKNOWLEDGED");
        scef.stop();
    });
}

#[test]
fn data_that_may_not_wait_for_a_connection_fails() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let with = json!({"niddDownlinkDataTransfers": [data("AAAA", &json!({}))],
            "pdnEstablishmentOption": "INDICATE_ERROR"});
        let (got, downlinks) = configured(&scef, &mut hss, &server.root(), &with).await;
        let seen = notified(&server, 1).await;
        judge::nidd("NiddDownlinkDataDeliveryStatusNotification", &seen[0]);
        assert_eq!(
            seen[0]["niddDownlinkDataTransfer"],
            got.json["niddDownlinkDataTransfers"][0]["self"]
        );
        assert_eq!(seen[0]["deliveryStatus"], "FAILURE");
        for more in [
            json!({}),
            json!({"maximumLatency": 0, "pdnEstablishmentOption": "WAIT_FOR_UE"}),
        ] {
            let none = scef.api.post(&downlinks, data("BBBB", &more)).await;
            assert_eq!(none.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", none.json);
            judge::nidd("NiddDownlinkDataDeliveryFailure", &none.json);
            assert_eq!(none.json["problemDetail"]["cause"], "NO_PDN_CONNECTION");
        }
        assert_eq!(scef.api.get(&downlinks).await.json, json!([]));
        scef.stop();
    });
}

#[test]
fn data_that_waits_is_changed_in_part() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let more = json!({"maximumLatency": 600, "priority": 1});
        let path = path_of(&scef.api.post(&downlinks, data("AAAA", &more)).await);
        let patch = async |patch: Value| {
            scef.api
                .ask(Method::PATCH, &path, "application/json", &patch)
                .await
        };
        let changed = patch(json!({"data": "BBBB", "priority": null})).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
        judge::nidd("NiddDownlinkDataTransfer", &changed.json);
        assert_eq!(
            (&changed.json["data"], &changed.json["maximumLatency"]),
            (&json!("BBBB"), &json!(600))
        );
        assert_eq!(changed.json.get("priority"), None);
        for wrong in [
            json!({"data": "B"}),
            json!({"externalId": "other@iot.example.org"}),
        ] {
            assert_eq!(patch(wrong).await.status, StatusCode::BAD_REQUEST);
        }
        // Its time is a new one, and over.
        let over = patch(json!({"maximumLatency": 1})).await;
        assert_eq!(over.status, StatusCode::OK, "{}", over.json);
        assert_eq!(notified(&server, 1).await[0]["deliveryStatus"], "FAILURE_TIMEOUT");
        let gone = patch(json!({"data": "CCCC"})).await;
        assert_eq!(
            (gone.status, gone.cause()),
            (StatusCode::NOT_FOUND, "ALREADY_DELIVERED")
        );
        scef.stop();
    });
}
