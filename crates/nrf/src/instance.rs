//! The NF instance id of this NRF where the settings give it none: made at the first start, kept beside the store, so that
//! no two installations have the same (their tokens and their `Via` could not be distinguished).

use std::path::Path;

use model::NfInstanceId;

use crate::config::Config;
use crate::files::read_or_create;

/// The file in the directory of the store.
const FILE: &str = "nf-instance-id";

/// Gives the NRF its own NF instance id, if the settings have none.
///
/// # Errors
/// When the file cannot be read or written, or has no UUID.
pub fn settle_instance(config: &mut Config) -> Result<(), String> {
    if config.nf_instance_id.is_empty() {
        config.nf_instance_id = own(&config.store.embedded.directory)?;
    }
    Ok(())
}

fn own(directory: &Path) -> Result<String, String> {
    let path = directory.join(FILE);
    let text = read_or_create(&path, || Ok(uuid::Uuid::new_v4().to_string().into_bytes()))?;
    let id = String::from_utf8_lossy(&text).trim().to_owned();
    match NfInstanceId::parse(&id) {
        Ok(_) => Ok(id),
        Err(_) => Err(format!(
            "{}: expected a UUID; without the file another NF instance id is made",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_installation_has_an_id_of_its_own() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settled = |directory: &Path| {
            let mut config = Config::default();
            config.store.embedded.directory = directory.join("store");
            settle_instance(&mut config).unwrap();
            config.nf_instance_id
        };
        let first = settled(one.path());
        assert_eq!(settled(one.path()), first, "kept for the next start");
        assert_ne!(settled(other.path()), first);
        std::fs::write(one.path().join("store").join(FILE), "x").unwrap();
        assert!(own(&one.path().join("store")).is_err());
        let mut named = Config {
            nf_instance_id: "4947a69a-f61b-4bc1-b9da-47c9c5d14b64".into(),
            ..Config::default()
        };
        settle_instance(&mut named).unwrap();
        assert_eq!(named.nf_instance_id, "4947a69a-f61b-4bc1-b9da-47c9c5d14b64");
    }

    /// Threads stand for processes that start at the same moment in one directory, in which a crash has left a file that is
    /// not written yet.
    #[test]
    fn starts_at_the_same_moment_have_one_id() {
        const THREADS: usize = 8;
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let left = folder.path().join(".4947a69a-f61b-4bc1-b9da-47c9c5d14b64.new");
            std::fs::write(&left, "").unwrap();
            let start = std::sync::Barrier::new(THREADS);
            let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
                let each = [(); THREADS].map(|()| {
                    scope.spawn(|| {
                        start.wait();
                        own(folder.path()).unwrap()
                    })
                });
                each.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(ids.len(), 1, "{ids:?}");
            assert_eq!(ids.first(), own(folder.path()).ok().as_ref());
            let files = std::fs::read_dir(folder.path()).unwrap();
            assert_eq!(files.count(), 2, "the id, and what was left of the crash");
        }
    }
}
