//! `signalbox network`: one administration of several processes, as NOAM and SOAM are for routers. A file names the processes
//! and their desired configuration; the commands put it into effect at all of them, and collect state, alarms and measurements.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use settings::{Faults, Period, Secret, Validate};

use super::{FILE, SETTINGS};
use crate::config::Config;
use crate::failure::{FAILED, Failure};
use crate::inspect::{self, cell};
use crate::overview::{Endpoint, ask_all};
use crate::{complain, print};

/// How long a process may take for a page, and for a change.
const TIMEOUT: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Check the desired configuration of each process, without asking any
    Check(NetworkArgs),
    /// Put the desired configuration into effect, one process after the other
    ///
    /// Each process checks it, writes its file and reloads; one that refuses keeps what it has, and those after it are left as they
    /// are. Exit code 0 only if all have the desired configuration.
    Push(PushArgs),
    /// Show how each process is doing, and whether it has the desired configuration
    Status(NetworkArgs),
    /// Show the active alarms of all processes in one list, the most severe first
    Alarms(NetworkArgs),
    /// Show or collect the measurements of all routers
    Measurements(MeasurementArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NetworkArgs {
    /// The file that names the processes
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only this process; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// Go on with the others where one refuses or does not answer
    #[arg(long)]
    keep_going: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MeasurementArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// Append them to a CSV file for each day in this directory
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Collect again after this time, until interrupted
    #[arg(long, value_name = "TIME", requires = "into")]
    every: Option<Period>,
}

/// `signalbox config set`: one setting of running processes.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Path of the setting, such as `dsr.limits.pendingBytes` or `dsr.peers[0].host`
    #[arg(value_name = "PATH")]
    path: String,
    /// Its value in YAML, on one line
    #[arg(value_name = "VALUE")]
    value: String,
    /// Admin endpoint of the process; may be repeated
    #[arg(long, value_name = "ADDRESS", required = true)]
    admin: Vec<SocketAddr>,
    /// File with the secret of `changes.secret`
    #[arg(long, value_name = "FILE")]
    secret: PathBuf,
}

/// The processes of a network.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Network {
    /// The secret of `changes.secret` of all processes.
    secret: Secret,
    /// Desired configuration of every process that names no other, by a path from the folder of this file. `${NAME}` stands for the
    /// value of that name.
    template: Option<PathBuf>,
    /// The processes, in the order in which they are changed.
    processes: Vec<Member>,
}

/// A process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Member {
    /// How it is named here.
    name: String,
    /// Admin endpoint of one of its functions.
    admin: SocketAddr,
    /// Its desired configuration, in place of the common one.
    template: Option<PathBuf>,
    /// What `${NAME}` in its configuration stands for. Names that are not here are left to the environment of the process.
    #[serde(default)]
    values: BTreeMap<String, String>,
}

impl Validate for Network {
    fn validate(&self, faults: &mut Faults) {
        if self.processes.is_empty() {
            faults.at("processes").say("names no process", "at least one");
        }
        for (at, one) in self.processes.iter().enumerate() {
            if self.processes[..at].iter().any(|other| other.name == one.name) {
                faults.at(format!("processes[{at}].name")).say(
                    format!("`{}` is the name of another one", one.name),
                    "a name of its own",
                );
            }
            if one.template.is_none() && self.template.is_none() {
                faults
                    .at(format!("processes[{at}]"))
                    .say("has no template", "a `template`, here or for all processes");
            }
        }
    }
}

/// A process with its desired configuration.
struct Desired {
    name: String,
    admin: SocketAddr,
    /// Where it comes from, for reports.
    source: String,
    text: String,
}

/// The processes that are meant.
fn read(args: &NetworkArgs) -> Result<(Secret, Vec<Desired>), Failure> {
    let network: Network =
        settings::from_file(&args.file).map_err(|report| Failure::Mistakes(Box::new(report)))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    if let Some(name) = args
        .only
        .iter()
        .find(|name| network.processes.iter().all(|one| one.name != **name))
    {
        return Err(Failure::Usage(format!(
            "{} names no process `{name}`",
            args.file.display()
        )));
    }
    let meant = network.processes.into_iter();
    let meant = meant.filter(|one| args.only.is_empty() || args.only.contains(&one.name));
    let mut all = Vec::new();
    for one in meant {
        let template = one
            .template
            .or_else(|| network.template.clone())
            .unwrap_or_default();
        let template = folder.join(template);
        let text =
            std::fs::read_to_string(&template).with_context(|| format!("reading {}", template.display()))?;
        all.push(Desired {
            source: format!("{} for {}", template.display(), one.name),
            text: with_values(&text, &one.values),
            name: one.name,
            admin: one.admin,
        });
    }
    let secret = match network.secret {
        Secret::File(path) => Secret::File(folder.join(path)),
        other => other,
    };
    Ok((secret, all))
}

/// The text with what `${NAME}` stands for.
fn with_values(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once("${") {
        let value = tail
            .split_once('}')
            .and_then(|(name, after)| Some((values.get(name)?, after)));
        out.push_str(head);
        match value {
            // `$${` is a plain `${` for the process.
            Some((value, after)) if !head.ends_with('$') => {
                out.push_str(value);
                rest = after;
            }
            _ => {
                out.push_str("${");
                rest = tail;
            }
        }
    }
    out + rest
}

pub(crate) fn run(command: &NetworkCommand) -> Result<ExitCode, Failure> {
    match command {
        NetworkCommand::Check(args) => check(&read(args)?.1).map(|()| ExitCode::SUCCESS),
        NetworkCommand::Push(args) => push(args),
        NetworkCommand::Status(args) => status(args),
        NetworkCommand::Alarms(args) => alarms(args),
        NetworkCommand::Measurements(args) => measurements(args),
    }
}

/// Every mistake in what is desired.
fn check(all: &[Desired]) -> Result<(), Failure> {
    let mut has_mistakes = false;
    for one in all {
        if let Err(report) = Config::read(&one.text, &one.source) {
            // Each report names its own source.
            complain(&report);
            has_mistakes = true;
        }
    }
    match has_mistakes {
        true => Err(Failure::Usage(
            "the desired configuration has mistakes; no process was asked".to_owned(),
        )),
        false => Ok(()),
    }
}

fn push(args: &PushArgs) -> Result<ExitCode, Failure> {
    let (secret, all) = read(&args.network)?;
    check(&all)?;
    let secret = secret.read()?;
    let mut rows = Vec::new();
    let mut has_failed = false;
    for one in &all {
        if has_failed && !args.keep_going {
            rows.push(json!({ "name": one.name, "outcome": "left as it is" }));
            continue;
        }
        let row = match changed(one.admin, "PUT", FILE, &one.text, &secret) {
            Ok(answer) => json!({
                "name": one.name,
                "outcome": if answer["unchanged"] == true { "had it already" } else { "has it" },
                "applied": answer["applied"],
                "restart": answer["refused"],
            }),
            Err(why) => {
                has_failed = true;
                json!({ "name": one.name, "outcome": "REFUSED OR NOT REACHED", "detail": why })
            }
        };
        rows.push(row);
    }
    if args.network.json {
        print(&(serde_json::to_string_pretty(&rows)? + "\n"))?;
    } else {
        const COLUMNS: &[(&str, &str)] = &[
            ("process", "/name"),
            ("outcome", "/outcome"),
            ("applied", "/applied"),
            ("needs a restart", "/restart"),
        ];
        print(&inspect::table(COLUMNS, &rows))?;
        for row in rows.iter().filter(|row| row["detail"].is_string()) {
            complain(&format!(
                "\n{}: {}",
                cell(row.get("name")),
                row["detail"].as_str().unwrap_or_default()
            ));
        }
    }
    Ok(code(!has_failed))
}

fn code(is_well: bool) -> ExitCode {
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    }
}

/// What a change has answered.
fn changed(admin: SocketAddr, method: &str, path: &str, body: &str, secret: &str) -> Result<Value, String> {
    let text = inspect::entrusted(admin, (method, path), body, (secret, PATIENCE))
        .map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|_| format!("{admin} does not answer as an admin endpoint does"))
}

/// A page of each process, in their order.
fn pages(all: &[Desired], path: &str) -> Vec<Result<Value, String>> {
    let endpoints: Vec<Endpoint> = all
        .iter()
        .map(|one| Endpoint {
            function: None,
            address: one.admin,
        })
        .collect();
    ask_all(&endpoints, |endpoint| {
        let text = inspect::fetch(endpoint.address, path, TIMEOUT).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    })
}

fn status(args: &NetworkArgs) -> Result<ExitCode, Failure> {
    let (secret, all) = read(args)?;
    let secret = secret.read()?;
    let mut rows = Vec::new();
    let mut is_well = true;
    for (one, page) in all.iter().zip(pages(&all, "/status")) {
        let (state, detail) = match &page {
            Ok(page) => (cell(page.get("state")), String::new()),
            Err(why) => ("no answer".to_owned(), why.clone()),
        };
        let compared = page.as_ref().map_err(Clone::clone);
        let compared = compared.and_then(|_| changed(one.admin, "POST", FILE, &one.text, &secret));
        let configuration = match &compared {
            Ok(answer) if answer["same"] != true => "another one".to_owned(),
            Ok(answer) if answer["inEffect"] != true => cell(answer.get("detail")),
            Ok(_) => "as desired".to_owned(),
            Err(why) if page.is_ok() => why.trim().to_owned(),
            Err(_) => "-".to_owned(),
        };
        is_well &= state == "serves" && configuration == "as desired";
        let alarms = page
            .as_ref()
            .ok()
            .map(|page| page["alarms"].as_array().map_or(0, Vec::len));
        rows.push(json!({
            "name": one.name,
            "admin": one.admin,
            "function": page.as_ref().ok().map(|page| page["function"].clone()),
            "state": state,
            "configuration": configuration,
            "alarms": alarms,
            "release": page.as_ref().ok().map(|page| page["version"].clone()),
            "detail": detail,
        }));
    }
    const COLUMNS: &[(&str, &str)] = &[
        ("process", "/name"),
        ("function", "/function"),
        ("state", "/state"),
        ("configuration", "/configuration"),
        ("alarms", "/alarms"),
        ("release", "/release"),
        ("", "/detail"),
    ];
    show(args, COLUMNS, &rows)?;
    Ok(code(is_well))
}

fn show(args: &NetworkArgs, columns: &[(&str, &str)], rows: &[Value]) -> Result<(), Failure> {
    match args.json {
        true => print(&(serde_json::to_string_pretty(rows)? + "\n")),
        false => print(&inspect::table(columns, rows)),
    }
}

/// Severities, the worst first.
const SEVERITIES: [&str; 4] = ["critical", "major", "minor", "info"];

fn alarms(args: &NetworkArgs) -> Result<ExitCode, Failure> {
    let (_, all) = read(args)?;
    let mut rows = Vec::new();
    let mut is_complete = true;
    for (one, page) in all.iter().zip(pages(&all, "/alarms")) {
        match page {
            Ok(mut page) => {
                let active = page["active"].take();
                for mut alarm in active.as_array().cloned().unwrap_or_default() {
                    alarm["process"] = json!(one.name);
                    rows.push(alarm);
                }
            }
            Err(why) => {
                is_complete = false;
                complain(&format!("{}: {why}", one.name));
            }
        }
    }
    let rank = |alarm: &Value| {
        let severity = alarm["severity"].as_str().unwrap_or_default();
        SEVERITIES
            .iter()
            .position(|one| *one == severity)
            .unwrap_or(SEVERITIES.len())
    };
    rows.sort_by_key(rank);
    const COLUMNS: &[(&str, &str)] = &[
        ("process", "/process"),
        ("severity", "/severity"),
        ("number", "/number"),
        ("name", "/name"),
        ("about", "/instance"),
        ("since", "/raised"),
        ("detail", "/detail"),
        ("advice", "/advice"),
    ];
    show(args, COLUMNS, &rows)?;
    Ok(code(is_complete))
}

fn measurements(args: &MeasurementArgs) -> Result<ExitCode, Failure> {
    loop {
        let (_, all) = read(&args.network)?;
        let (rows, is_complete) = measured(&all);
        match &args.into {
            Some(directory) => append(directory, &rows)?,
            None => {
                const COLUMNS: &[(&str, &str)] = &[
                    ("process", "/process"),
                    ("kind", "/kind"),
                    ("name", "/name"),
                    ("meaning", "/meaning"),
                    ("count", "/count"),
                ];
                show(&args.network, COLUMNS, &rows)?;
            }
        }
        match &args.every {
            Some(every) => std::thread::sleep(every.duration()),
            None => return Ok(code(is_complete)),
        }
    }
}

/// What all routers have counted, and whether all have answered.
fn measured(all: &[Desired]) -> (Vec<Value>, bool) {
    let mut rows = Vec::new();
    let mut is_complete = true;
    for (one, page) in all.iter().zip(pages(all, "/dsr/measurements")) {
        match page {
            Ok(page) => {
                for mut row in page.as_array().cloned().unwrap_or_default() {
                    row["process"] = json!(one.name);
                    rows.push(row);
                }
            }
            Err(why) => {
                is_complete = false;
                complain(&format!("{}: {why}", one.name));
            }
        }
    }
    (rows, is_complete)
}

/// Appends rows to the file of this day (UTC).
fn append(directory: &Path, rows: &[Value]) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    let now = time::OffsetDateTime::from(SystemTime::now());
    let path = directory.join(format!("measurements-{}.csv", now.date()));
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    let mut text = String::new();
    if file.metadata()?.len() == 0 {
        text.push_str("time,process,kind,name,meaning,count\n");
    }
    let now = now.replace_nanosecond(0).unwrap_or(now);
    let now = now.format(&time::format_description::well_known::Rfc3339)?;
    for row in rows {
        let cells =
            ["process", "kind", "name", "meaning", "count"].map(|member| field(&cell(row.get(member))));
        text.push_str(&format!("{now},{}\n", cells.join(",")));
    }
    file.write_all(text.as_bytes())
        .with_context(|| format!("writing {}", path.display()))
}

/// A field of a CSV file (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Changes one setting of processes, one after the other, until one refuses.
pub(crate) fn set(args: &SetArgs) -> Result<ExitCode, Failure> {
    let secret = Secret::File(args.secret.clone()).read()?;
    let path = format!("{SETTINGS}{}", function::pages::segment(&args.path));
    for admin in &args.admin {
        match changed(*admin, "PUT", &path, &args.value, &secret) {
            Ok(answer) => print(&format!("{admin}:\n{}", settings::to_yaml(&answer)))?,
            Err(why) => {
                complain(&format!("{admin}: {}", why.trim()));
                return Ok(ExitCode::from(FAILED));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_for_their_names() {
        let values = BTreeMap::from([("HOST".to_owned(), "dsr1.example".to_owned())]);
        let text = "host: ${HOST}\nother: ${OTHER:-x}\nplain: $${HOST}\nopen: ${HOST";
        let wanted = "host: dsr1.example\nother: ${OTHER:-x}\nplain: $${HOST}\nopen: ${HOST";
        assert_eq!(with_values(text, &values), wanted);
    }

    #[test]
    fn a_network_has_processes_with_names_and_templates() {
        let read = |text: &str| settings::from_str::<Network>(text, "network.yaml").map(drop);
        let one = "secret: {file: s}\nprocesses:\n  - {name: a, admin: '127.0.0.1:9050'";
        read(&format!("{one}, template: a.yaml}}\n")).unwrap();
        for (wrong, part) in [
            (format!("{one}}}\n"), "template"),
            (
                format!("{one}, template: t}}\n  - {{name: a, admin: '127.0.0.1:1', template: t}}\n"),
                "another one",
            ),
            (
                "secret: {file: s}\ntemplate: t\nprocesses: []\n".to_owned(),
                "no process",
            ),
        ] {
            let report = read(&wrong).unwrap_err().to_string();
            assert!(report.contains(part), "{report}");
        }
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(field("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(field("2001"), "2001");
    }
}
