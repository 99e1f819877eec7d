//! The signalling core and its laboratory on one command line.
//!
//! - [`cli`]: what can be typed; [`functions`]: the table of network functions, to which adding one is a line;
//! - [`config`]: one YAML file, a section per function; [`check`]: every mistake in it, [`machine`]: and in
//!   the files, directories and addresses that it names;
//! - [`run`]: from a configuration to running functions and back; [`reload`]: what changes in between;
//! - [`administration`]: changes of the file of a running process, and one administration of several, [`changes`]: whose;
//! - [`supervisor`]: its states, for systemd;
//! - [`started`]: a function that runs here; [`welcome`]: what `up` prints when all of them do, [`terminal`]: where its log
//!   goes then;
//! - [`wiring`]: what `up` makes of a configuration; [`secure`]: certificates and tokens everywhere;
//! - [`import`]: records into a store, from a file;
//! - [`store_files`]: damage to the files of a store, copies of it;
//! - [`number_files`]: files of numbers with their destinations;
//! - [`policies`]: policy projects, checked and tested without a PCF; [`replay`]: captures through the security application;
//! - [`manual`]: man pages and completions; [`pack`]: rules and dashboards;
//! - [`allocator`]: the memory of the process; `names`: names of hosts in a static program;
//! - [`inspect`]: looking inside through the admin endpoints; [`running`]: a process that runs already, [`ports`]: or has
//!   one of the ports.
//!
//! Exit codes: 0 done or passed, 1 a check or run failed, 2 usage or configuration.

mod administration;
mod allocator;
mod changes;
mod check;
mod cli;
mod config;
mod failure;
mod following;
mod foreign;
mod functions;
mod import;
mod inspect;
mod laboratory;
mod machine;
mod manual;
mod metrics;
#[cfg(any(test, target_feature = "crt-static"))]
mod names;
mod number_files;
mod overview;
mod pack;
mod policies;
mod ports;
mod reload;
mod replay;
mod run;
mod running;
mod secure;
mod started;
mod store_export;
mod store_files;
mod supervisor;
mod terminal;
mod timeline;
mod welcome;
mod wiring;

use std::io::Write as _;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(failure) => {
            complain(&failure);
            failure.code()
        }
    }
}

/// Prints a line to stderr. A reader that went away (`2>&1 | head`) must not change the exit code.
fn complain(text: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints to stdout; a reader that went away (`| head`) is not an error.
fn print(text: &str) -> Result<(), failure::Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
