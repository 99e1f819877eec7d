//! The command line of the laboratory, to be mounted by the binary: `signalbox lab …` and `signalbox lab-sim …`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use settings::Period;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::bench;
use crate::run::{self, Database, Options, Progress, Rate, figure};
use crate::suite::{self, SuiteError};
use ::report::{self, Report, Verdict};
use callmodel::{self, CallModel, Found};

/// Measure a function with an operator's call model.
#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// The call models there are
    List {
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// A call model: its traffic, what the guide measured, and where the guide contradicts itself
    Show {
        /// Name (nrf/5k) or path of a YAML file
        model: String,
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// Run a call model against a function that is started for it
    Run(Box<RunArgs>),
    /// Run every call model and drill of a function, and say which of its features passed
    Suite(Box<SuiteArgs>),
    /// Compare two programs for one job under one load, in turns
    Bench(Box<BenchArgs>),
    /// Render the report of a run again, or compare two runs
    Report {
        /// Folder of a run; a second one to compare with
        #[arg(required_unless_present = "list", num_args = 1..=2)]
        folders: Vec<PathBuf>,
        /// List the runs under lab-runs, the latest last
        #[arg(long, conflicts_with = "folders")]
        list: bool,
        /// For machines
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Name (nrf/5k) or path of a YAML file
    model: String,
    /// How long to measure, after warming up
    #[arg(long, default_value = "60s", value_parser = period)]
    duration: Duration,
    /// How long to warm up
    #[arg(long, default_value = "5s", value_parser = period)]
    warmup: Duration,
    /// Transactions per second, a factor such as 0.2x, or max to search for the knee
    #[arg(long, value_parser = str::parse::<Rate>)]
    rate: Option<Rate>,
    /// Cores of the function (0 or 0-3,6); generator and simulators get the others
    #[arg(long, value_name = "CPUS", value_parser = run::cpu_list)]
    pin: Option<std::vec::Vec<usize>>,
    /// Where reports go; a new folder under lab-runs if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Connections to the function, instead of the model's
    #[arg(long)]
    connections: Option<u32>,
    /// Bindings that stand when the load begins [default: the model's, at most 100000]
    #[arg(long)]
    sessions: Option<u64>,
    /// Keep the stores with these bindings in a folder, for later runs; those of an earlier run there are used
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// What keeps the bindings: embedded, galera (a cluster of three nodes), sites (servers that replicate)
    #[arg(long, value_name = "KIND", value_parser = str::parse::<Database>)]
    database: Option<Database>,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    generators: usize,
    /// Load a function that runs already, at this address
    #[arg(long, value_name = "ADDRESS")]
    target: Option<SocketAddr>,
    /// Settings of the function, laid over those that the lab makes
    #[arg(long, value_name = "FILE")]
    function_config: Option<PathBuf>,
    /// Whether consumers and producers speak TLS (scp/…), instead of what the model says
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    tls: Option<bool>,
    /// How many times the latencies of network, producers and NRF that a model has (scp/…); 0 for none
    #[arg(long, value_name = "FACTOR", default_value = "1x", value_parser = run::latency, allow_negative_numbers = true)]
    latency: f64,
    /// Let a process that never sleeps compete for each core of the function (with --pin): it takes half of them
    #[arg(long)]
    contend: bool,
    /// A Kafka broker for models that copy messages (scp/model-d-10), instead of one that is started
    #[arg(long, value_name = "ADDRESS")]
    kafka: Option<SocketAddr>,
    /// The program that runs the function, instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    program: Option<PathBuf>,
    /// Print report.json instead of a summary
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SuiteArgs {
    /// What the names of the models begin with: dsr, or dsr/kill
    beginning: String,
    /// How long to measure each, after warming up
    #[arg(long, default_value = "10s", value_parser = period)]
    duration: Duration,
    /// How long to warm up
    #[arg(long, default_value = "2s", value_parser = period)]
    warmup: Duration,
    /// Transactions per second of each, or a factor of its own rate such as 0.1x
    #[arg(long, default_value = "500", value_parser = str::parse::<Rate>)]
    rate: Rate,
    /// Cores of the function (0 or 0-3,6); generator and simulators get the others
    #[arg(long, value_name = "CPUS", value_parser = run::cpu_list)]
    pin: Option<std::vec::Vec<usize>>,
    /// Where reports go, a folder for each model; a new folder under lab-runs if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct BenchArgs {
    /// What: dsr (our Diameter router and freeDiameter as relays), scp (our SCP, HAProxy and nghttpx as proxies), nrf (our
    /// NRF, nginx and other NRFs), instructions (of our SCP and NRF and of those beside them, under callgrind)
    #[arg(value_parser = ["dsr", "scp", "nrf", "instructions"])]
    what: String,
    /// How often each is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long each time
    #[arg(long, default_value = "5s", value_parser = period)]
    duration: Duration,
    /// One short round of everything: whether it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Cores of the relays (0 or 0-3,6); the lab gets the others
    #[arg(long, value_name = "CPUS", value_parser = run::cpu_list)]
    pin: Option<std::vec::Vec<usize>>,
    /// Simulated clients, a connection each (dsr), or connections of the closed loop (scp, nrf)
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=999))]
    connections: u32,
    /// Requests in flight on each connection of the closed loop (scp, nrf)
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    streams: u32,
    /// Connections of the open loop (scp, nrf)
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2000))]
    clients: u32,
    /// Numbers of producers, a section of the result for each (scp)
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,176",
        value_parser = clap::value_parser!(u32).range(1..=2000))]
    producers: Vec<u32>,
    /// How long a burst to three times the most lasts (scp, nrf); 0s for none
    #[arg(long, default_value = "5s", value_parser = period)]
    burst: Duration,
    /// Requests per second that count as the most, instead of what nghttpx (scp) or nginx (nrf) carries
    #[arg(long)]
    most: Option<f64>,
    /// Another NRF: its name, where it serves HTTP/2 in cleartext, and what starts it; may be repeated (nrf)
    #[arg(long, value_name = "NAME=ADDRESS=COMMAND", value_parser = str::parse::<bench::nrf::OtherNrf>)]
    nrf_command: Vec<bench::nrf::OtherNrf>,
    /// Settings of our function, laid over those that the bench makes (scp, nrf)
    #[arg(long, value_name = "FILE")]
    function_config: Option<PathBuf>,
    /// Requests of the shorter of two runs (instructions)
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    requests: u32,
    /// Average size of requests and of answers (dsr)
    #[arg(long, default_value_t = 2200, value_parser = clap::value_parser!(u32).range(700..=60_000))]
    message_bytes: u32,
    /// Requests per second instead of the most that each carries (dsr)
    #[arg(long)]
    rate: Option<f64>,
    /// Where the result goes, as <what>.json, and its tables as <what>.md
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// The program that runs our function, instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    program: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl BenchArgs {
    fn loads(&self) -> bench::Loads {
        let loads = bench::Loads {
            rounds: self.rounds,
            duration: self.duration,
            connections: self.connections,
            streams: self.streams,
            clients: self.clients,
            burst: self.burst,
            most: self.most.map(|most| most.max(1.0)),
        };
        if self.quick { loads.quick() } else { loads }
    }
}

fn period(text: &str) -> Result<Duration, String> {
    text.parse::<Period>()
        .map(Period::duration)
        .map_err(|error| format!("{text:?} {error}, as in 60s or 5m"))
}

/// The folder of runs that were given no other.
const RUNS: &str = "lab-runs";

/// What a command ends with: 0 done or passed, 1 failed, 2 usage or configuration.
const FAILED: u8 = 1;
const USAGE: u8 = 2;

impl LabArgs {
    /// Does what the command line says.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let done = match self.command {
            LabCommand::List { json } => list(json),
            LabCommand::Show { model, json } => show(&model, json),
            LabCommand::Run(args) => measure(args),
            LabCommand::Suite(args) => test_features(*args),
            LabCommand::Bench(args) => compare(args),
            LabCommand::Report { list: true, json, .. } => runs(Path::new(RUNS), json),
            LabCommand::Report { folders, json, .. } => again(&folders, json),
        };
        done.unwrap_or_else(|failure| {
            eprintln!("{}", failure.words);
            ExitCode::from(failure.code)
        })
    }
}

/// Why a command failed.
struct Failure {
    words: String,
    code: u8,
}

fn failure(code: u8) -> impl Fn(&dyn std::fmt::Display) -> Failure {
    move |words| Failure {
        words: words.to_string(),
        code,
    }
}

fn find(name: &str) -> Result<Found, Failure> {
    callmodel::find(name).map_err(|error| failure(USAGE)(&error))
}

fn say(text: &str) -> Result<(), Failure> {
    // A reader that went away (`| head`) is not an error.
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failure(FAILED)(&error)),
        _ => Ok(()),
    }
}

fn json_text(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| failure(FAILED)(&error))
}

fn list(json: bool) -> Result<ExitCode, Failure> {
    let found: Vec<Found> = callmodel::names().map(find).collect::<Result<_, _>>()?;
    if json {
        let rows: Vec<_> = found
            .iter()
            .map(|f| serde_json::json!({ "name": f.name, "title": f.model.title, "tps": f.model.ingress_tps() }))
            .collect();
        say(&json_text(&rows)?)?;
    } else {
        for Found { name, model } in &found {
            let each = model
                .guide
                .as_ref()
                .and_then(callmodel::Guide::cpu_us_per_transaction);
            let guide = each.map_or(String::new(), |us| {
                format!(
                    "   guide: {} ms of processor time per transaction",
                    figure(us / 1000.0)
                )
            });
            say(&format!(
                "{name:<22} {:>8} TPS   {}{guide}\n",
                figure(model.ingress_tps()),
                model.title
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str, json: bool) -> Result<ExitCode, Failure> {
    let found = find(name)?;
    say(&if json {
        json_text(&found.model)?
    } else {
        describe(&found)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A call model for people.
fn describe(Found { name, model }: &Found) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let CallModel {
        title,
        summary,
        source,
        guide,
        ..
    } = model;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{name}: {title}\n\n{summary}\n\nFrom: {}, release {}, section {}",
        source.guide, source.release, source.section
    );
    let _ = writeln!(
        out,
        "\nTraffic ({} ingress transactions per second):",
        figure(model.ingress_tps())
    );
    if let Some(nrf) = &model.nrf {
        let rows = serde_json::to_value(nrf.operations).unwrap_or_default();
        for (operation, tps) in rows.as_object().into_iter().flatten() {
            let tps = tps.as_f64().unwrap_or(0.0);
            if tps > 0.0 {
                let _ = writeln!(out, "  {operation:<26} {:>9}/s", figure(tps));
            }
        }
        let _ = writeln!(
            out,
            "  and out: {} SLF queries, {} forwarded discoveries, {} notifications per second",
            figure(nrf.slf_queries()),
            figure(nrf.outgoing.forwarded),
            figure(nrf.outgoing.notifications)
        );
        let _ = writeln!(out, "\n{} functions:", nrf.population_total());
        for row in &nrf.population {
            let [least, most] = row.profile_bytes;
            let _ = writeln!(
                out,
                "  {:<5} {:>4}  profiles of {least} to {most} bytes",
                row.nf_type, row.count
            );
        }
    }
    if let Some(bsf) = &model.bsf {
        let mut rows = serde_json::to_value(bsf.operations).unwrap_or_default();
        if let (Some(rows), Ok(serde_json::Value::Object(rx))) =
            (rows.as_object_mut(), serde_json::to_value(bsf.rx))
        {
            rows.extend(rx.into_iter().filter(|(_, value)| value.is_number()));
        }
        for (operation, tps) in rows.as_object().into_iter().flatten() {
            let _ = writeln!(
                out,
                "  {operation:<26} {:>9}/s",
                figure(tps.as_f64().unwrap_or(0.0))
            );
        }
        let _ = writeln!(
            out,
            "\n{} bindings stand, at {} of {} sites",
            figure(bsf.sessions as f64),
            bsf.sites_with_traffic,
            bsf.sites
        );
    }
    if let Some(dsr) = &model.dsr {
        let _ = writeln!(
            out,
            "  {} messages per second (a request with its answer is two), {} bytes on average\n  \
             {} MMEs, {} HSSs, {} message processors, destination by {}",
            figure(dsr.mps),
            dsr.message_bytes,
            model.load.connections,
            dsr.hss,
            dsr.da_mps,
            dsr.destination.name()
        );
    }
    if let Some(scp) = &model.scp {
        let whole: f64 = scp.interfaces.iter().map(|one| one.weight).sum();
        for one in &scp.interfaces {
            let rate = figure(scp.requests() * one.weight / whole.max(1e-9));
            let parties = format!("{} to {}", one.consumer, one.producer);
            let _ = writeln!(
                out,
                "  {:<18} {parties:<16} {:<26} {rate:>9}/s",
                one.name, one.service
            );
        }
        let _ = writeln!(
            out,
            "\n{} profiles at the NRF; {} of the requests by delegated discovery, {} alternate routed, {} mediated{}",
            scp.profiles,
            scp.delegated,
            scp.alternate_routed,
            scp.mediated,
            if scp.tls { "; TLS" } else { "" }
        );
    }
    if let Some(guide) = guide {
        let _ = writeln!(
            out,
            "\nThe guide's processor time, without {}:",
            guide.cpu_excludes.as_deref().unwrap_or("nothing")
        );
        for row in &guide.cpu {
            let _ = writeln!(
                out,
                "  {:<18} {:<40} {:>8.3} cores",
                row.service,
                row.arithmetic(),
                row.cores_used()
            );
        }
        if let Some(us) = guide.cpu_us_per_transaction() {
            let _ = writeln!(
                out,
                "  {:.3} cores / {} TPS = {} µs per ingress transaction",
                guide.cores_used(),
                figure(guide.ingress_tps),
                figure(us)
            );
        }
    }
    if !model.choices.is_empty() {
        let _ = writeln!(out, "\nWhere the guide contradicts itself or is silent:");
        for choice in &model.choices {
            let _ = writeln!(
                out,
                "  {}\n    printed: {}\n    taken:   {}",
                choice.about, choice.printed, choice.taken
            );
        }
    }
    out
}

fn measure(args: Box<RunArgs>) -> Result<ExitCode, Failure> {
    let found = find(&args.model)?;
    let out = args.out.unwrap_or_else(|| folder_for(&found.name));
    let options = Options {
        rate: args.rate.unwrap_or_default(),
        duration: args.duration,
        warmup: args.warmup,
        pin: args.pin.unwrap_or_default(),
        connections: args.connections,
        sessions: args.sessions,
        store: args.store,
        database: args.database.unwrap_or_default(),
        generators: args.generators.clamp(1, 64),
        out: out.clone(),
        program: args.program,
        target: args.target,
        function_config: args.function_config,
        tls: args.tls,
        latency: args.latency,
        contend: args.contend,
        kafka: args.kafka,
    };
    let mut progress = Progress::default();
    let made = run::run(&found, &options, &mut progress);
    progress.clear();
    let (report, series) = made.map_err(|error| match &error {
        run::RunError::Rig(run::RigError::Settings(_)) => failure(USAGE)(&error),
        _ => failure(FAILED)(&error),
    })?;
    report::write(&out, &report, &series)
        .map_err(|error| failure(FAILED)(&format!("cannot write to {}: {error}", out.display())))?;
    say(&if args.json {
        json_text(&report)?
    } else {
        summary(&report, &out)
    })?;
    Ok(if report.verdict == Verdict::Pass {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

fn test_features(args: SuiteArgs) -> Result<ExitCode, Failure> {
    let options = Options {
        rate: args.rate,
        duration: args.duration,
        warmup: args.warmup,
        pin: args.pin.unwrap_or_default(),
        out: args.out.unwrap_or_else(|| folder_for("suite")),
        ..Options::default()
    };
    let mut progress = Progress::default();
    let made = suite::run(&args.beginning, &options, &mut progress);
    progress.clear();
    let results = made.map_err(|error| match &error {
        SuiteError::Empty(_) => failure(USAGE)(&error),
        _ => failure(FAILED)(&error),
    })?;
    say(&match args.json {
        true => json_text(&results)?,
        false => format!("{results}  reports     {}\n", options.out.display()),
    })?;
    Ok(match results.passed() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

fn compare(args: Box<BenchArgs>) -> Result<ExitCode, Failure> {
    let mut progress = Progress::default();
    let (loads, out) = (args.loads(), args.out.join(&args.what));
    let pin = args.pin.unwrap_or_default();
    let made = match args.what.as_str() {
        "scp" => bench::scp::compare(
            &bench::scp::Settings {
                loads,
                producers: args.producers,
                pin,
                function_config: args.function_config,
                out,
                program: args.program,
            },
            &mut progress,
        )
        .map(|made| outcome(&made, made.markdown())),
        "nrf" => bench::nrf::compare(
            &bench::nrf::Settings {
                loads,
                others: args.nrf_command,
                pin,
                function_config: args.function_config,
                out,
                program: args.program,
            },
            &mut progress,
        )
        .map(|made| outcome(&made, made.markdown())),
        "instructions" => bench::instructions::count(
            &bench::instructions::Settings {
                requests: if args.quick { 100 } else { args.requests },
                out,
                program: args.program,
            },
            &mut progress,
        )
        .map(|made| outcome(&made, made.markdown())),
        _ => bench::dsr::compare(
            &bench::dsr::Settings {
                rounds: loads.rounds,
                duration: loads.duration,
                pin,
                connections: args.connections,
                message_bytes: args.message_bytes,
                rate: args.rate,
                out,
                program: args.program,
            },
            &mut progress,
        )
        .map(|made| outcome(&made, made.markdown())),
    };
    progress.clear();
    let Outcome {
        json,
        shown,
        markdown,
    } = made.map_err(|error| match &error {
        run::RunError::Rig(run::RigError::Settings(_)) => failure(USAGE)(&error),
        _ => failure(FAILED)(&error),
    })??;
    let file = args.out.join(format!("{}.json", args.what));
    for (file, text) in [(&file, &json), (&file.with_extension("md"), &markdown)] {
        std::fs::write(file, text)
            .map_err(|error| failure(FAILED)(&format!("cannot write {}: {error}", file.display())))?;
    }
    say(&if args.json {
        json
    } else {
        format!("{shown}\nwritten to {}\n", file.display())
    })?;
    // A missed bar is reported, not an error: a busy machine misses it too.
    Ok(ExitCode::SUCCESS)
}

/// A comparison in its three forms.
struct Outcome {
    json: String,
    shown: String,
    markdown: String,
}

fn outcome<T: serde::Serialize + std::fmt::Display>(made: &T, markdown: String) -> Result<Outcome, Failure> {
    Ok(Outcome {
        json: json_text(made)?,
        shown: made.to_string(),
        markdown,
    })
}

fn folder_for(model: &str) -> PathBuf {
    let now = OffsetDateTime::now_utc();
    let stamp = now
        .format(format_description!("[year][month][day]-[hour][minute][second]"))
        .unwrap_or_default();
    let model = Path::new(model).file_stem().map_or(model.to_owned(), |stem| {
        let folder = Path::new(model)
            .parent()
            .and_then(Path::file_name)
            .map(|f| format!("{}-", f.to_string_lossy()));
        folder.unwrap_or_default() + &stem.to_string_lossy()
    });
    PathBuf::from(RUNS).join(format!("{model}-{stamp}"))
}

fn summary(report: &Report, out: &Path) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let verdict = if report.verdict == Verdict::Pass {
        "passed"
    } else {
        "FAILED"
    };
    let _ = writeln!(text, "{}: {verdict}", report.model);
    if let Some(knee) = &report.knee {
        let _ = writeln!(
            text,
            "  knee        {} TPS, limited by {}",
            figure(knee.tps),
            knee.limited_by
        );
    }
    let _ = writeln!(
        text,
        "  rate        {} TPS achieved of {} offered, {:.4}% right, over {} s",
        figure(report.achieved_tps),
        figure(report.offered_tps),
        report.success_ratio * 100.0,
        figure(report.duration_s)
    );
    let beside = |guide: Option<String>| guide.map_or(String::new(), |guide| format!("; the guide: {guide}"));
    if let Some(ours) = report.functions.first() {
        let guide = report.guide.functions.first();
        let _ = writeln!(
            text,
            "  processor   {} µs per ingress transaction ({} cores){}",
            figure(ours.cpu_us_per_transaction),
            figure(ours.cpu_cores_avg),
            beside(guide.map(|guide| format!("{} µs", figure(guide.cpu_us_per_transaction))))
        );
    }
    if let Some(messages) = &report.messages {
        let _ = writeln!(
            text,
            "  messages    {} MPS, {} µs each{}",
            figure(messages.mps),
            figure(messages.cpu_us_per_message),
            beside((messages.guide_mps > 0.0).then(|| format!(
                "{} MPS, {} µs each",
                figure(messages.guide_mps),
                figure(messages.guide_cpu_us_per_message)
            )))
        );
    }
    if let Some(store) = &report.store {
        let disk = store.disk_bytes_per_session.map(figure);
        let _ = writeln!(
            text,
            "  sessions    {} preloaded ({}): {} bytes each on disk, {} resident; ready after {} s",
            figure(store.preloaded_sessions as f64),
            store.engine,
            disk.as_deref().unwrap_or("–"),
            figure(store.resident_bytes_per_session),
            figure(store.ready_s)
        );
    }
    for check in &report.checks {
        let mark = if check.pass { "✓" } else { "✗" };
        let _ = writeln!(
            text,
            "  {mark} {}: {} (expected: {})",
            check.name, check.got, check.expected
        );
    }
    let page = out.join("report.html");
    let page = page.canonicalize().unwrap_or(page);
    let _ = writeln!(text, "  report      file://{}", page.display());
    text
}

/// Lists the runs in a folder by their start.
fn runs(folder: &Path, json: bool) -> Result<ExitCode, Failure> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<(PathBuf, Report)> = entries
        .filter_map(|entry| Some((entry.path(), report::read(&entry.path()).ok()?.0)))
        .collect();
    all.sort_by(|a, b| a.1.started.cmp(&b.1.started));
    if json {
        let listed: Vec<_> = all.iter().map(|(path, report)| (path, report)).collect();
        say(&json_text(&listed)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (path, report) in &all {
        let verdict = match report.verdict {
            Verdict::Pass => "passed",
            Verdict::Fail => "FAILED",
        };
        text += &format!(
            "{}  {verdict}  {} TPS  {}\n",
            path.display(),
            figure(report.achieved_tps),
            report::identity(report)
        );
    }
    if all.is_empty() {
        text = format!("no runs under {}\n", folder.display());
    }
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn again(folders: &[PathBuf], json: bool) -> Result<ExitCode, Failure> {
    let read = |folder: &PathBuf| report::read(folder).map_err(|error| failure(USAGE)(&error));
    match folders {
        [first, second] => {
            let comparison = report::compare(&read(first)?.0, &read(second)?.0);
            say(&if json {
                json_text(&comparison.rows)?
            } else {
                comparison.to_string()
            })?;
        }
        _ => {
            for folder in folders {
                let (report, series) = read(folder)?;
                report::render(folder, &report, &series).map_err(|error| {
                    failure(FAILED)(&format!("cannot write to {}: {error}", folder.display()))
                })?;
                say(&if json {
                    json_text(&report)?
                } else {
                    summary(&report, folder)
                })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
