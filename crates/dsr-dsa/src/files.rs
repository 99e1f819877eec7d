//! The files that a configuration names: what is wrong with them, and which of them make it another one.

use std::path::PathBuf;

use crate::tables::Tables;
use crate::{config, csv};

/// Checks the tables of a configuration.
///
/// # Errors
/// Each mistake, with file, line and reason: also rows that can never match, and that no measure is on.
pub fn check_tables(config: &config::Dsa) -> Result<(), String> {
    tables(config).map(drop)
}

/// Reads the tables of a configuration; without a directory there are none.
///
/// # Errors
/// As [`check_tables`]: a file that is gone must not switch the measures off while the router runs.
pub(crate) fn tables(config: &config::Dsa) -> Result<Tables, String> {
    let Some(directory) = config.tables.as_deref() else {
        return Ok(Tables::default());
    };
    let tables = Tables::load(directory)?;
    match tables.has_measures() {
        true => Ok(tables),
        false => Err(format!(
            "{}: no measure is on; Security_Countermeasure_Config.csv enables them",
            directory.display()
        )),
    }
}

/// Checks the place of the file of findings, without making it.
///
/// # Errors
/// When its directory does not exist, or it is not a regular file.
pub fn check_findings(config: &config::Dsa) -> Result<(), String> {
    let Some(path) = config.findings.as_deref() else {
        return Ok(());
    };
    let wrong = |what: &str| Err(format!("{}: {what}", path.display()));
    if csv::is_other(path) {
        return wrong("is not a regular file");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.is_none_or(std::path::Path::is_dir) {
        true => Ok(()),
        false => wrong("its directory does not exist"),
    }
}

/// Checks the directory of the samples of findings, without making it.
///
/// # Errors
/// When there is something else than a directory.
pub fn check_samples(config: &config::Dsa) -> Result<(), String> {
    let directory = config.samples.as_ref().map(|samples| samples.directory.as_path());
    match directory.filter(|directory| directory.exists() && !directory.is_dir()) {
        Some(other) => Err(format!("{}: is not a directory", other.display())),
        None => Ok(()),
    }
}

/// The files of a configuration that make it another one when they change.
#[must_use]
pub fn files(config: &config::Dsa) -> Vec<PathBuf> {
    let Some(entries) = config
        .tables
        .as_deref()
        .and_then(|tables| std::fs::read_dir(tables).ok())
    else {
        return Vec::new();
    };
    let paths = entries.map_while(Result::ok).map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "csv"))
        .collect();
    files.sort_unstable();
    files
}
