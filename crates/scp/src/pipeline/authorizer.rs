//! Step 8 before each attempt, authorization: whether the consumer may use the producer, and the token it needs there.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use percent_encoding::percent_decode_str;
use routing::network::ServiceRef;
use routing::policy::Budget;
use routing::target::{self, Has};
use sbi::headers::{NrfUri, TargetApiRoot, names};
use sbi::name::{AUTHORIZATION, TRACEPARENT};
use sbi::problem::{Cause, Problem};
use sbi::{Fields, Name};

use super::Setup;
use super::message::{Caller, Outgoing, Step, Target};
use super::view::View;
use crate::config::{TokenLevel, TokenUse};
use crate::live::Live;
use crate::refusal::Refusal;
use crate::security::{Fetcher, Proof, TokenError, Wanted};

/// Why a consumer may not use a producer that is named or found.
pub(super) const NOT_ADMITTED: &str = "the producer's profile does not admit the consumer";

/// Decides whether a consumer may use a producer, and gets tokens.
pub(super) struct Authorizer {
    live: Arc<Live>,
    view: Rc<View>,
    /// Hasher of unchecked assertions; the same in all workers, which share the tokens.
    hasher: ahash::RandomState,
    pub(super) tokens: Rc<Fetcher>,
}

/// Headers of a request that go into `AccessTokenReq` (TS 29.510 §6.3.5.2.2).
struct Said<'h> {
    consumer: Option<Cow<'h, str>>,
    consumer_type: Option<Cow<'h, str>>,
    scope: Option<Cow<'h, str>>,
    requester_slices: Option<Cow<'h, str>>,
    target_slices: Option<Cow<'h, str>>,
    requester_plmns: Option<Cow<'h, str>>,
    target_plmn: Option<String>,
}

impl<'h> Said<'h> {
    fn of(headers: &'h Fields) -> Self {
        let text = |name: Name<'_>| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(percent_decode_str(value.trim()).decode_utf8_lossy())
        };
        let parameter = |name: &str| text(Name::from(name));
        Self {
            consumer: parameter("3gpp-sbi-discovery-requester-nf-instance-id"),
            consumer_type: parameter("3gpp-sbi-discovery-requester-nf-type"),
            scope: text(names::ACCESS_SCOPE),
            requester_slices: parameter("3gpp-sbi-discovery-requester-snssais"),
            target_slices: parameter("3gpp-sbi-discovery-snssais"),
            requester_plmns: parameter("3gpp-sbi-discovery-requester-plmn-list"),
            target_plmn: parameter("3gpp-sbi-discovery-target-plmn-list").and_then(|list| first_of(&list)),
        }
    }
}

impl Authorizer {
    /// Creates it with the tokens of `before`, as far as the settings are the same.
    pub(super) fn new(setup: &Setup<'_>, before: Option<&Self>) -> Self {
        let before = before.map(|before| (&*before.live.config, &*before.tokens));
        let client = setup.clients.known.clone();
        Self {
            tokens: Rc::new(Fetcher::new(
                &setup.live.config,
                setup.live.tokens.clone(),
                client,
                &setup.shared.registry,
                before,
            )),
            view: setup.view.clone(),
            hasher: setup.shared.hasher.clone(),
            live: setup.live.clone(),
        }
    }

    /// Whether a consumer may use the target: by the producer's profile, and by rule.
    pub(super) fn allowed(
        &self,
        target: &Target,
        caller: &Caller,
        outgoing: &Outgoing,
        callback: bool,
    ) -> Result<(), &'static str> {
        let known = target.service.as_ref();
        let applicant = || caller.applicant(&outgoing.headers);
        let judged = known.filter(|one| self.is_of_service(one, outgoing, callback));
        if judged.is_some_and(|one| !one.producer.admits(one.service(), applicant)) {
            return Err(NOT_ADMITTED);
        }
        let access = &self.live.access;
        if access.is_empty() {
            return Ok(());
        }
        let mut called = [&*caller.consumer.name, ""];
        if let Some(instance) = caller.instance() {
            called[1] = instance;
        }
        let producer = known.map(|one| &*one.producer);
        let allows =
            |service: &str| access.allows(caller.nf_type(), &called, &caller.asked, producer, service);
        let allowed = if outgoing.unsure {
            // If no profile shows which segment is the API name, each segment must be allowed.
            let segments = target
                .root
                .prefix
                .split('/')
                .chain(outgoing.address.path().split('/'));
            let mut named = segments.filter(|segment| !segment.is_empty()).peekable();
            named.peek().is_some() && named.all(allows)
        } else {
            allows(outgoing.address.service())
        };
        match allowed {
            true => Ok(()),
            false => Err("a rule of this SCP does not allow the consumer to use this producer"),
        }
    }

    /// Whether a request is for a service of the producer, not for one of its callback resources: `allowed…` of a
    /// profile restricts its services (TS 29.510 §6.1.6.2.2). `3gpp-Sbi-Callback` does not turn a request for the path
    /// of a service into a callback.
    fn is_of_service(&self, one: &ServiceRef, outgoing: &Outgoing, callback: bool) -> bool {
        let name = outgoing.address.service();
        if outgoing.unsure || *one.service().name == *name {
            return true;
        }
        let is_api = || self.live.services.contains(name) || !self.view.network().of_service(name).is_empty();
        !callback && is_api()
    }

    /// The producer that a token is to be fetched for; `None` where this SCP fetches none (TS 29.500 §6.7.3).
    pub(super) fn wants_token<'t>(
        &self,
        outgoing: &Outgoing,
        target: &'t Target,
        delegated: bool,
    ) -> Option<&'t ServiceRef> {
        let settings = &self.live.config.security.tokens;
        let service = target.service.as_ref().filter(|_| settings.enabled)?;
        let wished = delegated || settings.requests == TokenUse::Missing;
        let name = outgoing.address.service();
        let covered = settings.services.is_empty() || settings.services.iter().any(|one| one == name);
        // The consumer's own token is not replaced; one that was fetched for another attempt is.
        let has_own = outgoing.headers.contains(AUTHORIZATION) && !outgoing.authorized;
        (wished && covered && !has_own).then_some(service)
    }

    /// Gives a request the token that it needs at the target, if this SCP is to get it. Returns the key of the token.
    pub(super) async fn authorize(
        &self,
        outgoing: &mut Outgoing,
        target: &Target,
        caller: &Caller,
        delegated: bool,
        budget: &Budget,
    ) -> Step<Option<String>> {
        let Some(service) = self.wants_token(outgoing, target, delegated) else {
            return Ok(None);
        };
        let said = Said::of(&outgoing.headers);
        let named = self.named_nrf(outgoing)?;
        let wanted = self.wanted(outgoing, service, caller, &said, named.as_ref())?;
        let began = Instant::now();
        let token = self.tokens.token(&wanted, began, budget.left(began)).await;
        let waited = began.elapsed();
        match token {
            Ok(token) => {
                let key = wanted.key();
                outgoing.headers.set_sensitive(AUTHORIZATION, &token.value);
                outgoing.authorized = true;
                outgoing.conveyed = self
                    .live
                    .config
                    .security
                    .tokens
                    .convey
                    .then(|| token.value.clone());
                outgoing.waited += waited;
                Ok(Some(key))
            }
            Err(error) => Err(Refusal::Token.with(problem(&error))),
        }
    }

    /// The NRF that the request names for tokens (TS 29.500 §5.2.3.2.12), if the settings allow it.
    fn named_nrf(&self, outgoing: &Outgoing) -> Step<Option<TargetApiRoot>> {
        if !outgoing.has.has(Has::NRF_URI) || !self.tokens.heeds_names() {
            return Ok(None);
        }
        let named = target::header::<NrfUri>(&outgoing.headers);
        let named = named.map_err(|problem| Refusal::Token.with(problem))?;
        Ok(named.and_then(|named| named.tokens))
    }

    fn wanted<'w>(
        &'w self,
        outgoing: &'w Outgoing,
        service: &'w ServiceRef,
        caller: &'w Caller,
        said: &'w Said<'_>,
        nrf: Option<&'w TargetApiRoot>,
    ) -> Step<Wanted<'w>> {
        let config = &self.live.config;
        let settings = &config.security.tokens;
        let proved = caller.proved();
        if settings.require_proof && proved.is_none() {
            let problem = Problem::new(Cause::AccessTokenDenied)
                .detail("the consumer has not proved an NF instance id, which a token request needs");
            return Err(Refusal::Token.with(problem));
        }
        let said_type = || said.consumer_type.as_deref().or(caller.nf_type());
        let named = proved.filter(|_| settings.require_proof);
        let named = named.or(caller.instance()).or(said.consumer.as_deref());
        let (consumer, consumer_type) = match named {
            Some(consumer) => (consumer, said_type()),
            None if settings.in_own_name => (&*config.nf_instance_id, Some("SCP")),
            // Any unauthenticated consumer would get a token in the name of this SCP (TS 29.500 §6.10.11.2.2).
            None => {
                let problem = Problem::new(Cause::MissingAccessTokenInfo)
                    .detail(
                        "the request does not name the NF instance for which an access token has to be requested",
                    )
                    .invalid_param(
                        "header 3gpp-Sbi-Discovery-requester-nf-instance-id",
                        "expected this header, or 3gpp-Sbi-Client-Credentials",
                    );
                return Err(Refusal::Token.with(problem));
            }
        };
        let assertion = outgoing.headers.get(names::CLIENT_CREDENTIALS);
        let proof = match named.is_none() || proved == Some(consumer) {
            true => Proof::Checked,
            false => Proof::Said {
                source: caller.source,
                shown: assertion.map_or(0, |shown| self.hasher.hash_one(shown.as_bytes())),
            },
        };
        let producer = &service.producer;
        let level = settings.level_of(outgoing.address.service());
        let at = |one: TokenLevel| level == one;
        let set = producer.sets.first().filter(|_| at(TokenLevel::NfSet));
        let service_set = service.service().sets.first();
        let locality = producer.locality.as_deref();
        Ok(Wanted {
            nrf,
            near: locality.filter(|place| nrf.is_none() && self.tokens.serves(place)),
            consumer,
            proof,
            consumer_type,
            target_type: &producer.nf_type,
            target_instance: at(TokenLevel::NfInstance).then_some(&*producer.id),
            target_set: set.map(|set| &**set),
            target_service_set: service_set
                .filter(|_| at(TokenLevel::NfServiceSet))
                .map(|set| &**set),
            target_plmn: said.target_plmn.as_deref(),
            scope: said.scope.as_deref().unwrap_or(outgoing.address.service()),
            requester_slices: said.requester_slices.as_deref(),
            target_slices: said.target_slices.as_deref(),
            requester_plmns: said.requester_plmns.as_deref(),
            assertion,
            trace: outgoing.headers.get(TRACEPARENT),
        })
    }
}

/// The answer to a request without the token it needs (TS 29.500 §6.10.11.2).
fn problem(error: &TokenError) -> Problem {
    let cause = match error {
        TokenError::NotReachable => Cause::NrfNotReachable,
        // The token request lacked a parameter, or the NRF refused the consumer.
        TokenError::Refused(_, why) if why.starts_with("invalid_request") => Cause::MissingAccessTokenInfo,
        TokenError::Refused(..) => Cause::AccessTokenDenied,
        TokenError::Overflow => Cause::NfCongestion,
    };
    Problem::new(cause).detail(error.to_string())
}

/// The first item of a JSON list, or the one value there is.
fn first_of(list: &str) -> Option<String> {
    match serde_json::from_str(list).ok()? {
        serde_json::Value::Array(items) => items.first().map(ToString::to_string),
        value => Some(value.to_string()),
    }
}
