//! What `signalbox up` prints when all functions run.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::config::Config;
use crate::functions::{self, CONSOLE};
use crate::running::{option, program};
use crate::secure::{self, Secure};
use crate::started::{self, Started};

/// The folders of the stores, and whether they hold the state of an earlier start.
pub(crate) struct State {
    folders: Vec<(PathBuf, bool)>,
}

impl State {
    /// Reads it before the functions start and create their folders.
    pub(crate) fn of(config: &Config) -> Self {
        let stores = [
            &config.nrf.store.embedded.directory,
            &config.bsf.store.embedded.directory,
            &config.pcf.store.embedded.directory,
        ];
        let folders = stores.into_iter().map(|folder| {
            let found = folder.join("store.json").exists();
            (
                std::path::absolute(folder).unwrap_or_else(|_| folder.clone()),
                found,
            )
        });
        Self {
            folders: folders.collect(),
        }
    }

    /// Renames the folders of an earlier start; those that were renamed before are removed.
    /// None is touched while a process has one of them open.
    pub(crate) fn set_aside(&self) -> anyhow::Result<()> {
        let mut held = Vec::new();
        for (folder, _) in &self.folders {
            let lock = folder.join("store.lock");
            let Ok(file) = std::fs::File::open(&lock) else {
                continue;
            };
            if file.try_lock().is_err() {
                anyhow::bail!(
                    "another process has the store in {} open: end it, or begin in another directory",
                    folder.display()
                );
            }
            held.push(file);
        }
        for (folder, _) in self.folders.iter().filter(|(_, found)| *found) {
            let mut old = folder.clone().into_os_string();
            old.push(".old");
            let old = PathBuf::from(old);
            // Nothing is removed that no store has made.
            if old.join("store.json").exists() {
                std::fs::remove_dir_all(&old).with_context(|| format!("removing {}", old.display()))?;
            }
            std::fs::rename(folder, &old)
                .with_context(|| format!("renaming {} to {}", folder.display(), old.display()))?;
        }
        Ok(())
    }

    /// A file of `up` beside the stores.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let folder = self.folders.first().and_then(|(folder, _)| folder.parent());
        folder.unwrap_or(std::path::Path::new("")).join(name)
    }

    fn words(&self) -> String {
        let mut text = String::from(
            "\nRegistrations, bindings and policy associations are kept on disk and found again by the next start:\n",
        );
        for (folder, found) in &self.folders {
            let age = if *found { "from an earlier start" } else { "new" };
            let _ = writeln!(text, "  {}  ({age})", folder.display());
        }
        if self.folders.iter().any(|(_, found)| *found) {
            text.push_str("  `up --fresh` begins without them, as after a start with other security.\n");
        }
        text
    }
}

/// What is simulated.
#[derive(Clone, Copy)]
pub(crate) struct Simulated {
    pub(crate) has_functions: bool,
    /// An MSC and an HLR at the STP.
    pub(crate) has_transfer_point: bool,
}

/// What fits a terminal of 80 columns and 24 lines: a row for each function, three commands, and where the rest is. `files`: those
/// of the whole page and of the log, shown as they are.
pub(crate) fn short(started: &[Started], files: [&str; 2]) -> String {
    let rows = started.iter().filter(|function| function.name != CONSOLE);
    let rows: Vec<Row> = rows.map(Row::of).collect();
    in_short(started::interface(started, CONSOLE, "HTTP"), &rows, files)
}

/// A function in the short page.
struct Row {
    name: &'static str,
    /// The first one, and how many there are beside it.
    interface: Option<(&'static str, String)>,
    others: usize,
    admin: String,
}

impl Row {
    fn of(function: &Started) -> Self {
        let interfaces = &function.mounted.interfaces;
        Self {
            name: function.name,
            interface: interfaces.first().cloned(),
            others: interfaces.len().saturating_sub(1),
            admin: function.admin.address().to_string(),
        }
    }
}

fn in_short(console: Option<&str>, rows: &[Row], [page, log]: [&str; 2]) -> String {
    let mut text = String::from("Signalbox is up. Ctrl-C ends it.\n\n");
    if let Some(console) = console {
        let _ = writeln!(
            text,
            "  In a browser: {console}/  (how all is doing, and the remedy)\n"
        );
    }
    let _ = writeln!(
        text,
        "  {:<9}{:<15}{:<34}admin",
        "function", "interface", "address"
    );
    for row in rows {
        let (interface, address) = match &row.interface {
            Some((interface, address)) if row.others > 0 => {
                (*interface, format!("{address} +{}", row.others))
            }
            Some((interface, address)) => (*interface, address.clone()),
            None => ("-", "none configured".to_owned()),
        };
        let _ = writeln!(text, "  {:<9}{interface:<15}{address:<34}{}", row.name, row.admin);
    }
    let program = program();
    let _ = writeln!(text, "\n  {program} status");
    let _ = writeln!(text, "  {program} nrf instances");
    let _ = writeln!(text, "  {program} pcf sessions");
    let _ = writeln!(text, "  More addresses and commands: {page}   Log: {log}");
    text
}

/// The table of addresses, and what to try.
pub(crate) fn page(
    started: &[Started],
    secure: Option<&Secure>,
    state: &State,
    traffic: Simulated,
) -> String {
    let mut page = String::from("\nSignalbox is up. Ctrl-C ends it.\n\n");
    let mut names = ["HTTP", "HTTPS"].into_iter();
    if let Some(console) = names.find_map(|name| started::interface(started, CONSOLE, name)) {
        let _ = writeln!(
            page,
            "  In a browser: {console}/  (how all functions are doing, and the remedy)\n"
        );
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "  {:<10}{:<15}{:<34}admin",
        "function", "interface", "address"
    );
    for function in started {
        let mut admin = format!("http://{}", function.admin.address());
        let mut name = function.name;
        for (interface, address) in &function.mounted.interfaces {
            let _ = writeln!(page, "  {name:<10}{interface:<15}{address:<34}{admin}");
            (name, admin) = ("", String::new());
        }
        if function.mounted.interfaces.is_empty() {
            let _ = writeln!(page, "  {name:<10}{:<15}{:<34}{admin}", "-", "none configured");
        }
    }
    page.push_str(&state.words());
    match secure {
        Some(secure) => page.push_str(&secure::page(secure, started)),
        None => page.push_str("\nTry:\n"),
    }
    let program = program();
    for function in started {
        let admin = function.admin.address();
        let option = functions::find(function.name).map_or_else(String::new, |found| option(found, admin));
        // Secure interfaces do not answer in cleartext.
        let hints = function.mounted.hints.iter();
        for hint in hints.filter(|hint| secure.is_none() || hint.starts_with("signalbox ")) {
            match hint.strip_prefix("signalbox ") {
                Some(arguments) => {
                    let _ = writeln!(page, "  {program} {arguments}{option}");
                }
                None => {
                    let _ = writeln!(page, "  {hint}");
                }
            }
        }
        let _ = writeln!(page, "  curl http://{admin}/metrics");
    }
    if traffic.has_functions {
        page.push_str("\nSimulated network functions register, send heart-beats and discover one another.\n");
        page.push_str(
            "Calls pass through NRF, SCP, PCF, BSF and DSR: registration, session, voice, release; an MME updates\n\
             locations at an HSS through the DSR.\n",
        );
    }
    if traffic.has_transfer_point {
        page.push_str("An MSC and an HLR exchange messages of SCCP through the STP.\n");
    }
    page.push('\n');
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_page_fits_a_terminal_with_a_line_of_counts() {
        let row = |function: &functions::Function| Row {
            name: function.name,
            interface: (function.name != "stp")
                .then(|| ("M3UA over SCTP", "http://127.0.0.1:38412".to_owned())),
            others: 2,
            admin: "127.0.0.1:39010".to_owned(),
        };
        let rows: Vec<Row> = functions::ALL
            .iter()
            .filter(|one| one.name != CONSOLE)
            .map(row)
            .collect();
        let page = in_short(Some("http://127.0.0.1:9001"), &rows, ["run/up.txt", "run/up.log"]);
        assert!(page.lines().count() < 24, "{page}");
        let commands = program();
        for line in page.lines().filter(|line| !line.contains(&commands)) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(
            page.contains("http://127.0.0.1:38412 +2") && page.contains("none configured"),
            "{page}"
        );
    }

    #[test]
    fn what_a_process_has_open_is_not_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let (free, held) = (directory.path().join("free"), directory.path().join("held"));
        for folder in [&free, &held] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("store.lock"), "").unwrap();
        }
        let state = State {
            folders: vec![(free.clone(), true), (held.clone(), true)],
        };
        let lock = std::fs::File::open(held.join("store.lock")).unwrap();
        lock.try_lock().unwrap();
        let refused = state.set_aside().unwrap_err().to_string();
        assert!(refused.contains("held") && free.exists(), "{refused}");
        lock.unlock().unwrap();
        state.set_aside().unwrap();
        assert!(!free.exists() && !held.exists());
    }
}
