//! Programs of other people from Maven Central.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// The folder of these artifacts (`group:artifact:version`) and all that they need to run but for these groups, for the class path;
/// from Maven Central once for each name and target directory (`CARGO_TARGET_TMPDIR` of the caller). `None`: it is not available,
/// without a Java compiler, Maven or Maven Central.
#[must_use]
pub fn jars(target: &str, name: &str, artifacts: &[&str], without: &[&str]) -> Option<PathBuf> {
    // Tests that ask for them at the same time fetch them once.
    static FETCH: Mutex<()> = Mutex::new(());
    let _alone = FETCH.lock().ok()?;
    let version = |program| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !version("javac") {
        return None;
    }
    let folder = Path::new(target).join(name);
    if folder.join("jars").is_dir() {
        return Some(folder.join("jars"));
    }
    // Other test programs, and later ones, see it whole or not at all.
    let own = Path::new(target).join(format!("{name}.{}", std::process::id()));
    std::fs::create_dir_all(&own).ok()?;
    std::fs::write(own.join("pom.xml"), project(artifacts, without)).ok()?;
    let mut maven = Command::new("mvn");
    maven.args([
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DoutputDirectory=jars",
    ]);
    maven.args(["-DincludeScope=runtime"]).current_dir(&own);
    maven
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let is_fetched = maven.status().is_ok_and(|status| status.success());
    if !is_fetched || std::fs::rename(&own, &folder).is_err() {
        // Another test program may have been faster.
        let _ = std::fs::remove_dir_all(&own);
    }
    let jars = folder.join("jars");
    jars.is_dir().then_some(jars)
}

/// A project that needs these artifacts, and is never built.
fn project(artifacts: &[&str], without: &[&str]) -> String {
    let exclusion =
        |group: &&str| format!("<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>");
    let exclusions: String = without.iter().map(exclusion).collect();
    let dependency = |artifact: &&str| {
        let parts: Vec<&str> = artifact.split(':').collect();
        let [group, name, version] = parts[..] else {
            panic!("`{artifact}` is not group:artifact:version");
        };
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>\
             <exclusions>{exclusions}</exclusions></dependency>"
        )
    };
    let dependencies: String = artifacts.iter().map(dependency).collect();
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>signalbox.test</groupId><artifactId>peer</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>"
    )
}
