//! The NF instance that the certificates of a function name (TS 33.310 §6.1.3c.3). By it an NRF, an SCP or a producer
//! knows the function, so it registers as no other.

use ::sbi::tls::{TlsFiles, instance_in};

use crate::error::StartError;

/// Takes the NF instance id of a function from its certificates, where its settings have none.
///
/// # Errors
/// When its settings and its certificates, or its certificates among themselves, name different ones.
pub fn certify_instance(
    nf_instance_id: &mut String,
    tls: Option<&TlsFiles>,
    client_tls: Option<&TlsFiles>,
) -> Result<(), StartError> {
    match contradiction(nf_instance_id, tls, client_tls) {
        Some(wrong) => Err(StartError::Config(wrong)),
        None => {
            let named = [client_tls, tls].into_iter().flatten().find_map(instance_in);
            if let Some(named) = named.filter(|_| nf_instance_id.is_empty()) {
                *nf_instance_id = named;
            }
            Ok(())
        }
    }
}

/// What contradicts: the id of the settings, if they have one, and those of the certificates. Files that cannot be read
/// name none.
#[must_use]
pub fn contradiction(
    nf_instance_id: &str,
    tls: Option<&TlsFiles>,
    client_tls: Option<&TlsFiles>,
) -> Option<String> {
    let named = |key, files: Option<&TlsFiles>| Some((key, instance_in(files?)?));
    let (mut known, mut id) = ("nfInstanceId", nf_instance_id.to_ascii_lowercase());
    for (key, other) in [
        named("clientTls.certificate", client_tls),
        named("tls.certificate", tls),
    ]
    .into_iter()
    .flatten()
    {
        if id.is_empty() {
            (known, id) = (key, other);
        } else if other != id {
            return Some(format!(
                "{known}: {id} is another NF instance than {other}, which the certificate of {key} names; others know \
                 this function by its certificate: use {other} or leave nfInstanceId out"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
    const OTHER: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b65";

    fn files(folder: &std::path::Path, id: &str) -> TlsFiles {
        let authority = tls::authority::Authority::new("test").unwrap();
        let issued = authority.issue(&["nf.test", &format!("urn:uuid:{id}")]).unwrap();
        let certificate = folder.join(format!("{id}.pem"));
        std::fs::write(&certificate, issued.certificate).unwrap();
        TlsFiles {
            certificate,
            ..TlsFiles::default()
        }
    }

    #[test]
    fn the_certificate_names_the_instance() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (files(folder.path(), ID), files(folder.path(), OTHER));
        let settled = |id: &str, tls, client| {
            let mut id = id.to_owned();
            certify_instance(&mut id, tls, client)
                .map(|()| id)
                .map_err(|error| error.to_string())
        };
        assert_eq!(settled("", None, Some(&one)).unwrap(), ID);
        assert_eq!(settled("", Some(&one), None).unwrap(), ID);
        assert_eq!(
            settled(&ID.to_ascii_uppercase(), Some(&one), Some(&one))
                .unwrap()
                .to_lowercase(),
            ID
        );
        assert_eq!(settled("", None, None).unwrap(), "");
        for wrong in [
            settled(OTHER, None, Some(&one)),
            settled("", Some(&other), Some(&one)),
        ] {
            let wrong = wrong.unwrap_err();
            assert!(wrong.contains(ID) && wrong.contains(OTHER), "{wrong}");
        }
        let absent = TlsFiles {
            certificate: folder.path().join("absent.pem"),
            ..TlsFiles::default()
        };
        assert_eq!(settled(ID, Some(&absent), None).unwrap(), ID);
    }
}
