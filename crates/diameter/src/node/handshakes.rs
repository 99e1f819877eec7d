//! Accepted connections that have not sent a valid CER, for the limits of them.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::connection::ConnectionId;

/// Handshakes in progress, in all and by address.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    total: usize,
    /// Of each address the oldest first. Addresses without one have no entry.
    by_address: HashMap<IpAddr, VecDeque<ConnectionId>>,
}

impl Handshakes {
    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// The oldest handshake of an address that has this many or more.
    pub(super) fn oldest(&self, address: IpAddr, most: usize) -> Option<ConnectionId> {
        let all = self.by_address.get(&address).filter(|all| all.len() >= most)?;
        all.front().copied()
    }

    pub(super) fn begins(&mut self, address: IpAddr, connection: ConnectionId) {
        self.total += 1;
        self.by_address.entry(address).or_default().push_back(connection);
    }

    pub(super) fn ends(&mut self, address: IpAddr, connection: ConnectionId) {
        self.total = self.total.saturating_sub(1);
        if let Some(all) = self.by_address.get_mut(&address) {
            all.retain(|one| *one != connection);
            if all.is_empty() {
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
        let [first, second, third] = [1, 2, 3].map(|slot| ConnectionId { slot, generation: 1 });
        let mut all = Handshakes::default();
        all.begins(a, first);
        all.begins(a, second);
        all.begins(b, third);
        assert_eq!(
            (all.total(), all.oldest(a, 2), all.oldest(b, 2)),
            (3, Some(first), None)
        );
        all.ends(a, first);
        all.ends(b, third);
        assert_eq!(
            (all.total(), all.oldest(a, 1), all.oldest(b, 1)),
            (1, Some(second), None)
        );
        all.ends(a, second);
        all.ends(a, second);
        assert_eq!((all.total(), all.by_address.len()), (0, 0));
    }
}
