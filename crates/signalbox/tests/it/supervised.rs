//! What systemd gets and gives: the states of a process, and the units of `deploy/systemd`.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::process::{Process, harmless, signalbox, text};

/// The next state that is not a sign of life.
fn state(socket: &UnixDatagram) -> String {
    loop {
        let next = datagram(socket);
        if next != "WATCHDOG=1" {
            return next;
        }
    }
}

fn datagram(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).unwrap();
    text(&bytes[..length])
}

/// Starts, reloads well and badly, and ends a function; `name` is where the socket is.
fn supervise(socket: &UnixDatagram, name: &str) {
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(120)))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    let config = config.to_str().unwrap();
    let variables = [("NOTIFY_SOCKET", name), ("WATCHDOG_USEC", "200000")];
    let process = Process::start_in(&["run", "nrf", "--config", config], folder.path(), &variables);
    assert_eq!(state(socket), "READY=1");
    assert_eq!(datagram(socket), "WATCHDOG=1");

    let admin = process.address("nrf admin").to_string();
    let reload = || signalbox(&["nrf", "reload", "--admin", &admin]).status.code();
    let is_reported = || {
        let reloading = state(socket);
        let (what, time) = reloading.split_once("\nMONOTONIC_USEC=").unwrap();
        assert_eq!(what, "RELOADING=1");
        assert!(time.parse::<u64>().unwrap() > 0);
        assert_eq!(state(socket), "READY=1");
    };
    assert_eq!(reload(), Some(0));
    is_reported();
    process.signal("HUP");
    is_reported();
    std::fs::write(config, "nrf: {lisen: 1}\n").unwrap();
    assert_ne!(reload(), Some(0), "`systemctl reload` must fail");
    is_reported();

    process.signal("TERM");
    assert_eq!(state(socket), "STOPPING=1");
    assert_eq!(process.ended().code(), Some(0));
}

#[test]
fn states_go_to_a_socket_with_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    supervise(&UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap());
}

#[test]
fn states_go_to_an_abstract_socket() {
    let name = format!("signalbox-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    supervise(&UnixDatagram::bind_addr(&address).unwrap(), &format!("@{name}"));
}

#[test]
fn the_watchdog_of_another_process_is_not_fed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let config = harmless(None, folder.path());
    let variables = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "2000"),
        ("WATCHDOG_PID", "1"),
    ];
    let args = ["run", "nrf", "--config", config.to_str().unwrap()];
    let process = Process::start_in(&args, folder.path(), &variables);
    assert_eq!(datagram(&socket), "READY=1");
    process.signal("HUP");
    assert!(datagram(&socket).starts_with("RELOADING=1"));
    assert_eq!(datagram(&socket), "READY=1");
}

#[test]
fn a_supervisor_that_does_not_listen_stops_no_function() {
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    let args = ["run", "nrf", "--config", config.to_str().unwrap()];
    let process = Process::start_in(&args, folder.path(), &[("NOTIFY_SOCKET", "/nonexistent/notify")]);
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
}

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd")
}

/// `systemd-analyze`, where this machine has one.
fn analyze(args: &[&str]) -> Option<Output> {
    let output = Command::new("systemd-analyze").args(args).output();
    if output.is_err() {
        eprintln!("skipped: systemd-analyze is missing (apt-get install systemd)");
    }
    output.ok()
}

#[test]
fn the_unit_is_closed() {
    let unit = units().join("signalbox@.service");
    let args = [
        "security",
        "--offline=yes",
        "--threshold=20",
        unit.to_str().unwrap(),
    ];
    if let Some(output) = analyze(&args) {
        assert!(output.status.success(), "above 2.0:\n{}", text(&output.stdout));
    }
}

#[test]
fn units_and_their_additions_are_sound() {
    for (function, addition) in [
        ("nrf", None),
        ("ipfe", Some("signalbox@ipfe-takeover.conf")),
        ("nrf", Some("signalbox-low-ports.conf")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let unit = std::fs::read_to_string(units().join("signalbox@.service")).unwrap();
        // `verify` wants programs that are there.
        let unit = unit.replace("=signalbox ", &format!("={} ", env!("CARGO_BIN_EXE_signalbox")));
        let name = format!("signalbox@{function}.service");
        std::fs::write(folder.path().join("signalbox@.service"), unit).unwrap();
        if let Some(addition) = addition {
            let into = folder.path().join(format!("{name}.d"));
            std::fs::create_dir(&into).unwrap();
            std::fs::copy(units().join(addition), into.join("addition.conf")).unwrap();
        }
        let Some(output) = analyze(&["verify", folder.path().join(&name).to_str().unwrap()]) else {
            return;
        };
        let said = text(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{addition:?}: {said}");
    }
}
