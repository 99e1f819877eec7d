//! NRFs as this SCP uses them: whom it learns the network from, and whom it asks for consumers that delegate
//! their discovery.

mod learner;
mod own_profile;
mod search;

pub(crate) use learner::statics;
pub(crate) use learner::{CALLBACK_PATH, Change, Learner, change_of};
pub(crate) use search::{Failure, Searcher};
