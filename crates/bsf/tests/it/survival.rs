//! A restart keeps what was acknowledged.

use http::{Method, StatusCode};
use sbi::client::Origin;
use serde_json::{Value, json};
use testpeer::sbi::{Server, no_content, request, send};

use crate::process::Process;
use crate::support::{binding, client, config, local, start};

#[test]
fn bindings_survive_a_restart() {
    local(async {
        let mut bsf = start(|_| {});
        let mut paths = Vec::new();
        for number in 0..20 {
            let one = binding(&json!({"ipv4Addr": null, "ipv6Prefix": format!("2001:db8:{number:x}::/48")}));
            paths.push(bsf.path(&bsf.post("pcfBindings", &one).await));
        }
        bsf.ask(Method::DELETE, &paths[3], "", "").await;
        bsf.stop();
        let again = bsf::start(config(bsf.directory.path())).unwrap();
        bsf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
        bsf.running = Some(again);
        for number in 0..20 {
            let got = bsf
                .find(&format!("ipv6Prefix=2001:db8:{number:x}:1::1/128"))
                .await;
            let expected = if number == 3 {
                StatusCode::NO_CONTENT
            } else {
                StatusCode::OK
            };
            assert_eq!(got.status, expected, "{number}");
        }
        bsf.stop();
    });
}

/// What was acknowledged and not notified yet is notified after a kill, the removal of a binding as well.
#[test]
fn a_kill_before_a_notification_leaves_it_owed() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.notifications.retry_pause = settings::Period::from_secs(20);
        let subscriber = Server::start(|_| no_content());
        let client = client();
        let ask = async |origin: &Origin, method: Method, path: &str, body: &Value| {
            let (kind, body) = match body.is_null() {
                true => ("", String::new()),
                false => ("application/json", body.to_string()),
            };
            send(&client, origin, request(method, path, kind, body))
                .await
                .unwrap()
        };
        let sessions = "/nbsf-management/v1/pcfBindings";
        let bsf = Process::start(&config);
        let subscription = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION", "PCF_PDU_SESSION_BINDING_DEREGISTRATION"],
            "notifUri": format!("{}/notified", subscriber.root()), "notifCorreId": "1", "supi": "imsi-001010000000001"});
        let path = "/nbsf-management/v1/subscriptions";
        let made = ask(&bsf.origin, Method::POST, path, &subscription).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let first = ask(&bsf.origin, Method::POST, sessions, &binding(&json!({}))).await;
        assert_eq!(first.status, StatusCode::CREATED);
        eventually(|| subscriber.count() > 0).await;
        subscriber.fails_with(503);
        let before = subscriber.count();
        let location = first.header("location");
        let gone = &location[location.find("/nbsf").unwrap()..];
        assert_eq!(
            ask(&bsf.origin, Method::DELETE, gone, &Value::Null).await.status,
            StatusCode::NO_CONTENT
        );
        let second = binding(&json!({"ipv4Addr": "10.0.0.2"}));
        assert_eq!(
            ask(&bsf.origin, Method::POST, sessions, &second).await.status,
            StatusCode::CREATED
        );
        eventually(|| subscriber.count() > before).await;
        drop(bsf);
        subscriber.answers(|_| no_content());
        drop(subscriber.take());
        let _bsf = Process::start(&config);
        let heard = || -> Vec<String> {
            let seen = subscriber.seen();
            seen.iter().map(|one| one.json().to_string()).collect()
        };
        let is_about = |event: &str, address: &str| {
            heard()
                .iter()
                .any(|one| one.contains(&format!("_{event}\"")) && one.contains(address))
        };
        eventually(|| is_about("DEREGISTRATION", "10.0.0.1") && is_about("REGISTRATION", "10.0.0.2")).await;
    });
}

async fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("not within a minute");
}
