//! Clients that are not served yet: bounded in all and by address, so that silent ones keep no others out.
//!
//! A client is *silent* until its first byte, and half-open until its message processor has answered. Diameter clients
//! speak first (RFC 6733 §5.3), so nothing is lost by waiting for the first byte before a processor gets the connection.
//! At a bound the front end drops the oldest silent client, of the address that has the most: a newcomer that
//! speaks is served also where hundreds are silent.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::config;

/// The half-open connections of a set, of all workers.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    total: usize,
    /// Oldest first. Addresses without one have no entry.
    by_address: HashMap<IpAddr, VecDeque<Arc<Client>>>,
}

#[derive(Debug, Default)]
struct Client {
    has_spoken: AtomicBool,
    dropped: Notify,
}

/// A half-open connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    of: Arc<Handshakes>,
    address: IpAddr,
    client: Arc<Client>,
}

impl Handshakes {
    /// Counts a client from now on. None: the bounds are reached by clients that have spoken.
    pub(crate) fn begin(self: &Arc<Self>, address: IpAddr, bounds: &config::Handshakes) -> Option<HalfOpen> {
        let address = group(address);
        let mut table = self.0.lock();
        let held = table.by_address.get(&address).map_or(0, VecDeque::len);
        if held >= bounds.per_address && !table.drop_silent(address) {
            return None;
        }
        if table.total >= bounds.maximum {
            let most = table.by_address.iter().max_by_key(|(_, clients)| clients.len());
            let most = most.map(|(address, _)| *address)?;
            if !table.drop_silent(most) {
                return None;
            }
        }
        let client = Arc::<Client>::default();
        table.total += 1;
        table
            .by_address
            .entry(address)
            .or_default()
            .push_back(client.clone());
        Some(HalfOpen {
            of: self.clone(),
            address,
            client,
        })
    }
}

impl Table {
    /// Drops the oldest silent client of an address; false: there is none.
    fn drop_silent(&mut self, address: IpAddr) -> bool {
        let Some(clients) = self.by_address.get_mut(&address) else {
            return false;
        };
        let silent = |client: &Arc<Client>| !client.has_spoken.load(Ordering::Relaxed);
        let Some(client) = clients.iter().position(silent).and_then(|at| clients.remove(at)) else {
            return false;
        };
        client.dropped.notify_one();
        self.removed(address);
        true
    }

    fn removed(&mut self, address: IpAddr) {
        self.total = self.total.saturating_sub(1);
        if self.by_address.get(&address).is_some_and(VecDeque::is_empty) {
            self.by_address.remove(&address);
        }
    }
}

impl HalfOpen {
    /// The client has sent its first byte: it is not dropped for others any more.
    pub(crate) fn spoke(&self) {
        self.client.has_spoken.store(true, Ordering::Relaxed);
    }

    /// Returns when this client was dropped for another one.
    pub(crate) async fn dropped(&self) {
        self.client.dropped.notified().await;
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        let mut table = self.of.0.lock();
        let Some(clients) = table.by_address.get_mut(&self.address) else {
            return;
        };
        let same = |client: &Arc<Client>| Arc::ptr_eq(client, &self.client);
        if let Some(at) = clients.iter().position(same) {
            clients.remove(at);
            table.removed(self.address);
        }
    }
}

/// Addresses that count together: a host has all of an IPv6 network of 64 bits.
pub(crate) fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let network = u128::from(v6) & !u128::from(u64::MAX);
            Ipv6Addr::from(network).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(maximum: usize, per_address: usize) -> config::Handshakes {
        config::Handshakes {
            maximum,
            per_address,
            ..config::Handshakes::default()
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_newcomer_takes_the_position_of_the_oldest_silent_client() {
        let all = Arc::<Handshakes>::default();
        let bounds = bounds(4, 2);
        let (a, b, c) = (ip("192.0.2.1"), ip("192.0.2.2"), ip("::ffff:192.0.2.1"));
        let first = all.begin(a, &bounds).unwrap();
        let second = all.begin(c, &bounds).unwrap();
        first.spoke();
        // The same address in another form: the second one is the oldest that is silent.
        let third = all.begin(a, &bounds).unwrap();
        third.spoke();
        assert!(all.begin(a, &bounds).is_none(), "both have spoken");
        drop(second);
        let others = [all.begin(b, &bounds).unwrap(), all.begin(b, &bounds).unwrap()];
        assert_eq!(all.0.lock().total, 4);
        drop(first);
        let one_more = all.begin(ip("192.0.2.3"), &bounds).unwrap();
        assert_eq!(all.0.lock().total, 4);
        // At the bound in all, the address with the most loses one.
        let newest = all.begin(ip("192.0.2.4"), &bounds).unwrap();
        assert_eq!(all.0.lock().by_address.get(&b).map(VecDeque::len), Some(1));
        drop((third, others, one_more, newest));
        let table = all.0.lock();
        assert_eq!((table.total, table.by_address.len()), (0, 0));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        assert_eq!(group(ip("2001:db8::1")), group(ip("2001:db8::2")));
        assert_ne!(group(ip("2001:db8::1")), group(ip("2001:db8:0:1::1")));
        assert_eq!(group(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
    }
}
