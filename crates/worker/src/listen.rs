//! A listener for each worker at the same address, between which the kernel spreads connections (`SO_REUSEPORT`).

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Backlog: connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 4_096;

/// Binds a listening socket, not blocking, at an address that other workers may bind, too.
///
/// # Errors
/// When another program has the address, or this machine does not.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = reserve(address)?;
    listen(&listener)?;
    Ok(listener)
}

/// Begins to accept at a socket of [`reserve`].
///
/// # Errors
/// When another program has begun to listen at the address.
pub fn listen(listener: &TcpListener) -> io::Result<()> {
    SockRef::from(listener).listen(BACKLOG)
}

/// As [`bind`], but connections are refused until [`listen`].
///
/// # Errors
/// When another program has the address, or this machine does not.
pub fn reserve(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        // `[::]` takes both families, as the listeners of Diameter do; any other address has one.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Whether a program listens at an address, whatever options it set. Nothing listens there meanwhile, so that no connection
/// is lost.
#[must_use]
pub fn is_taken(address: SocketAddr) -> bool {
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // Connections that have just ended do not count; without `SO_REUSEPORT` every listener does.
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.bind(&address.into())
    };
    bind().is_err_and(|error: io::Error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Binds an address once for each worker. `bind` returns the listener and its real address: for port 0 all workers
/// share the port that the first one got. Returns the listeners by worker, and the address.
///
/// # Errors
/// The first error of `bind`.
pub fn bind_each<L, E>(
    wanted: SocketAddr,
    workers: usize,
    mut bind: impl FnMut(SocketAddr) -> Result<(L, SocketAddr), E>,
) -> Result<(Vec<L>, SocketAddr), E> {
    let mut address = wanted;
    let mut listeners = Vec::with_capacity(workers);
    for _ in 0..workers {
        let (listener, at) = bind(address)?;
        address = at;
        listeners.push(listener);
    }
    Ok((listeners, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_address_accepts_when_it_listens() {
        let reserved = reserve(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = reserved.local_addr().unwrap();
        assert!(std::net::TcpStream::connect(address).is_err());
        listen(&reserved).unwrap();
        std::net::TcpStream::connect(address).unwrap();
    }

    #[test]
    fn an_address_is_taken_once_a_socket_listens() {
        let reserved = reserve(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = reserved.local_addr().unwrap();
        assert!(!is_taken(address));
        listen(&reserved).unwrap();
        assert!(is_taken(address));
        let everywhere = SocketAddr::from(([0, 0, 0, 0], address.port()));
        assert!(is_taken(everywhere), "all addresses include this one");
        drop(reserved);
        assert!(!is_taken(address));
    }

    #[test]
    fn all_addresses_take_both_families() {
        let Ok(listener) = bind("[::]:0".parse().unwrap()) else {
            eprintln!("skipped: this machine has no IPv6");
            return;
        };
        let port = listener.local_addr().unwrap().port();
        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        std::net::TcpStream::connect(("::1", port)).unwrap();
    }

    #[test]
    fn all_workers_have_the_port_of_the_first() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = bind_each(local, 3, |address| {
            let listener = bind(address)?;
            let at = listener.local_addr()?;
            Ok::<_, io::Error>((listener, at))
        });
        let (listeners, address) = bound.unwrap();
        assert_ne!(address.port(), 0);
        let ports = listeners.iter().map(|one| one.local_addr().unwrap().port());
        assert_eq!(ports.collect::<Vec<_>>(), [address.port(); 3]);
    }
}
