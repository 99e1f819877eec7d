//! Bindings of PCFs that have restarted or gone, by what an NRF says of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bsf::Event;
use http::{Method, StatusCode};
use sbi::problem::Problem;
use sbi::{Request, Response, Service};
use serde_json::{Value, json};
use settings::Period;

use crate::support::{Bsf, binding, local, start};

const GONE: &str = "6f1c7a52-0000-4000-8000-000000000001";
const MOVED: &str = "6f1c7a52-0000-4000-8000-000000000002";
const WELL: &str = "6f1c7a52-0000-4000-8000-000000000003";

/// Knows PCFs by id, and of which sets one is left; takes subscriptions.
#[derive(Default)]
struct Nrf {
    profiles: RefCell<HashMap<String, Value>>,
    sets: RefCell<Vec<String>>,
    subscriptions: RefCell<Vec<Value>>,
}

impl Service for Nrf {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let body: Value = serde_json::from_slice(&request.body.into_bytes()).unwrap_or_default();
        let id = uri.path().rsplit('/').next().unwrap_or_default();
        match (method, uri.path()) {
            (Method::GET, "/nnrf-disc/v1/nf-instances") => {
                let query = uri.query().unwrap_or_default();
                assert!(query.contains("target-nf-type=PCF"), "{query}");
                let lives = self.sets.borrow().iter().any(|set| query.contains(set));
                let found: Vec<Value> = lives.then(|| json!({"nfInstanceId": WELL})).into_iter().collect();
                sbi::json::response(
                    StatusCode::OK,
                    &json!({"nfInstances": found, "validityPeriod": 10}),
                )
            }
            (Method::GET, _) => match self.profiles.borrow().get(id) {
                Some(profile) => sbi::json::response(StatusCode::OK, profile),
                None => Problem::of_status(StatusCode::NOT_FOUND).into_response(),
            },
            (Method::POST, "/nnrf-nfm/v1/subscriptions") => {
                let mut made = sbi::json::response(StatusCode::CREATED, &body);
                let location = "http://nrf/nnrf-nfm/v1/subscriptions/1".parse().unwrap();
                made.headers_mut().insert("location", location);
                self.subscriptions.borrow_mut().push(body);
                made
            }
            _ => sbi::json::response(StatusCode::OK, &json!({"heartBeatTimer": 100})),
        }
    }
}

fn nrf() -> (Rc<Nrf>, SocketAddr) {
    let listener = sbi::server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let nrf = Rc::new(Nrf::default());
    tokio::task::spawn_local(sbi::server::serve(
        listener,
        nrf.clone(),
        Arc::default(),
        None,
        Arc::default(),
        worker::Shutdown::new(),
    ));
    (nrf, address)
}

/// A binding of its own address, of this PCF.
async fn bound(bsf: &Bsf, number: u8, pcf: &str, more: Value) {
    let mut all = json!({"ipv4Addr": format!("10.0.0.{number}"), "pcfId": pcf,
        "recoveryTime": "2020-01-01T00:00:00Z", "supi": format!("imsi-{number}")});
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    bsf.path(&bsf.post("pcfBindings", &binding(&all)).await);
}

async fn holds(bsf: &Bsf, number: u8) -> bool {
    bsf.find(&format!("ipv4Addr=10.0.0.{number}")).await.status == StatusCode::OK
}

async fn until(bsf: &Bsf, event: Event, count: u64) {
    while bsf.running.as_ref().unwrap().count(event) < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn audited(config: &mut bsf::Config, nrf: SocketAddr) {
    config.nrf.api_roots = vec![format!("http://{nrf}")];
    config.audit.walk.older_than = Period::from_millis(1);
    config.audit.walk.pause = Period::from_millis(50);
    config.audit.walk.rate = 10_000;
    config.audit.remember = Period::from_millis(10);
}

#[test]
fn of_a_pcf_that_is_gone_after_so_many_walks() {
    local(async {
        let (nrf, address) = nrf();
        nrf.profiles
            .borrow_mut()
            .insert(WELL.to_owned(), json!({"recoveryTime": "2020-01-01T00:00:00Z"}));
        nrf.sets.borrow_mut().push("set1".to_owned());
        let bsf = start(|config| audited(config, address));
        bound(&bsf, 1, GONE, json!({})).await;
        bound(&bsf, 2, WELL, json!({})).await;
        // Others of its set have its sessions.
        bound(
            &bsf,
            3,
            GONE,
            json!({"pcfSetId": "set1.pcfset", "bindLevel": "NF_SET"}),
        )
        .await;
        bound(
            &bsf,
            4,
            GONE,
            json!({"pcfSetId": "set2.pcfset", "bindLevel": "NF_SET"}),
        )
        .await;
        bound(&bsf, 5, GONE, json!({"pcfId": null})).await;
        let ue = json!({"supi": "imsi-6", "pcfForUeFqdn": "pcf.example.org", "pcfId": GONE});
        bsf.path(&bsf.post("pcf-ue-bindings", &ue).await);
        until(&bsf, Event::AuditGone, 3).await;
        until(&bsf, Event::Audited, 30).await;
        for (number, expected) in [(1, false), (2, true), (3, true), (4, false), (5, true)] {
            assert_eq!(holds(&bsf, number).await, expected, "{number}");
        }
        let ues = bsf.get("/nbsf-management/v1/pcf-ue-bindings?supi=imsi-6").await;
        assert_eq!(ues.json, json!([]));
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(Event::AuditGone), 3);
        // Two chances each before the third walk.
        assert_eq!(running.count(Event::AuditMissed), 6);
        // What is told of the binding does not tell of audits.
        let found = bsf.find("ipv4Addr=10.0.0.2").await;
        assert!(!found.json.to_string().contains("audit"), "{}", found.json);
    });
}

#[test]
fn of_a_pcf_that_has_restarted_at_once_and_subscribers_are_told() {
    local(async {
        let (nrf, address) = nrf();
        let since = |time: &str| json!({"nfInstanceId": MOVED, "recoveryTime": time});
        nrf.profiles
            .borrow_mut()
            .insert(MOVED.to_owned(), since("2020-01-01T00:00:00Z"));
        nrf.profiles
            .borrow_mut()
            .insert(WELL.to_owned(), since("2020-01-01T00:00:00Z"));
        let bsf = start(|config| {
            audited(config, address);
            // Only the NRF's word makes it look.
            config.audit.walk.pause = Period::from_secs(3_600);
        });
        bound(&bsf, 1, MOVED, json!({})).await;
        bound(&bsf, 2, WELL, json!({})).await;
        while nrf.subscriptions.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let subscription = nrf.subscriptions.borrow()[0].clone();
        // The NRF gives the id; whoever subscribes leaves it out.
        let mut stored = subscription.clone();
        stored["subscriptionId"] = json!("1");
        crate::judge::nrf_subscription(&stored);
        assert_eq!(subscription["subscrCond"], json!({"nfType": "PCF"}));
        let callback: http::Uri = subscription["nfStatusNotificationUri"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();

        // It begins anew, a little in the future of what was written: clocks tell the bindings apart.
        nrf.profiles
            .borrow_mut()
            .insert(MOVED.to_owned(), since("2100-01-01T00:00:00Z"));
        let told = json!({"event": "NF_PROFILE_CHANGED",
            "nfInstanceUri": format!("http://nrf/nnrf-nfm/v1/nf-instances/{MOVED}")});
        let got = bsf
            .ask(
                Method::POST,
                callback.path(),
                "application/json",
                told.to_string(),
            )
            .await;
        assert_eq!(got.status, StatusCode::NO_CONTENT);
        until(&bsf, Event::AuditRestarted, 1).await;
        assert!(!holds(&bsf, 1).await && holds(&bsf, 2).await);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::AuditRestarted), 1);

        for wrong in ["", "{}", "{\"nfInstanceUri\": \"http://nrf/x\"}", "[1]"] {
            let got = bsf
                .ask(
                    Method::POST,
                    callback.path(),
                    "application/json",
                    wrong.to_owned(),
                )
                .await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{wrong}");
        }
    });
}

#[test]
fn of_no_pcf_while_the_nrf_does_not_answer() {
    local(async {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let bsf = start(|config| audited(config, nobody));
        bound(&bsf, 1, GONE, json!({})).await;
        until(&bsf, Event::AuditUnanswered, 3).await;
        assert!(holds(&bsf, 1).await);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::AuditMissed), 0);
    });
}
