//! Who gets which token.

use std::fs;
use std::path::Path;

use model::{NfProfile, NfStatus, NfType, ServiceName};
use sbi::oauth::{AccessTokenClaims, Audience, Keys, PlmnClaim, SigningKey, SnssaiClaim};
use serde_json::{Value, json};

use super::request::Request;
use crate::config;
use crate::registry::Snapshot;

/// Signs tokens; shared by all workers.
#[derive(Debug)]
pub struct Issuer {
    instance: String,
    signer: SigningKey,
    jwks: Value,
    settings: config::Tokens,
}

/// An OAuth error (RFC 6749 §5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFault {
    /// `error`.
    pub error: &'static str,
    /// `error_description`.
    pub description: String,
}

impl TokenFault {
    /// An error of this kind.
    pub fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self {
            error,
            description: description.into(),
        }
    }

    /// `invalid_request`.
    pub fn request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }
}

/// Name of the key file that is made when none is configured.
const KEY_FILE: &str = "token-key.der";

impl Issuer {
    /// Reads the keys, or makes one in `directory` and keeps it there for the next start.
    ///
    /// # Errors
    /// The file that cannot be used.
    pub fn open(settings: &config::Tokens, instance: &str, directory: &Path) -> Result<Self, String> {
        let mut jwks = Vec::new();
        let mut signer = None;
        for path in &settings.signing_keys {
            let shown = path.display();
            let pem = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
            let id = key_id(&pem);
            let key = SigningKey::from_pem(&id, &pem).map_err(|error| format!("{shown}: {error}"))?;
            if let Some(der) = der_of(&pem)
                && let Ok(jwk) = SigningKey::ec_jwk(&id, &der)
            {
                jwks.push(jwk);
            }
            signer.get_or_insert(key);
        }
        let signer = match signer {
            Some(signer) => signer,
            None => {
                let (key, jwk) = Self::own_key(directory)?;
                jwks.push(jwk);
                key
            }
        };
        Ok(Self {
            instance: instance.to_owned(),
            signer,
            jwks: json!({ "keys": jwks }),
            settings: settings.clone(),
        })
    }

    fn own_key(directory: &Path) -> Result<(SigningKey, Value), String> {
        let path = directory.join(KEY_FILE);
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        let der = match fs::read(&path) {
            Ok(der) => der,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (_, der) = SigningKey::generate("new").map_err(|error| error.to_string())?;
                fs::create_dir_all(directory).map_err(fault)?;
                write_private(&path, &der).map_err(fault)?;
                der
            }
            Err(error) => return Err(fault(error)),
        };
        let id = key_id(&der);
        let jwk = SigningKey::ec_jwk(&id, &der).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((SigningKey::from_ec_der(&id, &der), jwk))
    }

    /// The public keys as a JSON Web Key Set.
    #[must_use]
    pub fn jwks(&self) -> &Value {
        &self.jwks
    }

    /// The public keys, for this NRF's own verifier.
    #[must_use]
    pub fn keys(&self) -> Keys {
        let mut keys = Keys::new();
        // The set was made of keys that were read.
        let _ = keys.add_jwks(self.jwks.to_string().as_bytes());
        keys
    }

    /// A token for a consumer, and how long it lives.
    ///
    /// # Errors
    /// The OAuth error that refuses it.
    pub fn issue(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        now: u64,
    ) -> Result<(String, u64), TokenFault> {
        let consumer = snapshot.get(&request.nf_instance_id);
        let consumer_type = match consumer {
            Some(entry) => {
                if request
                    .nf_type
                    .as_ref()
                    .is_some_and(|claimed| claimed != entry.nf_type())
                {
                    return Err(TokenFault::new(
                        "invalid_client",
                        "nfType is not the registered one",
                    ));
                }
                entry.nf_type().clone()
            }
            None if self.settings.require_registration => {
                return Err(TokenFault::new(
                    "invalid_client",
                    "the consumer is not registered",
                ));
            }
            None => request.nf_type.clone().ok_or_else(|| {
                TokenFault::request("nfType is mandatory for consumers that are not registered")
            })?,
        };
        let producer_type = self.check_producers(request, snapshot, &consumer_type)?;
        self.check_rules(request, &consumer_type, &producer_type)?;
        let seconds = self.settings.validity.as_secs();
        let plmn = |plmn: &model::PlmnId| PlmnClaim {
            mcc: plmn.mcc(),
            mnc: plmn.mnc(),
        };
        let claims = AccessTokenClaims {
            iss: self.instance.clone(),
            sub: request.nf_instance_id.to_string(),
            aud: match request.target_nf_instance_id {
                Some(id) => Audience::Instances(vec![id.to_string()]),
                None => Audience::NfType(producer_type.as_str().to_owned()),
            },
            scope: request.scopes.join(" "),
            exp: now + seconds,
            consumer_plmn_id: request.requester_plmn.as_ref().map(plmn),
            producer_plmn_id: request.target_plmn.as_ref().map(plmn),
            producer_snssai_list: request
                .target_snssais
                .iter()
                .map(|slice| SnssaiClaim {
                    sst: slice.sst,
                    sd: slice.sd.map(|sd| format!("{sd:06x}")),
                })
                .collect(),
            producer_nsi_list: request.target_nsis.clone(),
            producer_nf_set_id: request.target_nf_set_id.clone(),
            producer_nf_service_set_id: request.target_nf_service_set_id.clone(),
            ..AccessTokenClaims::default()
        };
        let token = self.sign(&claims)?;
        Ok((token, seconds))
    }

    /// A token for requests of this NRF itself, and when it ends.
    #[must_use]
    pub fn own_token(&self, producer_type: &str, scope: &str, now: u64) -> Option<(String, u64)> {
        let exp = now + self.settings.validity.as_secs();
        let claims = AccessTokenClaims {
            iss: self.instance.clone(),
            sub: self.instance.clone(),
            aud: Audience::NfType(producer_type.to_owned()),
            scope: scope.to_owned(),
            exp,
            ..AccessTokenClaims::default()
        };
        self.sign(&claims).ok().map(|token| (token, exp))
    }

    fn sign(&self, claims: &AccessTokenClaims) -> Result<String, TokenFault> {
        self.signer.sign(claims).map_err(|error| {
            tracing::error!(%error, "a token could not be signed");
            TokenFault::request("the token could not be signed")
        })
    }

    /// There must be a producer that offers every scope and lets the consumer in; answers its type.
    fn check_producers(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        consumer: &NfType,
    ) -> Result<NfType, TokenFault> {
        if is_own(&request.scopes) {
            return Ok(NfType::Nrf);
        }
        let requester = crate::discovery::Requester {
            nf_type: Some(consumer.clone()),
            plmns: request.requester_plmn.into_iter().collect(),
            ..Default::default()
        };
        let fits = |profile: &NfProfile| {
            request
                .scopes
                .iter()
                .all(|scope| offers(profile, scope, &requester))
                && requester.may_use(&profile.allowed)
                && request
                    .target_nf_set_id
                    .as_ref()
                    .is_none_or(|set| profile.nf_set_id_list.contains(set))
                && request.target_nf_service_set_id.as_ref().is_none_or(|set| {
                    profile
                        .services()
                        .any(|service| service.nf_service_set_id_list.contains(set))
                })
                && (request.target_snssais.is_empty()
                    || profile.snssais.is_empty()
                    || profile
                        .snssais
                        .iter()
                        .any(|known| request.target_snssais.iter().any(|s| known.contains(s))))
        };
        let usable = |entry: &&std::sync::Arc<crate::registry::Entry>| {
            entry.status == NfStatus::Registered && fits(&entry.profile)
        };
        let refused = || {
            TokenFault::new(
                "invalid_scope",
                "no registered producer offers this to the consumer",
            )
        };
        match (&request.target_nf_instance_id, &request.target_nf_type) {
            (Some(id), _) => {
                let entry = snapshot.get(id).filter(usable).ok_or_else(refused)?;
                match &request.target_nf_type {
                    Some(claimed) if claimed != entry.nf_type() => Err(refused()),
                    _ => Ok(entry.nf_type().clone()),
                }
            }
            (None, Some(nf_type)) => {
                let mut producers = snapshot
                    .of_type(nf_type)
                    .into_iter()
                    .flat_map(|table| table.iter());
                producers
                    .find(usable)
                    .map(|_| nf_type.clone())
                    .ok_or_else(refused)
            }
            (None, None) => Err(TokenFault::request("expected targetNfType or targetNfInstanceId")),
        }
    }

    fn check_rules(&self, request: &Request, consumer: &NfType, producer: &NfType) -> Result<(), TokenFault> {
        let listed = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        for scope in &request.scopes {
            let rule = self.settings.auth_rules.iter().find(|rule| {
                listed(&rule.consumers, consumer.as_str())
                    && listed(&rule.producers, producer.as_str())
                    && listed(&rule.scopes, scope)
            });
            if rule.is_some_and(|rule| rule.deny) {
                return Err(TokenFault::new(
                    "unauthorized_client",
                    format!("{consumer} may not use {scope}"),
                ));
            }
        }
        Ok(())
    }
}

/// The services of the NRF itself.
fn is_own(scopes: &[String]) -> bool {
    scopes
        .iter()
        .all(|scope| scope.starts_with("nnrf-nfm") || scope.starts_with("nnrf-disc"))
}

/// Whether a profile offers a scope: a service name, or a more specific scope that begins with one.
fn offers(profile: &NfProfile, scope: &str, requester: &crate::discovery::Requester) -> bool {
    let name = scope.split(':').next().unwrap_or(scope);
    profile
        .services()
        .any(|service| service.service_name == ServiceName::from(name) && requester.may_use(&service.allowed))
}

fn key_id(key: &[u8]) -> String {
    format!("{:016x}", crate::registry::fingerprint(&[key]))
}

/// The DER inside a PEM text.
fn der_of(pem: &[u8]) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let text = std::str::from_utf8(pem).ok()?;
    let inside: String = text
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .map(str::trim)
        .collect();
    base64::engine::general_purpose::STANDARD.decode(inside).ok()
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
