//! What admission asks of a message.

use std::time::Duration;

/// A message that asks for admission. Nothing is asked of it while there is no overload.
pub trait Offered {
    /// Its priority: 0 the most important, 31 the least (TS 29.500 §6.8.4).
    fn priority(&self) -> u8;

    /// Whether its sender no longer waits for the answer, when it has waited here for so long. `None`: it does not say.
    fn is_late(&self, _waited: Duration) -> Option<bool> {
        None
    }
}

/// A message of which only the priority is known.
impl Offered for u8 {
    fn priority(&self) -> u8 {
        *self
    }
}
