//! A `signalbox run` on ports and with state of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Time that a function may take to start, on a busy machine.
const START: Duration = Duration::from_secs(60);

/// Bounds that the shell sets before the function starts (`ulimit`), in its own words: `-n 64`.
pub type Limits<'a> = &'a str;

/// A running process, killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    said: Vec<String>,
    /// What it writes to stderr.
    pub log: PathBuf,
}

impl Process {
    /// Starts these functions with this configuration and waits until they are ready.
    ///
    /// # Errors
    /// When they do not start; the text holds the end of their log.
    pub fn start(
        binary: &Path,
        functions: &[&str],
        config: &Value,
        folder: &Path,
        limits: Limits<'_>,
    ) -> anyhow::Result<Self> {
        let name = functions.join("-");
        let (file, log) = (
            folder.join(format!("{name}.yaml")),
            folder.join(format!("{name}.log")),
        );
        std::fs::write(&file, settings::to_yaml(config))?;
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = match limits {
            "" => Command::new(binary),
            limits => {
                let mut shell = Command::new("sh");
                // A write beyond the limit of a file's size is an error instead of a signal.
                let script = format!("trap '' XFSZ; ulimit {limits}; exec \"$0\" \"$@\"");
                shell.arg("-c").arg(script).arg(binary);
                shell
            }
        };
        command.arg("run").args(functions).arg("--config").arg(&file);
        Self::begin(command, &name, log, stderr, folder)
    }

    /// Starts `signalbox up --secure` with this configuration and waits until it is ready.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn up_secure(binary: &Path, config: &Value, folder: &Path) -> anyhow::Result<Self> {
        let (file, log) = (folder.join("up.yaml"), folder.join("up.log"));
        std::fs::write(&file, settings::to_yaml(config))?;
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new(binary);
        command.args(["up", "--secure", "--config"]).arg(&file);
        Self::begin(command, "up", log, stderr, folder)
    }

    fn begin(
        mut command: Command,
        name: &str,
        log: PathBuf,
        stderr: std::fs::File,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut child = command
            .env_remove("RUST_LOG")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("{name} does not start"))?;
        let stdout = child.stdout.take().context("a process without stdout")?;
        let (sender, output) = mpsc::sync_channel(64);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut process = Self {
            child,
            said: Vec::new(),
            log,
        };
        let end = Instant::now() + START;
        loop {
            match output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                // The page of `up` ends with the addresses of metrics and an empty line.
                Ok(line) if line == "ready" || (line.is_empty() && process.has_pages()) => {
                    return Ok(process);
                }
                Ok(line) => process.said.push(line),
                Err(_) => {
                    let how = process.ended_within(Duration::from_secs(5));
                    bail!("{name} was not ready ({how:?}): {}", process.last_words());
                }
            }
        }
    }

    fn has_pages(&self) -> bool {
        self.said.last().is_some_and(|line| line.ends_with("/metrics"))
    }

    /// The root of a function's service-based interface, as `up --secure` prints it.
    ///
    /// # Errors
    /// When it printed none.
    pub fn secure_root(&self, function: &str) -> anyhow::Result<String> {
        let mut lines = self.said.iter().map(|line| line.split_whitespace());
        let root = lines.find_map(|mut words| {
            let here = words.next()? == function && words.next()? == "SBI";
            words.next().filter(|root| here && root.starts_with("https://"))
        });
        let root = root.with_context(|| format!("no {function} in {:?}", self.said))?;
        Ok(root.to_owned())
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address of an interface as it printed it: `nrf SBI`, `nrf admin`.
    ///
    /// # Errors
    /// When it printed none.
    pub fn address(&self, interface: &str) -> anyhow::Result<SocketAddr> {
        let line = self.said.iter().find(|line| line.starts_with(interface));
        let address = line.and_then(|line| line.rsplit(['/', ' ']).next());
        let address = address.with_context(|| format!("no {interface} in {:?}", self.said))?;
        Ok(address.parse()?)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// How it ended, when it does within this time.
    pub fn ended_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + time;
        loop {
            let ended = self.ended();
            if ended.is_some() || Instant::now() >= end {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops and continues it (`STOP`, `CONT`).
    pub fn signal(&self, name: &str) {
        let _ = Command::new("kill")
            .args([&format!("-{name}"), &self.pid().to_string()])
            .status();
    }

    /// The end of its log.
    #[must_use]
    pub fn last_words(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let end = log.len().saturating_sub(2_000);
        String::from_utf8_lossy(log.get(end..).unwrap_or_default()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What an exit status means, for a report.
#[must_use]
pub fn how_it_ended(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("the process was ended by signal {signal}"),
        None => format!("the process ended with {}", status.code().unwrap_or(-1)),
    }
}

/// `signalbox` as this program's build made it: beside a test binary's folder, or beside this binary.
///
/// # Errors
/// When there is none and it cannot be built.
pub fn binary() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("SIGNALBOX_BINARY") {
        return Ok(named.into());
    }
    let own = std::env::current_exe()?;
    let mut folder = own.parent().context("a program without a folder")?;
    if folder.ends_with("deps") {
        folder = folder.parent().context("deps without a folder")?;
    }
    let found = folder.join("signalbox");
    if !found.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--locked", "-p", "signalbox"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        if !build.status()?.success() || !found.exists() {
            bail!("{} is missing and could not be built", found.display());
        }
    }
    Ok(found)
}
