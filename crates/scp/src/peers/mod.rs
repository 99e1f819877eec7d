//! NRFs as peers of this SCP: they deliver the profiles and answer delegated discoveries.

mod answers;
mod book;
mod callbacks;
mod doubts;
mod learner;
mod lookups;
mod nrf;
mod own_profile;
mod search;

pub(crate) use answers::Answers;
pub(crate) use book::{Change, Heard, hint_of};
pub(crate) use callbacks::{Callbacks, Called};
pub(crate) use doubts::Doubts;
pub(crate) use learner::Learner;
pub(crate) use learner::statics;
pub(crate) use search::{Behalf, Searcher};
