//! Certificates on the disk: found where they hold, made where not.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tls::authority::{Authority, Identity, holds};

/// For the owner only: what may be listed, and what may be read.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The certificates of a core, in a folder of their own.
pub(super) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Certificates for these names: those that are there if all of them hold, otherwise others by another authority.
    pub(super) fn open(folder: PathBuf, wanted: &[(String, Vec<String>)]) -> anyhow::Result<Self> {
        let shown = folder.display().to_string();
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(FOLDER_MODE);
        builder
            .create(&folder)
            .with_context(|| format!("making {shown}"))?;
        fs::set_permissions(&folder, Permissions::from_mode(FOLDER_MODE))
            .with_context(|| format!("making {shown} private"))?;
        let found = Self { folder };
        if !found.holds(wanted) {
            found
                .make(wanted)
                .with_context(|| format!("writing certificates to {shown}"))?;
        }
        Ok(found)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.folder.join("authority.crt")
    }

    pub(super) fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    pub(super) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    fn holds(&self, wanted: &[(String, Vec<String>)]) -> bool {
        let private =
            |path: &Path| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o777 == FILE_MODE);
        let Ok(authority) = fs::read_to_string(self.authority()) else {
            return false;
        };
        let now = sbi::oauth::since_epoch();
        wanted.iter().all(|(name, names)| {
            let (certificate, key) = (self.certificate(name), self.key(name));
            let read = fs::read_to_string(certificate)
                .ok()
                .zip(fs::read_to_string(&key).ok());
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            read.is_some_and(|(certificate, pem)| {
                let identity = Identity {
                    certificate,
                    key: pem,
                };
                private(&key) && holds(&authority, &identity, &names, now)
            })
        })
    }

    /// The authority's certificate comes last: what a start that was broken off leaves behind does not hold.
    fn make(&self, wanted: &[(String, Vec<String>)]) -> anyhow::Result<()> {
        let authority = Authority::new("Signalbox, made by `signalbox up --secure`")?;
        for (name, names) in wanted {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let identity = authority.issue(&names)?;
            write(&self.certificate(name), &identity.certificate)?;
            write(&self.key(name), &identity.key)?;
        }
        write(&self.authority(), authority.pem())
    }
}

/// Writes a file that only its owner may read, in place of one that was there.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[&str]) -> Vec<(String, Vec<String>)> {
        let names = names.iter().map(ToString::to_string).collect();
        vec![
            ("one".to_owned(), names),
            ("two".to_owned(), vec!["localhost".to_owned()]),
        ]
    }

    #[test]
    fn they_are_private_and_made_again_only_where_they_do_not_hold() {
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join("secure");
        let names = ["127.0.0.1", "urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64"];
        let open = |names: &[&str]| {
            let made = Certificates::open(folder.clone(), &wanted(names)).unwrap();
            fs::read_to_string(made.certificate("one")).unwrap()
        };
        let first = open(&names);
        for (path, mode) in [
            ("", 0o700),
            ("one.key", 0o600),
            ("one.crt", 0o600),
            ("authority.crt", 0o600),
        ] {
            let found = fs::metadata(folder.join(path)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{path}");
        }
        assert_eq!(open(&names), first, "what holds is used again");
        assert_eq!(open(&names[..1]), first, "more names than wanted do no harm");
        let second = open(&["127.0.0.2"]);
        assert_ne!(second, first, "other names want other certificates");
        fs::set_permissions(folder.join("two.key"), Permissions::from_mode(0o644)).unwrap();
        let third = open(&["127.0.0.2"]);
        assert_ne!(third, second, "a key that others could read is not used again");
        fs::write(folder.join("authority.crt"), "cut off").unwrap();
        assert_ne!(open(&["127.0.0.2"]), third);
    }
}
