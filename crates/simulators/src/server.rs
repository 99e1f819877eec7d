//! The event loop of a simulator: accept, read, wait as long as the latency says, answer.

use std::cmp::Ordering as Order;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ahash::AHashSet;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::exchange::Reply;
use super::link::Link;
use super::misbehave::Fate;
use super::reporting::Reporting;
use super::roles::Role;
use super::stats::add;
use super::{Counters, Misbehaviour, Settings, Stats};
use loadgen::engine::{Poller, Readiness, ServerTls, Socket, server_tls};

/// How exactly latencies are kept.
const TICK: Duration = Duration::from_millis(1);
/// Tokens from here on are listeners.
const LISTENERS: u64 = 1 << 32;
/// Bytes read at once.
const GULP: usize = 128 * 1024;

/// What other threads may do with a running simulator.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) stop: AtomicBool,
    changed: AtomicBool,
    misbehave: Mutex<Misbehaviour>,
}

impl Handle {
    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.counters.read()
    }

    /// Changes how it misbehaves.
    pub fn misbehave(&self, misbehaviour: Misbehaviour) {
        *self
            .shared
            .misbehave
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = misbehaviour;
        self.shared.changed.store(true, Ordering::Release);
    }

    /// How it is to misbehave from now on, if that has changed.
    pub(super) fn changed(&self) -> Option<Misbehaviour> {
        if !self.shared.changed.swap(false, Ordering::Acquire) {
            return None;
        }
        let misbehave = self.shared.misbehave.lock();
        Some(
            misbehave
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .clone(),
        )
    }

    /// Ends it.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// An answer that waits for its time.
#[derive(Debug)]
struct Waiting {
    due: Duration,
    link: usize,
    generation: u32,
    stream: u32,
    reply: Reply,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    /// The earliest is the greatest, as `BinaryHeap` wants it.
    fn cmp(&self, other: &Self) -> Order {
        other.due.cmp(&self.due)
    }
}

/// A simulator, listening.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    links: Vec<(u32, Option<Link>)>,
    free: Vec<usize>,
    /// Connections that something has happened to since they were tidied; some more than once.
    touched: Vec<usize>,
    poller: Poller,
    role: Role,
    latency: Duration,
    /// Producers that answer after another latency.
    far: AHashSet<u32>,
    far_latency: Duration,
    max_streams: u32,
    misbehave: Misbehaviour,
    random: SmallRng,
    tls: Option<ServerTls>,
    reporting: Option<Reporting>,
    /// Answers with the usual latency, which become due in the order of their requests.
    usual: VecDeque<Waiting>,
    /// The others.
    unusual: BinaryHeap<Waiting>,
    clock: Instant,
    shared: Arc<Shared>,
}

impl Server {
    /// Binds the listeners.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn bind(settings: &Settings) -> io::Result<Self> {
        Self::bind_as(settings, Role::new(settings))
    }

    /// As [`Server::bind`], with a role that settings cannot describe.
    ///
    /// # Errors
    /// As there.
    pub fn bind_as(settings: &Settings, role: Role) -> io::Result<Self> {
        let poller = Poller::new(TICK)?;
        let mut listeners = Vec::new();
        for address in settings.listen.iter() {
            let ports = if address.port() == 0 { settings.ports } else { 1 };
            for _ in 0..ports {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                poller.add(&listener, LISTENERS + listeners.len() as u64)?;
                listeners.push(listener);
            }
        }
        let addresses = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<io::Result<_>>()?;
        Ok(Self {
            listeners,
            addresses,
            links: Vec::new(),
            free: Vec::new(),
            touched: Vec::new(),
            poller,
            role,
            latency: settings.latency.duration(),
            far: settings.producer.far.numbers.iter().copied().collect(),
            far_latency: settings.producer.far.latency.duration(),
            max_streams: settings.max_streams,
            misbehave: settings.misbehave.clone(),
            random: SmallRng::seed_from_u64(settings.seed),
            reporting: Reporting::new(&settings.producer.reporting),
            tls: settings.tls.as_ref().map(server_tls).transpose()?,
            usual: VecDeque::new(),
            unusual: BinaryHeap::new(),
            clock: Instant::now(),
            shared: Arc::default(),
        })
    }

    /// The addresses it listens on.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
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
    /// When the system fails to wait for sockets.
    pub fn run(mut self) -> io::Result<()> {
        let mut ready: Vec<Readiness> = Vec::new();
        let mut buffer = vec![0; GULP];
        loop {
            let ticked = self.poller.wait(&mut ready)?;
            for event in &ready {
                match usize::try_from(event.token.wrapping_sub(LISTENERS)) {
                    Ok(at) if at < self.listeners.len() => self.accept(at),
                    _ => self.serve(*event, &mut buffer),
                }
            }
            if ticked {
                self.answer_due();
                if self.shared.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if let Some(changed) = self.handle().changed() {
                    self.misbehave = changed;
                }
            }
            self.tidy();
        }
    }

    fn accept(&mut self, at: usize) {
        while let Ok((stream, _)) = self.listeners[at].accept() {
            let socket = Socket::new(stream);
            let socket = match &self.tls {
                Some(tls) => socket.and_then(|socket| socket.secured(tls)),
                None => socket,
            };
            let Ok(socket) = socket else { continue };
            let slot = self.free.pop().unwrap_or_else(|| {
                self.links.push((0, None));
                self.links.len() - 1
            });
            if self.poller.add(&socket, slot as u64).is_err() {
                self.free.push(slot);
                continue;
            }
            self.links[slot].1 = Some(Link::new(socket, slot as u64, self.max_streams));
            self.touched.push(slot);
            add(&self.shared.counters.accepted, 1);
            add(&self.shared.counters.connections, 1);
        }
    }

    fn serve(&mut self, event: Readiness, buffer: &mut [u8]) {
        let slot = event.token as usize;
        let Some((generation, Some(link))) = self.links.get_mut(slot) else {
            return;
        };
        self.touched.push(slot);
        link.dirty |= event.writable;
        if !event.readable {
            return;
        }
        let now = self.clock.elapsed();
        let counters = &self.shared.counters;
        let mut at_once: Vec<(u32, Option<Reply>)> = Vec::new();
        let mut abort = false;
        let number = link.number;
        let is_far = number.is_some_and(|number| self.far.contains(&number));
        let latency = if is_far { self.far_latency } else { self.latency };
        link.receive(buffer, &mut |stream, request| {
            add(&counters.requests, 1);
            let mut reply = self.role.answer(&request);
            if let (Some(reporting), Some(number)) = (&mut self.reporting, number) {
                reply.headers = reporting.say(number, now, &mut self.random);
                let said = |name| u64::from(reply.headers.iter().any(|(one, _)| *one == name));
                add(&counters.loads, said("3gpp-sbi-lci"));
                add(&counters.overloads, said("3gpp-sbi-oci"));
            }
            if matches!(reply.status, 400 | 404 | 405) {
                add(&counters.bad_requests, 1);
            }
            let later = match self.misbehave.draw(&mut self.random) {
                Fate::Answer { later } => later,
                fate => {
                    add(&counters.misbehaved, 1);
                    match fate {
                        Fate::Close => abort = true,
                        Fate::Reset => at_once.push((stream, None)),
                        Fate::Error(status) => {
                            at_once.push((stream, Some(Reply::problem(status, "SYSTEM_FAILURE"))));
                        }
                        _ => {}
                    }
                    return;
                }
            };
            if latency + later == Duration::ZERO {
                add(&counters.answered, 1);
                at_once.push((stream, Some(reply)));
                return;
            }
            let due = now + latency + later;
            let waiting = Waiting {
                due,
                link: slot,
                generation: *generation,
                stream,
                reply,
            };
            if later.is_zero() && !is_far {
                self.usual.push_back(waiting);
            } else {
                self.unusual.push(waiting);
            }
        });
        for (stream, reply) in at_once {
            match reply {
                Some(reply) => link.answer(stream, &reply),
                None => link.reset(stream),
            }
        }
        if abort {
            link.abort();
        }
    }

    fn answer_due(&mut self) {
        let now = self.clock.elapsed();
        while let Some(waiting) = self.usual.pop_front_if(|waiting| waiting.due <= now) {
            self.answer(&waiting);
        }
        while self.unusual.peek().is_some_and(|waiting| waiting.due <= now) {
            if let Some(waiting) = self.unusual.pop() {
                self.answer(&waiting);
            }
        }
    }

    fn answer(&mut self, waiting: &Waiting) {
        if let Some((generation, Some(link))) = self.links.get_mut(waiting.link)
            && *generation == waiting.generation
        {
            link.answer(waiting.stream, &waiting.reply);
            self.touched.push(waiting.link);
            add(&self.shared.counters.answered, 1);
        }
    }

    /// Writes what is put out, and forgets connections that have ended.
    fn tidy(&mut self) {
        let counters = &self.shared.counters;
        for slot in self.touched.drain(..) {
            let Some((generation, entry @ Some(_))) = self.links.get_mut(slot) else {
                continue;
            };
            let Some(link) = entry else { continue };
            if link.dirty && !link.closed {
                link.flush(&self.poller);
            }
            let (read, written) = link.take_bytes();
            if read + written > 0 {
                add(&counters.bytes_in, read);
                add(&counters.bytes_out, written);
            }
            if link.closed {
                link.forget(&self.poller);
                *entry = None;
                *generation = generation.wrapping_add(1);
                self.free.push(slot);
                counters.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}
