//! How large an attack is.

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dose {
    /// For `make test`: small, and no timed bar.
    Quick,
    /// For `make attack`: as large as an attacker with one machine makes it.
    Full,
}
