//! Two NRFs of a set on one real MariaDB, or on two that replicate to one another.

mod faults;
mod growing;
mod sharing;
mod sites;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use nrf::{Config, Running};
use sbi::client::{Client, Origin};
use serde_json::{Value, json};
use settings::Period;
use testpeer::sbi::{Got, Server, client, no_content, request, send};

use crate::databases::Servers;
use crate::support::{config, id, profile};

const JSON: &str = "application/json";
const PATCH: &str = "application/json-patch+json";

/// One of these tests at a time: each starts a database and makes two NRFs work.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a state that is reached in seconds, and on a very busy machine later.
async fn eventually(condition: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..6_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not reached within a minute: {condition}");
}

/// An NRF that others share the database with, as a consumer sees it.
struct Member {
    origin: Origin,
    client: Client,
}

impl Member {
    async fn ask(&self, method: Method, path: &str, kind: &str, body: String) -> Got {
        send(&self.client, &self.origin, request(method, path, kind, body))
            .await
            .unwrap()
    }

    async fn put(&self, profile: &Value) -> StatusCode {
        let path = path_of(profile["nfInstanceId"].as_str().unwrap());
        self.ask(Method::PUT, &path, JSON, profile.to_string())
            .await
            .status
    }

    async fn patch(&self, id: &str, patch: Value) -> StatusCode {
        self.ask(Method::PATCH, &path_of(id), PATCH, patch.to_string())
            .await
            .status
    }

    async fn delete(&self, path: &str) -> StatusCode {
        self.ask(Method::DELETE, path, "", String::new()).await.status
    }

    async fn get(&self, id: &str) -> Got {
        self.ask(Method::GET, &path_of(id), "", String::new()).await
    }

    /// The ids that a discovery of UDMs finds.
    async fn found(&self) -> Vec<String> {
        let path = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF";
        let got = self.ask(Method::GET, path, "", String::new()).await;
        let list = got.json["nfInstances"].as_array().cloned().unwrap_or_default();
        list.iter()
            .map(|one| one["nfInstanceId"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn subscribe(&self, uri: &str) -> String {
        let data =
            json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}});
        let got = self
            .ask(Method::POST, "/nnrf-nfm/v1/subscriptions", JSON, data.to_string())
            .await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        format!(
            "/nnrf-nfm/v1/subscriptions/{}",
            got.json["subscriptionId"].as_str().unwrap()
        )
    }
}

fn path_of(id: &str) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{id}")
}

/// Settings of a member on these servers.
fn member_config(servers: &Servers, directory: &Path, nodes: &[u16], number: u32) -> Config {
    let mut config = config(directory);
    config.nf_instance_id = id(900 + number);
    config.store = servers.config("site-1", nodes);
    config.store.embedded.directory = directory.join(number.to_string());
    config.cluster.enabled = true;
    config.cluster.poll = Period::from_millis(100);
    config.cluster.clock_skew = Period::from_millis(200);
    // A busy machine must not make a member look dead.
    config.cluster.dead_after = Period::from_secs(60);
    config
}

fn member(origin: &Origin) -> Member {
    Member {
        origin: origin.clone(),
        client: client("AMF-test"),
    }
}

/// The NRF that runs in this process.
fn member_here(running: &Running) -> Member {
    member(&format!("http://{}", running.addresses()[0]).parse().unwrap())
}

/// A subscriber; what it was sent, event and instance.
fn sink() -> (Server, String) {
    let sink = Server::start(|_| no_content());
    let uri = format!("{}/notified", sink.root());
    (sink, uri)
}

fn events(sink: &Server) -> Vec<(String, String)> {
    let each = sink.seen();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    each.iter()
        .map(|seen| {
            let body = seen.json();
            let uri = text(&body["nfInstanceUri"]);
            (text(&body["event"]), uri.rsplit('/').next().unwrap().to_owned())
        })
        .collect()
}

fn udm(number: u32) -> Value {
    profile(&id(number), "UDM", "nudm-sdm", &json!({}))
}

/// Whether an NRF takes another one for dead.
fn has_alarm(running: &Running) -> bool {
    let active = running.handle().alarms().active();
    active.iter().any(|alarm| alarm.number == 10_512)
}

/// Several polls, and the notifications that they bring.
const A_WHILE: Duration = Duration::from_millis(1_500);
