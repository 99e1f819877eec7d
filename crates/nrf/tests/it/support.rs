//! A running NRF on a free port and a client, inside the test's own runtime.

use std::future::Future;
use std::sync::Arc;

use http::{Method, StatusCode};
use nrf::{Config, Running};
use sbi::client::{Client, ClientConfig, Origin, SendOptions};
use sbi::{Body, Response};
use serde_json::{Value, json};

use crate::judge;

pub const UDM: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

/// An NRF and somebody who asks it.
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

pub fn client() -> Client {
    let config = ClientConfig {
        user_agent: "AMF-test".into(),
        ..ClientConfig::default()
    };
    Client::new(Arc::new(config), None)
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
        client: client(),
        directory,
    }
}

/// Runs a test as a worker would run a function.
pub fn local<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

/// A response, taken apart.
pub struct Got {
    pub status: StatusCode,
    pub headers: http::HeaderMap,
    pub json: Value,
}

impl Got {
    pub fn cause(&self) -> &str {
        self.json["cause"].as_str().unwrap_or_default()
    }
}

fn got(response: Response) -> Got {
    let (head, body) = response.into_parts();
    let json = serde_json::from_slice(&body.into_bytes()).unwrap_or_default();
    Got {
        status: head.status,
        headers: head.headers,
        json,
    }
}

impl Nrf {
    pub async fn send(&self, request: http::Request<Body>) -> Got {
        let (method, path) = (request.method().clone(), request.uri().to_string());
        let sent = self.client.send(&self.origin, request, SendOptions::default());
        let got = got(sent.await.unwrap());
        let content_type = got
            .headers
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        judge::answer(
            &method,
            &path,
            got.status,
            content_type.unwrap_or_default(),
            &got.json,
        );
        got
    }

    pub async fn ask(&self, method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> Got {
        let mut request = http::Request::builder().method(method).uri(path);
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        self.send(request.body(body.into()).unwrap()).await
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
