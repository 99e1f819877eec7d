//! Gentle background traffic for an NRF: a handful of simulated functions that register, send heart-beats and
//! look for one another, so that a person who starts the core sees it live.
//!
//! It never gives up: when the NRF is not there, or restarts, it tries again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::client::{Client, Request};
use crate::workload::nrf::{Function, population, profiles};

/// How much traffic there is.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The NRF.
    pub nrf: SocketAddr,
    /// Discoveries per second.
    pub discoveries: f64,
    /// Between the heart-beats of each function.
    pub heartbeat: Duration,
}

impl Traffic {
    /// The usual: ten discoveries a second.
    #[must_use]
    pub fn new(nrf: SocketAddr) -> Self {
        Self {
            nrf,
            discoveries: 10.0,
            heartbeat: Duration::from_secs(10),
        }
    }
}

impl From<SocketAddr> for Traffic {
    fn from(nrf: SocketAddr) -> Self {
        Self::new(nrf)
    }
}

/// What the background traffic has done.
#[derive(Debug, Default)]
struct Counts {
    right: AtomicU64,
    wrong: AtomicU64,
}

/// Background traffic under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Requests answered rightly and wrongly (or not at all) so far.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (
            self.counts.right.load(Ordering::Relaxed),
            self.counts.wrong.load(Ordering::Relaxed),
        )
    }

    /// Ends it: functions deregister.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been told on standard error already.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The functions that are simulated: type and how many.
const FUNCTIONS: [(&str, u32); 8] = [
    ("AMF", 2),
    ("SMF", 2),
    ("AUSF", 1),
    ("UDM", 2),
    ("UDR", 2),
    ("PCF", 1),
    ("BSF", 1),
    ("NEF", 1),
];
/// Who looks for whom.
const LOOKS: [(&str, &str); 8] = [
    ("AMF", "AUSF"),
    ("AMF", "UDM"),
    ("AMF", "SMF"),
    ("AMF", "PCF"),
    ("SMF", "UDM"),
    ("SMF", "PCF"),
    ("UDM", "UDR"),
    ("PCF", "BSF"),
];
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause before another try when the NRF is not there.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts background traffic on a thread of its own.
///
/// # Errors
/// When the system refuses the thread.
pub fn start(traffic: impl Into<Traffic>) -> std::io::Result<Running> {
    let traffic = traffic.into();
    let stop = Arc::new(AtomicBool::new(false));
    let counts = Arc::new(Counts::default());
    let (flag, tally) = (stop.clone(), counts.clone());
    let thread = std::thread::Builder::new()
        .name("traffic".into())
        .spawn(move || {
            let mut random = SmallRng::seed_from_u64(1);
            while !flag.load(Ordering::Relaxed) {
                // An error means that the NRF went away: begin anew, with registrations.
                if live(&traffic, &flag, &tally, &mut random).is_err() {
                    tally.wrong.fetch_add(1, Ordering::Relaxed);
                    wait(PAUSE, &flag);
                }
            }
        })?;
    Ok(Running {
        stop,
        counts,
        thread: Some(thread),
    })
}

fn functions() -> Vec<Function> {
    FUNCTIONS
        .iter()
        .enumerate()
        .flat_map(|(row, (kind, count))| {
            (0..*count).map(move |number| Function {
                kind: (*kind).to_owned(),
                id: population::instance_id(0xd0 + row as u32, number),
                number,
                cell: 0,
                bytes: 2000,
            })
        })
        .collect()
}

fn path_of(function: &Function) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{}", function.id)
}

fn live(traffic: &Traffic, stop: &AtomicBool, counts: &Counts, random: &mut SmallRng) -> std::io::Result<()> {
    let mut client = Client::connect(traffic.nrf, PATIENCE)?;
    let functions = functions();
    let mut exchange = |requests: &[Request]| -> std::io::Result<bool> {
        let answers = client.exchange(requests)?;
        let right = answers
            .iter()
            .filter(|answer| (200..300).contains(&answer.status))
            .count();
        counts.right.fetch_add(right as u64, Ordering::Relaxed);
        counts
            .wrong
            .fetch_add((answers.len() - right) as u64, Ordering::Relaxed);
        Ok(right == answers.len())
    };
    let registrations: Vec<Request> = functions
        .iter()
        .map(|function| {
            let profile = profiles::profile(function, traffic.heartbeat.as_secs() * 3, None);
            Request::new("PUT", path_of(function)).with("application/json", profile)
        })
        .collect();
    if !exchange(&registrations)? {
        wait(PAUSE, stop);
    }
    let mut next_heartbeat = Instant::now() + traffic.heartbeat;
    let between = Duration::from_secs_f64(1.0 / traffic.discoveries.clamp(0.01, 1000.0));
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= next_heartbeat {
            next_heartbeat += traffic.heartbeat;
            let beats: Vec<Request> = functions
                .iter()
                .map(|function| heartbeat(function, random))
                .collect();
            // A function that the NRF has forgotten must register again.
            if !exchange(&beats)? {
                return Ok(());
            }
        }
        let (requester, target) = LOOKS[random.random_range(0..LOOKS.len())];
        let path =
            format!("/nnrf-disc/v1/nf-instances?target-nf-type={target}&requester-nf-type={requester}");
        exchange(&[Request::new("GET", path)])?;
        wait(between, stop);
    }
    let departures: Vec<Request> = functions
        .iter()
        .map(|f| Request::new("DELETE", path_of(f)))
        .collect();
    exchange(&departures).map(|_| ())
}

fn heartbeat(function: &Function, random: &mut SmallRng) -> Request {
    let load = random.random_range(5..60);
    let body = format!(
        r#"[{{"op":"replace","path":"/nfStatus","value":"REGISTERED"}},{{"op":"replace","path":"/load","value":{load}}}]"#
    );
    Request::new("PATCH", path_of(function)).with("application/json-patch+json", body)
}

/// Waits, but not for long once it is to end.
fn wait(length: Duration, stop: &AtomicBool) {
    let end = Instant::now() + length;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(
            length
                .min(Duration::from_millis(50))
                .min(end.saturating_duration_since(Instant::now())),
        );
    }
}
