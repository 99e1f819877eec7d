//! The test program once more, as a process that a test can stop and kill.
//!
//! A suite has one test that is the body of that process; it returns at once where the environment has no settings:
//!
//! ```no_run
//! #[test]
//! fn child() {
//!     if let Some(settings) = testpeer::process::settings() {
//!         // … starts the function with these settings …
//!         testpeer::process::serve("127.0.0.1:7777");
//!     }
//! }
//! # fn parent() {
//! let process = testpeer::process::Process::start("process::child", "{}");
//! assert_eq!(process.ready, "127.0.0.1:7777");
//! # }
//! ```

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

/// The variable of the environment with the settings.
const SETTINGS: &str = "TESTPEER_PROCESS_SETTINGS";
/// Stands before the line that says that the process is ready; a test harness writes lines as well.
const READY: &str = "ready: ";

/// The settings of this process; `None` in the test program that a person started.
#[must_use]
pub fn settings() -> Option<String> {
    std::env::var(SETTINGS).ok()
}

/// Reports this process as ready, then waits until it is killed, or the test that started it has ended.
///
/// # Panics
/// When the line cannot be written.
pub fn serve(ready: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\n{READY}{ready}").expect("the test that started this process reads its output");
    out.flush()
        .expect("the test that started this process reads its output");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// The process. It is killed when dropped.
pub struct Process {
    child: Child,
    /// What the process reported when it was ready.
    pub ready: String,
}

impl Process {
    /// Runs this test of the test program in a process of its own, with these settings.
    ///
    /// # Panics
    /// When the process ends before it is ready.
    #[must_use]
    pub fn start(test: &str, settings: &str) -> Self {
        let program = std::env::current_exe().expect("the test program has a path");
        let mut child = Command::new(program)
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(SETTINGS, settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test program starts");
        let output = child.stdout.take().expect("the output is a pipe");
        let ready = BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix(READY).map(str::to_owned))
            .expect("the process becomes ready");
        Self { child, ready }
    }

    /// Sends a signal by its name.
    ///
    /// # Panics
    /// When there is no such signal, or the process has ended.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "no {name} for {id}");
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What Rust's kill sends is SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
