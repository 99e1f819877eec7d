//! What can keep a BSF from starting.

/// Why a BSF did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot be used.
    #[error("{0}")]
    Config(String),
    /// The store cannot be opened or read.
    #[error("store: {0}")]
    Store(#[from] store::Error),
    /// The service-based interface cannot be offered.
    #[error(transparent)]
    Interface(#[from] sbi::server::InterfaceError),
    /// An address cannot be bound, or a thread cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl StartError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
