//! `signalbox status`: how all functions are doing, what is wrong and the remedy, in one table. It works with functions that
//! are down.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::config::Config;
use crate::failure::{FAILED, Failure};
use crate::functions::{self, ALL, Function};
use crate::inspect::{self, Unreached};
use crate::print;

/// How long a function may take to answer; one that hangs does not delay the others.
const TIMEOUT: Duration = Duration::from_secs(3);
/// What `/status` says of a function that serves and lacks nothing.
const SERVES: &str = "serves";

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Functions that must run; without any those that have a section in the configuration, or else all
    #[arg(value_parser = functions::parse, value_name = "FUNCTION", conflicts_with = "admin")]
    functions: Vec<&'static Function>,
    /// Configuration, for the admin addresses; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Admin endpoint to ask in place of those of the configuration; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    admin: Vec<SocketAddr>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An admin endpoint, and the function that is expected there.
pub(crate) struct Endpoint {
    pub(crate) function: Option<&'static Function>,
    pub(crate) address: SocketAddr,
}

impl Endpoint {
    /// The name of the function, or the address where that is not known.
    pub(crate) fn name(&self) -> String {
        self.function
            .map_or_else(|| self.address.to_string(), |function| function.name.to_owned())
    }
}

/// The endpoints to ask: those that are named, or those of the functions, of the sections of the file, or of all.
pub(crate) fn endpoints(
    wanted: &[&'static Function],
    file: Option<&PathBuf>,
    admin: &[SocketAddr],
) -> Result<(Vec<Endpoint>, Config), Failure> {
    let (config, text) = Config::load_with_text(file.map(PathBuf::as_path))?;
    if !admin.is_empty() {
        let each = admin.iter().map(|address| Endpoint {
            function: None,
            address: *address,
        });
        return Ok((each.collect(), config));
    }
    let mut all: Vec<&'static Function> = functions::sections(text.as_deref().unwrap_or_default()).collect();
    if all.is_empty() {
        all = ALL.iter().collect();
    }
    if !wanted.is_empty() {
        all = wanted.to_vec();
    }
    let each = all.into_iter().map(|function| Endpoint {
        function: Some(function),
        address: (function.admin)(&config),
    });
    Ok((each.collect(), config))
}

/// Asks all of them at the same time.
pub(crate) fn ask_all<T: Send>(endpoints: &[Endpoint], ask: impl Fn(&Endpoint) -> T + Sync) -> Vec<T> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let threads: Vec<_> = endpoints
            .iter()
            .map(|one| scope.spawn(move || ask(one)))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    })
}

pub(crate) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let (endpoints, _) = endpoints(&args.functions, args.config.as_ref(), &args.admin)?;
    let rows = ask_all(&endpoints, |endpoint| row(endpoint, args.config.as_ref()));
    let is_well = rows.iter().all(|row| row["state"] == SERVES);
    let said = match args.json {
        true => serde_json::to_string_pretty(&json!({ "well": is_well, "functions": rows }))? + "\n",
        false => in_words(&rows),
    };
    print(&said)?;
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// What a function says of itself, or why it says nothing.
fn row(endpoint: &Endpoint, file: Option<&PathBuf>) -> Value {
    let (name, address) = (endpoint.name(), endpoint.address);
    let unknown = |state: &str, detail: String, remedy: String| {
        json!({
            "function": name,
            "admin": address,
            "state": state,
            "wrong": [{ "what": "admin endpoint", "detail": detail, "remedy": remedy }],
        })
    };
    match inspect::fetch(address, "/status", TIMEOUT) {
        Ok(text) => match serde_json::from_str::<Value>(&text) {
            Ok(mut status) if status.is_object() => {
                status["admin"] = json!(address);
                let is_other = endpoint
                    .function
                    .is_some_and(|function| status["function"] != function.name);
                if !is_other {
                    return status;
                }
                let other = status["function"]
                    .as_str()
                    .unwrap_or("another function")
                    .to_owned();
                let detail = format!("{other} answers at {address}");
                unknown(
                    "not running",
                    detail,
                    format!("Give {name}.admin the address that it has."),
                )
            }
            _ => {
                let detail = format!("{address} does not answer as an admin endpoint does");
                unknown("unknown", detail, "Check which program listens there.".to_owned())
            }
        },
        Err(Unreached::Refused(error)) => {
            let file = file
                .map(|file| format!(" --config {}", file.display()))
                .unwrap_or_default();
            let remedy = match endpoint.function {
                Some(function) => format!(
                    "Start it (`signalbox run {}{file}`), or give --config, --admin or the functions that run here.",
                    function.name
                ),
                None => "Start it, or correct --admin.".to_owned(),
            };
            unknown("not running", format!("{address}: {error}"), remedy)
        }
        Err(Unreached::Silent(error)) => {
            let detail = format!("{address}: {error}");
            unknown(
                "no answer",
                detail,
                "The process hangs or is overloaded: see its log, then restart it.".to_owned(),
            )
        }
        Err(Unreached::Status(status, text)) => {
            let detail = format!("{address} answered {status}: {}", text.trim());
            unknown(
                "unknown",
                detail,
                "An earlier release has no /status: ask it with `signalbox FUNCTION status`.".to_owned(),
            )
        }
    }
}

/// Alarms that do not impair service which are shown of a function, at most; `signalbox FUNCTION alarms` has all.
const MOST_LESSER: usize = 10;

fn in_words(rows: &[Value]) -> String {
    const COLUMNS: &[(&str, &str)] = &[
        ("function", "/function"),
        ("state", "/state"),
        ("release", "/version"),
        ("up since", "/upSince"),
        ("registered", "/registeredInWords"),
    ];
    let shown: Vec<Value> = rows.iter().map(|row| with_registration(row.clone())).collect();
    let mut said = inspect::table(COLUMNS, &shown);
    for row in rows {
        let name = inspect::cell(row.get("function"));
        for wrong in row["wrong"].as_array().into_iter().flatten() {
            let word = |member: &str| inspect::cell(wrong.get(member));
            said.push_str(&format!("\n{name}: {}: {}\n", word("what"), word("detail")));
            said.push_str(&format!("    {}\n", word("remedy")));
        }
        said.push_str(&lesser(&name, row));
    }
    let (well, others): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["state"] == SERVES);
    let names = others.iter().map(|row| {
        format!(
            "{} ({})",
            inspect::cell(row.get("function")),
            inspect::cell(row.get("state"))
        )
    });
    let names = names.collect::<Vec<_>>().join(", ");
    said.push_str(&match (well.len(), rows.len()) {
        (1, 1) => "\nthe function serves\n".to_owned(),
        (count, all) if count == all => format!("\nall {all} functions serve\n"),
        (count, all) => format!("\n{count} of {all} functions serve and lack nothing; not so: {names}\n"),
    });
    said
}

/// The active alarms of a function that do not impair its service.
fn lesser(name: &str, row: &Value) -> String {
    let is_lesser =
        |alarm: &&Value| !["major", "critical"].contains(&alarm["severity"].as_str().unwrap_or(""));
    let alarms = row["alarms"].as_array().into_iter().flatten();
    let line = |alarm: &Value| {
        let [severity, number, kind, about, detail, advice] =
            ["severity", "number", "name", "instance", "detail", "advice"]
                .map(|member| inspect::cell(alarm.get(member)));
        format!("\n{name}: {severity} alarm {number} {kind}, {about}: {detail}\n    {advice}\n")
    };
    alarms.filter(is_lesser).take(MOST_LESSER).map(line).collect()
}

/// Adds in words where and since when a function is registered.
fn with_registration(mut row: Value) -> Value {
    let registered = &row["registered"];
    let word = |member: &str| registered[member].as_str().unwrap_or_default().to_owned();
    let words = match registered["state"].as_str() {
        Some("good") => format!("{}, since {}", word("detail"), second(&word("since"))),
        Some("failing") => format!("NOT REGISTERED since {}", second(&word("since"))),
        _ => "-".to_owned(),
    };
    let since = row["upSince"].as_str().map(second);
    row["registeredInWords"] = words.into();
    row["upSince"] = since.into();
    row
}

/// A moment by RFC 3339 without its fraction.
fn second(moment: &str) -> String {
    match moment.split_once('.') {
        Some((second, _)) => format!("{second}Z"),
        None => moment.to_owned(),
    }
}
