//! NRFs as this SCP uses them: whom it learns the network from, and whom it asks for consumers that delegate
//! their discovery.

mod book;
mod callbacks;
pub(crate) mod federation;
mod learner;
mod lookups;
mod nrf;
mod own_profile;
mod search;
mod sets;

pub(crate) use book::{Heard, hint_of};
pub(crate) use callbacks::{Callbacks, Called};
pub(crate) use learner::Learner;
pub(crate) use learner::statics;
pub(crate) use search::{Failure, Searcher};
pub(crate) use sets::{Choice, NotNamed, Sets};
