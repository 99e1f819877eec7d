//! The bounded positions of TCP connections.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::config::Tcp;

/// The connections of a worker, in the order in which they were last used.
#[derive(Default)]
pub(super) struct Places(RefCell<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    /// The number of the last use, by which the longest idle one is the first.
    by_use: BTreeSet<(u64, u64)>,
    open: HashMap<u64, Open>,
    addresses: HashMap<IpAddr, usize>,
}

struct Open {
    used: u64,
    address: IpAddr,
    evicted: Rc<Notify>,
}

/// A position, held by its connection.
pub(super) struct Place {
    places: Rc<Places>,
    number: u64,
    evicted: Rc<Notify>,
}

/// What a new connection gets.
pub(super) enum Admission {
    Place(Place),
    /// A position; the longest idle connection has lost it.
    Evicted(Place),
    /// Its address has as many as it may have.
    TooMany,
}

impl Places {
    /// Admits a connection.
    pub(super) fn admit(self: &Rc<Self>, address: IpAddr, bounds: &Tcp) -> Admission {
        let mut inner = self.0.borrow_mut();
        let address = address.to_canonical();
        if inner
            .addresses
            .get(&address)
            .is_some_and(|count| *count >= bounds.per_address)
        {
            return Admission::TooMany;
        }
        let has_evicted = inner.open.len() >= bounds.connections && inner.evict();
        let number = inner.tick();
        let evicted = Rc::new(Notify::new());
        let open = Open {
            used: number,
            address,
            evicted: evicted.clone(),
        };
        inner.open.insert(number, open);
        inner.by_use.insert((number, number));
        *inner.addresses.entry(address).or_default() += 1;
        drop(inner);
        let place = Place {
            places: self.clone(),
            number,
            evicted,
        };
        if has_evicted {
            Admission::Evicted(place)
        } else {
            Admission::Place(place)
        }
    }
}

impl Inner {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn evict(&mut self) -> bool {
        let longest = self.by_use.first().copied();
        let open = longest.and_then(|(_, number)| self.remove(number));
        open.is_some_and(|open| {
            open.evicted.notify_one();
            true
        })
    }

    fn remove(&mut self, number: u64) -> Option<Open> {
        let open = self.open.remove(&number)?;
        self.by_use.remove(&(open.used, number));
        if let Some(count) = self.addresses.get_mut(&open.address) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&open.address);
            }
        }
        Some(open)
    }
}

impl Place {
    /// Notes that a query has come.
    pub(super) fn used(&self) {
        let mut inner = self.places.0.borrow_mut();
        let inner = &mut *inner;
        let now = inner.tick();
        if let Some(open) = inner.open.get_mut(&self.number) {
            inner.by_use.remove(&(open.used, self.number));
            open.used = now;
            inner.by_use.insert((now, self.number));
        }
    }

    /// Returns when another connection has taken the position.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.borrow_mut().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_connection_gives_way_and_an_address_has_its_bound() {
        let places = Rc::new(Places::default());
        let bounds = Tcp {
            connections: 2,
            per_address: 2,
            ..Tcp::default()
        };
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let admit = |text: &str| places.admit(address(text), &bounds);
        let (Admission::Place(first), Admission::Place(second)) = (admit("192.0.2.1"), admit("192.0.2.1"))
        else {
            panic!("both have room");
        };
        assert!(matches!(admit("192.0.2.1"), Admission::TooMany));
        first.used();
        let Admission::Evicted(third) = admit("192.0.2.2") else {
            panic!("the second gives way");
        };
        let open = |place: &Place| places.0.borrow().open.contains_key(&place.number);
        assert!(open(&first) && !open(&second) && open(&third));
        drop((first, second, third));
        let inner = places.0.borrow();
        assert!(inner.open.is_empty() && inner.by_use.is_empty() && inner.addresses.is_empty());
    }
}
