//! Delegated discovery: one request to the NRF per query, however many requests wait for its answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bounded::Limits;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use nrf_client::Turns;
use routing::network::{Network, NfStatus, Producer, ServiceRef};
use sbi::client::{Client, SendOptions};
use sbi::headers::TargetApiRoot;
use sbi::name::{ACCEPT, AUTHORIZATION, TRACEPARENT};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Fields};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answers::{Answers, Looked, Question};
use super::doubts::Doubts;
use crate::config::{Config, Discovery, Order};
use crate::discovery::{DiscoveryQuery, Found, local};
use crate::events::Metrics;
use crate::nrf_sets::{NotNamed, REDIRECTIONS, Sets, elsewhere};
use crate::security::{Fetcher, TokenError, Wanted};

/// The request that a discovery is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behalf {
    /// How long it can wait; `None`: as long as NRFs may take.
    left: Option<Duration>,
    /// Its trace, which the query at the NRF belongs to (W3C Trace Context, `traceparent`). Of requests that wait for one
    /// answer it is that of the first.
    trace: Option<HeaderValue>,
}

impl Behalf {
    /// A request with these headers that can wait for so long.
    pub(crate) fn of(headers: &Fields, left: Option<Duration>) -> Self {
        let trace = headers.get(TRACEPARENT);
        Self {
            left,
            trace: trace.and_then(|trace| HeaderValue::try_from(trace).ok()),
        }
    }
}

type Trace<'a> = Option<&'a HeaderValue>;

/// Delegated discovery of one worker.
pub(crate) struct Searcher {
    settings: Discovery,
    nrfs: Rc<Sets>,
    client: Client,
    /// Tokens for NRFs that require one.
    tokens: Rc<Fetcher>,
    /// NF instance id of this SCP.
    own: String,
    metrics: Metrics,
    /// Answers shared by all workers.
    answers: Arc<Answers>,
    used: Rc<Used>,
    /// Makes the learner check the NRFs.
    doubts: Arc<Doubts>,
}

/// Answers that a worker has used; they outlive a reload.
struct Used {
    /// Answers with their expiry.
    answers: RefCell<bounded::Cache<DiscoveryQuery, (Arc<Found>, Instant)>>,
    /// Queries in flight, and requests that wait for a query of another request.
    waiting: Cell<usize>,
    /// Whether an NRF has required a token.
    wants_token: Cell<bool>,
    /// Answers from the cached profiles, as of a snapshot of the network.
    local: RefCell<Local>,
    /// When the NRFs of the settings last failed to answer, until one answers.
    silent: Cell<Option<Instant>>,
}

/// Time for which NRFs that have not answered are not asked while another source has producers, and after which an
/// answer that does not hold may be asked for again.
const SILENCE: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(20);

/// Answers from a snapshot of the network.
type Local = (Option<Arc<Network>>, bounded::Cache<DiscoveryQuery, Arc<Found>>);

/// Memory of a profile beside its texts.
const PROFILE: usize = 1_024;

/// Why a discovery failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No NRF answered.
    NotReachable,
    /// All NRFs answered with server errors (5xx).
    Failed,
    /// The NRF refused the query.
    Refused(StatusCode, String),
    /// Too many requests are pending.
    Overflow,
    /// The settings do not allow the NRF that the request names.
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
                .detail("the NRF answered the discovery with a server error"),
            Self::Refused(status, detail) => {
                let cause = match status {
                    StatusCode::BAD_REQUEST => Cause::InvalidDiscoveryParam,
                    _ => Cause::NfDiscoveryFailure,
                };
                Problem::new(cause).detail(format!("the NRF answered the discovery with {status}: {detail}"))
            }
            Self::Overflow => {
                Problem::new(Cause::NfCongestion).detail("too many discoveries are pending at the NRF")
            }
            Self::NotNamed => Problem::new(Cause::NfDiscoveryFailure)
                .detail("this SCP does not query the NRF that the request names")
                .invalid_param("header 3gpp-Sbi-Nrf-Uri", "expected an NRF that this SCP knows"),
            Self::NoToken(TokenError::NotReachable) => {
                Problem::new(Cause::NrfNotReachable).detail(TokenError::NotReachable.to_string())
            }
            Self::NoToken(TokenError::Overflow) => {
                Problem::new(Cause::NfCongestion).detail(TokenError::Overflow.to_string())
            }
            Self::NoToken(error) => Problem::new(Cause::AccessTokenDenied).detail(error.to_string()),
        }
    }
}

/// A query in flight, or a request that waits for one; released on drop.
struct Place(Rc<Used>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl Used {
    fn new(limits: Limits) -> Self {
        Self {
            answers: RefCell::new(bounded::Cache::new(limits)),
            waiting: Cell::new(0),
            wants_token: Cell::new(false),
            local: RefCell::new((None, bounded::Cache::new(limits))),
            silent: Cell::new(None),
        }
    }
}

impl Searcher {
    /// Creates it with the answers of `before`, if the NRFs are the same. `answers` are those of all workers.
    pub(crate) fn new(
        config: &Config,
        client: Client,
        tokens: Rc<Fetcher>,
        metrics: Metrics,
        answers: Arc<Answers>,
        doubts: Arc<Doubts>,
        before: Option<(&Config, &Self)>,
    ) -> Self {
        let settings = &config.discovery;
        let before = before
            .filter(|(before, _)| before.same_nrfs(config))
            .map(|(_, one)| one);
        let limits = settings.limits_of_worker(config.workers);
        let used = before.map_or_else(|| Rc::new(Used::new(limits)), |before| before.used.clone());
        used.answers.borrow_mut().set_limits(limits);
        used.local.borrow_mut().1.set_limits(limits);
        Self {
            settings: settings.clone(),
            nrfs: before.map_or_else(
                || Rc::new(Sets::new(&config.nrf, &config.places)),
                |before| before.nrfs.clone(),
            ),
            client,
            tokens,
            own: config.nf_instance_id.clone(),
            metrics,
            answers,
            used,
            doubts,
        }
    }

    /// Number of answers in the cache of this worker.
    pub(crate) fn remembered(&self) -> usize {
        self.used.answers.borrow().len()
    }

    /// The NRFs for a request to an NRF itself, the current one first.
    pub(crate) fn nrfs_for(&self, query: Option<&DiscoveryQuery>) -> Vec<TargetApiRoot> {
        let get = |name| query.and_then(|query| query.get(name));
        let (plmns, locality) = (get("target-plmn-list"), get("preferred-locality"));
        let choice = self.nrfs.of(plmns.as_deref(), locality.as_deref());
        let then = choice.then.as_ref().map(|then| then.in_turn());
        choice
            .first
            .in_turn()
            .chain(then.into_iter().flatten())
            .cloned()
            .collect()
    }

    /// The producers of a query as far as no NRF needs to be asked: by the cached profiles if they come first, or by an
    /// answer that this worker has used before.
    pub(crate) fn recall(
        &self,
        query: &DiscoveryQuery,
        network: &Arc<Network>,
        now: Instant,
    ) -> Option<Arc<Found>> {
        // Suspended producers alone are none: an NRF may know others.
        let serves = |found: &Found| {
            let mut candidates = found.candidates.iter();
            candidates.any(|one| one.service().status == NfStatus::Registered)
        };
        if self.settings.order == Order::ScpThenNrf
            && query.nrf().is_none()
            && let Some(found) = self.locally(query, network).filter(|found| serves(found))
        {
            self.metrics.discovery_local.inc();
            return Some(found);
        }
        if self.settings.enforce_req_specific_svc_discovery {
            return None;
        }
        let used = self.used.answers.borrow();
        let (found, _) = used.get_if(query, |(_, until)| now < *until)?;
        self.metrics.discovery_hit.inc();
        if found.candidates.is_empty() {
            self.metrics.discovery_empty.inc();
        }
        Some(found.clone())
    }

    /// Finds the producers of a query that [`Searcher::recall`] has not, for a request.
    pub(crate) async fn search(
        self: &Rc<Self>,
        query: &DiscoveryQuery,
        network: &Arc<Network>,
        behalf: &Behalf,
    ) -> Result<Arc<Found>, Failure> {
        let falls_back = self.settings.order != Order::Nrf && query.nrf().is_none();
        // NRFs that did not answer a moment ago do not delay what others can serve meanwhile.
        let was_silent = falls_back && self.is_silent(Instant::now());
        if was_silent && let Some(found) = self.learned(query, network).or_else(|| self.expired(query)) {
            return Ok(found);
        }
        let answer = self.shared_or_asked(query, behalf).await;
        let unanswered = matches!(
            answer,
            Err(Failure::NotReachable | Failure::Failed | Failure::Overflow)
        );
        if unanswered
            && falls_back
            && let Some(found) = self.learned(query, network).or_else(|| self.expired(query))
        {
            return Ok(found);
        }
        match &answer {
            Ok(found) if found.candidates.is_empty() => self.metrics.discovery_empty.inc(),
            Ok(_) => {}
            Err(_) => self.metrics.discovery_failed.inc(),
        }
        answer
    }

    /// Gets an answer again that does not hold since a moment: a producer in it has left, has changed, or cannot be
    /// reached. `None`: the NRFs do not answer, or did not a moment ago.
    pub(crate) async fn renew(
        self: &Rc<Self>,
        query: &DiscoveryQuery,
        since: Option<Instant>,
        behalf: &Behalf,
    ) -> Option<Arc<Found>> {
        let now = Instant::now();
        if self.settings.enforce_req_specific_svc_discovery || self.is_silent(now) {
            return None;
        }
        // Without a change of profiles one answer in `AGAIN`, however many requests find that it does not hold.
        let bound = now.checked_sub(AGAIN)?;
        let oldest = since.map_or(bound, |since| since.min(now).max(bound));
        self.answers.drop_older(query, oldest);
        self.metrics.discovery_renewed.inc();
        self.shared_or_asked(query, behalf).await.ok()
    }

    /// Whether no NRF of the settings answered a moment ago.
    fn is_silent(&self, now: Instant) -> bool {
        let silent = self.used.silent.get();
        silent.is_some_and(|at| now.saturating_duration_since(at) < SILENCE)
    }

    /// The last answer to a query that this worker has used, valid or not.
    fn expired(&self, query: &DiscoveryQuery) -> Option<Arc<Found>> {
        let used = self.used.answers.borrow();
        let (found, _) = used.get_if(query, |(found, _)| !found.candidates.is_empty())?;
        self.metrics.discovery_expired.inc();
        Some(found.clone())
    }

    /// Finds producers among the cached profiles, and counts it. These may differ from the profiles of an NRF that the
    /// request names.
    fn learned(&self, query: &DiscoveryQuery, network: &Arc<Network>) -> Option<Arc<Found>> {
        let found = query.nrf().is_none().then(|| self.locally(query, network))??;
        self.metrics.discovery_local.inc();
        Some(found)
    }

    /// Finds producers among the cached profiles, if any matches.
    fn locally(&self, query: &DiscoveryQuery, network: &Arc<Network>) -> Option<Arc<Found>> {
        let mut known = self.used.local.borrow_mut();
        let is_current = known.0.as_ref().is_some_and(|known| Arc::ptr_eq(known, network));
        if !is_current {
            known.0 = Some(network.clone());
            known.1.clear();
        }
        if let Some(found) = known.1.get(query) {
            return Some(found.clone());
        }
        let candidates = local(query, network);
        let asked = network.made().unwrap_or_else(Instant::now);
        // The snapshot of the network owns their profiles.
        let bytes = size_of_val(candidates.as_slice());
        let found = Found {
            asked,
            candidates,
            bytes,
        };
        let found = (!found.candidates.is_empty()).then(|| Arc::new(found))?;
        known
            .1
            .insert_sized(query.clone(), found.clone(), found.cost(query));
        Some(found)
    }

    /// The answer that another worker has got, or that of an NRF.
    async fn shared_or_asked(
        self: &Rc<Self>,
        query: &DiscoveryQuery,
        behalf: &Behalf,
    ) -> Result<Arc<Found>, Failure> {
        if self.settings.enforce_req_specific_svc_discovery {
            let _place = self.place()?;
            self.metrics.discovery_asked.inc();
            // Boxed, so that the future of a cached answer stays small.
            let asking = Box::pin(self.ask(query, behalf.trace.as_ref()));
            let answer = match behalf.left {
                None => asking.await,
                Some(left) => match tokio::time::timeout(left, asking).await {
                    Ok(answer) => answer,
                    Err(_) => Err(Failure::NotReachable),
                },
            };
            return answer.map(|(found, _)| found);
        }
        let now = Instant::now();
        let (mut awaited, _place) = match self.answers.look(query, now) {
            Looked::Have(answer) => {
                self.metrics.discovery_hit.inc();
                return Ok(self.use_answer(query, answer));
            }
            Looked::Wait(awaited) => {
                let place = self.place()?;
                self.metrics.discovery_waited.inc();
                (awaited, Some(place))
            }
            Looked::Ask(question) => {
                let place = self.place()?;
                self.metrics.discovery_asked.inc();
                let awaited = question.hear();
                self.begin(question, place, behalf.trace.clone());
                (awaited, None)
            }
        };
        let patience = behalf
            .left
            .map_or(self.patience(), |left| left.min(self.patience()));
        let waiting = tokio::time::timeout(patience, awaited.wait_for(Option::is_some));
        let answer = match waiting.await {
            Ok(Ok(answer)) => answer.clone(),
            // The worker with the query has ended, or no NRF answered within the timeout of all of them.
            Ok(Err(_)) | Err(_) => None,
        };
        let answer = answer.unwrap_or(Err(Failure::NotReachable))?;
        Ok(self.use_answer(query, answer))
    }

    /// Caches an answer in this worker.
    fn use_answer(&self, query: &DiscoveryQuery, answer: (Arc<Found>, Instant)) -> Arc<Found> {
        let found = answer.0.clone();
        if answer.1 > Instant::now() {
            let bytes = found.cost(query);
            self.used
                .answers
                .borrow_mut()
                .insert_sized(query.clone(), answer, bytes);
        }
        found
    }

    /// Sends the query in a task of its own: other requests wait for the answer, so it must outlive the request that
    /// began it. It counts in `maxWaiting` until its end, also when that request has timed out.
    fn begin(self: &Rc<Self>, question: Question, place: Place, trace: Option<HeaderValue>) {
        let this = self.clone();
        tokio::task::spawn_local(async move {
            let _place = place;
            let answer = this.ask(question.query(), trace.as_ref()).await;
            question.answer(answer, Instant::now());
        });
    }

    fn place(&self) -> Result<Place, Failure> {
        if self.used.waiting.get() >= self.settings.max_waiting {
            return Err(Failure::Overflow);
        }
        self.used.waiting.set(self.used.waiting.get() + 1);
        Ok(Place(self.used.clone()))
    }

    /// Longest wait for a query in flight: the timeout of each NRF that may be tried.
    fn patience(&self) -> Duration {
        self.settings
            .timeout
            .duration()
            .saturating_mul(u32::try_from(self.nrfs.most().max(1)).unwrap_or(u32::MAX))
    }

    /// Queries the NRF that the request names, or the set for the query.
    async fn ask(&self, query: &DiscoveryQuery, trace: Trace<'_>) -> Result<(Arc<Found>, Duration), Failure> {
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
            return self.ask_set(&nrfs, query, trace).await;
        }
        let answer = self.ask_settings(query, trace).await;
        match &answer {
            Err(Failure::NotReachable | Failure::Failed) => {
                self.used.silent.set(Some(Instant::now()));
                self.doubts.raise();
            }
            _ => self.used.silent.set(None),
        }
        answer
    }

    /// Queries the sets of the settings for the query.
    async fn ask_settings(
        &self,
        query: &DiscoveryQuery,
        trace: Trace<'_>,
    ) -> Result<(Arc<Found>, Duration), Failure> {
        let (plmns, locality) = (query.get("target-plmn-list"), query.get("preferred-locality"));
        let choice = self.nrfs.of(plmns.as_deref(), locality.as_deref());
        let answer = self.ask_set(&choice.first, query, trace).await;
        let Some(then) = choice.then else { return answer };
        let helps = match &answer {
            Ok((found, _)) => !found.candidates.is_empty(),
            Err(Failure::NotReachable | Failure::Failed) => false,
            Err(_) => true,
        };
        match helps {
            true => answer,
            // If the other set does not answer, the empty answer of the preferred set counts.
            false => self.ask_set(&then, query, trace).await.or(answer),
        }
    }

    /// Returns key and value of the token for an NRF that requires one, by the request (`oauth2-requested-services`) or
    /// by an earlier answer. This SCP is the consumer of the token.
    async fn authorization(&self, query: &DiscoveryQuery) -> Result<Option<(String, HeaderValue)>, Failure> {
        let named = query.nrf();
        // A token for the configured NRFs is not valid at another that a request names.
        let wanted = named.map_or(self.used.wants_token.get(), |named| named.discovery_wants_token);
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
        match self.tokens.token(&wanted, Instant::now(), Duration::MAX).await {
            Ok(token) => Ok(Some((wanted.key(), token.value.clone()))),
            Err(error) => Err(Failure::NoToken(error)),
        }
    }

    /// Queries the NRFs in turn; the first answer counts.
    async fn ask_set(
        &self,
        nrfs: &Turns,
        query: &DiscoveryQuery,
        trace: Trace<'_>,
    ) -> Result<(Arc<Found>, Duration), Failure> {
        let mut token = self.authorization(query).await?;
        let mut failure = Failure::NotReachable;
        for nrf in nrfs.in_turn() {
            let mut answer = self
                .ask_one(nrf, query, (token.as_ref().map(|(_, value)| value), trace))
                .await;
            let unauthorized = matches!(answer, Err(Failure::Refused(StatusCode::UNAUTHORIZED, _)));
            if unauthorized && token.is_none() && query.nrf().is_none() {
                // The NRF requires a token: remember it for the next queries.
                self.used.wants_token.set(true);
                token = self.authorization(query).await?;
                answer = self
                    .ask_one(nrf, query, (token.as_ref().map(|(_, value)| value), trace))
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
                // Another NRF may answer.
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
        (token, trace): (Option<&HeaderValue>, Trace<'_>),
    ) -> Result<(Arc<Found>, Duration), Failure> {
        let path = format!("{}/nnrf-disc/v1/nf-instances?{}", nrf.prefix, query.as_str());
        let asked = Instant::now();
        let until = asked + self.settings.timeout.duration();
        let (mut origin, mut path) = (nrf.origin.clone(), path);
        let mut redirections = 0;
        let response = loop {
            let mut request =
                http::Request::get(&path).header(ACCEPT, "application/json, application/problem+json");
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, token);
            }
            if let Some(trace) = trace {
                request = request.header(TRACEPARENT, trace);
            }
            let request = request.body(Body::empty()).map_err(|_| Failure::Failed)?;
            let options = SendOptions {
                deadline: until.saturating_duration_since(Instant::now()),
                priority: 8,
            };
            let response = self.client.send(&origin, request, options).await;
            let response = response.map_err(|_| Failure::NotReachable)?;
            let elsewhere = match redirections < REDIRECTIONS {
                true => elsewhere(&response, &origin),
                false => None,
            };
            match elsewhere {
                Some((there, at)) => (origin, path) = (there, with_question(&at, query)),
                None => break response,
            }
            redirections += 1;
        };
        let status = response.status();
        let body = response.into_body().into_bytes();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Failure::Failed);
        }
        if status != StatusCode::OK {
            let said = String::from_utf8_lossy(&body).chars().take(300).collect();
            return Err(Failure::Refused(status, said));
        }
        let result = serde_json::from_slice::<SearchResult<'_>>(&body).map_err(|_| Failure::Failed)?;
        let (services, locality) = (query.get("service-names"), query.get("preferred-locality"));
        let wanted: Vec<&str> = services
            .as_deref()
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .collect();
        let preferences = local::preferences(query);
        let mut found: Vec<(Vec<u32>, ServiceRef)> = Vec::new();
        let mut memory = 0;
        for profile in result.nf_instances {
            let bytes = profile.get().as_bytes();
            memory += PROFILE + bytes.len() * if preferences.is_some() { 4 } else { 1 };
            // The NRF returns all matching profiles (TS 29.510 §6.2.3.2.3.1); the SCP ranks them by the preferences.
            let parsed = match preferences.is_some() {
                true => Producer::learned(bytes),
                false => Producer::parse(bytes),
            };
            let Ok(producer) = parsed else {
                continue;
            };
            let view = producer.view.as_deref();
            let distances = match preferences.as_ref().zip(view) {
                Some((preferences, view)) => preferences.distances(view, preferences.nearness()),
                // A profile without a view: only its locality is known.
                None => {
                    let near = locality.is_none() || producer.locality.as_deref() == locality.as_deref();
                    vec![u32::from(!near)]
                }
            };
            let producer = Arc::new(producer);
            let services = services_of(&producer, services.is_some().then_some(&wanted[..]));
            found.extend(services.into_iter().map(|one| (distances.clone(), one)));
        }
        let candidates = local::ranked(&found);
        let validity = match candidates.is_empty() {
            true => self.settings.empty_validity.duration(),
            false => Duration::from_secs(result.validity_period).min(self.settings.max_validity.duration()),
        };
        let found = Found {
            asked,
            candidates,
            bytes: memory,
        };
        Ok((Arc::new(found), validity))
    }
}

/// Path of a redirection, with the query added if `Location` lacks it.
fn with_question(path: &PathAndQuery, query: &DiscoveryQuery) -> String {
    match path.query() {
        Some(_) => path.to_string(),
        None => format!("{}?{}", path.path(), query.as_str()),
    }
}

/// The requested services of a producer; all if the query names none.
fn services_of(producer: &Arc<Producer>, wanted: Option<&[&str]>) -> Vec<ServiceRef> {
    (0..producer.services.len())
        .filter_map(|position| ServiceRef::new(producer.clone(), position))
        .filter(|one| wanted.is_none_or(|wanted| wanted.contains(&&*one.service().name)))
        .collect()
}
