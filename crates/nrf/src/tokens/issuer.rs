//! Issue of access tokens.

use std::path::Path;
use std::time::SystemTime;

use model::{NfProfile, NfService, NfStatus, NfType, ServiceName};
use registry::Snapshot;
use sbi::oauth::{AccessTokenClaims, Audience, Keys, PlmnClaim, SigningKey, SnssaiClaim};
use serde_json::{Value, json};

use super::keys::{self, Ring};
use super::request::Request;
use crate::config;
use crate::discovery::Requester;

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

/// Equal if public keys and rules are equal.
impl PartialEq for Issuer {
    fn eq(&self, other: &Self) -> bool {
        (&self.instance, &self.jwks, &self.settings) == (&other.instance, &other.jwks, &other.settings)
    }
}

impl Issuer {
    /// Reads the configured keys, or the generated key in `directory`.
    ///
    /// # Errors
    /// The file that cannot be used.
    pub fn open(settings: &config::Tokens, instance: &str, directory: &Path) -> Result<Self, String> {
        let Ring { signer, jwks } = match settings.signing_keys.is_empty() {
            true => keys::own(directory, settings.rotate_every.duration(), SystemTime::now())?,
            false => keys::configured(&settings.signing_keys)?,
        };
        Ok(Self {
            instance: instance.to_owned(),
            signer,
            jwks: json!({ "keys": jwks }),
            settings: settings.clone(),
        })
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
            // An NF needs a token to register, if this NRF requires tokens (TS 29.510 §5.4.2.2.1); another NRF forwards
            // requests of its consumers and does not register here.
            None if self.settings.require_registration && !is_exempt(request) => {
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
            source_nf_instance_id: request.source_nf_instance_id.map(|id| id.to_string()),
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
            tracing::error!(%error, "access token could not be signed");
            TokenFault::request("the token could not be signed")
        })
    }

    /// Checks that a producer offers every scope and admits the consumer; returns its type.
    fn check_producers(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        consumer: &NfType,
    ) -> Result<NfType, TokenFault> {
        if is_own(&request.scopes) {
            return Ok(NfType::Nrf);
        }
        let registered = snapshot.get(&request.nf_instance_id);
        let requester = requester(request, registered.map(|entry| &*entry.profile), consumer);
        let fits = |profile: &NfProfile| {
            request
                .scopes
                .iter()
                .all(|scope| offers(profile, scope, &requester))
                && (!request.scopes.is_empty() || requester.may_use_profile(profile))
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
        let usable = |entry: &&std::sync::Arc<registry::Entry>| {
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

/// The consumer as producers judge it: by what the request says (TS 29.510 §6.3.5.2.2 NOTE 3), and where it says
/// nothing by what the consumer has registered of itself.
fn requester(request: &Request, registered: Option<&NfProfile>, nf_type: &NfType) -> Requester {
    fn or<T: Clone>(said: Vec<T>, registered: Option<&Vec<T>>) -> Vec<T> {
        match said.is_empty() {
            true => registered.cloned().unwrap_or_default(),
            false => said,
        }
    }
    let mut plmns = request.requester_plmns.clone();
    plmns.extend(request.requester_plmn);
    let fqdn = request.requester_fqdn.clone();
    Requester {
        nf_type: Some(nf_type.clone()),
        instance: Some(request.nf_instance_id),
        fqdn: fqdn.or_else(|| registered.and_then(|profile| profile.fqdn.clone())),
        plmns: or(plmns, registered.map(|profile| &profile.plmn_list)),
        snpns: or(
            request.requester_snpns.clone(),
            registered.map(|profile| &profile.snpn_list),
        ),
        slices: or(
            request.requester_snssais.clone(),
            registered.map(|profile| &profile.snssais),
        ),
        ..Requester::default()
    }
}

/// The services of the NRF itself.
fn is_own(scopes: &[String]) -> bool {
    scopes
        .iter()
        .all(|scope| scope.starts_with("nnrf-nfm") || scope.starts_with("nnrf-disc"))
}

/// Whether a consumer need not be registered: it requests a token to register, or it is another NRF.
fn is_exempt(request: &Request) -> bool {
    let is_nrf = request
        .nf_type
        .as_ref()
        .is_some_and(|nf_type| *nf_type == NfType::Nrf);
    is_management(&request.scopes) || (is_nrf && request.scopes.iter().all(|scope| scope == "nnrf-disc"))
}

/// Nnrf_NFManagement as a whole, by which NFs register.
fn is_management(scopes: &[String]) -> bool {
    scopes.iter().all(|scope| scope == "nnrf-nfm")
}

/// Whether a profile offers a scope: a service name, or a more specific scope that begins with one.
fn offers(profile: &NfProfile, scope: &str, requester: &Requester) -> bool {
    let name = scope.split(':').next().unwrap_or(scope);
    profile
        .services()
        .filter(|service| service.service_name == ServiceName::from(name))
        .any(|service| requester.may_use_service(profile, service) && allows(service, scope, requester))
}

/// Whether a service allows the consumer the operations of a scope: where it lists those of its type or of its instance,
/// a scope below the service is one of them (TS 29.510 §6.1.6.2.3, `allowedOperationsPerNfType`,
/// `allowedOperationsPerNfInstance`).
fn allows(service: &NfService, scope: &str, requester: &Requester) -> bool {
    let of_type = requester.nf_type.as_ref();
    let of_type = of_type.and_then(|own| service.allowed_operations_per_nf_type.get(own.as_str()));
    let mut instances = service.allowed_operations_per_nf_instance.iter();
    let of_instance = requester.instance.and_then(|own| {
        let own = own.to_string();
        instances
            .find(|(id, _)| id.eq_ignore_ascii_case(&own))
            .map(|(_, operations)| operations)
    });
    let mut lists = of_type.into_iter().chain(of_instance).peekable();
    // A token for the whole service names no operation; the producer judges each request.
    !scope.contains(':') || lists.peek().is_none() || lists.flatten().any(|operation| operation == scope)
}
