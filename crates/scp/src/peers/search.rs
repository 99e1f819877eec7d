//! Delegated discovery: one question at a time to the NRF, however many wait for its answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, StatusCode};
use nrf_client::Turns;
use sbi::Body;
use sbi::client::{Client, SendOptions};
use sbi::headers::TargetApiRoot;
use sbi::problem::{Cause, Problem};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::{NotNamed, Sets};
use crate::config::{Config, Discovery, Order};
use crate::discovery::{Cache, DiscoveryQuery, Found, Lookup, local};
use crate::events::Metrics;
use crate::network::{Network, Producer, ServiceRef};
use crate::security::{Fetcher, TokenError, Wanted};

/// A worker's share of delegated discovery.
pub(crate) struct Searcher {
    settings: Discovery,
    nrfs: Sets,
    client: Client,
    /// For NRFs that want a token to be asked.
    tokens: Rc<Fetcher>,
    /// NF instance id of this SCP.
    own: String,
    metrics: Metrics,
    cache: RefCell<Cache>,
    /// Questions being asked, and who is told when they are answered.
    asking: RefCell<AHashMap<DiscoveryQuery, Rc<Asked>>>,
    waiting: Cell<usize>,
    /// Whether an NRF has wanted a token to be asked.
    wants_token: Cell<bool>,
    /// Answers from what was learned, as of a snapshot of the network.
    local: RefCell<Local>,
}

/// Answers from a snapshot of the network.
type Local = (Option<Arc<Network>>, AHashMap<DiscoveryQuery, Rc<Found>>);

/// A question under way.
#[derive(Default)]
struct Asked {
    done: Notify,
    answer: RefCell<Option<Result<Rc<Found>, Failure>>>,
}

/// Why nobody was found.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No NRF answered.
    NotReachable,
    /// NRFs answered only with errors of their own.
    Failed,
    /// The NRF refused the question.
    Refused(StatusCode, String),
    /// Too many questions wait.
    Overflow,
    /// The NRF that the request names may not be named.
    NotNamed,
    /// There is no token for the NRF.
    NoToken(TokenError),
}

/// `SearchResult` (TS 29.510 §6.2.6.2.2).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchResult<'a> {
    #[serde(default)]
    validity_period: u64,
    #[serde(borrow)]
    nf_instances: Vec<&'a RawValue>,
}

impl Failure {
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::NotReachable => {
                Problem::new(Cause::NrfNotReachable).detail("no NRF answered the discovery")
            }
            Self::Failed => Problem::new(Cause::NfDiscoveryError)
                .detail("the NRF answered the discovery with an error of its own"),
            Self::Refused(status, detail) => {
                let cause = match status {
                    StatusCode::BAD_REQUEST => Cause::InvalidDiscoveryParam,
                    _ => Cause::NfDiscoveryFailure,
                };
                Problem::new(cause).detail(format!("the NRF answered the discovery with {status}: {detail}"))
            }
            Self::Overflow => {
                Problem::new(Cause::NfCongestion).detail("too many discoveries wait for the NRF")
            }
            Self::NotNamed => Problem::new(Cause::NfDiscoveryFailure)
                .detail("this SCP does not ask the NRF that the request names")
                .invalid_param("header 3gpp-Sbi-Nrf-Uri", "expected an NRF that this SCP knows"),
            Self::NoToken(TokenError::NotReachable) => {
                Problem::new(Cause::NrfNotReachable).detail(TokenError::NotReachable.to_string())
            }
            Self::NoToken(error) => Problem::new(Cause::AccessTokenDenied).detail(error.to_string()),
        }
    }
}

/// A place among those who wait, given back when dropped.
struct Place<'a>(&'a Cell<usize>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Searcher {
    pub(crate) fn new(config: &Config, client: Client, tokens: Rc<Fetcher>, metrics: Metrics) -> Self {
        let settings = &config.discovery;
        Self {
            settings: settings.clone(),
            nrfs: Sets::new(&config.nrf, &config.places),
            client,
            tokens,
            own: config.nf_instance_id.clone(),
            metrics,
            cache: RefCell::new(Cache::new(settings.cache_size)),
            asking: RefCell::default(),
            waiting: Cell::new(0),
            wants_token: Cell::new(false),
            local: RefCell::default(),
        }
    }

    /// How many answers are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.cache.borrow().len()
    }

    /// Whoever can serve what is asked for, by the order that is configured.
    pub(crate) async fn find(
        &self,
        query: &DiscoveryQuery,
        network: &Arc<Network>,
    ) -> Result<Rc<Found>, Failure> {
        // What was learned says nothing of whom an NRF knows that the request names.
        let learned = query.nrf().is_none();
        let local = || learned.then(|| self.locally(query, network)).flatten();
        if self.settings.order == Order::ScpThenNrf
            && let Some(found) = local()
        {
            self.metrics.discovery_local.inc();
            return Ok(found);
        }
        let answer = self.remembered_or_asked(query).await;
        if self.settings.order == Order::NrfThenScp
            && matches!(
                answer,
                Err(Failure::NotReachable | Failure::Failed | Failure::Overflow)
            )
            && let Some(found) = local()
        {
            self.metrics.discovery_local.inc();
            return Ok(found);
        }
        match &answer {
            Ok(found) if found.candidates.is_empty() => self.metrics.discovery_empty.inc(),
            Ok(_) => {}
            Err(_) => self.metrics.discovery_failed.inc(),
        }
        answer
    }

    /// Those of the learned network that fit, if any does.
    fn locally(&self, query: &DiscoveryQuery, network: &Arc<Network>) -> Option<Rc<Found>> {
        let mut known = self.local.borrow_mut();
        let is_current = known.0.as_ref().is_some_and(|known| Arc::ptr_eq(known, network));
        if !is_current || known.1.len() >= self.settings.cache_size {
            *known = (Some(network.clone()), AHashMap::new());
        }
        if let Some(found) = known.1.get(query) {
            return Some(found.clone());
        }
        let candidates = local(query, network);
        let asked = Instant::now();
        let found = (!candidates.is_empty()).then(|| Rc::new(Found { asked, candidates }))?;
        known.1.insert(query.clone(), found.clone());
        Some(found)
    }

    async fn remembered_or_asked(&self, query: &DiscoveryQuery) -> Result<Rc<Found>, Failure> {
        if self.settings.enforce_req_specific_svc_discovery {
            let _place = self.place()?;
            self.metrics.discovery_asked.inc();
            return self.ask(query).await.map(|(found, _)| found);
        }
        let looked_up = self.cache.borrow_mut().look_up(query, Instant::now());
        match looked_up {
            Lookup::Hit(found) => {
                self.metrics.discovery_hit.inc();
                Ok(found)
            }
            Lookup::Asking => {
                let _place = self.place()?;
                self.metrics.discovery_waited.inc();
                let asked = self.asking.borrow().get(query).cloned();
                // Whoever asked has given up between: the question is free again.
                let Some(asked) = asked else {
                    return Err(Failure::NotReachable);
                };
                let waiting = tokio::time::timeout(self.patience(), asked.done.notified());
                if asked.answer.borrow().is_none() && waiting.await.is_err() {
                    return Err(Failure::NotReachable);
                }
                let answer = asked.answer.borrow().clone();
                answer.unwrap_or(Err(Failure::NotReachable))
            }
            Lookup::Miss => {
                let _place = self
                    .place()
                    .inspect_err(|_| self.cache.borrow_mut().forget(query))?;
                self.metrics.discovery_asked.inc();
                let asked = Rc::new(Asked::default());
                self.asking.borrow_mut().insert(query.clone(), asked.clone());
                // However this ends, a dropped request included, the question becomes free again.
                let question = Question {
                    searcher: self,
                    query,
                    asked,
                };
                let answer = self.ask(query).await;
                question.answer(answer)
            }
        }
    }

    fn place(&self) -> Result<Place<'_>, Failure> {
        if self.waiting.get() >= self.settings.max_waiting {
            return Err(Failure::Overflow);
        }
        self.waiting.set(self.waiting.get() + 1);
        Ok(Place(&self.waiting))
    }

    /// How long somebody waits for another's question: each NRF may take its time.
    fn patience(&self) -> Duration {
        self.settings
            .timeout
            .duration()
            .saturating_mul(u32::try_from(self.nrfs.most().max(1)).unwrap_or(u32::MAX))
    }

    /// Asks the NRF that the request names, or the set that its question is for.
    async fn ask(&self, query: &DiscoveryQuery) -> Result<(Rc<Found>, Duration), Failure> {
        if let Some(named) = query.nrf()
            && let Some(root) = &named.discovery
        {
            let counts = &self.metrics;
            let nrfs = self.nrfs.named(root, Instant::now()).map_err(|why| match why {
                NotNamed::Refused => {
                    counts.named_refused.inc();
                    Failure::NotNamed
                }
                NotNamed::Full => {
                    counts.named_full.inc();
                    Failure::Overflow
                }
            })?;
            counts.named_asked.inc();
            return self.ask_set(&nrfs, query).await;
        }
        let (plmns, locality) = (query.get("target-plmn-list"), query.get("preferred-locality"));
        let choice = self.nrfs.of(plmns.as_deref(), locality.as_deref());
        let answer = self.ask_set(&choice.first, query).await;
        let Some(then) = choice.then else { return answer };
        let helps = match &answer {
            Ok((found, _)) => !found.candidates.is_empty(),
            Err(Failure::NotReachable | Failure::Failed) => false,
            Err(_) => true,
        };
        match helps {
            true => answer,
            // That there is nobody near is an answer, too, if the other set has none.
            false => self.ask_set(&then, query).await.or(answer),
        }
    }

    /// The token for an NRF that wants one to be asked, as the request says (`oauth2-requested-services`) or as it has
    /// answered before: this SCP is its consumer then. The key of the token, and the token.
    async fn authorization(&self, query: &DiscoveryQuery) -> Result<Option<(String, HeaderValue)>, Failure> {
        let named = query.nrf();
        // A token of the NRFs that are configured is not for another that a request names.
        let wanted = named.map_or(self.wants_token.get(), |named| named.discovery_wants_token);
        if !wanted {
            return Ok(None);
        }
        let wanted = Wanted {
            consumer: &self.own,
            consumer_type: Some("SCP"),
            target_type: "NRF",
            scope: "nnrf-disc",
            nrf: named.and_then(|named| named.tokens.as_ref()),
            ..Wanted::default()
        };
        match self.tokens.token(&wanted, Instant::now()).await {
            Ok(token) => Ok(Some((wanted.key(), token.value.clone()))),
            Err(error) => Err(Failure::NoToken(error)),
        }
    }

    /// Asks one NRF after the other; the first that answers counts.
    async fn ask_set(&self, nrfs: &Turns, query: &DiscoveryQuery) -> Result<(Rc<Found>, Duration), Failure> {
        let mut token = self.authorization(query).await?;
        let mut failure = Failure::NotReachable;
        for nrf in nrfs.in_turn() {
            let mut answer = self
                .ask_one(nrf, query, token.as_ref().map(|(_, value)| value))
                .await;
            let unauthorized = matches!(answer, Err(Failure::Refused(StatusCode::UNAUTHORIZED, _)));
            if unauthorized && token.is_none() && query.nrf().is_none() {
                // It wants a token to be asked: from now on it is known.
                self.wants_token.set(true);
                token = self.authorization(query).await?;
                answer = self
                    .ask_one(nrf, query, token.as_ref().map(|(_, value)| value))
                    .await;
            }
            match answer {
                Ok(answer) => return Ok(answer),
                Err(refused @ Failure::Refused(..)) => {
                    if let (Some((key, _)), Failure::Refused(StatusCode::UNAUTHORIZED, _)) =
                        (&token, &refused)
                    {
                        self.tokens.forget(key);
                    }
                    return Err(refused);
                }
                // This one did not help, another may.
                Err(other) => {
                    self.metrics.nrf_failures.inc();
                    nrfs.next(nrf);
                    failure = other;
                }
            }
        }
        Err(failure)
    }

    async fn ask_one(
        &self,
        nrf: &TargetApiRoot,
        query: &DiscoveryQuery,
        token: Option<&HeaderValue>,
    ) -> Result<(Rc<Found>, Duration), Failure> {
        let path = format!("{}/nnrf-disc/v1/nf-instances?{}", nrf.prefix, query.as_str());
        let mut request =
            http::Request::get(path).header(ACCEPT, "application/json, application/problem+json");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Body::empty()).map_err(|_| Failure::Failed)?;
        let asked = Instant::now();
        let options = SendOptions {
            deadline: self.settings.timeout.duration(),
            priority: 8,
        };
        let response = self.client.send(&nrf.origin, request, options).await;
        let response = response.map_err(|_| Failure::NotReachable)?;
        let status = response.status();
        let body = response.into_body().into_bytes();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Failure::Failed);
        }
        if status != StatusCode::OK {
            let told = String::from_utf8_lossy(&body).chars().take(300).collect();
            return Err(Failure::Refused(status, told));
        }
        let result = serde_json::from_slice::<SearchResult<'_>>(&body).map_err(|_| Failure::Failed)?;
        let (services, locality) = (query.get("service-names"), query.get("preferred-locality"));
        let wanted: Vec<&str> = services.as_deref().unwrap_or_default().split(',').collect();
        let mut candidates = Vec::new();
        for profile in result.nf_instances {
            let Ok(producer) = Producer::parse(profile.get().as_bytes()) else {
                continue;
            };
            // What is preferred is the SCP's to look at: the NRF answers all that fit (TS 29.510 §6.2.3.2.3.1).
            let near = locality.is_none() || producer.locality.as_deref() == locality.as_deref();
            let producer = Arc::new(producer);
            let services = services_of(&producer, services.is_some().then_some(&wanted[..]));
            candidates.extend(services.iter().map(|one| one.preferred(usize::from(!near))));
        }
        let validity = match candidates.is_empty() {
            true => self.settings.empty_validity.duration(),
            false => Duration::from_secs(result.validity_period).min(self.settings.max_validity.duration()),
        };
        Ok((Rc::new(Found { asked, candidates }), validity))
    }
}

/// A question that this worker asks; whoever waits is told, also when the asker is gone.
struct Question<'a> {
    searcher: &'a Searcher,
    query: &'a DiscoveryQuery,
    asked: Rc<Asked>,
}

impl Question<'_> {
    fn answer(self, answer: Result<(Rc<Found>, Duration), Failure>) -> Result<Rc<Found>, Failure> {
        let answer = answer.map(|(found, validity)| {
            let mut cache = self.searcher.cache.borrow_mut();
            cache.learn(self.query, found.clone(), validity, Instant::now());
            found
        });
        *self.asked.answer.borrow_mut() = Some(answer.clone());
        answer
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let learned = matches!(&*self.asked.answer.borrow(), Some(Ok(_)));
        if !learned {
            self.searcher.cache.borrow_mut().forget(self.query);
        }
        self.searcher.asking.borrow_mut().remove(self.query);
        self.asked.done.notify_waiters();
    }
}

/// The services of a producer that are wanted; all where none is named.
fn services_of(producer: &Arc<Producer>, wanted: Option<&[&str]>) -> Vec<ServiceRef> {
    (0..producer.services.len())
        .filter_map(|position| ServiceRef::new(producer.clone(), position))
        .filter(|one| wanted.is_none_or(|wanted| wanted.contains(&&*one.service().name)))
        .collect()
}
