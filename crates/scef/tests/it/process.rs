//! A SCEF in a process of its own, to be killed.

use std::net::SocketAddr;

use scef::Config;
use testpeer::process;

use crate::support::Api;

/// Not a test of its own: what the process does.
#[test]
fn child() {
    let Some(settings) = process::settings() else {
        return;
    };
    let config: Config = serde_json::from_str(&settings).unwrap();
    let running = scef::start(config).unwrap();
    let (t8, diameter) = (running.addresses()[0], running.diameter_addresses()[0]);
    process::serve(&format!("{t8} {diameter}"));
}

/// The process; killed when dropped.
pub struct Process {
    process: process::Process,
    pub api: Api,
    pub diameter: SocketAddr,
}

impl Process {
    pub fn start(config: &Config) -> Process {
        let settings = serde_json::to_string(config).unwrap();
        let process = process::Process::start("process::child", &settings);
        let (t8, diameter) = process.ready.split_once(' ').unwrap();
        Process {
            api: Api::new(format!("http://{t8}").parse().unwrap()),
            diameter: diameter.parse().unwrap(),
            process,
        }
    }

    pub fn kill(self) {
        self.process.kill();
    }
}
