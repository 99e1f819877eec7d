//! What can keep a function from starting.

use std::error::Error;
use std::net::SocketAddr;

/// Why a function did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot be used.
    #[error("{0}")]
    Config(String),
    /// The store cannot be opened or read.
    #[error("store: {0}")]
    Store(#[source] Box<dyn Error + Send + Sync>),
    /// An address cannot be bound.
    #[error("listening at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why the system refuses it.
        source: std::io::Error,
    },
    /// A thread or another part cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// The step that failed.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl StartError {
    /// Whether the configuration is at fault, or files that it names: another try would find the same.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Config(_))
    }

    /// Turns an error of the system into a [`StartError`] that names the failed step in `what`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

#[cfg(feature = "store")]
impl From<store::Error> for StartError {
    fn from(error: store::Error) -> Self {
        Self::Store(Box::new(error))
    }
}

#[cfg(feature = "sbi")]
impl From<sbi::server::InterfaceError> for StartError {
    fn from(error: sbi::server::InterfaceError) -> Self {
        match error {
            sbi::server::InterfaceError::Listen { address, source } => Self::Listen { address, source },
        }
    }
}
