//! A relay for TCP that delays the server's output, as a long path or a slow peer does.
//!
//! It parses no protocol. Each connection has two threads, one for each direction: it is meant for a few servers with a
//! low rate, such as the NRF of an SCP. Bytes in flight are bounded; the wire does not read more from the server until
//! there is room.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::server::Shared;
use super::stats::add;
use super::{Handle, Settings};

/// Connections at once; more are closed.
const MOST: u32 = 256;
/// Bytes of one read, and the number of such pieces in flight on one connection.
const PIECE: usize = 16 * 1024;
const ON_THE_WAY: usize = 4096;
/// Interval at which it checks for the stop and for new connections.
const LOOK: Duration = Duration::from_millis(5);
/// How long the server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A wire, listening.
#[derive(Debug)]
pub struct Wire {
    listener: TcpListener,
    address: SocketAddr,
    upstream: SocketAddr,
    latency: Duration,
    standing: Arc<AtomicU32>,
    shared: Arc<Shared>,
}

impl Wire {
    /// Binds the first address of the settings.
    ///
    /// # Errors
    /// When the address cannot be bound, or the settings name no server.
    pub fn bind(settings: &Settings) -> io::Result<Self> {
        let (Some(listen), Some(upstream)) = (settings.listen.first(), settings.upstream) else {
            return Err(io::Error::other("a wire needs `listen` and `upstream`"));
        };
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            upstream,
            latency: settings.latency.duration(),
            standing: Arc::default(),
            shared: Arc::default(),
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            shared: self.shared.clone(),
        }
    }

    /// Runs until [`Handle::stop`].
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn run(self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((near, _)) => self.accept(near)?,
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        Ok(())
    }

    fn accept(&self, near: TcpStream) -> io::Result<()> {
        if self.standing.load(Ordering::Relaxed) >= MOST {
            return Ok(());
        }
        add(&self.shared.counters.accepted, 1);
        self.standing.fetch_add(1, Ordering::Relaxed);
        let (upstream, latency) = (self.upstream, self.latency);
        let (standing, shared) = (self.standing.clone(), self.shared.clone());
        std::thread::Builder::new().name("wire".into()).spawn(move || {
            shared.counters.connections.fetch_add(1, Ordering::Relaxed);
            // Either end may close at any time; the close of its connection notifies the other end.
            let _ = join(&near, upstream, latency);
            let _ = near.shutdown(Shutdown::Both);
            shared.counters.connections.fetch_sub(1, Ordering::Relaxed);
            standing.fetch_sub(1, Ordering::Relaxed);
        })?;
        Ok(())
    }
}

/// Relays bytes in both directions until one end has closed.
fn join(near: &TcpStream, upstream: SocketAddr, latency: Duration) -> io::Result<()> {
    near.set_nonblocking(false)?;
    let far = TcpStream::connect_timeout(&upstream, CONNECT)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (sender, receiver) = sync_channel(ON_THE_WAY);
    std::thread::scope(|scope| {
        let at_once = scope.spawn(|| {
            let ended = io::copy(&mut &*near, &mut &far);
            let _ = far.shutdown(Shutdown::Both);
            ended
        });
        let later = scope.spawn(move || deliver(&receiver, near));
        let heard = listen(&far, latency, &sender);
        drop(sender);
        let _ = later.join();
        let _ = near.shutdown(Shutdown::Both);
        let _ = at_once.join();
        heard
    })
}

/// Reads the server's bytes, with the time at which they are due.
fn listen(mut far: &TcpStream, latency: Duration, sender: &SyncSender<(Instant, Vec<u8>)>) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = far.read(&mut piece)?;
        let heard = piece.get(..count).unwrap_or_default().to_vec();
        if count == 0 || sender.send((Instant::now() + latency, heard)).is_err() {
            return Ok(());
        }
    }
}

/// Writes the server's bytes when they are due.
fn deliver(receiver: &Receiver<(Instant, Vec<u8>)>, mut near: &TcpStream) {
    while let Ok((due, said)) = receiver.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if near.write_all(&said).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that echoes, and a wire to it.
    fn wired(latency: Duration) -> (SocketAddr, Handle, std::thread::JoinHandle<io::Result<()>>) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = server.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in server.incoming().map_while(Result::ok) {
                std::thread::spawn(move || io::copy(&mut &stream, &mut &stream));
            }
        });
        let wire = Wire::bind(&Settings {
            upstream: Some(upstream),
            latency: ::settings::Period::from_millis(latency.as_millis() as u64),
            ..Settings::default()
        });
        let wire = wire.unwrap();
        let (address, handle) = (wire.address(), wire.handle());
        (address, handle, std::thread::spawn(move || wire.run()))
    }

    #[test]
    fn bytes_arrive_complete_and_delayed() {
        const LATENCY: Duration = Duration::from_millis(100);
        let (address, handle, thread) = wired(LATENCY);
        let stream = TcpStream::connect(address).unwrap();
        let said: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| (&stream).write_all(&said).unwrap());
            let mut heard = vec![0; said.len()];
            (&stream).read_exact(&mut heard[..1]).unwrap();
            // Never earlier; how much later depends on the machine.
            assert!(began.elapsed() >= LATENCY);
            (&stream).read_exact(&mut heard[1..]).unwrap();
            assert!(heard == said);
        });
        assert_eq!(handle.stats().accepted, 1);
        handle.stop();
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn a_close_reaches_the_other_end() {
        let (address, handle, thread) = wired(Duration::ZERO);
        let stream = TcpStream::connect(address).unwrap();
        (&stream).write_all(b"x").unwrap();
        let mut one = [0];
        (&stream).read_exact(&mut one).unwrap();
        assert_eq!(handle.stats().connections, 1);
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&stream).read(&mut one).unwrap(), 0);
        handle.stop();
        thread.join().unwrap().unwrap();
    }
}
