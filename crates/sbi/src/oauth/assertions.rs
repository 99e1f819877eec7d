//! Client credentials assertions: who a consumer is, signed by itself (TS 33.501 §13.3.8).
//!
//! A signature counts for the NF instance whose key it is and for no other: the key in a certificate (`x5c`) is that of
//! the instance the certificate names, and a configured key is bound to the instances that the configuration lists.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ahash::AHashMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use sbi_proto::Fields;
use sbi_proto::headers::names;
use sbi_proto::problem::{Cause, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

use super::jws::{self, Unusable};
use crate::tls::instance_of;

/// Handling of `3gpp-Sbi-Client-Credentials`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AssertionMode {
    /// Nothing; it is passed on.
    #[default]
    Ignore,
    /// One that is there must be valid.
    Check,
    /// There must be one, and it must be valid.
    Require,
}

/// A key that NF instances sign assertions with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AssertionKey {
    /// `kid` of the assertions it signs.
    pub id: String,
    /// Public key or certificate in PEM: EC P-256 or RSA.
    pub file: PathBuf,
    /// The NF instances whose key it is: `sub` of what it signs must be one of them.
    pub instances: Vec<String>,
}

/// Client credentials assertions (TS 33.501 §13.3.8, TS 29.500 §6.7.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AssertionSettings {
    /// What is made of them.
    pub mode: AssertionMode,
    /// Keys by `kid`, each bound to the NF instances that sign with it.
    pub keys: Vec<AssertionKey>,
    /// PEM file of authorities: the certificate in an assertion (`x5c`) must be signed by one of them and be
    /// that of the NF instance (TS 33.310 §6.1.3c.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// NF types of which one must be in the audience; absent: the type of this function; empty: any audience
    /// will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audiences: Option<Vec<String>>,
    /// The longest time from `iat` to `exp` that is accepted.
    pub max_validity: Period,
    /// By how much clocks may differ.
    pub clock_skew: Period,
    /// Verified assertions that a worker caches.
    pub remembered: usize,
}

impl Default for AssertionSettings {
    fn default() -> Self {
        Self {
            mode: AssertionMode::default(),
            keys: Vec::new(),
            authorities: None,
            audiences: None,
            max_validity: Period::from_secs(3_600),
            clock_skew: Period::from_secs(5),
            remembered: 10_000,
        }
    }
}

impl Validate for AssertionSettings {
    fn validate(&self, faults: &mut Faults) {
        if self.mode != AssertionMode::Ignore && self.keys.is_empty() && self.authorities.is_none() {
            // The whole section is at fault, not one of its keys.
            faults.at("mode").say(
                "is switched on without keys and authorities",
                "`keys`, `authorities`, or both",
            );
        }
        for (index, key) in self.keys.iter().enumerate() {
            if key.instances.is_empty() {
                faults
                    .at(format!("keys[{index}].instances"))
                    .say("is empty", "the NF instance ids whose key it is");
            }
        }
    }
}

/// The keys and authorities that verify assertions: read once, shared by the workers.
#[derive(Clone)]
pub struct AssertionAuthorities {
    keys: Vec<Key>,
    anchors: Vec<TrustAnchor<'static>>,
}

/// A configured key and its owner.
#[derive(Clone)]
struct Key {
    id: String,
    algorithm: Algorithm,
    decoding: DecodingKey,
    instances: Vec<String>,
}

/// The owner of the signing key.
enum Holder<'a> {
    Certificate(CertificateDer<'static>),
    Instances(&'a [String]),
}

impl Holder<'_> {
    /// Whether it is the signature of this NF instance.
    fn is(&self, instance: &str) -> bool {
        match self {
            Self::Certificate(certificate) => is_of(certificate, instance),
            Self::Instances(ids) => ids.iter().any(|id| id.eq_ignore_ascii_case(instance)),
        }
    }
}

impl std::fmt::Debug for AssertionAuthorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "AssertionAuthorities({} keys, {} anchors)",
            self.keys.len(),
            self.anchors.len()
        )
    }
}

/// The claims of an assertion (TS 29.500 §5.2.3.2.11, TS 33.501 §13.3.8.2).
#[derive(Clone, Debug, Deserialize)]
pub struct AssertionClaims {
    /// NF instance id of the consumer.
    pub sub: String,
    iat: u64,
    exp: u64,
    #[serde(default)]
    nbf: Option<u64>,
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
#[derive(Debug)]
pub struct Assertions {
    settings: AssertionSettings,
    /// NF types of which one must be in the audience; empty: any.
    audiences: Vec<String>,
    authorities: Arc<AssertionAuthorities>,
    /// Assertions whose signature was verified, with their claims.
    known: RefCell<AHashMap<Box<str>, Rc<AssertionClaims>>>,
}

/// Why an assertion is refused, as text for its sender.
pub type AssertionRefused = &'static str;

/// Why a request is refused for its assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssertionFault {
    /// It has none, and one is required.
    Missing,
    /// The one it has does not hold.
    Refused(AssertionRefused),
}

impl AssertionFault {
    /// The answer (TS 29.500 §6.7.5, table 5.2.7.2-1).
    #[must_use]
    pub fn problem(self) -> Problem {
        let why = match self {
            Self::Missing => "expected an assertion",
            Self::Refused(why) => why,
        };
        Problem::new(Cause::CcaVerificationFailure)
            .detail("the client credentials assertion is refused")
            .invalid_param("header 3gpp-Sbi-Client-Credentials", why)
    }
}

impl AssertionAuthorities {
    /// Reads keys and certificates.
    ///
    /// # Errors
    /// What cannot be read or used.
    pub fn read(settings: &AssertionSettings) -> Result<Self, String> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| format!("assertions: {}: {error}", path.display()))
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
                    "assertions: {}: expected a public key or certificate in PEM, EC P-256 or RSA",
                    key.file.display()
                )
            })?;
            keys.push(Key {
                id: key.id.clone(),
                algorithm,
                decoding,
                instances: key.instances.clone(),
            });
        }
        let mut anchors = Vec::new();
        if let Some(path) = &settings.authorities {
            let pem = read(path)?;
            let unusable = || format!("assertions: {}: expected certificates in PEM", path.display());
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

    /// The key that has signed an assertion, and its owner.
    fn key_of(
        &self,
        header: &jsonwebtoken::Header,
        now: Duration,
    ) -> Result<(Algorithm, DecodingKey, Holder<'_>), AssertionRefused> {
        if let Some(chain) = header.x5c.as_ref().filter(|_| !self.anchors.is_empty()) {
            let chain: Option<Vec<CertificateDer<'static>>> = chain
                .iter()
                .take(8)
                .map(|text| STANDARD.decode(text).ok().map(CertificateDer::from))
                .collect();
            let chain = chain.ok_or("`x5c` holds an invalid certificate")?;
            let (leaf, between) = chain.split_first().ok_or("`x5c` is empty")?;
            self.is_trusted(leaf, between, now)?;
            let (algorithm, key) =
                of_certificate(leaf).ok_or("the certificate's key is not EC P-256 or RSA")?;
            return Ok((algorithm, key, Holder::Certificate(leaf.clone())));
        }
        let found = match &header.kid {
            Some(kid) => self.keys.iter().find(|key| key.id == *kid),
            None => Some(&self.keys)
                .filter(|keys| keys.len() == 1)
                .and_then(|keys| keys.first()),
        };
        let key = found.ok_or("it is signed with a key that is not known")?;
        Ok((
            key.algorithm,
            key.decoding.clone(),
            Holder::Instances(&key.instances),
        ))
    }

    fn is_trusted(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: Duration,
    ) -> Result<(), AssertionRefused> {
        let parsed =
            webpki::EndEntityCert::try_from(leaf).map_err(|_| "`x5c` holds an invalid certificate")?;
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
    /// A checker of a function of this NF type.
    #[must_use]
    pub fn new(settings: &AssertionSettings, authorities: Arc<AssertionAuthorities>, nf_type: &str) -> Self {
        Self {
            audiences: settings
                .audiences
                .clone()
                .unwrap_or_else(|| vec![nf_type.to_owned()]),
            settings: settings.clone(),
            authorities,
            known: RefCell::default(),
        }
    }

    /// The claims of a request's assertion at `now`, the time since 1970; `None` where assertions are ignored, or there
    /// is none and none is required.
    ///
    /// # Errors
    /// Why the request is refused.
    pub fn of_request(
        &self,
        headers: &Fields,
        now: Duration,
    ) -> Result<Option<Rc<AssertionClaims>>, AssertionFault> {
        match (self.settings.mode, headers.get(names::CLIENT_CREDENTIALS)) {
            (AssertionMode::Ignore, _) | (AssertionMode::Check, None) => Ok(None),
            (AssertionMode::Require, None) => Err(AssertionFault::Missing),
            (_, Some(value)) => value
                .to_str()
                .map_err(|_| "it is not text")
                .and_then(|text| self.check(text, now))
                .map(Some)
                .map_err(AssertionFault::Refused),
        }
    }

    /// Whether the assertion of a request is checked, or missing: without either, [`Assertions::of_request`] returns
    /// none.
    #[must_use]
    pub fn concerns(&self, headers: &Fields) -> bool {
        match self.settings.mode {
            AssertionMode::Ignore => false,
            AssertionMode::Check => headers.contains(names::CLIENT_CREDENTIALS),
            AssertionMode::Require => true,
        }
    }

    /// Checks an assertion at `now`, the time since 1970.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check(&self, text: &str, now: Duration) -> Result<Rc<AssertionClaims>, AssertionRefused> {
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
        if now.as_secs() > claims.exp.saturating_add(skew) {
            return Err("it has expired");
        }
        match jws::lies_ahead(claims.nbf, now.as_secs(), skew) {
            true => Err("it is not to be accepted yet"),
            false => Ok(claims),
        }
    }

    fn verify(&self, text: &str, now: Duration) -> Result<AssertionClaims, AssertionRefused> {
        let header = jws::header(text).map_err(|why| match why {
            Unusable::NotSigned => "it is not a signed JWT",
            Unusable::Critical => "it has extensions that are not understood here",
        })?;
        let (algorithm, key, holder) = self.authorities.key_of(&header, now)?;
        // The key decides the algorithm; what the assertion claims about itself does not count.
        let mut validation = Validation::new(algorithm);
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let decoded = jsonwebtoken::decode::<AssertionClaims>(text, &key, &validation)
            .map_err(|_| "its signature or its claims are not valid")?;
        let claims = decoded.claims;
        if !holder.is(&claims.sub) {
            return Err(match holder {
                Holder::Certificate(_) => "its certificate is not that of the NF instance in `sub`",
                Holder::Instances(_) => "its key is not that of the NF instance in `sub`",
            });
        }
        let skew = self.settings.clock_skew.as_secs();
        if claims.iat > now.as_secs().saturating_add(skew) {
            return Err("it was issued in the future");
        }
        if claims.exp < claims.iat {
            return Err("it ends before it was issued");
        }
        if claims.exp.saturating_sub(claims.iat) > self.settings.max_validity.as_secs() {
            return Err("it holds for longer than is accepted");
        }
        let audiences = match &claims.aud {
            Audience::One(one) => std::slice::from_ref(one),
            Audience::Several(several) => several,
        };
        let wanted = &self.audiences;
        let for_us = wanted.is_empty() || audiences.iter().any(|one| wanted.contains(one));
        match for_us {
            true => Ok(claims),
            false => Err("it is for another audience"),
        }
    }

    fn remember(&self, text: &str, claims: &Rc<AssertionClaims>, now: Duration) {
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
#[must_use]
pub fn since_epoch() -> Duration {
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
    names.any(|name| instance_of(name).is_some_and(|id| id.eq_ignore_ascii_case(instance)))
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

    fn checker(settings: AssertionSettings) -> Assertions {
        let authorities = AssertionAuthorities::read(&settings).unwrap();
        Assertions::new(&settings, Arc::new(authorities), "SCP")
    }

    #[test]
    fn by_a_chain_to_an_authority() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let (authority, amf) = consumer(ID);
        std::fs::write(&path, &authority).unwrap();
        let checker = checker(AssertionSettings {
            authorities: Some(path),
            ..AssertionSettings::default()
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
            refused(&with("exp", json!(NOW.as_secs() - 3)), NOW),
            "it ends before it was issued"
        );
        assert_eq!(
            refused(&with("exp", json!(NOW.as_secs() + 9_999)), NOW),
            "it holds for longer than is accepted"
        );
        assert_eq!(
            refused(&with("nbf", json!(NOW.as_secs() + 60)), NOW),
            "it is not to be accepted yet"
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
        assert_eq!(
            checker.known.borrow().len(),
            2,
            "only assertions with a valid signature are cached"
        );
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
            instances: vec![ID.to_uppercase()],
        };
        let checker = checker(AssertionSettings {
            keys: vec![key],
            ..AssertionSettings::default()
        });
        checker.check(&sign(&amf, &claims(), false), NOW).unwrap();
        let mut other = claims();
        other["sub"] = json!("4947a69a-f61b-4bc1-b9da-47c9c5d14b65");
        assert_eq!(
            checker.check(&sign(&amf, &other, false), NOW).unwrap_err(),
            "its key is not that of the NF instance in `sub`",
            "the owner of one key does not sign for other instances"
        );
        let (_, stranger) = consumer(ID);
        assert!(checker.check(&sign(&stranger, &claims(), false), NOW).is_err());
        assert!(
            checker.check(&sign(&stranger, &claims(), true), NOW).is_err(),
            "no authority is trusted"
        );
    }

    #[test]
    fn invalid_files_are_reported_at_the_start() {
        let settings = AssertionSettings {
            authorities: Some("/nowhere/ca.pem".into()),
            ..AssertionSettings::default()
        };
        assert!(
            AssertionAuthorities::read(&settings)
                .unwrap_err()
                .contains("/nowhere/ca.pem")
        );
    }
}
