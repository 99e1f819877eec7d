//! `signalbox FUNCTION …`: looking inside a running function through its admin endpoint.

mod client;
mod table;
mod users;

pub(crate) use client::{Unreached, change, entrusted, fetch, get, identify, remove};
pub(crate) use function::pages::cell;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use crate::config::Config;
use crate::failure::{FAILED, Failure};
use crate::functions::{CONSOLE, Function, Page};
use crate::{complain, print};
use function::pages::{COMMON, query, segment};

/// The subcommand of a function.
pub(crate) fn command(function: &'static Function) -> Command {
    let pages = COMMON.iter().chain(function.pages);
    let pages = pages.filter(|page| !page.name.contains(' ')).map(of_page);
    Command::new(function.name)
        .about(format!("Look inside a running {}", function.name.to_uppercase()))
        .long_about(format!(
            "Look inside a running {}.\n\n{}",
            function.name.to_uppercase(),
            function.about.trim()
        ))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(pages)
        .subcommands(groups(function.pages))
        .subcommands((function.name == CONSOLE).then(users::command))
        .arg(
            Arg::new("admin")
                .long("admin")
                .value_name("ADDRESS")
                .global(true)
                .value_parser(value_parser!(SocketAddr))
                .help("Its admin endpoint; without it that of the configuration"),
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .global(true)
                .value_parser(value_parser!(PathBuf))
                .help("Configuration; without it the defaults"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Print JSON"),
        )
        .arg(
            Arg::new("filter")
                .long("filter")
                .value_name("TEXT")
                .global(true)
                .help("Only rows of a table that contain this text"),
        )
}

/// The command of a page, by the last word of its name.
fn of_page(page: &'static Page) -> Command {
    let name = page.name.rsplit(' ').next().unwrap_or(page.name);
    let command = Command::new(name).about(page.about);
    match page.argument {
        Some(name) => {
            let needed = page.path.contains("{}");
            command.arg(Arg::new("argument").value_name(name).required(needed))
        }
        None => command,
    }
}

/// The commands of pages whose names have two words: the first one has a command for each second one.
fn groups(pages: &'static [Page]) -> Vec<Command> {
    let mut groups: Vec<Command> = Vec::new();
    for page in pages {
        let Some((group, _)) = page.name.split_once(' ') else {
            continue;
        };
        let known = groups.iter().position(|command| command.get_name() == group);
        let command = match known {
            Some(at) => groups.remove(at),
            None => Command::new(group)
                .about(format!("Show and change: {group}"))
                .subcommand_required(true)
                .arg_required_else_help(true),
        };
        groups.push(command.subcommand(of_page(page)));
    }
    groups
}

/// Shows what is asked for.
pub(crate) fn run(function: &'static Function, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, inner) = matches
        .subcommand()
        .ok_or_else(|| Failure::Usage("name a page; --help lists them".to_owned()))?;
    if (function.name, name) == (CONSOLE, users::NAME) {
        return users::run(inner);
    }
    let nested = inner.subcommand();
    let name = nested.map_or_else(|| name.to_owned(), |(second, _)| format!("{name} {second}"));
    let inner = nested.map_or(inner, |(_, inner)| inner);
    let admin = match inner.get_one::<SocketAddr>("admin") {
        Some(admin) => *admin,
        None => (function.admin)(&Config::load(
            inner.get_one::<PathBuf>("config").map(PathBuf::as_path),
        )?),
    };
    let argument = inner.try_get_one::<String>("argument").ok().flatten();
    let json = inner.get_flag("json");
    match name.as_str() {
        "status" => return status(admin, json),
        "reload" => return reload(function.name, admin, json),
        _ => {}
    }
    let page = COMMON.iter().chain(function.pages).find(|page| page.name == name);
    let page = page
        .ok_or_else(|| Failure::Usage(format!("the page {name} does not exist; --help lists the pages")))?;
    let view = View {
        json,
        filter: inner.get_one::<String>("filter").map_or("", String::as_str),
    };
    show(page, admin, argument.map(String::as_str), &view)?;
    Ok(ExitCode::SUCCESS)
}

/// Rows as a table.
pub(crate) fn table(columns: &[(&str, &str)], rows: &[Value]) -> String {
    table::render(columns, rows, "")
}

/// How a page is printed.
struct View<'a> {
    json: bool,
    /// Only rows that contain it.
    filter: &'a str,
}

fn show(page: &Page, admin: SocketAddr, argument: Option<&str>, view: &View<'_>) -> Result<(), Failure> {
    let body = match (page.name, argument) {
        ("log-level", Some(filter)) => client::post(admin, page.path, filter)?,
        (_, Some(subject)) if page.method() != "GET" => {
            let path = page.path.replace("{}", &segment(subject));
            client::change(admin, page.method(), &path)?
        }
        (_, Some(argument)) if page.path.contains("{}") => {
            let argument = if page.path.contains('?') {
                query(argument)
            } else {
                segment(argument)
            };
            client::get(admin, &page.path.replace("{}", &argument))?
        }
        _ => client::get(admin, page.path)?,
    };
    if page.name == "metrics" {
        return print(&matching(&body, argument.unwrap_or_default()));
    }
    let Ok(value) = serde_json::from_str::<Value>(&body) else {
        return print(&body);
    };
    if let Some(error) = error_of(&value) {
        if view.json {
            print(&(serde_json::to_string_pretty(&value)? + "\n"))?;
        }
        return Err(anyhow::Error::msg(error).into());
    }
    // Active alarms are a list within the page.
    let rows = value.get("active").unwrap_or(&value);
    match rows.as_array() {
        Some(rows) if !view.json && !page.columns.is_empty() => {
            print(&table::render(page.columns, rows, view.filter))
        }
        // The documents of 3GPP stay as they are on the wire.
        _ if !view.json && (argument.is_none() || page.path.contains('?')) => {
            print(&settings::to_yaml(&table::rounded(value)))
        }
        _ => print(&(serde_json::to_string_pretty(&value)? + "\n")),
    }
}

/// Why a page has no result: its member `error`, with what it expects, or those of all of its rows. None: it has a result.
fn error_of(page: &Value) -> Option<String> {
    if let Some(rows) = page.as_array() {
        let errors = rows.iter().map(error_of).collect::<Option<Vec<String>>>();
        return errors.filter(|all| !all.is_empty()).map(|all| all.join("\n"));
    }
    let error = page.get("error")?.as_str()?;
    let expected = page.get("expected").and_then(Value::as_str);
    Some(expected.map_or_else(
        || error.to_owned(),
        |expected| format!("{error}; expected {expected}"),
    ))
}

/// Has a process read its file again. What was refused is on stderr, and the exit code says so.
fn reload(function: &str, admin: SocketAddr, json: bool) -> Result<ExitCode, Failure> {
    let answer = client::ask(admin, "POST", "/config/reload", "")?;
    let failed = answer.status != 200;
    let exit = || {
        if failed {
            ExitCode::from(FAILED)
        } else {
            ExitCode::SUCCESS
        }
    };
    let Ok(mut value) = serde_json::from_str::<Value>(&answer.body) else {
        let words = format!("the {function} at http://{admin} refused the reload; it runs as before");
        complain(&format!("{}\n\n{words}", answer.body.trim_end()));
        return Ok(exit());
    };
    if json {
        print(&(serde_json::to_string_pretty(&value)? + "\n"))?;
        return Ok(exit());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    if let Some(invalid) = value.as_object_mut().and_then(|value| value.remove("invalid")) {
        for one in list(&invalid) {
            complain(&format!(
                "{}:\n{}\n",
                text(&one["what"]),
                text(&one["reason"]).trim_end()
            ));
        }
        complain(&"reload refused in part: what is named above runs as before");
        // It has been shown, and better than in a list.
        let restarts = list(&value["refused"]).into_iter();
        value["refused"] = restarts
            .filter(|one| text(one).ends_with("(needs a restart)"))
            .collect();
    }
    print(&settings::to_yaml(&value))?;
    Ok(exit())
}

/// The lines of a metrics page whose metric's name holds `text`.
fn matching(page: &str, text: &str) -> String {
    let name = |line: &str| {
        let words = line.strip_prefix("# ").map(|comment| comment.split(' ').nth(1));
        match words {
            Some(name) => name.unwrap_or_default().to_owned(),
            None => line.split(['{', ' ']).next().unwrap_or_default().to_owned(),
        }
    };
    page.lines()
        .filter(|line| text.is_empty() || name(line).contains(text))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn status(admin: SocketAddr, json: bool) -> Result<ExitCode, Failure> {
    let (alive, ready) = (
        client::ask(admin, "GET", "/livez", "")?,
        client::ask(admin, "GET", "/readyz", "")?,
    );
    let alarms: Value = serde_json::from_str(&client::get(admin, "/alarms")?)?;
    let active = alarms
        .get("active")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let well = alive.status == 200 && ready.status == 200;
    if json {
        let page = json!({
            "alive": alive.status == 200,
            "ready": ready.status == 200,
            "reasons": format!("{}{}", reasons(&alive), reasons(&ready)).lines().collect::<Vec<_>>(),
            "alarms": active,
        });
        print(&(serde_json::to_string_pretty(&page)? + "\n"))?;
    } else {
        let word = |good, yes: &'static str, no: &'static str| if good { yes } else { no };
        let mut said = format!(
            "{}, {}\n",
            word(alive.status == 200, "alive", "NOT ALIVE"),
            word(ready.status == 200, "ready", "NOT READY")
        );
        said.push_str(reasons(&alive));
        said.push_str(reasons(&ready));
        // What is wrong although it serves; alarms follow as a table.
        let remarks = ready
            .body
            .lines()
            .skip(1)
            .filter(|line| well && !line.starts_with("alarm "));
        remarks.for_each(|line| said.push_str(&format!("{line}\n")));
        if !active.is_empty() {
            let columns = COMMON
                .iter()
                .find(|page| page.name == "alarms")
                .map_or(&[][..], |page| page.columns);
            said.push_str(&table::render(columns, active, ""));
        }
        print(&said)?;
    }
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

fn reasons(answer: &client::Answer) -> &str {
    if answer.status == 200 { "" } else { &answer.body }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};

    use super::*;

    /// Answers each request by this page.
    fn stand_in(page: &'static str) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let admin = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{page}");
            }
        });
        admin
    }

    #[test]
    fn a_page_that_answers_an_error_fails_the_command_of_every_function() {
        let alone = stand_in(r#"{"subject": "zz", "error": "zz is unknown", "expected": "a number"}"#);
        let rows = stand_in(r#"[{"error": "zz is unknown; expected a number"}]"#);
        let view = View {
            json: false,
            filter: "",
        };
        for function in crate::functions::ALL {
            for page in function.pages {
                let argument = page.argument.map(|_| "zz");
                for admin in [alone, rows] {
                    let failure = show(page, admin, argument, &view).unwrap_err();
                    let words = failure.to_string();
                    assert_eq!(
                        words, "zz is unknown; expected a number",
                        "{} {}",
                        function.name, page.name
                    );
                    assert!(
                        matches!(failure, Failure::Other(_)),
                        "{} {}",
                        function.name,
                        page.name
                    );
                }
            }
        }
        for fine in [
            json!([]),
            json!([{"error": "x"}, {"error": null}]),
            json!({"error": null}),
        ] {
            assert_eq!(error_of(&fine), None, "{fine}");
        }
    }

    #[test]
    fn metrics_are_chosen_by_name() {
        let page = "# HELP signalbox_a_x X.\n# TYPE signalbox_a_x gauge\nsignalbox_a_x{of=\"b\"} 1\nsignalbox_b 2\n# EOF\n";
        assert_eq!(matching(page, ""), page);
        assert_eq!(matching(page, "_b"), "signalbox_b 2\n");
        assert_eq!(matching(page, "a_x").lines().count(), 3);
    }
}
