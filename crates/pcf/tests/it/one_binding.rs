//! One binding for a session, whatever happens while the BSF takes its time, and none after its end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::process::Process;
use crate::support::{
    Pcf, SM_POLICIES, client, config, context, judged, local, path_of, request, start, until,
};

const BINDINGS: &str = "/nbsf-management/v1/pcfBindings";

/// A BSF that has bindings.
#[derive(Default)]
struct Bsf {
    bindings: RefCell<BTreeMap<String, Value>>,
    created: Cell<u32>,
    /// Removals that it answers 503 yet.
    fails: Cell<u32>,
}

impl Bsf {
    fn start() -> (Server, Rc<Self>) {
        let own = Rc::new(Self::default());
        let state = own.clone();
        (Server::start(move |seen| state.answer(seen)), own)
    }

    fn answer(&self, seen: &Seen) -> Response {
        let path = seen.uri().path().to_owned();
        let mut bindings = self.bindings.borrow_mut();
        match seen.method.as_str() {
            "POST" => {
                self.created.set(self.created.get() + 1);
                let path = format!("{BINDINGS}/{}", self.created.get());
                let location = sbi::Value::new(path.as_bytes()).unwrap();
                let answer = sbi::json::response(StatusCode::CREATED, &seen.json());
                let answer = answer.with(sbi::name::LOCATION, location);
                bindings.insert(path, seen.json());
                answer
            }
            _ if !bindings.contains_key(&path) => Problem::of_status(StatusCode::NOT_FOUND).into_response(),
            "PATCH" => {
                let binding = bindings.get_mut(&path).unwrap();
                pcc::media::merge(binding, &seen.json());
                sbi::json::response(StatusCode::OK, binding)
            }
            _ if self.fails.get() > 0 => {
                self.fails.set(self.fails.get() - 1);
                Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response()
            }
            _ => {
                bindings.remove(&path);
                no_content()
            }
        }
    }

    /// Addresses of its bindings.
    fn held(&self) -> Vec<[Value; 3]> {
        let members = ["ipv4Addr", "ipv6Prefix", "addIpv6Prefixes"];
        let bindings = self.bindings.borrow();
        let bindings = bindings.values();
        bindings
            .map(|binding| members.map(|name| binding[name].clone()))
            .collect()
    }
}

fn pcf(server: &Server, workers: usize) -> Pcf {
    let root = server.root();
    start(|config| {
        config.workers = workers;
        config.bsf.api_roots = vec![root];
        config.bsf.timeout = settings::Period::from_secs(60);
        config.bsf.retry_pause = settings::Period::from_millis(5);
    })
}

#[test]
fn addresses_that_change_during_a_registration_leave_one_binding() {
    local(async {
        let (server, bsf) = Bsf::start();
        let pcf = pcf(&server, 1);
        server.holds();
        let path = pcf.session(&json!({})).await;
        let update = format!("{path}/update");
        until(|| server.count() > 0).await;
        for change in [
            json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1"}),
            json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "addIpv6AddrPrefixes": "2001:db8:2::/64"}),
        ] {
            assert_eq!(pcf.post(&update, &change).await.status, StatusCode::OK);
        }
        server.releases();
        let wanted = [
            Value::Null,
            json!("2001:db8:1:2::/64"),
            json!(["2001:db8:2::/64"]),
        ];
        until(|| bsf.held().contains(&wanted)).await;
        assert_eq!(bsf.held(), std::slice::from_ref(&wanted));

        // And back again, while the change of the binding is in flight.
        server.holds();
        let seen = server.count();
        let other = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "ipv4Address": "10.0.0.2"});
        pcf.post(&update, &other).await;
        until(|| server.count() > seen).await;
        let back = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.2"});
        pcf.post(&update, &back).await;
        server.releases();
        until(|| server.count() == seen + 2).await;
        until(|| bsf.held() == [wanted.clone()]).await;

        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(|| bsf.held().is_empty()).await;
        assert_eq!(bsf.created.get(), 1);
    });
}

#[test]
fn workers_that_register_the_same_session_leave_one_binding() {
    local(async {
        let (server, bsf) = Bsf::start();
        let pcf = pcf(&server, 2);
        server.holds();
        let path = pcf.session(&json!({"ipv6AddressPrefix": null})).await;
        until(|| server.count() > 0).await;
        // Each has a connection of its own: both workers get some.
        for number in 2..18 {
            let body =
                json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "ipv4Address": format!("10.0.0.{number}")});
            let update = request(
                Method::POST,
                &format!("{path}/update"),
                "application/json",
                body.to_string(),
            );
            assert_eq!(
                judged(&client(), &pcf.origin, update).await.status,
                StatusCode::OK
            );
        }
        server.releases();
        let wanted = [json!("10.0.0.17"), Value::Null, Value::Null];
        until(|| bsf.held() == [wanted.clone()]).await;
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(|| bsf.held().is_empty()).await;
    });
}

#[test]
fn a_session_that_ends_during_its_registration_leaves_no_binding() {
    local(async {
        let (server, bsf) = Bsf::start();
        let pcf = pcf(&server, 1);
        server.holds();
        bsf.fails.set(2);
        let path = pcf.session(&json!({})).await;
        until(|| server.count() > 0).await;
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        server.releases();
        until(|| bsf.created.get() == 1 && bsf.held().is_empty()).await;
    });
}

#[test]
fn a_session_without_an_address_has_no_binding_until_it_gets_one() {
    local(async {
        let (server, bsf) = Bsf::start();
        let pcf = pcf(&server, 1);
        let body = context(&json!({"ipv6AddressPrefix": null}));
        let path = path_of(&pcf.post(SM_POLICIES, &body).await);
        until(|| bsf.held().len() == 1).await;
        let update = format!("{path}/update");
        let released = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1"});
        pcf.post(&update, &released).await;
        until(|| bsf.held().is_empty()).await;
        let allocated = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "ipv4Address": "10.0.0.2"});
        pcf.post(&update, &allocated).await;
        until(|| bsf.held() == [[json!("10.0.0.2"), Value::Null, Value::Null]]).await;
        assert_eq!(bsf.created.get(), 2);
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(|| bsf.held().is_empty()).await;
    });
}

#[test]
fn a_bsf_that_answers_too_late_has_one_binding_of_a_session() {
    local(async {
        let (server, bsf) = Bsf::start();
        let root = server.root();
        let pcf = start(|config| {
            config.bsf.api_roots = vec![root];
            config.bsf.timeout = settings::Period::from_millis(50);
            config.bsf.late_timeout = settings::Period::from_secs(60);
            config.bsf.retry_pause = settings::Period::from_millis(5);
            config.bsf.attempts = 2;
        });
        server.holds();
        let path = pcf.session(&json!({})).await;
        until(|| server.count() == 2).await;
        // Long enough for the second attempt to be over as well; where it is not, its answer is in time.
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.releases();
        until(|| bsf.created.get() == 2 && bsf.held().len() == 1).await;
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(|| bsf.held().is_empty()).await;
    });
}

/// A BSF answers two requests for one session with one binding: the late answer removes nothing.
#[test]
fn a_bsf_that_has_one_binding_of_a_session_keeps_it_when_it_answers_late() {
    local(async {
        let (server, bsf) = Bsf::start();
        let (root, own) = (server.root(), bsf.clone());
        server.answers(move |seen| {
            if seen.method == Method::POST {
                own.created.set(0);
            }
            own.answer(seen)
        });
        let pcf = start(|config| {
            config.bsf.api_roots = vec![root];
            config.bsf.timeout = settings::Period::from_millis(50);
            config.bsf.late_timeout = settings::Period::from_secs(60);
            config.bsf.retry_pause = settings::Period::from_millis(5);
            config.bsf.attempts = 2;
        });
        server.holds();
        let path = pcf.session(&json!({})).await;
        until(|| server.count() == 2).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.releases();
        until(|| !bsf.held().is_empty()).await;
        // A request after the late answers: what they cause at the BSF precedes it.
        let moved = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "ipv4Address": "10.0.0.9"});
        pcf.post(&format!("{path}/update"), &moved).await;
        until(|| bsf.held().iter().any(|held| held[0] == "10.0.0.9")).await;
        assert_eq!(bsf.held().len(), 1);
        assert!(server.seen().iter().all(|seen| seen.method != Method::DELETE));
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(|| bsf.held().is_empty()).await;
    });
}

/// Where the binding is that an earlier release has kept in the association.
#[test]
fn the_binding_of_an_earlier_release_is_changed_and_removed() {
    const IDS: [&str; 2] = [
        "0b0c5f5e-7a0f-4e86-9f0a-1c2d3e4f5a6b",
        "0b0c5f5e-7a0f-4e86-9f0a-1c2d3e4f5a6c",
    ];
    local(async {
        let (server, bsf) = Bsf::start();
        let directory = tempfile::tempdir().unwrap();
        let store = crate::support::config(directory.path()).store;
        let lines: Vec<String> = IDS
            .iter()
            .zip(1..)
            .map(|(id, number)| {
                let addresses = json!({"ipv4Addr": "10.0.0.1", "ipv6Prefix": "2001:db8:1:2::/64"});
                let path = format!("{BINDINGS}/{number}");
                bsf.bindings.borrow_mut().insert(path.clone(), addresses.clone());
                let room = json!({"binding": format!("{}{path}", server.root()), "addresses": addresses});
                json!({"associationId": id, "kind": "sm", "rooms": {"bsf": room},
                    "context": context(&json!({"pduSessionId": number}))})
                .to_string()
            })
            .collect();
        assert_eq!(
            pcf::import::import(&store, lines.join("\n").as_bytes())
                .await
                .unwrap(),
            2
        );
        let root = server.root();
        let pcf = start(|config| {
            config.store = store.clone();
            config.bsf.api_roots = vec![root];
        });
        let path = |id: &str| format!("{SM_POLICIES}/{id}");
        // Nothing has changed for the BSF.
        pcf.post(&format!("{}/update", path(IDS[0])), &json!({"ratType": "EUTRA"}))
            .await;
        let released = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1"});
        pcf.post(&format!("{}/update", path(IDS[0])), &released).await;
        until(|| server.count() == 1).await;
        let seen = &server.seen()[0];
        let change = json!({"ipv4Addr": null, "ipv6Prefix": "2001:db8:1:2::/64"});
        assert_eq!((&seen.method, seen.json()), (&Method::PATCH, change));
        for id in IDS {
            pcf.post(&format!("{}/delete", path(id)), &json!({})).await;
        }
        until(|| bsf.held().is_empty()).await;
        assert_eq!(bsf.created.get(), 0);
    });
}

/// Kills of the process while bindings are registered: each session that was acknowledged stands, and the binding that the store
/// names is changed with it and removed with it by the next process.
#[test]
fn a_kill_during_registrations_leaves_what_the_next_process_changes_and_removes() {
    local(async {
        let (server, bsf) = Bsf::start();
        let folder = tempfile::tempdir().unwrap();
        let mut settings = config(folder.path());
        settings.bsf.api_roots = vec![server.root()];
        settings.bsf.retry_pause = settings::Period::from_millis(5);
        for round in 0_u32..4 {
            let (first, before) = (Process::start(&settings), server.count());
            let own = client();
            let mut paths = Vec::new();
            for number in 0..12 {
                let body = context(&json!({"supi": format!("imsi-00101{round:04}{number:06}"),
                    "ipv4Address": format!("10.8.{round}.{number}"), "ipv6AddressPrefix": null}));
                let create = request(Method::POST, SM_POLICIES, "application/json", body.to_string());
                let made = judged(&own, &first.origin, create).await;
                paths.push(path_of(&made));
                if number == 3 * round {
                    // What follows is registered when the process is killed.
                    server.holds();
                }
            }
            until(|| server.count() >= before + 12).await;
            drop(first);
            server.releases();
            let second = Process::start(&settings);
            let own = client();
            for (number, path) in paths.iter().enumerate() {
                let ask = async |what: &str, body: Value| {
                    let asked = request(
                        Method::POST,
                        &format!("{path}/{what}"),
                        "application/json",
                        body.to_string(),
                    );
                    judged(&own, &second.origin, asked).await
                };
                let address = json!(format!("10.9.{round}.{number}"));
                let moved = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "ipv4Address": address});
                assert_eq!(ask("update", moved).await.status, StatusCode::OK);
                let has = || bsf.held().iter().filter(|held| held[0] == address).count();
                until(|| has() == 1).await;
                assert_eq!(ask("delete", json!({})).await.status, StatusCode::NO_CONTENT);
                until(|| has() == 0).await;
            }
            // What is left was registered at the moment of the kill, and its URI never reached the store.
            let held = bsf.held();
            assert!(
                held.iter()
                    .all(|held| held[0].as_str().unwrap().starts_with("10.8.")),
                "{held:?}"
            );
            bsf.bindings.borrow_mut().clear();
        }
    });
}
