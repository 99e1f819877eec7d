//! `signalbox check`: every mistake of every file.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::USAGE;
use crate::config::Config;

/// Checks files; says what is wrong on stderr and which are fine on stdout.
pub(crate) fn files(files: &[PathBuf]) -> ExitCode {
    let mut wrong = 0;
    for file in files {
        match settings::from_file::<Config>(file) {
            Ok(_) => drop(print(&format!("{}: fine\n", file.display()))),
            Err(report) => {
                wrong += 1;
                eprintln!("{report}");
            }
        }
    }
    if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(USAGE)
    }
}

/// Prints to stdout; a reader that went away (`| head`) is not an error.
pub(crate) fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
