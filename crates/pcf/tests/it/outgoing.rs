//! Where a PCF sends notifications, and where it does not whatever a consumer says.

use http::{Method, StatusCode};
use serde_json::json;
use testpeer::sbi::{Got, Server, no_content};

use crate::authorization::{APP_SESSIONS, call, listener};
use crate::policies::{AM, UE, association};
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

/// Places that no consumer has, with the PCF's own root where it is `@`. None of them is for a base, whose path goes on.
const BAD: &[&str] = &[
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/n",
    "http://[::ffff:127.0.0.1]:7777/n",
    "http://[::ffff:169.254.169.254]/n",
    "http://0.0.0.0:7777/n",
    "http://[::]:7777/n",
    "http://127.0.0.1:9040/livez",
    "http://127.0.0.9:9040/livez",
    "http://localhost:9040/livez",
    "http://smf@127.0.0.1:7777/n",
    "http://smf:secret@127.0.0.1:7777/n",
    "http://127.0.0.1:7777/n?x=",
    "http://127.0.0.1:7777/n?",
    "@/npcf-smpolicycontrol/v1/sm-policies/1",
    "@/npcf-smpolicycontrol/v1/sm-policies/1/delete?x=",
];

fn is_refused(got: &Got, place: &str, what: &str) {
    assert_eq!(got.status, StatusCode::BAD_REQUEST, "{what}: {}", got.json);
    assert_eq!(got.json["invalidParams"][0]["param"], place, "{what}");
}

fn bad(pcf: &Pcf) -> impl Iterator<Item = String> {
    let root = pcf.origin.to_string();
    BAD.iter().map(move |uri| uri.replace('@', &root))
}

#[test]
fn consumers_of_policies_name_no_forbidden_place() {
    local(async {
        let pcf = start(|config| config.admin = "127.0.0.1:9040".parse().unwrap());
        for uri in bad(&pcf) {
            let more = json!({"notificationUri": uri});
            is_refused(
                &pcf.post(SM_POLICIES, &context(&more)).await,
                "/notificationUri",
                &uri,
            );
            for service in [AM, UE] {
                is_refused(
                    &pcf.post(service, &association(&more)).await,
                    "/notificationUri",
                    &uri,
                );
            }
        }
        // Alternates are reached at the port of the URI that they stand for.
        for (name, host, port) in [
            ("altNotifIpv4Addrs", "169.254.169.254", 7777),
            ("altNotifIpv4Addrs", "0.0.0.0", 7777),
            ("altNotifIpv4Addrs", "127.0.0.1", 9040),
            ("altNotifIpv6Addrs", "fe80::1", 7777),
            ("altNotifIpv6Addrs", "::ffff:127.0.0.1", 7777),
            ("altNotifIpv6Addrs", "::1", 9040),
            ("altNotifFqdns", "localhost", 9040),
        ] {
            let more = json!({"notificationUri": format!("http://10.0.0.1:{port}/n"), name: [host]});
            for service in [AM, UE] {
                let got = pcf.post(service, &association(&more)).await;
                is_refused(&got, &format!("/{name}/0"), &format!("{name} {host}"));
            }
        }
        let am = path_of(&pcf.post(AM, &association(&json!({}))).await);
        let update = json!({"notificationUri": "http://169.254.169.254/n"});
        is_refused(
            &pcf.post(&format!("{am}/update"), &update).await,
            "/notificationUri",
            "an update",
        );
        assert!(pcf.running().count(pcf::Event::TargetDenied) > 0);
    });
}

#[test]
fn afs_name_no_forbidden_place() {
    local(async {
        let pcf = start(|config| config.admin = "127.0.0.1:9040".parse().unwrap());
        pcf.session(&json!({})).await;
        let good = path_of(
            &pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
                .await,
        );
        for uri in bad(&pcf) {
            let request = call("http://127.0.0.1:9", &json!({"notifUri": uri}));
            is_refused(
                &pcf.post(APP_SESSIONS, &request).await,
                "/ascReqData/notifUri",
                &uri,
            );
            let mut request = call("http://127.0.0.1:9", &json!({}));
            request["ascReqData"]["evSubsc"]["notifUri"] = json!(uri);
            let place = "/ascReqData/evSubsc/notifUri";
            is_refused(&pcf.post(APP_SESSIONS, &request).await, place, &uri);
            let patch =
                json!({"ascReqData": {"evSubsc": {"events": [{"event": "PLMN_CHG"}], "notifUri": uri}}});
            let merge = "application/merge-patch+json";
            let got = pcf.ask(Method::PATCH, &good, merge, patch.to_string()).await;
            is_refused(&got, place, &uri);
            let body = json!({"events": [{"event": "PLMN_CHG"}], "notifUri": uri}).to_string();
            let events = format!("{good}/events-subscription");
            let got = pcf.ask(Method::PUT, &events, "application/json", body).await;
            is_refused(&got, "/notifUri", &uri);
        }
    });
}

/// By a query at the end of the URI, the path to which the PCF sends is another than what it appends to.
#[test]
fn a_session_is_not_ended_by_the_notification_uri_of_another() {
    local(async {
        let pcf = start(|_| {});
        let victim = pcf.session(&json!({})).await;
        for uri in [
            format!("{}{victim}/delete?x=", pcf.origin),
            format!("{}{victim}", pcf.origin),
        ] {
            let more = json!({"notificationUri": uri, "ipv4Address": "10.0.0.66", "ipv6AddressPrefix": null,
                "supi": "imsi-001010000000666"});
            let got = pcf.post(SM_POLICIES, &context(&more)).await;
            is_refused(&got, "/notificationUri", &uri);
        }
        assert_eq!(pcf.get(&victim).await.status, StatusCode::OK);
    });
}

#[test]
fn a_redirected_notification_reaches_no_forbidden_place() {
    local(async {
        let admin = Server::start(|_| no_content());
        let other = Server::at("127.0.0.2:0".parse().unwrap(), |_| no_content());
        let pcf = start(|config| {
            config.admin = admin.address;
            config.notifications.attempts = 1;
        });
        let places = [
            format!("{}/internal/secret?y=1", admin.root()),
            format!("{}/elsewhere", other.root()),
            "http://169.254.169.254/x".to_owned(),
        ];
        let af = listener();
        for (number, place) in (1..).zip(&places) {
            let place = place.clone();
            let smf = Server::start(move |_| {
                let mut response = no_content();
                *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
                response.headers_mut().set_printed("location", &place);
                response
            });
            let address = format!("10.0.1.{number}");
            let more = json!({"notificationUri": format!("{}/smf", smf.root()), "ipv4Address": address,
                "ipv6AddressPrefix": null, "pduSessionId": number});
            pcf.session(&more).await;
            path_of(
                &pcf.post(APP_SESSIONS, &call(&af.root(), &json!({"ueIpv4": address})))
                    .await,
            );
            while pcf.running().count(pcf::Event::NotificationFailed) < number {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            assert_eq!(smf.count(), 1);
        }
        assert_eq!((admin.count(), other.count()), (0, 0));
        assert_eq!(pcf.running().count(pcf::Event::TargetDenied), places.len() as u64);
    });
}
