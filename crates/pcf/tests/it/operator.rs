//! A server of an operator: Node.js, which speaks HTTP/1.1 by its own library.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tls::TlsFiles;

/// The server; it ends with its standard input.
pub struct Operator {
    child: Child,
    pub port: u16,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Operator {
    /// Starts one, with TLS where it has files; none where Node.js is missing.
    pub fn start(files: Option<&TlsFiles>) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/peers/operator.js");
        let mut command = Command::new("node");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(files) = files {
            let authorities = files.authorities.as_ref().unwrap();
            command.args([&files.certificate, &files.key, authorities]);
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                testpeer::skip::missing("node");
                return None;
            }
            Err(error) => panic!("cannot start {command:?}: {error}"),
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let found = seen.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                found.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Some(Self { child, port, seen })
    }

    /// Its URL with a path, which says how it answers: `/ok`, `/fail`, `/later`, `/refuse`, `/hang`, `/break`, `/long`, `/elsewhere`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests, as soon as there are this many.
    pub async fn have(&self, count: usize) -> Vec<Value> {
        while self.seen().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.seen()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
