//! The session and binding repository of a Policy DRA with many sessions: what they take in memory and on disk, and how long a router
//! takes to start with them.
//!
//! The repository writes the sessions itself, as it does for a router. Two routers are started then, one without sessions and one
//! with them: what the second takes more is that of the sessions.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use model::Ipv6Prefix;
use sbr::config::Sbr;
use sbr::{Binding, Kept, Party, Repository, Session};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Store;

use super::Site;
use super::figures::{self, Figure};
use crate::run::{Place, Progress, RigError, RunError, dsr as rig, figure, free_address};
use ::report::Check;
use report::measure::Machine;

/// Sessions of a subscriber: one of data and one of voice, say.
const EACH: u64 = 2;
/// Sessions that are written at the same time.
const WRITERS: u64 = 512;
/// Subscribers between two reports of the progress.
const REPORT: u64 = 100_000;
/// What a binding with two alternate keys and what a session may take in memory, in bytes.
const OF_BINDING: f64 = 100.0;
const OF_SESSION: f64 = 40.0;
/// How long the router may take to start.
const READY: Duration = Duration::from_secs(5);
/// The time after which a session is stale: longer than a run.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

const REALM: &str = "epc.mnc001.mcc001.3gppnetwork.org";
const POOL: &str = "all";

/// How many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Subscribers that are bound; each has two sessions.
    pub bindings: u64,
    /// Where it runs.
    pub site: Site,
}

/// What they take; `target/bench/sbr.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preload {
    /// Subscribers that are bound.
    pub bindings: u64,
    /// Their sessions.
    pub sessions: u64,
    /// Seconds that writing took.
    pub write_seconds: f64,
    /// Bytes of all records on disk, and of the newest of each alone.
    pub disk_bytes: u64,
    /// Bytes of current records.
    pub live_bytes: u64,
    /// Bytes of the indexes in memory.
    pub index_bytes: u64,
    /// Bytes of a router without sessions, resident.
    pub empty_bytes: u64,
    /// Bytes of a router with them, resident.
    pub resident_bytes: u64,
    /// Seconds from the start of a router without sessions until it listens, and of one with them.
    pub empty_ready_seconds: f64,
    /// Of one with them.
    pub ready_seconds: f64,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
}

/// Writes the sessions and starts routers.
///
/// # Errors
/// When the store cannot be written or a router does not start.
pub fn preload(settings: &Settings, progress: &mut Progress) -> Result<Preload, RunError> {
    let place = settings.site.place()?;
    let empty = start(&place, "sbr-empty", &place.empty_folder("sbr-empty")?, settings)?;
    let directory = place.empty_folder("sbr-filled")?;
    let begun = Instant::now();
    let stats = fill(&repository(settings, &directory), settings.bindings, progress)?;
    let write_seconds = begun.elapsed().as_secs_f64();
    progress.status("starting a router with the sessions …");
    let filled = start(&place, "sbr-filled", &directory, settings)?;
    let mut preload = Preload {
        bindings: settings.bindings,
        sessions: settings.bindings * EACH,
        write_seconds,
        disk_bytes: stats.disk_bytes,
        live_bytes: stats.live_bytes,
        index_bytes: stats.index_bytes as u64,
        empty_bytes: empty.0,
        resident_bytes: filled.0,
        empty_ready_seconds: empty.1.as_secs_f64(),
        ready_seconds: filled.1.as_secs_f64(),
        machine: Machine::this(),
        checks: Vec::new(),
    };
    preload.checks = preload.judge();
    Ok(preload)
}

fn failed(error: impl fmt::Display) -> RunError {
    RigError::Settings(format!("the repository: {error}")).into()
}

/// The settings of a repository in this folder.
fn repository(settings: &Settings, directory: &Path) -> Sbr {
    let mut repository = Sbr {
        max_sessions: most_sessions(settings),
        ..Sbr::default()
    };
    repository.store.embedded.directory = directory.to_owned();
    repository.store.embedded.durability = store::Durability::Os;
    repository
}

fn most_sessions(settings: &Settings) -> usize {
    usize::try_from(settings.bindings * EACH + 1).unwrap_or(usize::MAX)
}

/// Writes the sessions of all subscribers; the figures of the store then.
fn fill(settings: &Sbr, bindings: u64, progress: &mut Progress) -> Result<store::Stats, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(RigError::io("starting a runtime"))?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let store = Store::open(&settings.store, &sbr::tables())
            .await
            .map_err(failed)?;
        let repository = Repository::new(&store, settings, None).map_err(failed)?;
        let mut first = 0;
        while first < bindings {
            progress.status(&format!(
                "{} of {} bindings",
                figure(first as f64),
                figure(bindings as f64)
            ));
            let end = bindings.min(first + REPORT);
            let mut writers = tokio::task::JoinSet::new();
            for writer in 0..WRITERS {
                writers.spawn_local(write(repository.clone(), first + writer, end));
            }
            while let Some(written) = writers.join_next().await {
                written.map_err(failed)??;
            }
            first = end;
        }
        drop(repository);
        let stats = store.stats();
        store.close().await;
        Ok(stats)
    })
}

/// Writes the sessions of every `WRITERS`th subscriber from the first one.
async fn write(repository: Repository, first: u64, end: u64) -> Result<(), RunError> {
    let step = usize::try_from(WRITERS).unwrap_or(usize::MAX);
    for subscriber in (first..end).step_by(step) {
        for number in 0..EACH {
            let session = session(subscriber, number, repository.now());
            match repository.keep(session).await.map_err(failed)? {
                Kept::New => {}
                other => {
                    return Err(failed(format!(
                        "a session of subscriber {subscriber} is {other:?}"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// A session as one of Gx has them: with an IMSI, and the MSISDN and a prefix as alternate keys.
fn session(subscriber: u64, number: u64, now: u64) -> Session {
    let party = |host: &str, at: u64| Party {
        host: format!("{host}{at:03}.{REALM}"),
        realm: REALM.to_owned(),
    };
    let (imsi, unique) = (format!("00101{subscriber:010}"), subscriber * EACH + number);
    let [high, low] = [unique >> 16, unique & 0xffff].map(|half| (half & 0xffff) as u16);
    let top = (unique >> 32) as u16;
    let prefix = Ipv6Prefix::new(Ipv6Addr::new(0x2001, top, high, low, 0, 0, 0, 0), 64);
    let client = party("pgw", subscriber % 16);
    Session {
        id: format!("{};{};{unique}", client.host, now / 1_000_000).into_bytes(),
        application: diameter_proto::known::application::GX,
        client,
        server: party("pcrf", subscriber % 4),
        apn: ["internet", "ims"][(number % EACH) as usize].to_owned(),
        pool: POOL.to_owned(),
        rule: "chosen by weight".to_owned(),
        binding: Some(Binding {
            key: sbr::binding_key(format!("i{imsi}").as_bytes(), POOL),
            msisdn: format!("49170{subscriber:010}"),
            imsi,
            ipv4: None,
            prefixes: vec![prefix],
            ..Binding::default()
        }),
        began: now,
        expires: 0,
    }
    .used(now, LIFETIME)
}

/// Starts a router of this name with a repository; its resident memory, and how long it took until it listened.
fn start(
    place: &Place,
    name: &str,
    directory: &Path,
    settings: &Settings,
) -> Result<(u64, Duration), RunError> {
    let (address, admin) = (free_address()?, free_address()?);
    let made = config((address, admin), directory, most_sessions(settings));
    let begun = Instant::now();
    let router = rig::start_function(place, ("dsr", name), made, None, address)?;
    let ready = begun.elapsed();
    let usage = router.process().usage();
    let gone = || failed("the router has no figures of its memory");
    Ok((usage.ok_or_else(gone)?.rss, ready))
}

fn config((address, admin): (SocketAddr, SocketAddr), directory: &Path, sessions: usize) -> Value {
    json!({ "dsr": {
        "admin": admin.to_string(),
        "workers": 1,
        "localNodes": [{
            "name": "dsr",
            "host": format!("dsr.{REALM}"),
            "realm": REALM,
            "listen": [address.to_string()],
        }],
        "applications": [{
            "name": "policy",
            "pdra": {
                "repository": { "store": { "embedded": { "directory": directory } }, "maxSessions": sessions },
                "pools": [{ "name": POOL, "pcrfs": [{ "host": format!("pcrf000.{REALM}") }] }],
            },
        }],
        "routing": { "applicationRouteTables": [{
            "name": "default",
            "rules": [{ "action": { "application": "policy" } }],
        }] },
    }})
}

impl Preload {
    /// Bytes that a bound subscriber takes in memory with its sessions.
    fn bytes_of_binding(&self) -> f64 {
        self.resident_bytes.saturating_sub(self.empty_bytes) as f64 / (self.bindings as f64).max(1.0)
    }

    fn judge(&self) -> Vec<Check> {
        let wanted = OF_BINDING + OF_SESSION * EACH as f64;
        let bytes = self.bytes_of_binding();
        vec![
            Check::new(
                "memory of a binding",
                format!("at most {wanted} bytes with its {EACH} sessions"),
                format!("{} bytes", figure(bytes)),
                bytes <= wanted,
            ),
            Check::new(
                "ready",
                format!("within {} s", READY.as_secs()),
                format!("{} s", figure(self.ready_seconds)),
                self.ready_seconds <= READY.as_secs_f64(),
            )
            .of_time(),
        ]
    }

    /// The figures by name.
    fn rows(&self) -> Vec<Figure> {
        let each = |bytes: u64| figure(bytes as f64 / (self.sessions as f64).max(1.0));
        let mega = |bytes: u64| figure(bytes as f64 / 1e6);
        vec![
            ("bindings", self.bindings.to_string()),
            ("sessions", self.sessions.to_string()),
            ("written in, s", figure(self.write_seconds)),
            ("records on disk, MB", mega(self.disk_bytes)),
            ("records on disk, bytes a session", each(self.disk_bytes)),
            ("indexes in memory, MB", mega(self.index_bytes)),
            ("indexes in memory, bytes a session", each(self.index_bytes)),
            ("router without sessions, MB", mega(self.empty_bytes)),
            ("router with them, MB", mega(self.resident_bytes)),
            (
                "memory of a binding with its sessions, bytes",
                figure(self.bytes_of_binding()),
            ),
            (
                "router without sessions ready after, s",
                figure(self.empty_ready_seconds),
            ),
            ("router with them ready after, s", figure(self.ready_seconds)),
        ]
    }

    /// The figures as a table.
    #[must_use]
    pub fn markdown(&self) -> String {
        figures::markdown(&self.rows())
    }
}

impl fmt::Display for Preload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        figures::show(f, &self.rows(), &self.checks)
    }
}
