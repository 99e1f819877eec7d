//! Which changes of sessions subscribers are notified of (TS 29.521 §4.2.8).

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::sbi::{Server, no_content};

use crate::support::{Bsf, binding, local, start};

/// Waits until that many notifications have come; event and value of the member that says what it is about.
async fn events(subscriber: &Server, count: usize) -> Vec<(String, Value)> {
    while subscriber.count() < count {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let seen = subscriber.seen();
    assert_eq!(seen.len(), count);
    seen.iter()
        .map(|seen| {
            let body = seen.json();
            crate::judge::notification(&body);
            let event = &body["eventNotifs"][0];
            assert_eq!(body["eventNotifs"].as_array().map(Vec::len), Some(1));
            let about = event
                .get("matchSnssaiDnns")
                .unwrap_or(&event["pcfForPduSessInfos"]);
            (
                event["event"].as_str().unwrap_or_default().to_owned(),
                about.clone(),
            )
        })
        .collect()
}

async fn subscribe(bsf: &Bsf, subscriber: &Server, more: &Value) -> Value {
    let mut body = json!({"notifUri": format!("{}/told", subscriber.root()), "notifCorreId": "c1",
        "supi": "imsi-001010000000001"});
    json_patch::merge(&mut body, more);
    let got = bsf.post("subscriptions", &body).await;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
    got.json
}

async fn delete(bsf: &Bsf, path: &str) {
    let got = bsf.ask(Method::DELETE, path, "", "").await;
    assert_eq!(got.status, StatusCode::NO_CONTENT);
}

#[test]
fn a_slice_and_dnn_begins_with_its_first_session_and_ends_with_its_last() {
    local(async {
        let bsf = start(|_| {});
        let subscriber = Server::start(|_| no_content());
        let pair = json!({"snssai": {"sst": 1, "sd": "00000A"}, "dnn": "internet"});
        let wanted = json!({"events": ["SNSSAI_DNN_BINDING_REGISTRATION", "SNSSAI_DNN_BINDING_DEREGISTRATION"],
            "snssaiDnnPairs": pair});
        subscribe(&bsf, &subscriber, &wanted).await;
        let mut sessions = Vec::new();
        for address in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            let body = binding(&json!({"ipv4Addr": address, "dnn": "Internet"}));
            sessions.push(bsf.path(&bsf.post("pcfBindings", &body).await));
        }
        // Another DNN has nothing to do with it.
        let ims = binding(&json!({"ipv4Addr": "10.0.0.4", "dnn": "ims"}));
        let ims = bsf.path(&bsf.post("pcfBindings", &ims).await);
        for session in &sessions {
            delete(&bsf, session).await;
        }
        delete(&bsf, &ims).await;
        let seen = events(&subscriber, 2).await;
        let names: Vec<&str> = seen.iter().map(|(event, _)| event.as_str()).collect();
        assert_eq!(
            names,
            [
                "SNSSAI_DNN_BINDING_REGISTRATION",
                "SNSSAI_DNN_BINDING_DEREGISTRATION"
            ]
        );
        assert!(seen.iter().all(|(_, pairs)| pairs[0]["dnn"] == "Internet"));
    });
}

#[test]
fn what_is_there_already_names_each_slice_and_dnn_once() {
    local(async {
        let bsf = start(|_| {});
        let subscriber = Server::start(|_| no_content());
        for (address, dnn) in [
            ("10.0.0.1", "internet"),
            ("10.0.0.2", "internet"),
            ("10.0.0.3", "ims"),
        ] {
            let body = binding(&json!({"ipv4Addr": address, "dnn": dnn}));
            bsf.path(&bsf.post("pcfBindings", &body).await);
        }
        let slice = json!({"sst": 1, "sd": "00000a"});
        let wanted = json!({"events": ["SNSSAI_DNN_BINDING_REGISTRATION"],
            "snssaiDnnPairs": {"snssai": slice, "dnn": "internet"},
            "addSnssaiDnnPairs": [{"snssai": slice, "dnn": "ims"}]});
        let met = subscribe(&bsf, &subscriber, &wanted).await;
        let mut dnns: Vec<&str> = met["eventNotifs"][0]["matchSnssaiDnns"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|pair| pair["dnn"].as_str())
            .collect();
        dnns.sort_unstable();
        assert_eq!(dnns, ["ims", "internet"]);
    });
}

#[test]
fn a_session_that_moves_to_another_pcf_is_news_and_a_new_address_is_not() {
    local(async {
        let bsf = start(|_| {});
        let subscriber = Server::start(|_| no_content());
        let wanted = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION", "PCF_PDU_SESSION_BINDING_DEREGISTRATION"]});
        subscribe(&bsf, &subscriber, &wanted).await;
        let session = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        for patch in [
            json!({"ipv4Addr": "10.0.0.9"}),
            json!({"pcfFqdn": "pcf2.example.org", "pcfId": "6f1c7a52-0000-4000-8000-000000000002"}),
        ] {
            let got = bsf
                .ask(
                    Method::PATCH,
                    &session,
                    "application/merge-patch+json",
                    patch.to_string(),
                )
                .await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        }
        delete(&bsf, &session).await;
        let seen = events(&subscriber, 3).await;
        let moved = &seen[1];
        assert_eq!(moved.0, "PCF_PDU_SESSION_BINDING_REGISTRATION");
        assert_eq!(moved.1[0]["pcfFqdn"], "pcf2.example.org");
        assert_eq!(moved.1[0]["ipv4Addr"], "10.0.0.9");
        assert_eq!(seen[2].0, "PCF_PDU_SESSION_BINDING_DEREGISTRATION");
    });
}
