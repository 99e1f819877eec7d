//! The properties of a message that admission needs.

use std::time::Duration;

/// A message offered for admission. The controller reads its properties only under overload.
pub trait Offered {
    /// Its priority: 0 the most important, 31 the least (TS 29.500 §6.8.4).
    fn priority(&self) -> u8;

    /// Whether its sender has given up after the message has waited here for this time. `None`: the message names no limit.
    fn is_late(&self, _waited: Duration) -> Option<bool> {
        None
    }
}

/// A bare priority as a message.
impl Offered for u8 {
    fn priority(&self) -> u8 {
        *self
    }
}
