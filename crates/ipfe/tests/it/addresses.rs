//! The program that moves target set addresses, in a network namespace of its own.

use std::process::Command;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/ipfe/tsa.sh");

/// Runs a script where it can change addresses; none where this user may not, or `ip` is missing.
fn isolated(script: &str) -> Option<std::process::Output> {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", script]).env("TSA", PROGRAM);
    let output = testpeer::skip::output(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.starts_with("unshare:") || said.contains("ip: not found") {
        testpeer::skip::unavailable(&format!("no network namespace: {said}"));
        return None;
    }
    Some(output)
}

#[test]
fn addresses_are_added_and_removed_also_when_they_are_already() {
    let script = "set -e; ip link set lo up
        $TSA here lo 198.51.100.7/32 2001:db8::7/128
        $TSA here lo 198.51.100.7/32 2001:db8::7/128
        ip -o address show dev lo; echo --
        $TSA away lo 198.51.100.7/32 2001:db8::7/128
        $TSA away lo 198.51.100.7/32
        ip -o address show dev lo";
    let Some(output) = isolated(script) else { return };
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let (here, away) = shown.split_once("--").unwrap();
    for address in ["198.51.100.7/32", "2001:db8::7/128"] {
        assert_eq!(here.matches(address).count(), 1, "{shown}");
        assert!(!away.contains(address), "{shown}");
    }
}

#[test]
fn what_it_cannot_do_it_says() {
    for (arguments, reason) in [
        ("here", "expected: here|away"),
        ("here absent0 198.51.100.7/32", "absent0 does not exist"),
        ("up lo 198.51.100.7/32", "up does not exist"),
    ] {
        let Some(output) = isolated(&format!("$TSA {arguments}")) else {
            return;
        };
        assert!(!output.status.success(), "{arguments}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(reason), "{arguments}: {said}");
    }
}
