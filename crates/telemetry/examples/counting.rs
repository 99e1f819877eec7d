//! What counting costs the data path: nanoseconds per event on each of several threads that count at the same
//! time, beside one atomic shared by all of them.
//!
//! `cargo run --release -p telemetry --example counting [THREADS]`

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use telemetry::Registry;

telemetry::declare! {
    /// What is counted here.
    METRICS;
    counter REQUESTS = "signalbox_example_requests_total" ["operation"]: "Requests answered.";
    gauge FLIGHT = "signalbox_example_in_flight" []: "Requests in flight.";
    histogram TIME = "signalbox_example_request_seconds" [] in SECONDS: "Time to the answer.";
}

const EVENTS: u32 = 20_000_000;

fn main() {
    let threads = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(2);
    let registry = Registry::new();
    let requests = registry.counters(&REQUESTS).get(&["discover"]);
    let flight = registry.level(&FLIGHT);
    let time = registry.histogram(&TIME);
    let shared = Arc::new(AtomicU64::new(0));
    eprintln!(
        "{} metrics, {threads} threads, {EVENTS} events each",
        METRICS.len()
    );
    measure("counter", threads, move |_| requests.inc());
    measure("level, up and down", threads, move |_| {
        flight.inc();
        flight.dec();
    });
    measure("histogram", threads, move |event| {
        time.observe(Duration::from_nanos(u64::from(event) * 37 % 20_000_000));
    });
    measure("one atomic shared by all", threads, move |_| {
        shared.fetch_add(1, Ordering::Relaxed);
    });
}

fn measure(what: &str, threads: usize, event: impl Fn(u32) + Send + Sync + 'static) {
    let event = Arc::new(event);
    let running: Vec<_> = (0..threads)
        .map(|_| {
            let event = event.clone();
            std::thread::spawn(move || {
                let start = Instant::now();
                for number in 0..EVENTS {
                    event(black_box(number));
                }
                start.elapsed()
            })
        })
        .collect();
    let spent: Duration = running.into_iter().filter_map(|thread| thread.join().ok()).sum();
    let each = spent.as_secs_f64() * 1e9 / f64::from(EVENTS) / threads as f64;
    eprintln!("{what:<26}{each:6.1} ns");
}
