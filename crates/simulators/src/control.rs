//! The simulator's standard input and output: commands in, facts out, a line each.

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

/// Tells that the simulator is ready and obeys commands on a thread of its own.
pub(super) fn start(handle: Handle, addresses: &[SocketAddr]) -> io::Result<()> {
    tell(&Ready {
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
        ("stats", _) => tell(&handle.stats()),
        ("misbehave", settings) => {
            match ::settings::from_str::<Misbehaviour>(settings, "misbehave") {
                Ok(misbehaviour) => handle.misbehave(misbehaviour),
                Err(report) => eprintln!("{report}"),
            }
            Ok(())
        }
        _ => {
            eprintln!("simulator: {line:?} is no command; known: stats, misbehave {{…}}");
            Ok(())
        }
    }
}

fn tell(what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
