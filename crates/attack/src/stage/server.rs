//! Honest servers beside the attacked functions, each on a thread of its own.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use http::HeaderMap;
use sbi::server::{self, ServerConfig, ServerStats};
use sbi::{Request, Response, Service};
use worker::Shutdown;

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Method.
    pub method: http::Method,
    /// Path and query.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Seen {
    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// What a server answers.
pub type Answer = Arc<dyn Fn(&Seen) -> Response + Send + Sync>;

/// A path that holds this is answered after a tenth of a second.
pub const SLOW: &str = "/slow";

/// Requests that are remembered.
const REMEMBERED: usize = 50_000;

/// A well-behaved HTTP/2 server.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Shutdown,
    thread: Option<JoinHandle<()>>,
}

struct Serving {
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Answer,
}

impl Service for Serving {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let seen = Seen {
            method: request.method().clone(),
            path: request.target().to_owned(),
            headers: request.headers().into(),
            body: request.body.to_bytes().to_vec(),
        };
        if seen.path.contains(SLOW) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let response = (self.answer)(&seen);
        if let Ok(mut all) = self.seen.lock()
            && all.len() < REMEMBERED
        {
            all.push(seen);
        }
        response
    }
}

impl Server {
    /// Serves at a free port of the loopback interface.
    ///
    /// # Errors
    /// When there is none.
    pub fn start(answer: Answer) -> anyhow::Result<Self> {
        let listener = server::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?;
        let (seen, stop) = (Arc::default(), Shutdown::new());
        let (its_seen, its_stop) = (Arc::clone(&seen), stop.clone());
        let thread = std::thread::Builder::new()
            .name("honest-server".into())
            .spawn(move || {
                let serving = Serving {
                    seen: its_seen,
                    answer,
                };
                serve(listener, serving, its_stop);
            })?;
        Ok(Self {
            address,
            seen,
            stop,
            thread: Some(thread),
        })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().map(|all| all.clone()).unwrap_or_default()
    }

    /// Forgets what came so far.
    pub fn forget(&self) {
        if let Ok(mut all) = self.seen.lock() {
            all.clear();
        }
    }
}

fn serve(listener: std::net::TcpListener, serving: Serving, stop: Shutdown) {
    let serve = async move {
        // It is not the one under attack: what a function asks of it, it answers.
        let config = ServerConfig {
            max_untaken: settings::ByteSize::mib(1_024),
            drain_timeout: settings::Period::from_millis(100),
            ..ServerConfig::default()
        };
        let (config, stats) = (Arc::new(config), Arc::new(ServerStats::default()));
        let served = server::serve(listener, Rc::new(serving), config, None, stats, stop);
        served.await.context("an honest server failed")
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    // Its end is what is wanted; a failure shows as requests without answers.
    let _ = tokio::task::LocalSet::new().block_on(&runtime, serve);
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.fire();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
