//! `signalbox import open5gs`, `free5gc`: configurations of other cores, and what of them has no place here.
//!
//! A part of a file is carried over, or refused with a reason, or neither: then it is listed as unknown. Nothing is lost in
//! silence.

mod free5gc;
mod free_diameter;
mod open5gs;
mod policies;
mod sections;
mod source;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use self::free_diameter::Peers;
use self::sections::Sections;
use self::source::Source;
use crate::failure::Failure;
use crate::{complain, print};

#[derive(Debug, Args)]
pub(crate) struct ForeignArgs {
    /// Its configuration files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Folder for the configurations; it is created, and no file in it is replaced
    #[arg(long, short, value_name = "DIR", default_value = "signalbox")]
    output: PathBuf,
}

/// Whose files they are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Core {
    Open5gs,
    Free5gc,
}

impl Core {
    fn name(self) -> &'static str {
        match self {
            Self::Open5gs => "Open5GS",
            Self::Free5gc => "free5GC",
        }
    }
}

/// What was made of the files.
#[derive(Debug, Default)]
struct Made {
    sections: Sections,
    /// The policy project of PDU sessions, and its test cases.
    project: Option<(Value, Value)>,
}

/// Writes the configurations to files, prints their names, and lists what is not carried over.
pub(crate) fn run(core: Core, args: &ForeignArgs) -> Result<(), Failure> {
    let (mut sources, mut peers) = (Vec::new(), Vec::new());
    for file in &args.files {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.display().to_string();
        if file.extension().is_some_and(|ending| ending == "conf") {
            peers.push(Peers::parse(&text, &name));
        } else {
            sources.push(Source::parse(&text, &name).map_err(|report| Failure::Mistakes(Box::new(report)))?);
        }
    }
    let made = match core {
        Core::Open5gs => open5gs::carry(&sources, &mut peers),
        Core::Free5gc => free5gc::carry(&sources),
    };
    let mut remarks: Vec<String> = Vec::new();
    for source in &sources {
        remarks.extend(source.remarks());
    }
    for file in &peers {
        remarks.extend(file.remarks());
    }
    if made.sections.is_empty() {
        complain(&remarks.join("\n"));
        return Err(Failure::Usage(format!(
            "no function of {} that Signalbox has is in these files; give its nrf, scp, bsf, pcf or pcrf file",
            core.name()
        )));
    }
    let written = write(core, &made, &args.output)?;
    print(&written)?;
    if !remarks.is_empty() {
        complain(&remarks.join("\n"));
    }
    Ok(())
}

fn write(core: Core, made: &Made, folder: &Path) -> Result<String, Failure> {
    let mut written = String::new();
    let mut file = |name: String, text: String| -> Result<(), Failure> {
        let path = folder.join(name);
        let around = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(around).with_context(|| format!("creating {}", around.display()))?;
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("writing {}", path.display()))?;
        written.push_str(&format!("{}\n", path.display()));
        Ok(())
    };
    let head = format!("# From the configuration of {}.\n", core.name());
    for (name, config) in made.sections.files() {
        file(
            format!("{name}.yaml"),
            format!("{head}{}", settings::to_yaml(&config)),
        )?;
    }
    if let Some((project, cases)) = &made.project {
        file(
            "policy/project.yaml".to_owned(),
            format!("{head}{}", settings::to_yaml(project)),
        )?;
        // A list at the top; JSON is YAML.
        let cases = serde_json::to_string_pretty(cases)? + "\n";
        file("policy/cases/imported.json".to_owned(), cases)?;
    }
    Ok(written)
}
