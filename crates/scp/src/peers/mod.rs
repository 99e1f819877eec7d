//! NRFs as this SCP uses them: whom it learns the network from, and whom it asks for consumers that delegate
//! their discovery.

pub(crate) mod federation;
mod learner;
mod own_profile;
mod search;
mod sets;

pub(crate) use learner::statics;
pub(crate) use learner::{Heard, Learner, callback_set, change_of};
pub(crate) use search::{Failure, Searcher};
pub(crate) use sets::Sets;
