use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use jsonwebtoken::Validation;
use sbi_proto::name::{AUTHORIZATION, WWW_AUTHENTICATE};
use sbi_proto::problem::{Cause, Problem};
use sbi_proto::{AccessTokenClaims, Audience, Fields, PlmnClaim, Response, SnssaiClaim};

use super::jws::{self, Unusable};
use super::keys::Keys;

/// What a producer expects of tokens: who it is. Empty lists limit nothing.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// NF instance id of the producer.
    pub instance: String,
    /// NF type of the producer.
    pub nf_type: String,
    /// NF instance ids of the NRFs whose tokens are accepted; empty: of any NRF whose key is known.
    pub issuers: Vec<String>,
    /// PLMNs the producer is in.
    pub plmns: Vec<PlmnClaim>,
    /// Slices the producer serves.
    pub slices: Vec<SnssaiClaim>,
    /// Network slice instances the producer serves.
    pub nsis: Vec<String>,
    /// NF sets the producer is in.
    pub nf_sets: Vec<String>,
    /// NF service sets the producer is in.
    pub service_sets: Vec<String>,
}

/// Checks access tokens; one per worker.
#[derive(Debug)]
pub struct Verifier {
    keys: RefCell<Arc<Keys>>,
    expectation: Expectation,
    /// Tokens whose signature and claims held, but for expiry and scope.
    known: RefCell<AHashMap<Box<str>, Rc<AccessTokenClaims>>>,
    capacity: usize,
    stats: RefCell<VerifierStats>,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifierStats {
    /// Requests whose token was accepted.
    pub accepted: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Signatures checked; all other tokens were cached.
    pub signatures: u64,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No token.
    Missing,
    /// Not a token, not signed by a known key, expired, or for another audience; the text says which.
    Invalid(&'static str),
    /// A valid token that does not allow this scope.
    Scope(String),
}

/// Longest access token: one of 3GPP with every claim takes a few KiB.
const TOKEN_BYTES: usize = 16 * 1024;

impl Verifier {
    /// A verifier with these keys that caches at most `capacity` tokens.
    #[must_use]
    pub fn new(keys: Arc<Keys>, expectation: Expectation, capacity: usize) -> Self {
        Self {
            keys: RefCell::new(keys),
            expectation,
            known: RefCell::default(),
            capacity,
            stats: RefCell::default(),
        }
    }

    /// Replaces the keys and clears the cache of verified tokens.
    pub fn replace_keys(&self, keys: Arc<Keys>) {
        *self.keys.borrow_mut() = keys;
        self.known.borrow_mut().clear();
    }

    /// Checks the token of a request for one of `scopes` (the service name, or a more specific scope) at
    /// `now`, in seconds since 1970.
    ///
    /// # Errors
    /// When the request is to be denied; [`Denied::into_response`] is the answer.
    pub fn check(
        &self,
        headers: &Fields,
        scopes: &[&str],
        now: u64,
    ) -> Result<Rc<AccessTokenClaims>, Denied> {
        let outcome = self.try_check(headers, scopes, now);
        let mut stats = self.stats.borrow_mut();
        match &outcome {
            Ok(_) => stats.accepted += 1,
            Err(_) => stats.denied += 1,
        }
        outcome
    }

    fn try_check(
        &self,
        headers: &Fields,
        scopes: &[&str],
        now: u64,
    ) -> Result<Rc<AccessTokenClaims>, Denied> {
        let authorization = headers.get(AUTHORIZATION).ok_or(Denied::Missing)?;
        let text = authorization
            .to_str()
            .map_err(|_| Denied::Invalid("the token is not text"))?;
        let (scheme, token) = text
            .split_once(' ')
            .ok_or(Denied::Invalid("expected `Bearer TOKEN`"))?;
        if !scheme.eq_ignore_ascii_case("Bearer") {
            return Err(Denied::Invalid("expected `Bearer TOKEN`"));
        }
        let token = token.trim();
        if token.len() > TOKEN_BYTES {
            return Err(Denied::Invalid("the token is longer than 16 KiB"));
        }
        let known = self.known.borrow().get(token).cloned();
        let claims = match known {
            Some(claims) => claims,
            None => {
                let claims = Rc::new(self.verify(token)?);
                self.remember(token, &claims, now);
                claims
            }
        };
        if claims.exp <= now {
            return Err(Denied::Invalid("the token has expired"));
        }
        if jws::lies_ahead(claims.nbf, now, jws::LEEWAY) {
            return Err(Denied::Invalid("the token is not to be accepted yet"));
        }
        let issued = claims.more.get("iat").and_then(serde_json::Value::as_u64);
        if jws::lies_ahead(issued, now, jws::LEEWAY) || issued.is_some_and(|issued| issued > claims.exp) {
            return Err(Denied::Invalid(
                "the token was issued in the future, or after its end",
            ));
        }
        if !scopes.is_empty() && !scopes.iter().any(|scope| claims.has_scope(scope)) {
            return Err(Denied::Scope(scopes.join(" ")));
        }
        Ok(claims)
    }

    fn verify(&self, token: &str) -> Result<AccessTokenClaims, Denied> {
        let header = jws::header(token).map_err(|why| {
            Denied::Invalid(match why {
                Unusable::NotSigned => "the token is not a signed JWT",
                Unusable::Critical => "the token has extensions that are not understood here",
            })
        })?;
        let keys = self.keys.borrow().clone();
        let (algorithm, key) = match &header.kid {
            Some(kid) => keys.get(kid),
            None => keys.only(),
        }
        .ok_or(Denied::Invalid(
            "the token is signed with a key that is not known",
        ))?;
        // The key decides the algorithm; what the token claims about itself does not count.
        let mut validation = Validation::new(*algorithm);
        // Times are judged by the caller's clock, with each use of the token.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        self.stats.borrow_mut().signatures += 1;
        let decoded = jsonwebtoken::decode::<AccessTokenClaims>(token, key, &validation)
            .map_err(|_| Denied::Invalid("the signature or the claims of the token are not valid"))?;
        self.fits(&decoded.claims)?;
        Ok(decoded.claims)
    }

    /// The claims that do not depend on the request (TS 33.501 §13.4.1.1.2).
    fn fits(&self, claims: &AccessTokenClaims) -> Result<(), Denied> {
        let expected = &self.expectation;
        let for_us = match &claims.aud {
            Audience::NfType(nf_type) => *nf_type == expected.nf_type,
            Audience::Instances(ids) => ids.iter().any(|id| id.eq_ignore_ascii_case(&expected.instance)),
        };
        if !for_us {
            return Err(Denied::Invalid("the token is for another audience"));
        }
        if !expected.issuers.is_empty() && !expected.issuers.contains(&claims.iss) {
            return Err(Denied::Invalid("the token is of an issuer that is not accepted"));
        }
        let plmn_fits = claims
            .producer_plmn_id
            .as_ref()
            .is_none_or(|plmn| expected.plmns.is_empty() || expected.plmns.contains(plmn));
        if !plmn_fits {
            return Err(Denied::Invalid("the token is for another PLMN"));
        }
        let slices = &claims.producer_snssai_list;
        let slice_fits = slices.is_empty()
            || expected.slices.is_empty()
            || slices
                .iter()
                .any(|claimed| expected.slices.iter().any(|served| served.is(claimed)));
        let nsi_fits = claims.producer_nsi_list.is_empty()
            || expected.nsis.is_empty()
            || claims
                .producer_nsi_list
                .iter()
                .any(|nsi| expected.nsis.contains(nsi));
        let set_fits = claims
            .producer_nf_set_id
            .as_ref()
            .is_none_or(|set| expected.nf_sets.contains(set));
        let service_set_fits = claims
            .producer_nf_service_set_id
            .as_ref()
            .is_none_or(|set| expected.service_sets.contains(set));
        if !(slice_fits && nsi_fits) {
            return Err(Denied::Invalid("the token is for other slices"));
        }
        if !(set_fits && service_set_fits) {
            return Err(Denied::Invalid("the token is for another set"));
        }
        Ok(())
    }

    fn remember(&self, token: &str, claims: &Rc<AccessTokenClaims>, now: u64) {
        let mut known = self.known.borrow_mut();
        if known.len() >= self.capacity {
            known.retain(|_, claims| claims.exp > now);
        }
        if known.len() < self.capacity {
            known.insert(token.into(), claims.clone());
        }
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self) -> VerifierStats {
        *self.stats.borrow()
    }
}

impl Denied {
    /// The answer (RFC 6750 §3, TS 29.500 §6.7.3).
    #[must_use]
    pub fn into_response(self, realm: &str) -> Response {
        let (cause, challenge, detail) = match self {
            Self::Missing => (
                Cause::Unauthorized,
                String::new(),
                "the request has no access token".to_owned(),
            ),
            Self::Invalid(why) => (
                Cause::Unauthorized,
                ", error=\"invalid_token\"".to_owned(),
                why.to_owned(),
            ),
            Self::Scope(scope) => (
                Cause::Forbidden,
                format!(", error=\"insufficient_scope\", scope=\"{scope}\""),
                format!("the access token does not allow `{scope}`"),
            ),
        };
        let mut response = Problem::new(cause).detail(detail).into_response();
        let realm: String = realm
            .chars()
            .filter(|c| c.is_ascii_graphic() && *c != '"')
            .collect();
        let challenge = format_args!("Bearer realm=\"{realm}\"{challenge}");
        response.headers_mut().set_printed(WWW_AUTHENTICATE, challenge);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use proptest::prelude::*;
    use serde_json::json;

    struct Fixture {
        signer: super::super::SigningKey,
        verifier: Verifier,
    }

    fn fixture() -> Fixture {
        let (signer, der) = super::super::SigningKey::generate("k1").unwrap();
        let jwk = super::super::SigningKey::ec_jwk("k1", &der).unwrap();
        let mut keys = Keys::new();
        assert_eq!(
            keys.add_jwks(json!({"keys": [jwk]}).to_string().as_bytes())
                .unwrap(),
            1
        );
        let expectation = Expectation {
            instance: "udm-1".into(),
            nf_type: "UDM".into(),
            issuers: vec!["nrf-1".into()],
            nf_sets: vec!["set1".into()],
            plmns: vec![PlmnClaim {
                mcc: "001".into(),
                mnc: "01".into(),
            }],
            slices: vec![SnssaiClaim {
                sst: 1,
                sd: Some("00000a".into()),
            }],
            ..Default::default()
        };
        Fixture {
            signer,
            verifier: Verifier::new(Arc::new(keys), expectation, 10),
        }
    }

    fn claims() -> AccessTokenClaims {
        AccessTokenClaims {
            iss: "nrf-1".into(),
            sub: "amf-1".into(),
            aud: Audience::NfType("UDM".into()),
            scope: "nudm-sdm nudm-uecm".into(),
            exp: 1_000,
            ..Default::default()
        }
    }

    impl Fixture {
        fn check(&self, claims: &AccessTokenClaims, scope: &str, now: u64) -> Result<(), Denied> {
            self.check_token(&self.signer.sign(claims).unwrap(), scope, now)
        }

        fn check_token(&self, token: &str, scope: &str, now: u64) -> Result<(), Denied> {
            let mut headers = Fields::new();
            headers.set_printed(AUTHORIZATION, format_args!("Bearer {token}"));
            self.verifier.check(&headers, &[scope], now).map(drop)
        }
    }

    #[test]
    fn a_good_token_is_verified_once() {
        let f = fixture();
        let token = f.signer.sign(&claims()).unwrap();
        for _ in 0..3 {
            f.check_token(&token, "nudm-sdm", 999).unwrap();
        }
        assert_eq!(
            f.verifier.stats(),
            VerifierStats {
                accepted: 3,
                denied: 0,
                signatures: 1
            }
        );
        assert_eq!(
            f.check_token(&token, "nudm-sdm", 1_000),
            Err(Denied::Invalid("the token has expired"))
        );
        assert_eq!(
            f.check_token(&token, "nudm-ee", 1),
            Err(Denied::Scope("nudm-ee".into()))
        );
    }

    #[test]
    fn tokens_of_the_future_and_huge_ones_are_refused() {
        let f = fixture();
        let with = |more: serde_json::Value| AccessTokenClaims {
            more: more.as_object().cloned().unwrap_or_default(),
            ..claims()
        };
        f.check(&with(json!({"iat": 1})), "nudm-sdm", 1).unwrap();
        for (more, why) in [
            (
                json!({"iat": 900}),
                "the token was issued in the future, or after its end",
            ),
            (
                json!({"iat": 2_000}),
                "the token was issued in the future, or after its end",
            ),
            (
                json!({"x": "y".repeat(17_000)}),
                "the token is longer than 16 KiB",
            ),
        ] {
            assert_eq!(f.check(&with(more), "nudm-sdm", 1), Err(Denied::Invalid(why)));
        }
    }

    #[test]
    fn claims_must_fit() {
        let f = fixture();
        let denied = |claims: &AccessTokenClaims| f.check(claims, "nudm-sdm", 1).is_err();
        assert!(denied(&AccessTokenClaims {
            aud: Audience::NfType("UDR".into()),
            ..claims()
        }));
        assert!(denied(&AccessTokenClaims {
            aud: Audience::Instances(vec!["udm-2".into()]),
            ..claims()
        }));
        assert!(!denied(&AccessTokenClaims {
            aud: Audience::Instances(vec!["UDM-1".into()]),
            ..claims()
        }));
        assert!(denied(&AccessTokenClaims {
            iss: "nrf-2".into(),
            ..claims()
        }));
        assert!(denied(&AccessTokenClaims {
            producer_nf_set_id: Some("set2".into()),
            ..claims()
        }));
        assert!(!denied(&AccessTokenClaims {
            producer_nf_set_id: Some("set1".into()),
            ..claims()
        }));
        let plmn = |mnc: &str| {
            Some(PlmnClaim {
                mcc: "001".into(),
                mnc: mnc.into(),
            })
        };
        assert!(denied(&AccessTokenClaims {
            producer_plmn_id: plmn("02"),
            ..claims()
        }));
        assert!(!denied(&AccessTokenClaims {
            producer_plmn_id: plmn("01"),
            ..claims()
        }));
        let slice = |sst, sd: &str| SnssaiClaim {
            sst,
            sd: Some(sd.into()),
        };
        assert!(denied(&AccessTokenClaims {
            producer_snssai_list: vec![slice(1, "00000b"), slice(2, "00000a")],
            ..claims()
        }));
        assert!(!denied(&AccessTokenClaims {
            producer_snssai_list: vec![slice(1, "00000A")],
            ..claims()
        }));
    }

    #[test]
    fn other_keys_and_algorithms_are_refused() {
        let f = fixture();
        let (stranger, _) = super::super::SigningKey::generate("k1").unwrap();
        assert!(
            f.check_token(&stranger.sign(&claims()).unwrap(), "nudm-sdm", 1)
                .is_err()
        );
        let (unknown, _) = super::super::SigningKey::generate("k2").unwrap();
        assert!(
            f.check_token(&unknown.sign(&claims()).unwrap(), "nudm-sdm", 1)
                .is_err()
        );
        let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
        header.kid = Some("k1".into());
        let symmetric =
            jsonwebtoken::encode(&header, &claims(), &jsonwebtoken::EncodingKey::from_secret(b"k1"));
        assert!(f.check_token(&symmetric.unwrap(), "nudm-sdm", 1).is_err());
        // {"alg":"none"}
        assert!(f.check_token("eyJhbGciOiJub25lIn0.e30.", "nudm-sdm", 1).is_err());
    }

    #[test]
    fn a_token_is_not_accepted_before_its_time() {
        let f = fixture();
        let token = |nbf| {
            f.signer
                .sign(&AccessTokenClaims {
                    nbf: Some(nbf),
                    ..claims()
                })
                .unwrap()
        };
        let early = token(500);
        for now in [1, 494] {
            assert_eq!(
                f.check_token(&early, "nudm-sdm", now),
                Err(Denied::Invalid("the token is not to be accepted yet")),
                "{now}"
            );
        }
        for now in [495, 500, 999] {
            f.check_token(&early, "nudm-sdm", now).unwrap();
        }
        assert_eq!(
            f.check_token(&early, "nudm-sdm", 1),
            Err(Denied::Invalid("the token is not to be accepted yet")),
            "the times of a cached token are checked as well"
        );
    }

    #[test]
    fn a_token_that_must_be_understood_is_refused() {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let (signer, der) = super::super::SigningKey::generate("k1").unwrap();
        let mut keys = Keys::new();
        keys.add_jwks(json!({"keys": [signer.jwk()]}).to_string().as_bytes())
            .unwrap();
        let expectation = Expectation {
            nf_type: "UDM".into(),
            ..Expectation::default()
        };
        let f = Fixture {
            signer,
            verifier: Verifier::new(Arc::new(keys), expectation, 10),
        };
        let key = jsonwebtoken::EncodingKey::from_ec_der(&der);
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims()).unwrap());
        let token = |more: serde_json::Value| {
            let mut header = json!({"alg": "ES256", "kid": "k1", "typ": "JWT"});
            for (name, value) in more.as_object().unwrap() {
                header[name] = value.clone();
            }
            let signed = format!("{}.{body}", URL_SAFE_NO_PAD.encode(header.to_string()));
            let signature =
                jsonwebtoken::crypto::sign(signed.as_bytes(), &key, jsonwebtoken::Algorithm::ES256).unwrap();
            format!("{signed}.{signature}")
        };
        f.check_token(&token(json!({"exp": 1, "unknown": true})), "nudm-sdm", 1)
            .unwrap();
        for crit in [json!(["exp"]), json!(["b64"]), json!([]), json!("x"), json!(null)] {
            assert_eq!(
                f.check_token(
                    &token(json!({"crit": crit, "b64": false, "exp": 1})),
                    "nudm-sdm",
                    1
                ),
                Err(Denied::Invalid(
                    "the token has extensions that are not understood here"
                )),
                "{crit}"
            );
        }
    }

    #[test]
    fn answers_challenge() {
        let f = fixture();
        let missing = f
            .verifier
            .check(&Fields::new(), &["nudm-sdm"], 1)
            .unwrap_err()
            .into_response("udm");
        assert_eq!(missing.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(
            missing.headers().get(WWW_AUTHENTICATE).unwrap(),
            "Bearer realm=\"udm\""
        );
        let scope = Denied::Scope("nudm-ee".into()).into_response("udm");
        assert_eq!(scope.status(), StatusCode::FORBIDDEN);
        assert!(
            scope
                .headers()
                .get(WWW_AUTHENTICATE)
                .unwrap()
                .to_str()
                .unwrap()
                .contains("insufficient_scope")
        );
    }

    proptest! {
        #[test]
        fn any_token_is_accepted_or_denied(token in "[\\x20-\\x7e]{0,60}") {
            prop_assert!(fixture().check_token(&token, "nudm-sdm", 1).is_err());
        }
    }
}
