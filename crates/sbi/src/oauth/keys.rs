use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use ring::rsa::PublicKeyComponents;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::Serialize;
use serde_json::{Value, json};

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct KeyError {
    /// Which key: its id or where it came from.
    pub key: String,
    /// Why, and what would be right.
    pub reason: String,
}

/// Public keys of token issuers, by `kid`.
#[derive(Clone, Default)]
pub struct Keys {
    by_id: BTreeMap<String, (Algorithm, DecodingKey)>,
}

/// A private key that tokens are signed with.
pub struct SigningKey {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
    public: Value,
}

impl Keys {
    /// No keys: no token is accepted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a public key in PEM: EC P-256 (for ES256) or RSA (for RS256).
    ///
    /// # Errors
    /// When it is neither.
    pub fn add_pem(&mut self, id: &str, pem: &[u8]) -> Result<(), KeyError> {
        let found = DecodingKey::from_ec_pem(pem)
            .map(|key| (Algorithm::ES256, key))
            .or_else(|_| DecodingKey::from_rsa_pem(pem).map(|key| (Algorithm::RS256, key)));
        let found = found.map_err(|_| KeyError {
            key: id.to_owned(),
            reason: "expected a PEM public key, EC P-256 or RSA".to_owned(),
        })?;
        self.by_id.insert(id.to_owned(), found);
        Ok(())
    }

    /// Adds the keys of a JSON Web Key Set (RFC 7517); keys of other kinds, and keys without an id, are left
    /// out. Returns how many were added.
    ///
    /// # Errors
    /// When the text is not a key set.
    pub fn add_jwks(&mut self, text: &[u8]) -> Result<usize, KeyError> {
        let fault = |reason: String| KeyError {
            key: "JWKS".to_owned(),
            reason,
        };
        let set: JwkSet = serde_json::from_slice(text).map_err(|error| fault(error.to_string()))?;
        let mut added = 0;
        for key in &set.keys {
            let algorithm = match &key.algorithm {
                AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => Algorithm::ES256,
                AlgorithmParameters::RSA(_) => Algorithm::RS256,
                _ => continue,
            };
            if let (Some(id), Ok(decoding)) = (&key.common.key_id, DecodingKey::from_jwk(key)) {
                self.by_id.insert(id.clone(), (algorithm, decoding));
                added += 1;
            }
        }
        Ok(added)
    }

    /// The ids of the keys.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(String::as_str)
    }

    pub(super) fn get(&self, id: &str) -> Option<&(Algorithm, DecodingKey)> {
        self.by_id.get(id)
    }

    /// The only key there is; for tokens without a `kid`.
    pub(super) fn only(&self) -> Option<&(Algorithm, DecodingKey)> {
        let mut keys = self.by_id.values();
        keys.next().filter(|_| keys.next().is_none())
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl SigningKey {
    /// A private key in PEM (PKCS#8): EC P-256 (signs ES256) or RSA of at least 2048 bits (signs RS256).
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_pem(id: &str, pem: &[u8]) -> Result<Self, KeyError> {
        let fault = || KeyError {
            key: id.to_owned(),
            reason: "expected a PEM private key (PKCS#8, `BEGIN PRIVATE KEY`), EC P-256 or RSA".to_owned(),
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| fault())?;
        let der = der.secret_pkcs8_der();
        if let Ok(public) = Self::ec_jwk(id, der) {
            return Ok(Self {
                id: id.to_owned(),
                algorithm: Algorithm::ES256,
                key: EncodingKey::from_ec_der(der),
                public,
            });
        }
        let pair = ring::rsa::KeyPair::from_pkcs8(der).map_err(|_| fault())?;
        let parts = PublicKeyComponents::<Vec<u8>>::from(pair.public());
        let (n, e) = (URL_SAFE_NO_PAD.encode(parts.n), URL_SAFE_NO_PAD.encode(parts.e));
        Ok(Self {
            id: id.to_owned(),
            algorithm: Algorithm::RS256,
            key: EncodingKey::from_rsa_pem(pem).map_err(|_| fault())?,
            public: json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": n, "e": e}),
        })
    }

    /// Creates a new EC P-256 key; returns it and its PKCS#8 DER, which the caller stores.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate(id: &str) -> Result<(Self, Vec<u8>), KeyError> {
        let fault = |_| KeyError {
            key: id.to_owned(),
            reason: "the system has no randomness".to_owned(),
        };
        let random = ring::rand::SystemRandom::new();
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(fault)?;
        let der = document.as_ref();
        Ok((Self::from_ec_der(id, der), der.to_vec()))
    }

    /// A key that [`SigningKey::generate`] made.
    #[must_use]
    pub fn from_ec_der(id: &str, der: &[u8]) -> Self {
        Self {
            id: id.to_owned(),
            algorithm: Algorithm::ES256,
            key: EncodingKey::from_ec_der(der),
            public: Self::ec_jwk(id, der).unwrap_or_default(),
        }
    }

    /// The public half as a JSON Web Key (RFC 7517), for the key set that verifiers read.
    #[must_use]
    pub fn jwk(&self) -> &Value {
        &self.public
    }

    /// The public half of an EC key in PKCS#8 DER as a JSON Web Key.
    ///
    /// # Errors
    /// When the DER is not an EC P-256 key.
    pub fn ec_jwk(id: &str, der: &[u8]) -> Result<Value, KeyError> {
        let fault = || KeyError {
            key: id.to_owned(),
            reason: "expected an EC P-256 key in PKCS#8 DER".to_owned(),
        };
        let random = ring::rand::SystemRandom::new();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random).map_err(|_| fault())?;
        // An uncompressed point: 4, then x and y of 32 bytes each.
        let point = pair.public_key().as_ref();
        let (x, y) = point.get(1..33).zip(point.get(33..65)).ok_or_else(fault)?;
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        Ok(json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id, "x": x, "y": y}))
    }

    /// `kid`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Signs a client credentials assertion, with the certificates that prove whose key it is (`x5c`, RFC 7515
    /// §4.1.6), given as PEM, own certificate first.
    ///
    /// # Errors
    /// When the certificates are not PEM, the claims do not serialise, or the key does not sign.
    pub fn assert(&self, claims: &impl Serialize, chain: &str) -> Result<String, KeyError> {
        let fault = |reason: String| KeyError {
            key: self.id.clone(),
            reason,
        };
        let chain: Result<Vec<String>, _> = CertificateDer::pem_slice_iter(chain.as_bytes())
            .map(|certificate| certificate.map(|der| STANDARD.encode(der)))
            .collect();
        let mut header = Header::new(self.algorithm);
        header.x5c = Some(chain.map_err(|_| fault("expected certificates in PEM".to_owned()))?);
        jsonwebtoken::encode(&header, claims, &self.key).map_err(|error| fault(error.to_string()))
    }

    /// Signs claims as a compact JWS.
    ///
    /// # Errors
    /// When the claims do not serialise or the key does not sign.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyError> {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.clone());
        jsonwebtoken::encode(&header, claims, &self.key).map_err(|error| KeyError {
            key: self.id.clone(),
            reason: error.to_string(),
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key itself.
        write!(f, "SigningKey({}, {:?})", self.id, self.algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_key_signs_what_its_public_half_verifies() {
        let directory = tempfile::tempdir().unwrap();
        let mut made = vec![SigningKey::generate("generated").unwrap().0];
        for (id, options) in [
            ("ec", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..]),
            ("rsa", &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
        ] {
            let path = directory.path().join(id);
            let mut openssl = std::process::Command::new("openssl");
            openssl
                .args(["genpkey", "-algorithm"])
                .args(options)
                .arg("-out")
                .arg(&path);
            if let Some(done) = testpeer::skip::output(&mut openssl) {
                assert!(done.status.success(), "{done:?}");
                made.push(SigningKey::from_pem(id, &std::fs::read(&path).unwrap()).unwrap());
            }
        }
        for key in made {
            let mut keys = Keys::new();
            let set = json!({"keys": [key.jwk()]}).to_string();
            assert_eq!(keys.add_jwks(set.as_bytes()).unwrap(), 1, "{key:?}");
            let token = key.sign(&json!({"sub": "amf"})).unwrap();
            let (algorithm, public) = keys.get(key.id()).unwrap();
            let mut validation = jsonwebtoken::Validation::new(*algorithm);
            validation.required_spec_claims.clear();
            validation.validate_exp = false;
            let claims = jsonwebtoken::decode::<Value>(&token, public, &validation)
                .unwrap()
                .claims;
            assert_eq!(claims["sub"], "amf");
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        let (_, der) = SigningKey::generate("k").unwrap();
        for text in [
            &b""[..],
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            &der,
        ] {
            let error = SigningKey::from_pem("k", text).unwrap_err();
            assert!(
                error.to_string().contains("expected a PEM private key"),
                "{error}"
            );
        }
        assert!(Keys::new().add_pem("k", b"nothing").is_err());
        assert!(Keys::new().add_jwks(b"[]").is_err());
        let unusable = br#"{"keys": [{"kty": "oct", "kid": "k", "k": "AAAA"}]}"#;
        assert_eq!(
            Keys::new().add_jwks(unusable).unwrap(),
            0,
            "a shared secret is not a public key"
        );
    }
}
