//! The service-based interface of a function: its addresses, with a listener for each worker.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use parking_lot::Mutex;
use sbi_proto::Service;
use worker::WorkerContext;

use super::config::ServerConfig;
use super::listen::serve;
use crate::stats::{ServerStats, StatsSnapshot};
use crate::tls::ServerTls;

/// A function's interface: bound when it is made, served by the workers, readable from any thread.
#[derive(Debug)]
pub struct Interface {
    addresses: Vec<SocketAddr>,
    tls: Option<ServerTls>,
    workers: Vec<PerWorker>,
}

#[derive(Debug, Default)]
struct PerWorker {
    /// Until the worker takes them: one per address.
    listeners: Mutex<Vec<TcpListener>>,
    stats: Arc<ServerStats>,
}

/// Why an interface cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// An address cannot be bound.
    #[error("listening at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

impl Interface {
    /// Binds every address once per worker, and accepts. With port 0 all workers have the port of the first. Without
    /// `tls` it is cleartext.
    ///
    /// # Errors
    /// When an address is taken or not ours.
    pub fn bind(
        listen: impl IntoIterator<Item = SocketAddr>,
        workers: usize,
        tls: Option<ServerTls>,
    ) -> Result<Self, InterfaceError> {
        let interface = Self::reserve(listen, workers, tls)?;
        interface.listen()?;
        Ok(interface)
    }

    /// As [`Interface::bind`], but connections are refused until [`Interface::listen`].
    ///
    /// # Errors
    /// As [`Interface::bind`].
    pub fn reserve(
        listen: impl IntoIterator<Item = SocketAddr>,
        workers: usize,
        tls: Option<ServerTls>,
    ) -> Result<Self, InterfaceError> {
        let workers: Vec<PerWorker> = (0..workers).map(|_| PerWorker::default()).collect();
        let mut addresses = Vec::new();
        for wanted in listen {
            let (listeners, address) = worker::bind_each(wanted, workers.len(), |address| {
                let listener = worker::reserve(address).and_then(|one| Ok((one.local_addr()?, one)));
                let (at, listener) = listener.map_err(|source| InterfaceError::Listen { address, source })?;
                Ok::<_, InterfaceError>((listener, at))
            })?;
            for (worker, listener) in workers.iter().zip(listeners) {
                worker.listeners.lock().push(listener);
            }
            addresses.push(address);
        }
        Ok(Self {
            addresses,
            tls,
            workers,
        })
    }

    /// Begins to accept connections, which wait until workers serve them.
    ///
    /// # Errors
    /// When another program has begun to listen at an address.
    pub fn listen(&self) -> Result<(), InterfaceError> {
        for worker in &self.workers {
            for (listener, address) in worker.listeners.lock().iter().zip(&self.addresses) {
                worker::listen(listener).map_err(|source| InterfaceError::Listen {
                    address: *address,
                    source,
                })?;
            }
        }
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The root of URIs at an address.
    #[must_use]
    pub fn root_at(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// What the servers have counted, one per worker.
    pub fn stats(&self) -> impl Iterator<Item = StatsSnapshot> {
        self.workers.iter().map(|worker| worker.stats.snapshot())
    }

    /// Serves this worker's listeners until its shutdown fires. To be called once per worker, inside it.
    ///
    /// # Errors
    /// When a listener itself fails.
    pub async fn serve<S: Service>(
        &self,
        context: &WorkerContext,
        service: Rc<S>,
        limits: Arc<ServerConfig>,
    ) -> io::Result<()> {
        let Some(mine) = self.workers.get(context.index) else {
            return Ok(());
        };
        let listeners = std::mem::take(&mut *mine.listeners.lock());
        let serving = listeners.into_iter().map(|listener| {
            serve(
                listener,
                service.clone(),
                limits.clone(),
                self.tls.clone(),
                mine.stats.clone(),
                context.shutdown.clone(),
            )
        });
        futures_util::future::try_join_all(serving).await.map(drop)
    }
}
