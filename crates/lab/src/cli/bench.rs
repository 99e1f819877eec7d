//! `signalbox lab bench`: programs for one job under one load, in turns.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::{FAILED, Failure, USAGE, failure, json_text, period, say};
use crate::bench;
use crate::run::{self, Progress};

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// What: dsr (our Diameter router and freeDiameter as relays), pdra (our Policy DRA and freeDiameter with
    /// rt_default before several PCRFs), scp (our SCP, HAProxy and nghttpx as proxies), nrf (our
    /// NRF, nginx and other NRFs), policy (our PCF and other PCFs), stp (our STP and osmo-stp), instructions (of our SCP, NRF,
    /// PCF, STP and router and of those beside them, under callgrind), sbr (memory and start of a Policy DRA with many sessions),
    /// scef (memory and start of an SCEF with many device contexts), dp (a database processor beside changes of its subscribers)
    #[arg(value_parser = PossibleValuesParser::new(BENCHES.map(|(name, _)| name)))]
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
    /// Simulated clients, a connection each (dsr, pdra, stp, dp), or connections of the closed loop (scp, nrf, policy); 1 with dp, else
    /// 16
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=999))]
    connections: Option<u32>,
    /// Requests in flight on each connection of the closed loop (scp, nrf, policy)
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    streams: u32,
    /// Connections of the open loop (scp, nrf, policy)
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2000))]
    clients: u32,
    /// Numbers of producers, a section of the result for each (scp)
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,176",
        value_parser = clap::value_parser!(u32).range(1..=2000))]
    producers: Vec<u32>,
    /// How long a burst to three times the most lasts (scp, nrf, policy); 0s for none
    #[arg(long, default_value = "5s", value_parser = period)]
    burst: Duration,
    /// Requests per second that count as the most, instead of what nghttpx (scp), nginx (nrf) or the other PCF
    /// (policy) carries
    #[arg(long)]
    most: Option<f64>,
    /// Another NRF: its name, where it serves HTTP/2 in cleartext, and what starts it; may be repeated (nrf)
    #[arg(long, value_name = "NAME=ADDRESS=COMMAND", value_parser = str::parse::<bench::Other>)]
    nrf_command: Vec<bench::Other>,
    /// Another PCF, in the same form (policy); it finds its UDR and BSF at the NRF of `--nrf-address`
    #[arg(long, value_name = "NAME=ADDRESS=COMMAND", value_parser = str::parse::<bench::Other>)]
    pcf_command: Vec<bench::Other>,
    /// Where the NRF for all PCFs listens (policy)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.10:7777")]
    nrf_address: std::net::SocketAddr,
    /// Settings of our function, laid over those that the bench makes (scp, nrf, policy)
    #[arg(long, value_name = "FILE")]
    function_config: Option<PathBuf>,
    /// Requests of the shorter of two runs (instructions)
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    requests: u32,
    /// Average size of requests and of answers (dsr)
    #[arg(long, default_value_t = 2200, value_parser = clap::value_parser!(u32).range(700..=60_000))]
    message_bytes: u32,
    /// Requests per second instead of the most that each carries (dsr, pdra, stp), look-ups per second instead of 80,000 (dp)
    #[arg(long)]
    rate: Option<f64>,
    /// Count the programs alone whose names begin like this, such as dsr or dsr-fabr,dsr-rbar (instructions)
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of the processor (dp)
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    numbers: u64,
    /// Changes per second at the server that the processor follows, as 200 or 200/s; 0 for none (dp)
    #[arg(long, value_name = "N/s", default_value = "200/s", value_parser = each_second)]
    writes: u32,
    /// Subscribers that are bound, with two sessions each (sbr)
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    bindings: u64,
    /// Device contexts: half of them devices with NIDD, half subscriptions (scef)
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    contexts: u64,
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

/// Reads a rate such as `200/s`.
fn each_second(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<u32>();
    number
        .ok()
        .filter(|rate| *rate <= 10_000)
        .ok_or_else(|| format!("{text:?} is not a rate of 0 to 10000, such as 200/s"))
}

impl BenchArgs {
    fn connections(&self) -> u32 {
        let usual = if self.what == "dp" { 1 } else { 16 };
        self.connections.unwrap_or(usual)
    }

    /// Where the programs run; the folder is that of settings, logs and data.
    fn site(&self) -> bench::Site {
        bench::Site {
            pin: self.pin.clone().unwrap_or_default(),
            out: self.out.join(&self.what),
            program: self.program.clone(),
        }
    }

    fn turns(&self) -> bench::Turns {
        let loads = self.loads();
        bench::Turns {
            rounds: loads.rounds,
            duration: loads.duration,
            rate: self.rate,
        }
    }

    fn loads(&self) -> bench::Loads {
        let loads = bench::Loads {
            rounds: self.rounds,
            duration: self.duration,
            connections: self.connections(),
            streams: self.streams,
            clients: self.clients,
            burst: self.burst,
            most: self.most.map(|most| most.max(1.0)),
        };
        if self.quick { loads.quick() } else { loads }
    }
}

pub(super) fn compare(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let mut progress = Progress::default();
    let bench = BENCHES.iter().find(|(name, _)| *name == args.what);
    let (_, run) = bench.ok_or_else(|| failure(USAGE)(&format!("{}: unknown bench", args.what)))?;
    let made = run(args, &mut progress);
    progress.clear();
    let Outcome {
        json,
        shown,
        markdown,
    } = made?;
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

/// Runs a bench.
type Run = fn(&BenchArgs, &mut Progress) -> Result<Outcome, Failure>;

/// All benches, by name.
const BENCHES: [(&str, Run); 10] = [
    ("dsr", dsr),
    ("pdra", pdra),
    ("scp", scp),
    ("nrf", nrf),
    ("policy", policy),
    ("stp", stp),
    ("instructions", instructions),
    ("sbr", sbr),
    ("scef", scef),
    ("dp", dp),
];

fn dsr(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::dsr::Settings {
        turns: args.turns(),
        connections: args.connections(),
        message_bytes: args.message_bytes,
        site: args.site(),
    };
    outcome(
        bench::dsr::compare(&settings, progress),
        bench::dsr::Comparison::markdown,
    )
}

fn pdra(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::pdra::Settings {
        turns: args.turns(),
        connections: args.connections(),
        site: args.site(),
    };
    outcome(
        bench::pdra::compare(&settings, progress),
        bench::pdra::Comparison::markdown,
    )
}

fn stp(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::stp::Settings {
        turns: args.turns(),
        connections: args.connections(),
        site: args.site(),
    };
    outcome(
        bench::stp::compare(&settings, progress),
        bench::stp::Comparison::markdown,
    )
}

fn scp(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::scp::Settings {
        loads: args.loads(),
        producers: args.producers.clone(),
        function_config: args.function_config.clone(),
        site: args.site(),
    };
    outcome(
        bench::scp::compare(&settings, progress),
        bench::Comparison::markdown,
    )
}

fn nrf(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::nrf::Settings {
        loads: args.loads(),
        others: args.nrf_command.clone(),
        function_config: args.function_config.clone(),
        site: args.site(),
    };
    outcome(
        bench::nrf::compare(&settings, progress),
        bench::Comparison::markdown,
    )
}

fn policy(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::policy::Settings {
        loads: args.loads(),
        others: args.pcf_command.clone(),
        nrf: args.nrf_address,
        function_config: args.function_config.clone(),
        site: args.site(),
    };
    outcome(
        bench::policy::compare(&settings, progress),
        bench::Comparison::markdown,
    )
}

fn instructions(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::instructions::Settings {
        requests: if args.quick { 100 } else { args.requests },
        translations: if args.quick { 10_000 } else { 1_000_000 },
        only: args.only.clone(),
        site: args.site(),
    };
    outcome(
        bench::instructions::count(&settings, progress),
        bench::instructions::Counts::markdown,
    )
}

fn sbr(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::sbr::Settings {
        bindings: if args.quick { 1000 } else { args.bindings },
        site: args.site(),
    };
    outcome(
        bench::sbr::preload(&settings, progress),
        bench::sbr::Preload::markdown,
    )
}

fn scef(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::scef::Settings {
        contexts: if args.quick { 200 } else { args.contexts },
        site: args.site(),
    };
    outcome(
        bench::scef::preload(&settings, progress),
        bench::scef::Contexts::markdown,
    )
}

fn dp(args: &BenchArgs, progress: &mut Progress) -> Result<Outcome, Failure> {
    let settings = bench::dp::Settings {
        rate: args.rate.unwrap_or(bench::dp::USUAL_RATE),
        duration: args.loads().duration,
        connections: args.connections(),
        numbers: if args.quick { 10_000 } else { args.numbers },
        writes: args.writes,
        site: args.site(),
    };
    outcome(bench::dp::load(&settings, progress), bench::dp::Figures::markdown)
}

/// A result in its three forms.
struct Outcome {
    json: String,
    shown: String,
    markdown: String,
}

fn outcome<T: serde::Serialize + std::fmt::Display>(
    made: Result<T, run::RunError>,
    markdown: fn(&T) -> String,
) -> Result<Outcome, Failure> {
    let made = made.map_err(|error| match &error {
        run::RunError::Rig(run::RigError::Settings(_)) => failure(USAGE)(&error),
        _ => failure(FAILED)(&error),
    })?;
    Ok(Outcome {
        json: json_text(&made)?,
        shown: made.to_string(),
        markdown: markdown(&made),
    })
}

#[cfg(test)]
mod tests {
    use super::each_second;

    #[test]
    fn a_rate_of_changes_has_a_unit_or_none() {
        assert_eq!((each_second("200/s"), each_second("0")), (Ok(200), Ok(0)));
        for wrong in ["", "200/m", "-1", "10001/s", "1.5/s"] {
            assert!(each_second(wrong).is_err(), "{wrong}");
        }
    }
}
