//! Who a consumer is, whether it may use a producer, and the token it needs there.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Instant;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use sbi::client::Client;
use sbi::headers::{NrfUri, names};
use sbi::oauth::{AssertionClaims, AssertionFault, Assertions, since_epoch};
use sbi::problem::{Cause, Problem};
use sbi::tls::instance_of;
use sbi::{Peer, Request};
use telemetry::Registry;
use telemetry::metrics::Counter;

use super::outgoing::Outgoing;
use super::route::Target;
use super::worker::Worker;
use crate::config::{TokenLevel, TokenUse};
use crate::live::Live;
use crate::network::Applicant;
use crate::protection::Consumer;
use crate::security::{ASSERTIONS, Asked, Fetcher, TokenError, Wanted};
use crate::target::{self, Has};

/// What a worker proves identities with.
pub(super) struct Identity {
    assertions: Assertions,
    pub(super) tokens: Rc<Fetcher>,
    accepted: Counter,
    refused: Counter,
    missing: Counter,
}

impl Identity {
    pub(super) fn new(live: &Live, client: &Client, registry: &Registry) -> Self {
        let (config, outcomes) = (&live.config, registry.counters(&ASSERTIONS));
        let tokens = Fetcher::new(config, live.tokens.clone(), client.clone(), registry);
        Self {
            assertions: Assertions::new(&config.security.assertions, live.authorities.clone(), "SCP"),
            tokens: Rc::new(tokens),
            accepted: outcomes.get(&["accepted"]),
            refused: outcomes.get(&["refused"]),
            missing: outcomes.get(&["missing"]),
        }
    }
}

/// Who has sent a request, as far as it is known.
pub(super) struct Caller {
    consumer: Rc<Consumer>,
    /// Where its requests come from, whatever they say.
    pub(super) source: u64,
    /// The claims of its assertion, where assertions are checked.
    claims: Option<Rc<AssertionClaims>>,
    /// The other end of its connection.
    peer: Rc<Peer>,
    /// What rules of access ask of a request.
    asked: Asked,
    /// What profiles ask of it, read when one does.
    applicant: OnceCell<Applicant>,
}

impl Caller {
    /// Its NF type.
    pub(super) fn nf_type(&self) -> Option<&str> {
        self.consumer.nf_type.as_deref()
    }

    /// What profiles ask of it; `headers` are those of its request.
    pub(super) fn applicant(&self, headers: &HeaderMap) -> &Applicant {
        self.applicant
            .get_or_init(|| crate::security::applicant(self.nf_type(), self.instance(), headers))
    }

    /// The NF instance id that its assertion or its certificate proves.
    fn proved(&self) -> Option<&str> {
        let asserted = self.claims.as_ref().map(|claims| claims.sub.as_str());
        let tls = self.peer.tls.as_ref();
        asserted.or_else(|| tls?.names.iter().find_map(|name| instance_of(name)))
    }

    /// Its NF instance id: as it has proved, else as it says.
    fn instance(&self) -> Option<&str> {
        let proved = self.claims.as_ref().map(|claims| claims.sub.as_str());
        proved.or(self.consumer.instance.as_deref())
    }
}

impl Worker {
    /// Checks the assertion of a request, if that is wanted (TS 29.500 §6.7.5).
    pub(super) fn claims(&self, headers: &HeaderMap) -> Result<Option<Rc<AssertionClaims>>, Problem> {
        let identity = &self.identity;
        let claims = identity.assertions.of_request(headers, since_epoch());
        match &claims {
            Ok(Some(_)) => identity.accepted.inc(),
            Ok(None) => {}
            Err(AssertionFault::Missing) => identity.missing.inc(),
            Err(AssertionFault::Refused(_)) => identity.refused.inc(),
        }
        claims.map_err(AssertionFault::problem)
    }

    /// Who has sent a request.
    pub(super) fn caller(
        &self,
        consumer: Rc<Consumer>,
        claims: Option<Rc<AssertionClaims>>,
        request: &Request,
    ) -> Caller {
        let access = &self.live.access;
        Caller {
            asked: match access.is_empty() {
                true => Asked::default(),
                false => access.asked(request.headers()),
            },
            source: crate::protection::source(&request.peer, &self.hasher),
            consumer,
            claims,
            peer: request.peer.clone(),
            applicant: OnceCell::new(),
        }
    }

    /// Whether a consumer may use the target: by the producer's profile, and by rule.
    pub(super) fn allowed(
        &self,
        target: &Target,
        caller: &Caller,
        outgoing: &Outgoing,
    ) -> Result<(), &'static str> {
        let known = target.service.as_ref();
        let applicant = || caller.applicant(&outgoing.headers);
        if known.is_some_and(|one| !one.producer.admits(one.service(), applicant)) {
            return Err("the producer's profile does not let the consumer in");
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
        // Where nobody knows which segment is the API name, each must be allowed.
        let allowed = match outgoing.unsure {
            false => allows(outgoing.service()),
            true => {
                let segments = target
                    .root
                    .prefix
                    .split('/')
                    .chain(outgoing.path.path().split('/'));
                let mut named = segments.filter(|segment| !segment.is_empty()).peekable();
                named.peek().is_some() && named.all(allows)
            }
        };
        match allowed {
            true => Ok(()),
            false => Err("a rule of this SCP refuses the consumer this producer"),
        }
    }

    /// Gives a request the token that it needs at the target, if this SCP is to get it (TS 29.500 §6.7.3).
    /// Answers what the token is known by.
    pub(super) async fn authorize(
        &self,
        outgoing: &mut Outgoing,
        target: &Target,
        caller: &Caller,
        delegated: bool,
    ) -> Result<Option<String>, Problem> {
        let settings = &self.live.config.security.tokens;
        let Some(service) = target.service.as_ref().filter(|_| settings.enabled) else {
            return Ok(None);
        };
        let wished = delegated || settings.requests == TokenUse::Missing;
        let name = outgoing.service();
        let covered = settings.services.is_empty() || settings.services.iter().any(|one| one == name);
        // The consumer's own token is not replaced; one that was fetched for another attempt is.
        if !wished || !covered || (outgoing.headers.contains_key(AUTHORIZATION) && !outgoing.authorized) {
            return Ok(None);
        }
        let producer = &service.producer;
        let headers = &outgoing.headers;
        let parameter = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(percent_decode_str(value.trim()).decode_utf8_lossy())
        };
        let told_instance = parameter("3gpp-sbi-discovery-requester-nf-instance-id");
        let told_type = parameter("3gpp-sbi-discovery-requester-nf-type");
        let scope = parameter("3gpp-sbi-access-scope");
        let requester_slices = parameter("3gpp-sbi-discovery-requester-snssais");
        let target_slices = parameter("3gpp-sbi-discovery-snssais");
        let requester_plmns = parameter("3gpp-sbi-discovery-requester-plmn-list");
        let set = producer
            .sets
            .first()
            .filter(|_| settings.level == TokenLevel::NfSet);
        let service_set = service
            .service()
            .sets
            .first()
            .filter(|_| settings.level == TokenLevel::NfServiceSet);
        let target_plmn = parameter("3gpp-sbi-discovery-target-plmn-list").and_then(|list| first_of(&list));
        let tokens = &self.identity.tokens;
        let proved = caller.proved().filter(|_| settings.require_proof);
        if settings.require_proof && proved.is_none() {
            return Err(Problem::new(Cause::AccessTokenDenied)
                .detail("the consumer has proved no NF instance id for which a token could be asked"));
        }
        // Which NRF grants it: the one that the request names (TS 29.500 §5.2.3.2.12), else that of the producer's
        // network and place.
        let named = match outgoing.has.has(Has::NRF_URI) && tokens.heeds_names() {
            true => target::header::<NrfUri>(headers)?.and_then(|named| named.tokens),
            false => None,
        };
        let locality = producer.locality.as_deref();
        let wanted = Wanted {
            nrf: named.as_ref(),
            near: locality.filter(|place| named.is_none() && tokens.serves(place)),
            // A consumer that says nothing of itself is served in the name of this SCP.
            consumer: proved
                .or(caller.instance())
                .or(told_instance.as_deref())
                .unwrap_or(&self.live.config.nf_instance_id),
            consumer_type: told_type.as_deref().or(caller.nf_type()),
            target_type: &producer.nf_type,
            target_instance: (settings.level == TokenLevel::NfInstance).then_some(&*producer.id),
            target_set: set.map(|set| &**set),
            target_service_set: service_set.map(|set| &**set),
            target_plmn: target_plmn.as_deref(),
            scope: scope.as_deref().unwrap_or(name),
            requester_slices: requester_slices.as_deref(),
            target_slices: target_slices.as_deref(),
            requester_plmns: requester_plmns.as_deref(),
            assertion: headers.get(names::CLIENT_CREDENTIALS),
        };
        let token = tokens.token(&wanted, Instant::now()).await;
        let (key, value): (String, HeaderValue) = match token {
            Ok(token) => (wanted.key(), token.value.clone()),
            Err(error @ TokenError::NotReachable) => {
                return Err(Problem::new(Cause::NrfNotReachable).detail(error.to_string()));
            }
            // The request is one that lacks something, or the consumer may not have the token
            // (TS 29.500 §6.10.11.2).
            Err(ref error @ TokenError::Refused(_, ref why)) => {
                let cause = match why.starts_with("invalid_request") {
                    true => Cause::MissingAccessTokenInfo,
                    false => Cause::AccessTokenDenied,
                };
                return Err(Problem::new(cause).detail(error.to_string()));
            }
        };
        outgoing.headers.insert(AUTHORIZATION, value);
        outgoing.authorized = true;
        Ok(Some(key))
    }
}

/// The first item of a JSON list, or the one value there is.
fn first_of(list: &str) -> Option<String> {
    match serde_json::from_str(list).ok()? {
        serde_json::Value::Array(items) => items.first().map(ToString::to_string),
        value => Some(value.to_string()),
    }
}
