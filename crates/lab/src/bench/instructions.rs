//! User instructions per request: our SCP (Models C and D), our NRF (a discovery), our PCF (an SM policy association created
//! and deleted), our STP (an MSU whose global title is translated) and our Diameter router (relayed, and with its applications),
//! beside HAProxy, nghttpx and nginx.
//!
//! Each program runs under `valgrind --tool=callgrind`, which counts the instructions that it executes in user mode,
//! whatever else the machine does: a figure without noise, on a machine of any speed. One request is in flight at a time,
//! so that nothing is shared out over several. A program runs twice, with N requests and with 2N; the difference by N
//! leaves out what starting and stopping take.

use std::fmt;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Site;
use super::contest::Requests;
use super::processes::{self, PATIENCE, register};
use super::{nrf, policy, routed, scp, stp};
use crate::run::{Guarded, Place, Progress, RigError, RunError, figure};
use ::report::Check;
use loadgen::client::{Client, Request};
use report::measure::Machine;

/// How to count.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Requests of the shorter run.
    pub requests: u32,
    /// Global titles that the STP translates.
    pub translations: u32,
    /// Beginnings of the names of the programs that are counted; empty: all are.
    pub only: Vec<String>,
    /// Where it runs.
    pub site: Site,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub name: String,
    /// What it does for a request.
    pub job: String,
    /// Instructions in user mode for each request.
    pub instructions_per_request: f64,
    /// By those of the reference for the same job; `None` where the job has no reference.
    pub ratio: Option<f64>,
}

/// All programs; `target/bench/instructions.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// By program, the references after ours.
    pub rows: Vec<Row>,
    /// Requests of the shorter run.
    pub requests: u32,
    /// Where it was counted; the architecture and the compiler matter, not the speed.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
}

/// Requests before those that count, so that connections stand and caches are warm.
const WARM_UP: u32 = 50;
/// How much longer a program may take to start and to stop: it runs some fifty times slower.
const SLOWNESS: Duration = Duration::from_secs(240);
/// glibc copies a few KiB by `rep movsb`, which callgrind counts as one instruction for each byte: all programs copy by
/// vectors instead.
const COPY_BY_VECTORS: &str = "glibc.cpu.x86_rep_movsb_threshold=1000000000";
/// The most instructions that a request may take in Model D, by those in Model C.
const DISCOVERED: f64 = 1.1;
/// The most instructions that relaying a request may take.
const BAR: f64 = 20_000.0;
/// The most instructions that translating and routing an MSU may take.
const TRANSLATED: f64 = 4_000.0;

/// The most instructions of a request that is resolved subscriber by subscriber, by those of one resolved by ranges, and of one
/// that a security application screens, by those of the same relayed.
const RESOLVED: f64 = 1.2;
const SCREENED: f64 = 1.8;

const RELAY: &str = "relay of a 4.2 KB POST, 4.8 KB answer";
const ANSWER: &str = "answer of the size of a discovery's";
const ASSOCIATION: &str = "SM policy, created and deleted";
const TRANSLATION: &str = "MSU of 200 octets, title translated";
const OURS: &str = "nrf";
const NGINX: &str = "nginx";

/// Our functions beside the router, and the programs that they are compared with.
const FUNCTIONS: [&str; 8] = [
    scp::MODEL_C,
    scp::MODEL_D,
    scp::HAPROXY,
    scp::NGHTTPX,
    OURS,
    NGINX,
    policy::OURS,
    stp::OURS,
];
/// Programs that are compared with ours, and the packages that have them.
const PROGRAMS: [(&str, &str); 3] = [
    ("haproxy", "haproxy"),
    ("nghttpx", "nghttp2-proxy"),
    ("nginx", "nginx-light"),
];

/// Counts.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when a program is not installed.
pub fn count(settings: &Settings, progress: &mut Progress) -> Result<Counts, RunError> {
    processes::find("valgrind", "valgrind")?;
    let is_wanted = |name: &str| {
        let only = &settings.only;
        only.is_empty() || only.iter().any(|begin| name.starts_with(begin))
    };
    if !routed::NAMES.iter().chain(&FUNCTIONS).any(|name| is_wanted(name)) {
        let all = [&routed::NAMES[..], &FUNCTIONS].concat().join(", ");
        let why = format!("--only: no program is called so; expected beginnings of {all}");
        return Err(RigError::Settings(why).into());
    }
    for (program, packages) in PROGRAMS.into_iter().filter(|(program, _)| is_wanted(program)) {
        processes::find(program, packages)?;
    }
    let place = settings.site.place()?;
    let mut counter = Counter {
        settings,
        place: &place,
        progress,
        counted: Vec::new(),
    };
    for router in routed::all(&place, is_wanted)? {
        let routing = Routing::of(&router, &place);
        counter.count(routing.program())?;
    }
    if FUNCTIONS.iter().any(|name| is_wanted(name)) {
        count_functions(&mut counter, is_wanted)?;
    }
    Ok(counts(&counter.counted, settings.requests))
}

/// Counts the functions beside the router, and what they are compared with.
fn count_functions(counter: &mut Counter<'_>, is_wanted: impl Fn(&str) -> bool) -> Result<(), RunError> {
    let place = counter.place;
    let producers = scp::Producers::start(place, 1)?;
    let (known, known_address) = scp::nrf(place, &producers)?;
    let relayed = producers.model_c();
    let discovered = scp::model_d();
    let plain = Requests {
        headers: Vec::new(),
        ..relayed.clone()
    };
    let file = std::cell::OnceCell::new();
    let discoveries = nrf::requests(0..=u64::MAX);
    let scp_command = || scp::scp(place, known_address, None);
    let haproxy = || processes::haproxy(place, producers.used());
    let nghttpx = || processes::nghttpx(producers.used());
    let nrf_command = || nrf::nrf(place, None);
    let nginx = || nrf::nginx(place, file.get().map_or(&[], Vec::as_slice));
    let learning = |address| scp::await_learning(address, PATIENCE + SLOWNESS);
    let nothing = |_: SocketAddr| Ok(());
    let associations = policy::Counted::start(place, PATIENCE + SLOWNESS)?;
    let pcf = || associations.pcf(place);
    let until_served = |address| associations.await_service(address);
    let messages = stp::Counted::new(place, counter.settings.translations);
    let stp_command = || messages.stp();
    let to_translate = |address, count| messages.relay(address, count, PATIENCE + SLOWNESS);
    let population = |address| {
        register(address, &nrf::profiles())?;
        let _ = file.set(nrf::ask(address)?);
        Ok(())
    };
    let to_relay = |address, count| send(address, &relayed, count);
    let to_discover_and_relay = |address, count| send(address, &discovered, count);
    let as_is = |address, count| send(address, &plain, count);
    let to_discover = |address, count| send(address, &discoveries, count);
    let to_associate = |address, count| associations.create_and_delete(address, count);
    let programs: [Program<'_>; 8] = [
        (scp::MODEL_C, RELAY, &scp_command, &learning, &to_relay),
        (
            scp::MODEL_D,
            RELAY,
            &scp_command,
            &learning,
            &to_discover_and_relay,
        ),
        (scp::HAPROXY, RELAY, &haproxy, &nothing, &as_is),
        (scp::NGHTTPX, RELAY, &nghttpx, &nothing, &as_is),
        (OURS, ANSWER, &nrf_command, &population, &to_discover),
        (NGINX, ANSWER, &nginx, &nothing, &to_discover),
        (policy::OURS, ASSOCIATION, &pcf, &until_served, &to_associate),
        (stp::OURS, TRANSLATION, &stp_command, &nothing, &to_translate),
    ];
    for program in programs {
        let (name, ..) = program;
        // nginx serves what our NRF answers.
        if is_wanted(name) || name == OURS && is_wanted(NGINX) {
            counter.count(program)?;
        }
    }
    known.stop();
    Ok(())
}

/// Counts one program after the other.
struct Counter<'a> {
    settings: &'a Settings,
    place: &'a Place,
    progress: &'a mut Progress,
    counted: Vec<(&'static str, &'static str, f64)>,
}

impl Counter<'_> {
    fn count(&mut self, program: Program<'_>) -> Result<(), RigError> {
        let (name, job, ..) = program;
        let (requests, begun) = (self.settings.requests, Instant::now());
        let mut run = |count: u32| {
            self.progress
                .status(&format!("{name}: {count} requests under callgrind …"));
            instructions(self.place, program, count)
        };
        let (short, long) = (run(requests)?, run(requests * 2)?);
        let each = long.saturating_sub(short) as f64 / f64::from(requests.max(1));
        self.progress.note(&format!(
            "{name}: {} instructions for each request, counted in {} s",
            figure(each),
            begun.elapsed().as_secs()
        ));
        self.counted.push((name, job, each));
        Ok(())
    }
}

/// A name, a job, what starts it, what is done before the requests, and what sends a number of them.
type Program<'a> = (
    &'static str,
    &'static str,
    &'a dyn Fn() -> Result<(Command, SocketAddr), RigError>,
    &'a dyn Fn(SocketAddr) -> Result<(), RigError>,
    &'a dyn Fn(SocketAddr, u32) -> Result<(), RigError>,
);

/// What is done with a router.
struct Routing<'a> {
    names: (&'static str, &'static str),
    command: Box<dyn Fn() -> Result<(Command, SocketAddr), RigError> + 'a>,
    prepare: Box<dyn Fn(SocketAddr) -> Result<(), RigError> + 'a>,
    drive: Box<dyn Fn(SocketAddr, u32) -> Result<(), RigError> + 'a>,
}

impl<'a> Routing<'a> {
    fn of(router: &'a routed::Routed, place: &'a Place) -> Self {
        Self {
            names: (router.name, router.job),
            command: Box::new(|| router.command(place)),
            prepare: Box::new(|_| router.await_servers()),
            drive: Box::new(|address, count| router.send(address, count, PATIENCE + SLOWNESS)),
        }
    }

    fn program(&self) -> Program<'_> {
        let (name, job) = self.names;
        (name, job, &*self.command, &*self.prepare, &*self.drive)
    }
}

/// Instructions of a whole run with this many requests.
fn instructions(
    place: &Place,
    (name, _, command, prepare, drive): Program<'_>,
    count: u32,
) -> Result<u64, RigError> {
    let (command, address) = command()?;
    let log = place.folder.join(format!("{name}-callgrind.log"));
    let mut child = Guarded::start(name, under_callgrind(place, name, &command), &[], &log)?;
    child.wait_longer_for(address, SLOWNESS)?;
    prepare(address)?;
    drive(address, WARM_UP + count)?;
    child.stop_within(SLOWNESS);
    let text = std::fs::read_to_string(&log).map_err(RigError::io(format!("reading {}", log.display())))?;
    collected(&text).ok_or_else(|| {
        RigError::Settings(format!(
            "callgrind did not report what {name} executed; its log is {}",
            log.display()
        ))
    })
}

/// The same command line under callgrind.
fn under_callgrind(place: &Place, name: &str, command: &Command) -> Command {
    let mut made = Command::new("valgrind");
    made.arg("--tool=callgrind")
        .arg(format!(
            "--callgrind-out-file={}",
            place.folder.join(format!("{name}.callgrind")).display()
        ))
        .arg(command.get_program())
        .args(command.get_args())
        .env("GLIBC_TUNABLES", COPY_BY_VECTORS)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(directory) = command.get_current_dir() {
        made.current_dir(directory);
    }
    made
}

/// Sends requests one after the other.
fn send(address: SocketAddr, requests: &Requests, count: u32) -> Result<(), RigError> {
    let failed = || RigError::io(format!("a request to {address}"));
    let mut client = Client::connect(address, PATIENCE + SLOWNESS)
        .map_err(failed())?
        .always(requests.headers.clone());
    for path in requests.paths.iter().cycle().take(count as usize) {
        let mut request = Request::new(requests.method, path.clone());
        if !requests.body.is_empty() {
            request = request.with("application/json", requests.body.clone());
        }
        let answers = client.exchange(&[request]).map_err(failed())?;
        let answer = answers.into_iter().next().unwrap_or_default();
        if answer.status != requests.status || !requests.answer_bytes.contains(&(answer.body.len() as u64)) {
            return Err(RigError::Settings(format!(
                "{address} answers {} with {} bytes: {}",
                answer.status,
                answer.body.len(),
                answer.text()
            )));
        }
    }
    Ok(())
}

/// What callgrind logs at its end, as in `==14783== Collected : 1800250`.
fn collected(log: &str) -> Option<u64> {
    let line = log.lines().rev().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Who else does a job.
fn reference(job: &str) -> Option<&'static str> {
    match job {
        RELAY => Some(scp::NGHTTPX),
        ANSWER => Some(NGINX),
        routed::UPDATE => Some(routed::RELAY),
        routed::ROAMING => Some(routed::ROAMED),
        routed::SESSIONS => Some(routed::RELAYED_SESSIONS),
        _ => None,
    }
}

/// A ratio in words.
fn in_words(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn counts(counted: &[(&str, &str, f64)], requests: u32) -> Counts {
    let of = |name: &str| {
        let found = counted.iter().find(|(one, ..)| *one == name);
        found.map(|(.., each)| *each)
    };
    let rows = counted.iter().map(|(name, job, each)| Row {
        name: (*name).to_owned(),
        job: (*job).to_owned(),
        instructions_per_request: each.round(),
        ratio: reference(job)
            .and_then(of)
            .map(|other| (each / other * 1000.0).round() / 1000.0),
    });
    let most = |name: &str, most: f64, of: Option<f64>| {
        let of = of?;
        Some(Check::new(
            name,
            format!("at most {}", figure(most)),
            figure(of),
            of <= most,
        ))
    };
    let at_most = |name: &str, (one, other): (&str, &str), most: f64| {
        let (of_one, of_other) = of(one).zip(of(other))?;
        Some(Check::new(
            name,
            format!("at most {most} times those of {other}, {}", figure(of_other)),
            format!("{}, {:.3} times", figure(of_one), of_one / of_other),
            of_one <= most * of_other,
        ))
    };
    let checks = [
        most("user instructions per relayed request", BAR, of(scp::MODEL_C)),
        at_most(
            "user instructions per relayed request whose producer is discovered",
            (scp::MODEL_D, scp::MODEL_C),
            DISCOVERED,
        ),
        most(
            "user instructions per MSU whose title is translated",
            TRANSLATED,
            of(stp::OURS),
        ),
        at_most("user instructions per discovery", (OURS, NGINX), 1.0),
        at_most(
            "user instructions per request resolved subscriber by subscriber",
            (routed::FABR, routed::RBAR),
            RESOLVED,
        ),
        at_most(
            "user instructions per request that is screened",
            (routed::DSA, routed::ROAMED),
            SCREENED,
        ),
    ];
    Counts {
        rows: rows.collect(),
        requests,
        machine: Machine::this(),
        checks: checks.into_iter().flatten().collect(),
    }
}

impl Counts {
    /// The table as Markdown, ratios first.
    #[must_use]
    pub fn markdown(&self) -> String {
        use fmt::Write;
        let mut text = format!(
            "User instructions for each request, one in flight; `make bench-instructions`, {}\n\n\
             | job | program | by the reference's | instructions |\n|---|---|--:|--:|\n",
            self.machine.architecture
        );
        for row in &self.rows {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | **{}** | {} |",
                row.job,
                row.name,
                in_words(row.ratio),
                figure(row.instructions_per_request)
            );
        }
        text
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "User instructions for each request, one in flight, by callgrind ({} and {} requests); references: {} and {NGINX}",
            self.requests,
            self.requests * 2,
            scp::NGHTTPX
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "  {:<17} {:>8} {:>10}   {}",
                row.name,
                in_words(row.ratio),
                figure(row.instructions_per_request),
                row.job
            )?;
        }
        self.checks.iter().try_for_each(|check| writeln!(f, "  {check}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_the_log() {
        let log = "==7== Events    : Ir\n==7== Collected : 1800250\n==7== \n==7== I   refs:      1,800,250\n";
        assert_eq!(collected(log), Some(1_800_250));
        assert_eq!(collected("killed"), None);
    }

    #[test]
    fn each_job_has_its_reference() {
        let counts = counts(
            &[
                (scp::MODEL_C, RELAY, 30_000.0),
                (scp::MODEL_D, RELAY, 32_000.0),
                (scp::HAPROXY, RELAY, 45_000.0),
                (scp::NGHTTPX, RELAY, 40_000.0),
                (OURS, ANSWER, 9_000.0),
                (NGINX, ANSWER, 12_000.0),
                (policy::OURS, ASSOCIATION, 500_000.0),
                (stp::OURS, TRANSLATION, 3_900.0),
                (routed::RELAY, routed::UPDATE, 20_000.0),
                (routed::RBAR, routed::UPDATE, 25_000.0),
                (routed::FABR, routed::UPDATE, 30_000.0),
                (routed::ROAMED, routed::ROAMING, 20_000.0),
                (routed::DSA, routed::ROAMING, 37_000.0),
                (routed::RELAYED_SESSIONS, routed::SESSIONS, 20_000.0),
                (routed::PDRA, routed::SESSIONS, 50_000.0),
            ],
            100,
        );
        let ratios: Vec<Option<f64>> = counts.rows.iter().map(|row| row.ratio).collect();
        assert_eq!(
            ratios,
            [
                Some(0.75),
                Some(0.8),
                Some(1.125),
                Some(1.0),
                Some(0.75),
                Some(1.0),
                None,
                None,
                Some(1.0),
                Some(1.25),
                Some(1.5),
                Some(1.0),
                Some(1.85),
                Some(1.0),
                Some(2.5)
            ]
        );
        assert_eq!(
            counts.checks.iter().map(|check| check.pass).collect::<Vec<_>>(),
            [false, true, true, true, true, false]
        );
        let of_fabr = counts
            .checks
            .iter()
            .find(|check| check.name.contains("by subscriber"));
        assert!(
            of_fabr.is_some_and(|check| check.got.contains("1.200 times")),
            "{counts}"
        );
        assert!(counts.markdown().contains("| nrf | **0.75** | 9,000 |"));
        assert!(counts.markdown().contains("| pcf | **-** | 500,000 |"));
    }

    #[test]
    fn what_was_not_counted_is_neither_judged_nor_a_reference() {
        let counts = counts(
            &[
                (routed::FABR, routed::UPDATE, 30_000.0),
                (routed::RBAR, routed::UPDATE, 25_000.0),
            ],
            100,
        );
        assert!(counts.rows.iter().all(|row| row.ratio.is_none()), "{counts}");
        let [check] = &counts.checks[..] else {
            panic!("{counts}")
        };
        assert!(check.pass && check.expected.contains(routed::RBAR), "{check:?}");
    }
}
