//! Telling how a run goes, on standard error: a line redrawn on a terminal, else plain lines now and then.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a line is written when nobody watches.
const PLAIN: Duration = Duration::from_secs(5);

/// Tells how a run goes.
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
    /// Something that stays on the screen.
    pub fn note(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// How it stands now; replaced by the next.
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

/// A number for people: 51,666 or 9.4.
#[must_use]
pub fn figure(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    if number.abs() < 10.0 {
        let text = format!("{number:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    if number.abs() < 100.0 {
        let text = format!("{number:.1}");
        return text.trim_end_matches(".0").to_owned();
    }
    let whole = format!("{:.0}", number.abs());
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if number < 0.0 {
        format!("-{grouped}")
    } else {
        grouped
    }
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_are_readable() {
        for (number, text) in [
            (51_666.4, "51,666"),
            (9.406, "9.41"),
            (0.0, "0"),
            (99.95, "100"),
            (12.34, "12.3"),
            (1_234_567.0, "1,234,567"),
            (7.0, "7"),
        ] {
            assert_eq!(figure(number), text);
        }
    }
}
