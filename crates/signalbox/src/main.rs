//! The signalling core and its laboratory on one command line.
//!
//! - [`cli`]: what can be typed; [`functions`]: the table of network functions, to which adding one is a line;
//! - [`config`]: one YAML file, a section per function; [`check`]: every mistake in it;
//! - [`run`]: from a configuration to running functions and back; [`reload`]: what changes in between;
//! - [`wiring`]: what `up` makes of a configuration; [`secure`]: certificates and tokens everywhere;
//! - [`import`]: records into a store, from a file;
//! - [`store_files`]: damage to the files of a store;
//! - [`inspect`]: looking inside through the admin endpoints.
//!
//! Exit codes: 0 done or passed, 1 a check or run failed, 2 usage or configuration.

mod check;
mod cli;
mod config;
mod failure;
mod functions;
mod import;
mod inspect;
mod reload;
mod run;
mod secure;
mod store_files;
mod welcome;
mod wiring;

use std::io::Write as _;
use std::process::ExitCode;

/// One heap per thread fits one thread per core.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            failure.code()
        }
    }
}

/// Prints to stdout; a reader that went away (`| head`) is not an error.
fn print(text: &str) -> Result<(), failure::Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
