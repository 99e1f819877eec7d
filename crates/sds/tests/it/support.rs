//! A running SDS on a free port, and a client of it.

use std::path::Path;
use std::time::Duration;

use http::Method;
use sbi::client::{Client, Origin, SendOptions};
use sds::{Config, Running};
use serde_json::{Value, json};
use testpeer::sbi::request;
pub use testpeer::{local, until};

/// An SDS and a client of it.
pub struct Sds {
    pub running: Running,
    pub api: Api,
    pub directory: tempfile::TempDir,
}

/// The SDS as its clients use it.
#[derive(Clone)]
pub struct Api {
    client: Client,
    pub origin: Origin,
}

/// An answer with its text.
pub struct Got {
    pub answer: testpeer::sbi::Got,
    pub text: String,
}

impl Got {
    pub fn status(&self) -> u16 {
        self.answer.status.as_u16()
    }

    pub fn json(&self) -> &Value {
        &self.answer.json
    }

    pub fn detail(&self) -> &str {
        self.json()["detail"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.answer.header(name)
    }

    pub fn number(&self, header: &str) -> u64 {
        self.header(header).parse().unwrap()
    }

    /// The offset of what was written.
    pub fn offset(&self) -> u64 {
        assert_eq!(self.status(), 200, "{}", self.text);
        self.json()["offset"].as_u64().unwrap()
    }

    /// The lines of the body, each as JSON.
    pub fn lines(&self) -> Vec<Value> {
        assert_eq!(self.status(), 200, "{}", self.text);
        let lines = self.text.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub fn config(directory: &Path) -> Config {
    let mut config = Config {
        listen: settings::Listen(vec!["127.0.0.1:0".parse().unwrap()]),
        admin: "127.0.0.1:0".parse().unwrap(),
        workers: 2,
        directory: directory.to_owned(),
        ..Config::default()
    };
    config.store.embedded.directory = directory.join("journal");
    // Beside a busy compiler requests wait for as long as they do under overload.
    config.overload.enabled = false;
    config
}

/// Starts an SDS whose configuration `change` may change.
pub fn start(change: impl FnOnce(&mut Config)) -> Sds {
    start_in(tempfile::tempdir().unwrap(), change)
}

/// As [`start`], in a directory that may have records.
pub fn start_in(directory: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> Sds {
    let mut config = config(directory.path());
    change(&mut config);
    let running = sds::start(config).unwrap();
    let api = Api::of(&running);
    Sds {
        running,
        api,
        directory,
    }
}

impl Sds {
    /// Stops it; its directory stays.
    pub fn stop(self) -> tempfile::TempDir {
        self.running.stop().unwrap();
        self.directory
    }
}

impl Api {
    pub fn new(origin: Origin) -> Self {
        Self {
            client: testpeer::sbi::client("DP-test"),
            origin,
        }
    }

    pub fn of(running: &Running) -> Self {
        Self::new(format!("http://{}", running.addresses()[0]).parse().unwrap())
    }

    /// Sends a request; none where it has no answer.
    pub async fn try_ask(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: impl Into<sbi::Body>,
    ) -> Option<Got> {
        let options = SendOptions {
            deadline: Duration::from_secs(100),
            ..SendOptions::default()
        };
        let request = request(method, path, kind, body);
        let response = self.client.send(&self.origin, request, options).await.ok()?;
        let text = String::from_utf8(response.body().to_bytes().to_vec()).unwrap();
        Some(Got {
            answer: response.into(),
            text,
        })
    }

    pub async fn ask(&self, method: Method, path: &str, kind: &str, body: impl Into<sbi::Body>) -> Got {
        self.try_ask(method, path, kind, body).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, path, "", "").await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Got {
        self.ask(Method::PUT, path, "application/json", body.to_string())
            .await
    }

    pub async fn delete(&self, path: &str) -> Got {
        self.ask(Method::DELETE, path, "", "").await
    }

    /// Writes a transaction.
    pub async fn write(&self, changes: &Value) -> Got {
        self.ask(
            Method::POST,
            "/transactions",
            "application/json",
            changes.to_string(),
        )
        .await
    }

    pub async fn post(&self, path: &str, kind: &str, body: impl Into<sbi::Body>) -> Got {
        self.ask(Method::POST, path, kind, body).await
    }

    /// The destinations of a record; none where it is not known.
    pub async fn find(&self, subject: &str) -> Option<String> {
        let got = self.get(&format!("/subscribers/{subject}")).await;
        match got.status() {
            404 => None,
            200 => Some(got.json()["destinations"].as_str().unwrap().to_owned()),
            _ => panic!("{}", got.text),
        }
    }

    /// The transactions behind an offset.
    pub async fn journal(&self, after: u64) -> Vec<Value> {
        self.get(&format!("/journal?after={after}&limit=10000"))
            .await
            .lines()
    }
}

/// An IMSI of the tests.
pub fn imsi(number: u64) -> String {
    format!("00101{number:010}")
}

/// A change that sets an IMSI.
pub fn set(number: u64, destinations: &str) -> Value {
    json!({"imsi": imsi(number), "destinations": destinations})
}
