//! Processes that the lab starts: they log to files, run on the cores they are given, and end with the lab.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use report::measure::Process;
use rustix::process::{Pid, Signal, kill_process};
use simulators::{Misbehaviour, Ready, Settings, Stats};

use super::ending::{Ends, starting};

/// How long a process may take to get ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process could not be started or used.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The system refused.
    #[error("cannot start {name}: {source}")]
    Start {
        /// What.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// It ended, or never got ready.
    #[error("{name} {what}; the end of its log ({log}):\n{tail}")]
    Gone {
        /// What.
        name: String,
        /// What it did instead.
        what: String,
        /// Its log.
        log: String,
        /// The last lines of it.
        tail: String,
    },
}

/// A process of the lab. It is killed when this is dropped.
#[derive(Debug)]
pub struct Guarded {
    name: String,
    child: Child,
    log: PathBuf,
    ends: Option<Ends>,
}

impl Guarded {
    /// Starts a program on these cores (any, when empty); what it writes goes to `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, mut command: Command, cpus: &[usize], log: &Path) -> Result<Self, ChildError> {
        let failed = |source| ChildError::Start {
            name: name.to_owned(),
            source,
        };
        let file = File::create(log).map_err(failed)?;
        command.stderr(file.try_clone().map_err(failed)?);
        // A child inherits the cores of the thread that starts it, so that not even its first thread runs
        // elsewhere.
        let spawn = || -> io::Result<Child> {
            if !cpus.is_empty() {
                loadgen::pin_current_thread(cpus)?;
            }
            command.spawn()
        };
        let starting = starting();
        let child = std::thread::scope(|scope| scope.spawn(spawn).join())
            .unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
            .map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let ends = starting.ends_by(move || {
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
            ends: Some(ends),
        })
    }

    /// The process, to measure it.
    #[must_use]
    pub fn process(&self) -> Process {
        Process::new(self.child.id())
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it accepts connections.
    ///
    /// # Errors
    /// When it ends first, or takes too long.
    pub fn wait_for(&mut self, address: SocketAddr) -> Result<(), ChildError> {
        self.wait_longer_for(address, Duration::ZERO)
    }

    /// As [`Guarded::wait_for`] with a longer timeout: for a process that reads long files before it listens.
    ///
    /// # Errors
    /// As there.
    pub fn wait_longer_for(&mut self, address: SocketAddr, longer: Duration) -> Result<(), ChildError> {
        let patience = PATIENCE + longer;
        let end = Instant::now() + patience;
        while TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.gone(format!("ended with {status}")));
            }
            if Instant::now() > end {
                return Err(self.gone(format!(
                    "does not answer at {address} after {} s",
                    patience.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Why it is of no use, with the end of its log.
    #[must_use]
    pub fn gone(&self, what: String) -> ChildError {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n");
        ChildError::Gone {
            name: self.name.clone(),
            what,
            log: self.log.display().to_string(),
            tail,
        }
    }

    /// Sends SIGTERM, and kills it if it does not end soon.
    pub fn stop(self) {
        self.stop_within(Duration::from_secs(5));
    }

    /// Sends SIGTERM, and kills it if it does not end within this time.
    pub(crate) fn stop_within(mut self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut next = Instant::now();
        while Instant::now() < end && self.is_alive() {
            if Instant::now() >= next {
                // More than once: nginx looks at its signals only before it waits for events, and misses one that comes
                // between (seen under callgrind).
                next += Duration::from_secs(1);
                if let Some(id) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process(id, Signal::TERM);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Before it is waited for: after that its number may be that of another process.
        self.ends = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A simulator in a process of its own.
#[derive(Debug)]
pub struct Simulator {
    name: String,
    guarded: Guarded,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// What it had done when it was killed.
    killed: Option<Stats>,
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
}

impl Simulator {
    /// Starts a simulator and waits until it listens. Settings and log go to `folder`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        program: &Path,
        name: &str,
        settings: &Settings,
        cpus: &[usize],
        folder: &Path,
    ) -> Result<Self, ChildError> {
        let failed = |source| ChildError::Start {
            name: name.to_owned(),
            source,
        };
        let file = folder.join(format!("{name}.yaml"));
        std::fs::write(&file, settings::to_yaml(settings)).map_err(failed)?;
        let mut command = Command::new(program);
        command
            .arg("lab-sim")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut guarded = Guarded::start(name, command, cpus, &folder.join(format!("{name}.log")))?;
        let (Some(input), Some(output)) = (guarded.child.stdin.take(), guarded.child.stdout.take()) else {
            return Err(failed(io::Error::other("no pipes")));
        };
        let mut simulator = Self {
            name: name.to_owned(),
            guarded,
            input,
            output: BufReader::new(output),
            killed: None,
            addresses: Vec::new(),
        };
        let ready: Ready = simulator.hear()?;
        simulator.addresses = ready.listening;
        Ok(simulator)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process, to measure it.
    #[must_use]
    pub fn process(&self) -> Process {
        self.guarded.process()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.guarded.id()
    }

    /// Its counters now.
    ///
    /// # Errors
    /// When it has ended.
    pub fn stats(&mut self) -> Result<Stats, ChildError> {
        if let Some(stats) = self.killed {
            return Ok(stats);
        }
        self.say("stats")?;
        self.hear()
    }

    /// Kills it at once; its counters are those of a moment before.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn kill(&mut self) -> Result<(), ChildError> {
        let last = self.stats()?;
        self.killed = Some(last);
        let failed = |source| ChildError::Start {
            name: self.name.clone(),
            source,
        };
        self.guarded.child.kill().map_err(failed)?;
        self.guarded.child.wait().map_err(failed)?;
        Ok(())
    }

    /// Changes how it misbehaves.
    ///
    /// # Errors
    /// When it has ended.
    pub fn misbehave(&mut self, misbehaviour: &Misbehaviour) -> Result<(), ChildError> {
        let line = serde_json::to_string(misbehaviour).map_err(|e| self.guarded.gone(e.to_string()))?;
        self.say(&format!("misbehave {line}"))
    }

    fn say(&mut self, line: &str) -> Result<(), ChildError> {
        writeln!(self.input, "{line}")
            .and_then(|()| self.input.flush())
            .map_err(|error| self.guarded.gone(format!("takes no command ({error})")))
    }

    fn hear<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, ChildError> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        match read
            .ok()
            .filter(|count| *count > 0)
            .and_then(|_| serde_json::from_str(&line).ok())
        {
            Some(report) => Ok(report),
            None => Err(self
                .guarded
                .gone("ended, or wrote a line that is not a report of a simulator".to_owned())),
        }
    }
}
