//! Tests that need what a machine may not have.
//!
//! A skipped test prints why. With `SIGNALBOX_REQUIRE_PEERS=1`, as in continuous integration, a missing program fails
//! the test instead: a skip there would stay green for ever.

use std::process::{Command, Output};

/// The variable that makes a missing program a failure.
pub const REQUIRE: &str = "SIGNALBOX_REQUIRE_PEERS";

/// Prints that a program is missing.
///
/// # Panics
/// When `SIGNALBOX_REQUIRE_PEERS` is `1`.
pub fn missing(what: &str) {
    missing_where(what, std::env::var_os(REQUIRE).is_some_and(|value| value == "1"));
}

fn missing_where(what: &str, required: bool) {
    assert!(!required, "{what} is missing, and {REQUIRE}=1 requires it");
    eprintln!("skipped: {what} is missing");
}

/// Prints that the kernel, the user's rights or a licence keep a test from running. This is never a failure.
pub fn unavailable(what: &str) {
    eprintln!("skipped: {what}");
}

/// Runs a program to its end; `None` where it is [`missing`].
///
/// # Panics
/// As [`missing`], and when the program cannot be started for another reason.
#[must_use]
pub fn output(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            missing(&command.get_program().to_string_lossy());
            None
        }
        Err(error) => panic!("cannot start {command:?}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_exists_is_run() {
        assert!(output(Command::new("true").arg("x")).is_some_and(|output| output.status.success()));
    }

    #[test]
    fn a_missing_program_is_a_skip_where_peers_are_not_required() {
        missing_where("a program", false);
    }

    #[test]
    #[should_panic(expected = "a program is missing")]
    fn a_missing_program_is_a_failure_where_peers_are_required() {
        missing_where("a program", true);
    }
}
