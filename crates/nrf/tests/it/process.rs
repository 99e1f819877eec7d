//! An NRF in a process of its own, to be killed.

use nrf::Config;
use sbi::client::Origin;
use testpeer::process;

/// Not a test of its own: what the process does.
#[test]
fn child() {
    let Some(settings) = process::settings() else {
        return;
    };
    let config: Config = serde_json::from_str(&settings).unwrap();
    let running = nrf::start(config).unwrap();
    process::serve(&running.addresses()[0].to_string());
}

/// The process; killed when dropped.
pub struct Process {
    process: process::Process,
    pub origin: Origin,
}

impl Process {
    pub fn start(config: &Config) -> Process {
        let process = process::Process::start("process::child", &serde_json::to_string(config).unwrap());
        Process {
            origin: format!("http://{}", process.ready).parse().unwrap(),
            process,
        }
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(self) {
        self.process.kill();
    }
}
