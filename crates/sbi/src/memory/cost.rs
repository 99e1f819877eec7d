//! What things take in memory.

/// A request in progress, its header fields and body left out: the engine's stream, the future, the parts of the head.
pub(crate) const REQUEST: usize = 4 * 1_024;
