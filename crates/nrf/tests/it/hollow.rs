//! What would hollow an NRF out: its memory, its only writer, the places for subscriptions, the trust in its answers.

use http::{Method, StatusCode};
use nrf::Event;
use serde_json::{Value, json};

use crate::support::{Got, Nrf, UDM, id, local, profile, start};

const PATCH: &str = "application/json-patch+json";

/// Sixty times a list into itself.
fn bomb() -> Value {
    let mut operations = vec![json!({"op": "add", "path": "/customInfo", "value": {"c": ["x".repeat(100)]}})];
    let copy = json!({"op": "copy", "from": "/customInfo/c", "path": "/customInfo/c/-"});
    operations.extend((0..60).map(|_| copy.clone()));
    json!(operations)
}

fn named(got: &Got) -> Vec<&str> {
    let list = got.json["invalidParams"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter().filter_map(|one| one["param"].as_str()).collect()
}

async fn subscribe(nrf: &Nrf, data: &Value) -> Got {
    let path = "/nnrf-nfm/v1/subscriptions";
    nrf.ask(Method::POST, path, "application/json", data.to_string())
        .await
}

async fn remove(nrf: &Nrf, number: u32) {
    let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(number));
    let gone = nrf.ask(Method::DELETE, &path, "", "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
}

#[test]
fn a_patch_does_not_make_more_than_a_profile_may_have() {
    local(async {
        let nrf = start(|config| config.max_profile_size = settings::ByteSize::kib(16));
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        let before = nrf.get(&format!("/nnrf-nfm/v1/nf-instances/{UDM}")).await;
        let got = nrf.patch(UDM, bomb()).await;
        assert_eq!(got.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", got.json);
        assert!(named(&got)[0].ends_with("/op"), "{}", got.json);
        // Two halves that are allowed each.
        let half = json!([{"op": "add", "path": "/customInfo", "value": {"a": "x".repeat(9_000)}}]);
        assert_eq!(nrf.patch(UDM, half.clone()).await.status, StatusCode::OK);
        let other = json!([{"op": "copy", "from": "/customInfo", "path": "/customInfo/b"}]);
        assert_eq!(nrf.patch(UDM, other).await.status, StatusCode::PAYLOAD_TOO_LARGE);
        let back = json!([{"op": "remove", "path": "/customInfo"}]);
        assert_eq!(nrf.patch(UDM, back).await.status, StatusCode::OK);
        let after = nrf.get(&format!("/nnrf-nfm/v1/nf-instances/{UDM}")).await;
        assert_eq!(after.json, before.json, "what was refused has changed nothing");
        // As long as the limit allows the body is read; a longer one is not.
        let long = json!([{"op": "test", "path": "/fqdn", "value": "x".repeat(17_000)}]);
        assert_eq!(nrf.patch(UDM, long).await.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(nrf.running.as_ref().unwrap().count(Event::TooLarge), 3);
    });
}

#[test]
fn a_patch_does_not_make_more_than_a_subscription_may_have() {
    local(async {
        let nrf = start(|config| config.subscriptions.max_size = settings::ByteSize::kib(4));
        let made = subscribe(&nrf, &json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x"})).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let path = format!(
            "/nnrf-nfm/v1/subscriptions/{}",
            made.json["subscriptionId"].as_str().unwrap()
        );
        let got = nrf.ask(Method::PATCH, &path, PATCH, bomb().to_string()).await;
        assert_eq!(got.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", got.json);
        let large = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "x": "x".repeat(5_000)});
        assert_eq!(
            subscribe(&nrf, &large).await.status,
            StatusCode::PAYLOAD_TOO_LARGE
        );
        assert_eq!(nrf.running.as_ref().unwrap().count(Event::TooLarge), 2);
    });
}

#[test]
fn operations_and_work_of_a_patch_are_bounded() {
    local(async {
        let nrf = start(|config| {
            config.patches.max_operations = 10;
            config.patches.max_work = settings::ByteSize::kib(256);
        });
        let list = json!({"customInfo": {"c": vec![0; 10_000]}});
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &list)).await;
        let add = json!({"op": "add", "path": "/priority", "value": 1});
        assert_eq!(
            nrf.patch(UDM, json!(vec![add.clone(); 10])).await.status,
            StatusCode::OK
        );
        let many = nrf.patch(UDM, json!(vec![add; 11])).await;
        assert_eq!(many.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(named(&many), ["/10"]);
        let test = json!({"op": "test", "path": "/customInfo/c", "value": [1]});
        let much = nrf.patch(UDM, json!([test])).await;
        assert_eq!(much.status, StatusCode::CONFLICT, "one fits: {}", much.json);
        let costly = json!({"op": "test", "path": "/customInfo/c", "value": vec![0; 10_000]});
        let much = nrf.patch(UDM, json!([costly, costly])).await;
        assert_eq!(
            (much.status, named(&much)[0]),
            (StatusCode::PAYLOAD_TOO_LARGE, "/0/op"),
            "{}",
            much.json
        );
    });
}

/// A profile that takes long to read is read beside the writer: the heart-beat that comes after it is not behind it.
#[test]
fn what_takes_long_does_not_hold_up_others() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        let ranges: Vec<Value> = (0..80)
            .map(|n| json!({"pattern": format!("^imsi-(00101[0-9]{{1,50}}x{n}|00102[0-9]{{1,40}})$")}))
            .collect();
        let large = json!({"udmInfo": {"supiRanges": ranges}, "customInfo": {"c": vec![7; 200_000]}});
        let large = profile(&id(1), "UDM", "nudm-sdm", &large);
        let beat = json!([{"op": "replace", "path": "/load", "value": 1}]);
        // Both are sent at the same time, the large one first. Once is enough: behind it the heart-beat never is first.
        for _ in 0..10 {
            let order = std::cell::RefCell::new(Vec::new());
            let slow = async {
                let put = nrf.put(&large).await;
                assert!(put.status.is_success(), "{}", put.json);
                order.borrow_mut().push("slow");
            };
            let quick = async {
                assert_eq!(nrf.patch(UDM, beat.clone()).await.status, StatusCode::NO_CONTENT);
                order.borrow_mut().push("quick");
            };
            tokio::join!(slow, quick);
            if order.into_inner() == ["quick", "slow"] {
                return;
            }
        }
        panic!("the heart-beat waited for the profile of another");
    });
}

/// What waits for the writer has a bound in bytes, and gives them back.
#[test]
fn waiting_writes_hold_so_many_bytes() {
    local(async {
        let nrf = start(|config| config.max_waiting_bytes = settings::ByteSize::kib(2));
        let large = json!({"customInfo": {"c": "x".repeat(3_000)}});
        let refused = nrf.put(&profile(UDM, "UDM", "nudm-sdm", &large)).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::SERVICE_UNAVAILABLE, "NF_CONGESTION")
        );
        let small = profile(UDM, "UDM", "nudm-sdm", &json!({}));
        for _ in 0..20 {
            assert!(nrf.put(&small).await.status.is_success());
            let bad = nrf.put(&profile(UDM, "", "nudm-sdm", &json!({}))).await;
            assert_eq!(bad.status, StatusCode::BAD_REQUEST);
        }
        assert_eq!(nrf.running.as_ref().unwrap().count(Event::WriteOverflow), 1);
    });
}

/// What waits behind a change of the same NF sees that change.
#[test]
fn changes_of_one_nf_follow_each_other() {
    local(async {
        let nrf = start(|_| {});
        let large = json!({"customInfo": {"c": vec![7; 50_000]}});
        let large = profile(UDM, "UDM", "nudm-sdm", &large);
        assert_eq!(nrf.put(&large).await.status, StatusCode::CREATED);
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let (patched, beaten, gone) = tokio::join!(
            nrf.patch(UDM, json!([{"op": "add", "path": "/priority", "value": 3}])),
            nrf.patch(UDM, json!([{"op": "replace", "path": "/load", "value": 1}])),
            nrf.ask(Method::DELETE, &path, "", ""),
        );
        let status = [patched.status, beaten.status, gone.status].map(|status| status.as_u16());
        assert_eq!(status, [200, 204, 204]);
        assert_eq!(patched.json["priority"], 3);
    });
}

#[test]
fn heart_beats_bring_what_can_be_used() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        for (path, value) in [
            ("/loadTimeStamp", "yesterday".to_owned()),
            ("/loadTimeStamp", "x".repeat(3_000)),
            ("/nfStatus", "A\nB".to_owned()),
            ("/nfStatus", String::new()),
            ("/nfStatus", "x".repeat(65)),
        ] {
            let got = nrf
                .patch(UDM, json!([{"op": "replace", "path": path, "value": value}]))
                .await;
            assert!(got.status.is_client_error(), "{path} {value}: {}", got.status);
        }
        let good = json!([{"op": "add", "path": "/loadTimeStamp", "value": "2026-01-01T00:00:00Z"}]);
        assert_eq!(nrf.patch(UDM, good).await.status, StatusCode::NO_CONTENT);
    });
}

#[test]
fn regular_expressions_have_a_budget() {
    local(async {
        let nrf = start(|_| {});
        let ranges = |count: usize| -> Vec<Value> {
            (0..count)
                .map(|n| json!({"pattern": format!("^imsi-{n:05}[0-9]{{10}}$")}))
                .collect()
        };
        let with = |ranges: Vec<Value>| {
            profile(
                UDM,
                "UDM",
                "nudm-sdm",
                &json!({"udmInfo": {"supiRanges": ranges}}),
            )
        };
        assert_eq!(nrf.put(&with(ranges(256))).await.status, StatusCode::CREATED);
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-000550000000001";
        assert_eq!(nrf.found(query).await, [UDM]);
        let many = nrf.put(&with(ranges(2_000))).await;
        assert_eq!(
            (many.status, many.cause()),
            (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT")
        );
        assert_eq!(
            named(&many)[0],
            "/udmInfo/supiRanges/256/pattern",
            "{}",
            many.json
        );
        let same: Vec<Value> = (0..2_000)
            .map(|_| json!({"pattern": "^imsi-00101[0-9]{10}$"}))
            .collect();
        assert_eq!(
            nrf.put(&with(same)).await.status,
            StatusCode::OK,
            "the same text is one program"
        );
        let large = nrf.put(&with(vec![json!({"pattern": "^[0-9]{1,2000}x$"})])).await;
        assert_eq!(large.status, StatusCode::BAD_REQUEST);
        assert_eq!(named(&large), ["/udmInfo/supiRanges/0/pattern"]);
        let domains: Vec<String> = (0..300).map(|n| format!("^d{n}$")).collect();
        let scp = profile(
            &id(2),
            "SCP",
            "x",
            &json!({"scpInfo": {"addressDomains": domains}}),
        );
        assert_eq!(named(&nrf.put(&scp).await)[0], "/scpInfo/addressDomains/256");
        let condition = json!({"conditionType": "NEF_COND", "gpsiRanges": ranges(300)});
        let subscription =
            json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": condition});
        let refused = subscribe(&nrf, &subscription).await;
        assert_eq!(
            (refused.status, named(&refused)[0]),
            (StatusCode::BAD_REQUEST, "/subscrCond")
        );
        assert_eq!(nrf.running.as_ref().unwrap().count(Event::TooManyPatterns), 3);
    });
}

#[test]
fn one_subscriber_does_not_take_the_places_of_others() {
    local(async {
        let mut nrf = start(|config| {
            config.subscriptions.max = 20;
            config.subscriptions.max_per_subscriber = 3;
            config.subscriptions.max_per_source = 8;
        });
        let of = |instance: Option<u32>| {
            let mut data = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x"});
            if let Some(number) = instance {
                data["reqNfInstanceId"] = json!(id(number));
            }
            data
        };
        for _ in 0..3 {
            assert_eq!(subscribe(&nrf, &of(None)).await.status, StatusCode::CREATED);
            assert_eq!(subscribe(&nrf, &of(Some(1))).await.status, StatusCode::CREATED);
        }
        let full = subscribe(&nrf, &of(Some(1))).await;
        assert_eq!(
            (full.status, full.cause()),
            (StatusCode::TOO_MANY_REQUESTS, "NF_CONGESTION_RISK")
        );
        assert_eq!(
            subscribe(&nrf, &of(None)).await.status,
            StatusCode::TOO_MANY_REQUESTS
        );
        let honest = subscribe(&nrf, &of(Some(2))).await;
        assert_eq!(honest.status, StatusCode::CREATED, "another has its own share");
        // Names that it invents do not help: all of an address have a bound as well.
        assert_eq!(subscribe(&nrf, &of(Some(3))).await.status, StatusCode::CREATED);
        assert_eq!(
            subscribe(&nrf, &of(Some(4))).await.status,
            StatusCode::TOO_MANY_REQUESTS
        );
        assert_eq!(nrf.running.as_ref().unwrap().count(Event::ShareUsedUp), 3);
        let path = format!(
            "/nnrf-nfm/v1/subscriptions/{}",
            honest.json["subscriptionId"].as_str().unwrap()
        );
        let patch = json!([{"op": "replace", "path": "/reqNfInstanceId", "value": id(1)}]).to_string();
        let moved = nrf.ask(Method::PATCH, &path, PATCH, patch).await;
        assert_eq!(
            (moved.status, moved.cause()),
            (StatusCode::FORBIDDEN, "MODIFICATION_NOT_ALLOWED")
        );

        // A restart does not give the shares out again.
        nrf.stop();
        let directory = nrf.directory.path().to_owned();
        let mut config = crate::support::config(&directory);
        config.subscriptions.max_per_subscriber = 3;
        config.subscriptions.max_per_source = 8;
        let running = nrf::start(config).unwrap();
        nrf.origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
        nrf.running = Some(running);
        assert_eq!(
            subscribe(&nrf, &of(Some(4))).await.status,
            StatusCode::TOO_MANY_REQUESTS
        );
        let gone = nrf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        let again = subscribe(&nrf, &of(Some(4))).await;
        assert_eq!(again.status, StatusCode::CREATED);
        assert!(again.json.get("signalbox-source").is_none(), "{}", again.json);
    });
}

#[test]
fn subscriptions_end_with_their_subscriber() {
    local(async {
        let nrf = start(|config| config.subscriptions.max = 2);
        nrf.put(&profile(&id(1), "AMF", "namf-comm", &json!({}))).await;
        let data = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfInstanceId": id(1)});
        let mine = subscribe(&nrf, &data).await;
        let other = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfInstanceId": id(2)});
        let other = subscribe(&nrf, &other).await;
        assert_eq!(
            (mine.status, other.status),
            (StatusCode::CREATED, StatusCode::CREATED)
        );
        // Validity: of a registered subscriber as long as it may be, of another an hour.
        let until = |got: &Got| got.json["validityTime"].as_str().unwrap().to_owned();
        assert!(until(&other) < until(&mine), "{} {}", until(&other), until(&mine));
        remove(&nrf, 1).await;
        let path = |got: &Got| {
            format!(
                "/nnrf-nfm/v1/subscriptions/{}",
                got.json["subscriptionId"].as_str().unwrap()
            )
        };
        // It ends right after the deregistration is answered; a change of it waits behind.
        let ended = nrf.ask(Method::DELETE, &path(&mine), "", "").await;
        assert_eq!(ended.cause(), "SUBSCRIPTION_NOT_FOUND");
        assert_eq!(
            subscribe(&nrf, &data).await.status,
            StatusCode::CREATED,
            "its place is free"
        );
        assert_eq!(
            nrf.ask(Method::DELETE, &path(&other), "", "").await.status,
            StatusCode::NO_CONTENT
        );
    });
}

#[test]
fn texts_that_become_labels_and_lines_are_tokens() {
    local(async {
        let nrf = start(|_| {});
        for nf_type in ["UDM\nERROR forged", "\u{1b}[2J", "A B", "é", &"X".repeat(65)] {
            let got = nrf.put(&profile(UDM, nf_type, "nudm-sdm", &json!({}))).await;
            assert_eq!(
                (got.status, named(&got)[0]),
                (StatusCode::BAD_REQUEST, "/nfType"),
                "{nf_type:?}"
            );
        }
        let custom = nrf.put(&profile(UDM, "CUSTOM_X-1", "nudm-sdm", &json!({}))).await;
        assert_eq!(custom.status, StatusCode::CREATED);
        let service = nrf.put(&profile(&id(1), "UDM", "a\r\nb", &json!({}))).await;
        assert_eq!(named(&service)[0], "/nfServices/0/serviceName");
        let place = nrf
            .put(&profile(&id(1), "UDM", "x", &json!({"locality": "a\u{7}b"})))
            .await;
        assert_eq!(named(&place)[0], "/locality");
    });
}

#[test]
fn prefixes_are_path_segments() {
    local(async {
        let nrf = start(|_| {});
        for (prefix, status) in [
            ("/a\r\nhost: x", 400),
            ("/a?x=", 400),
            ("/a#", 400),
            ("/../x", 400),
            ("/a b", 400),
            ("/sdm/v0", 201),
            ("x", 200),
        ] {
            let mut with = profile(UDM, "UDM", "nudm-sdm", &json!({}));
            with["nfServices"][0]["apiPrefix"] = json!(prefix);
            let got = nrf.put(&with).await;
            assert_eq!(got.status.as_u16(), status, "{prefix:?}: {}", got.json);
        }
    });
}

/// A name may be written with escapes; it means the same, in every answer.
#[test]
fn escaped_names_mean_what_they_mean_without() {
    local(async {
        let nrf = start(|_| {});
        let plain = profile(
            UDM,
            "UDM",
            "nudm-sdm",
            &json!({"load": 3, "allowedNfTypes": ["AMF"]}),
        );
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let text = plain
            .to_string()
            .replace("\"nfInstanceId\"", r#""nfInstanc\u0065Id""#)
            .replace("\"load\"", r#""l\u006fad""#)
            .replace("\"allowedNfTypes\"", r#""allowedNfTyp\u0065s""#)
            .replace("\"serviceInstanceId\"", r#""service\u0049nstanceId""#);
        let put = nrf
            .ask(Method::PUT, &path, "application/json", text.clone())
            .await;
        assert_eq!(
            (put.status, &put.json["nfInstanceId"]),
            (StatusCode::CREATED, &json!(UDM))
        );
        assert_eq!(nrf.get(&path).await.json["load"], 3);
        let found = nrf.discover("target-nf-type=UDM&requester-nf-type=AMF").await;
        assert_eq!(found.json["nfInstances"][0]["nfInstanceId"], json!(UDM));
        assert!(!found.json.to_string().contains("allowedNf"), "{}", found.json);
        assert_eq!(
            nrf.found("target-nf-type=UDM&requester-nf-type=SMF").await.len(),
            0
        );
        for (twice, place) in [
            (
                text.replacen('{', r#"{"nfType":"UDM","nf\u0054ype":"AMF","#, 1),
                "/nfType",
            ),
            (
                plain
                    .to_string()
                    .replacen(r#""scheme""#, r#""sch\u0065me":"https","scheme""#, 1),
                "/nfServices/0/scheme",
            ),
        ] {
            let got = nrf.ask(Method::PUT, &path, "application/json", twice).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST);
            assert_eq!(named(&got), [place], "{}", got.json);
        }
    });
}

#[test]
fn the_nrf_is_not_sent_to_link_local_addresses_or_its_own_admin_endpoint() {
    local(async {
        let nrf = start(|_| {});
        for uri in [
            "http://169.254.169.254/latest",
            "http://[fe80::1]/x",
            "http://127.0.0.1:9010/livez",
            "http://localhost:9010/",
        ] {
            let got = subscribe(&nrf, &json!({"nfStatusNotificationUri": uri})).await;
            assert_eq!(
                (got.status, named(&got)),
                (StatusCode::BAD_REQUEST, vec!["/nfStatusNotificationUri"]),
                "{uri}"
            );
        }
        let made = subscribe(&nrf, &json!({"nfStatusNotificationUri": "http://127.0.0.1:9"})).await;
        assert_eq!(
            made.status,
            StatusCode::CREATED,
            "a URI without a path: {}",
            made.json
        );
        let path = format!(
            "/nnrf-nfm/v1/subscriptions/{}",
            made.json["subscriptionId"].as_str().unwrap()
        );
        let patch =
            json!([{"op": "replace", "path": "/nfStatusNotificationUri", "value": "http://169.254.169.254"}]);
        assert_eq!(
            nrf.ask(Method::PATCH, &path, PATCH, patch.to_string())
                .await
                .status,
            StatusCode::BAD_REQUEST
        );
        let home = "target-nf-type=UDM&requester-nf-type=AMF&hnrf-uri=http%3A%2F%2F169.254.169.254";
        let got = nrf.discover(home).await;
        assert_eq!(
            (got.status, named(&got)),
            (StatusCode::BAD_REQUEST, vec!["query hnrf-uri"])
        );
        let data = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "plmnId": {"mcc": "999", "mnc": "99"},
            "hnrfUri": "http://169.254.169.254/nnrf-disc/v1"});
        let got = subscribe(&nrf, &data).await;
        assert_eq!(
            (got.status, named(&got)),
            (StatusCode::BAD_REQUEST, vec!["/hnrfUri"])
        );
        assert_eq!(nrf.running.as_ref().unwrap().count(Event::TargetDenied), 7);
    });
}

/// What has ended other NRFs: each is answered, and the NRF lives.
#[test]
fn what_has_ended_others_is_answered() {
    local(async {
        let nrf = start(|_| {});
        let minimal = json!({"nfInstanceId": UDM, "nfType": "UDM", "nfStatus": "REGISTERED"});
        assert_eq!(named(&nrf.put(&minimal).await), ["/fqdn"]);
        let mut address = minimal.clone();
        address["ipv4Addresses"] = json!(["127.0.0.1"]);
        assert_eq!(nrf.put(&address).await.status, StatusCode::CREATED);
        assert_eq!(nrf.found("target-nf-type=UDM&requester-nf-type=AMF").await, [UDM]);
        for bad in [
            "",
            "x",
            "%7B%7D",
            "%5B%5D",
            "%5B%7B%7D%5D",
            "%5B%7B%22mcc%22%3A%221%22%2C%22mnc%22%3A%22%22%7D%5D",
            "null",
            "%5B",
        ] {
            let got = nrf
                .discover(&format!(
                    "target-nf-type=UDM&requester-nf-type=AMF&target-plmn-list={bad}"
                ))
                .await;
            assert!(
                got.status.is_client_error() || got.status.is_success(),
                "{bad}: {}",
                got.status
            );
        }
        for bad in [
            "",
            "x",
            "http%3A%2F%2F",
            "http%3A%2F%2F%5B",
            "file%3A%2F%2F%2Fetc",
            "http%3A%2F%2Fa%3A99999",
            "http%3A%2F%2Fu%40a",
        ] {
            let got = nrf
                .discover(&format!(
                    "target-nf-type=UDM&requester-nf-type=AMF&hnrf-uri={bad}"
                ))
                .await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{bad}");
        }
        for bad in [
            "",
            "x",
            "/x",
            "http://",
            "http://a:99999/x",
            "ftp://a/x",
            "http://u@a/x",
        ] {
            let got = subscribe(&nrf, &json!({"nfStatusNotificationUri": bad})).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{bad}");
        }
        // Lists far longer than any network has.
        let long = json!({"plmnList": vec![json!({"mcc": "001", "mnc": "01"}); 10_000],
            "allowedNfTypes": vec!["AMF"; 1_000], "sNssais": vec![json!({"sst": 1}); 1_000]});
        let got = nrf.put(&profile(&id(1), "UDM", "nudm-sdm", &long)).await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        let services: Vec<Value> = (0..129)
            .map(|n| json!({"serviceInstanceId": n.to_string(), "serviceName": "x", "scheme": "http", "nfServiceStatus": "REGISTERED",
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}]}))
            .collect();
        let got = nrf
            .put(&profile(&id(2), "UDM", "x", &json!({"nfServices": services})))
            .await;
        assert_eq!(named(&got), ["/nfServices"]);
        let names = vec!["nudm-sdm"; 1_000].join(",");
        let got = nrf
            .discover(&format!(
                "target-nf-type=UDM&requester-nf-type=AMF&service-names={names}"
            ))
            .await;
        assert!(!got.status.is_server_error());
        let conditions = json!({"nfInstanceIdList": (0..1_500).map(id).collect::<Vec<_>>()});
        let got = subscribe(
            &nrf,
            &json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": conditions}),
        )
        .await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        let deep = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let put = format!(r#"{{"customInfo":{{"x":{deep}}}}}"#);
        assert_eq!(
            nrf.ask(Method::PUT, &path, "application/json", put).await.status,
            StatusCode::BAD_REQUEST
        );
        let patch = format!(r#"[{{"op":"add","path":"/customInfo","value":{deep}}}]"#);
        assert_eq!(
            nrf.ask(Method::PATCH, &path, PATCH, patch).await.status,
            StatusCode::BAD_REQUEST
        );
        // A profile that is larger than an answer may be does not hide the others.
        let query = "target-nf-type=UDM&requester-nf-type=AMF";
        assert_eq!(nrf.found(query).await, [UDM]);
        let more = format!("{query}&max-payload-size=1000");
        assert_eq!(nrf.found(&more).await.len(), 2);
    });
}
