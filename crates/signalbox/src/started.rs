//! Functions that run in this process.

use telemetry::admin::Serving;

use crate::functions::Mounted;

/// A running function, with its admin endpoint.
pub(crate) struct Started {
    pub(crate) name: &'static str,
    pub(crate) mounted: Mounted,
    pub(crate) admin: Serving,
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
