//! How a worker reaches other functions: its connections, the NRFs, access tokens.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bounded::{Cache, Limits};
use function::sbi::elsewhere;
use http::{Method, Request, StatusCode, Uri};
use notifier::Notification;
use nrf_client::{Nrfs, Outcome, PeerService, PeerTokens, instance_path};
use sbi::client::{Client, Origin, SendError, SendOptions};
use sbi::dns::Dns;
use sbi::headers::names::CALLBACK;
use sbi::name::CONTENT_TYPE;
use sbi::{Body, Response};
use serde_json::Value;

use crate::activity::{of_outbound, of_response, trail};
use crate::config::{self, Config};
use crate::events::{Counters, Event};
use crate::latency::Latencies;
use crate::profile::PROFILE;

/// Bindings of sessions (TS 29.521).
pub(crate) const BSF: PeerService = PeerService {
    name: "nbsf-management",
    nf_type: "BSF",
};
/// N1 messages to UEs (TS 29.518).
pub(crate) const AMF: PeerService = PeerService {
    name: "namf-comm",
    nf_type: "AMF",
};
/// Policy data of subscribers (TS 29.504).
pub(crate) const UDR: PeerService = PeerService {
    name: "nudr-dr",
    nf_type: "UDR",
};
/// Policy counters of subscribers (TS 29.594).
pub(crate) const CHF: PeerService = PeerService {
    name: "nchf-spendinglimitcontrol",
    nf_type: "CHF",
};

/// The NRFs of the configuration.
pub(crate) fn nrfs(config: &Config, client: Client, names: Option<Dns>) -> Rc<Nrfs> {
    let (nf_type, instance) = (PROFILE.nf_type, &config.nf_instance_id);
    Rc::new(function::sbi::nrfs(&config.nrf, nf_type, instance, client, names))
}

/// How a worker reaches other functions.
pub(crate) struct Peers {
    client: Client,
    nrfs: Rc<Nrfs>,
    /// None: requests carry no token.
    tokens: Option<PeerTokens>,
    /// Whether a redirection may be followed.
    redirections: Redirections,
    /// NF instances, each until it expires.
    registered: RefCell<Cache<String, Known>>,
    latencies: Arc<Latencies>,
}

/// What an NRF says of an NF instance, as far as it matters here.
struct Registered {
    nf_type: Option<String>,
    /// `nfSetIdList`.
    sets: Vec<String>,
}

impl Registered {
    fn of(profile: &Value) -> Self {
        let sets = profile.get("nfSetIdList").and_then(Value::as_array);
        let sets = sets.into_iter().flatten().filter_map(Value::as_str);
        Self {
            nf_type: profile.get("nfType").and_then(Value::as_str).map(str::to_owned),
            sets: sets.map(str::to_owned).collect(),
        }
    }
}

/// Until when it holds, and what the NRF says; `None` where it says nothing.
type Known = (Instant, Option<Rc<Registered>>);

/// Requests of which each redirects to the next, at most.
pub(crate) const REDIRECTIONS: usize = 3;

/// How long an instance is taken for unknown.
const UNKNOWN: Duration = Duration::from_secs(2);
/// NF instances that a worker caches, and for how long.
const INSTANCES: (usize, Duration) = (4_096, Duration::from_secs(60));

/// Whether a redirection from a URI to an origin may be followed.
type Redirections = Box<dyn Fn(&Uri, &Origin) -> bool>;

impl Peers {
    pub(crate) fn new(
        config: &Config,
        client: Client,
        names: Option<Dns>,
        (counters, latencies): (Arc<Counters>, Arc<Latencies>),
    ) -> Self {
        let nrfs = nrfs(config, client.clone(), names);
        let tokens = |up_front| {
            PeerTokens::new(nrfs.clone(), &config.nf_instance_id, "PCF")
                .up_front(up_front)
                .on_outcome(move |outcome| {
                    counters.count(match outcome {
                        Outcome::Granted => Event::PeerTokenGranted,
                        Outcome::Failed => Event::PeerTokenFailed,
                    });
                })
        };
        let tokens = match config.peer_tokens {
            _ if nrfs.is_empty() => None,
            config::PeerTokens::Never => None,
            config::PeerTokens::WhenAsked => Some(tokens(false)),
            config::PeerTokens::Always => Some(tokens(true)),
        };
        Self {
            client,
            nrfs,
            tokens,
            redirections: Box::new(|_, _| false),
            registered: RefCell::new(Cache::new(Limits::entries(INSTANCES.0))),
            latencies,
        }
    }

    /// Follows redirections that may be followed.
    pub(crate) fn following(mut self, redirections: impl Fn(&Uri, &Origin) -> bool + 'static) -> Self {
        self.redirections = Box::new(redirections);
        self
    }

    /// Whether a redirection from a URI to an origin may be followed (`outgoing`).
    pub(crate) fn may_redirect(&self, from: &Uri, to: &Origin) -> bool {
        (self.redirections)(from, to)
    }

    /// Whether the NRF has two NF instances in one NF set (TS 23.501 §5.21.3); false where it does not answer.
    pub(crate) async fn are_of_one_set(&self, one: &str, other: &str) -> bool {
        match (self.registered(one).await, self.registered(other).await) {
            (Some(one), Some(other)) => one.sets.iter().any(|set| other.sets.contains(set)),
            _ => false,
        }
    }

    /// The NF type of an instance; `None` where the NRF does not answer or does not know it.
    pub(crate) async fn nf_type_of(&self, instance: &str) -> Option<String> {
        self.registered(instance).await?.nf_type.clone()
    }

    /// What the NRF says of an instance; `None` where it does not answer or does not know it.
    async fn registered(&self, instance: &str) -> Option<Rc<Registered>> {
        if self.nrfs.is_empty() {
            return None;
        }
        let instance = model::NfInstanceId::parse(instance).ok()?.to_string();
        let now = Instant::now();
        let known = self
            .registered
            .borrow()
            .get_if(&*instance, |(until, _)| *until > now)
            .map(|(_, known)| known.clone());
        if let Some(known) = known {
            return known;
        }
        let path = instance_path(&instance);
        let answer = elsewhere(pin!(self.nrfs.send(Method::GET, &path, None))).await;
        let answer = answer.filter(|answer| answer.status == StatusCode::OK);
        let profile = answer.and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
        let known = profile.as_ref().map(|profile| Rc::new(Registered::of(profile)));
        // Requests in the name of an unknown instance must not become as many to the NRF.
        let lasts = known.as_ref().map_or(UNKNOWN, |_| INSTANCES.1);
        let kept = (Instant::now() + lasts, known.clone());
        self.registered.borrow_mut().insert(instance, kept);
        known
    }

    /// The NRFs of the configuration.
    pub(crate) fn nrfs(&self) -> &Rc<Nrfs> {
        &self.nrfs
    }

    /// Sends a notification once: the status of the answer; none without one in time.
    pub(crate) async fn notify(
        &self,
        origin: &Origin,
        notification: &Notification,
        deadline: Duration,
    ) -> Option<StatusCode> {
        let path = notification.target.path_and_query();
        let request = Request::post(path.map_or("/", |path| path.as_str()))
            .header(CONTENT_TYPE, "application/json")
            .header(CALLBACK, notification.callback)
            .body(Body::from(notification.body.clone()))
            .ok()?;
        let options = SendOptions {
            deadline,
            ..SendOptions::default()
        };
        trail::note(|| of_outbound("notification", &origin.to_string(), &request));
        let answer = self.client.send(origin, request, options).await.ok()?;
        trail::note(|| of_response("notification", &origin.to_string(), &answer));
        Some(answer.status())
    }

    /// Sends a request that `make` builds to a producer of a service; with an access token it may be built twice. `None` if
    /// `make` builds none.
    pub(crate) async fn send(
        &self,
        (service, origin): (PeerService, &Origin),
        deadline: Duration,
        make: impl Fn() -> Option<Request<Body>>,
    ) -> Option<Result<Response, SendError>> {
        let options = SendOptions {
            deadline,
            ..SendOptions::default()
        };
        if trail::is_traced()
            && let Some(request) = make()
        {
            trail::note(|| of_outbound(service.name, &origin.to_string(), &request));
        }
        let began = Instant::now();
        let sent = match &self.tokens {
            Some(tokens) => tokens.send(&self.client, (service, origin), options, make).await,
            None => Some(self.client.send(origin, make()?, options).await),
        };
        self.latencies.used(service.name, began);
        if let Some(Ok(response)) = &sent {
            trail::note(|| of_response(service.name, &origin.to_string(), response));
        }
        sent
    }
}
