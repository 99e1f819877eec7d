//! Connections of routers.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dp_proto::{Answer, Bundle, Frame, Malformed, Query};
use function::Shutdown;
use function::live::Live;
use tls::ServerTls;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::answer::Responder;
use crate::config::Config;
use crate::data::Holder;
use crate::metrics::Meters;

/// Time for the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Octets that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Octets of answers that are written at once: what is read while they wait is bounded by the buffers of the system.
const MOST_OUT: usize = 256 * 1024;

/// What the connections of a worker share.
pub(crate) struct Desk {
    live: Arc<Live<Config, Arc<Holder>>>,
    meters: Arc<Meters>,
    responder: RefCell<Responder>,
    open: Cell<usize>,
    tls: Option<ServerTls>,
}

/// Why a connection has ended.
enum End {
    /// The router has ended it, or is unreachable.
    Closed,
    Idle,
    Broken,
    /// TLS has failed.
    Handshake,
    Stopped,
}

impl Desk {
    pub(crate) fn new(
        live: Arc<Live<Config, Arc<Holder>>>,
        meters: Arc<Meters>,
        tls: Option<ServerTls>,
    ) -> Self {
        Self {
            tls,
            live,
            meters,
            responder: RefCell::default(),
            open: Cell::new(0),
        }
    }

    /// Whether one more connection may come from this address.
    fn admits(&self, address: IpAddr) -> bool {
        let config = self.live.load().config.clone();
        let address = address.to_canonical();
        let is_client = config.clients.is_empty() || config.clients.iter().any(|net| net.contains(&address));
        is_client && self.open.get() < config.connections
    }

    /// Answers the frames that are whole.
    fn answer(&self, input: &mut Vec<u8>, out: &mut Bundle) -> Result<(), Malformed> {
        let now = self.live.load();
        let (data, most) = (now.derived.load(), now.config.queries_per_second);
        let mut responder = self.responder.borrow_mut();
        let mut done = 0;
        while out.len() < MOST_OUT {
            let rest = input.get(done..).unwrap_or_default();
            let Some((frame, length)) = Frame::<Query<'_>>::split(rest)? else {
                break;
            };
            let tally = responder.answer(&frame, data.as_deref(), most, out)?;
            match frame.count() {
                0 => out.probe::<Answer<'_>>(),
                // A frame of queries is answered by one of answers.
                _ => out.close(),
            }
            self.meters.count(&tally);
            done += length;
        }
        input.drain(..done);
        Ok(())
    }
}

/// Accepts connections until the task is aborted.
pub(crate) async fn accept(listener: TcpListener, desk: Rc<Desk>, shutdown: Shutdown) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Without descriptors the next attempt would fail at once.
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !desk.admits(peer.ip()) {
            desk.meters.refused.inc();
            continue;
        }
        desk.meters.accepted.inc();
        // Before the task runs: many connections may be accepted in one turn of the worker.
        desk.open.set(desk.open.get() + 1);
        desk.meters.open.inc();
        let (desk, shutdown) = (desk.clone(), shutdown.clone());
        tokio::task::spawn_local(async move {
            match welcome(stream, &desk, &shutdown).await {
                Ok(End::Idle) => desk.meters.idle.inc(),
                Ok(End::Broken) => desk.meters.broken.inc(),
                Ok(End::Handshake) => desk.meters.handshake.inc(),
                Ok(End::Closed | End::Stopped) | Err(_) => {}
            }
            desk.open.set(desk.open.get() - 1);
            desk.meters.open.dec();
        });
    }
}

/// Serves a connection, behind its handshake where TLS is set.
async fn welcome(stream: TcpStream, desk: &Desk, shutdown: &Shutdown) -> io::Result<End> {
    stream.set_nodelay(true)?;
    let Some(tls) = &desk.tls else {
        return carry(stream, desk, shutdown).await;
    };
    let handshake = TlsAcceptor::from(tls.load()).accept(stream);
    let made = tokio::select! {
        () = shutdown.fired() => return Ok(End::Stopped),
        made = tokio::time::timeout(HANDSHAKE, handshake) => made,
    };
    match made {
        Ok(Ok(stream)) => carry(stream, desk, shutdown).await,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake of a router failed");
            Ok(End::Handshake)
        }
        Err(_) => Ok(End::Handshake),
    }
}

async fn carry(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    desk: &Desk,
    shutdown: &Shutdown,
) -> io::Result<End> {
    let (mut input, mut output, mut out) = (Vec::new(), Vec::new(), Bundle::default());
    loop {
        let idle = desk.live.load().config.idle.duration();
        // From one whole frame to the next: a peer that sends an octet now and then is idle as well.
        let turn = async {
            while out.is_empty() {
                input.reserve(READ_BYTES);
                if stream.read_buf(&mut input).await? == 0 {
                    return Ok(Some(End::Closed));
                }
                if let Err(malformed) = desk.answer(&mut input, &mut out) {
                    tracing::debug!(%malformed, "connection of a router closed");
                    return Ok(Some(End::Broken));
                }
            }
            while !out.is_empty() {
                out.take_into(&mut output);
                stream.write_all(&output).await?;
                stream.flush().await?;
                // Frames beyond the bound of what is written at once.
                if desk.answer(&mut input, &mut out).is_err() {
                    return Ok(Some(End::Broken));
                }
            }
            Ok::<_, io::Error>(None)
        };
        let end = tokio::select! {
            () = shutdown.fired() => Some(End::Stopped),
            done = tokio::time::timeout(idle, turn) => match done {
                Ok(turn) => turn?,
                Err(_) => Some(End::Idle),
            },
        };
        if let Some(end) = end {
            return Ok(end);
        }
    }
}
