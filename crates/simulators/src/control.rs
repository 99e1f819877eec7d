//! The simulator's standard input and output: commands in, statistics out, a line each.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Misbehaviour;
use super::server::Handle;

/// The first line that a simulator writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The addresses it listens on, in the order of its settings.
    pub listening: Vec<SocketAddr>,
}

/// Reports that the simulator is ready, and executes commands on a thread of its own.
pub(super) fn start(handle: Handle, addresses: &[SocketAddr]) -> io::Result<()> {
    write_line(&Ready {
        listening: addresses.to_vec(),
    })?;
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if obey(&handle, line.trim()).is_err() {
                    break;
                }
            }
            handle.stop();
        })?;
    Ok(())
}

fn obey(handle: &Handle, line: &str) -> io::Result<()> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("stats", _) => write_line(&handle.stats()),
        ("misbehave", settings) => {
            match ::settings::from_str::<Misbehaviour>(settings, "misbehave") {
                Ok(misbehaviour) => handle.misbehave(misbehaviour),
                Err(report) => eprintln!("{report}"),
            }
            Ok(())
        }
        _ => {
            eprintln!("simulator: {line:?} is not a command; use stats or misbehave {{…}}");
            Ok(())
        }
    }
}

fn write_line(what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
