//! Client credentials assertions: who a consumer is, signed by itself (TS 33.501 §13.3.8).

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ahash::AHashMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use serde::Deserialize;

use crate::config::Assertions as Settings;

/// What assertions are checked by: read once, shared by the workers.
#[derive(Clone)]
pub(crate) struct Authorities {
    keys: Vec<(String, Algorithm, DecodingKey)>,
    anchors: Vec<TrustAnchor<'static>>,
}

impl std::fmt::Debug for Authorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Authorities({} keys, {} anchors)",
            self.keys.len(),
            self.anchors.len()
        )
    }
}

/// The claims of an assertion (TS 29.500 §5.2.3.2.11, TS 33.501 §13.3.8.2).
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Claims {
    /// NF instance id of the consumer.
    pub(crate) sub: String,
    iat: u64,
    exp: u64,
    aud: Audience,
}

/// NF types the assertion is for.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Checks assertions; one per worker.
pub(crate) struct Assertions {
    settings: Settings,
    authorities: Arc<Authorities>,
    /// Those whose signature held, with their claims.
    known: RefCell<AHashMap<Box<str>, Rc<Claims>>>,
}

/// Why an assertion is refused, as told to its sender.
pub(crate) type Refused = &'static str;

impl Authorities {
    /// Reads keys and certificates.
    ///
    /// # Errors
    /// What cannot be read or used.
    pub(crate) fn read(settings: &Settings) -> Result<Self, String> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| format!("security.assertions: {}: {error}", path.display()))
        };
        let mut keys = Vec::new();
        for key in &settings.keys {
            let pem = read(&key.file)?;
            let found = match CertificateDer::from_pem_slice(&pem) {
                Ok(certificate) => of_certificate(&certificate),
                Err(_) => of_pem(&pem),
            };
            let (algorithm, decoding) = found.ok_or_else(|| {
                format!(
                    "security.assertions: {}: expected a public key or certificate in PEM, EC P-256 or RSA",
                    key.file.display()
                )
            })?;
            keys.push((key.id.clone(), algorithm, decoding));
        }
        let mut anchors = Vec::new();
        if let Some(path) = &settings.authorities {
            let pem = read(path)?;
            let unusable = || {
                format!(
                    "security.assertions: {}: expected certificates in PEM",
                    path.display()
                )
            };
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|_| unusable())?;
                let anchor = webpki::anchor_from_trusted_cert(&certificate).map_err(|_| unusable())?;
                anchors.push(anchor.to_owned());
            }
            if anchors.is_empty() {
                return Err(unusable());
            }
        }
        Ok(Self { keys, anchors })
    }

    /// The key that has signed an assertion, and the certificate it came with if it did.
    fn key_of(
        &self,
        header: &jsonwebtoken::Header,
        now: Duration,
    ) -> Result<(Algorithm, DecodingKey, Option<CertificateDer<'static>>), Refused> {
        if let Some(chain) = header.x5c.as_ref().filter(|_| !self.anchors.is_empty()) {
            let chain: Option<Vec<CertificateDer<'static>>> = chain
                .iter()
                .take(8)
                .map(|text| STANDARD.decode(text).ok().map(CertificateDer::from))
                .collect();
            let chain = chain.ok_or("`x5c` holds what is no certificate")?;
            let (leaf, between) = chain.split_first().ok_or("`x5c` is empty")?;
            self.is_trusted(leaf, between, now)?;
            let (algorithm, key) =
                of_certificate(leaf).ok_or("the certificate's key is not EC P-256 or RSA")?;
            return Ok((algorithm, key, Some(leaf.clone())));
        }
        let found = match &header.kid {
            Some(kid) => self.keys.iter().find(|(id, _, _)| id == kid),
            None => Some(&self.keys)
                .filter(|keys| keys.len() == 1)
                .and_then(|keys| keys.first()),
        };
        let (_, algorithm, key) = found.ok_or("it is signed with a key that is not known")?;
        Ok((*algorithm, key.clone(), None))
    }

    fn is_trusted(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: Duration,
    ) -> Result<(), Refused> {
        let parsed =
            webpki::EndEntityCert::try_from(leaf).map_err(|_| "`x5c` holds what is no certificate")?;
        let algorithms = rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .all;
        let verified = parsed.verify_for_usage(
            algorithms,
            &self.anchors,
            between,
            UnixTime::since_unix_epoch(now),
            // NF certificates are made for both ends of TLS (TS 33.310 §6.1.3c).
            webpki::KeyUsage::client_auth(),
            None,
            None,
        );
        verified.map(drop).map_err(|_| "its certificate is not trusted")
    }
}

impl Assertions {
    pub(crate) fn new(settings: &Settings, authorities: Arc<Authorities>) -> Self {
        Self {
            settings: settings.clone(),
            authorities,
            known: RefCell::default(),
        }
    }

    /// Checks an assertion at `now`, the time since 1970.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn check(&self, text: &str, now: Duration) -> Result<Rc<Claims>, Refused> {
        let text = text.trim();
        let known = self.known.borrow().get(text).cloned();
        let claims = match known {
            Some(claims) => claims,
            None => {
                let claims = Rc::new(self.verify(text, now)?);
                self.remember(text, &claims, now);
                claims
            }
        };
        let skew = self.settings.clock_skew.as_secs();
        match now.as_secs() > claims.exp.saturating_add(skew) {
            true => Err("it has expired"),
            false => Ok(claims),
        }
    }

    fn verify(&self, text: &str, now: Duration) -> Result<Claims, Refused> {
        let header = jsonwebtoken::decode_header(text).map_err(|_| "it is not a signed JWT")?;
        let (algorithm, key, certificate) = self.authorities.key_of(&header, now)?;
        // The key decides the algorithm; what the assertion claims about itself does not count.
        let mut validation = Validation::new(algorithm);
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let decoded = jsonwebtoken::decode::<Claims>(text, &key, &validation)
            .map_err(|_| "its signature or its claims are not valid")?;
        let claims = decoded.claims;
        if let Some(certificate) = &certificate
            && !is_of(certificate, &claims.sub)
        {
            return Err("its certificate is not that of the NF instance in `sub`");
        }
        let skew = self.settings.clock_skew.as_secs();
        if claims.iat > now.as_secs().saturating_add(skew) {
            return Err("it was issued in the future");
        }
        if claims.exp.saturating_sub(claims.iat) > self.settings.max_validity.as_secs() {
            return Err("it holds for longer than is accepted");
        }
        let audiences = match &claims.aud {
            Audience::One(one) => std::slice::from_ref(one),
            Audience::Several(several) => several,
        };
        let wanted = &self.settings.audiences;
        let for_us = wanted.is_empty() || audiences.iter().any(|one| wanted.contains(one));
        match for_us {
            true => Ok(claims),
            false => Err("it is for another audience"),
        }
    }

    fn remember(&self, text: &str, claims: &Rc<Claims>, now: Duration) {
        let mut known = self.known.borrow_mut();
        if known.len() >= self.settings.remembered {
            known.retain(|_, claims| claims.exp > now.as_secs());
        }
        if known.len() < self.settings.remembered {
            known.insert(text.into(), claims.clone());
        }
    }
}

/// The time since 1970.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Whether a certificate names an NF instance: `urn:uuid:…` (TS 33.310 §6.1.3c.3).
fn is_of(certificate: &CertificateDer<'_>, instance: &str) -> bool {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
        return false;
    };
    let mut names = parsed.valid_uri_names();
    names.any(|name| {
        let id = name.strip_prefix("urn:uuid:").unwrap_or(name);
        id.eq_ignore_ascii_case(instance)
    })
}

fn of_certificate(certificate: &CertificateDer<'_>) -> Option<(Algorithm, DecodingKey)> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let key = parsed.subject_public_key_info();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(key.as_ref())
    );
    of_pem(pem.as_bytes())
}

fn of_pem(pem: &[u8]) -> Option<(Algorithm, DecodingKey)> {
    DecodingKey::from_ec_pem(pem)
        .map(|key| (Algorithm::ES256, key))
        .or_else(|_| DecodingKey::from_rsa_pem(pem).map(|key| (Algorithm::RS256, key)))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AssertionKey;
    use jsonwebtoken::{EncodingKey, Header};
    use rcgen::{
        BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
    };
    use serde_json::{Value, json};

    const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
    const NOW: Duration = Duration::from_secs(1_800_000_000);

    struct Consumer {
        key: KeyPair,
        certificate: CertificateDer<'static>,
    }

    /// An authority's PEM and a consumer that it vouches for.
    fn consumer(id: &str) -> (String, Consumer) {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["amf.test".to_owned()]).unwrap();
        let uri = format!("urn:uuid:{id}").try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
        (authority_pem, Consumer { key, certificate })
    }

    fn claims() -> Value {
        json!({"sub": ID, "iat": NOW.as_secs(), "exp": NOW.as_secs() + 300, "aud": ["NRF", "SCP"]})
    }

    fn sign(consumer: &Consumer, claims: &Value, chain: bool) -> String {
        let mut header = Header::new(Algorithm::ES256);
        match chain {
            true => header.x5c = Some(vec![STANDARD.encode(&consumer.certificate)]),
            false => header.kid = Some("amf".to_owned()),
        }
        let key = EncodingKey::from_ec_der(consumer.key.serialized_der());
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }

    fn checker(settings: Settings) -> Assertions {
        let authorities = Authorities::read(&settings).unwrap();
        Assertions::new(&settings, Arc::new(authorities))
    }

    #[test]
    fn by_a_chain_to_an_authority() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let (authority, amf) = consumer(ID);
        std::fs::write(&path, &authority).unwrap();
        let checker = checker(Settings {
            authorities: Some(path),
            ..Settings::default()
        });
        let refused = |text: &str, now| checker.check(text, now).unwrap_err();
        let good = sign(&amf, &claims(), true);
        assert_eq!(checker.check(&good, NOW).unwrap().sub, ID);
        assert_eq!(refused(&good, NOW + Duration::from_secs(306)), "it has expired");
        assert_eq!(checker.known.borrow().len(), 1);

        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            sign(&amf, &claims, true)
        };
        assert_eq!(
            refused(&with("aud", json!("UDM")), NOW),
            "it is for another audience"
        );
        assert_eq!(
            refused(&with("sub", json!("other")), NOW),
            "its certificate is not that of the NF instance in `sub`"
        );
        assert_eq!(
            refused(&with("iat", json!(NOW.as_secs() + 60)), NOW),
            "it was issued in the future"
        );
        assert_eq!(
            refused(&with("exp", json!(NOW.as_secs() + 9_999)), NOW),
            "it holds for longer than is accepted"
        );
        let (_, stranger) = consumer(ID);
        assert_eq!(
            refused(&sign(&stranger, &claims(), true), NOW),
            "its certificate is not trusted"
        );
        let forged = Consumer {
            key: stranger.key,
            certificate: amf.certificate.clone(),
        };
        assert_eq!(
            refused(&sign(&forged, &claims(), true), NOW),
            "its signature or its claims are not valid"
        );
        for garbage in ["", "a.b.c", "eyJhbGciOiJub25lIn0.e30."] {
            checker.check(garbage, NOW).unwrap_err();
        }
        assert_eq!(checker.known.borrow().len(), 1, "only good ones are remembered");
    }

    #[test]
    fn by_a_key_that_is_configured() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("amf.pem");
        let (_, amf) = consumer(ID);
        std::fs::write(&path, amf.key.public_key_pem()).unwrap();
        let key = AssertionKey {
            id: "amf".to_owned(),
            file: path,
        };
        let checker = checker(Settings {
            keys: vec![key],
            ..Settings::default()
        });
        checker.check(&sign(&amf, &claims(), false), NOW).unwrap();
        let (_, stranger) = consumer(ID);
        assert!(checker.check(&sign(&stranger, &claims(), false), NOW).is_err());
        assert!(
            checker.check(&sign(&stranger, &claims(), true), NOW).is_err(),
            "no authority is trusted"
        );
    }

    #[test]
    fn files_that_cannot_be_used_are_told_at_the_start() {
        let settings = Settings {
            authorities: Some("/nowhere/ca.pem".into()),
            ..Settings::default()
        };
        assert!(
            Authorities::read(&settings)
                .unwrap_err()
                .contains("/nowhere/ca.pem")
        );
    }
}
