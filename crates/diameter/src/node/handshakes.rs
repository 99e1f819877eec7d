//! Accepted connections that have not sent a valid CER, counted for the limits of them.

use std::collections::HashMap;
use std::net::IpAddr;

/// Handshakes in progress, in all and by address.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    total: usize,
    /// Addresses without one have no entry.
    by_address: HashMap<IpAddr, usize>,
}

impl Handshakes {
    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// Number of handshakes in progress of an address.
    pub(super) fn of(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    pub(super) fn begins(&mut self, address: IpAddr) {
        self.total += 1;
        *self.by_address.entry(address).or_default() += 1;
    }

    pub(super) fn ends(&mut self, address: IpAddr) {
        self.total = self.total.saturating_sub(1);
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_handshakes_takes_no_memory() {
        let [a, b] = ["127.0.0.1", "::1"].map(|text| text.parse::<IpAddr>().unwrap());
        let mut all = Handshakes::default();
        all.begins(a);
        all.begins(a);
        all.begins(b);
        assert_eq!((all.total(), all.of(a), all.of(b)), (3, 2, 1));
        all.ends(a);
        all.ends(b);
        assert_eq!((all.total(), all.of(a), all.of(b)), (1, 1, 0));
        all.ends(a);
        all.ends(a);
        assert_eq!((all.total(), all.by_address.len()), (0, 0));
    }
}
