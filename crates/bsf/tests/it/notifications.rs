//! Notifications to subscribers.

use std::cell::Cell;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::support::{binding, local, start};

/// A subscriber that refuses the first notification.
fn subscriber() -> Server {
    let refused = Cell::new(false);
    Server::start(move |seen| {
        if !refused.replace(true) {
            return Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response();
        }
        assert_eq!(seen.header("3gpp-sbi-callback"), "Nbsf_Management_myNotification");
        crate::judge::notification(&seen.json());
        no_content()
    })
}

#[test]
fn of_bindings_that_come_and_go() {
    local(async {
        let bsf = start(|config| config.notifications.retry_pause = settings::Period::from_millis(10));
        let subscriber = subscriber();
        let target = format!("{}/told", subscriber.root());

        let session = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION", "PCF_PDU_SESSION_BINDING_DEREGISTRATION",
            "PCF_UE_BINDING_REGISTRATION"], "notifUri": target, "notifCorreId": "c1", "supi": "imsi-001010000000001"});
        let subscribed = bsf.post("subscriptions", &body).await;
        let subscription = bsf.path(&subscribed);
        let met = &subscribed.json["eventNotifs"][0];
        assert_eq!(
            met["event"], "PCF_PDU_SESSION_BINDING_REGISTRATION",
            "{}",
            subscribed.json
        );
        assert_eq!(met["pcfForPduSessInfos"][0]["ipv4Addr"], "10.0.0.1");

        bsf.ask(Method::DELETE, &session, "", "").await;
        let ue = json!({"supi": "imsi-001010000000001", "pcfForUeFqdn": "pcf7.example.org"});
        bsf.path(&bsf.post("pcf-ue-bindings", &ue).await);
        let other = binding(&json!({"supi": "imsi-2"}));
        bsf.path(&bsf.post("pcfBindings", &other).await);
        while subscriber.count() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen: Vec<Value> = subscriber.seen()[1..].iter().map(Seen::json).collect();
        assert_eq!(seen[0]["notifCorreId"], "c1");
        assert_eq!(
            seen[0]["eventNotifs"][0]["event"],
            "PCF_PDU_SESSION_BINDING_DEREGISTRATION"
        );
        assert_eq!(
            seen[1]["eventNotifs"][0]["pcfForUeInfo"]["pcfFqdn"],
            "pcf7.example.org"
        );

        let mut replaced = body.clone();
        replaced["events"] = json!(["PCF_UE_BINDING_DEREGISTRATION"]);
        let put = bsf
            .ask(
                Method::PUT,
                &subscription,
                "application/json",
                replaced.to_string(),
            )
            .await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            assert_eq!(
                bsf.ask(Method::DELETE, &subscription, "", "").await.status,
                status
            );
        }
    });
}

/// An NRF that knows one set, with one instance at this address.
fn nrf(instance: &'static str) -> Server {
    Server::start(move |seen| {
        let known = seen.path.starts_with("/nnrf-disc/v1/nf-instances?")
            && seen.path.contains("target-nf-type=NEF")
            && seen.path.contains("set1%2Enefset");
        let found = match known {
            true => json!([{"ipv4Addresses": [instance]}]),
            false => json!([]),
        };
        let answer = json!({"nfInstances": found, "validityPeriod": 1, "heartBeatTimer": 100});
        sbi::json::response(StatusCode::OK, &answer)
    })
}

#[test]
fn where_the_subscriber_or_another_of_its_set_is() {
    local(async {
        let taken = Server::start(|_| no_content());
        let there = format!("{}/new", taken.root());
        let redirecting = Server::start(move |_| {
            let mut response = no_content();
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().set_printed("location", &there);
            response
        });
        // Another instance of the set: the same port at another host.
        let another = Server::at("127.0.0.2:0".parse().unwrap(), |_| no_content());
        let nrf = nrf("127.0.0.2");
        let bsf = start(|config| {
            config.nrf.api_roots = vec![nrf.root()];
            config.notifications.retry_pause = settings::Period::from_millis(1);
            config.notifications.rate = 1_000;
        });
        let body = |supi: &str, target: String| {
            json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": target, "notifCorreId": "c",
                "supi": supi})
        };
        let redirected = body("imsi-00001", format!("{}/old", redirecting.root()));
        bsf.path(&bsf.post("subscriptions", &redirected).await);
        let dead = body(
            "imsi-00002",
            format!("http://127.0.0.1:{}/x", another.address.port()),
        );
        let request = http::Request::post("/nbsf-management/v1/subscriptions")
            .header("content-type", "application/json")
            .header(
                "3gpp-sbi-binding",
                // Literals of ABNF have no case (RFC 5234 §2.3).
                "BL=NF-SET; NFSET=set1.nefset.5gc.mnc001.mcc001; Scope=Callback",
            )
            .body(dead.to_string().into())
            .unwrap();
        bsf.path(&bsf.send(request).await);
        for supi in ["imsi-00001", "imsi-00002"] {
            bsf.path(&bsf.post("pcfBindings", &binding(&json!({"supi": supi}))).await);
        }
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::Notified) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!((taken.count(), another.count()), (1, 1));
        assert_eq!(running.count(bsf::Event::NotificationRedirected), 1);
        assert_eq!(running.count(bsf::Event::NotificationRerouted), 1);
        assert!(running.score().score > 0.0);
    });
}

#[test]
fn where_dns_says_that_the_subscriber_is_served_too() {
    local(async {
        let dns = testpeer::dns::NameServer::start().await.unwrap();
        let another = Server::start(|_| no_content());
        let port = another.address.port();
        let closed = free_ports::port().unwrap();
        for name in ["nef.example", "nef2.example"] {
            dns.addresses(name, 60, &["127.0.0.1".parse().unwrap()]);
        }
        let places = [(1, 1, closed, "nef.example"), (2, 1, port, "nef2.example")];
        dns.services("_http._tcp.nef.example", 60, &places);
        let bsf = start(|config| {
            config.dns.servers = vec![dns.address];
            config.notifications.dns_srv = true;
            config.notifications.retry_pause = settings::Period::from_millis(1);
        });
        let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifCorreId": "c",
            "notifUri": format!("http://nef.example:{closed}/x"), "supi": "imsi-00001"});
        bsf.path(&bsf.post("subscriptions", &body).await);
        bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"supi": "imsi-00001"})))
                .await,
        );
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::NotificationRerouted) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(another.count(), 1);
    });
}

#[test]
fn a_subscriber_that_answers_again_gets_the_bindings_it_missed() {
    local(async {
        let subscriber = Server::start(|_| no_content());
        subscriber.fails_with(503);
        let bsf = start(|config| {
            config.notifications.attempts = 1;
            config.notifications.alternates = 0;
        });
        let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifCorreId": "c",
            "notifUri": format!("{}/callback", subscriber.root()), "supi": "imsi-00001"});
        bsf.path(&bsf.post("subscriptions", &body).await);
        let session = |dnn: &str| binding(&json!({"supi": "imsi-00001", "dnn": dnn}));
        let running = bsf.running.as_ref().unwrap();
        let mut paths = Vec::new();
        for (failed, dnn) in [(1, "missed"), (2, "gone")] {
            paths.push(bsf.path(&bsf.post("pcfBindings", &session(dnn)).await));
            while running.count(bsf::Event::NotificationFailed) < failed {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        bsf.ask(Method::DELETE, &paths[1], "", "").await;
        let _refused = subscriber.take();
        subscriber.answers(|seen| {
            crate::judge::notification(&seen.json());
            no_content()
        });
        bsf.path(&bsf.post("pcfBindings", &session("present")).await);
        while running.count(bsf::Event::Notified) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let dnn = |seen: &Seen| seen.json()["eventNotifs"][0]["pcfForPduSessInfos"][0]["dnn"].clone();
        let dnns: Vec<Value> = subscriber.seen().iter().map(dnn).collect();
        assert_eq!(dnns, ["present", "missed"]);
        assert_eq!(running.count(bsf::Event::NotificationResynced), 1);
        assert_eq!(running.notifications(), notifier::Pending::default());
    });
}

/// Subscribers that take connections and never answer hold up none of the others, however their identities hash, nor do
/// they hold up what follows once all that may be in flight is theirs.
#[test]
fn subscribers_that_are_silent_hold_up_no_other() {
    const SILENT: usize = 3;
    const OTHERS: usize = 100;
    local(async {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = silent.local_addr().unwrap();
        let subscriber = Server::start(|_| no_content());
        let bsf = start(|config| {
            // Longer than the test lasts: not one of the silent ones is given up meanwhile.
            config.notifications.timeout = settings::Period::from_secs(600);
            config.notifications.parallel = SILENT + 1;
        });
        let subscribe = async |number: usize, target: String| {
            let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": target,
                "notifCorreId": number.to_string(), "supi": format!("imsi-{number:05}")});
            bsf.path(&bsf.post("subscriptions", &body).await);
        };
        for number in 0..SILENT {
            subscribe(number, format!("http://{place}/{number}")).await;
        }
        for number in SILENT..SILENT + OTHERS {
            subscribe(number, format!("{}/{number}", subscriber.root())).await;
        }
        // Several for each of the silent ones: one is in flight, the others wait for it.
        for round in 0..4 {
            for number in 0..SILENT {
                let more = json!({"supi": format!("imsi-{number:05}"), "dnn": format!("dnn{round}")});
                bsf.path(&bsf.post("pcfBindings", &binding(&more)).await);
            }
        }
        for number in SILENT..SILENT + OTHERS {
            let more = json!({"supi": format!("imsi-{number:05}")});
            bsf.path(&bsf.post("pcfBindings", &binding(&more)).await);
        }
        let begun = std::time::Instant::now();
        while subscriber.count() < OTHERS {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{} of {OTHERS}",
                subscriber.count()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let running = bsf.running.as_ref().unwrap();
        while running.count(bsf::Event::Notified) < OTHERS as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Of each silent one, all but the notification in flight.
        assert_eq!(running.notifications().notifications, 3 * SILENT);
    });
}
