//! Subscribers that are provisioned at the router's admin endpoint while the load goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::applications::{RESOLUTION, home};
use crate::run::admin::send;
use crate::run::figure;
use crate::run::rig::Probe;
use ::report::Check;
use callmodel::dsr::DsrModel;
use callmodel::resolution::{Address, MOST_PROVISIONED, Resolution};
use workload::dsr::Plan;

/// The least rate that counts as the wanted one, as a share of it.
const NEAR: f64 = 0.9;

/// What the writer and its reader share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    acknowledged: AtomicU64,
    refused: AtomicU64,
}

/// A thread that provisions; it ends when this is dropped.
struct Writer {
    shared: Arc<Shared>,
    begun: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has refused nothing: its check fails for want of writes.
            let _ = thread.join();
        }
    }
}

/// Begins to provision where the model asks for it. A subscriber is named by requests when each of its addresses has been
/// acknowledged.
pub(super) fn start(model: &DsrModel, plan: &Plan, admin: SocketAddr) -> Option<Probe> {
    let has_own = |fabr: &&Resolution| fabr.writes > 0 && fabr.processors == 0;
    let resolution = model.fabr.as_ref().filter(has_own)?;
    let (known, provisioned) = (resolution.subscribers, plan.provisioned().clone());
    let (writes, hss) = (f64::from(resolution.writes), u64::from(model.hss.max(1)));
    let shared = Arc::new(Shared::default());
    let own = shared.clone();
    let thread = std::thread::spawn(move || {
        let begun = Instant::now();
        for number in 0..MOST_PROVISIONED {
            for (address, write) in Address::ALL.into_iter().zip(number * Address::ALL.len() as u64..) {
                wait(begun + Duration::from_secs_f64(write as f64 / writes), &own.stop);
                let subscriber = known + number;
                let path = format!(
                    "/dsr/applications/{RESOLUTION}/subscribers/{}/{}",
                    address.entity(),
                    address.of(subscriber)
                );
                if own.stop.load(Ordering::Relaxed) {
                    return;
                }
                let body = home(subscriber % hss);
                let status = loop {
                    if let Some((status, _)) = send(admin, "PUT", &path, &body) {
                        break status;
                    }
                    // A write may come again; one that is late is a matter of time.
                    if own.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    wait(Instant::now() + Duration::from_millis(50), &own.stop);
                };
                let counter = match status {
                    200 => &own.acknowledged,
                    _ => &own.refused,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            if own.refused.load(Ordering::Relaxed) > 0 {
                return;
            }
            provisioned.store(number + 1, Ordering::Release);
        }
    });
    let writer = Writer {
        shared,
        begun: Instant::now(),
        thread: Some(thread),
    };
    Some(Box::new(move || judge(&writer, writes)))
}

/// Waits until this moment, or until there is nothing more to do.
fn wait(due: Instant, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn judge(writer: &Writer, wanted: f64) -> Check {
    let acknowledged = writer.shared.acknowledged.load(Ordering::Relaxed);
    let refused = writer.shared.refused.load(Ordering::Relaxed);
    let rate = acknowledged as f64 / writer.begun.elapsed().as_secs_f64().max(1e-3);
    let check = Check::new(
        "provisioning beside the load",
        format!(
            "each write acknowledged, {} of {} a second at least",
            figure(wanted * NEAR),
            figure(wanted)
        ),
        format!(
            "{acknowledged} acknowledged, {refused} refused; {} a second",
            figure(rate)
        ),
        refused == 0 && acknowledged > 0 && rate >= wanted * NEAR,
    );
    if refused > 0 || acknowledged == 0 {
        return check;
    }
    // Only the rate may have been too low, which is the machine's.
    check.of_time()
}
