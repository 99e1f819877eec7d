//! An SDS in a process of its own, to be killed.

use sds::Config;
use testpeer::process;

use crate::support::Api;

/// Not a test of its own: what the process does.
#[test]
fn child() {
    let Some(settings) = process::settings() else {
        return;
    };
    let config: Config = serde_json::from_str(&settings).unwrap();
    let running = sds::start(config).unwrap();
    process::serve(&running.addresses()[0].to_string());
}

/// The process; killed when dropped.
pub struct Process {
    process: process::Process,
    pub api: Api,
}

impl Process {
    pub fn start(config: &Config) -> Process {
        let settings = serde_json::to_string(config).unwrap();
        let process = process::Process::start("process::child", &settings);
        Process {
            api: Api::new(format!("http://{}", process.ready).parse().unwrap()),
            process,
        }
    }

    pub fn kill(self) {
        self.process.kill();
    }
}
