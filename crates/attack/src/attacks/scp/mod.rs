//! Consumers of an SCP that want more than is theirs.

mod consumers;
mod forged;
mod poisoned;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    [forged::ALL, consumers::ALL, poisoned::ALL].concat()
}
