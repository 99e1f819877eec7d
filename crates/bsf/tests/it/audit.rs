//! Bindings of PCFs that have restarted or gone, by what an NRF says of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bsf::Event;
use http::{Method, StatusCode};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use settings::Period;
use testpeer::sbi::{Seen, Server};

use crate::pages::{admin, serve};
use crate::support::{Bsf, binding, local, start};

pub(crate) const GONE: &str = "6f1c7a52-0000-4000-8000-000000000001";
const MOVED: &str = "6f1c7a52-0000-4000-8000-000000000002";
pub(crate) const WELL: &str = "6f1c7a52-0000-4000-8000-000000000003";

/// An NRF that knows PCFs by id and the sets that have a member left, and takes subscriptions.
#[derive(Default)]
pub(crate) struct Nrf {
    pub(crate) profiles: RefCell<HashMap<String, Value>>,
    sets: RefCell<Vec<String>>,
    subscriptions: RefCell<Vec<Value>>,
}

impl Nrf {
    fn answer(&self, seen: &Seen) -> Response {
        let path = seen.path.split('?').next().unwrap_or_default();
        match (&seen.method, path) {
            (&Method::GET, "/nnrf-disc/v1/nf-instances") => {
                assert!(seen.path.contains("target-nf-type=PCF"), "{}", seen.path);
                let lives = self.sets.borrow().iter().any(|set| seen.path.contains(set));
                let found: Vec<Value> = lives.then(|| json!({"nfInstanceId": WELL})).into_iter().collect();
                let answer = json!({"nfInstances": found, "validityPeriod": 10});
                sbi::json::response(StatusCode::OK, &answer)
            }
            (&Method::GET, _) => {
                let id = path.rsplit('/').next().unwrap_or_default();
                match self.profiles.borrow().get(id) {
                    Some(profile) => sbi::json::response(StatusCode::OK, profile),
                    None => Problem::of_status(StatusCode::NOT_FOUND).into_response(),
                }
            }
            (&Method::POST, "/nnrf-nfm/v1/subscriptions") => {
                let body = seen.json();
                let mut made = sbi::json::response(StatusCode::CREATED, &body);
                let location = "http://nrf/nnrf-nfm/v1/subscriptions/1";
                made.headers_mut().set_printed("location", location);
                self.subscriptions.borrow_mut().push(body);
                made
            }
            _ => sbi::json::response(StatusCode::OK, &json!({"heartBeatTimer": 100})),
        }
    }
}

pub(crate) fn nrf() -> (Rc<Nrf>, SocketAddr) {
    let nrf = Rc::new(Nrf::default());
    let answering = nrf.clone();
    let server = Server::start(move |seen| answering.answer(seen));
    (nrf, server.address)
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

pub(crate) fn audited(config: &mut bsf::Config, nrf: SocketAddr) {
    config.nrf.api_roots = vec![format!("http://{nrf}")];
    config.audit.walk.older_than = Period::from_millis(1);
    config.audit.walk.pause = Period::from_millis(50);
    config.audit.walk.rate = 10_000;
    config.audit.remember = Period::from_millis(10);
}

/// An NRF that knows the PCF [`WELL`], which runs since 2020.
pub(crate) fn nrf_with_well() -> (Rc<Nrf>, SocketAddr) {
    let (nrf, address) = nrf();
    let profile = json!({"recoveryTime": "2020-01-01T00:00:00Z"});
    nrf.profiles.borrow_mut().insert(WELL.to_owned(), profile);
    (nrf, address)
}

#[test]
fn of_a_pcf_that_is_gone_after_so_many_walks() {
    local(async {
        let (nrf, address) = nrf_with_well();
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
        // What the BSF shows of the binding has nothing of audits.
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
        // The NRF gives the id; the subscriber leaves it out.
        let mut stored = subscription.clone();
        stored["subscriptionId"] = json!("1");
        crate::judge::nrf_subscription(&stored);
        assert_eq!(subscription["subscrCond"], json!({"nfType": "PCF"}));
        let callback: http::Uri = subscription["nfStatusNotificationUri"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();

        let notify = async |pcf: &str, recovery: &str| {
            nrf.profiles.borrow_mut().insert(pcf.to_owned(), since(recovery));
            let event = json!({"event": "NF_PROFILE_CHANGED",
                "nfInstanceUri": format!("http://nrf/nnrf-nfm/v1/nf-instances/{pcf}")});
            let (path, body) = (callback.path(), event.to_string());
            let got = bsf.ask(Method::POST, path, "application/json", body).await;
            assert_eq!(got.status, StatusCode::NO_CONTENT);
        };
        // A year that is wrong loses no binding.
        notify(WELL, "2100-01-01T00:00:00Z").await;
        // It begins again, a little in the future of what was written: clocks tell the bindings apart.
        let soon = time::OffsetDateTime::now_utc() + time::Duration::seconds(60);
        let soon = soon
            .format(&time::format_description::well_known::Rfc3339)
            .unwrap();
        notify(MOVED, &soon).await;
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

/// An NRF that has lost its registrations, or is asked at a wrong place, knows no PCF.
#[test]
fn of_no_pcf_while_most_are_gone() {
    local(async {
        let (nrf, address) = nrf();
        let bsf = start(|config| audited(config, address));
        let pcf = |number: u8| format!("6f1c7a52-0000-4000-8000-0000000000{number:02}");
        for number in 1..=4 {
            bound(&bsf, number, &pcf(number), json!({})).await;
        }
        until(&bsf, Event::AuditHeldBack, 8).await;
        for number in 1..=4 {
            assert!(holds(&bsf, number).await, "{number}");
        }
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::AuditGone), 0);
        // Registered again: one of them was gone indeed.
        for number in 1..=3 {
            let profile = json!({"recoveryTime": "2020-01-01T00:00:00Z"});
            nrf.profiles.borrow_mut().insert(pcf(number), profile);
        }
        until(&bsf, Event::AuditGone, 1).await;
        for number in 1..=3 {
            assert!(holds(&bsf, number).await, "{number}");
        }
        assert!(!holds(&bsf, 4).await);
    });
}

#[test]
fn of_no_pcf_while_the_nrf_does_not_answer() {
    local(async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let bsf = start(|config| audited(config, closed));
        bound(&bsf, 1, GONE, json!({})).await;
        until(&bsf, Event::AuditUnanswered, 3).await;
        assert!(holds(&bsf, 1).await);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::AuditMissed), 0);
    });
}

/// The NRF says that the PCF of all bindings has restarted: a share of them goes, then an operator has to say so.
#[test]
fn no_more_than_a_share_without_the_word_of_an_operator() {
    const BINDINGS: u8 = 40;
    local(async {
        let (nrf, address) = nrf();
        let bsf = start(|config| {
            config.audit.most_removed = settings::Percent::new(25.0);
            config.audit.free_removals = 2;
            config.audit.subscribe = false;
            audited(config, address);
        });
        let began = |time: &str| json!({"nfInstanceId": MOVED, "recoveryTime": time});
        nrf.profiles
            .borrow_mut()
            .insert(MOVED.to_owned(), began("2020-01-01T00:00:00Z"));
        for number in 0..BINDINGS {
            bound(&bsf, number, MOVED, json!({})).await;
        }
        // A walk that began before the last of them has a share of fewer.
        let audited = bsf.running.as_ref().unwrap().count(Event::Audited);
        until(&bsf, Event::Audited, audited + 2 * u64::from(BINDINGS)).await;
        let now = time::OffsetDateTime::now_utc() + time::Duration::seconds(2);
        let now = now
            .format(&time::format_description::well_known::Rfc3339)
            .unwrap();
        nrf.profiles.borrow_mut().insert(MOVED.to_owned(), began(&now));
        until(&bsf, Event::AuditBraked, 1).await;
        let running = bsf.running.as_ref().unwrap();
        let pages = serve(running).await;
        // The last removal may still be at work when others meet the brake, and one of what has changed meanwhile is none.
        let (shown, removed) = loop {
            let (_, shown) = admin(pages, "GET", "/bsf/audit", "").await;
            let removed = running.count(Event::AuditRestarted);
            if shown[0]["removed"] == removed {
                assert!((1..=u64::from(BINDINGS) / 4).contains(&removed), "{removed}");
                break (shown, removed);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(
            (&shown[0]["table"], &shown[0]["braked"]),
            (&json!("pcf_binding"), &json!(true))
        );
        let alarms = running.handle().alarms();
        assert!(format!("{:?}", alarms.active()).contains("BSF Audit Braked"));
        // Further walks remove none.
        until(&bsf, Event::AuditBraked, 100).await;
        assert_eq!(running.count(Event::AuditRestarted), removed);
        admin(pages, "PUT", "/bsf/audit", "\"RELEASED\"").await;
        until(&bsf, Event::AuditRestarted, u64::from(BINDINGS)).await;
        for number in 0..BINDINGS {
            assert!(!holds(&bsf, number).await, "{number}");
        }
        assert!(alarms.active().is_empty());
    });
}

/// No NRF can say what became of the PCF of a binding that does not name it.
#[test]
fn of_no_named_pcf_when_nothing_has_written_it_for_its_lifetime() {
    local(async {
        let (_nrf, address) = nrf_with_well();
        let bsf = start(|config| {
            audited(config, address);
            config.audit.lifetime = Period::from_millis(300);
        });
        bound(&bsf, 1, WELL, json!({"pcfId": null})).await;
        bound(&bsf, 2, WELL, json!({})).await;
        until(&bsf, Event::AuditExpired, 1).await;
        assert!(!holds(&bsf, 1).await && holds(&bsf, 2).await);
    });
}

/// Without an NRF only a PCF confirms a binding.
#[test]
fn of_any_pcf_when_nothing_has_confirmed_it_for_its_lifetime() {
    local(async {
        let bsf = start(|config| config.binding_lifetime = Period::from_millis(200));
        bound(&bsf, 1, WELL, json!({})).await;
        until(&bsf, Event::BindingExpired, 1).await;
        assert!(!holds(&bsf, 1).await);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::Audited), 0);
    });
}

/// A binding of a PCF that the NRF knows is confirmed, one without `pcfId` is not.
#[test]
fn not_while_the_audit_confirms_it() {
    local(async {
        let (_nrf, address) = nrf_with_well();
        let bsf = start(|config| {
            audited(config, address);
            config.binding_lifetime = Period::from_secs(3);
        });
        bound(&bsf, 1, WELL, json!({})).await;
        bound(&bsf, 2, WELL, json!({"pcfId": null})).await;
        until(&bsf, Event::BindingExpired, 1).await;
        assert!(holds(&bsf, 1).await && !holds(&bsf, 2).await);
    });
}
