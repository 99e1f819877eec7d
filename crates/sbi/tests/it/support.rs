//! A server of ours on a free port, inside the test's own runtime.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sbi::client::{Client, ClientConfig, Origin};
use sbi::server::{self, ServerConfig, ServerStats};
use sbi::tls::ServerTls;
use sbi::{Request, Response, Service};
use testpeer::http2::{Peer, frame};
use worker::Shutdown;

/// Runs a test with the event loop of a worker. The tests of functions whose runtimes wait (PCF, BSF) cover the other
/// way; `SIGNALBOX_TEST_RUNTIME=1` runs these tests that way, too.
pub fn local<F: Future>(test: F) -> F::Output {
    if std::env::var_os("SIGNALBOX_TEST_RUNTIME").is_some() {
        return testpeer::local(test);
    }
    let limit = Duration::from_secs(300);
    worker::block_on(async { tokio::time::timeout(limit, test).await })
        .unwrap()
        .expect("a test ends in five minutes")
}

/// A service made of a function.
pub struct Function<F> {
    pub function: F,
    /// Whether it has HTTP/1.1.
    pub http1: bool,
}

impl<F, Fut> Service for Function<F>
where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Response> + 'static,
{
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static {
        (self.function)(request)
    }

    fn has_http1(&self) -> bool {
        self.http1
    }

    fn about(&self) -> String {
        "It belongs to a test.".to_owned()
    }
}

/// A running server.
pub struct Running {
    pub addr: SocketAddr,
    pub stats: Arc<ServerStats>,
    pub shutdown: Shutdown,
    pub done: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub fn origin(&self) -> Origin {
        format!("http://{}", self.addr).parse().unwrap()
    }
}

/// Starts a server; to be called inside [`local`].
pub fn start<F, Fut>(config: ServerConfig, function: F) -> Running
where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Response> + 'static,
{
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    start_on(listener, config, None, (function, false))
}

/// As [`start`], with HTTP/1.1; with TLS where there is some.
pub fn start_http1<F, Fut>(config: ServerConfig, tls: Option<ServerTls>, function: F) -> Running
where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Response> + 'static,
{
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    start_on(listener, config, tls, (function, true))
}

/// Starts a server with TLS.
pub fn start_tls<F, Fut>(tls: impl Into<ServerTls>, function: F) -> Running
where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Response> + 'static,
{
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    start_on(
        listener,
        ServerConfig::default(),
        Some(tls.into()),
        (function, false),
    )
}

/// As [`start_tls`]; the sockets' buffers for sending are as small as the system allows.
pub fn start_tls_narrow<F, Fut>(tls: impl Into<ServerTls>, function: F) -> Running
where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Response> + 'static,
{
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // Sockets that it accepts inherit this.
    socket2::SockRef::from(&listener).set_send_buffer_size(1).unwrap();
    start_on(
        listener,
        ServerConfig::default(),
        Some(tls.into()),
        (function, false),
    )
}

fn start_on<F, Fut>(
    listener: TcpListener,
    config: ServerConfig,
    tls: Option<ServerTls>,
    (function, http1): (F, bool),
) -> Running
where
    F: Fn(Request) -> Fut + 'static,
    Fut: Future<Output = Response> + 'static,
{
    let addr = listener.local_addr().unwrap();
    let (stats, shutdown) = (Arc::new(ServerStats::default()), Shutdown::new());
    let serving = server::serve(
        listener,
        Rc::new(Function { function, http1 }),
        Arc::new(config),
        tls,
        stats.clone(),
        shutdown.clone(),
    );
    Running {
        addr,
        stats,
        shutdown,
        done: tokio::task::spawn_local(serving),
    }
}

/// Somebody else's connection, which must be served whatever the hostile one does.
pub struct Bystander(Peer, u32);

impl Bystander {
    pub async fn of(addr: SocketAddr) -> Self {
        Self(Peer::client(addr).await.unwrap(), 1)
    }

    pub async fn is_served(&mut self) {
        self.0.send(&frame::post(self.1, "/")).await.unwrap();
        self.0.send(&frame::data(self.1, b"hello", true)).await.unwrap();
        assert_eq!(
            self.0.answer(self.1).await.unwrap(),
            (200, b"hello".to_vec()),
            "a bystander"
        );
        self.1 += 2;
    }
}

pub fn client(config: ClientConfig) -> Client {
    Client::new(Arc::new(config), None)
}
