//! What a BSF listens with: the service-based interface, and Diameter.

use std::net::SocketAddr;
use std::sync::Arc;

use function::sbi::Sbi;
use function::{Common, Listeners, StartError};
use parking_lot::Mutex;
use telemetry::Registry;
use tls::Watched;

use crate::config::Config;
use crate::rx;

/// The listeners of a BSF.
pub struct Listening {
    pub(crate) sbi: Arc<Sbi>,
    addresses: Vec<SocketAddr>,
    diameter: Vec<SocketAddr>,
    /// `aaas` with TLS.
    scheme: &'static str,
    seats: Mutex<Vec<Option<rx::Seat>>>,
}

impl Listening {
    /// Reserves the addresses of both.
    pub(crate) fn reserve(config: &Config, common: &Common<'_>, workers: usize) -> Result<Self, StartError> {
        let sbi = Sbi::reserve(&config.listen, common, workers)?;
        let security = config.rx.security(sbi.watched()).map_err(StartError::Config)?;
        let (seats, diameter) = rx::seats(&config.rx, &security, workers)?;
        let sbi_addresses = sbi.addresses().iter();
        Ok(Self {
            addresses: sbi_addresses.chain(&diameter).copied().collect(),
            diameter,
            scheme: if config.rx.tls.is_some() { "aaas" } else { "aaa" },
            seats: Mutex::new(seats),
            sbi: Arc::new(sbi),
        })
    }

    /// Where it listens for Diameter.
    pub(crate) fn diameter(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// What the Diameter agent of a worker starts with, once.
    pub(crate) fn seat(&self, worker: usize) -> Option<rx::Seat> {
        self.seats.lock().get_mut(worker).and_then(Option::take)
    }
}

impl Listeners for Listening {
    fn listen(&self) -> Result<(), StartError> {
        self.sbi.listen()
    }

    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let diameter = self.diameter.iter();
        let diameter = diameter.map(|address| ("Diameter", format!("{}://{address}", self.scheme)));
        self.sbi.interfaces().into_iter().chain(diameter).collect()
    }

    fn watched(&self) -> Option<&Arc<Watched>> {
        Listeners::watched(&*self.sbi)
    }

    fn reload_files(&self, settings: &Common<'_>) -> Result<bool, String> {
        self.sbi.reload_files(settings)
    }

    fn observe(self: &Arc<Self>, registry: &Registry) {
        self.sbi.observe(registry);
    }
}
