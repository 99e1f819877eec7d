//! Ports for programs whose settings name a port before they start: peers of tests, processes of the laboratory.
//!
//! A listener at port 0 that is closed again is not enough: until the program listens, the kernel may give the same port
//! to a connection, or to the next caller.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below the range from which Linux takes the ports of connections and of listeners at port 0
/// (`net.ipv4.ip_local_port_range`), so that the kernel gives none of these away.
const RANGE: std::ops::Range<u16> = 10_000..32_768;

/// An address of 127.0.0.1 at which no program listens.
///
/// # Errors
/// When there is none.
pub fn address() -> io::Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port()?)))
}

/// A port of 127.0.0.1 at which no program listens.
///
/// # Errors
/// When there is none.
pub fn port() -> io::Result<u16> {
    row(1, 1)
}

/// The first of `ports` ports in a row at which no program listens, at 127.0.0.1 to 127.0.0.`hosts`. A process gets a port
/// once, until it has gone through all of them.
///
/// # Errors
/// When there are none.
pub fn row(ports: u16, hosts: u8) -> io::Result<u16> {
    static SOURCE: LazyLock<Source> = LazyLock::new(Source::default);

    SOURCE.row(ports, hosts)
}

struct Source {
    /// Processes that run at the same time begin at different places.
    begin: usize,
    given: AtomicUsize,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            begin: rand::random_range(0..RANGE.len()),
            given: AtomicUsize::new(0),
        }
    }
}

impl Source {
    fn row(&self, ports: u16, hosts: u8) -> io::Result<u16> {
        let is_free = |port: u16| {
            (1..=hosts).all(|host| TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), port)).is_ok())
        };
        for _ in 0..RANGE.len() {
            let given = self.given.fetch_add(usize::from(ports), Ordering::Relaxed);
            let first = RANGE.start + ((self.begin + given) % RANGE.len()) as u16;
            if first + ports <= RANGE.end && (first..first + ports).all(is_free) {
                return Ok(first);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("no {ports} free ports in a row within {RANGE:?}, at 127.0.0.1 to 127.0.0.{hosts}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_process_gets_each_port_once() {
        let source = Source::default();
        let rows: Vec<_> = std::thread::scope(|scope| {
            let take = || (0..200).map(|_| source.row(3, 1).unwrap()).collect::<Vec<_>>();
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        let mut ports = BTreeSet::new();
        for first in rows {
            assert!((first..first + 3).all(|port| ports.insert(port)), "{first}");
        }
    }

    #[test]
    fn a_port_in_use_is_left_out() {
        let source = Source::default();
        let taken = source.row(1, 1).unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).unwrap();
        assert!((0..RANGE.len() + 10).all(|_| source.row(1, 1).unwrap() != taken));
    }
}
