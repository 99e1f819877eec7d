//! Work for a change that does not need the writer: parsing and patching of received bodies, compiling of their expressions.
//!
//! Other threads do it, so that the writer continues with the changes of other NFs meanwhile. Small and large bodies have
//! one queue each, so that a usual registration does not wait behind many large ones. Changes of the same NF or
//! subscription wait for it, as they wait for a commit.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use model::pattern;
use model::{NfInstanceId, NfProfile};
use registry::Entry;
use sbi::json::patch;
use sbi::problem::{Cause, Problem};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

use super::faults::{is_excess, problem_of};
use super::subscriptions::{OWNER, validity_of};
use super::{Key, Registrar, Reply, Step};
use crate::config::Config;
use crate::events::Event;
use crate::screening::Screening;
use crate::subscriptions::Subscription;

/// How a change goes on, on the writer, when the work is done.
pub(super) type Next = Box<dyn FnOnce(&mut Registrar) -> Result<Step, Problem> + Send>;
/// The work.
pub(super) type Work = Box<dyn FnOnce() -> Next + Send>;

impl Step {
    /// Runs `work` on `bytes` of text on another thread, then `then` with its result on the writer.
    pub(super) fn prepare<T: Send + 'static>(
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut Registrar, T) -> Result<Step, Problem> + Send + 'static,
    ) -> Self {
        let work = Box::new(move || -> Next {
            let made = work();
            Box::new(move |registrar| then(registrar, made))
        });
        Self::Prepare { bytes, work }
    }
}

/// A change whose work is done.
pub(super) struct Prepared {
    pub(super) key: Key,
    pub(super) reply: Reply,
    /// How it goes on; `None` when the work has failed.
    pub(super) next: Option<Next>,
}

/// Changes that are being prepared, in the order in which they came.
pub(super) struct Preparing {
    all: FuturesUnordered<Pin<Box<dyn Future<Output = Prepared>>>>,
    /// One small and one large piece of work at a time.
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// Longest small text, in bytes: several times a large profile of practice.
const SMALL: usize = 64 * 1024;

impl Default for Preparing {
    fn default() -> Self {
        Self {
            all: FuturesUnordered::new(),
            small: Arc::new(Semaphore::new(1)),
            large: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Preparing {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn push(&mut self, key: Key, reply: Reply, bytes: usize, work: Work) {
        let turn = if bytes <= SMALL { &self.small } else { &self.large };
        let turn = turn.clone();
        self.all.push(Box::pin(async move {
            // The semaphore is never closed.
            let _mine = turn.acquire_owned().await;
            let next = match tokio::task::spawn_blocking(work).await {
                Ok(next) => Some(next),
                Err(error) => {
                    tracing::error!(%error, "a change could not be prepared");
                    None
                }
            };
            Prepared { key, reply, next }
        }));
    }

    /// Adds a read of the store.
    pub(super) fn load(&mut self, key: Key, reply: Reply, read: Pin<Box<dyn Future<Output = Next>>>) {
        self.all.push(Box::pin(async move {
            let next = Some(read.await);
            Prepared { key, reply, next }
        }));
    }
}

impl Stream for Preparing {
    type Item = Prepared;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Prepared>> {
        Pin::new(&mut self.all).poll_next(cx)
    }
}

/// A refusal and the event that counts it.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) problem: Problem,
    pub(super) event: Option<Event>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let event = is_excess(&problem).then_some(Event::TooLarge);
        Self { problem, event }
    }
}

/// Settings for the work.
pub(super) struct Rules {
    pub(super) config: Arc<Config>,
    pub(super) screening: Arc<Screening>,
}

impl Rules {
    /// Reads a profile.
    pub(super) fn profile(&self, body: &[u8]) -> Result<Entry, Refused> {
        let timer = |profile: &NfProfile| self.config.heart_beat.assign(profile.heart_beat_timer);
        let entry = Entry::parse_within(body, self.config.patterns.limits(), timer).map_err(|fault| {
            let event = fault.exceeds_patterns().then_some(Event::TooManyPatterns);
            Refused {
                problem: problem_of(fault),
                event,
            }
        })?;
        if let Err((place, reason)) = self.screening.check(&entry.profile) {
            let problem = Problem::new(Cause::Forbidden)
                .detail(format!("screened out: {reason}"))
                .invalid_param(place, reason);
            let event = Some(Event::ScreenedOut);
            return Err(Refused { problem, event });
        }
        Ok(entry)
    }

    /// Applies a patch to a profile.
    pub(super) fn patched(&self, before: &Entry, body: &[u8]) -> Result<Entry, Refused> {
        let limits = self.config.patches.limits(self.config.max_profile_size);
        let operations = patch::operations(body, limits.operations)?;
        let document = before.document();
        // The text is UTF-8: it was parsed as JSON.
        let document = String::from_utf8_lossy(&document);
        let patched = patch::apply(&document, &operations, &limits).map_err(unpatched)?;
        let entry = self.profile(patched.as_bytes())?;
        if entry.id != before.id || entry.nf_type() != before.nf_type() {
            return Err(Problem::new(Cause::ModificationNotAllowed)
                .detail("nfInstanceId and nfType of a registered NF cannot be changed")
                .into());
        }
        Ok(entry)
    }

    /// Reads a subscription; its validity is the longest allowed, unless it requests a shorter one. Without
    /// `reqNfInstanceId` the subscription gets the authenticated instance `proved` of its sender.
    pub(super) fn subscription(
        &self,
        id: &str,
        body: &[u8],
        proved: Option<&str>,
    ) -> Result<Subscription, Refused> {
        let mut document: serde_json::Value = sbi::json::parse_slice(body)?;
        if let (Some(proved), Some(members)) = (proved, document.as_object_mut())
            && members.get(OWNER).is_none_or(serde_json::Value::is_null)
        {
            members.insert(OWNER.to_owned(), proved.to_ascii_lowercase().into());
        }
        self.subscription_of(id, document)
    }

    /// Applies a patch to a subscription.
    pub(super) fn patched_subscription(
        &self,
        before: &Subscription,
        body: &[u8],
    ) -> Result<Subscription, Refused> {
        let mut document = serde_json::Value::Object(before.document.clone());
        let limits = self.config.patches.limits(self.config.subscriptions.max_size);
        sbi::json::apply_patch(&mut document, body, &limits)?;
        let mut after = self.subscription_of(&before.id, document)?;
        after.source = before.source;
        Ok(after)
    }

    fn subscription_of(&self, id: &str, document: serde_json::Value) -> Result<Subscription, Refused> {
        let until = self.bounded(validity_of(&document)?);
        let limits = self.config.patterns.limits();
        let (read, exceeded) = pattern::within(limits, || Subscription::parse(document, id, until));
        let subscription = read?;
        if exceeded {
            let expected = pattern::PatternFault::Excess(limits.patterns, limits.bytes).to_string();
            let problem = Problem::new(Cause::OptionalIeIncorrect)
                .detail("the subscription has more regular expressions than this NRF takes")
                .invalid_param("/subscrCond", expected);
            let event = Some(Event::TooManyPatterns);
            return Err(Refused { problem, event });
        }
        let uri = &subscription.target.origin;
        if let Err(expected) = self.config.destinations().check(uri) {
            let problem = Problem::new(Cause::MandatoryIeIncorrect)
                .detail(format!("notifications are not sent to {uri}"))
                .invalid_param("/nfStatusNotificationUri", expected);
            let event = Some(Event::TargetDenied);
            return Err(Refused { problem, event });
        }
        Ok(subscription)
    }

    fn bounded(&self, wanted: Option<OffsetDateTime>) -> OffsetDateTime {
        let now = OffsetDateTime::now_utc();
        let longest = now + self.config.subscriptions.max_validity.duration();
        // The NRF ignores a `validityTime` in the past and assigns its own (TS 29.510 §5.2.2.5.2).
        wanted
            .filter(|wanted| *wanted > now)
            .map_or(longest, |wanted| wanted.min(longest))
    }
}

/// Whether an NF is registered with this set or one that is followed.
pub(super) fn is_registered(registrar: &Registrar, id: Option<NfInstanceId>) -> bool {
    id.is_some_and(|id| registrar.published.load().get(&id).is_some())
}

/// The problem of a patch that does not apply. One that is sound and does not fit the profile as it is conflicts with it
/// (RFC 5789 §2.2, TS 29.510 table 6.1.3.3.3.3-3).
fn unpatched(fault: patch::PatchFault) -> Problem {
    let conflicts = fault.blame == patch::Blame::Conflict;
    let problem = fault.clone().into_problem();
    match (conflicts, problem.details().invalid_params.first()) {
        (true, Some(place)) => Problem::new(Cause::Conflict)
            .detail(fault.to_string())
            .invalid_param(place.param.clone(), fault.expected),
        _ => problem,
    }
}
