//! What the lab has started ends with it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program;

/// Processes whose parent is this one and that run.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

/// The parent of a process that runs; zombies run no longer.
fn parent_of(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    (state != "Z").then_some(())?;
    fields.next()?.parse().ok()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_to_the_lab_alone_ends_what_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Command::new(program())
        .args([
            "lab",
            "run",
            "scp/model-c-1",
            "--rate",
            "50",
            "--duration",
            "60s",
            "--out",
        ])
        .arg(folder.path().join("run"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = lab.id();
    // The SCP, an NRF and a simulator.
    wait_until("the lab starts no processes", || {
        assert_eq!(lab.try_wait().unwrap(), None, "the lab has ended");
        children(id).len() >= 3
    });
    let started = children(id);
    let killed = Command::new("kill").arg(id.to_string()).status().unwrap();
    assert!(killed.success());
    let status = lab.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(128 + 15), None));
    wait_until("processes of the lab run on", || {
        started.iter().all(|id| parent_of(*id).is_none())
    });
}
