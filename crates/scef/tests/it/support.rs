//! A running SCEF on free ports, and an SCS/AS.

use std::path::Path;
use std::time::Duration;

use http::Method;
use sbi::client::{Client, Origin, SendOptions};
use scef::{Config, Event, Running};
use serde_json::{Value, json};
use testpeer::sbi::{Got, Seen, Server, no_content, request};
pub use testpeer::{local, until};

use crate::judge;
use crate::network::Node;

/// The identity of the device.
pub const DEVICE: &str = "meter-7@iot.example.org";
/// Its IMSI.
pub const IMSI: &str = "001010000000007";

/// The number of the SCEF as sender of triggers.
pub const SME: &str = "4366012";

/// A SCEF and a client of it.
pub struct Scef {
    pub running: Running,
    pub api: Api,
    _directory: tempfile::TempDir,
}

/// T8 as an SCS/AS uses it.
pub struct Api {
    pub client: Client,
    pub origin: Origin,
}

pub fn config(directory: &Path) -> Config {
    let free = || settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]);
    let mut config = Config {
        listen: free(),
        workers: 2,
        ..Config::default()
    };
    config.diameter.listen = free();
    // Beside a busy compiler requests wait for as long as they do under overload.
    config.overload.enabled = false;
    config.store.embedded.directory = directory.to_owned();
    config.notifications.retry_pause = settings::Period::from_millis(50);
    config.nidd.retry_pause = settings::Period::from_millis(100);
    config.triggering.sme_address = SME.to_owned();
    config
}

/// Starts a SCEF whose configuration `change` may change.
pub fn start(change: impl FnOnce(&mut Config)) -> Scef {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    change(&mut config);
    let running = scef::start(config).unwrap();
    let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
    Scef {
        running,
        api: Api::new(origin),
        _directory: directory,
    }
}

impl Scef {
    pub fn diameter(&self) -> std::net::SocketAddr {
        self.running.diameter_addresses()[0]
    }

    /// Waits until something has happened this often.
    pub async fn counted(&self, event: Event, times: u64) {
        until(event.metric(), async || self.running.count(event) >= times).await;
    }

    pub fn stop(self) {
        self.running.stop().unwrap();
    }
}

impl Api {
    pub fn new(origin: Origin) -> Self {
        Self {
            client: testpeer::sbi::client("AS-test"),
            origin,
        }
    }

    pub async fn ask(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Got {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        // A foreign HSS beside a compiler takes its time.
        let options = SendOptions {
            deadline: Duration::from_secs(60),
            ..SendOptions::default()
        };
        let request = request(method, path, content_type, body);
        let response = self.client.send(&self.origin, request, options).await;
        let got = Got::from(response.unwrap());
        if got.header("content-type") == "application/problem+json" {
            judge::problem(&got.json);
        }
        got
    }

    pub async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, path, "", &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: impl std::borrow::Borrow<Value>) -> Got {
        self.ask(Method::POST, path, "application/json", body.borrow())
            .await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Got {
        self.ask(Method::PUT, path, "application/json", body).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Got {
        self.ask(Method::PATCH, path, "application/merge-patch+json", body)
            .await
    }

    pub async fn delete(&self, path: &str) -> Got {
        self.ask(Method::DELETE, path, "", &Value::Null).await
    }
}

pub const SUBSCRIPTIONS: &str = "/3gpp-monitoring-event/v1/as1/subscriptions";
pub const CONFIGURATIONS: &str = "/3gpp-nidd/v1/as1/configurations";
pub const TRIGGERS: &str = "/3gpp-device-triggering/v1/as1/transactions";

/// The path of what was created.
pub fn path_of(got: &Got) -> String {
    assert_eq!(got.status, 201, "{}", got.json);
    assert_eq!(got.json["self"], got.header("location"));
    let uri: http::Uri = got.header("location").parse().unwrap();
    uri.path().to_owned()
}

/// A `MonitoringEventSubscription` with other members.
pub fn subscription(target: &str, more: &Value) -> Value {
    with(
        json!({"externalId": DEVICE, "notificationDestination": target, "monitoringType": "LOSS_OF_CONNECTIVITY",
            "maximumNumberOfReports": 2, "vendorExtra": {"kept": [1, null]}}),
        more,
    )
}

/// A `NiddConfiguration` with other members.
pub fn configuration(target: &str, more: &Value) -> Value {
    with(
        json!({"externalId": DEVICE, "notificationDestination": target}),
        more,
    )
}

/// A configuration for the device; the path of its data.
pub async fn configured(scef: &Scef, hss: &mut Node, target: &str, more: &Value) -> (Got, String) {
    let body = configuration(target, more);
    let (got, _) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), hss.authorize());
    let path = path_of(&got);
    judge::nidd("NiddConfiguration", &got.json);
    (got, format!("{path}/downlink-data-deliveries"))
}

/// A `NiddDownlinkDataTransfer` with other members.
pub fn data(text: &str, more: &Value) -> Value {
    with(json!({"externalId": DEVICE, "data": text}), more)
}

/// A `DeviceTriggering` with other members.
pub fn trigger(target: &str, more: &Value) -> Value {
    with(
        json!({"externalId": DEVICE, "notificationDestination": target, "validityPeriod": 600, "priority": "PRIORITY",
            "applicationPortId": 40_000, "triggerPayload": "d2FrZQ==", "vendorExtra": {"kept": [1, null]}}),
        more,
    )
}

fn with(mut body: Value, more: &Value) -> Value {
    for (name, member) in more.as_object().unwrap() {
        body[name] = member.clone();
    }
    body
}

/// A `DateTime` some seconds from now: a test on a busy machine uses it before it is over.
pub fn soon() -> String {
    let soon = time::OffsetDateTime::now_utc() + Duration::from_secs(10);
    let format = &time::format_description::well_known::Rfc3339;
    soon.format(format).unwrap()
}

/// An SCS/AS that accepts each notification.
pub fn server() -> Server {
    Server::start(|_| no_content())
}

/// Waits for this many notifications.
pub async fn notified(server: &Server, count: usize) -> Vec<Value> {
    until("notifications", async || server.count() >= count).await;
    server.seen().iter().map(Seen::json).collect()
}
