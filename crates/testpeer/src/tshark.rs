//! tshark, the command line of Wireshark, as a judge of captures.

use std::path::Path;
use std::process::{Command, Stdio};

/// Malformed packets, and what Wireshark's experts warn of.
pub const COMPLAINTS: &str = "_ws.malformed || _ws.expert.severity >= 0x600000";

/// What tshark prints of a file. None where it is not installed.
///
/// # Panics
/// When it cannot read the file.
#[must_use]
pub fn tshark(arguments: &[&str], file: &Path) -> Option<String> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(arguments).stderr(Stdio::null());
    let output = crate::skip::output(&mut tshark)?;
    assert!(output.status.success(), "tshark cannot read {}", file.display());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
