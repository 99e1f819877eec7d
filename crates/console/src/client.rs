//! One connection to an admin endpoint: a few requests, each within a bound of time and size.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How long connecting and each request may take; a function that hangs costs its own poller this time and no other.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// A page: its status and its body.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// Why a page was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    Silent,
    /// The connection broke off, or what answers is not an admin endpoint.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused"),
            Self::Silent => write!(f, "no answer within {} s", TIMEOUT.as_secs()),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

/// An open connection; it closes when dropped.
pub(crate) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    driver: JoinHandle<()>,
    host: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub(crate) async fn open(admin: SocketAddr) -> Result<Self, Failure> {
        let connect = async {
            let stream = TcpStream::connect(admin)
                .await
                .map_err(|error| match error.kind() {
                    io::ErrorKind::ConnectionRefused => Failure::Refused,
                    _ => Failure::Broken(error.to_string()),
                })?;
            handshake(TokioIo::new(stream)).await.map_err(broken)
        };
        let (sender, connection) = within(connect).await?;
        let driver = tokio::spawn(async move {
            // The request that it breaks has the reason.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            driver,
            host: admin.to_string(),
        })
    }

    /// A page of at most this many bytes.
    pub(crate) async fn get(&mut self, path: &str, most: usize) -> Result<Page, Failure> {
        self.ask(Method::GET, path, most).await
    }

    /// What a request by another method is answered with.
    pub(crate) async fn ask(&mut self, method: Method, path: &str, most: usize) -> Result<Page, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::ACCEPT, "application/json, text/plain")
            .header(header::USER_AGENT, "signalbox-console")
            .body(Empty::new())
            .map_err(|error| Failure::Broken(error.to_string()))?;
        let sender = &mut self.sender;
        within(async move {
            sender.ready().await.map_err(broken)?;
            let answer = sender.send_request(request).await.map_err(broken)?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), most).collect().await;
            let body = body.map_err(|error| Failure::Broken(format!("{path}: {error}")))?;
            Ok(Page {
                status,
                body: body.to_bytes(),
            })
        })
        .await
    }
}

fn broken(error: hyper::Error) -> Failure {
    Failure::Broken(error.to_string())
}

async fn within<T>(step: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(TIMEOUT, step)
        .await
        .unwrap_or(Err(Failure::Silent))
}
