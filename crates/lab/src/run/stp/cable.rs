//! A relay of TCP between two STPs that can be cut: what is on its way is lost then, as on a cut cable.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Octets that are relayed at once.
const GULP: usize = 64 * 1024;

/// A cable; it ends when it is dropped.
pub(super) struct Cable {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Both ends of the connections since the last cut.
    ends: Mutex<Vec<TcpStream>>,
    has_ended: AtomicBool,
}

impl Cable {
    /// Relays each connection to `far`. The near end connects to [`Self::address`].
    pub(super) fn to(far: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let known = shared.clone();
        std::thread::Builder::new()
            .name("cable".into())
            .spawn(move || accept(&listener, far, &known))?;
        Ok(Self { address, shared })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends what is connected through it.
    pub(super) fn cut(&self) {
        self.shared.cut();
    }
}

impl Shared {
    fn cut(&self) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        for end in ends.drain(..) {
            // One that has ended meanwhile cannot be shut down.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        self.cut();
        // The thread that accepts sees the end.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, far: SocketAddr, shared: &Arc<Shared>) {
    while let Ok((near, _)) = listener.accept() {
        if shared.has_ended.load(Ordering::Relaxed) {
            return;
        }
        // Without the far end the near one is closed, and connects again.
        let _ = join(near, far, shared);
    }
}

fn join(near: TcpStream, far: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    let far = TcpStream::connect(far)?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
    }
    let (back, forth) = ((far.try_clone()?, near.try_clone()?), (near, far));
    let mut ends = shared.ends.lock().unwrap_or_else(PoisonError::into_inner);
    ends.push(forth.0.try_clone()?);
    ends.push(forth.1.try_clone()?);
    drop(ends);
    for (from, to) in [back, forth] {
        std::thread::Builder::new()
            .name("cable".into())
            .spawn(move || relay(from, to))?;
    }
    Ok(())
}

/// Relays one direction until an end is closed; then both are.
fn relay(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; GULP];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            break;
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_cable_ends_its_connections_and_takes_others() {
        let far = TcpListener::bind("127.0.0.1:0").unwrap();
        let cable = Cable::to(far.local_addr().unwrap()).unwrap();
        for _ in 0..2 {
            let mut one = TcpStream::connect(cable.address()).unwrap();
            let (mut other, _) = far.accept().unwrap();
            let mut octets = [0; 4];
            one.write_all(b"ping").unwrap();
            other.read_exact(&mut octets).unwrap();
            other.write_all(b"pong").unwrap();
            one.read_exact(&mut octets).unwrap();
            assert_eq!(&octets, b"pong");
            cable.cut();
            for end in [&mut one, &mut other] {
                assert!(matches!(end.read(&mut octets), Ok(0) | Err(_)));
            }
        }
    }
}
