//! `up` at a terminal: what is logged goes to a file, so that the page and the counts stay on the screen.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::path::Path;

use anyhow::Context as _;

/// Size of the file at most; it begins again then.
const MOST_LOGGED: u64 = 16 << 20;

/// The terminal, as long as the standard error of the process is a file.
pub(crate) struct Screen {
    terminal: File,
    log: File,
}

impl Screen {
    /// Has the standard error of the process go to a new file from now on.
    pub(crate) fn take(path: &Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        // In append mode all lines stand one after the other, also after the file has begun again.
        let log = options.create(true).append(true).open(path);
        let log = log.with_context(|| format!("opening {}", path.display()))?;
        log.set_len(0)?;
        let terminal = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        redirect(log.as_raw_fd())?;
        Ok(Self { terminal, log })
    }

    /// Shows a line in the place of the one before, where there is one, and bounds the file. To be called every second.
    pub(crate) fn tick(&mut self, line: Option<&str>) {
        if let Some(line) = line {
            // A terminal that has gone does not end the core.
            let _ = write!(self.terminal, "\r  {line} ");
        }
        let is_full = self.log.metadata().is_ok_and(|file| file.len() > MOST_LOGGED);
        if is_full {
            let _ = self.log.set_len(0);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = writeln!(self.terminal);
        // What goes wrong at the end is shown again.
        let _ = redirect(self.terminal.as_raw_fd());
    }
}

/// Makes standard error another name of what is open as `to`.
#[allow(unsafe_code)]
fn redirect(to: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes two numbers and touches no memory (POSIX.1-2017); `to` is open as long as its owner, a caller's `File`,
    // is borrowed, and standard error is closed by no part of this process.
    match unsafe { libc::dup2(to, libc::STDERR_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
