//! What is attacked: functions as processes, honest peers around them, what an honest client asks.

mod build;
mod diameter;
mod process;
mod secure;
mod server;
mod tls;

use std::net::SocketAddr;
use std::path::Path;

use sbi::client::Origin;
use serde_json::Value;

use crate::dose::Dose;
use crate::honest::Plan;

pub use crate::epc::{DSR_HOST, HSS, MME, REALM, ulr};
pub use build::{
    HONEST_ADDRESS, PRODUCER, PRODUCER_PATH, SUBSCRIBER, binding, disc, producer_profile, profile, wish,
};
pub use diameter::Hss;
pub use process::{Process, binary, how_it_ended};
pub use secure::{Core, Member};
pub use server::{Answer, SLOW, Seen, Server};
pub use tls::Tls;

/// Functions and their surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// An NRF; the honest client discovers a UDM.
    Nrf,
    /// An NRF; the honest client is that UDM and sends its heart-beat.
    NrfHeartBeat,
    /// An NRF under mutual TLS that issues tokens and requires them; the honest client discovers.
    NrfTls,
    /// A BSF with Rx; the honest client asks for a binding.
    Bsf,
    /// A BSF that follows its PCFs at an NRF of the attacker.
    BsfPoisoned,
    /// An SCP that learns from an NRF; the honest client's request goes to the producer it discovers.
    Scp,
    /// An SCP whose NRF is the attacker; the honest client's producer is configured.
    ScpPoisoned,
    /// A Diameter router before an HSS; the honest client is an MME.
    Dsr,
    /// A router behind an IP front end; the honest client is an MME that connects through it.
    FrontEnd,
    /// A PCF with Gx and Rx; the honest client reads the policy of a session.
    Pcf,
    /// A PCF whose Diameter is over TLS, with authorities.
    PcfTls,
    /// `signalbox up --secure`; the honest client is an SMF that reads the policy of its session.
    Secure,
}

/// A stage that stands.
#[derive(Debug)]
pub struct World {
    /// Which one.
    pub stage: Stage,
    /// The process under attack.
    pub process: Process,
    /// Others it needs.
    pub beside: Vec<Process>,
    /// Where the function under attack serves HTTP/2; for a Diameter router its Diameter address.
    pub target: SocketAddr,
    /// Where it serves Diameter.
    pub diameter: Option<SocketAddr>,
    /// Its admin endpoint.
    pub admin: SocketAddr,
    /// The NRF beside it, honest or not.
    pub nrf: Option<SocketAddr>,
    /// The honest producer, or the attacker's NRF.
    pub server: Option<Server>,
    /// The attacker's NRF.
    pub poisoned: Option<Poisoned>,
    /// The honest HSS.
    pub hss: Option<Hss>,
    /// Certificates.
    pub tls: Option<Tls>,
    /// The core of `up --secure`.
    pub core: Option<Core>,
    /// The path of the honest session at a PCF.
    pub session: Option<String>,
    /// What an honest client asks.
    pub plan: Plan,
    /// How to start it once more.
    pub recipe: Recipe,
    /// Where all of it keeps its files.
    pub folder: tempfile::TempDir,
}

/// The function under attack, to be started again.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The program.
    pub binary: std::path::PathBuf,
    /// The functions.
    pub functions: Vec<&'static str>,
    /// Their configuration.
    pub config: Value,
}

/// The attacker's NRF.
#[derive(Debug)]
pub struct Poisoned {
    /// Its server.
    pub server: Server,
    /// What it answers to discovery and retrieval, set by the script.
    pub answer: std::sync::Arc<std::sync::Mutex<(u16, Vec<u8>)>>,
}

impl Stage {
    /// Starts everything and prepares the state that the honest client needs.
    ///
    /// # Errors
    /// When something does not start.
    pub async fn build(self, binary: &Path, settings: Option<Value>, dose: Dose) -> anyhow::Result<World> {
        build::build(self, binary, settings, dose).await
    }

    /// The name of the function under attack, as in reports.
    #[must_use]
    pub const fn function(self) -> &'static str {
        match self {
            Self::Nrf | Self::NrfHeartBeat | Self::NrfTls => "nrf",
            Self::Bsf | Self::BsfPoisoned => "bsf",
            Self::Scp | Self::ScpPoisoned => "scp",
            Self::Dsr => "dsr",
            Self::FrontEnd => "ipfe",
            Self::Pcf | Self::PcfTls | Self::Secure => "pcf",
        }
    }
}

impl World {
    /// The origin of the function under attack.
    ///
    /// # Errors
    /// When there is none.
    pub fn origin(&self) -> anyhow::Result<Origin> {
        let secure = matches!(self.stage, Stage::NrfTls | Stage::Secure);
        let scheme = if secure { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.target).parse()?)
    }
}
