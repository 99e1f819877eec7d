//! Simulated Diameter servers: many nodes in one process, each at a port of its own.
//!
//! [`DiameterServer`] is the event loop; what a node answers is a [`Role`]: [`hss`] for S6a and Cx, [`pcf`] for Rx, [`pcrf`] for
//! Gx and Rx, [`ocs`] for Gy, [`exposure`] for S6t, S6m and T4.

mod credit;
pub mod exposure;
pub mod hss;
pub mod journal;
pub mod ocs;
pub mod pcf;
pub mod pcrf;
mod server;

use std::io;
use std::time::Duration;

use diameter_proto::MessageRef;
use rand::rngs::SmallRng;

use loadgen::diameter::Introduction;

pub use crate::settings::DiameterSettings;
pub use server::DiameterServer;

/// What a simulated node answers.
pub trait Role: std::fmt::Debug + Send {
    /// Answers a request; the answer is appended to `out`.
    fn answer(
        &mut self,
        node: Node<'_>,
        request: MessageRef<'_>,
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) -> Outcome;

    /// The peer has answered a request of ours.
    fn answered(&mut self, _answer: MessageRef<'_>) {}

    /// The peer has connected: requests that a node sends it, each after its delay.
    fn connected(&mut self) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }
}

/// The node that was asked.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Its number within the process.
    pub number: usize,
    /// Who it is.
    pub introduction: &'a Introduction,
}

/// What came of a request.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The role could make no sense of it.
    pub bad: bool,
    /// What began, and whether at the right one of several nodes.
    pub placed: Option<Placed>,
    /// Requests that the node sends on the same connection later on; identifiers are set by the connection, unless they have an
    /// End-to-End Identifier.
    pub then: Vec<(Duration, Vec<u8>)>,
}

/// What begins at a PCRF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A Gx session: it belongs where its subscriber has others.
    Session,
    /// A request of an AF: it belongs where the Gx session is.
    Media,
}

/// What has begun at a PCRF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What.
    pub kind: Place,
    /// Whether it belongs at another one.
    pub is_stray: bool,
}

impl Outcome {
    /// The role could make no sense of the request.
    #[must_use]
    pub fn bad() -> Self {
        Self {
            bad: true,
            ..Self::default()
        }
    }
}

/// The role that the settings ask for, for nodes of these names.
pub(super) fn role(settings: &super::Settings, nodes: &[Introduction]) -> io::Result<Box<dyn Role>> {
    let own = &settings.diameter;
    Ok(match settings.role {
        super::RoleName::PcfRx => Box::new(pcf::Pcf::new(own)),
        super::RoleName::Pcrf => Box::new(pcrf::Pcrf::new(own)),
        super::RoleName::ExposureHss => Box::new(exposure::ExposureHss),
        super::RoleName::SmsSc => Box::new(exposure::SmsSc::new(own)),
        super::RoleName::Ocs => Box::new(ocs::Ocs::new(own)?),
        _ => Box::new(hss::Hss::new(own, nodes).map_err(io::Error::other)?),
    })
}
