//! Subscriptions, and what is told to whom.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use sbi::server::{self, ServerConfig, ServerStats};
use sbi::{Request, Response, Service};
use serde_json::{Value, json};

use crate::judge;
use crate::support::{Nrf, UDM, local, profile, start};

/// A subscriber that keeps what it is told and may fail first.
struct Sink {
    told: RefCell<Vec<Value>>,
    failures: RefCell<u32>,
}

impl Service for Sink {
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static {
        assert_eq!(
            request.headers()["3gpp-sbi-callback"],
            "Nnrf_NFManagement_NFStatusNotify"
        );
        let mut response = Response::default();
        let mut failures = self.failures.borrow_mut();
        *response.status_mut() = if *failures > 0 {
            *failures -= 1;
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            let told: Value = serde_json::from_slice(&request.body.to_bytes()).unwrap();
            judge::notification(&told);
            self.told.borrow_mut().push(told);
            StatusCode::NO_CONTENT
        };
        std::future::ready(response)
    }
}

fn sink(failures: u32) -> (Rc<Sink>, String) {
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let uri = format!("http://{}/told", listener.local_addr().unwrap());
    let sink = Rc::new(Sink {
        told: RefCell::default(),
        failures: RefCell::new(failures),
    });
    let (config, stats) = (
        Arc::new(ServerConfig::default()),
        Arc::new(ServerStats::default()),
    );
    tokio::task::spawn_local(server::serve(
        listener,
        sink.clone(),
        config,
        None,
        stats,
        worker::Shutdown::new(),
    ));
    (sink, uri)
}

async fn told(sink: &Sink, count: usize) -> Vec<Value> {
    for _ in 0..400 {
        if sink.told.borrow().len() >= count {
            return sink.told.borrow().clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("only {} of {count} came", sink.told.borrow().len());
}

async fn subscribe(nrf: &Nrf, data: Value) -> (StatusCode, Value, String) {
    let got = nrf
        .ask(
            Method::POST,
            "/nnrf-nfm/v1/subscriptions",
            "application/json",
            data.to_string(),
        )
        .await;
    let location = got
        .headers
        .get("location")
        .map(|l| l.to_str().unwrap().to_owned())
        .unwrap_or_default();
    (got.status, got.json, location)
}

#[test]
fn a_life_is_told_in_order_and_again_when_it_fails() {
    local(async {
        let nrf = start(|config| config.subscriptions.retry_pause = settings::Period::from_millis(5));
        let (sink, uri) = sink(2);
        let (status, body, location) = subscribe(
            &nrf,
            json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}}),
        )
        .await;
        assert_eq!(status, StatusCode::CREATED);
        assert!(location.ends_with(body["subscriptionId"].as_str().unwrap()));
        assert!(body["validityTime"].as_str().unwrap().ends_with('Z'));
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        nrf.patch(UDM, json!([{"op": "add", "path": "/priority", "value": 2}]))
            .await;
        nrf.ask(
            Method::DELETE,
            &format!("/nnrf-nfm/v1/nf-instances/{UDM}"),
            "",
            "",
        )
        .await;
        let events: Vec<String> = told(&sink, 3)
            .await
            .iter()
            .map(|one| one["event"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(events, ["NF_REGISTERED", "NF_PROFILE_CHANGED", "NF_DEREGISTERED"]);
    });
}

#[test]
fn subscriptions_are_limited_extended_and_ended() {
    local(async {
        let nrf = start(|config| config.subscriptions.max = 1);
        let (_, uri) = sink(0);
        let wanted = json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF", "validityTime": "2020-01-01T00:00:00Z"});
        let (_, _, location) = subscribe(&nrf, wanted.clone()).await;
        assert_eq!(subscribe(&nrf, wanted).await.0, StatusCode::INTERNAL_SERVER_ERROR);
        let path = location.strip_prefix(&nrf.origin.to_string()).unwrap().to_owned();
        let patch = json!([{"op": "replace", "path": "/validityTime", "value": "2999-01-01T00:00:00Z"}]);
        let extended = nrf
            .ask(
                Method::PATCH,
                &path,
                "application/json-patch+json",
                patch.to_string(),
            )
            .await;
        assert_eq!(extended.status, StatusCode::OK, "{}", extended.json);
        assert!(
            !extended.json["validityTime"]
                .as_str()
                .unwrap()
                .starts_with("2999"),
            "bounded by the NRF"
        );
        assert_eq!(
            nrf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NO_CONTENT
        );
        let gone = nrf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(
            (gone.status, gone.cause()),
            (StatusCode::NOT_FOUND, "SUBSCRIPTION_NOT_FOUND")
        );
    });
}
