//! Changes of subscriptions.

use std::sync::Arc;

use sbi::identity::Actor;
use sbi::problem::{Cause, Problem};
use store::{Batch, Condition};
use time::OffsetDateTime;

use super::faults::no_subscription;
use super::{Done, Effect, Registrar, Step};
use crate::events::Event;
use crate::registry::SubscriptionRecord;
use crate::subscriptions::Subscription;

/// The member that names the subscriber (TS 29.510 §6.1.6.2.16).
const OWNER: &str = "reqNfInstanceId";

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
    pub(super) fn subscribe(&mut self, id: &str, body: &[u8], by: &Actor) -> Result<Step, Problem> {
        if self.book.len() + self.subscribing >= self.config.subscriptions.max {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("as many subscriptions exist as this NRF takes (subscriptions.max)"));
        }
        let mut document: serde_json::Value = sbi::json::parse_slice(body)?;
        self.own(&mut document, by)?;
        let until = self.bounded(validity_of(&document)?);
        let subscription = Arc::new(Subscription::parse(document, id, until)?);
        self.subscribing += 1;
        Ok(self.keep_subscription(SubscriptionEffect::Made(subscription.clone()), &subscription))
    }

    pub(super) fn patch_subscription(&mut self, id: &str, body: &[u8], by: &Actor) -> Result<Step, Problem> {
        let before = self.book.get(id).ok_or_else(|| no_subscription(id))?;
        self.check_owner(before, by)?;
        let mut document = serde_json::Value::Object(before.document.clone());
        sbi::json::apply_patch(&mut document, body)?;
        if document.get(OWNER) != before.document.get(OWNER) {
            return Err(Problem::new(Cause::ModificationNotAllowed)
                .detail("the subscriber of a subscription cannot be changed")
                .invalid_param("/reqNfInstanceId", "expected what it was"));
        }
        let until = self.bounded(validity_of(&document)?);
        let subscription = Arc::new(Subscription::parse(document, id, until)?);
        Ok(self.keep_subscription(SubscriptionEffect::Changed(subscription.clone()), &subscription))
    }

    /// Ends a subscription for somebody, or because its time is over.
    pub(super) fn unsubscribe(&mut self, id: String, by: Option<&Actor>) -> Result<Step, Problem> {
        let known = self.book.get(&id).ok_or_else(|| no_subscription(&id))?;
        if let Some(by) = by {
            self.check_owner(known, by)?;
        }
        let mut batch = Batch::default();
        batch.delete(&self.subscriptions, id.as_bytes(), Condition::Always);
        let effect = Effect::Subscription(SubscriptionEffect::Ended(id));
        Ok(Step::Commit(self.store.commit(batch), effect))
    }

    /// A subscription is its subscriber's: a subscriber that has proved who it is is named in it, and none names
    /// another.
    fn own(&self, document: &mut serde_json::Value, by: &Actor) -> Result<(), Problem> {
        let named = document.get(OWNER).filter(|named| !named.is_null());
        let outcome = match (named.and_then(serde_json::Value::as_str), by.instance()) {
            (Some(named), _) => by.may_act_for(named),
            (None, Some(proved)) if named.is_none() && document.is_object() => {
                document[OWNER] = proved.to_ascii_lowercase().into();
                Ok(())
            }
            (None, _) => by.may_change(None),
        };
        outcome.inspect_err(|_| self.counters.count(Event::IdentityRefused))
    }

    /// Whether somebody may change or end a subscription: its subscriber may.
    fn check_owner(&self, known: &Subscription, by: &Actor) -> Result<(), Problem> {
        let owner = known.document.get(OWNER).and_then(serde_json::Value::as_str);
        let outcome = by.may_change(owner);
        outcome.inspect_err(|_| self.counters.count(Event::IdentityRefused))
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
