//! Conformance of a function's server to RFC 9113 and RFC 7541: all cases of h2spec against an NRF.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tls::authority::Authority;

use crate::process::{Process, log, text};

/// One value of h2spec's longest headers, five of which must be more than our SETTINGS_MAX_FRAME_SIZE of 64 KiB in
/// Huffman code.
const HEADER_BYTES: &str = "20000";

/// Runs all cases against an NRF with these settings of TLS.
fn conforms(folder: &Path, tls: Option<Value>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/h2spec.sh");
    let built = Command::new(script).output().unwrap();
    if !built.status.success() {
        eprintln!("{}", text(&built.stderr));
        return testpeer::skip::missing("h2spec (scripts/h2spec.sh)");
    }
    let mut nrf = json!({
        "listen": ["127.0.0.1:0"], "admin": "127.0.0.1:0", "workers": 1,
        "store": {"embedded": {"directory": folder.join("store")}},
        // A debug build on a busy machine lets requests wait longer than admission accepts.
        "overload": {"waiting": {"target": "0s"}}
    });
    let mut command = Command::new(text(&built.stdout).trim());
    if let Some(tls) = tls {
        nrf["tls"] = tls;
        command.args(["--tls", "--insecure"]);
    }
    let config = folder.join("nrf.yaml");
    std::fs::write(&config, json!({"nrf": nrf}).to_string()).unwrap();
    let process = Process::start(&["run", "nrf", "--config", config.to_str().unwrap()], folder);
    let port = process.address("nrf SBI").port().to_string();
    command.args(["--port", &port, "--path", "/nnrf-nfm/v1/nf-instances"]);
    // A case that waits for an answer waits as long as a busy machine needs.
    command.args(["--strict", "--timeout", "20", "--max-header-length", HEADER_BYTES]);
    let output = command.output().unwrap();
    let found = text(&output.stdout);
    assert!(
        found.contains("146 tests, 146 passed, 0 skipped, 0 failed"),
        "{found}\n{}",
        log(folder)
    );
}

#[test]
fn all_cases_pass_in_cleartext() {
    conforms(tempfile::tempdir().unwrap().path(), None);
}

#[test]
fn all_cases_pass_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("lab").unwrap();
    let identity = authority.issue(&["localhost"]).unwrap();
    let files = authority.write(&identity, folder.path(), "nrf").unwrap();
    let tls = json!({"certificate": files.certificate, "key": files.key});
    conforms(folder.path(), Some(tls));
}
