//! How far the databases of the sites are behind one another while a run goes on, by the metrics of the BSFs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::run::figure;
use crate::run::rig::Probe;
use ::report::Check;

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(250);
/// The most that a look may take.
const PATIENCE: Duration = Duration::from_secs(2);
const METRIC: &str = "signalbox_store_replication_delay_seconds";
/// What the guide's tables show (3.11.3, 3.12.3).
const MOST: f64 = 1.0;

/// What was seen at one site, in microseconds.
#[derive(Debug, Default)]
struct Seen {
    count: AtomicU64,
    sum: AtomicU64,
    most: AtomicU64,
}

impl Seen {
    fn add(&self, delay: f64) {
        let micros = (delay * 1e6) as u64;
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add(micros, Relaxed);
        self.most.fetch_max(micros, Relaxed);
    }

    /// The longest delay, in seconds; `None`: the site has received nothing of another.
    fn most(&self) -> Option<f64> {
        (self.count.load(Relaxed) > 0).then(|| self.most.load(Relaxed) as f64 / 1e6)
    }

    fn shown(&self, site: usize) -> String {
        match self.most() {
            None => format!("site {site}: nothing received of another"),
            Some(most) => {
                let mean = self.sum.load(Relaxed) as f64 / 1e6 / self.count.load(Relaxed) as f64;
                format!(
                    "site {site}: {} s on average, {} s at most",
                    figure(mean),
                    figure(most)
                )
            }
        }
    }
}

/// Reads the delays of other sites that these admin endpoints show, until the probe is gone.
pub(super) fn watch(admins: Vec<SocketAddr>) -> Probe {
    let seen: Arc<Vec<Seen>> = Arc::new(admins.iter().map(|_| Seen::default()).collect());
    let watched = Arc::downgrade(&seen);
    std::thread::spawn(move || {
        while let Some(seen) = watched.upgrade() {
            for (admin, site) in admins.iter().zip(seen.iter()) {
                let delays = delays(*admin).unwrap_or_default();
                delays.into_iter().for_each(|delay| site.add(delay));
            }
            drop(seen);
            std::thread::sleep(EVERY);
        }
    });
    Box::new(move || {
        let sites = seen.iter().enumerate();
        let shown: Vec<String> = sites.map(|(place, site)| site.shown(place + 1)).collect();
        let mut most = seen.iter().map(Seen::most);
        Check::new(
            "replication delay",
            format!("0 to {MOST} s at each site, as in the guide's tables"),
            shown.join("; "),
            most.all(|most| most.is_some_and(|most| most <= MOST)),
        )
    })
}

/// The delays of other sites that one site sees now.
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
