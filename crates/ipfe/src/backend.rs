//! The message processors or servers behind an address: their state, and the selection for a new connection.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use ipnet::IpNet;
use parking_lot::Mutex;
use serde::Serialize;

use crate::config::{self, EgressSet, TargetSet, most};
use crate::handshakes::{Handshakes, group};

/// State of a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// It does not answer.
    Down = 0,
    /// It keeps its connections and takes no new ones.
    Stasis = 1,
    /// It takes connections.
    Up = 2,
}

impl State {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "unavailable",
            Self::Stasis => "stasis",
            Self::Up => "available",
        }
    }
}

/// A processor, or an address of a server.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    /// Whether it gets a PROXY header before the client's bytes.
    pub(crate) announces: bool,
    state: AtomicU8,
    misses: AtomicU32,
    connections: AtomicUsize,
    /// Whether a reload took it away; it keeps the connections that it has.
    is_removed: AtomicBool,
    /// Bytes from clients, and to them.
    pub(crate) bytes: [AtomicU64; 2],
}

/// The side of the message processors that an address is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// Clients connect to message processors.
    Ingress,
    /// Message processors connect to a server.
    Egress,
}

/// An address, and the processors or servers behind it.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) side: Side,
    behind: ArcSwap<Behind>,
    connections: AtomicUsize,
    /// Connections by address, where they are bounded.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    /// Clients that are not served yet.
    pub(crate) handshakes: Arc<Handshakes>,
}

/// What a reload changes of a set.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) backends: Vec<Arc<Backend>>,
    /// The source address of connections to them.
    pub(crate) from: Option<IpAddr>,
    /// The networks that clients may connect from; empty: any.
    admitted: Vec<IpNet>,
    most: usize,
    /// Of which from one address; 0: not bounded.
    most_per_address: usize,
}

/// A processor or server, and its state.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendRow {
    /// Name of the target set or egress set.
    pub target_set: String,
    /// Its name.
    pub name: String,
    /// Where it takes connections.
    pub address: SocketAddr,
    /// `available`, `stasis` or `unavailable`.
    pub state: &'static str,
    /// Connections it has through this front end.
    pub connections: usize,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
}

impl Backend {
    fn new(config: &config::Backend) -> Self {
        Self {
            name: config.name.clone(),
            address: config.address,
            admin: config.admin,
            announces: config.proxy_protocol,
            // Available until a check fails: a front end that has just started refuses no client for want of a check.
            state: AtomicU8::new(State::Up as u8),
            misses: AtomicU32::new(0),
            connections: AtomicUsize::new(0),
            is_removed: AtomicBool::new(false),
            bytes: Default::default(),
        }
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            2 => State::Up,
            1 => State::Stasis,
            _ => State::Down,
        }
    }

    /// Records the result of a check; `None`: no answer, which counts after `check.failures` checks in a row.
    pub(crate) fn found(&self, state: Option<State>, failures: u32) {
        match state {
            Some(state) => {
                self.misses.store(0, Ordering::Relaxed);
                self.state.store(state as u8, Ordering::Relaxed);
            }
            None if self.misses.fetch_add(1, Ordering::Relaxed) + 1 >= failures => {
                self.state.store(State::Down as u8, Ordering::Relaxed);
            }
            None => {}
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A connection within the bounds of its set, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    set: Arc<Set>,
    /// Its address, where it counts.
    address: Option<IpAddr>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.set.connections.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = self.address else { return };
        let mut by_address = self.set.by_address.lock();
        if let Some(count) = by_address.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                by_address.remove(&address);
            }
        }
    }
}

/// The bound that a connection would exceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// Of the set.
    Set,
    /// Of the client's address.
    Address,
}

/// A connection that counts for its processor, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) backend: Arc<Backend>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.backend.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Behind {
    /// Processors of a target set; those that existed `before` keep their state.
    pub(crate) fn of_target(config: &TargetSet, before: &[Arc<Backend>]) -> Self {
        Self {
            backends: backends(&config.backends, before),
            from: None,
            admitted: Vec::new(),
            most: most(config.max_connections),
            most_per_address: config.max_connections_per_address,
        }
    }

    /// Of an egress set.
    pub(crate) fn of_egress(config: &EgressSet, before: &[Arc<Backend>]) -> Self {
        let servers = config.servers.iter().map(|address| config::Backend {
            name: address.to_string(),
            address: *address,
            ..config::Backend::default()
        });
        let servers: Vec<_> = servers.collect();
        Self {
            backends: backends(&servers, before),
            from: config.from,
            admitted: match config.processors.is_empty() {
                true => this_machine(),
                false => config.processors.clone(),
            },
            most: most(config.max_connections),
            most_per_address: 0,
        }
    }
}

fn backends(wanted: &[config::Backend], before: &[Arc<Backend>]) -> Vec<Arc<Backend>> {
    let each = wanted.iter().map(|one| {
        let same = |known: &&Arc<Backend>| {
            (&known.name, known.address) == (&one.name, one.address)
                && (known.admin, known.announces) == (one.admin, one.proxy_protocol)
        };
        match before.iter().find(same) {
            Some(known) => known.clone(),
            None => Arc::new(Backend::new(one)),
        }
    });
    each.collect()
}

/// The loopback addresses.
fn this_machine() -> Vec<IpNet> {
    let loopback = |ip: IpAddr, bits| IpNet::new(ip, bits).ok();
    let v4 = loopback(IpAddr::from([127, 0, 0, 0]), 8);
    let v6 = loopback(std::net::Ipv6Addr::LOCALHOST.into(), 128);
    v4.into_iter().chain(v6).collect()
}

impl Set {
    pub(crate) fn new(name: &str, side: Side, behind: Behind) -> Self {
        Self {
            name: name.to_owned(),
            side,
            behind: ArcSwap::from_pointee(behind),
            connections: AtomicUsize::new(0),
            by_address: Mutex::default(),
            handshakes: Arc::default(),
        }
    }

    /// The processors or servers behind it now.
    pub(crate) fn behind(&self) -> Arc<Behind> {
        self.behind.load_full()
    }

    /// Takes the processors of a reload. Connections of removed processors stay. Returns the new processors.
    pub(crate) fn replace(&self, now: Behind) -> Vec<Arc<Backend>> {
        let before = self.behind();
        let is_in =
            |list: &[Arc<Backend>], one: &Arc<Backend>| list.iter().any(|each| Arc::ptr_eq(each, one));
        for gone in before.backends.iter().filter(|one| !is_in(&now.backends, one)) {
            gone.is_removed.store(true, Ordering::Relaxed);
        }
        let added = now.backends.iter().filter(|one| !is_in(&before.backends, one));
        let added = added.cloned().collect();
        self.behind.store(Arc::new(now));
        added
    }

    /// Whether a client at this address may connect.
    pub(crate) fn admits(&self, client: IpAddr) -> bool {
        let behind = self.behind.load();
        let client = client.to_canonical();
        behind.admitted.is_empty() || behind.admitted.iter().any(|network| network.contains(&client))
    }

    /// Counts a connection of this address from now on, within the bounds of the set. Other workers count at the same
    /// time, so the check and the count are one step.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Result<Admitted, Full> {
        let (most, most_per_address) = {
            let behind = self.behind.load();
            (behind.most, behind.most_per_address)
        };
        let next = |now: usize| (now < most).then_some(now + 1);
        let counted = self
            .connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        counted.map_err(|_| Full::Set)?;
        let mut admitted = Admitted {
            set: self.clone(),
            address: None,
        };
        if most_per_address > 0 {
            let address = group(client);
            let mut by_address = self.by_address.lock();
            let count = by_address.entry(address).or_default();
            if *count >= most_per_address {
                drop(by_address);
                return Err(Full::Address);
            }
            *count += 1;
            admitted.address = Some(address);
        }
        Ok(admitted)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether a processor takes connections.
    pub(crate) fn is_available(&self) -> bool {
        let behind = self.behind.load();
        behind.backends.iter().any(|one| one.state() == State::Up)
    }

    /// Selects the processor of the next connection: of those that take connections and were not tried, the one with
    /// the fewest. Of a server it selects the first address that was not tried; an address that refused the last
    /// connection comes last, since only a connection shows that it is available again. The connection is counted at
    /// once, so that concurrent selections see it.
    pub(crate) fn choose(&self, tried: &[SocketAddr]) -> Option<Counted> {
        let behind = self.behind.load();
        let mut open = behind.backends.iter().filter(|one| !tried.contains(&one.address));
        let chosen = match self.side {
            Side::Ingress => open
                .filter(|one| one.state() == State::Up)
                .min_by_key(|one| one.connections())?,
            Side::Egress => {
                let first = open.clone().next()?;
                open.find(|one| one.state() == State::Up).unwrap_or(first)
            }
        };
        chosen.connections.fetch_add(1, Ordering::Relaxed);
        Some(Counted {
            backend: chosen.clone(),
        })
    }

    pub(crate) fn rows(&self) -> Vec<BackendRow> {
        let behind = self.behind();
        let row = |one: &Arc<Backend>| BackendRow {
            target_set: self.name.clone(),
            name: one.name.clone(),
            address: one.address,
            state: one.state().as_str(),
            connections: one.connections(),
            bytes_in: one.bytes[0].load(Ordering::Relaxed),
            bytes_out: one.bytes[1].load(Ordering::Relaxed),
        };
        behind.backends.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_go_to_the_least_busy_processor_and_never_into_stasis() {
        let backend = |number: u16| config::Backend {
            name: format!("mp{number}"),
            address: SocketAddr::from(([127, 0, 0, 1], number)),
            ..config::Backend::default()
        };
        let settings = TargetSet {
            backends: vec![backend(1), backend(2), backend(3)],
            max_connections: 7,
            ..TargetSet::default()
        };
        let behind = Behind::of_target(&settings, &[]);
        let backends = behind.backends.clone();
        let set = Arc::new(Set::new("tsa", Side::Ingress, behind));
        let mut held: Vec<Counted> = (0..6).filter_map(|_| set.choose(&[])).collect();
        let counts = || {
            let each = backends.iter().map(|one| one.connections());
            each.collect::<Vec<_>>()
        };
        assert_eq!(counts(), [2, 2, 2]);
        backends[0].found(Some(State::Stasis), 2);
        held.pop();
        held.pop();
        held.extend((0..3).filter_map(|_| set.choose(&[])));
        assert_eq!(counts()[0], 2, "it keeps what it has: {:?}", counts());
        // One missed answer does not make the processor unavailable.
        backends[1].found(None, 2);
        assert_eq!(backends[1].state(), State::Up);
        backends[1].found(None, 2);
        let only = set.choose(&[]).unwrap();
        assert_eq!(only.backend.name, "mp3");
        assert!(set.choose(&[only.backend.address]).is_none());
        drop((only, held));
        assert_eq!(counts(), [0, 0, 0]);
        let client = IpAddr::from([127, 0, 0, 1]);
        let mut admitted: Vec<Admitted> = (0..9).filter_map(|_| set.admit(client).ok()).collect();
        assert_eq!((admitted.len(), set.connections()), (7, 7), "maxConnections");
        admitted.pop();
        assert_eq!(set.connections(), 6);
    }
}
