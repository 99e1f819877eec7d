//! Reports of runs: measurement, data, and renderings.
//!
//! `report.json` ([`Report`]) is stable and read by other tools; `series.json` ([`Series`]) holds what the
//! plots need besides. `report.md` and `report.html` are made from the two, and can be made again ([`read`],
//! [`render`]). [`measure`] reads processes and the machine from outside, in `/proc`.
//!
//! The crate knows no load generator and no call model: any program can write a `report.json` and have it rendered.

mod compare;
mod data;
mod destinations;
mod figure;
mod html;
mod markdown;
pub mod measure;
mod services;
mod svg;
mod words;

use std::io;
use std::path::Path;

pub use compare::{Comparison, compare};
pub use data::{
    Check, Conditions, Destinations, EgressFigures, FunctionFigures, GuideFigures, GuideRow, Knee,
    LabProcess, Latency, MessageFigures, OperationFigures, Point, Report, RoleFigures, Second, Series,
    ServiceFigures, Site, Spread, Step, StoreFigures, Verdict,
};
pub use figure::figure;
pub use html::html;
pub use markdown::markdown;
pub use words::{identity, reason};

/// A report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file holds other JSON, or none.
    #[error("{path} is not a report of this version: {source}")]
    Json {
        /// Which.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// Writes all four files into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn write(folder: &Path, report: &Report, series: &Series) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join("report.json"),
        serde_json::to_string_pretty(report)? + "\n",
    )?;
    std::fs::write(folder.join("series.json"), serde_json::to_string(series)? + "\n")?;
    render(folder, report, series)
}

/// Writes the two renderings into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn render(folder: &Path, report: &Report, series: &Series) -> io::Result<()> {
    std::fs::write(folder.join("report.md"), markdown(report, series))?;
    std::fs::write(folder.join("report.html"), html(report, series))
}

/// Reads a report from a folder.
///
/// # Errors
/// When it is not there or not of this version.
pub fn read(folder: &Path) -> Result<(Report, Series), ReadError> {
    Ok((
        read_one(&folder.join("report.json"))?,
        read_one(&folder.join("series.json"))?,
    ))
}

fn read_one<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|source| ReadError::Io {
        path: name.clone(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|source| ReadError::Json { path: name, source })
}
