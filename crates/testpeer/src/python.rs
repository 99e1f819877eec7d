//! Libraries and programs by other people from PyPI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The folder of python-diameter, a Diameter node, for `PYTHONPATH`, from PyPI once for each target directory (`CARGO_TARGET_TMPDIR` of
/// the caller); none: it is not available.
#[must_use]
pub fn diameter(target: &str) -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let install = || {
        packages(
            target,
            "python-diameter",
            &["--no-deps", "python-diameter==0.9.0"],
        )
    };
    FOLDER.get_or_init(install).as_deref()
}

/// The folder of pycrate, codecs of SS7, as that of [`diameter`].
#[must_use]
pub fn pycrate(target: &str) -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let install = || packages(target, "pycrate", &["--no-deps", "pycrate==0.8.1"]);
    FOLDER.get_or_init(install).as_deref()
}

/// The folder of this name with packages, for `PYTHONPATH`, from PyPI once for each target directory. `arguments` are those of `pip`: the
/// packages with their versions; none: they are not available.
#[must_use]
pub fn packages(target: &str, name: &str, arguments: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(target).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    // Other test programs, and later ones, see it whole or not at all.
    let own = Path::new(target).join(format!("{name}.{}", std::process::id()));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"])
        .arg(&own)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    let is_installed = pip.status().is_ok_and(|status| status.success());
    if !is_installed || std::fs::rename(&own, &folder).is_err() {
        // Another test program may have been faster.
        let _ = std::fs::remove_dir_all(&own);
    }
    folder.is_dir().then_some(folder)
}
