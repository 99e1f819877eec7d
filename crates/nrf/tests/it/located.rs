//! Location functions and other NRFs, each a server of its own.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use sbi::server::{self, ServerConfig, ServerStats};
use sbi::{Request, Response, Service};
use serde_json::json;

use crate::support::{id, local, profile, start};

/// A peer that answers with a function and remembers what it was asked.
struct Peer<F>(F, Rc<RefCell<Vec<String>>>);

impl<F: Fn(&Request) -> Response + 'static> Service for Peer<F> {
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static {
        self.1.borrow_mut().push(request.uri().to_string());
        std::future::ready((self.0)(&request))
    }
}

fn peer(answer: impl Fn(&Request) -> Response + 'static) -> (SocketAddr, Rc<RefCell<Vec<String>>>) {
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Rc<RefCell<Vec<String>>> = Rc::default();
    let service = Rc::new(Peer(answer, asked.clone()));
    let (config, stats) = (
        Arc::new(ServerConfig::default()),
        Arc::new(ServerStats::default()),
    );
    tokio::task::spawn_local(server::serve(
        listener,
        service,
        config,
        None,
        stats,
        worker::Shutdown::new(),
    ));
    (address, asked)
}

#[test]
fn the_group_of_a_subscriber_is_asked_for() {
    local(async {
        let (slf, asked) = peer(|request| match request.uri().query().unwrap_or_default() {
            query if query.contains("imsi-1") => sbi::json::response(StatusCode::OK, &json!({"UDM": "g2"})),
            _ => sbi::problem::Problem::new(sbi::problem::Cause::ResourceNotFound).into_response(),
        });
        let nrf = start(|config| config.slf.target_types = vec!["UDM".into()]);
        for number in [1, 2] {
            let more = json!({"udmInfo": {"groupId": format!("g{number}")}});
            nrf.put(&profile(&id(number), "UDM", "nudm-sdm", &more)).await;
        }
        let base = "target-nf-type=UDM&requester-nf-type=AMF";
        // Nobody offers the service yet: discovery goes on without a group.
        assert_eq!(nrf.found(&format!("{base}&supi=imsi-1")).await.len(), 2);
        let mut udr = profile(&id(9), "UDR", "nudr-group-id-map", &json!({}));
        udr["nfServices"][0]["ipEndPoints"][0]["port"] = json!(slf.port());
        nrf.put(&udr).await;
        assert_eq!(nrf.found(&format!("{base}&supi=imsi-1")).await, [id(2)]);
        assert_eq!(
            nrf.found(&format!("{base}&supi=imsi-7")).await,
            Vec::<String>::new()
        );
        assert_eq!(
            nrf.found(&format!("{base}&supi=imsi-1&group-id-list=g1")).await,
            [id(1)]
        );
        let asked = asked.borrow();
        assert_eq!(asked.len(), 2, "a query that names groups asks nobody: {asked:?}");
        assert!(asked[0].ends_with("/nudr-group-id-map/v1/nf-group-ids?nf-type=UDM&subscriberId=imsi-1"));
    });
}

#[test]
fn a_dead_location_function_is_passed_over() {
    local(async {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = gone.local_addr().unwrap();
        drop(gone);
        let (slf, _) = peer(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec![format!("http://{dead}"), format!("http://{slf}")];
        });
        nrf.put(&profile(
            &id(1),
            "UDM",
            "nudm-sdm",
            &json!({"udmInfo": {"groupId": "g1"}}),
        ))
        .await;
        nrf.put(&profile(
            &id(2),
            "UDM",
            "nudm-sdm",
            &json!({"udmInfo": {"groupId": "g2"}}),
        ))
        .await;
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
        assert_eq!(nrf.found(query).await, [id(1)]);
    });
}

#[test]
fn what_is_not_here_is_asked_of_another_nrf_but_not_in_circles() {
    local(async {
        let far = start(|_| {});
        far.put(&profile(&id(5), "UDM", "nudm-sdm", &json!({}))).await;
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                nf_types: vec!["UDM".into()],
                targets: vec![far.origin.to_string()],
                when_empty: true,
                ..Default::default()
            }];
        });
        let query = "target-nf-type=UDM&requester-nf-type=AMF";
        assert_eq!(near.found(query).await, [id(5)]);
        near.put(&profile(&id(6), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(near.found(query).await, [id(6)]);
        assert!(
            near.found("target-nf-type=UDR&requester-nf-type=AMF")
                .await
                .is_empty()
        );

        // Two that forward to one another answer, instead of asking for ever.
        let (turn, _) =
            peer(|_| sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 1, "nfInstances": []})));
        let circle = start(|config| {
            config.nf_instance_id = id(77);
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                targets: vec![format!("http://{turn}")],
                ..Default::default()
            }];
        });
        let been = http::Request::get(format!("/nnrf-disc/v1/nf-instances?{query}"))
            .header("via", format!("2.0 NRF-{}", id(77)))
            .body(sbi::Body::empty())
            .unwrap();
        assert_eq!(
            circle.send(been).await.json["validityPeriod"],
            60,
            "answered here"
        );
    });
}

#[test]
fn location_queries_name_the_subscriber_and_pass_over_a_sick_scp() {
    local(async {
        let (sick, sick_asked) =
            peer(|_| sbi::problem::Problem::new(sbi::problem::Cause::NfCongestion).into_response());
        let (well, well_asked) = peer(|request| {
            if request.uri().path() == "/health" {
                return Response::default();
            }
            assert_eq!(request.headers()["3gpp-sbi-correlation-info"], "imsi-1");
            assert_eq!(
                request.headers()["3gpp-sbi-target-apiroot"],
                "http://udr.example:80"
            );
            sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"}))
        });
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec!["http://udr.example:80".into()];
            config.slf.scps = vec![format!("http://{sick}"), format!("http://{well}")];
            config.slf.scp_health_path = "/health".into();
            config.slf.scp_health_interval = settings::Period::from_millis(20);
            config.slf.max_attempts = 1;
        });
        let more = json!({"udmInfo": {"groupId": "g1"}});
        nrf.put(&profile(&id(1), "UDM", "nudm-sdm", &more)).await;
        while well_asked.borrow().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        for _ in 0..5 {
            let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
            assert_eq!(nrf.found(query).await, [id(1)]);
        }
        assert!(
            sick_asked.borrow().iter().all(|path| path.ends_with("/health")),
            "{sick_asked:?}"
        );
    });
}

#[test]
fn tokens_and_subscriptions_are_forwarded_by_rule() {
    use nrf::config::ForwardedOperation::{AccessToken, Subscription};
    local(async {
        let far = start(|_| {});
        far.put(&profile(&id(5), "UDM", "nudm-sdm", &json!({}))).await;
        far.put(&profile(&id(6), "AMF", "namf-comm", &json!({}))).await;
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                nf_types: vec!["UDM".into()],
                operations: vec![AccessToken, Subscription],
                targets: vec![far.origin.to_string()],
                when_empty: true,
                ..Default::default()
            }];
        });
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm",
            id(6)
        );
        let ask = |body: String| {
            near.ask(
                http::Method::POST,
                "/oauth2/token",
                "application/x-www-form-urlencoded",
                body,
            )
        };
        let token = ask(form.clone()).await;
        assert_eq!(token.status, StatusCode::OK, "{}", token.json);
        assert!(token.json["access_token"].is_string());
        let refused = ask(form.replace("UDM", "SMF")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);

        let wanted = |nf_type: &str| {
            json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": {"nfType": nf_type}})
                .to_string()
        };
        let path = "/nnrf-nfm/v1/subscriptions";
        let there = near
            .ask(http::Method::POST, path, "application/json", wanted("UDM"))
            .await;
        assert_eq!(there.status, StatusCode::CREATED, "{}", there.json);
        let location = there.headers["location"].to_str().unwrap();
        assert!(location.starts_with(&far.origin.to_string()), "{location}");
        let here = near
            .ask(http::Method::POST, path, "application/json", wanted("SMF"))
            .await;
        assert!(
            here.headers["location"]
                .to_str()
                .unwrap()
                .starts_with(&near.origin.to_string())
        );
    });
}
