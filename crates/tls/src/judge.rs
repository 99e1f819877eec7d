//! What is wrong with TLS files, in words that name the file to mend: certificates and keys are made by hand, and each way
//! to make them has its mistakes.

use std::path::Path;

use rustls_pki_types::CertificateDer;
use time::OffsetDateTime;

use crate::expiry::not_after;
use crate::files::{TlsError, TlsFiles};
use crate::material::{Material, Pem};
use crate::pair::{Flaw, flaw};

impl TlsFiles {
    /// Reads all files, and says everything that is wrong with them.
    #[must_use]
    pub fn flaws(&self, now: OffsetDateTime) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        let alone = |part: &'static str| {
            let mut files = Self::default();
            match part {
                "certificate" => files.certificate.clone_from(&self.certificate),
                "key" => files.key.clone_from(&self.key),
                _ => files.authorities.clone_from(&self.authorities),
            }
            Material::read(&files)
        };
        let mut read = |part: &'static str, expected: &'static str| match alone(part) {
            Ok(material) => Some(material),
            Err(error) => {
                flaws.push(Flaw {
                    part,
                    what: error.to_string(),
                    expected,
                });
                None
            }
        };
        let certificate =
            read("certificate", "a readable PEM file").and_then(|material| material.certificate);
        let key = read("key", "a readable PEM file").and_then(|material| material.key);
        let authorities =
            read("authorities", "a readable PEM file").and_then(|material| material.authorities);
        let is_absent = |path: &Path| path.as_os_str().is_empty();
        if is_absent(&self.certificate) != is_absent(&self.key) {
            flaws.push(Flaw {
                part: if is_absent(&self.key) {
                    "key"
                } else {
                    "certificate"
                },
                what: "a certificate and its key go together, and one is missing".to_owned(),
                expected: "both, or neither",
            });
        }
        let mut usable = |part: &'static str, error: TlsError| {
            flaws.push(Flaw {
                part,
                what: error.to_string(),
                expected: "PEM of the right kind",
            });
        };
        let chain = certificate.as_ref().map(|pem| (pem, pem.certificates()));
        let key = key.as_ref().map(|pem| (pem, pem.private_key()));
        if let Some(Err(error)) = authorities.as_ref().map(Pem::roots) {
            usable("authorities", error);
        }
        match (chain, key) {
            (Some((certificate, Ok(chain))), Some((pem, Ok(key)))) => {
                flaws.extend(flaw((&certificate.name, &chain), (&pem.name, &key)));
                flaws.extend(expired(certificate, &chain, now));
            }
            (chain, key) => {
                if let Some((_, Err(error))) = chain {
                    usable("certificate", error);
                }
                if let Some((_, Err(error))) = key {
                    usable("key", error);
                }
            }
        }
        if self.require_client_certificate == Some(true) && self.authorities.is_none() {
            flaws.push(Flaw {
                part: "authorities",
                what: "client certificates are required, and no authorities are named to check them by"
                    .to_owned(),
                expected: "a PEM file with the authorities",
            });
        }
        flaws
    }
}

fn expired(certificate: &Pem, chain: &[CertificateDer<'static>], now: OffsetDateTime) -> Option<Flaw> {
    let (number, ended) = chain.iter().enumerate().find_map(|(at, certificate)| {
        not_after(certificate)
            .filter(|end| *end < now)
            .map(|end| (at + 1, end))
    })?;
    let which = match chain.len() {
        1 => String::new(),
        _ => format!(", certificate number {number}"),
    };
    Some(Flaw {
        part: "certificate",
        what: format!("{}{which}: expired at {ended}", certificate.name.display()),
        expected: "a certificate that is valid",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use std::fs;
    use std::path::PathBuf;

    fn words(files: &TlsFiles) -> String {
        let flaws = files.flaws(OffsetDateTime::now_utc());
        flaws
            .iter()
            .map(|flaw| format!("{}: {}\n", flaw.part, flaw.what))
            .collect()
    }

    #[test]
    fn each_mistake_of_files_names_the_file_and_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("a").unwrap();
        let write = |name: &str| {
            let identity = authority.issue(&["localhost"]).unwrap();
            authority.write(&identity, folder.path(), name).unwrap()
        };
        let (one, other) = (write("one"), write("other"));
        assert_eq!(words(&one), "");
        let alone = TlsFiles {
            key: PathBuf::new(),
            ..one.clone()
        };
        assert_eq!(
            words(&alone),
            "key: a certificate and its key go together, and one is missing\n"
        );
        let file = |name: &str, bytes: &[u8]| -> PathBuf {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let (certificate, key) = (fs::read(&one.certificate).unwrap(), fs::read(&one.key).unwrap());
        let trust = fs::read(one.authorities.as_ref().unwrap()).unwrap();
        let with = |certificate: &PathBuf, key: &PathBuf| TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            ..one.clone()
        };
        let turned = [&trust[..], &certificate[..]].concat();
        let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (files, part, words_of) in [
            (
                with(&one.certificate, &other.key),
                "certificate: ",
                "do not belong together",
            ),
            (
                with(&file("turned.crt", &turned), &one.key),
                "certificate: ",
                "is number 2",
            ),
            (with(&one.key, &one.certificate), "certificate: ", "swapped?"),
            (
                with(&one.certificate, &file("enc.key", encrypted)),
                "key: ",
                "is encrypted",
            ),
            (
                with(&one.certificate, &file("der.key", &[0x30, 0x82, 1, 2])),
                "key: ",
                "-inform der",
            ),
            (
                with(&one.certificate, &file("none.key", b"")),
                "key: ",
                "a private key",
            ),
            (
                with(&folder.path().join("gone.crt"), &one.key),
                "certificate: ",
                "gone.crt",
            ),
        ] {
            let said = words(&files);
            assert!(said.contains(part) && said.contains(words_of), "{said}");
            assert!(said.contains(&folder.path().display().to_string()), "{said}");
        }
        // A start says the same.
        let mismatch = Material::read(&with(&one.certificate, &other.key)).unwrap();
        let said = mismatch.server(crate::HTTP2).unwrap_err().to_string();
        for path in [&one.certificate, &other.key] {
            assert!(said.contains(&path.display().to_string()), "{said}");
        }
        // All of it at once.
        let all = TlsFiles {
            authorities: Some(file("authorities.pem", &key)),
            ..with(&folder.path().join("gone.crt"), &folder.path().join("gone.key"))
        };
        assert_eq!(words(&all).lines().count(), 3);
        let later = OffsetDateTime::now_utc() + time::Duration::days(100 * 365);
        assert!(
            one.flaws(later)
                .iter()
                .any(|flaw| flaw.what.contains("expired at"))
        );
        let lonely = TlsFiles {
            authorities: None,
            require_client_certificate: Some(true),
            ..one.clone()
        };
        assert!(words(&lonely).contains("no authorities are named"));
    }
}
