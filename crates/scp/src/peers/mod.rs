//! NRFs as this SCP uses them: whom it learns the network from, and whom it asks for consumers that delegate
//! their discovery.

mod answers;
mod book;
mod callbacks;
mod learner;
mod lookups;
mod nrf;
mod own_profile;
mod search;

pub(crate) use answers::Answers;
pub(crate) use book::{Heard, hint_of};
pub(crate) use callbacks::{Callbacks, Called};
pub(crate) use learner::Learner;
pub(crate) use learner::statics;
pub(crate) use search::Searcher;
