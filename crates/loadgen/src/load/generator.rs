//! The generator threads: each an event loop with its share of the rate and of the connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::carrier::{Carrier, Traffic, share};
use super::ledger::Ledger;
use super::{Arrivals, Record, Schedule};
use crate::engine::{ClientTls, Poller, Readiness};
use crate::thread;

/// Interval of the reports of a thread.
const REPORT: Duration = Duration::from_secs(1);

/// How to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Address of HTTP requests; Diameter clients have the addresses of their peers.
    pub targets: Vec<SocketAddr>,
    /// Host and port that requests name.
    pub authority: String,
    /// HTTP connections over all threads.
    pub connections: u32,
    /// An HTTP request without an answer after this time has failed.
    pub timeout: Duration,
    /// Requests that may be without an answer at once, over all threads.
    pub max_in_flight: u32,
    /// How arrivals are spaced.
    pub arrivals: Arrivals,
    /// Seed of everything random.
    pub seed: u64,
    /// Cores that the threads may use; empty for any.
    pub cpus: Vec<usize>,
    /// Grid of arrivals: those of one tick leave in one write per connection.
    pub tick: Duration,
    /// TLS of HTTP connections; none: cleartext.
    pub tls: Option<ClientTls>,
    /// Addresses of this machine that HTTP connections come from, in turn; none: the system chooses.
    pub sources: Vec<IpAddr>,
}

/// The usual grid of arrivals.
pub const TICK: Duration = Duration::from_millis(1);

/// The report of a thread for a second.
#[derive(Debug)]
pub struct Snapshot {
    /// Which part of the run this is of; requests count for the part in which they were sent.
    pub step: u32,
    /// Time of the report, from the start of the generator.
    pub at: Duration,
    /// Results of requests since the last report.
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
    /// Requests in flight that a closed loop keeps; 0: an open loop at `rate`.
    in_flight: AtomicU32,
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
    /// Starts a thread per traffic, at rate 0.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start<T: Into<Traffic>>(plan: &Plan, traffic: Vec<T>) -> io::Result<Self> {
        let control = Arc::new(Control {
            rate: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            step: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        });
        let traffic: Vec<Traffic> = traffic.into_iter().map(Into::into).collect();
        let count = traffic.len().max(1);
        let http = traffic.iter().filter(|t| t.is_http()).count();
        let whole: f64 = traffic.iter().map(|t| t.weight).sum();
        let started = Instant::now();
        let (sender, snapshots) = sync_channel(count * 64);
        let mut threads = Vec::with_capacity(count);
        let mut speakers = [0; 2];
        for (index, traffic) in traffic.into_iter().enumerate() {
            let part = traffic.weight / whole;
            let nth = &mut speakers[usize::from(traffic.is_http())];
            let (nth, peers) = (std::mem::replace(nth, *nth + 1), http.max(1));
            let (plan, control, sender) = (plan.clone(), control.clone(), sender.clone());
            let thread = std::thread::Builder::new()
                .name(format!("generator-{index}"))
                .spawn(move || {
                    if !plan.cpus.is_empty() {
                        thread::pin_current_thread(&plan.cpus)?;
                    }
                    let ledger = Ledger::new(traffic.operations(), share(plan.max_in_flight, index, count));
                    Thread {
                        index,
                        poller: Poller::new(plan.tick)?,
                        carrier: traffic.carrier(&plan, nth, peers),
                        schedule: Schedule::new(plan.tick, plan.arrivals, 0.0, Duration::ZERO),
                        random: SmallRng::seed_from_u64(plan.seed.wrapping_add(index as u64)),
                        ledger,
                        part,
                        control,
                        sender,
                        clock: started,
                        lateness: Duration::ZERO,
                    }
                    .run()
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
        self.control.in_flight.store(0, Ordering::Relaxed);
        self.control.rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// Closes the loop: keeps this many requests in flight over all threads, each sent as soon as one before it has
    /// its answer, until the next [`Generator::set`].
    pub fn saturate(&self, in_flight: u32, step: u32) {
        self.control.step.store(step, Ordering::Relaxed);
        self.control.rate.store(0, Ordering::Relaxed);
        self.control.in_flight.store(in_flight, Ordering::Relaxed);
    }

    /// Reports of the threads since the last call; waits for the first up to `patience`.
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

    /// Stops the threads; returns their last reports.
    ///
    /// # Errors
    /// The first error of a thread.
    pub fn stop(mut self) -> io::Result<Vec<Snapshot>> {
        self.control.stop.store(true, Ordering::Relaxed);
        let mut rest = Vec::new();
        let mut outcome = Ok(());
        for thread in std::mem::take(&mut self.threads) {
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

impl Drop for Generator {
    /// A dropped generator sends no more requests; its threads end at their next tick.
    fn drop(&mut self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }
}

struct Thread {
    index: usize,
    poller: Poller,
    carrier: Box<dyn Carrier>,
    schedule: Schedule,
    random: SmallRng,
    ledger: Ledger,
    /// Of the whole rate.
    part: f64,
    control: Arc<Control>,
    sender: SyncSender<Snapshot>,
    clock: Instant,
    lateness: Duration,
}

impl Thread {
    fn run(mut self) -> io::Result<()> {
        let mut ready: Vec<Readiness> = Vec::new();
        let mut next_report = self.clock.elapsed() + REPORT;
        loop {
            let ticked = self.poller.wait(&mut ready)?;
            for event in &ready {
                let now = self.clock.elapsed();
                self.carrier.serve(*event, &self.poller, now, &mut self.ledger);
            }
            if !ticked {
                self.refill();
                self.flush();
                continue;
            }
            let now = self.clock.elapsed();
            let step = self.control.step.load(Ordering::Relaxed);
            if step != self.ledger.step() {
                self.report(now);
                self.ledger.begin(step);
            }
            let rate = f64::from_bits(self.control.rate.load(Ordering::Relaxed));
            self.schedule.set_rate(rate * self.part, now);
            self.carrier.ensure(&self.poller, now, &mut self.ledger);
            self.carrier.give_up(now, &mut self.ledger);
            for ticket in self.ledger.lost.drain(..) {
                self.carrier.lost(&ticket);
            }
            self.send_due(now);
            self.refill();
            self.flush();
            if now >= next_report {
                self.report(now);
                next_report = (next_report + REPORT).max(now);
            }
            if self.control.stop.load(Ordering::Relaxed) {
                self.report(now);
                return Ok(());
            }
        }
    }

    fn send_due(&mut self, now: Duration) {
        while let Some(due) = self.schedule.due(now, &mut self.random) {
            self.lateness = self.lateness.max(now.saturating_sub(due.intended));
            for _ in 0..due.count {
                self.carrier
                    .send(due.intended, &mut self.random, &mut self.ledger);
            }
        }
    }

    /// In a closed loop, sends a request for each that was answered.
    fn refill(&mut self) {
        let all = self.control.in_flight.load(Ordering::Relaxed);
        if all == 0 {
            return;
        }
        let wanted = (f64::from(all) * self.part).round().max(1.0) as usize;
        let now = self.clock.elapsed();
        while self.ledger.in_flight() < wanted && self.carrier.has_room() {
            let before = self.ledger.in_flight();
            self.carrier.send(now, &mut self.random, &mut self.ledger);
            if self.ledger.in_flight() == before {
                return;
            }
        }
    }

    fn flush(&mut self) {
        self.carrier
            .flush(&self.poller, self.clock.elapsed(), &mut self.ledger);
    }

    /// Reports the results of requests since the last report. While the reader of the reports is late and their channel
    /// is full, the results stay in the ledger, for the next report.
    fn report(&mut self, now: Duration) {
        let lateness = std::mem::take(&mut self.lateness);
        let in_flight = self.ledger.in_flight() as u64;
        for (step, record) in [&mut self.ledger.previous, &mut self.ledger.current] {
            if record.is_empty() {
                continue;
            }
            let empty = Record::new(record.operations.len());
            let snapshot = Snapshot {
                step: *step,
                at: now,
                record: std::mem::replace(record, empty),
                in_flight,
                connections: self.carrier.connections(),
                lateness,
                cpu: thread::thread_cpu(),
                bytes: self.carrier.bytes(),
                thread: self.index,
            };
            if let Some(unsent) = unsent(&self.sender, snapshot) {
                self.lateness = self.lateness.max(unsent.lateness);
                *record = unsent.record;
            }
        }
    }
}

/// Sends a report; returns it when the channel is full. Without a reader it is dropped.
fn unsent(sender: &SyncSender<Snapshot>, report: Snapshot) -> Option<Snapshot> {
    match sender.try_send(report) {
        Err(TrySendError::Full(report)) => Some(report),
        Ok(()) | Err(TrySendError::Disconnected(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::load::{Answer, Draft, Fault, Interest, Ticket, Workload};

    struct Nothing;

    impl Workload for Nothing {
        fn operations(&self) -> Vec<String> {
            vec!["nothing".to_owned()]
        }

        fn headers(&self) -> Vec<(&'static str, String)> {
            Vec::new()
        }

        fn next(&mut self, _: &mut SmallRng, draft: &mut Draft) -> Ticket {
            draft.method = "GET";
            Ticket::default()
        }

        fn interest(&mut self, _: &Ticket, _: u16, _: Option<u64>) -> Interest {
            Interest::Skip
        }

        fn judge(&mut self, _: &Ticket, _: &Answer<'_>) -> Result<(), Fault> {
            Ok(())
        }
    }

    fn thread(sender: SyncSender<Snapshot>) -> Thread {
        let plan = Plan {
            targets: vec![(Ipv4Addr::LOCALHOST, 1).into()],
            authority: String::new(),
            connections: 1,
            timeout: Duration::from_secs(1),
            max_in_flight: 1,
            arrivals: Arrivals::Constant,
            seed: 1,
            cpus: Vec::new(),
            tick: TICK,
            tls: None,
            sources: Vec::new(),
        };
        Thread {
            index: 0,
            poller: Poller::new(TICK).unwrap(),
            carrier: Traffic::from(Box::new(Nothing) as Box<dyn Workload>).carrier(&plan, 0, 1),
            schedule: Schedule::new(TICK, Arrivals::Constant, 0.0, Duration::ZERO),
            random: SmallRng::seed_from_u64(1),
            ledger: Ledger::new(vec!["nothing".to_owned()], 1),
            part: 1.0,
            control: Arc::new(Control {
                rate: AtomicU64::new(0),
                in_flight: AtomicU32::new(0),
                step: AtomicU32::new(0),
                stop: AtomicBool::new(false),
            }),
            sender,
            clock: Instant::now(),
            lateness: Duration::ZERO,
        }
    }

    #[test]
    fn results_are_kept_while_their_reader_is_late() {
        let (sender, reports) = sync_channel(1);
        let mut thread = thread(sender);
        for _ in 0..3 {
            thread.ledger.offer(Ticket::default());
            thread.report(Duration::ZERO);
        }
        let offered = |report: Snapshot| report.record.total().offered;
        assert_eq!(reports.try_recv().map(offered), Ok(1));
        thread.report(Duration::ZERO);
        assert_eq!(reports.try_recv().map(offered), Ok(2));
    }
}
