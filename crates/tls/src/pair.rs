//! Whether a certificate, its chain and a private key serve together.

use std::path::Path;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::expiry::names;

/// Something that is wrong with one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The setting below those of the files: `certificate`, `key`, `authorities`.
    pub part: &'static str,
    /// What is wrong, with the names of the files.
    pub what: String,
    /// What would be right.
    pub expected: &'static str,
}

/// The first thing that keeps certificate and key from serving together.
pub(crate) fn flaw(
    (certificate, chain): (&Path, &[CertificateDer<'static>]),
    (key, private): (&Path, &PrivateKeyDer<'static>),
) -> Option<Flaw> {
    let (file, key_file) = (certificate.display(), key.display());
    let Ok(signing) = any_supported_type(private) else {
        return Some(Flaw {
            part: "key",
            what: format!("{key_file}: a private key of this kind or size is not supported"),
            expected: "RSA of 2048 bits and more, ECDSA with P-256 or P-384, or Ed25519",
        });
    };
    let is_of = |certificate: &CertificateDer<'static>| {
        let pair = CertifiedKey::new(vec![certificate.clone()], signing.clone());
        // Keys that cannot say whether they fit are judged by the first handshake.
        !matches!(
            pair.keys_match(),
            Err(rustls::Error::InconsistentKeys(
                rustls::InconsistentKeys::KeyMismatch
            ))
        )
    };
    let (first, rest) = chain.split_first()?;
    if !is_of(first) {
        let what = match rest.iter().position(is_of) {
            Some(at) => format!(
                "{file}: its certificates are in the wrong order: that of the key in {key_file} is number {}",
                at + 2
            ),
            None => format!(
                "{file} and {key_file} do not belong together: the key is not that of the certificate"
            ),
        };
        return Some(Flaw {
            part: "certificate",
            what,
            expected: "the own certificate first, then those that signed it, each by the next; and its private key",
        });
    }
    out_of_order(chain).map(|number| Flaw {
        part: "certificate",
        what: format!(
            "{file}: its certificates are in the wrong order: number {number} did not sign the one before"
        ),
        expected: "the own certificate first, then those that signed it, each by the next",
    })
}

/// The number of the first certificate that is not the issuer of the one before it, although another of the chain is.
fn out_of_order(chain: &[CertificateDer<'static>]) -> Option<usize> {
    let names: Option<Vec<_>> = chain.iter().map(|certificate| names(certificate)).collect();
    let names = names?;
    let wrong = names.windows(2).position(|pair| match pair {
        [(issuer, _), (_, next)] => issuer != next && names.iter().any(|(_, subject)| subject == issuer),
        _ => false,
    });
    // What a self-signed certificate ends needs nothing after it.
    wrong
        .filter(|at| names.get(*at).is_some_and(|(issuer, subject)| issuer != subject))
        .map(|at| at + 2)
}
