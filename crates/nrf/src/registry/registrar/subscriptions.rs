//! Changes of subscriptions.

use std::sync::Arc;

use sbi::problem::{Cause, Problem};
use store::{Batch, Condition};
use time::OffsetDateTime;

use super::faults::no_subscription;
use super::{Done, Effect, Registrar, Step};
use crate::events::Event;
use crate::registry::SubscriptionRecord;
use crate::subscriptions::Subscription;

/// A change of a subscription that is on its way to the disk.
#[derive(Debug)]
pub(super) enum SubscriptionEffect {
    /// There is a new one.
    Made(Arc<Subscription>),
    /// One has changed.
    Changed(Arc<Subscription>),
    /// One is gone.
    Ended(String),
}

impl Registrar {
    pub(super) fn subscribe(&mut self, id: &str, body: &[u8]) -> Result<Step, Problem> {
        if self.book.len() + self.subscribing >= self.config.subscriptions.max {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("as many subscriptions exist as this NRF takes (subscriptions.max)"));
        }
        let document: serde_json::Value = sbi::json::parse_slice(body)?;
        let until = self.bounded(validity_of(&document)?);
        let subscription = Arc::new(Subscription::parse(document, id, until)?);
        self.subscribing += 1;
        Ok(self.keep_subscription(SubscriptionEffect::Made(subscription.clone()), &subscription))
    }

    pub(super) fn patch_subscription(&mut self, id: &str, body: &[u8]) -> Result<Step, Problem> {
        let before = self.book.get(id).ok_or_else(|| no_subscription(id))?;
        let mut document = serde_json::Value::Object(before.document.clone());
        sbi::json::apply_patch(&mut document, body)?;
        let until = self.bounded(validity_of(&document)?);
        let subscription = Arc::new(Subscription::parse(document, id, until)?);
        Ok(self.keep_subscription(SubscriptionEffect::Changed(subscription.clone()), &subscription))
    }

    pub(super) fn unsubscribe(&mut self, id: String) -> Result<Step, Problem> {
        if self.book.get(&id).is_none() {
            return Err(no_subscription(&id));
        }
        let mut batch = Batch::default();
        batch.delete(&self.subscriptions, id.as_bytes(), Condition::Always);
        let effect = Effect::Subscription(SubscriptionEffect::Ended(id));
        Ok(Step::Commit(self.store.commit(batch), effect))
    }

    fn keep_subscription(&self, effect: SubscriptionEffect, subscription: &Subscription) -> Step {
        let document = serde_json::to_vec(&subscription.document)
            .unwrap_or_default()
            .into();
        let record = SubscriptionRecord {
            id: subscription.id.clone(),
            document,
        };
        let mut batch = Batch::default();
        batch.put(&self.subscriptions, &record, Condition::Always);
        Step::Commit(self.store.commit(batch), Effect::Subscription(effect))
    }

    /// A change could not be made durable: it has not happened.
    pub(super) fn subscription_unkept(&mut self, effect: &SubscriptionEffect) {
        self.subscribing -= usize::from(matches!(effect, SubscriptionEffect::Made(_)));
    }

    /// A change is durable.
    pub(super) fn subscription_kept(&mut self, effect: SubscriptionEffect) -> Done {
        self.subscription_unkept(&effect);
        match effect {
            SubscriptionEffect::Made(subscription) => {
                self.book.put(subscription.clone());
                self.counters.count(Event::Subscribed);
                Done::Subscribed(subscription)
            }
            SubscriptionEffect::Changed(subscription) => {
                self.book.put(subscription.clone());
                Done::SubscriptionChanged(subscription)
            }
            SubscriptionEffect::Ended(id) => {
                self.book.remove(&id);
                self.counters.count(Event::Unsubscribed);
                Done::Removed
            }
        }
    }

    fn bounded(&self, wanted: Option<OffsetDateTime>) -> OffsetDateTime {
        let now = OffsetDateTime::now_utc();
        let longest = now + self.config.subscriptions.max_validity.duration();
        // A time that has passed is no wish: the NRF assigns one of its own (TS 29.510 §5.2.2.5.2).
        wanted
            .filter(|wanted| *wanted > now)
            .map_or(longest, |wanted| wanted.min(longest))
    }
}

/// A subscription as the store has it, if it can still be read.
pub(super) fn parse_stored(id: &str, document: &[u8]) -> Option<Subscription> {
    let document: serde_json::Value = serde_json::from_slice(document).ok()?;
    let until = validity_of(&document).ok()??;
    Subscription::parse(document, id, until).ok()
}

fn validity_of(document: &serde_json::Value) -> Result<Option<OffsetDateTime>, Problem> {
    let Some(value) = document.get("validityTime").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let parsed = value
        .as_str()
        .and_then(|text| OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok());
    parsed.map(Some).ok_or_else(|| {
        Problem::new(Cause::OptionalIeIncorrect)
            .invalid_param("/validityTime", "expected a date and time as in RFC 3339")
    })
}
