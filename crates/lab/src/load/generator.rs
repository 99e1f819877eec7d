//! The threads that send: each an event loop with its share of the rate and of the connections.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::link::{Ended, Link, Pending};
use super::{Draft, FailureKind, Fault, Record, Schedule, Ticket, Workload};
use crate::callmodel::Arrivals;
use crate::engine::{Poller, Readiness};
use crate::measure;

/// Grid of arrivals.
const TICK: Duration = Duration::from_millis(1);
/// How often a thread tells what came of its requests.
const REPORT: Duration = Duration::from_secs(1);
/// Bytes read at once.
const GULP: usize = 256 * 1024;

/// How to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to.
    pub targets: Vec<SocketAddr>,
    /// Host and port that requests name.
    pub authority: String,
    /// Connections over all threads.
    pub connections: u32,
    /// A request without an answer after this time has failed.
    pub timeout: Duration,
    /// Requests that may be without an answer at once, over all threads.
    pub max_in_flight: u32,
    /// How arrivals are spaced.
    pub arrivals: Arrivals,
    /// Seed of everything random.
    pub seed: u64,
    /// Cores that the threads may use; empty for any.
    pub cpus: Vec<usize>,
}

/// What a thread tells each second.
#[derive(Debug)]
pub struct Snapshot {
    /// Which part of the run this is of; requests count for the part in which they were sent.
    pub step: u32,
    /// When it was told, from the start of the generator.
    pub at: Duration,
    /// What came of requests since the last.
    pub record: Record,
    /// Requests without an answer now.
    pub in_flight: u64,
    /// Connections that stand.
    pub connections: u32,
    /// The longest that the thread was late for a grid point.
    pub lateness: Duration,
    /// Processor time of the thread so far.
    pub cpu: Duration,
    /// Bytes read and written so far.
    pub bytes: (u64, u64),
    /// Which thread.
    pub thread: usize,
}

#[derive(Debug)]
struct Control {
    rate: AtomicU64,
    step: AtomicU32,
    stop: AtomicBool,
}

/// Running generator threads.
#[derive(Debug)]
pub struct Generator {
    control: Arc<Control>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    snapshots: Receiver<Snapshot>,
    started: Instant,
}

impl Generator {
    /// Starts a thread per workload, at rate 0.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(plan: &Plan, workloads: Vec<Box<dyn Workload>>) -> io::Result<Self> {
        let control = Arc::new(Control {
            rate: AtomicU64::new(0),
            step: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        });
        let count = workloads.len().max(1);
        let started = Instant::now();
        let (sender, snapshots) = sync_channel(count * 64);
        let mut threads = Vec::with_capacity(count);
        for (index, workload) in workloads.into_iter().enumerate() {
            let (plan, control, sender) = (plan.clone(), control.clone(), sender.clone());
            let thread = std::thread::Builder::new()
                .name(format!("generator-{index}"))
                .spawn(move || {
                    if !plan.cpus.is_empty() {
                        measure::pin_current_thread(&plan.cpus)?;
                    }
                    Thread::new(&plan, index, count, workload, control, sender, started)?.run()
                })?;
            threads.push(thread);
        }
        Ok(Self {
            control,
            threads,
            snapshots,
            started,
        })
    }

    /// Changes the rate over all threads, and which part of the run requests count for.
    pub fn set(&self, rate: f64, step: u32) {
        self.control.step.store(step, Ordering::Relaxed);
        self.control
            .rate
            .store((rate / self.threads.len() as f64).to_bits(), Ordering::Relaxed);
    }

    /// What the threads told since the last call; waits for the first up to `patience`.
    pub fn snapshots(&self, patience: Duration) -> Vec<Snapshot> {
        let mut all: Vec<_> = self.snapshots.recv_timeout(patience).into_iter().collect();
        all.extend(self.snapshots.try_iter());
        all
    }

    /// Time since the start, as in [`Snapshot::at`].
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether all threads still run.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Ends the threads; what they had still to tell.
    ///
    /// # Errors
    /// What a thread failed with.
    pub fn stop(self) -> io::Result<Vec<Snapshot>> {
        self.control.stop.store(true, Ordering::Relaxed);
        let mut rest = Vec::new();
        let mut outcome = Ok(());
        for thread in self.threads {
            while !thread.is_finished() {
                rest.extend(self.snapshots.recv_timeout(Duration::from_millis(20)));
            }
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a generator thread panicked")));
            if outcome.is_ok() {
                outcome = ended;
            }
        }
        rest.extend(self.snapshots.try_iter());
        outcome.map(|()| rest)
    }
}

/// A request on its way, for finding those that are late.
struct Deadline {
    at: Duration,
    link: u32,
    stream: u32,
}

struct Thread {
    index: usize,
    poller: Poller,
    links: Vec<Link>,
    next_link: usize,
    workload: Box<dyn Workload>,
    authority: String,
    stable: Vec<(&'static str, String)>,
    schedule: Schedule,
    random: SmallRng,
    draft: Draft,
    ledger: Ledger,
    deadlines: VecDeque<Deadline>,
    timeout: Duration,
    max_in_flight: usize,
    control: Arc<Control>,
    sender: SyncSender<Snapshot>,
    clock: Instant,
    lateness: Duration,
}

/// Counts of the current part of the run and of the one before it, whose answers may still come.
struct Ledger {
    current: (u32, Record),
    previous: (u32, Record),
    in_flight: usize,
    names: Vec<String>,
    /// Requests that will have no answer; the workload is yet to be told.
    lost: Vec<Ticket>,
}

impl Ledger {
    fn new(names: Vec<String>) -> Self {
        let empty = || Record::new(names.len());
        Self {
            current: (0, empty()),
            previous: (u32::MAX, empty()),
            in_flight: 0,
            lost: Vec::new(),
            names,
        }
    }

    /// Requests count for `step` from now on.
    fn begin(&mut self, step: u32) {
        std::mem::swap(&mut self.current, &mut self.previous);
        self.current = (step, Record::new(self.names.len()));
    }

    fn end(&mut self, pending: &Pending, ended: Ended, now: Duration) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let at = usize::from(pending.ticket.operation);
        if !matches!(ended, Ended::Judged(..)) {
            self.lost.push(pending.ticket);
        }
        let record = match pending.step {
            step if step == self.current.0 => &mut self.current.1,
            step if step == self.previous.0 => &mut self.previous.1,
            _ => return,
        };
        let operation = &mut record.operations[at];
        let name = &self.names[at];
        if matches!(ended, Ended::Judged(..) | Ended::Late) {
            operation.time((now.saturating_sub(pending.intended).as_micros() as u64).max(1));
        }
        match ended {
            Ended::Judged(Ok(()), _) => operation.succeeded += 1,
            Ended::Judged(Err(Fault::Status), status) => {
                operation.fail(FailureKind::Status);
                record.example(|| format!("{name}: status {status}"));
            }
            Ended::Judged(Err(Fault::Body(why)), _) => {
                operation.fail(FailureKind::Wrong);
                record.example(|| format!("{name}: {why}"));
            }
            Ended::Reset(code) => {
                operation.fail(FailureKind::Reset);
                record.example(|| format!("{name}: stream reset with code {code}"));
            }
            Ended::Lost => {
                operation.fail(FailureKind::Connection);
                record.example(|| format!("{name}: the connection was lost"));
            }
            Ended::Late => {
                operation.fail(FailureKind::Timeout);
                record.example(|| format!("{name}: no answer in time"));
            }
        }
    }
}

impl Thread {
    fn new(
        plan: &Plan,
        index: usize,
        count: usize,
        workload: Box<dyn Workload>,
        control: Arc<Control>,
        sender: SyncSender<Snapshot>,
        clock: Instant,
    ) -> io::Result<Self> {
        let names = workload.operations();
        let share = |all: u32| (all as usize / count + usize::from(index < all as usize % count)).max(1);
        let links = (0..share(plan.connections))
            .map(|at| Link::new(plan.targets[(at * count + index) % plan.targets.len()], at as u64))
            .collect();
        Ok(Self {
            index,
            poller: Poller::new(TICK)?,
            links,
            next_link: 0,
            stable: workload.headers(),
            workload,
            authority: plan.authority.clone(),
            schedule: Schedule::new(TICK, plan.arrivals, 0.0, Duration::ZERO),
            random: SmallRng::seed_from_u64(plan.seed.wrapping_add(index as u64)),
            draft: Draft::default(),
            ledger: Ledger::new(names),
            deadlines: VecDeque::new(),
            timeout: plan.timeout,
            max_in_flight: share(plan.max_in_flight),
            control,
            sender,
            clock,
            lateness: Duration::ZERO,
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut ready: Vec<Readiness> = Vec::new();
        let mut buffer = vec![0; GULP];
        let mut next_report = self.clock.elapsed() + REPORT;
        loop {
            let ticked = self.poller.wait(&mut ready)?;
            for event in &ready {
                self.serve(*event, &mut buffer);
            }
            if !ticked {
                self.flush();
                continue;
            }
            let now = self.clock.elapsed();
            let step = self.control.step.load(Ordering::Relaxed);
            if step != self.ledger.current.0 {
                self.tell(now);
                self.ledger.begin(step);
            }
            self.schedule
                .set_rate(f64::from_bits(self.control.rate.load(Ordering::Relaxed)), now);
            for link in &mut self.links {
                link.ensure(&self.poller, now);
            }
            self.give_up(now);
            for ticket in self.ledger.lost.drain(..) {
                self.workload.lost(&ticket);
            }
            self.send_due(now);
            self.flush();
            if now >= next_report {
                self.tell(now);
                next_report = (next_report + REPORT).max(now);
            }
            if self.control.stop.load(Ordering::Relaxed) {
                self.tell(now);
                return Ok(());
            }
        }
    }

    fn serve(&mut self, event: Readiness, buffer: &mut [u8]) {
        let now = self.clock.elapsed();
        let Some(link) = self.links.get_mut(event.token as usize) else {
            return;
        };
        let ledger = &mut self.ledger;
        let mut ended = |pending: Pending, how| ledger.end(&pending, how, now);
        if event.readable {
            link.receive(buffer, &mut *self.workload, &self.poller, now, &mut ended);
        }
        if event.writable {
            link.dirty = true;
        }
    }

    fn send_due(&mut self, now: Duration) {
        while let Some(due) = self.schedule.due(now, &mut self.random) {
            self.lateness = self.lateness.max(now.saturating_sub(due.intended));
            for _ in 0..due.count {
                self.send_one(due.intended);
            }
        }
    }

    fn send_one(&mut self, intended: Duration) {
        self.draft.clear();
        let ticket = self.workload.next(&mut self.random, &mut self.draft);
        let step = self.ledger.current.0;
        let operation = &mut self.ledger.current.1.operations[usize::from(ticket.operation)];
        operation.offered += 1;
        let link = if self.ledger.in_flight < self.max_in_flight {
            self.free_link()
        } else {
            None
        };
        let Some(at) = link else {
            let connected = self.links.iter().any(|link| link.room() > 0);
            let kind = if connected || self.ledger.in_flight > 0 {
                FailureKind::Overflow
            } else {
                FailureKind::Connection
            };
            self.ledger.current.1.operations[usize::from(ticket.operation)].fail(kind);
            self.workload.lost(&ticket);
            return;
        };
        let stable: smallvec::SmallVec<[(&str, &str); 8]> = self
            .stable
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let stream = self.links[at].send(&self.draft, &self.authority, &stable, (ticket, intended, step));
        self.ledger.in_flight += 1;
        self.deadlines.push_back(Deadline {
            at: intended + self.timeout,
            link: at as u32,
            stream,
        });
    }

    /// The next connection in turn that may take a request.
    fn free_link(&mut self) -> Option<usize> {
        for _ in 0..self.links.len() {
            let at = self.next_link;
            self.next_link = (self.next_link + 1) % self.links.len();
            if self.links[at].room() > 0 {
                return Some(at);
            }
        }
        None
    }

    /// Fails the requests whose time is over.
    fn give_up(&mut self, now: Duration) {
        while let Some(deadline) = self.deadlines.pop_front_if(|deadline| deadline.at <= now) {
            let link = &mut self.links[deadline.link as usize];
            // A stream number may come again on a new connection; then its intended time is another.
            let late = link
                .pending
                .get(&deadline.stream)
                .is_some_and(|p| p.intended + self.timeout == deadline.at);
            if !late {
                continue;
            }
            if let Some(pending) = link.cancel(deadline.stream) {
                self.ledger.end(&pending, Ended::Late, now);
            }
        }
    }

    fn flush(&mut self) {
        let now = self.clock.elapsed();
        let ledger = &mut self.ledger;
        for link in self.links.iter_mut().filter(|link| link.dirty) {
            link.flush(&self.poller, now, &mut |pending, how| {
                ledger.end(&pending, how, now);
            });
        }
    }

    /// Tells what came of requests since the last time. A full channel means that nobody listens any more.
    fn tell(&mut self, now: Duration) {
        let connections = self
            .links
            .iter()
            .filter(|link| link.room() > 0 || !link.pending.is_empty())
            .count() as u32;
        let bytes = self
            .links
            .iter()
            .map(Link::bytes)
            .fold((0, 0), |sum, b| (sum.0 + b.0, sum.1 + b.1));
        let lateness = std::mem::take(&mut self.lateness);
        for (step, record) in [&mut self.ledger.previous, &mut self.ledger.current] {
            if record.is_empty() {
                continue;
            }
            let record = std::mem::replace(record, Record::new(record.operations.len()));
            let _ = self.sender.try_send(Snapshot {
                step: *step,
                at: now,
                record,
                in_flight: self.ledger.in_flight as u64,
                connections,
                lateness,
                cpu: measure::thread_cpu(),
                bytes,
                thread: self.index,
            });
        }
    }
}
