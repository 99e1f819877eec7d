//! A BSF in a process of its own, to be killed. The process is this test program itself, running [`child`] with the
//! settings in its environment.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use bsf::Config;
use sbi::client::Origin;

const SETTINGS: &str = "BSF_CHILD_SETTINGS";

/// Not a test of its own: what the process does.
#[test]
fn child() {
    let Some(settings) = std::env::var_os(SETTINGS) else {
        return;
    };
    let config: Config = serde_json::from_str(settings.to_str().unwrap()).unwrap();
    let running = bsf::start(config).unwrap();
    let (sbi, rx) = (running.addresses()[0], running.diameter_addresses()[0]);
    let mut out = std::io::stdout();
    writeln!(out, "\nlistening {sbi} {rx}").unwrap();
    out.flush().unwrap();
    // Until it is killed, or whoever started it is gone.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// The process; killed when dropped.
pub struct Process {
    child: Child,
    pub origin: Origin,
    pub diameter: SocketAddr,
}

impl Process {
    pub fn start(config: &Config) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::child", "--nocapture", "--test-threads", "1"])
            .env(SETTINGS, serde_json::to_string(config).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening ").map(str::to_owned))
            .expect("the BSF starts");
        let (sbi, rx) = told.split_once(' ').unwrap();
        Process {
            child,
            origin: format!("http://{sbi}").parse().unwrap(),
            diameter: rx.parse().unwrap(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: what Rust's kill sends.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
