//! NRFs as this SCP uses them: whom it learns the network from, and whom it asks for consumers that delegate
//! their discovery.

mod book;
pub(crate) mod federation;
mod learner;
mod nrf;
mod own_profile;
mod search;
mod sets;

pub(crate) use book::{Heard, change_of};
pub(crate) use learner::statics;
pub(crate) use learner::{Learner, callback_set};
pub(crate) use search::{Failure, Searcher};
pub(crate) use sets::{Choice, NotNamed, Sets};
