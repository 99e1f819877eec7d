//! What can keep a front end from starting.

/// Why a front end did not start.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct StartError {
    /// What was being done.
    what: String,
    /// Why it failed.
    source: std::io::Error,
}

impl StartError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self { what, source }
    }
}
