//! A running BSF on a free port and a client, inside the test's own runtime.

use bsf::{Config, Running};
use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, Origin};
use serde_json::{Value, json};
pub use testpeer::local;
pub use testpeer::sbi::{Got, request, send};

/// A BSF and a client of it.
pub struct Bsf {
    pub running: Option<Running>,
    pub origin: Origin,
    pub client: Client,
    pub directory: tempfile::TempDir,
    /// Whether answers are judged: not where a test sends what the standard does not allow and gets it back.
    pub judged: bool,
}

pub fn config(directory: &std::path::Path) -> Config {
    let listen = settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]);
    let mut config = Config {
        listen,
        workers: 1,
        ..Config::default()
    };
    config.rx.listen = settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]);
    config.store.embedded.directory = directory.to_owned();
    config
}

pub fn client() -> Client {
    testpeer::sbi::client("PCF-test")
}

/// Starts a BSF whose configuration `change` may change.
pub fn start(change: impl FnOnce(&mut Config)) -> Bsf {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    change(&mut config);
    let running = bsf::start(config).unwrap();
    let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
    Bsf {
        running: Some(running),
        origin,
        client: client(),
        directory,
        judged: true,
    }
}

impl Bsf {
    /// Sends a request; the answer is judged by the standard's own file.
    pub async fn send(&self, request: http::Request<Body>) -> Got {
        let (method, path) = (request.method().clone(), request.uri().to_string());
        let got = send(&self.client, &self.origin, request).await.unwrap();
        if self.judged || !got.status.is_success() {
            crate::judge::answer(&method, &path, got.status, &got.headers, &got.json);
        }
        got
    }

    pub async fn ask(&self, method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> Got {
        self.send(request(method, path, content_type, body)).await
    }

    pub async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, path, "", Body::empty()).await
    }

    pub async fn post(&self, resource: &str, body: &Value) -> Got {
        let path = format!("/nbsf-management/v1/{resource}");
        self.ask(Method::POST, &path, "application/json", body.to_string())
            .await
    }

    pub async fn find(&self, query: &str) -> Got {
        self.get(&format!("/nbsf-management/v1/pcfBindings?{query}"))
            .await
    }

    /// The path of a resource that was created.
    pub fn path(&self, created: &Got) -> String {
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.json);
        let location = created.headers["location"].to_str().unwrap();
        location.parse::<http::Uri>().unwrap().path().to_owned()
    }

    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().unwrap();
        }
    }
}

/// A binding with these further members; a null takes one away.
pub fn binding(more: &Value) -> Value {
    let mut value = json!({
        "supi": "imsi-001010000000001", "gpsi": "msisdn-15551234567", "ipv4Addr": "10.0.0.1", "dnn": "internet",
        "snssai": {"sst": 1, "sd": "00000a"}, "pcfFqdn": "pcf1.example.org", "pcfSmFqdn": "sm.pcf1.example.org",
        "pcfDiamHost": "pcf1.example.org", "pcfDiamRealm": "example.org",
        "pcfId": "6f1c7a52-0000-4000-8000-000000000001", "suppFeat": "7", "vendorExtra": {"kept": [1, 2.50, null]}
    });
    for (name, member) in more.as_object().unwrap() {
        match member {
            Value::Null => drop(value.as_object_mut().unwrap().shift_remove(name)),
            member => value[name] = member.clone(),
        }
    }
    value
}
