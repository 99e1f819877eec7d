//! Where a BSF sends notifications, and where it does not whatever a subscriber says.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::sbi::{Server, no_content};

use crate::support::{Bsf, binding, local, start};

const SUPI: &str = "imsi-00001";

fn subscription(target: &str) -> Value {
    json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": target, "notifCorreId": "c", "supi": SUPI})
}

/// A subscriber that redirects each notification.
fn redirecting(to: String) -> Server {
    Server::start(move |_| {
        let mut response = no_content();
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().set_printed("location", &to);
        response
    })
}

async fn counted(bsf: &Bsf, event: bsf::Event, least: u64) {
    while bsf.running.as_ref().unwrap().count(event) < least {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_subscription_names_no_forbidden_place() {
    local(async {
        let bsf = start(|config| config.admin = "127.0.0.1:9030".parse().unwrap());
        let good = bsf
            .post("subscriptions", &subscription("http://127.0.0.1:9/n?x=1"))
            .await;
        let path = bsf.path(&good);
        let own = format!("{}/nbsf-management/v1/subscriptions", bsf.origin);
        for target in [
            "http://169.254.169.254/latest/meta-data",
            "http://[fe80::1]/n",
            "http://[::ffff:127.0.0.1]:7777/n",
            "http://[::ffff:169.254.169.254]/n",
            "http://0.0.0.0:7777/n",
            "http://[::]:7777/n",
            "http://127.0.0.1:9030/livez",
            "http://127.0.0.9:9030/livez",
            "http://localhost:9030/livez",
            "http://[::1]:9030/livez",
            "http://nef@127.0.0.1:7777/n",
            "http://nef:secret@127.0.0.1:7777/n",
            "http://224.0.0.1/n",
            own.as_str(),
        ] {
            let refused = bsf.post("subscriptions", &subscription(target)).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{target}");
            assert_eq!(refused.json["invalidParams"][0]["param"], "/notifUri", "{target}");
            let body = subscription(target).to_string();
            let put = bsf.ask(Method::PUT, &path, "application/json", body).await;
            assert_eq!(put.status, StatusCode::BAD_REQUEST, "{target}");
        }
        let running = bsf.running.as_ref().unwrap();
        assert!(running.count(bsf::Event::TargetDenied) > 0);
    });
}

#[test]
fn a_redirection_leads_to_no_forbidden_place() {
    local(async {
        let (admin, other) = (
            Server::start(|_| no_content()),
            Server::at("127.0.0.2:0".parse().unwrap(), |_| no_content()),
        );
        let bsf = start(|config| {
            config.admin = admin.address;
            config.notifications.attempts = 1;
            config.notifications.alternates = 0;
        });
        let subscribers = [
            redirecting(format!("{}/internal/secret?y=1", admin.root())),
            redirecting(format!("http://localhost:{}/x", admin.address.port())),
            redirecting(format!("{}/elsewhere", other.root())),
            redirecting("http://169.254.169.254/x".to_owned()),
        ];
        for subscriber in &subscribers {
            let target = format!("{}/n", subscriber.root());
            bsf.path(&bsf.post("subscriptions", &subscription(&target)).await);
        }
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({"supi": SUPI}))).await);
        let all = subscribers.len() as u64;
        counted(&bsf, bsf::Event::NotificationFailed, all).await;
        assert_eq!((admin.count(), other.count()), (0, 0));
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(bsf::Event::TargetDenied), all);
    });
}

#[test]
fn a_redirection_to_another_host_is_followed_where_the_settings_allow_it() {
    local(async {
        let other = Server::at("127.0.0.2:0".parse().unwrap(), |_| no_content());
        let bsf = start(|config| config.outgoing.redirect_to_other_hosts = true);
        let subscriber = redirecting(format!("{}/elsewhere", other.root()));
        let target = format!("{}/n", subscriber.root());
        bsf.path(&bsf.post("subscriptions", &subscription(&target)).await);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({"supi": SUPI}))).await);
        counted(&bsf, bsf::Event::Notified, 1).await;
        assert_eq!(other.count(), 1);
    });
}

#[test]
fn a_name_that_resolves_to_a_forbidden_place_is_not_reached() {
    local(async {
        let dns = testpeer::dns::NameServer::start().await.unwrap();
        let (admin, good) = (Server::start(|_| no_content()), Server::start(|_| no_content()));
        for name in ["nef.example", "mapped.example", "any.example"] {
            let address = match name {
                "mapped.example" => "::ffff:127.0.0.1",
                "any.example" => "0.0.0.0",
                _ => "127.0.0.1",
            };
            dns.addresses(name, 60, &[address.parse().unwrap()]);
        }
        let bsf = start(|config| {
            config.admin = admin.address;
            config.dns.servers = vec![dns.address];
            config.notifications.attempts = 1;
            config.notifications.alternates = 0;
        });
        let port = admin.address.port();
        for name in ["nef.example", "mapped.example", "any.example"] {
            let target = format!("http://{name}:{port}/n");
            bsf.path(&bsf.post("subscriptions", &subscription(&target)).await);
        }
        let target = format!("http://nef.example:{}/n", good.address.port());
        bsf.path(&bsf.post("subscriptions", &subscription(&target)).await);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({"supi": SUPI}))).await);
        counted(&bsf, bsf::Event::NotificationFailed, 3).await;
        counted(&bsf, bsf::Event::Notified, 1).await;
        assert_eq!((admin.count(), good.count()), (0, 1));
    });
}
