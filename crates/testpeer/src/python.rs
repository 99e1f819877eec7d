//! python-diameter, a Diameter node by other people.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// The folder of python-diameter for `PYTHONPATH`, from PyPI once for each target directory (`CARGO_TARGET_TMPDIR` of the
/// caller); none: it is not available.
#[must_use]
pub fn diameter(target: &str) -> Option<&'static Path> {
    // Tests that ask for it at the same time install it once.
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| install(target)).as_deref()
}

fn install(target: &str) -> Option<PathBuf> {
    let folder = Path::new(target).join("python-diameter");
    if !folder.join("diameter").is_dir() {
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target"];
        let mut pip = Command::new("python3");
        pip.args(install).arg(&folder).arg("python-diameter==0.9.0");
        pip.stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        pip.status().ok().filter(ExitStatus::success)?;
    }
    Some(folder)
}
