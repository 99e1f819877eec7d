//! A BSF in a process of its own, to be killed.

use std::net::SocketAddr;

use bsf::Config;
use sbi::client::Origin;
use testpeer::process;

/// Not a test of its own: what the process does.
#[test]
fn child() {
    let Some(settings) = process::settings() else {
        return;
    };
    let config: Config = serde_json::from_str(&settings).unwrap();
    let running = bsf::start(config).unwrap();
    let (sbi, rx) = (running.addresses()[0], running.diameter_addresses()[0]);
    process::serve(&format!("{sbi} {rx}"));
}

/// The process; killed when dropped.
pub struct Process {
    _process: process::Process,
    pub origin: Origin,
    pub diameter: SocketAddr,
}

impl Process {
    pub fn start(config: &Config) -> Process {
        let process = process::Process::start("process::child", &serde_json::to_string(config).unwrap());
        let (sbi, rx) = process.ready.split_once(' ').unwrap();
        Process {
            origin: format!("http://{sbi}").parse().unwrap(),
            diameter: rx.parse().unwrap(),
            _process: process,
        }
    }
}
