//! Libraries by other people from PyPI: python-diameter, a Diameter node; pycrate, codecs of SS7.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The folder of python-diameter for `PYTHONPATH`, from PyPI once for each target directory (`CARGO_TARGET_TMPDIR` of the
/// caller); none: it is not available.
#[must_use]
pub fn diameter(target: &str) -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| install(target, "python-diameter", "0.9.0", "diameter"))
        .as_deref()
}

/// The folder of pycrate, as that of [`diameter`].
#[must_use]
pub fn pycrate(target: &str) -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| install(target, "pycrate", "0.8.1", "pycrate_mobile"))
        .as_deref()
}

/// Installs a version of a package that has a module. Tests that ask for it at the same time install it once.
fn install(target: &str, package: &str, version: &str, module: &str) -> Option<PathBuf> {
    let folder = Path::new(target).join(package);
    if !folder.join(module).is_dir() {
        // Other test programs, and later ones, see it whole or not at all.
        let own = Path::new(target).join(format!("{package}.{}", std::process::id()));
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target"];
        let mut pip = Command::new("python3");
        pip.args(install).arg(&own).arg(format!("{package}=={version}"));
        pip.stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        let is_installed = pip.status().is_ok_and(|status| status.success());
        if !is_installed || std::fs::rename(&own, &folder).is_err() {
            // Another test program may have been faster.
            let _ = std::fs::remove_dir_all(&own);
            return folder.join(module).is_dir().then_some(folder);
        }
    }
    Some(folder)
}
