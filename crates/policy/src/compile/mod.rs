//! From the files of a project to a program: every mistake at once, with file, line and block.

mod blocks;
mod entries;
mod expressions;
mod names;
mod notify;
mod parts;
mod paths;
mod routines;

use std::fmt;

use serde_json::{Map, Value as Json};
use settings::{Document, Fault, Report, nearest, path_key};

use crate::limits::Limits;
use crate::notification::Servers;
use crate::program::Program;
use crate::shape::Service;
use crate::zone::Zone;

pub(crate) use names::Names;

/// What a project says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) service: Service,
}

/// Every mistake of a project.
#[derive(Debug)]
pub struct ProjectError {
    reports: Vec<Report>,
}

impl ProjectError {
    /// A report for each file at fault; at least one.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    pub(crate) fn new(reports: Vec<Report>) -> Self {
        Self { reports }
    }

    /// An error without a line.
    pub(crate) fn of(file: &str, path: &str, what: impl Into<String>, expected: impl Into<String>) -> Self {
        let fault = Fault {
            path: path.to_owned(),
            what: what.into(),
            expected: expected.into(),
        };
        let reports = match Document::parse("", file, settings::Limits::default()) {
            Ok(document) => vec![document.report(vec![fault])],
            Err(report) => vec![report],
        };
        Self { reports }
    }
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, report) in self.reports.iter().enumerate() {
            if position > 0 {
                writeln!(f)?;
            }
            report.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProjectError {}

/// The file that every project has.
pub(crate) const MAIN: &str = "project.yaml";
/// Parts that every file of a project may have.
const PARTS: &[&str] = &["lists", "patterns", "tables", "scripts", "routines"];
/// Keys of the main file alone.
const MANIFEST: &[&str] = &[
    "name",
    "description",
    "service",
    "utcOffset",
    "timeZone",
    "blocks",
];
/// Faults that are collected of one project.
const FAULTS: usize = 200;

/// A file of the project, parsed.
struct Unit {
    document: Document,
    json: Json,
    faults: Vec<Fault>,
}

/// The compiler's state.
pub(crate) struct Compiler<'l> {
    limits: &'l Limits,
    /// The servers that the project may notify; none: they are not known.
    servers: Option<&'l Servers>,
    program: Program,
    /// Memory of the patterns that were compiled so far, in bytes.
    pattern_bytes: usize,
    names: Names,
    service: Service,
    units: Vec<Unit>,
    /// The file that is compiled now.
    file: usize,
    faults: usize,
}

/// Compiles the files of a project: name and text of each. Without servers any name of one is right.
pub(crate) fn compile(
    files: &[(&str, &str)],
    limits: &Limits,
    servers: Option<&Servers>,
) -> Result<(Manifest, Program), ProjectError> {
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    if bytes > limits.project_bytes {
        let what = format!("the files of the project have {bytes} bytes");
        let expected = format!("at most {} (`projectBytes`)", limits.project_bytes);
        return Err(ProjectError::of(MAIN, "", what, expected));
    }
    let Some(main) = files
        .iter()
        .position(|(name, _)| name.rsplit('/').next() == Some(MAIN))
    else {
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let what = format!(
            "the project has no file {MAIN}; its files are: {}",
            names.join(", ")
        );
        return Err(ProjectError::of(
            MAIN,
            "",
            what,
            "a file of this name with `name`, `service` and `blocks`",
        ));
    };
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.swap(0, main);
    let (mut units, mut reports) = (Vec::new(), Vec::new());
    let bounds = settings::Limits {
        bytes: limits.project_bytes,
        depth: 4 * limits.depth,
        ..settings::Limits::default()
    };
    for (name, text) in order.into_iter().map(|position| files[position]) {
        match Document::parse(text, name, bounds) {
            Ok(document) => units.push(Unit {
                json: document.to_json(),
                document,
                faults: Vec::new(),
            }),
            Err(report) => reports.push(report),
        }
    }
    if !reports.is_empty() {
        return Err(ProjectError { reports });
    }
    let mut compiler = Compiler {
        limits,
        servers,
        program: Program::default(),
        pattern_bytes: 0,
        names: Names::default(),
        service: Service::Sm,
        units,
        file: 0,
        faults: 0,
    };
    let manifest = compiler.project();
    compiler.finish(manifest)
}

impl Compiler<'_> {
    fn project(&mut self) -> Option<Manifest> {
        let units: Vec<Map<String, Json>> = (0..self.units.len())
            .map(|file| {
                self.file = file;
                let json = std::mem::take(&mut self.units[file].json);
                match json {
                    Json::Object(map) => map,
                    _ => {
                        self.fault("", "the file is not a mapping", "`key: value` lines");
                        Map::new()
                    }
                }
            })
            .collect();
        for (file, unit) in units.iter().enumerate() {
            self.file = file;
            let known: Vec<&str> = match file {
                0 => MANIFEST.iter().chain(PARTS).copied().collect(),
                _ => PARTS.to_vec(),
            };
            self.known_keys(unit, "", &known);
        }
        self.file = 0;
        let manifest = self.manifest(&units[0]);
        for (file, unit) in units.iter().enumerate() {
            self.file = file;
            self.parts(unit);
        }
        for (file, unit) in units.iter().enumerate() {
            self.file = file;
            self.tables_and_routines(unit);
        }
        self.file = 0;
        if let Some(blocks) = units[0].get("blocks") {
            self.program.blocks = self.blocks(blocks, "blocks", 0);
        }
        self.check_names();
        self.check_calls();
        self.check_scripts();
        manifest
    }

    fn manifest(&mut self, unit: &Map<String, Json>) -> Option<Manifest> {
        let name = self.text(unit, "name", "", "a name such as `internet`");
        if !unit.contains_key("blocks") {
            self.fault("", "`blocks` is missing", "the blocks that decide, as a list");
        }
        let services: Vec<&str> = Service::ALL.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", services.join(", "));
        let service = self.text(unit, "service", "", &expected)?;
        let Some((_, service)) = Service::ALL.iter().find(|(name, _)| *name == service) else {
            self.fault("service", format!("`{service}` is unknown"), expected);
            return None;
        };
        self.service = *service;
        if let Some(offset) = unit.get("utcOffset") {
            match offset.as_str().and_then(parts::utc_offset) {
                Some(seconds) => self.program.zone = Zone::Fixed(seconds),
                None => self.fault(
                    "utcOffset",
                    format!("{offset} is not an offset"),
                    "such as `\"+01:00\"`",
                ),
            }
        }
        if let Some(name) = unit.get("timeZone") {
            match name.as_str().and_then(Zone::named) {
                Some(_) if unit.contains_key("utcOffset") => self.fault(
                    "timeZone",
                    "it stands beside `utcOffset`".to_owned(),
                    "one of both",
                ),
                Some(zone) => self.program.zone = zone,
                None => self.fault(
                    "timeZone",
                    format!("{name} is not a time zone"),
                    "a name of the IANA database, such as `Europe/Berlin`",
                ),
            }
        }
        Some(Manifest {
            name: name?.to_owned(),
            description: unit
                .get("description")
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned(),
            service: *service,
        })
    }

    fn finish(self, manifest: Option<Manifest>) -> Result<(Manifest, Program), ProjectError> {
        let reports: Vec<Report> = self
            .units
            .into_iter()
            .filter(|unit| !unit.faults.is_empty())
            .map(|unit| unit.document.report(unit.faults))
            .collect();
        match manifest {
            Some(manifest) if reports.is_empty() => Ok((manifest, self.program)),
            _ => Err(ProjectError { reports }),
        }
    }

    fn fault(&mut self, path: impl Into<String>, what: impl Into<String>, expected: impl Into<String>) {
        self.fault_in(self.file, path, what, expected);
    }

    fn fault_in(
        &mut self,
        file: usize,
        path: impl Into<String>,
        what: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.faults += 1;
        if self.faults <= FAULTS {
            self.units[file].faults.push(Fault {
                path: path.into(),
                what: what.into(),
                expected: expected.into(),
            });
        }
    }

    /// A required text.
    fn text<'j>(
        &mut self,
        map: &'j Map<String, Json>,
        key: &str,
        path: &str,
        expected: &str,
    ) -> Option<&'j str> {
        match map.get(key) {
            Some(Json::String(text)) if !text.is_empty() => Some(text),
            Some(_) => {
                self.fault(path_key(path, key), "it is not a text", expected);
                None
            }
            None => {
                self.fault(path, format!("`{key}` is missing"), expected);
                None
            }
        }
    }

    fn known_keys(&mut self, map: &Map<String, Json>, path: &str, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let what = format!("unknown key `{key}`");
            self.fault(path_key(path, key), what, suggest(key, known));
        }
    }
}

/// `one of …; did you mean …?`
fn suggest(written: &str, known: &[&str]) -> String {
    let listed = match known.len() {
        0 => "none: the project defines none of its kind".to_owned(),
        1..=40 => format!("one of {}", known.join(", ")),
        _ => format!("one of {} names", known.len()),
    };
    match nearest(written, known) {
        Some(name) => format!("{listed}; did you mean `{name}`?"),
        None => listed,
    }
}
