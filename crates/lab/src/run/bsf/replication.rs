//! Replication delay between the sites' databases during a run, from the metrics of the BSFs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::run::figure;
use crate::run::rig::Probe;
use ::report::Check;

/// Interval of the samples.
const EVERY: Duration = Duration::from_millis(250);
/// Timeout of a sample.
const PATIENCE: Duration = Duration::from_secs(2);
const METRIC: &str = "signalbox_store_replication_delay_seconds";
/// The bound that the guide's tables show (3.11.3, 3.12.3).
const MOST: f64 = 1.0;

/// Samples of the delay, in microseconds.
#[derive(Debug, Default)]
struct Seen {
    count: AtomicU64,
    sum: AtomicU64,
    most: AtomicU64,
}

/// Samples the delays that these admin endpoints report, until the probe is dropped.
pub(super) fn watch(admins: Vec<SocketAddr>) -> Probe {
    let seen = Arc::new(Seen::default());
    let watched = Arc::downgrade(&seen);
    std::thread::spawn(move || {
        while let Some(seen) = watched.upgrade() {
            for delay in admins.iter().flat_map(|admin| delays(*admin).unwrap_or_default()) {
                let micros = (delay * 1e6) as u64;
                seen.count.fetch_add(1, Relaxed);
                seen.sum.fetch_add(micros, Relaxed);
                seen.most.fetch_max(micros, Relaxed);
            }
            drop(seen);
            std::thread::sleep(EVERY);
        }
    });
    Box::new(move || {
        let count = seen.count.load(Relaxed);
        let most = seen.most.load(Relaxed) as f64 / 1e6;
        let mean = seen.sum.load(Relaxed) as f64 / 1e6 / (count as f64).max(1.0);
        Check::new(
            "replication delay",
            format!("0 to {MOST} s, as in the guide's tables"),
            match count {
                0 => "no site has replicated from another".to_owned(),
                _ => format!("{} s on average, {} s at most", figure(mean), figure(most)),
            },
            count > 0 && most <= MOST,
        )
    })
}

/// The delays of other sites that one site reports now.
fn delays(admin: SocketAddr) -> std::io::Result<Vec<f64>> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {admin}\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let lines = page.lines().filter(|line| line.starts_with(METRIC));
    Ok(lines
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect())
}
