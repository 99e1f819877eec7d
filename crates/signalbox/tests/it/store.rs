//! The store of a running function: damage and what is done about it, a full disk, who may read the files.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use loadgen::client::{Client, Request};

use crate::process::{Process, ask, harmless, log, signalbox, text, until};

/// Registers instances `from` to before `to`; how many were kept.
fn register(process: &Process, from: u32, to: u32) -> u32 {
    let mut client = Client::connect(process.address("nrf SBI"), Duration::from_secs(10)).unwrap();
    let mut kept = 0;
    for number in from..to {
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let profile = format!(
            r#"{{"nfInstanceId":"{id}","nfType":"UDM","nfStatus":"REGISTERED","ipv4Addresses":["127.0.0.1"],"pad":"{}"}}"#,
            "x".repeat(4_000)
        );
        let request = Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"));
        let answers = client
            .exchange(&[request.with("application/json", profile)])
            .unwrap();
        kept += u32::from(answers[0].status == 201);
    }
    kept
}

fn registered(process: &Process, number: u32) -> bool {
    let mut client = Client::connect(process.address("nrf SBI"), Duration::from_secs(10)).unwrap();
    let path = format!("/nnrf-nfm/v1/nf-instances/00000000-0000-4000-8000-{number:012x}");
    client.exchange(&[Request::new("GET", path)]).unwrap()[0].status == 200
}

fn start(folder: &Path) -> Process {
    let file = harmless(None, folder);
    Process::start(&["run", "nrf", "--config", file.to_str().unwrap()], folder)
}

fn directory(folder: &Path) -> PathBuf {
    folder.join("state/nrf")
}

fn store(command: &str, folder: &Path, json: bool) -> Output {
    let directory = directory(folder);
    let mut args = vec!["store", command, directory.to_str().unwrap()];
    if json {
        args.push("--json");
    }
    signalbox(&args)
}

fn newest(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(directory(folder)).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|end| end == "log"))
        .max()
        .unwrap()
}

#[test]
fn damage_is_found_and_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path());
    assert_eq!(register(&process, 0, 40), 40);
    for command in ["verify", "salvage"] {
        let refused = store(command, folder.path(), false);
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("another process"), "{refused:?}");
    }
    drop(process);

    let file = newest(folder.path());
    let name = file.file_name().unwrap().to_str().unwrap();
    let verified = store("verify", folder.path(), false);
    assert!(verified.status.success(), "{verified:?}");
    assert!(text(&verified.stdout).contains(name), "{verified:?}");
    let idle = store("salvage", folder.path(), false);
    assert!(text(&idle.stdout).contains("nothing was changed"), "{idle:?}");

    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let verified = store("verify", folder.path(), true);
    assert_eq!(verified.status.code(), Some(1));
    let results: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(results["damage"][0]["file"], name, "{results}");
    let byte = usize::try_from(results["damage"][0]["byte"].as_u64().unwrap()).unwrap();
    assert!(byte <= middle && middle < byte + 8_000, "{results}");
    assert!(results["files"][0]["entries"].as_u64() >= Some(30), "{results}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "verify changes nothing");

    let config = folder.path().join("config.yaml");
    let refused = signalbox(&["run", "nrf", "--config", config.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    for part in [name, "damaged at byte", "signalbox store salvage"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }

    let salvaged = store("salvage", folder.path(), true);
    assert!(salvaged.status.success(), "{salvaged:?}");
    let results: serde_json::Value = serde_json::from_slice(&salvaged.stdout).unwrap();
    assert_eq!(results["dropped"][0]["file"], name, "{results}");
    assert_eq!(results["dropped"][0]["from"], byte, "{results}");
    assert!(
        results["dropped"][0]["to"].as_u64() > Some(middle as u64),
        "{results}"
    );
    assert_eq!(results["moved"][0], name, "{results}");
    let aside = Path::new(results["aside"].as_str().unwrap()).join(name);
    assert_eq!(std::fs::read(aside).unwrap(), bytes);

    assert!(store("verify", folder.path(), false).status.success());
    let process = start(folder.path());
    let left = (0..40).filter(|number| registered(&process, *number)).count();
    assert_eq!(left, 39, "one registration was damaged");
}

#[test]
fn records_are_exported_as_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path());
    assert_eq!(register(&process, 0, 3), 3);
    drop(process);
    let directory = directory(folder.path());
    let file = folder.path().join("records.jsonl");
    let (from, to) = (directory.to_str().unwrap(), file.to_str().unwrap());
    let done = signalbox(&["store", "export", from, "--output", to]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let profiles: Vec<_> = lines
        .iter()
        .filter(|line| line["table"] == "nrf_profiles")
        .collect();
    assert_eq!(profiles.len(), 3);
    for profile in profiles {
        assert_eq!(profile["key"], profile["value"]["nfInstanceId"], "{profile}");
        assert!(
            profile["written"].as_u64() >= profile["created"].as_u64(),
            "{profile}"
        );
    }
    // A file that is there stays, and a table has a name.
    assert_eq!(
        signalbox(&["store", "export", from, "--output", to])
            .status
            .code(),
        Some(1)
    );
    let none = signalbox(&["store", "export", from, "--table", "pcf_binding"]);
    assert!(none.status.success() && none.stdout.is_empty(), "{none:?}");
}

#[test]
fn a_directory_without_a_store_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["verify", "salvage", "export"] {
        let output = signalbox(&["store", command, folder.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("no store"), "{output:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn only_the_owner_may_read_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    for _ in 0..2 {
        let process = start(folder.path());
        register(&process, 0, 2);
        drop(process);
        let directory = directory(folder.path());
        assert_eq!(mode(&directory), 0o700);
        let files: Vec<PathBuf> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert!(files.len() >= 4, "{files:?}");
        for file in &files {
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
        // As an earlier release left them.
        let wider = Command::new("chmod")
            .args(["-R", "a+rX"])
            .arg(&directory)
            .status();
        assert!(wider.unwrap().success());
    }
}

/// A file system of its own; gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this process may not mount.
    fn mount(at: &Path) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).unwrap();
        let disk = SmallDisk(at.to_owned());
        let mounted = disk.run("mount", &["-t", "tmpfs", "-o", "size=4m", "tmpfs"]);
        if !mounted {
            testpeer::skip::unavailable("needs to mount a file system, as root can");
        }
        mounted.then_some(disk)
    }

    fn run(&self, program: &str, args: &[&str]) -> bool {
        let mut command = Command::new(program);
        command.args(args).arg(&self.0).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.run("umount", &["--lazy"]);
    }
}

#[test]
fn a_full_disk_makes_not_ready_and_raises_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&directory(folder.path())) else {
        return;
    };
    let process = start(folder.path());
    let admin = process.address("nrf admin");
    assert_eq!(ask(admin, "GET", "/readyz").0, 200);
    let kept = register(&process, 0, 1_200);
    assert!(kept < 1_200, "the disk never fills");

    let (status, body) = ask(admin, "GET", "/readyz");
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("store") && body.contains("o space"), "{body}");
    let alarms = ask(admin, "GET", "/alarms").1;
    assert!(
        alarms.contains("Store Cannot Write") && alarms.contains("10520"),
        "{alarms}"
    );
    let metrics = ask(admin, "GET", "/metrics").1;
    assert!(metrics.contains("signalbox_store_troubled 1"), "{metrics}");
    let lines = |part: &str| {
        log(folder.path())
            .lines()
            .filter(|line| line.contains(part))
            .count()
    };
    assert_eq!(lines("the store cannot write"), 1);
    let all = lines("");
    register(&process, 2_000, 2_200);
    assert!(
        lines("") < all + 20,
        "a line for each write that fails: {}",
        log(folder.path())
    );

    assert!(disk.run("mount", &["-o", "remount,size=16m"]));
    until("ready again", || ask(admin, "GET", "/readyz").0 == 200);
    assert_eq!(register(&process, 3_000, 3_010), 10);
    let active = ask(admin, "GET", "/alarms").1;
    let active: serde_json::Value = serde_json::from_str(&active).unwrap();
    assert_eq!(active["active"], serde_json::json!([]), "{active}");
    assert_eq!(
        (
            lines("the store cannot write"),
            lines("the store can write again")
        ),
        (1, 1)
    );
    assert!(registered(&process, 0));
}

/// The drill: a backup while the NRF serves, its loss, and the restore.
#[test]
fn a_store_is_backed_up_while_it_serves_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path());
    assert_eq!(register(&process, 0, 40), 40);
    let admin = process.address("nrf admin").to_string();
    let copy = folder.path().join("copy");
    let backup = |to: &Path| {
        signalbox(&[
            "store",
            "backup",
            "nrf",
            to.to_str().unwrap(),
            "--admin",
            &admin,
            "--json",
        ])
    };
    let made = backup(&copy);
    assert!(made.status.success(), "{made:?}");
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert!(made["bytes"].as_u64() > Some(4_000), "{made}");
    assert_eq!(register(&process, 40, 50), 10);
    for (to, word) in [
        (&*copy, "not empty"),
        (&folder.path().join("a/b"), "No such file"),
    ] {
        let refused = backup(to);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(text(&refused.stderr).contains(word), "{refused:?}");
    }
    let journal = ask(process.address("nrf admin"), "GET", "/journal").1;
    assert!(
        journal.contains("POST /store/backup?to="),
        "who, and where: {journal}"
    );
    let restore = || {
        let (from, to) = (copy.to_str().unwrap(), directory(folder.path()));
        signalbox(&["store", "restore", from, to.to_str().unwrap()])
    };
    let refused = restore();
    assert!(text(&refused.stderr).contains("another process"), "{refused:?}");
    drop(process);

    let id = std::fs::read_to_string(directory(folder.path()).join("nf-instance-id")).unwrap();
    let restored = restore();
    assert!(restored.status.success(), "{restored:?}");
    assert!(
        text(&restored.stdout).contains("store.replaced-1"),
        "{restored:?}"
    );
    let process = start(folder.path());
    assert!(registered(&process, 39) && !registered(&process, 45));
    let after = std::fs::read_to_string(directory(folder.path()).join("nf-instance-id")).unwrap();
    assert_eq!(after, id);
}
