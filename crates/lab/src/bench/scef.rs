//! An SCEF with many device contexts: what they take in memory and on disk, and how long it takes to start with them.
//!
//! The contexts come in at T8 and T6a, as they do from SCS/AS and MMEs: one is a device with a procedure (TS 23.682), half of them NIDD
//! with a configuration and a connection, half monitoring with a subscription. Then the SCEF is killed and started again.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Site;
use super::figures::{self, Figure};
use crate::run::bsf::disk;
use crate::run::dsr::await_connections;
use crate::run::scef::{self as rig, Addresses, Launch};
use crate::run::{Guarded, Progress, RigError, RunError, figure, free_address};
use ::report::Check;
use report::measure::Machine;

/// Bytes of a context in memory, at most.
const OF_CONTEXT: f64 = 400.0;
/// How long the SCEF may take to start, for each million of contexts.
const READY: Duration = Duration::from_secs(5);

/// How many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Contexts.
    pub contexts: u64,
    /// Where it runs.
    pub site: Site,
}

/// What they take; `target/bench/scef.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contexts {
    /// Contexts: devices with NIDD, and subscriptions.
    pub contexts: u64,
    /// Seconds until all were there.
    pub write_seconds: f64,
    /// Bytes of the store's folder.
    pub disk_bytes: u64,
    /// Bytes of an SCEF without contexts, resident.
    pub empty_bytes: u64,
    /// Bytes of one that has been started with them, resident.
    pub resident_bytes: u64,
    /// Seconds from the start of an SCEF without contexts until it serves.
    pub empty_ready_seconds: f64,
    /// Of one with them, after it was killed.
    pub ready_seconds: f64,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
}

/// Makes the contexts and starts SCEFs.
///
/// # Errors
/// When the SCEF does not start or refuses a device.
pub fn preload(settings: &Settings, progress: &mut Progress) -> Result<Contexts, RunError> {
    let place = settings.site.place()?;
    let half = u32::try_from(settings.contexts / 2).unwrap_or(u32::MAX).max(1);
    let addresses = Addresses {
        t8: free_address()?,
        diameter: free_address()?,
        admin: free_address()?,
    };
    let mut hss = rig::hss(&place)?;
    let store = place.empty_folder("scef-store")?;
    let mut made = rig::settings(&place, &store, &addresses);
    made["diameter"]["peers"] = rig::peers(&[("hss", &hss)]);
    made["store"]["embedded"]["durability"] = json!("os");
    made["nidd"] = json!({ "maxConnections": settings.contexts });
    let most = settings.contexts;
    made["limits"] = json!({ "configurations": most, "subscriptions": most });
    let launch = Launch::new(&place, json!({ "scef": made }), addresses);
    let (empty, empty_ready) = launch.start()?;
    let empty_bytes = resident(&empty)?;
    await_connections(&mut hss, 1)?;
    progress.status(&format!("{} contexts …", figure(settings.contexts as f64)));
    let begun = Instant::now();
    rig::fill(&addresses, half)?;
    let write_seconds = begun.elapsed().as_secs_f64();
    // Dropping it kills it (SIGKILL).
    drop(empty);
    progress.status("starting an SCEF with the contexts …");
    let (filled, ready) = launch.start()?;
    let mut contexts = Contexts {
        contexts: u64::from(half) * 2,
        write_seconds,
        disk_bytes: disk(&store),
        empty_bytes,
        resident_bytes: resident(&filled)?,
        empty_ready_seconds: empty_ready.as_secs_f64(),
        ready_seconds: ready.as_secs_f64(),
        machine: Machine::this(),
        checks: Vec::new(),
    };
    contexts.checks = contexts.judge();
    Ok(contexts)
}

fn resident(scef: &Guarded) -> Result<u64, RunError> {
    let usage = scef.process().usage();
    let gone = || RigError::Settings("the SCEF has no figures of its memory".to_owned());
    Ok(usage.ok_or_else(gone)?.rss)
}

impl Contexts {
    fn bytes_of_context(&self) -> f64 {
        self.resident_bytes.saturating_sub(self.empty_bytes) as f64 / (self.contexts as f64).max(1.0)
    }

    fn judge(&self) -> Vec<Check> {
        let bytes = self.bytes_of_context();
        let ready = READY.mul_f64((self.contexts as f64 / 1e6).max(1.0));
        vec![
            Check::new(
                "memory of a context",
                format!("at most {OF_CONTEXT} bytes"),
                format!("{} bytes", figure(bytes)),
                bytes <= OF_CONTEXT,
            ),
            Check::new(
                "ready",
                format!("within {} s", figure(ready.as_secs_f64())),
                format!("{} s", figure(self.ready_seconds)),
                self.ready_seconds <= ready.as_secs_f64(),
            )
            .of_time(),
        ]
    }

    /// The figures by name.
    fn rows(&self) -> Vec<Figure> {
        let mega = |bytes: u64| figure(bytes as f64 / 1e6);
        vec![
            ("contexts", self.contexts.to_string()),
            ("written in, s", figure(self.write_seconds)),
            ("store on disk, MB", mega(self.disk_bytes)),
            (
                "store on disk, bytes a context",
                figure(self.disk_bytes as f64 / (self.contexts as f64).max(1.0)),
            ),
            ("SCEF without contexts, MB", mega(self.empty_bytes)),
            ("SCEF with them, MB", mega(self.resident_bytes)),
            ("memory of a context, bytes", figure(self.bytes_of_context())),
            (
                "SCEF without contexts ready after, s",
                figure(self.empty_ready_seconds),
            ),
            ("SCEF with them ready after, s", figure(self.ready_seconds)),
        ]
    }

    /// The figures as a table.
    #[must_use]
    pub fn markdown(&self) -> String {
        figures::markdown(&self.rows())
    }
}

impl fmt::Display for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        figures::show(f, &self.rows(), &self.checks)
    }
}
