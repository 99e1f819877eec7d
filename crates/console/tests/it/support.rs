//! Admin endpoints that a test can make hang, end and start again, and requests to the console.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::config::{Config, Target};
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is the case.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a stand-in answers.
#[derive(Default)]
struct Pages {
    texts: Mutex<BTreeMap<String, String>>,
    asked: Mutex<Vec<String>>,
    /// Requests are read and not answered.
    hangs: AtomicBool,
    hanging: AtomicUsize,
    ends: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// The admin endpoint of a function that does not exist.
pub struct Stand {
    pub name: String,
    pub address: SocketAddr,
    pages: Arc<Pages>,
    thread: Option<JoinHandle<()>>,
}

impl Stand {
    /// A function that serves.
    pub fn start(name: &str) -> Self {
        let mut stand = Self {
            name: name.to_owned(),
            address: free_ports::address().unwrap(),
            pages: Arc::default(),
            thread: None,
        };
        stand.says(json!({}));
        stand.set("/journal", &json!([]));
        stand.begin();
        stand
    }

    /// Listens, again after [`Stand::end`].
    pub fn begin(&mut self) {
        let mut bound = None;
        until("the port to be free", || {
            bound = TcpListener::bind(self.address).ok();
            bound.is_some()
        });
        let listener = bound.unwrap();
        self.pages.ends.store(false, Ordering::SeqCst);
        let pages = self.pages.clone();
        self.thread = Some(std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if pages.ends.load(Ordering::SeqCst) {
                    break;
                }
                pages.open.lock().unwrap().push(stream.try_clone().unwrap());
                let pages = pages.clone();
                std::thread::spawn(move || pages.serve(stream));
            }
        }));
    }

    /// Ends as a killed process does: connections break, and nothing listens.
    pub fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.pages.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        thread.join().unwrap();
        for stream in self.pages.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn hangs(&self, hangs: bool) {
        self.pages.hangs.store(hangs, Ordering::SeqCst);
    }

    /// Requests that were read and not answered.
    pub fn hanging(&self) -> usize {
        self.pages.hanging.load(Ordering::SeqCst)
    }

    /// Changes members of `/status`.
    pub fn says(&self, members: Value) {
        let mut status = json!({
            "function": self.name, "state": "serves", "alive": true, "ready": true, "wrong": [],
            "version": "1.2.3", "process": 7, "upSince": "2026-11-28T01:02:03.4Z", "registered": null,
            "dependencies": [], "configuration": {"file": "c.yaml", "inEffect": true, "detail": ""}, "alarms": [],
        });
        let object = status.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        self.set("/status", &status);
    }

    pub fn set(&self, path: &str, page: &Value) {
        self.set_text(path, &page.to_string());
    }

    pub fn set_text(&self, path: &str, text: &str) {
        self.pages
            .texts
            .lock()
            .unwrap()
            .insert(path.to_owned(), text.to_owned());
    }

    /// The first lines of all requests.
    pub fn asked(&self) -> Vec<String> {
        self.pages.asked.lock().unwrap().clone()
    }

    /// The first lines of the requests that change something.
    pub fn changes(&self) -> Vec<String> {
        let mut lines = self.asked();
        lines.retain(|line| !line.starts_with("GET "));
        lines
    }

    pub fn followed(&self) -> Target {
        Target {
            name: self.name.clone(),
            admin: self.address,
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.end();
    }
}

impl Pages {
    fn serve(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap())
            .lines()
            .map_while(Result::ok);
        while let Some(first) = lines.next() {
            lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
            self.asked.lock().unwrap().push(first.clone());
            if self.hangs.load(Ordering::SeqCst) {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                // Until the console gives up.
                let _ = stream.read(&mut [0]);
                return;
            }
            let target = first.split(' ').nth(1).unwrap_or_default();
            let texts = self.texts.lock().unwrap();
            let path = target.split('?').next().unwrap_or_default();
            let found = texts.get(target).or_else(|| texts.get(path)).cloned();
            drop(texts);
            let (status, text) = found.map_or(("404 Not Found", "nothing here".to_owned()), |text| {
                ("200 OK", text)
            });
            let length = text.len();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{text}");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// A console that follows these.
pub fn console(stands: &[&Stand]) -> console::Running {
    console::start(config(stands)).unwrap()
}

/// Its settings.
pub fn config(stands: &[&Stand]) -> Config {
    Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        functions: stands.iter().map(|stand| stand.followed()).collect(),
        ..Config::default()
    }
}

/// What a page of the console adds to a request that changes something, where there are no users.
pub fn own_headers(console: &console::Running) -> String {
    let at = console.addresses()[0];
    let session: Value = serde_json::from_str(&get(console, "/api/v1/session").1).unwrap();
    let token = session["token"].as_str().unwrap();
    format!("Origin: http://{at}\r\nX-Signalbox-Token: {token}")
}

/// The answer to a request: status, head and body.
pub fn request(address: SocketAddr, head: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

/// A page of the console.
pub fn get(console: &console::Running, path: &str) -> (u16, String) {
    let address = console.addresses()[0];
    let (status, _, body) = request(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}"));
    (status, body)
}

pub fn summary(console: &console::Running) -> Value {
    let (status, body) = get(console, "/api/v1/summary");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The row of a function.
pub fn row(console: &console::Running, name: &str) -> Value {
    let summary = summary(console);
    let rows = summary["functions"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap().clone()
}

pub fn until_state(console: &console::Running, name: &str, state: &str) {
    until(&format!("{name}: {state}"), || {
        row(console, name)["state"] == state
    });
}

/// A request for the stream of the page, and how its answer begins.
pub fn stream(at: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    (stream, String::from_utf8_lossy(&first).into_owned())
}

/// As many streams as a console serves.
pub fn streams(console: &console::Running) -> Vec<TcpStream> {
    let open = (0..32).map(|_| {
        let (stream, first) = stream(console.addresses()[0]);
        assert_eq!(first, "HTTP/1.1 200");
        stream
    });
    open.collect()
}
