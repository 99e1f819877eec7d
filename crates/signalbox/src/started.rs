//! Functions that run in this process.

use std::sync::Arc;

use telemetry::Journal;
use telemetry::admin::Serving;
use telemetry::journal::Kind;

use crate::functions::Mounted;

/// A running function, with its admin endpoint.
pub(crate) struct Started {
    pub(crate) name: &'static str,
    pub(crate) mounted: Mounted,
    pub(crate) admin: Serving,
    /// The files of its journal.
    pub(crate) journal: Option<Arc<function::journal::Journal>>,
}

/// The release and the commit it was built from.
pub(crate) const RELEASE: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("SIGNALBOX_COMMIT"), ")");

/// Records the start of a function: its release, the one before where that was another, and whether the process before it
/// ended in order.
pub(crate) fn record(name: &str, journal: &Journal) {
    let mut words = format!("release {RELEASE}, process {}", std::process::id());
    if let Some(before) = journal.last_of(Kind::Started) {
        let release = before
            .detail
            .strip_prefix("release ")
            .and_then(|text| text.split(", process").next());
        if let Some(release) = release.filter(|release| *release != RELEASE) {
            words.push_str(&format!("; before it ran release {release}"));
        }
        let stopped = journal.last_of(Kind::Stopped);
        if stopped.is_none_or(|stopped| stopped.sequence < before.sequence) {
            words.push_str("; the process before it ended without a stop in order");
        }
    }
    journal.record(Kind::Started, name, &words);
}

/// The first URI of an interface of a function.
pub(crate) fn interface<'a>(functions: &'a [Started], function: &str, interface: &str) -> Option<&'a str> {
    let found = functions.iter().find(|found| found.name == function)?;
    let (_, uri) = found
        .mounted
        .interfaces
        .iter()
        .find(|(name, _)| *name == interface)?;
    Some(uri)
}
