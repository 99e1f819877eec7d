//! Connections to servers of the operator: names, TCP, TLS.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use sbi::dns::Dns;
use tls::ClientTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower::Service;

/// A future of another thread's liking, as the client of `hyper-util` asks for it.
type Made<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// A stream of octets, in cleartext or over TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Connects to the origin of a URI.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector<Resolver>,
    /// None: only cleartext servers are reached.
    tls: Option<ClientTls>,
}

impl Connector {
    pub(super) fn new(tls: Option<ClientTls>, names: Option<Dns>) -> Self {
        let resolver = names.map_or_else(|| Resolver::System(GaiResolver::new()), Resolver::Servers);
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        Self { tcp, tls }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = io::Error;
    type Future = Made<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_ready(context).map_err(io::Error::other)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, tls) = (self.tcp.call(uri.clone()), self.tls.clone());
        Box::pin(async move {
            let tcp = connecting.await.map_err(io::Error::other)?.into_inner();
            if uri.scheme() != Some(&Scheme::HTTPS) {
                return Ok(TokioIo::new(Box::new(tcp) as Box<dyn Stream>));
            }
            let tls = tls.ok_or_else(|| io::Error::other("`notifier.tls` is not set"))?;
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let stream = TlsConnector::from(tls.load()).connect(name, tcp).await?;
            Ok(TokioIo::new(Box::new(stream) as Box<dyn Stream>))
        })
    }
}

/// Resolves names of servers as those of other functions (`dns`).
#[derive(Clone)]
pub(super) enum Resolver {
    System(GaiResolver),
    Servers(Dns),
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Made<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::System(system) => system.poll_ready(context),
            Self::Servers(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, name: Name) -> Self::Future {
        match self {
            Self::System(system) => {
                let resolving = system.call(name);
                Box::pin(async move { Ok(resolving.await?.collect::<Vec<_>>().into_iter()) })
            }
            Self::Servers(servers) => {
                let servers = servers.clone();
                Box::pin(async move {
                    let found = servers.addresses(name.as_str()).await.map_err(io::Error::other)?;
                    // The port is that of the URI.
                    let found: Vec<SocketAddr> = found.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
                    Ok(found.into_iter())
                })
            }
        }
    }
}
