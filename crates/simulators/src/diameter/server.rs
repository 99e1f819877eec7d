//! The event loop of simulated Diameter servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use diameter_proto::known::command;
use diameter_proto::{CommandFlags, MessageRef, ResultCode};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::{Node, Place, Placed, Role, role};
use crate::misbehave::Fate;
use crate::stats::add;
use crate::{Handle, Misbehaviour, Settings};
use loadgen::diameter::{Inbox, Introduction};
use loadgen::engine::{Poller, Readiness, Received, Socket};

/// How exactly latencies are kept.
const TICK: Duration = Duration::from_millis(1);
/// Tokens from here on are listeners.
const LISTENERS: u64 = 1 << 32;
/// Bytes read at once.
const GULP: usize = 256 * 1024;
/// Gulps read from one socket before the next has its turn.
const GULPS: usize = 4;
/// Bytes that a peer may leave unread before its connection is reset.
const MOST_UNREAD: usize = 64 << 20;

/// Simulated Diameter servers, a listener each.
#[derive(Debug)]
pub struct DiameterServer {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    links: Vec<(u32, Option<Link>)>,
    free: Vec<usize>,
    poller: Poller,
    playing: Playing,
    clock: Instant,
    handle: Handle,
}

/// What answers, apart from the connections.
#[derive(Debug)]
struct Playing {
    nodes: Vec<Introduction>,
    role: Box<dyn Role>,
    latency: Duration,
    misbehave: Misbehaviour,
    error_result: ResultCode,
    random: SmallRng,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waited: u64,
    now: Duration,
    handle: Handle,
}

/// Bytes that wait for their time; ordered by it, then as they came.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due: Duration,
    order: u64,
    link: usize,
    generation: u32,
    /// A request of ours; else an answer.
    is_request: bool,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Link {
    socket: Socket,
    slot: usize,
    generation: u32,
    node: usize,
    inbox: Inbox,
    out: Vec<u8>,
    introduced: bool,
    dirty: bool,
    closed: bool,
    next_id: u32,
}

impl DiameterServer {
    /// Takes its ports.
    ///
    /// # Errors
    /// When an address is taken.
    pub fn bind(settings: &Settings) -> io::Result<Self> {
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
        let nodes = settings.diameter.nodes(settings.role, listeners.len());
        let handle = Handle::default();
        Ok(Self {
            playing: Playing {
                role: role(settings, &nodes)?,
                nodes,
                latency: settings.latency.duration(),
                misbehave: settings.misbehave.clone(),
                error_result: ResultCode(settings.diameter.error_result),
                random: SmallRng::seed_from_u64(settings.seed),
                waiting: BinaryHeap::new(),
                waited: 0,
                now: Duration::ZERO,
                handle: handle.clone(),
            },
            listeners,
            addresses,
            links: Vec::new(),
            free: Vec::new(),
            poller,
            clock: Instant::now(),
            handle,
        })
    }

    /// The addresses it listens on, one per node.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// For other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
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
            self.playing.now = self.clock.elapsed();
            for event in &ready {
                match usize::try_from(event.token.wrapping_sub(LISTENERS)) {
                    Ok(at) if at < self.listeners.len() => self.accept(at),
                    _ => self.serve(*event, &mut buffer),
                }
            }
            if ticked {
                self.send_due();
                if self.handle.shared.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if let Some(changed) = self.handle.changed() {
                    self.playing.misbehave = changed;
                }
            }
            self.tidy();
        }
    }

    fn accept(&mut self, at: usize) {
        while let Ok((stream, _)) = self.listeners[at].accept() {
            let Ok(socket) = Socket::new(stream) else { continue };
            let slot = self.free.pop().unwrap_or_else(|| {
                self.links.push((0, None));
                self.links.len() - 1
            });
            if self.poller.add(&socket, slot as u64).is_err() {
                self.free.push(slot);
                continue;
            }
            let (generation, entry) = &mut self.links[slot];
            *entry = Some(Link {
                socket,
                slot,
                generation: *generation,
                node: at,
                inbox: Inbox::default(),
                out: Vec::new(),
                introduced: false,
                dirty: false,
                closed: false,
                next_id: 1,
            });
            add(&self.handle.shared.counters.accepted, 1);
        }
    }

    fn serve(&mut self, event: Readiness, buffer: &mut [u8]) {
        let Some((_, Some(link))) = self.links.get_mut(event.token as usize) else {
            return;
        };
        link.dirty |= event.writable;
        if event.readable {
            link.receive(buffer, &mut self.playing);
        }
    }

    /// Puts out what has waited long enough.
    fn send_due(&mut self) {
        let now = self.playing.now;
        while self.playing.waiting.peek().is_some_and(|Reverse(w)| w.due <= now) {
            let Some(Reverse(mut waiting)) = self.playing.waiting.pop() else {
                break;
            };
            let Some((generation, Some(link))) = self.links.get_mut(waiting.link) else {
                continue;
            };
            if *generation != waiting.generation {
                continue;
            }
            let counters = &self.handle.shared.counters;
            if waiting.is_request {
                link.identify(&mut waiting.bytes);
                add(&counters.asked, 1);
            } else {
                add(&counters.answered, 1);
            }
            link.out.extend_from_slice(&waiting.bytes);
            link.dirty = true;
        }
    }

    /// Writes what is put out, and forgets connections that have ended.
    fn tidy(&mut self) {
        let counters = &self.handle.shared.counters;
        for (slot, (generation, entry)) in self.links.iter_mut().enumerate() {
            let Some(link) = entry else { continue };
            if link.dirty && !link.closed {
                link.dirty = false;
                let written = link.socket.flush(&mut link.out, &self.poller, slot as u64);
                link.closed |= written.is_err() || link.out.len() > MOST_UNREAD;
            }
            add(&counters.bytes_in, std::mem::take(&mut link.socket.bytes_in));
            add(&counters.bytes_out, std::mem::take(&mut link.socket.bytes_out));
            if link.closed {
                self.poller.remove(&link.socket);
                if link.introduced {
                    counters.connections.fetch_sub(1, Ordering::Relaxed);
                }
                *entry = None;
                *generation = generation.wrapping_add(1);
                self.free.push(slot);
            }
        }
    }
}

impl Link {
    fn receive(&mut self, buffer: &mut [u8], playing: &mut Playing) {
        let mut inbox = std::mem::take(&mut self.inbox);
        for _ in 0..GULPS {
            match self.socket.receive(buffer) {
                Received::Bytes(count) => {
                    let whole = inbox.feed(&buffer[..count], |message| playing.handle(self, message));
                    self.closed |= whole.is_err();
                    if count < buffer.len() || self.closed {
                        break;
                    }
                }
                Received::Nothing => break,
                Received::Closed => {
                    self.closed = true;
                    break;
                }
            }
        }
        self.inbox = inbox;
        self.dirty |= !self.out.is_empty();
    }

    /// Sets the identifiers of a request of ours; a repetition has its End-to-End Identifier already.
    fn identify(&mut self, request: &mut [u8]) {
        let id = self.next_id.to_be_bytes();
        if let Some(place) = request.get_mut(12..16) {
            place.copy_from_slice(&id);
        }
        if let Some(place) = request.get_mut(16..20).filter(|place| *place == [0; 4]) {
            place.copy_from_slice(&id);
        }
        self.next_id = self.next_id.wrapping_add(1);
    }
}

impl Playing {
    fn handle(&mut self, link: &mut Link, message: MessageRef<'_>) {
        let counters = &self.handle.shared.counters;
        let me = &self.nodes[link.node];
        if !message.is_request() {
            if message.command() != command::DEVICE_WATCHDOG {
                add(&counters.asked_answered, 1);
                self.role.answered(message);
            }
            return;
        }
        match message.command() {
            command::CAPABILITIES_EXCHANGE => {
                let welcome = me.put_capabilities_answer(message, link.socket.local_ip(), &mut link.out);
                if welcome && !link.introduced {
                    link.introduced = true;
                    add(&counters.connections, 1);
                    for (after, bytes) in self.role.connected() {
                        self.wait(self.now + after, link, true, bytes);
                    }
                }
            }
            command::DEVICE_WATCHDOG | command::DISCONNECT_PEER => {
                me.put_result(message, ResultCode::SUCCESS, &mut link.out);
            }
            _ if !link.introduced => link.closed = true,
            _ => self.play(link, message),
        }
    }

    fn play(&mut self, link: &mut Link, request: MessageRef<'_>) {
        let handle = self.handle.clone();
        let counters = &handle.shared.counters;
        add(&counters.requests, 1);
        if request.flags().contains(CommandFlags::RETRANSMITTED) {
            add(&counters.retransmitted, 1);
        }
        let node = Node {
            number: link.node,
            introduction: &self.nodes[link.node],
        };
        let fate = self.misbehave.draw(&mut self.random);
        let later = match fate {
            Fate::Answer { later } => later,
            _ => {
                add(&counters.misbehaved, 1);
                match fate {
                    Fate::Close | Fate::Reset => {
                        link.socket.abort_on_drop();
                        link.closed = true;
                    }
                    Fate::Error(_) => {
                        node.introduction
                            .put_result(request, self.error_result, &mut link.out);
                    }
                    _ => {}
                }
                return;
            }
        };
        let wait = self.latency + later;
        let outcome = if wait.is_zero() {
            add(&counters.answered, 1);
            self.role.answer(node, request, &mut self.random, &mut link.out)
        } else {
            let mut bytes = Vec::new();
            let outcome = self.role.answer(node, request, &mut self.random, &mut bytes);
            self.wait(self.now + wait, link, false, bytes);
            outcome
        };
        if outcome.bad {
            add(&counters.bad_requests, 1);
        }
        if let Some(Placed { kind, is_stray }) = outcome.placed {
            let (all, stray) = match kind {
                Place::Session => (&counters.sessions, &counters.stray_sessions),
                Place::Media => (&counters.media, &counters.stray_media),
            };
            add(all, 1);
            add(stray, u64::from(is_stray));
        }
        for (after, bytes) in outcome.then {
            self.wait(self.now + wait + after, link, true, bytes);
        }
    }

    fn wait(&mut self, due: Duration, link: &Link, is_request: bool, bytes: Vec<u8>) {
        self.waited += 1;
        self.waiting.push(Reverse(Waiting {
            due,
            order: self.waited,
            link: link.slot,
            generation: link.generation,
            is_request,
            bytes,
        }));
    }
}
