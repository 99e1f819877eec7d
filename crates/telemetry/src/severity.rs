//! How bad alarms and alerts are.

use std::fmt;

use serde::Serialize;

/// How bad it is; the words of ITU-T X.733.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing, nothing is impaired.
    Info,
    /// Something is impaired that service does not depend on yet.
    Minor,
    /// Service is impaired.
    Major,
    /// Service is lost.
    Critical,
}

impl Severity {
    /// All, from the mildest.
    pub const ALL: [Self; 4] = [Self::Info, Self::Minor, Self::Major, Self::Critical];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
