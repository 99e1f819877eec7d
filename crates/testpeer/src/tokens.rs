//! JSON Web Tokens with any header, any claims and any signature (RFC 7515).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// A key of the one who forges (EC P-256).
#[derive(Debug)]
pub struct Key {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

/// How a public key on P-256 begins as SubjectPublicKeyInfo (RFC 5480): what follows is the point.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

impl Key {
    /// A new key.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn generate() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .expect("the system has randomness");
        Self::from_der(der.as_ref()).expect("a key that was just made")
    }

    /// A key in PKCS#8.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random).ok()?;
        Some(Self { pair, random })
    }

    /// Its public half in PEM.
    #[must_use]
    pub fn public_pem(&self) -> String {
        let spki = [&P256[..], self.pair.public_key().as_ref()].concat();
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(spki)
        )
    }

    /// Its public half as a JSON Web Key (RFC 7517).
    #[must_use]
    pub fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |from, to| URL_SAFE_NO_PAD.encode(point.get(from..to).unwrap_or_default());
        json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "x": part(1, 33), "y": part(33, 65)})
    }

    /// A token of this header and these claims, signed.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let text = unsigned(header, claims);
        let signature = self
            .pair
            .sign(&self.random, text.as_bytes())
            .expect("the system has randomness");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Header and claims, before the signature.
#[must_use]
pub fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// A token signed with a shared secret (HS256).
#[must_use]
pub fn hs256(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let text = unsigned(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signature = ring::hmac::sign(&key, text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Header and claims of a token.
#[must_use]
pub fn parts(token: &str) -> Option<(Value, Value)> {
    let mut parts = token.split('.');
    let mut part = || {
        let bytes = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    Some((part()?, part()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_can_be_taken_apart() {
        let key = Key::generate();
        let token = key.sign(&json!({"alg": "ES256"}), &json!({"sub": "x"}));
        assert_eq!(token.split('.').count(), 3);
        assert_eq!(parts(&token).unwrap().1["sub"], "x");
        assert!(key.public_pem().contains("BEGIN PUBLIC KEY"));
        assert_eq!(key.jwk()["crv"], "P-256");
        assert_eq!(parts("x.y"), None);
    }
}
