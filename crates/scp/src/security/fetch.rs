//! Requests of access tokens on behalf of consumers (TS 29.510 §5.4.2, §6.3.5.2.2).

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::{HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sbi::Body;
use sbi::client::{Client, SendOptions};
use sbi::headers::{TargetApiRoot, names};
use sbi::name::{ACCEPT, CONTENT_TYPE, TRACEPARENT};
use serde::Deserialize;
use telemetry::Registry;
use telemetry::metrics::Counter;

use super::TOKENS;
use super::tokens::{Looked, Outcome, Ticket, Token, TokenError, TokenStore};
use crate::config::{Config, Tokens};
use crate::nrf_sets::{Choice, NotNamed, REDIRECTIONS, Sets, elsewhere};

/// What is escaped in a form beside what URLs need.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Life of a token without `expires_in`, in seconds.
const DEFAULT_LIFE_SECONDS: u64 = 30;

/// Longest key of a token, in bytes; usual ones have 200.
const LONGEST_KEY: usize = 2_048;

/// Proof of the identity of a consumer. A token fetched for one consumer is not used for another that only claims the
/// same identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Checked by this SCP, or this SCP itself.
    #[default]
    Checked,
    /// Claimed by the consumer: bound to the source of its requests and to its assertion, which the NRF checks.
    Said {
        /// See [`crate::protection::source`].
        source: u64,
        /// Hash of its assertion, 0 without one.
        shown: u64,
    },
}

/// Subject of a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// NF instance id of the consumer.
    pub(crate) consumer: &'a str,
    /// Proof of that identity.
    pub(crate) proof: Proof,
    pub(crate) consumer_type: Option<&'a str>,
    pub(crate) target_type: &'a str,
    pub(crate) target_instance: Option<&'a str>,
    pub(crate) target_set: Option<&'a str>,
    pub(crate) target_service_set: Option<&'a str>,
    /// The first network of the discovery's `target-plmn-list`, as JSON.
    pub(crate) target_plmn: Option<&'a str>,
    pub(crate) scope: &'a str,
    /// JSON lists, as discovery parameters have them.
    pub(crate) requester_slices: Option<&'a str>,
    pub(crate) target_slices: Option<&'a str>,
    pub(crate) requester_plmns: Option<&'a str>,
    /// The NRF that the request names for tokens.
    pub(crate) nrf: Option<&'a TargetApiRoot>,
    /// Locality of the producer, if it has its own NRFs for tokens.
    pub(crate) near: Option<&'a str>,
    /// The consumer's assertion, forwarded to the NRF (TS 33.501 §13.4.1.3.2).
    pub(crate) assertion: Option<sbi::Value<'a>>,
    /// The trace of the request that needs it, which the query at the NRF belongs to.
    pub(crate) trace: Option<sbi::Value<'a>>,
}

impl Wanted<'_> {
    fn fields(&self) -> [(&'static str, &str); 11] {
        [
            ("nfInstanceId", self.consumer),
            ("nfType", self.consumer_type.unwrap_or_default()),
            ("targetNfType", self.target_type),
            ("targetNfInstanceId", self.target_instance.unwrap_or_default()),
            ("targetNfSetId", self.target_set.unwrap_or_default()),
            (
                "targetNfServiceSetId",
                self.target_service_set.unwrap_or_default(),
            ),
            ("targetPlmn", self.target_plmn.unwrap_or_default()),
            ("scope", self.scope),
            ("requesterSnssaiList", self.requester_slices.unwrap_or_default()),
            ("targetSnssaiList", self.target_slices.unwrap_or_default()),
            ("requesterPlmnList", self.requester_plmns.unwrap_or_default()),
        ]
    }

    /// The fields of a key, by name: what a page shows of a token.
    pub(crate) fn shown(key: &str) -> impl Iterator<Item = (&'static str, &str)> {
        let names = Wanted::default().fields().map(|(name, _)| name);
        names
            .into_iter()
            .zip(key.split('\n'))
            .filter(|(_, value)| !value.is_empty())
    }

    /// Key of the token.
    pub(crate) fn key(&self) -> String {
        let mut key = String::with_capacity(160);
        for (_, value) in self.fields() {
            key.push_str(value);
            key.push('\n');
        }
        if let Proof::Said { source, shown } = self.proof {
            let _ = writeln!(key, "{source:x} {shown:x}");
        }
        // The same from another NRF is another token.
        key.push_str(self.near.unwrap_or_default());
        if let Some(nrf) = self.nrf {
            let _ = write!(key, "\n{nrf}");
        }
        key
    }

    /// The form of `AccessTokenReq`.
    fn form(&self) -> String {
        let mut form = "grant_type=client_credentials".to_owned();
        for (name, value) in self.fields() {
            if value.is_empty() {
                continue;
            }
            let list = name.ends_with("List") && !value.starts_with('[');
            let value = match list {
                true => format!("[{value}]"),
                false => value.to_owned(),
            };
            form.push('&');
            form.push_str(name);
            form.push('=');
            form.extend(utf8_percent_encode(&value, ESCAPED));
        }
        form
    }
}

/// Token client of one worker.
pub(crate) struct Fetcher {
    settings: Tokens,
    store: Arc<TokenStore>,
    nrfs: Rc<Sets>,
    client: Client,
    /// Tokens this worker has used.
    known: Rc<RefCell<AHashMap<Box<str>, Arc<Token>>>>,
    counts: Counts,
}

/// Headers of the request that needs a token, which the query for it has as well.
type Passed<'a> = [(sbi::Name<'a>, Option<&'a HeaderValue>); 2];

struct Counts {
    cached: Counter,
    fetched: Counter,
    refreshed: Counter,
    waited: Counter,
    refused: Counter,
    failed: Counter,
    overflow: Counter,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NotGranted {
    error: String,
    error_description: String,
}

impl Fetcher {
    /// Creates it with the tokens of `before`, if the NRFs are the same.
    pub(crate) fn new(
        config: &Config,
        store: Arc<TokenStore>,
        client: Client,
        registry: &Registry,
        before: Option<(&Config, &Self)>,
    ) -> Self {
        let before = before
            .filter(|(before, _)| before.same_nrfs(config))
            .map(|(_, one)| one);
        let outcomes = registry.counters(&TOKENS);
        Self {
            settings: config.security.tokens.clone(),
            store,
            nrfs: before.map_or_else(
                || Rc::new(Sets::new(&config.nrf, &config.places)),
                |before| before.nrfs.clone(),
            ),
            client,
            known: before.map(|before| before.known.clone()).unwrap_or_default(),
            counts: Counts {
                cached: outcomes.get(&["cached"]),
                fetched: outcomes.get(&["fetched"]),
                refreshed: outcomes.get(&["refreshed"]),
                waited: outcomes.get(&["waited"]),
                refused: outcomes.get(&["refused"]),
                failed: outcomes.get(&["failed"]),
                overflow: outcomes.get(&["overflow"]),
            },
        }
    }

    /// Whether the SCP uses NRFs that requests name.
    pub(crate) fn heeds_names(&self) -> bool {
        self.nrfs.heeds_names()
    }

    /// Whether this locality has its own NRFs for tokens.
    pub(crate) fn serves(&self, locality: &str) -> bool {
        self.nrfs.serves(locality)
    }

    /// Returns the token for a request; waits at most `left`. Consumers choose the key, and refusals are cached as
    /// well: for a key above `LONGEST_KEY` no NRF is queried.
    pub(crate) async fn token(self: &Rc<Self>, wanted: &Wanted<'_>, now: Instant, left: Duration) -> Outcome {
        let key = wanted.key();
        if key.len() > LONGEST_KEY {
            self.counts.refused.inc();
            let why =
                format!("invalid_request: the parameters of the token take more than {LONGEST_KEY} bytes");
            return Err(TokenError::Refused(StatusCode::BAD_REQUEST, why));
        }
        if let Some(token) = self
            .known
            .borrow()
            .get(key.as_str())
            .filter(|token| now < token.refresh)
        {
            self.counts.cached.inc();
            return Ok(token.clone());
        }
        let mut pending = match self.store.look(&key, now) {
            Looked::Have(token) => {
                self.counts.cached.inc();
                return Ok(self.remember(key, token));
            }
            Looked::Refresh(token, ticket) => {
                self.counts.refreshed.inc();
                self.begin(ticket, wanted);
                return Ok(token);
            }
            Looked::Refused(error) => {
                self.counts.refused.inc();
                return Err(error);
            }
            Looked::Full => {
                self.counts.overflow.inc();
                return Err(TokenError::Overflow);
            }
            Looked::Wait(pending) => {
                self.counts.waited.inc();
                pending
            }
            Looked::Fetch(ticket) => {
                self.counts.fetched.inc();
                let pending = ticket.hear();
                self.begin(ticket, wanted);
                pending
            }
        };
        let waiting = tokio::time::timeout(self.patience().min(left), pending.wait_for(Option::is_some));
        let outcome = match waiting.await {
            Ok(Ok(outcome)) => outcome.clone(),
            // The fetching worker has ended, or no NRF answered within the timeout of all of them.
            Ok(Err(_)) | Err(_) => None,
        };
        match outcome.unwrap_or(Err(TokenError::NotReachable)) {
            Ok(token) => Ok(self.remember(key, token)),
            Err(error) => {
                self.counts.failed.inc();
                Err(error)
            }
        }
    }

    /// A producer has refused the token of this key.
    pub(crate) fn forget(&self, key: &str) {
        self.known.borrow_mut().remove(key);
        self.store.forget(key);
    }

    fn remember(&self, key: String, token: Arc<Token>) -> Arc<Token> {
        let mut known = self.known.borrow_mut();
        if known.len() >= self.settings.cache_size {
            // The store still has them; tokens in use are cached again.
            known.clear();
        }
        known.insert(key.into(), token.clone());
        token
    }

    /// Longest wait for a fetch: the timeout of each NRF that may be tried.
    fn patience(&self) -> Duration {
        let count = u32::try_from(self.nrfs.most().max(1)).unwrap_or(u32::MAX);
        self.settings.timeout.duration().saturating_mul(count)
    }

    /// Fetches in a task of its own: other requests wait for it, so it must outlive the request that began it.
    fn begin(self: &Rc<Self>, ticket: Ticket, wanted: &Wanted<'_>) {
        let (this, form) = (self.clone(), wanted.form());
        let header = |value: Option<sbi::Value<'_>>| HeaderValue::try_from(value?).ok();
        let (assertion, trace) = (header(wanted.assertion), header(wanted.trace));
        let named = wanted.nrf.map(|root| this.nrfs.named(root, Instant::now()));
        let choice = match named {
            Some(named) => named.map(|first| Choice { first, then: None }),
            None => Ok(this.nrfs.of(wanted.target_plmn, wanted.near)),
        };
        tokio::task::spawn_local(async move {
            let outcome = match choice {
                Ok(choice) => {
                    let headers = [
                        (names::CLIENT_CREDENTIALS, assertion.as_ref()),
                        (TRACEPARENT, trace.as_ref()),
                    ];
                    this.ask(&form, &headers, &choice).await
                }
                Err(NotNamed::Refused) => Err(TokenError::Refused(
                    StatusCode::FORBIDDEN,
                    "this SCP does not query the NRF that the request names".to_owned(),
                )),
                Err(NotNamed::Full) => Err(TokenError::NotReachable),
            };
            if let Err(error) = &outcome {
                tracing::debug!(%error, "no access token");
            }
            this.store.finish(ticket, outcome, Instant::now());
        });
    }

    /// Queries the NRFs in turn; the first answer counts.
    async fn ask(&self, form: &str, headers: &Passed<'_>, choice: &Choice) -> Outcome {
        for nrfs in std::iter::once(&choice.first).chain(&choice.then) {
            for nrf in nrfs.in_turn() {
                match self.ask_one(nrf, form, headers).await {
                    Some(outcome) => return outcome,
                    None => nrfs.next(nrf),
                }
            }
        }
        Err(TokenError::NotReachable)
    }

    /// Queries one NRF; `None`: no usable answer, another NRF may have one.
    async fn ask_one(&self, nrf: &TargetApiRoot, form: &str, headers: &Passed<'_>) -> Option<Outcome> {
        let until = Instant::now() + self.settings.timeout.duration();
        let (mut origin, mut path) = (nrf.origin.clone(), format!("{}/oauth2/token", nrf.prefix));
        let mut redirections = 0;
        let response = loop {
            let mut request = http::Request::post(&path)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header(ACCEPT, "application/json");
            for (name, value) in headers {
                if let Some(value) = value {
                    request = request.header(*name, *value);
                }
            }
            let request = request.body(Body::from(form.to_owned())).ok()?;
            let options = SendOptions {
                deadline: until.saturating_duration_since(Instant::now()),
                priority: 8,
            };
            let response = self.client.send(&origin, request, options).await.ok()?;
            let elsewhere = match redirections < REDIRECTIONS {
                true => elsewhere(&response, &origin),
                false => None,
            };
            match elsewhere {
                Some((there, at)) => (origin, path) = (there, at.to_string()),
                None => break response,
            }
            redirections += 1;
        };
        let now = Instant::now();
        let status = response.status();
        let body = response.into_body().into_bytes();
        if status.is_server_error() {
            return None;
        }
        if status != StatusCode::OK {
            let refusal: NotGranted = serde_json::from_slice(&body).unwrap_or_default();
            let why = format!("{} {}", refusal.error, refusal.error_description);
            let why = why.trim().chars().take(300).collect();
            return Some(Err(TokenError::Refused(status, why)));
        }
        let granted: Granted = serde_json::from_slice(&body).ok()?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", granted.access_token)).ok()?;
        value.set_sensitive(true);
        // Ten years at most, so that the instant cannot overflow.
        let seconds = granted
            .expires_in
            .unwrap_or(DEFAULT_LIFE_SECONDS)
            .min(86_400 * 3_650);
        let before = |period: settings::Period| {
            let left = Duration::from_secs(seconds).saturating_sub(period.duration());
            now + left
        };
        let ends = before(self.settings.margin);
        let latest = before(self.settings.refresh_before);
        let spread = rand::random::<f64>();
        let refresh = refresh_at(now, Duration::from_secs(seconds), latest, spread).min(ends);
        Some(Ok(Arc::new(Token { value, ends, refresh })))
    }
}

/// Returns when a token granted `now` for `lifetime` is refreshed. Tokens that end at the same time are refreshed at
/// different times: `spread`, 0 to 1, is the part of a tenth of the lifetime by which this one is earlier than `latest`.
fn refresh_at(now: Instant, lifetime: Duration, latest: Instant, spread: f64) -> Instant {
    let ahead = (lifetime / 10).mul_f64(spread.clamp(0.0, 1.0));
    let refresh = latest.checked_sub(ahead).unwrap_or(now);
    // A token shorter than `refreshBefore` would otherwise be refreshed at every request.
    refresh.max(now + lifetime / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens that end at the same time are not refreshed at the same time.
    #[test]
    fn tokens_that_end_together_are_refreshed_one_after_the_other() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let latest = now + hour - Duration::from_secs(60);
        let mut at: Vec<Instant> = (0..=100)
            .map(|part| refresh_at(now, hour, latest, f64::from(part) / 100.0))
            .collect();
        at.sort_unstable();
        at.dedup();
        assert_eq!(at.len(), 101);
        assert_eq!(at.last(), Some(&latest));
        assert_eq!(at[0], latest - hour / 10);
        // A short one is used for half of its time.
        let short = Duration::from_secs(10);
        assert_eq!(refresh_at(now, short, now, 1.0), now + short / 2);
    }

    #[test]
    fn the_form_names_what_is_known() {
        let wanted = Wanted {
            consumer: "4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
            consumer_type: Some("AMF"),
            target_type: "UDM",
            scope: "nudm-sdm",
            target_slices: Some("{\"sst\":1}"),
            ..Wanted::default()
        };
        assert_eq!(
            wanted.form(),
            "grant_type=client_credentials&nfInstanceId=4947a69a-f61b-4bc1-b9da-47c9c5d14b64&nfType=AMF\
             &targetNfType=UDM&scope=nudm-sdm&targetSnssaiList=%5B%7B%22sst%22%3A1%7D%5D"
        );
        let other = Wanted {
            target_instance: Some("x"),
            ..wanted.clone()
        };
        let key = wanted.key();
        let shown: Vec<_> = Wanted::shown(&key).map(|(name, _)| name).collect();
        assert_eq!(
            shown,
            [
                "nfInstanceId",
                "nfType",
                "targetNfType",
                "scope",
                "targetSnssaiList"
            ]
        );
        assert_ne!(wanted.key(), other.key());
        let said = |source, shown| {
            let proof = Proof::Said { source, shown };
            let wanted = Wanted {
                proof,
                ..wanted.clone()
            };
            wanted.key()
        };
        assert_ne!(said(1, 0), wanted.key());
        assert_ne!(said(1, 0), said(2, 0));
        assert_ne!(said(1, 0), said(1, 7));
    }
}
