//! A running NRF on a free port and a client, inside the test's own runtime.

use http::{Method, StatusCode};
use nrf::{Config, Running};
use sbi::Body;
use sbi::client::{Client, Origin};
use serde_json::{Value, json};
pub use testpeer::local;
pub use testpeer::sbi::Got;
use testpeer::sbi::{client, request, send};

use crate::judge;

pub const UDM: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

/// An NRF and a client of it.
pub struct Nrf {
    pub running: Option<Running>,
    pub origin: Origin,
    pub client: Client,
    pub directory: tempfile::TempDir,
}

pub fn config(directory: &std::path::Path) -> Config {
    let listen = settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]);
    let mut config = Config {
        listen,
        workers: 1,
        ..Config::default()
    };
    config.store.embedded.directory = directory.to_owned();
    config
}

/// Starts an NRF whose configuration `change` may change.
pub fn start(change: impl FnOnce(&mut Config)) -> Nrf {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    change(&mut config);
    let running = nrf::start(config).unwrap();
    let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
    Nrf {
        running: Some(running),
        origin,
        client: client("AMF-test"),
        directory,
    }
}

impl Nrf {
    pub async fn send(&self, request: http::Request<Body>) -> Got {
        let (method, path) = (request.method().clone(), request.uri().to_string());
        let got = send(&self.client, &self.origin, request).await.unwrap();
        // A packed body is the same JSON, which the client does not unpack.
        if !got.headers.contains_key("content-encoding") {
            judge::answer(&method, &path, got.status, got.header("content-type"), &got.json);
        }
        got
    }

    pub async fn ask(&self, method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> Got {
        self.send(request(method, path, content_type, body)).await
    }

    pub async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, path, "", Body::empty()).await
    }

    pub async fn put(&self, profile: &Value) -> Got {
        let path = format!(
            "/nnrf-nfm/v1/nf-instances/{}",
            profile["nfInstanceId"].as_str().unwrap()
        );
        self.ask(Method::PUT, &path, "application/json", profile.to_string())
            .await
    }

    pub async fn patch(&self, id: &str, patch: Value) -> Got {
        let path = format!("/nnrf-nfm/v1/nf-instances/{id}");
        self.ask(
            Method::PATCH,
            &path,
            "application/json-patch+json",
            patch.to_string(),
        )
        .await
    }

    /// Asks that a subscription lasts for centuries.
    pub async fn extend(&self, subscription: &str) -> Got {
        let patch = json!([{"op": "replace", "path": "/validityTime", "value": "2999-01-01T00:00:00Z"}]);
        let kind = "application/json-patch+json";
        self.ask(Method::PATCH, subscription, kind, patch.to_string())
            .await
    }

    pub async fn discover(&self, query: &str) -> Got {
        self.get(&format!("/nnrf-disc/v1/nf-instances?{query}")).await
    }

    /// The instance ids of a discovery's answer, in order.
    pub async fn found(&self, query: &str) -> Vec<String> {
        let got = self.discover(query).await;
        assert_eq!(got.status, StatusCode::OK, "{query}: {}", got.json);
        let list = got.json["nfInstances"].as_array().unwrap();
        list.iter()
            .map(|one| one["nfInstanceId"].as_str().unwrap().to_owned())
            .collect()
    }

    /// A page of its admin endpoint: status and body.
    pub async fn page(&self, path: &str) -> (u16, String) {
        let running = self.running.as_ref().unwrap();
        testpeer::page(running.handle().routes(), path).await
    }

    /// A page that is JSON.
    pub async fn shown(&self, path: &str) -> Value {
        let (status, body) = self.page(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().unwrap();
        }
    }
}

/// An instance id with this number at its end.
pub fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// A profile with one service.
pub fn profile(id: &str, nf_type: &str, service: &str, more: &Value) -> Value {
    let mut profile = json!({
        "nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"],
        "heartBeatTimer": 30, "vendorExtra": {"kept": [1, 2.50, null]},
        "nfServices": [{
            "serviceInstanceId": "s1", "serviceName": service, "scheme": "http", "nfServiceStatus": "REGISTERED",
            "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}],
            "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": 8080}]
        }]
    });
    for (name, value) in more.as_object().unwrap() {
        profile[name] = value.clone();
    }
    profile
}

/// Waits until a condition holds; the NRF uses its real clocks here.
pub async fn until(so: impl AsyncFn() -> bool) {
    for _ in 0..400 {
        if so().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("it never came to that");
}
