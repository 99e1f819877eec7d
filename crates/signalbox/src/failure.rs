//! Why a command failed, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use function::StartError;

/// A check or run failed.
pub(crate) const FAILED: u8 = 1;
/// The command line or a configuration is wrong.
pub(crate) const USAGE: u8 = 2;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file: every mistake in it, with its place.
    Mistakes(Box<settings::Report>),
    /// The command line asks for what cannot be.
    Usage(String),
    /// A signal ended a start that waited; with what it waited for.
    Stopped(anyhow::Error),
    /// Something went wrong on the way.
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Mistakes(_) | Self::Usage(_) => USAGE,
            // A function found at its start what `check` cannot: another try would find the same.
            Self::Other(error)
                if error
                    .downcast_ref::<StartError>()
                    .is_some_and(StartError::is_configuration) =>
            {
                USAGE
            }
            Self::Stopped(_) => 0,
            Self::Other(_) => FAILED,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mistakes(report) => report.fmt(f),
            Self::Usage(said) => f.write_str(said),
            Self::Stopped(error) | Self::Other(error) => f.write_str(&causes(error)),
        }
    }
}

/// An error with its causes, each once: some errors print their cause themselves.
fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_printed_once() {
        let cause = std::io::Error::other("the store is open elsewhere");
        let error = anyhow::Error::new(cause).context("store: the store is open elsewhere");
        let error = error.context("starting the NRF");
        assert_eq!(
            Failure::Other(error).to_string(),
            "starting the NRF: store: the store is open elsewhere"
        );
    }
}
