//! Why an SCP could not start.

use std::io;

/// An SCP that could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot be used.
    #[error("{0}")]
    Config(String),
    /// The service-based interface cannot be offered.
    #[error(transparent)]
    Interface(#[from] sbi::server::InterfaceError),
    /// Something the system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl StartError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
