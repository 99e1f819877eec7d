//! HTTP/2 clients that break or strain the rules. All functions share the server; they are tried on an NRF.

mod bombs;
mod connections;
mod floods;
mod streams;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    [streams::ALL, floods::ALL, bombs::ALL, connections::ALL].concat()
}

/// A path that is answered at once.
const PATH: &str = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF";
