//! `signalbox console user …`: who may use the console, in the file that it reads.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use console::users::{self, LEAST_PASSWORD, MOST_PASSWORD, Role, User, UserFile};
use serde_json::json;

use crate::config::Config;
use crate::failure::Failure;
use crate::{complain, print};

use super::table;

/// The name of the command below that of the console.
pub(super) const NAME: &str = "user";

/// The command.
pub(super) fn command() -> Command {
    let name = || Arg::new("name").value_name("NAME").required(true);
    let role = Arg::new("role")
        .long("role")
        .value_name("ROLE")
        .action(ArgAction::Append)
        .value_parser(|text: &str| text.parse::<Role>())
        .help("viewer (looks at functions, every user may), tracer (sees subscribers), operator (changes functions)");
    Command::new(NAME)
        .about("Who may use the console")
        .long_about(
            "Who may use the console.\n\nThe users stand in users.json of `console.directory`, passwords as hashes by argon2id. A running console takes a change within a second.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("directory")
                .long("directory")
                .value_name("DIRECTORY")
                .global(true)
                .value_parser(value_parser!(PathBuf))
                .help("Directory of the console; without it `console.directory` of the configuration"),
        )
        .subcommand(
            Command::new("add")
                .about("Add a user; the password is asked for, or read from stdin")
                .arg(name())
                .arg(role),
        )
        .subcommand(
            Command::new("password")
                .about("Change the password of a user, which ends its sessions")
                .arg(name()),
        )
        .subcommand(
            Command::new("remove")
                .about("Remove a user, which ends its sessions")
                .arg(name()),
        )
        .subcommand(Command::new("list").about("List the users"))
}

/// Does what the command says.
pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (verb, inner) = matches
        .subcommand()
        .ok_or_else(|| Failure::Usage("name a command; --help lists them".to_owned()))?;
    let path = users::path(&directory(inner)?);
    let name = inner
        .try_get_one::<String>("name")
        .ok()
        .flatten()
        .map_or("", String::as_str);
    match verb {
        "add" => {
            let roles = inner.get_many::<Role>("role").into_iter().flatten().copied();
            add(&path, name, roles.collect())?;
        }
        "password" => change_password(&path, name)?,
        "remove" => remove(&path, name)?,
        _ => list(&path, inner.get_flag("json"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn directory(matches: &ArgMatches) -> Result<PathBuf, Failure> {
    if let Some(directory) = matches.get_one::<PathBuf>("directory") {
        return Ok(directory.clone());
    }
    let config = Config::load(matches.get_one::<PathBuf>("config").map(PathBuf::as_path))?;
    config.console.directory.ok_or_else(|| {
        let words = "the configuration has no console.directory: set it and name the file with --config, or name the directory with --directory";
        Failure::Usage(words.to_owned())
    })
}

fn wrong(words: String) -> Failure {
    Failure::Other(anyhow::Error::msg(words))
}

fn add(path: &Path, name: &str, roles: BTreeSet<Role>) -> Result<(), Failure> {
    if UserFile::read(path).map_err(wrong)?.find(name).is_some() {
        let words = format!(
            "the user `{name}` exists; `signalbox console user password {name}` changes its password"
        );
        return Err(wrong(words));
    }
    let user = User::new(name, roles, &password()?).map_err(wrong)?;
    let roles: Vec<String> = user.roles.iter().map(ToString::to_string).collect();
    let added = UserFile::change(path, |file| {
        file.users.push(user);
        Ok(())
    });
    added.map_err(wrong)?;
    print(&format!(
        "added {name} ({}) to {}\n",
        roles.join(", "),
        path.display()
    ))
}

fn change_password(path: &Path, name: &str) -> Result<(), Failure> {
    let known = UserFile::read(path).map_err(wrong)?;
    let known = known.find(name).ok_or_else(|| wrong(absent(name)))?;
    let user = User::new(name, known.roles.clone(), &password()?).map_err(wrong)?;
    let changed = UserFile::change(path, |file| {
        let known = file.users.iter_mut().find(|user| user.name == name);
        known.ok_or_else(|| absent(name))?.password = user.password;
        Ok(())
    });
    changed.map_err(wrong)?;
    print(&format!("changed the password of {name}; its sessions end\n"))
}

fn remove(path: &Path, name: &str) -> Result<(), Failure> {
    let removed = UserFile::change(path, |file| {
        let before = file.users.len();
        file.users.retain(|user| user.name != name);
        if file.users.len() == before {
            return Err(absent(name));
        }
        Ok(())
    });
    removed.map_err(wrong)?;
    print(&format!("removed {name}; its sessions end\n"))
}

fn absent(name: &str) -> String {
    format!("the user `{name}` does not exist")
}

fn list(path: &Path, json: bool) -> Result<(), Failure> {
    let file = UserFile::read(path).map_err(wrong)?;
    let row = |user: &User| {
        let roles: Vec<String> = user.roles.iter().map(ToString::to_string).collect();
        json!({ "name": user.name, "roles": roles })
    };
    let rows: Vec<serde_json::Value> = file.users.iter().map(row).collect();
    if json {
        return print(&(serde_json::to_string_pretty(&rows)? + "\n"));
    }
    print(&table(&[("name", "/name"), ("roles", "/roles")], &rows))
}

/// A password: typed twice without being shown, or a line of stdin.
fn password() -> Result<String, Failure> {
    let fault = |error: std::io::Error| wrong(format!("the password cannot be read: {error}"));
    if std::io::stdin().is_terminal() {
        complain(&format!("the password has {LEAST_PASSWORD} characters or more"));
        let typed = rpassword::prompt_password("Password: ").map_err(fault)?;
        let again = rpassword::prompt_password("Again: ").map_err(fault)?;
        if typed != again {
            return Err(wrong("the passwords differ".to_owned()));
        }
        return Ok(typed);
    }
    let mut text = String::new();
    let most = MOST_PASSWORD as u64 + 2;
    std::io::stdin()
        .take(most)
        .read_to_string(&mut text)
        .map_err(fault)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
