//! A worker with a queue, in simulated time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use overload::{Admission, AdmissionController};

/// What a phase offers.
#[derive(Clone)]
pub struct Phase {
    pub seconds: f64,
    /// Requests, in what the worker can serve.
    pub load: f64,
    /// Priorities and their weights.
    pub mix: Vec<(u8, u32)>,
    /// Factor of the cost of a request: another process takes the rest of the core.
    pub slow: f64,
}

impl Phase {
    pub fn new(seconds: f64, load: f64) -> Self {
        Self {
            seconds,
            load,
            mix: vec![(4, 1), (12, 1), (20, 1), (24, 1)],
            slow: 1.0,
        }
    }
}

/// How the worker takes requests up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loop {
    /// One after the other; it knows how long each has waited.
    Exact,
    /// It reads all sockets in a turn, at most this many requests. The waiting time of a request is at most the time since
    /// the previous read.
    Turns(usize),
}

pub struct Worker {
    /// Seconds to serve a request.
    pub service: f64,
    /// What a refusal costs, in what serving costs.
    pub refusal: f64,
    pub takes: Loop,
    /// When the whole process pauses, and for how long.
    pub pauses: Vec<(f64, f64)>,
    /// When the peers pause, and for how long: what they would have sent comes at the end.
    pub held: Vec<(f64, f64)>,
    /// Requests that fit into sockets; peers send no more before there is room. They are lost to the model.
    pub room: usize,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            service: 50e-6,
            refusal: 0.2,
            takes: Loop::Exact,
            pauses: Vec::new(),
            held: Vec::new(),
            room: usize::MAX,
        }
    }
}

/// What happened in a tenth of a second of decisions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tenth {
    pub offered: u32,
    pub served: u32,
    pub refused: u32,
    /// Longest wait of a request that was served.
    pub longest: f64,
    /// Time in which the worker had nothing to do.
    pub idle: f64,
    /// Served and refused by priority.
    pub by_priority: [[u32; 2]; 4],
}

pub struct Outcome {
    pub tenths: Vec<Tenth>,
}

impl Outcome {
    pub fn between(&self, from: f64, to: f64) -> Tenth {
        let range = (from * 10.0).round() as usize..((to * 10.0).round() as usize).min(self.tenths.len());
        self.tenths[range].iter().fold(Tenth::default(), |mut sum, one| {
            sum.offered += one.offered;
            sum.served += one.served;
            sum.refused += one.refused;
            sum.idle += one.idle;
            sum.longest = sum.longest.max(one.longest);
            for (sums, ones) in sum.by_priority.iter_mut().zip(one.by_priority) {
                sums[0] += ones[0];
                sums[1] += ones[1];
            }
            sum
        })
    }
}

pub const SHOWN: [u8; 4] = [4, 12, 20, 24];

pub fn run(worker: &Worker, phases: &[Phase], controller: &mut AdmissionController, seed: u64) -> Outcome {
    let start = Instant::now();
    let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
    let mut random = Random(seed | 1);
    let arrivals = arrivals(worker, phases, &mut random);
    let total: f64 = phases.iter().map(|phase| phase.seconds).sum();
    let mut tenths = vec![Tenth::default(); (total * 10.0).round() as usize];
    let (mut now, mut looked, mut next) = (0.0_f64, 0.0_f64, 0);
    let mut queue: VecDeque<(f64, u8)> = VecDeque::new();
    let mut turn: VecDeque<(f64, u8)> = VecDeque::new();
    let mut since = 0.0;
    let mut pauses = worker.pauses.iter().copied().peekable();
    let mut index = |seconds: f64, change: &dyn Fn(&mut Tenth)| {
        if let Some(tenth) = tenths.get_mut((seconds * 10.0) as usize) {
            change(tenth);
        }
    };
    while now < total {
        if let Some((_, length)) = pauses.next_if(|(begin, _)| *begin <= now) {
            now += length;
        }
        while next < arrivals.len() && arrivals[next].0 <= now {
            if queue.len() < worker.room {
                queue.push_back(arrivals[next]);
                index(arrivals[next].0, &|tenth| tenth.offered += 1);
            }
            next += 1;
        }
        if turn.is_empty() {
            if queue.is_empty() {
                let Some((arrival, _)) = arrivals.get(next) else {
                    break;
                };
                let until = pauses
                    .peek()
                    .map_or(*arrival, |(begin, _)| arrival.min(*begin))
                    .max(now);
                index(now, &|tenth| tenth.idle += until - now);
                // The sockets are watched all the time.
                (now, looked) = (until, until);
                continue;
            }
            let most = match worker.takes {
                Loop::Exact => 1,
                Loop::Turns(most) => most,
            };
            turn.extend(queue.drain(..most.min(queue.len())));
            // What stays unread has waited since it was left.
            (since, looked) = (looked, now);
        }
        let Some((arrival, priority)) = turn.pop_front() else {
            continue;
        };
        let waited = match worker.takes {
            Loop::Exact => now - arrival,
            // No loop knows more than when it has read last; a queue in sockets shows by how long it is unread.
            Loop::Turns(_) => (now - since).max(now - arrival),
        };
        let slow = phase_at(phases, now).slow;
        let admission = controller.admit(at(now), Duration::from_secs_f64(waited), 0, &priority);
        let position = SHOWN.iter().position(|shown| *shown == priority);
        let served = admission == Admission::Admitted;
        index(now, &|tenth| {
            match served {
                true => {
                    tenth.served += 1;
                    tenth.longest = tenth.longest.max(now - arrival);
                }
                false => tenth.refused += 1,
            }
            if let Some(position) = position {
                tenth.by_priority[position][usize::from(!served)] += 1;
            }
        });
        now += worker.service * slow * if served { 1.0 } else { worker.refusal };
    }
    Outcome { tenths }
}

fn phase_at(phases: &[Phase], now: f64) -> &Phase {
    let mut end = 0.0;
    for phase in phases {
        end += phase.seconds;
        if now < end {
            return phase;
        }
    }
    &phases[phases.len() - 1]
}

/// Requests that come by chance (a Poisson process).
fn arrivals(worker: &Worker, phases: &[Phase], random: &mut Random) -> Vec<(f64, u8)> {
    let mut all = Vec::new();
    let mut begin = 0.0;
    for phase in phases {
        let end = begin + phase.seconds;
        let weights: u32 = phase.mix.iter().map(|(_, weight)| weight).sum();
        let mut now = begin;
        loop {
            now += -random.unit().ln() * worker.service / phase.load;
            if now >= end {
                break;
            }
            let mut pick = (random.unit() * f64::from(weights)) as u32;
            let chosen = phase.mix.iter().find(|(_, weight)| {
                let found = pick < *weight;
                pick = pick.saturating_sub(*weight);
                found
            });
            let held = worker
                .held
                .iter()
                .find(|(begin, length)| (*begin..*begin + *length).contains(&now));
            let sent = held.map_or(now, |(begin, length)| begin + length);
            all.push((sent, chosen.unwrap_or(&phase.mix[0]).0));
        }
        begin = end;
    }
    all
}

/// A xorshift generator: the same numbers in each run.
struct Random(u64);

impl Random {
    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}
