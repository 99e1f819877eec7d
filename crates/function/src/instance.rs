//! The NF instance id of a function whose settings give it none: made at the first start and kept in a directory of the
//! function's own, so that no two installations have the same. With the same id, one would replace the other's
//! profile at the NRF, and their tokens and their `Via` could not be distinguished.

use std::path::Path;

use model::NfInstanceId;

use crate::error::StartError;
use crate::files::read_or_create;

/// Gives a function an NF instance id of its own, if its settings have none: that of a file in `directory`, which the
/// first start writes. Functions that keep their state in a database may share the directory, so the file has the
/// `name` of the function: `bsf-instance-id`.
///
/// # Errors
/// When the file can be neither read nor written, or has no UUID.
pub fn settle_instance(nf_instance_id: &mut String, directory: &Path, name: &str) -> Result<(), StartError> {
    if nf_instance_id.is_empty() {
        *nf_instance_id = own(directory, name).map_err(StartError::Config)?;
    }
    Ok(())
}

fn own(directory: &Path, name: &str) -> Result<String, String> {
    let path = match name {
        // Made before other functions had one.
        "nrf" => directory.join("nf-instance-id"),
        name => directory.join(format!("{name}-instance-id")),
    };
    let text = read_or_create(&path, || Ok(uuid::Uuid::new_v4().to_string().into_bytes()))
        .map_err(|error| format!("{error}; make the directory writable, or set nfInstanceId"))?;
    let id = String::from_utf8_lossy(&text).trim().to_owned();
    match NfInstanceId::parse(&id) {
        Ok(_) => Ok(id),
        Err(_) => Err(format!(
            "{}: expected a UUID; remove the file to get a new NF instance id",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "scp-instance-id";

    #[test]
    fn each_installation_has_an_id_of_its_own() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settled = |directory: &Path| {
            let mut id = String::new();
            settle_instance(&mut id, &directory.join("store"), "scp").unwrap();
            id
        };
        let first = settled(one.path());
        assert_eq!(settled(one.path()), first, "kept for the next start");
        assert_ne!(settled(other.path()), first);
        let mut beside = String::new();
        settle_instance(&mut beside, &one.path().join("store"), "bsf").unwrap();
        assert_ne!(beside, first, "another function in the same directory");
        std::fs::write(one.path().join("store").join(FILE), "x").unwrap();
        assert!(own(&one.path().join("store"), "scp").is_err());
        let mut named = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64".to_owned();
        settle_instance(&mut named, one.path(), "scp").unwrap();
        assert_eq!(named, "4947a69a-f61b-4bc1-b9da-47c9c5d14b64");
        assert!(!one.path().join(FILE).exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = settle_instance(&mut String::new(), &file.join("scp"), "scp")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/file/scp") && error.contains("set nfInstanceId"),
            "{error}"
        );
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
                        own(folder.path(), "nrf").unwrap()
                    })
                });
                each.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(ids.len(), 1, "{ids:?}");
            assert_eq!(ids.first(), own(folder.path(), "nrf").ok().as_ref());
            let files = std::fs::read_dir(folder.path()).unwrap();
            assert_eq!(files.count(), 2, "the id, and what was left of the crash");
        }
    }
}
