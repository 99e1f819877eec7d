//! Progress of a run on standard error: a line redrawn on a terminal, else plain lines at an interval.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Interval of the plain lines, where standard error is not a terminal.
const PLAIN: Duration = Duration::from_secs(5);

/// Reports the progress of a run.
#[derive(Debug)]
pub struct Progress {
    redraw: bool,
    last: Option<Instant>,
    drawn: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            redraw: io::stderr().is_terminal(),
            last: None,
            drawn: false,
        }
    }
}

impl Progress {
    /// A line that stays on the screen.
    pub fn note(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// The present state; the next one replaces it.
    pub fn status(&mut self, text: &str) {
        let mut out = io::stderr();
        if self.redraw {
            let _ = write!(out, "\r\x1b[K{text}");
            let _ = out.flush();
            self.drawn = true;
        } else if self.last.is_none_or(|last| last.elapsed() >= PLAIN) {
            let _ = writeln!(out, "{text}");
            self.last = Some(Instant::now());
        }
    }

    /// Removes the redrawn line.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.drawn = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
