//! A `signalbox run` to test: on ports of its own, with state of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

/// Runs a command to its end.
pub(crate) fn signalbox(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(args)
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The folder with the example configurations.
pub(crate) fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|file| file.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// A process that is killed when the test is over.
pub(crate) struct Process {
    child: Child,
    /// What it said before it was ready, without the last line.
    pub(crate) said: Vec<String>,
}

impl Process {
    /// Starts `signalbox` with these arguments and waits for its line `ready`.
    pub(crate) fn start(args: &[&str], folder: &Path) -> Self {
        Self::start_in(args, folder, &[])
    }

    /// The same, with these variables of the environment.
    pub(crate) fn start_in(args: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_signalbox"))
            .args(args)
            .envs(variables.iter().copied())
            .env_remove("RUST_LOG")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if line == "ready" {
                return Self { child, said };
            }
            said.push(line);
        }
        let _ = child.wait();
        panic!("it ended before it was ready: {said:?}\n{}", log(folder));
    }

    /// The address of an interface: `nrf SBI`, `nrf admin`.
    pub(crate) fn address(&self, interface: &str) -> SocketAddr {
        let line = self.said.iter().find(|line| line.starts_with(interface));
        let uri = line.and_then(|line| line.rsplit(['/', ' ']).next());
        uri.unwrap_or_else(|| panic!("no {interface} in {:?}", self.said))
            .parse()
            .unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process in this folder has logged.
pub(crate) fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    // Two minutes: a machine that also compiles is not the matter of a test.
    for _ in 0..4_800 {
        if so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("it never came: {what}");
}

/// Status and body of an admin page.
pub(crate) fn ask(admin: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {admin}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Writes the configuration of `file` (the defaults without one) with every port 0 and all state in `folder`.
pub(crate) fn harmless(file: Option<&Path>, folder: &Path) -> PathBuf {
    harmless_but(file, folder, |_| {})
}

/// As [`harmless`], with what a test changes.
pub(crate) fn harmless_but(
    file: Option<&Path>,
    folder: &Path,
    change: impl FnOnce(&mut serde_json::Value),
) -> PathBuf {
    let mut args = vec!["config", "show", "--json"];
    let name = file.map(|file| file.to_str().unwrap().to_owned());
    if let Some(name) = &name {
        args.extend(["--config", name]);
    }
    let shown = signalbox(&args);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let mut config: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    make_harmless(&mut config, folder);
    change(&mut config);
    let path = folder.join("config.yaml");
    std::fs::write(&path, settings::to_yaml(&config)).unwrap();
    path
}

fn make_harmless(value: &mut serde_json::Value, folder: &Path) {
    use serde_json::Value;
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), &mut *value) {
                    ("listen" | "admin", Value::String(_)) => *value = "127.0.0.1:0".into(),
                    ("listen", Value::Array(several)) => several.fill("127.0.0.1:0".into()),
                    // Each function has a directory of its own: run/nrf, run/bsf.
                    ("directory", Value::String(of)) => {
                        let name = Path::new(of.as_str()).file_name().unwrap_or_default();
                        *value = folder.join("state").join(name).to_str().into();
                    }
                    _ => make_harmless(value, folder),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| make_harmless(item, folder)),
        _ => {}
    }
}
