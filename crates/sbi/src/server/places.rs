//! The connection slots of a listener: which connections hold them, and which one is evicted for a new connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use slab::Slab;

use super::activity::Activity;
use super::config::ServerConfig;
use crate::memory::{Memory, Notice};

/// Idle connections that one search collects: a search scans all connections.
const FOUND: usize = 64;
/// After a search without a result, the next one starts after this time.
const REST: Duration = Duration::from_millis(100);

/// The connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Places {
    taken: RefCell<Slab<Rc<Place>>>,
    sources: RefCell<AHashMap<IpAddr, u32>>,
    half_open: Cell<u32>,
    /// The half-open connections in the order they came, and others that have become open since.
    newest: RefCell<VecDeque<(Instant, usize)>>,
    /// Connections that were notified to close and are still open.
    leaving: Cell<u32>,
    /// Those of them that can be aborted, the one notified first at the front.
    going: RefCell<VecDeque<Weak<Place>>>,
    /// Idle connections that were found, the one to close first at the end.
    idle: RefCell<Vec<(Instant, usize)>>,
    searched: Cell<Option<Instant>>,
}

/// State of a connection, for the listener.
#[derive(Debug)]
struct Place {
    activity: Rc<Activity>,
    source: IpAddr,
    stage: Cell<Stage>,
    /// When it was accepted, or when its last request began.
    since: Cell<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// TLS and preface are not finished.
    HalfOpen,
    Open,
    Leaving,
}

/// The slot of a connection; free when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    places: Rc<Places>,
    place: Rc<Place>,
    key: usize,
}

/// Why a new connection gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// All slots are held by connections with requests in flight.
    Full,
    /// Its address holds as many slots as it may.
    Address,
}

/// The connection that has to close for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Displaced {
    HalfOpen,
    Idle,
}

impl Places {
    /// A slot for a connection from `address`, and the connection that is evicted for it.
    pub(super) fn admit(
        self: &Rc<Self>,
        address: IpAddr,
        config: &ServerConfig,
        memory: &Rc<Memory>,
        now: Instant,
    ) -> Result<(Seat, Option<Displaced>), Refused> {
        let source = source_of(address);
        let of_source = self.sources.borrow().get(&source).copied().unwrap_or(0);
        let limit = config.max_connections_per_address;
        if limit > 0 && of_source >= limit {
            return Err(Refused::Address);
        }
        let mut displaced = None;
        let limit = config.max_half_open;
        if limit > 0 && self.half_open.get() >= limit && self.displace_half_open() {
            displaced = Some(Displaced::HalfOpen);
        }
        let staying = self.taken.borrow().len() - self.leaving.get() as usize;
        if staying >= config.max_connections as usize {
            // A connection that closes sends GOAWAY first, which takes a moment. Where too many do so at once, the one
            // notified first is aborted.
            let may_leave = config.max_connections / 16 + 16;
            let moves = self.leaving.get() < may_leave || self.cut_one_off();
            if !moves || !self.displace_idle(now) {
                return Err(Refused::Full);
            }
            displaced = Some(Displaced::Idle);
        }
        let place = Rc::new(Place {
            activity: Activity::new(memory),
            source,
            stage: Cell::new(Stage::HalfOpen),
            since: Cell::new(now),
        });
        *self.sources.borrow_mut().entry(source).or_default() += 1;
        self.half_open.set(self.half_open.get() + 1);
        let key = self.taken.borrow_mut().insert(place.clone());
        self.remember_half_open(now, key);
        let places = self.clone();
        Ok((Seat { places, place, key }, displaced))
    }

    /// Evicts the oldest half-open connection: an honest client finishes the handshake soon.
    fn displace_half_open(&self) -> bool {
        while let Some((since, key)) = self.newest.borrow_mut().pop_front() {
            let found = self.taken.borrow().get(key).cloned();
            if let Some(place) = found.filter(|place| place.is_half_open_since(since)) {
                self.leave(&place);
                return true;
            }
        }
        false
    }

    /// Records a connection that is not open yet.
    fn remember_half_open(&self, since: Instant, key: usize) {
        let mut newest = self.newest.borrow_mut();
        newest.push_back((since, key));
        if newest.len() > 2 * self.half_open.get() as usize + FOUND {
            let taken = self.taken.borrow();
            newest.retain(|(since, key)| {
                taken
                    .get(*key)
                    .is_some_and(|place| place.is_half_open_since(*since))
            });
        }
    }

    /// Evicts the connection that has been idle for longest.
    fn displace_idle(&self, now: Instant) -> bool {
        loop {
            if self.idle.borrow().is_empty() && !self.search(now) {
                return false;
            }
            let Some((since, key)) = self.idle.borrow_mut().pop() else {
                return false;
            };
            let found = self.taken.borrow().get(key).cloned();
            // It may have had a request since it was found, or be another one.
            if let Some(place) = found.filter(|place| place.is_idle() && place.since.get() == since) {
                self.leave(&place);
                return true;
            }
        }
    }

    /// Aborts a closing connection; returns whether there was one.
    fn cut_one_off(&self) -> bool {
        while let Some(place) = self.going.borrow_mut().pop_front() {
            // A connection that got a request before it was notified answers first.
            if let Some(place) = place.upgrade().filter(|place| place.activity.open() == 0) {
                place.activity.account().notify(Notice::Close);
                return true;
            }
        }
        false
    }

    /// Finds the connections that have been idle for longest; whether there are any.
    fn search(&self, now: Instant) -> bool {
        let rests = |at: Instant| now.saturating_duration_since(at) < REST;
        if self.searched.get().is_some_and(rests) {
            return false;
        }
        let mut idle = self.idle.borrow_mut();
        idle.clear();
        let taken = self.taken.borrow();
        let each = taken.iter().filter(|(_, place)| place.is_idle());
        idle.extend(each.map(|(key, place)| (place.since.get(), key)));
        if idle.len() > FOUND {
            idle.select_nth_unstable(FOUND);
            idle.truncate(FOUND);
        }
        idle.sort_unstable_by(|a, b| b.cmp(a));
        self.searched.set(idle.is_empty().then_some(now));
        !idle.is_empty()
    }

    fn leave(&self, place: &Rc<Place>) {
        self.moves_on(place, Stage::Leaving);
        let mut going = self.going.borrow_mut();
        going.push_back(Rc::downgrade(place));
        if going.len() > 2 * self.leaving.get() as usize + FOUND {
            going.retain(|place| place.strong_count() > 0);
        }
        drop(going);
        self.leaving.set(self.leaving.get() + 1);
        self.forget_source(place.source);
        place.activity.account().notify(Notice::Yield);
    }

    fn moves_on(&self, place: &Place, stage: Stage) {
        if place.stage.replace(stage) == Stage::HalfOpen {
            self.half_open.set(self.half_open.get() - 1);
        }
    }

    fn forget_source(&self, source: IpAddr) {
        let mut sources = self.sources.borrow_mut();
        if let Some(count) = sources.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                sources.remove(&source);
            }
        }
    }
}

impl Place {
    fn is_half_open_since(&self, since: Instant) -> bool {
        self.stage.get() == Stage::HalfOpen && self.since.get() == since
    }

    fn is_idle(&self) -> bool {
        self.stage.get() == Stage::Open && self.activity.open() == 0
    }
}

impl Seat {
    pub(super) fn activity(&self) -> &Rc<Activity> {
        &self.place.activity
    }

    /// TLS and preface are finished.
    pub(super) fn opened(&self, now: Instant) {
        if self.place.stage.get() == Stage::HalfOpen {
            self.places.moves_on(&self.place, Stage::Open);
            self.place.since.set(now);
        }
    }

    /// A request has begun.
    pub(super) fn used(&self, now: Instant) {
        self.place.since.set(now);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let places = &self.places;
        match self.place.stage.get() {
            Stage::Leaving => {
                places.leaving.set(places.leaving.get() - 1);
                let mut going = places.going.borrow_mut();
                while going.front().is_some_and(|place| {
                    let place = place.upgrade();
                    place.is_none_or(|place| Rc::ptr_eq(&place, &self.place))
                }) {
                    going.pop_front();
                }
            }
            Stage::HalfOpen | Stage::Open => {
                places.moves_on(&self.place, Stage::Open);
                places.forget_source(self.place.source);
            }
        }
        places.taken.borrow_mut().try_remove(self.key);
    }
}

/// Whose connections are counted together: an address, of IPv6 the /64 that a host has to itself (RFC 4291 §2.5.1).
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let bits = u128::from(v6) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(bits))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(connections: u32, per_address: u32, half_open: u32) -> ServerConfig {
        ServerConfig {
            max_connections: connections,
            max_connections_per_address: per_address,
            max_half_open: half_open,
            ..ServerConfig::default()
        }
    }

    struct Listener(Rc<Places>, Rc<Memory>, ServerConfig, Instant);

    impl Listener {
        fn new(config: ServerConfig) -> Self {
            Self(Rc::default(), Rc::default(), config, Instant::now())
        }

        fn admit(&self, address: &str, second: u64) -> Result<(Seat, Option<Displaced>), Refused> {
            let now = self.3 + Duration::from_secs(second);
            self.0.admit(address.parse().unwrap(), &self.2, &self.1, now)
        }

        fn open(&self, address: &str, second: u64) -> Seat {
            let (seat, _) = self.admit(address, second).unwrap();
            seat.opened(self.3 + Duration::from_secs(second));
            seat
        }
    }

    fn notice(seat: &Seat) -> Option<Notice> {
        seat.activity().account().notice()
    }

    #[test]
    fn the_longest_idle_connection_is_evicted() {
        let listener = Listener::new(config(3, 0, 0));
        let seats: Vec<_> = (0..3).map(|i| listener.open("10.0.0.1", i)).collect();
        let busy = seats[0].activity().begin();
        seats[1].used(listener.3 + Duration::from_secs(5));
        let (newcomer, displaced) = listener.admit("10.0.0.1", 6).unwrap();
        assert_eq!(displaced, Some(Displaced::Idle));
        assert_eq!(
            seats.iter().map(notice).collect::<Vec<_>>(),
            [None, None, Some(Notice::Yield)]
        );
        newcomer.opened(listener.3);
        let busy_too = [seats[1].activity().begin(), newcomer.activity().begin()];
        assert_eq!(listener.admit("10.0.0.1", 7).unwrap_err(), Refused::Full);
        // A connection that closes is not counted twice, and all slots are free at the end.
        drop(seats);
        drop((busy, busy_too, newcomer));
        let places = &listener.0;
        assert_eq!(
            (
                places.taken.borrow().len(),
                places.leaving.get(),
                places.half_open.get()
            ),
            (0, 0, 0)
        );
        assert!(places.sources.borrow().is_empty());
    }

    #[test]
    fn a_connection_that_is_slow_to_close_is_aborted() {
        let listener = Listener::new(config(40, 0, 0));
        let seats: Vec<_> = (0..40).map(|i| listener.open("10.0.0.1", i)).collect();
        // 40 / 16 + 16 may be leaving at a time.
        let newcomers: Vec<_> = (0..20)
            .map(|i| listener.admit("10.0.0.1", 50 + i).unwrap())
            .collect();
        assert!(
            newcomers
                .iter()
                .all(|(_, displaced)| *displaced == Some(Displaced::Idle))
        );
        let cut = |seats: &[Seat]| {
            seats
                .iter()
                .filter(|seat| notice(seat) == Some(Notice::Close))
                .count()
        };
        assert_eq!(cut(&seats), 2, "those beyond 18");
        assert_eq!(notice(&seats[0]), Some(Notice::Close), "the first to leave");
        drop(seats);
        assert!(listener.0.going.borrow().is_empty() && listener.0.leaving.get() == 0);
    }

    #[test]
    fn connections_of_an_address_are_bounded() {
        let listener = Listener::new(config(100, 2, 0));
        let seats = ["10.0.0.1", "10.0.0.1", "2001:db8::1", "2001:db8::2"].map(|a| listener.open(a, 0));
        for refused in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::3"] {
            assert_eq!(listener.admit(refused, 1).unwrap_err(), Refused::Address);
        }
        assert!(listener.admit("10.0.0.2", 1).is_ok());
        assert!(listener.admit("2001:db8:0:1::1", 1).is_ok());
        drop(seats);
        assert!(listener.admit("10.0.0.1", 1).is_ok());
    }

    #[test]
    fn the_oldest_half_open_connection_is_evicted() {
        let listener = Listener::new(config(100, 0, 2));
        let open = listener.open("10.0.0.1", 0);
        let seats: Vec<_> = (1..3).map(|i| listener.admit("10.0.0.1", i).unwrap().0).collect();
        let (_newcomer, displaced) = listener.admit("10.0.0.2", 3).unwrap();
        assert_eq!(displaced, Some(Displaced::HalfOpen));
        assert_eq!(notice(&open), None);
        assert_eq!(
            seats.iter().map(notice).collect::<Vec<_>>(),
            [Some(Notice::Yield), None]
        );
        for i in 4..1_000 {
            drop(listener.open("10.0.0.1", i));
        }
        assert!(
            listener.0.newest.borrow().len() < 100,
            "connections that have become open are removed from the list"
        );
    }
}
