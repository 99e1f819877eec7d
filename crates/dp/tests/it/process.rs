//! A processor in a process of its own, to be killed.

use std::net::SocketAddr;

use testpeer::process;

/// Not a test of its own: what the process does.
#[test]
fn child() {
    if let Some(settings) = process::settings() {
        let running = dp::start(serde_json::from_str(&settings).unwrap()).unwrap();
        process::serve(&running.addresses()[0].to_string());
    }
}

/// The process, and where it listens; killed when dropped.
pub(crate) fn start(config: &dp::Config) -> (process::Process, SocketAddr) {
    let settings = serde_json::to_string(config).unwrap();
    let process = process::Process::start("process::child", &settings);
    let address = process.ready.parse().unwrap();
    (process, address)
}
