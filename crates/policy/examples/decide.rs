//! What a decision costs: the example projects, their cases in turn, on one thread.
//!
//! ```text
//! cargo run --release -p policy --example decide -- examples/policy/high
//! ```
//!
//! With `count FOLDER CASE ROUNDS` it decides one case that often and prints nothing: under `valgrind --tool=callgrind`,
//! the difference of two runs is the instructions of a decision, which other work on the machine does not change.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use policy::testing::Case;
use policy::{Limits, Project, Scratch, Trace};

/// Rounds of each measurement: few, so that some are not interrupted on a busy machine.
const ROUNDS: u32 = 500;
/// Measurements, of which the fastest and the median are printed.
const SAMPLES: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let mut folders: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, folder, case, rounds] = folders.as_slice()
        && mode == "count"
    {
        return count(Path::new(folder), case.parse()?, rounds.parse()?);
    }
    if folders.is_empty() {
        folders = ["low", "medium", "high"]
            .map(|name| format!("examples/policy/{name}"))
            .into();
    }
    let mut out = std::io::stdout().lock();
    for folder in folders {
        let begun = Instant::now();
        let project = compile(Path::new(&folder))?;
        let compiled = begun.elapsed();
        let mut scratch = Scratch::default();
        let begun = Instant::now();
        project.prepare(&mut scratch);
        let prepared = begun.elapsed();
        writeln!(
            out,
            "{folder}: compiled in {compiled:.1?}, made ready for a worker in {prepared:.1?}"
        )?;
        for case in cases(Path::new(&folder))? {
            let (fastest, median) = measure(&project, &mut scratch, &case, false)?;
            let (traced, _) = measure(&project, &mut scratch, &case, true)?;
            writeln!(
                out,
                "  {fastest:6.2} µs at best, {median:6.2} µs at the median, {traced:6.2} µs traced: {}",
                case.name
            )?;
        }
    }
    Ok(())
}

/// Decides a case, counted from zero, `rounds` times.
fn count(folder: &Path, case: usize, rounds: u32) -> Result<(), Box<dyn Error>> {
    let project = compile(folder)?;
    let cases = cases(folder)?;
    let case = cases.get(case).ok_or("the folder has fewer cases")?;
    decisions(&project, &mut Scratch::default(), case, rounds, false)
}

fn compile(folder: &Path) -> Result<Project, Box<dyn Error>> {
    let files = read(folder)?;
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    Ok(Project::compile(&files, &Limits::default())?)
}

fn cases(folder: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    for (name, text) in read(&folder.join("cases"))? {
        cases.extend(Case::parse(&text, &name)?);
    }
    Ok(cases)
}

/// Microseconds of a decision: the fastest and the median sample.
fn measure(
    project: &Project,
    scratch: &mut Scratch,
    case: &Case,
    traced: bool,
) -> Result<(f64, f64), Box<dyn Error>> {
    let mut samples = Vec::new();
    let rounds = if traced { ROUNDS / 20 } else { ROUNDS };
    for _ in 0..SAMPLES {
        let begun = Instant::now();
        decisions(project, scratch, case, rounds, traced)?;
        samples.push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    }
    samples.sort_by(f64::total_cmp);
    Ok((samples[0], samples[SAMPLES / 2]))
}

fn decisions(
    project: &Project,
    scratch: &mut Scratch,
    case: &Case,
    rounds: u32,
    traced: bool,
) -> Result<(), Box<dyn Error>> {
    case.with_input(|input| {
        for _ in 0..rounds {
            let mut trace = traced.then(Trace::new);
            let decision = project.decide(scratch, input, case.now(), trace.as_mut());
            std::hint::black_box(&decision.map_err(|fault| fault.to_string())?);
        }
        Ok::<(), String>(())
    })?;
    Ok(())
}

fn read(folder: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.push((name, std::fs::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}
