//! What an SCEF listens with: T8, and Diameter.

use std::net::SocketAddr;
use std::sync::Arc;

use diameter::{BoundListener, Security, Transport};
use function::sbi::Sbi;
use function::{Common, Listeners, StartError};
use parking_lot::Mutex;
use telemetry::Registry;
use tls::Watched;

use crate::config::Config;
use crate::orders::{self, Orders};

/// The listeners of an SCEF.
pub struct Listening {
    pub(crate) t8: Arc<Sbi>,
    pub(crate) orders: Orders,
    addresses: Vec<SocketAddr>,
    diameter: Vec<SocketAddr>,
    /// `aaas` with TLS.
    scheme: &'static str,
    seat: Mutex<Option<Seat>>,
}

/// What the Diameter node begins with.
pub(crate) struct Seat {
    pub(crate) listeners: Vec<BoundListener>,
    pub(crate) security: Security,
    pub(crate) orders: orders::Receiver,
}

impl Listening {
    /// Reserves the addresses of both.
    pub(crate) fn reserve(config: &Config, common: &Common<'_>, workers: usize) -> Result<Self, StartError> {
        let t8 = Sbi::reserve(&config.listen, common, workers)?;
        let security = config
            .diameter
            .security(t8.watched())
            .map_err(StartError::Config)?;
        let (orders, receiver) = orders::channel(config.diameter.max_calls);
        let bind = |address: SocketAddr| {
            BoundListener::bind(address, Transport::Tcp)
                .map_err(StartError::io(format!("listening at {address} (Diameter)")))
        };
        let listeners = config.diameter.listen.iter().map(bind);
        let listeners = listeners.collect::<Result<Vec<_>, StartError>>()?;
        let diameter: Vec<SocketAddr> = listeners.iter().map(BoundListener::address).collect();
        Ok(Self {
            addresses: t8.addresses().iter().chain(&diameter).copied().collect(),
            diameter,
            scheme: config.diameter.tls.as_ref().map_or("aaa", |_| "aaas"),
            seat: Mutex::new(Some(Seat {
                listeners,
                security,
                orders: receiver,
            })),
            t8: Arc::new(t8),
            orders,
        })
    }

    /// Where it listens for Diameter.
    pub(crate) fn diameter(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// What the Diameter node begins with, once.
    pub(crate) fn seat(&self) -> Option<Seat> {
        self.seat.lock().take()
    }
}

impl Listeners for Listening {
    fn listen(&self) -> Result<(), StartError> {
        self.t8.listen()
    }

    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let diameter = self.diameter.iter();
        let diameter = diameter.map(|address| ("Diameter", format!("{}://{address}", self.scheme)));
        self.t8.interfaces().into_iter().chain(diameter).collect()
    }

    fn watched(&self) -> Option<&Arc<Watched>> {
        Listeners::watched(&*self.t8)
    }

    fn reload_files(&self, settings: &Common<'_>) -> Result<bool, String> {
        self.t8.reload_files(settings)
    }

    fn observe(self: &Arc<Self>, registry: &Registry) {
        self.t8.observe(registry);
    }
}
