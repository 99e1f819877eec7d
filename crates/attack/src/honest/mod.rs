//! The honest client beside an attack, on a thread of its own: open loop, one request each tick.

pub mod diameter;
mod http;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sbi::client::Origin;

use crate::answer::{Ask, Got};

/// What an honest client asks.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Nothing.
    None,
    /// An HTTP/2 request on a connection of its own.
    Http {
        /// The request.
        ask: Ask,
        /// Whether an answer is as it should be.
        expect: fn(&Got) -> bool,
        /// One request each.
        tick: Duration,
        /// Its TLS.
        tls: Option<Arc<rustls::ClientConfig>>,
    },
    /// A Diameter request on a connection of its own.
    Diameter {
        /// One request each.
        tick: Duration,
    },
}

/// How an honest client fared.
#[derive(Clone, Debug, Default)]
pub struct Fared {
    /// Requests answered as they should be.
    pub answered: u64,
    /// Requests answered otherwise, or not at all.
    pub errors: u64,
    /// The first errors.
    pub why: Vec<String>,
    /// Latencies of those answered, in milliseconds, ascending.
    pub latencies: Vec<f64>,
}

/// Errors whose texts are kept.
const KEPT: usize = 3;

impl Fared {
    fn error(&mut self, why: String) {
        self.errors += 1;
        if self.why.len() < KEPT {
            self.why.push(why.chars().take(100).collect());
        }
    }

    fn answer(&mut self, latency: Duration) {
        self.answered += 1;
        self.latencies.push(latency.as_secs_f64() * 1_000.0);
    }

    /// The latency that this share of the answers did not pass, in milliseconds.
    #[must_use]
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// Share of the requests that failed, in percent.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        100.0 * self.errors as f64 / (self.errors + self.answered).max(1) as f64
    }
}

/// A client that asks until it is stopped.
#[derive(Debug)]
pub struct Honest {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Fared>,
}

impl Honest {
    /// Begins to ask; on a new connection each time, if so wished.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn begin(
        plan: Plan,
        origin: Origin,
        target: SocketAddr,
        each_on_its_own: bool,
    ) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let its_stop = stop.clone();
        let thread = std::thread::Builder::new().name("honest".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else {
                return Fared::default();
            };
            let mut fared = tokio::task::LocalSet::new().block_on(&runtime, async {
                match plan {
                    Plan::None => Fared::default(),
                    Plan::Http { .. } => http::ask(plan, origin, each_on_its_own, its_stop).await,
                    Plan::Diameter { tick } => diameter::ask(target, tick, its_stop).await,
                }
            });
            fared.latencies.sort_by(f64::total_cmp);
            fared
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops asking; the answers that are on their way count.
    #[must_use]
    pub fn end(self) -> Fared {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Whether an honest client is served; what went wrong otherwise.
///
/// # Errors
/// When it is not.
pub async fn once(plan: &Plan, origin: Origin, target: SocketAddr) -> Result<(), String> {
    match plan {
        Plan::None => Ok(()),
        Plan::Http { ask, expect, tls, .. } => {
            let client = crate::answer::client_over("UDM-honest", tls.clone());
            let got = crate::answer::send(&client, &origin, ask).await;
            if expect(&got) { Ok(()) } else { Err(got.text()) }
        }
        Plan::Diameter { .. } => served(target).await,
    }
}

async fn served(target: SocketAddr) -> Result<(), String> {
    diameter::served(target).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let mut fared = Fared::default();
        assert!(fared.percentile(0.99).abs() < f64::EPSILON);
        for n in 1..=100 {
            fared.answer(Duration::from_millis(n));
        }
        fared.error("x".repeat(1_000));
        assert!((fared.percentile(0.99) - 99.0).abs() < 0.001);
        assert!((fared.percentile(1.0) - 100.0).abs() < 0.001);
        assert!((fared.error_percent() - 0.990).abs() < 0.01);
        assert_eq!(fared.why[0].len(), 100);
    }
}
