//! What a PCF listens with: the service-based interface, and Diameter.

use std::net::SocketAddr;
use std::sync::Arc;

use function::sbi::Sbi;
use function::{Common, Listeners, StartError};
use telemetry::Registry;
use tls::{ClientTls, Material, Watched};

use crate::agent::Seats;
use crate::config::Config;

/// The listeners of a PCF.
pub struct Listening {
    pub(crate) sbi: Arc<Sbi>,
    pub(crate) diameter: Seats,
    /// TLS of the connections to servers that projects notify.
    pub(crate) notifier_tls: Option<ClientTls>,
    addresses: Vec<SocketAddr>,
    /// `aaas` with TLS.
    scheme: &'static str,
}

impl Listening {
    /// Reserves the addresses of both.
    pub(crate) fn reserve(config: &Config, common: &Common<'_>, workers: usize) -> Result<Self, StartError> {
        let sbi = Sbi::reserve(&config.listen, common, workers)?;
        let security = config
            .diameter
            .security(sbi.watched())
            .map_err(StartError::Config)?;
        let notifier_tls = config.notifier.tls.as_ref().map(|files| {
            let http1 = |material: &Material| material.client(&[b"http/1.1"]);
            sbi.watched().open("notifier.tls", files, http1)
        });
        let notifier_tls = notifier_tls.transpose().map_err(StartError::Config)?;
        let diameter = Seats::bind(&config.diameter, security, workers)?;
        let addresses = sbi.addresses().iter().chain(&diameter.addresses);
        Ok(Self {
            addresses: addresses.copied().collect(),
            diameter,
            notifier_tls,
            scheme: if config.diameter.tls.is_some() {
                "aaas"
            } else {
                "aaa"
            },
            sbi: Arc::new(sbi),
        })
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
        let diameter = self.diameter.addresses.iter();
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
