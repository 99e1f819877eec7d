//! Users of a console in a test, and what a browser of one sends.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use console::config::Config;
use console::users::{self, Role, User, UserFile};
use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Stand, config};

pub const PASSWORD: &str = "correct horse battery";

/// Adds a user to a console with this directory.
pub fn add(directory: &Path, name: &str, roles: &[Role]) {
    let user = User::new(name, roles.iter().copied().collect(), PASSWORD).unwrap();
    let added = UserFile::change(&users::path(directory), |file| {
        file.users.push(user);
        Ok(())
    });
    added.unwrap();
}

/// A console with these users; each has the roles beside its name.
pub fn with_users(stands: &[&Stand], directory: &Path, all: &[(&str, &[Role])]) -> console::Running {
    for (name, roles) in all {
        add(directory, name, roles);
    }
    console::start(Config {
        directory: Some(directory.to_owned()),
        ..config(stands)
    })
    .unwrap()
}

/// The lines of the audit log.
pub fn audit(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("audit.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn has_line(directory: &Path, user: &str, what: &str, about: &str) -> bool {
    let is_it = |line: &Value| {
        line["user"] == user && line["what"] == what && line["about"].as_str().unwrap().contains(about)
    };
    audit(directory).iter().any(is_it)
}

/// A browser: where it connects, by which name, over TLS or not, and what it has been given.
#[derive(Clone)]
pub struct Visitor {
    at: SocketAddr,
    pub host: String,
    tls: Option<Arc<ClientConfig>>,
    pub cookie: String,
    pub token: String,
}

/// An answer: status, head in lower case, body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The value of a header, as it came but in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines();
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }
}

impl Visitor {
    pub fn new(console: &console::Running) -> Self {
        let at = console.addresses()[0];
        Self {
            at,
            host: at.to_string(),
            tls: None,
            cookie: String::new(),
            token: String::new(),
        }
    }

    /// One over TLS at loopback, who knows the console by this name.
    pub fn over_tls(console: &console::Running, host: &str, tls: Arc<ClientConfig>) -> Self {
        let at = SocketAddr::from(([127, 0, 0, 1], console.addresses()[0].port()));
        Self {
            host: format!("{host}:{}", at.port()),
            at,
            tls: Some(tls),
            ..Self::new(console)
        }
    }

    /// Signs in with the password of all users here.
    pub fn signed_in(mut self, name: &str) -> Self {
        let answer = self.sign_in(name, PASSWORD);
        assert_eq!(answer.status, 204, "{}", answer.body);
        self.take_cookie(&answer);
        self.token = self.get("/api/v1/session").json()["token"]
            .as_str()
            .unwrap()
            .to_owned();
        self
    }

    pub fn sign_in(&self, name: &str, password: &str) -> Answer {
        let form = json!({"name": name, "password": password}).to_string();
        self.send("POST", "/api/v1/session", &[&self.origin()], &form)
    }

    pub fn take_cookie(&mut self, answer: &Answer) {
        let set = answer.header("set-cookie").unwrap();
        let (value, _) = set.split_once(';').unwrap();
        // Names of cookies have a case.
        self.cookie = value.replace("__host-", "__Host-");
    }

    pub fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("Origin: {scheme}://{}", self.host)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// A change as a page of the console makes it.
    pub fn change(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send(
            method,
            path,
            &[&self.origin(), &format!("X-Signalbox-Token: {}", self.token)],
            body,
        )
    }

    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.host
        );
        if !self.cookie.is_empty() {
            head.push_str(&format!("Cookie: {}\r\n", self.cookie));
        }
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        if method != "GET" {
            head.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            ));
        }
        let body = if method == "GET" { "" } else { body };
        let text = self.exchange(&format!("{head}\r\n{body}"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = String::new();
        match &self.tls {
            None => {
                stream.write_all(request.as_bytes()).unwrap();
                stream.read_to_string(&mut text).unwrap();
            }
            Some(tls) => {
                let (name, _) = self.host.rsplit_once(':').unwrap();
                let name = rustls_pki_types::ServerName::try_from(name.to_owned()).unwrap();
                let client = rustls::ClientConnection::new(tls.clone(), name).unwrap();
                let mut stream = rustls::StreamOwned::new(client, stream);
                stream.write_all(request.as_bytes()).unwrap();
                // The end may come without a message of TLS.
                let mut octets = Vec::new();
                let _ = stream.read_to_end(&mut octets);
                text = String::from_utf8(octets).unwrap();
            }
        }
        text
    }
}

/// A stream of a visitor.
pub fn stream(console: &console::Running, visitor: &Visitor) -> TcpStream {
    let mut stream = TcpStream::connect(console.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
        visitor.host, visitor.cookie
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}
