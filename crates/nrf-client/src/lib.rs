//! Client of NRFs for network functions (TS 29.510): registration ([`Presence`]), subscriptions to changes
//! ([`Subscription`]), and other requests to one NRF after the other until one answers ([`Nrfs`]).
//!
//! For an NRF that requires an access token for its own services, the client gets one ([`OwnTokens`]); for the services of
//! other functions, the NRFs grant tokens as well ([`PeerTokens`]).
//!
//! NRFs of one set hold the same profiles, so the client stays with one NRF until it fails. The function itself
//! writes its profile and interprets the answers.

mod grant;
mod nrfs;
mod peer_tokens;
mod presence;
mod subscription;
mod tokens;
mod turns;

pub use nrfs::{Answer, Nrfs};
pub use peer_tokens::{Outcome, PeerService, PeerTokens};
pub use presence::{Presence, deregister, stay_registered};
pub use subscription::{Renewal, Subscription};
pub use tokens::OwnTokens;
pub use turns::Turns;

/// Path of the profile of an NF instance (TS 29.510 §6.1.3.3.2).
#[must_use]
pub fn instance_path(id: &str) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{id}")
}

/// The path of an absolute URI, or of a path, with its query.
#[must_use]
pub fn path_of(uri: &str) -> Option<String> {
    let uri: http::Uri = uri.parse().ok()?;
    uri.path_and_query().map(|path| path.as_str().to_owned())
}
