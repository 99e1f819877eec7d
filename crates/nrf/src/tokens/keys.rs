//! The keys that sign tokens: configured ones, or one that the NRF generates and rotates.
//!
//! After a rotation the previous key still verifies until the last token that it signed has expired, so that a
//! rotation invalidates no token.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use function::files::{fault, read, read_or_create};
use sbi::oauth::SigningKey;
use serde_json::Value;

/// The key that signs, and the public keys that verify.
pub(super) struct Ring {
    pub(super) signer: SigningKey,
    pub(super) jwks: Vec<Value>,
}

/// File of the generated key.
const CURRENT: &str = "token-key.der";
/// The one before it.
const PREVIOUS: &str = "token-key.previous.der";

/// Reads keys from PEM files; the first signs.
pub(super) fn configured(files: &[PathBuf]) -> Result<Ring, String> {
    let mut jwks = Vec::new();
    let mut signer = None;
    for path in files {
        let shown = path.display();
        let pem = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
        let id = key_id(&pem);
        let key = SigningKey::from_pem(&id, &pem).map_err(|error| format!("{shown}: {error}"))?;
        jwks.push(key.jwk().clone());
        signer.get_or_insert(key);
    }
    let signer = signer.ok_or("no signing key is configured")?;
    Ok(Ring { signer, jwks })
}

/// Reads the key in `directory`; generates one if there is none or it is older than `rotate_every` (0: never).
pub(super) fn own(directory: &Path, rotate_every: Duration, now: SystemTime) -> Result<Ring, String> {
    let (current, previous) = (directory.join(CURRENT), directory.join(PREVIOUS));
    if is_due(directory, rotate_every, now) {
        fs::rename(&current, &previous).map_err(fault(&current))?;
    }
    let der = read_or_create(&current, || {
        let (_, der) = SigningKey::generate("new").map_err(|error| error.to_string())?;
        Ok(der)
    })?;
    let jwk = |der: &[u8], path: &Path| {
        SigningKey::ec_jwk(&key_id(der), der).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut jwks = vec![jwk(&der, &current)?];
    if let Some(before) = read(&previous)? {
        jwks.push(jwk(&before, &previous)?);
    }
    let signer = SigningKey::from_ec_der(&key_id(&der), &der);
    Ok(Ring { signer, jwks })
}

/// Whether the generated key is due for rotation.
pub(crate) fn is_due(directory: &Path, rotate_every: Duration, now: SystemTime) -> bool {
    let made = fs::metadata(directory.join(CURRENT)).and_then(|file| file.modified());
    let age = made.ok().and_then(|made| now.duration_since(made).ok());
    !rotate_every.is_zero() && age.is_some_and(|age| age >= rotate_every)
}

fn key_id(key: &[u8]) -> String {
    format!("{:016x}", registry::fingerprint(&[key]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_may_read_the_key() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/b");
        own(&directory, Duration::ZERO, SystemTime::now()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join(CURRENT))), (0o700, 0o600));
    }

    #[test]
    fn an_old_key_is_followed_and_still_verifies() {
        let folder = tempfile::tempdir().unwrap();
        let (day, now) = (Duration::from_secs(86_400), SystemTime::now());
        let kids =
            |ring: &Ring| -> Vec<String> { ring.jwks.iter().map(|jwk| jwk["kid"].to_string()).collect() };
        let first = kids(&own(folder.path(), day, now).unwrap());
        assert_eq!(first.len(), 1);
        assert_eq!(
            kids(&own(folder.path(), day, now).unwrap()),
            first,
            "kept for the next start"
        );
        let second = kids(&own(folder.path(), day, now + day + day).unwrap());
        assert_eq!(second.len(), 2);
        assert_eq!(second[1], first[0]);
        assert_ne!(second[0], first[0]);
        assert_eq!(
            kids(&own(folder.path(), Duration::ZERO, now + day + day).unwrap()),
            second,
            "0: never"
        );
    }
}
