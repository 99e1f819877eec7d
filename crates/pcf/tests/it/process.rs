//! A PCF in a process of its own, to be killed.

use pcf::Config;
use sbi::client::Origin;
use testpeer::process;

/// Not a test of its own: what the process does.
#[test]
fn child() {
    let Some(settings) = process::settings() else {
        return;
    };
    let config: Config = serde_json::from_str(&settings).unwrap();
    let running = pcf::start(config).unwrap();
    process::serve(&running.addresses()[0].to_string());
}

/// The process; killed when dropped.
pub struct Process {
    _process: process::Process,
    pub origin: Origin,
}

impl Process {
    pub fn start(config: &Config) -> Process {
        let process = process::Process::start("process::child", &serde_json::to_string(config).unwrap());
        Process {
            origin: format!("http://{}", process.ready).parse().unwrap(),
            _process: process,
        }
    }
}
