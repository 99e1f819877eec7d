//! Making connections.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::connection::{Connection, start};
use super::pool::Pool;
use crate::link::Socket;
use crate::wire::Wire;

/// Connects to the pool's origin; the text of the error says what failed.
pub(super) async fn connect(pool: &Rc<Pool>) -> Result<Rc<Connection>, String> {
    let config = &pool.config;
    let attempt = async {
        let origin = &pool.origin;
        let stream = open(pool).await?;
        let _ = stream.set_nodelay(true);
        let addresses = stream
            .local_addr()
            .and_then(|local| Ok((local, stream.peer_addr()?)));
        let addresses = addresses.map_err(|error| error.to_string())?;
        let socket = match &pool.tls {
            None => Socket::Clear(Wire::Task(stream)),
            Some(tls) => {
                let name = ServerName::try_from(origin.host().to_owned()).map_err(|e| e.to_string())?;
                let stream = TlsConnector::from(tls.load())
                    .connect(name, Wire::Task(stream))
                    .await;
                let stream = stream.map_err(|error| format!("TLS: {error}"))?;
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err("TLS: the peer does not offer HTTP/2 (ALPN h2)".to_owned());
                }
                Socket::Tls(Box::new(stream.into()))
            }
        };
        Ok(start(socket, addresses, pool))
    };
    let limit = config.connect_timeout.duration();
    tokio::time::timeout(limit, attempt)
        .await
        .unwrap_or_else(|_| Err(format!("no connection within {limit:?}")))
}

/// Least age of an answer of name servers that is asked for again because all of its addresses failed.
const MOVED: Duration = Duration::from_secs(1);

/// Connects to one of the addresses of the pool's host. When all refuse, the name may have moved: it is resolved again.
async fn open(pool: &Pool) -> Result<TcpStream, String> {
    let (host, port) = (pool.origin.host(), pool.origin.port());
    let names = pool.names.as_ref().filter(|_| host.parse::<IpAddr>().is_err());
    let Some(names) = names else {
        let found = lookup_host((host, port)).await.map_err(|e| e.to_string())?;
        return one_of(pool, found.collect()).await;
    };
    let found = names.addresses(host).await.map_err(|e| e.to_string())?;
    let at = |ip: &IpAddr| SocketAddr::new(*ip, port);
    let failed = match one_of(pool, found.iter().map(at).collect()).await {
        Ok(stream) => return Ok(stream),
        Err(why) => why,
    };
    let newer = names.newer_addresses(host, MOVED).await;
    let others = newer
        .iter()
        .flat_map(|all| all.iter())
        .filter(|ip| !found.contains(ip));
    let others: Vec<SocketAddr> = others.map(at).collect();
    match others.is_empty() {
        true => Err(failed),
        false => one_of(pool, others).await,
    }
}

/// Connects to one of several addresses. Each connection begins with another one, so that all get some.
async fn one_of(pool: &Pool, mut addresses: Vec<SocketAddr>) -> Result<TcpStream, String> {
    if let Some(guard) = &pool.guard {
        addresses = guard.screen(&pool.origin, addresses)?;
    }
    pool.spread(&mut addresses);
    let mut why = String::new();
    // The timeout of an address that does not answer leaves the other addresses their share of the time.
    let limit = pool.config.connect_timeout.duration() / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    for address in addresses {
        match tokio::time::timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = format!("{}: {error}", address.ip()),
            Err(_) => why = format!("{}: no connection within {limit:?}", address.ip()),
        }
    }
    Err(why)
}
