//! Gentle background traffic for a core: a handful of simulated functions that register at the NRF, send heart-beats and
//! discover one another, calls through the whole core, an MME and an HSS at the Diameter router, an MSC and an HLR at the STP.
//!
//! What their profiles offer is there: each listens on a port of loopback and answers whatever it is asked, so that a
//! request that finds one through discovery ends on this machine with an answer.
//!
//! It never gives up: when the NRF is not there, or restarts, it tries again.

mod calls;
mod cast;
mod diameter;
mod signalling;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use self::cast::Cast;
use self::diameter::Router;
pub use self::signalling::transfer_point;
use crate::call::{Board, Credentials, Legs, Peers, Ues, cscf_host};
use crate::identity::Identity;
use loadgen::engine::{ClientTls, TlsFiles, diameter_tls};
use simulators::{Handle, ProducerSettings, RoleName, Server, Settings};
use workload::nrf::{Function, population};

/// How much traffic there is.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The NRF.
    pub nrf: SocketAddr,
    /// Discoveries per second.
    pub discoveries: f64,
    /// Between the heart-beats of each function.
    pub heartbeat: Duration,
    /// Where calls go; none: no calls.
    pub calls: Option<Calls>,
    /// The Diameter router; none: no Diameter.
    pub router: Option<SocketAddr>,
    /// The signal transfer point, with the settings of [`transfer_point`]; none: no SS7.
    pub stp: Option<SocketAddr>,
    /// Where all speak mutual TLS and show tokens.
    pub secure: Option<Secure>,
}

/// Where the legs of calls go, beside the NRF.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The SCP.
    pub scp: SocketAddr,
    /// The BSF.
    pub bsf: SocketAddr,
    /// The Diameter router.
    pub router: SocketAddr,
    /// Realm of the PCF at its Rx end.
    pub realm: String,
}

/// What simulated functions prove who they are with.
#[derive(Clone, Debug)]
pub struct Secure {
    /// Of each function of [`instances`], in that order: its certificate names its instance.
    pub functions: Vec<TlsFiles>,
    /// Of the places where they listen: one certificate for loopback.
    pub listener: TlsFiles,
    /// Of each Diameter node of [`nodes`], in that order: its certificate names its DiameterIdentity.
    pub nodes: Vec<TlsFiles>,
}

impl Secure {
    /// The first function of a type.
    fn identity(&self, nf_type: &str) -> std::io::Result<Identity> {
        let all = functions().into_iter().zip(&self.functions);
        let found = all
            .into_iter()
            .find(|(function, _)| function.kind == nf_type)
            .ok_or_else(|| std::io::Error::other("a simulated function has no certificate"))?;
        Identity::new(nf_type, &found.0.id, found.1)
    }

    /// What a Diameter node connects with.
    fn node(&self, host: &str) -> std::io::Result<ClientTls> {
        let mut all = nodes().into_iter().zip(&self.nodes);
        let found = all.find(|(name, _)| name == host);
        let (_, files) = found.ok_or_else(|| std::io::Error::other(format!("{host} has no certificate")))?;
        diameter_tls(files)
    }
}

impl Traffic {
    /// The usual: ten discoveries a second.
    #[must_use]
    pub fn new(nrf: SocketAddr) -> Self {
        Self {
            nrf,
            discoveries: 10.0,
            heartbeat: Duration::from_secs(10),
            calls: None,
            router: None,
            stp: None,
            secure: None,
        }
    }
}

impl Traffic {
    /// Where the legs of calls go.
    fn peers(&self) -> std::io::Result<Option<Peers>> {
        let Some(calls) = self.calls.clone() else {
            return Ok(None);
        };
        let secure = self.secure.as_ref().map(|secure| {
            Ok::<_, std::io::Error>(Credentials {
                amf: secure.identity("AMF")?,
                smf: secure.identity("SMF")?,
                // The one that may ask for application sessions and bindings (TS 29.514 §4.1).
                af: secure.identity("NEF")?,
                pcscf: secure.node(&cscf_host(CSCF))?,
            })
        });
        Ok(Some(Peers {
            nrf: self.nrf,
            scp: calls.scp,
            bsf: calls.bsf,
            router: calls.router,
            realm: calls.realm,
            patience: PATIENCE,
            secure: secure.transpose()?,
        }))
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

impl Counts {
    fn count(&self, right: bool) {
        let counter = if right { &self.right } else { &self.wrong };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the legs of calls.
    fn add(&self, legs: &Legs) {
        let total = legs.record().total();
        self.right.fetch_add(total.succeeded, Ordering::Relaxed);
        self.wrong.fetch_add(total.failures(), Ordering::Relaxed);
    }
}

/// Running background traffic; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    producers: Handle,
    threads: Vec<JoinHandle<()>>,
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

    /// Requests that the simulated functions have answered.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.producers.stats().answered
    }

    /// Ends it: functions deregister.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic in a thread is on standard error already.
        let mut threads = self.threads.drain(..);
        let serving = threads.next();
        threads.for_each(|thread| drop(thread.join()));
        // All functions are deregistered: no request comes to them any longer.
        self.producers.stop();
        serving.map(JoinHandle::join);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The functions that are simulated: type and how many.
const FUNCTIONS: [(&str, u32); 7] = [
    ("AMF", 2),
    ("SMF", 2),
    ("AUSF", 1),
    ("UDM", 2),
    ("UDR", 2),
    ("CHF", 1),
    ("NEF", 1),
];
/// Who looks for whom.
const LOOKS: [(&str, &str); 7] = [
    ("AMF", "AUSF"),
    ("AMF", "UDM"),
    ("AMF", "SMF"),
    ("AMF", "PCF"),
    ("SMF", "UDM"),
    ("SMF", "PCF"),
    ("UDM", "UDR"),
];
/// Number of the P-CSCF.
const CSCF: usize = 1;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the UEs wait for a command before they look whether it is the end.
const LISTENS: Duration = Duration::from_millis(200);
/// Pause before another try when the NRF is not there.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of the answer of a simulated function.
const ANSWER: u32 = 64;

/// NF type and NF instance id of the functions that are simulated.
#[must_use]
pub fn instances() -> Vec<(String, String)> {
    functions().into_iter().map(|one| (one.kind, one.id)).collect()
}

/// DiameterIdentities of the nodes that are simulated.
#[must_use]
pub fn nodes() -> Vec<String> {
    let mut nodes = diameter::HOSTS.map(str::to_owned).to_vec();
    nodes.push(cscf_host(CSCF));
    nodes
}

/// Starts background traffic on threads of its own: one that asks, one that answers.
///
/// # Errors
/// When the system refuses a thread or a port of loopback, or a file of `secure` cannot be used.
pub fn start(traffic: impl Into<Traffic>) -> std::io::Result<Running> {
    let traffic = traffic.into();
    let stop = Arc::new(AtomicBool::new(false));
    let counts = Arc::new(Counts::default());
    let server = Server::bind(&Settings {
        role: RoleName::Producer,
        ports: u16::try_from(functions().len()).unwrap_or(u16::MAX),
        producer: ProducerSettings {
            body_bytes: ANSWER,
            ..ProducerSettings::default()
        },
        tls: traffic.secure.as_ref().map(|secure| secure.listener.clone()),
        ..Settings::default()
    })?;
    let listener = traffic.secure.as_ref().map(|secure| &secure.listener);
    let board = traffic.calls.as_ref().map(|_| Board::start(listener));
    let board = board.transpose()?;
    let consumers = board.as_ref().map(Board::address);
    let mut cast = Cast::new(&traffic, server.addresses(), consumers)?;
    let producers = server.handle();
    let serving = std::thread::Builder::new()
        .name("producers".into())
        .spawn(move || {
            if let Err(error) = server.run() {
                eprintln!("simulated functions answer no more: {error}");
            }
        })?;
    let (flag, tally) = (stop.clone(), counts.clone());
    let (peers, traffic_stp) = (traffic.peers()?, traffic.stp);
    let router = traffic
        .router
        .map(|router| Router::new(router, traffic.secure.as_ref()));
    let router = router.transpose()?;
    // From here on dropping it ends what runs.
    let mut running = Running {
        stop,
        counts,
        producers,
        threads: vec![serving],
    };
    let asking = std::thread::Builder::new().name("traffic".into()).spawn(move || {
        let mut random = SmallRng::seed_from_u64(1);
        while !flag.load(Ordering::Relaxed) {
            // An error means that the NRF went away: begin again, with registrations.
            if live(&traffic, &mut cast, &flag, &tally, &mut random).is_err() {
                tally.wrong.fetch_add(1, Ordering::Relaxed);
                wait(PAUSE, &flag);
            }
        }
    });
    match asking {
        Ok(thread) => running.threads.push(thread),
        Err(error) => {
            running.producers.stop();
            return Err(error);
        }
    }
    if let (Some(peers), Some(board)) = (peers, board) {
        let ues = Ues::new(&board, &peers);
        let (flag, tally) = (running.stop.clone(), running.counts.clone());
        let thread = std::thread::Builder::new().name("ues".into());
        let thread = thread.spawn(move || answer_commands(ues, &flag, &tally))?;
        running.threads.push(thread);
        let (flag, tally) = (running.stop.clone(), running.counts.clone());
        let thread = std::thread::Builder::new().name("calls".into());
        let thread = thread.spawn(move || calls::run(peers, &board, &flag, &tally))?;
        running.threads.push(thread);
    }
    if let Some(router) = router {
        let (flag, tally) = (running.stop.clone(), running.counts.clone());
        let thread = std::thread::Builder::new().name("diameter".into());
        let thread = thread.spawn(move || diameter::run(&router, &flag, &tally))?;
        running.threads.push(thread);
    }
    if let Some(stp) = traffic_stp {
        let (flag, tally) = (running.stop.clone(), running.counts.clone());
        let thread = std::thread::Builder::new().name("signalling".into());
        let thread = thread.spawn(move || signalling::run(stp, &flag, &tally))?;
        running.threads.push(thread);
    }
    Ok(running)
}

/// Has UEs answer what the PCF commands them, until the end.
fn answer_commands(mut ues: Ues, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Ordering::Relaxed) {
        if let Some(answered) = ues.answer_next(LISTENS) {
            counts.count(answered.is_ok());
        }
    }
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

fn live(
    traffic: &Traffic,
    cast: &mut Cast,
    stop: &AtomicBool,
    counts: &Counts,
    random: &mut SmallRng,
) -> std::io::Result<()> {
    cast.connect()?;
    let all = 0..cast.len();
    let right = |right: bool| {
        counts.count(right);
        right
    };
    let mut registered = true;
    for one in all.clone() {
        registered &= right(cast.register(one)?);
    }
    if !registered {
        wait(PAUSE, stop);
    }
    let mut next_heartbeat = Instant::now() + traffic.heartbeat;
    let between = Duration::from_secs_f64(1.0 / traffic.discoveries.clamp(0.01, 1000.0));
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= next_heartbeat {
            next_heartbeat += traffic.heartbeat;
            for one in all.clone() {
                let load = random.random_range(5..60);
                // A function that the NRF has forgotten must register again.
                if !right(cast.beat(one, load)?) {
                    return Ok(());
                }
            }
        }
        let (requester, target) = LOOKS[random.random_range(0..LOOKS.len())];
        right(cast.look(requester, target)?);
        wait(between, stop);
    }
    for one in all {
        right(cast.leave(one)?);
    }
    Ok(())
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
