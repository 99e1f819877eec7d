//! What functions ask of NRFs (TS 29.510): to be registered ([`Presence`]), to be told of changes
//! ([`Subscription`]), and whatever else, of one NRF after the other until one answers ([`Nrfs`]).
//!
//! An NRF that wants an access token to be asked is asked for one ([`OwnTokens`]).
//!
//! NRFs of one set know the same, so whoever answers is asked until it fails. What a profile says, and what is made of
//! the answers, is the function's own.

mod nrfs;
mod presence;
mod subscription;
mod tokens;
mod turns;

pub use nrfs::{Answer, Nrfs};
pub use presence::{Presence, deregister, stay_registered};
pub use subscription::Subscription;
pub use tokens::OwnTokens;
pub use turns::Turns;

/// Where the profile of an NF instance is (TS 29.510 §6.1.3.3.2).
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
