//! The priority of Diameter requests, where a worker refuses some because it has too much to do.

use crate::Offered;

/// Priority of a Diameter request that does not say (RFC 7944 §9.1).
const USUAL: u8 = 10;

/// The priority of a Diameter request (DRMP, RFC 7944); none: it has none.
#[derive(Clone, Copy, Debug)]
pub struct Drmp(pub Option<u8>);

impl Offered for Drmp {
    fn priority(&self) -> u8 {
        // 16 priorities there, 32 here.
        self.0.unwrap_or(USUAL).min(15) * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diameter_priorities_are_those_of_messages() {
        let priorities = [Some(0), Some(2), None, Some(15), Some(99)].map(|drmp| Drmp(drmp).priority());
        assert_eq!(priorities, [0, 4, 20, 30, 30]);
    }
}
