//! Changes of subscriptions.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use model::NfInstanceId;
use registry::SubscriptionRecord;
use sbi::identity::Actor;
use sbi::problem::{Cause, Problem};
use store::Batch;
use time::OffsetDateTime;

use super::faults::no_subscription;
use super::prepare::is_registered;
use super::{Done, Effect, Key, Registrar, Step};
use crate::events::Event;
use crate::subscriptions::Subscription;

/// The member that names the subscriber (TS 29.510 §6.1.6.2.16).
pub(super) const OWNER: &str = "reqNfInstanceId";
/// The member of a stored subscription that says where it came from; no answer shows it.
const SOURCE: &str = "signalbox-source";

/// A change of a subscription that is on its way to the disk.
#[derive(Debug)]
pub(super) enum SubscriptionEffect {
    /// A subscription was created.
    Made(Arc<Subscription>),
    /// A subscription was changed.
    Changed(Arc<Subscription>),
    /// A subscription was removed.
    Ended(String),
}

impl Registrar {
    pub(super) fn subscribe(
        &mut self,
        id: String,
        body: Bytes,
        source: IpAddr,
        by: Actor,
    ) -> Result<Step, Problem> {
        self.has_room()?;
        let rules = self.rules();
        Ok(Step::prepare(
            body.len(),
            move || (rules.subscription(&id, &body, by.instance()), by),
            move |registrar, (read, by)| {
                let mut subscription = read.map_err(|refused| registrar.refuse(refused))?;
                // An authenticated subscriber may name only itself.
                registrar.check_owner(&subscription, &by)?;
                subscription.source = Some(source);
                registrar.has_room()?;
                registrar.bound_validity(&mut subscription);
                let settings = &registrar.config.subscriptions;
                if let Err(expected) = registrar.shares.take(&subscription.owner(), settings) {
                    registrar.counters.count(Event::ShareUsedUp);
                    return Err(Problem::new(Cause::TooManyRequests).detail(expected));
                }
                registrar.subscribing += 1;
                let subscription = Arc::new(subscription);
                let effect = SubscriptionEffect::Made(subscription.clone());
                Ok(registrar.keep_subscription(effect, &subscription))
            },
        ))
    }

    fn has_room(&self) -> Result<(), Problem> {
        if self.book.len() + self.subscribing >= self.config.subscriptions.max {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("the NRF has as many subscriptions as subscriptions.max allows"));
        }
        Ok(())
    }

    /// Shortens the validity of a subscription whose subscriber is not registered.
    fn bound_validity(&self, subscription: &mut Subscription) {
        if is_registered(self, subscription.requester.instance) {
            return;
        }
        let longest = self.config.subscriptions.unregistered_validity.duration();
        let longest = OffsetDateTime::now_utc() + longest;
        if subscription.valid_until > longest {
            subscription.extend(longest);
        }
    }

    pub(super) fn patch_subscription(&mut self, id: &str, body: Bytes, by: &Actor) -> Result<Step, Problem> {
        let before = self.book.get(id).ok_or_else(|| no_subscription(id))?.clone();
        self.check_owner(&before, by)?;
        let rules = self.rules();
        Ok(Step::prepare(
            body.len(),
            move || {
                let after = rules.patched_subscription(&before, &body);
                (before, after)
            },
            move |registrar, (before, after)| {
                let mut after = after.map_err(|refused| registrar.refuse(refused))?;
                if after.document.get(OWNER) != before.document.get(OWNER) {
                    return Err(Problem::new(Cause::ModificationNotAllowed)
                        .detail("reqNfInstanceId of a subscription cannot be changed")
                        .invalid_param("/reqNfInstanceId", "expected the value of the subscription"));
                }
                registrar.bound_validity(&mut after);
                let after = Arc::new(after);
                Ok(registrar.keep_subscription(SubscriptionEffect::Changed(after.clone()), &after))
            },
        ))
    }

    /// Ends the subscriptions of an NF that deregistered or was removed: they would count towards `subscriptions.max`.
    pub(super) fn end_subscriptions_of(&mut self, instance: NfInstanceId) {
        let ended: Vec<String> = self
            .book
            .iter()
            .filter(|one| one.requester.instance == Some(instance))
            .map(|one| one.id.clone())
            .collect();
        for id in ended {
            self.order(Key::Subscription(id.clone()), |registrar| {
                registrar.unsubscribe(id, None)
            });
        }
    }

    /// Ends a subscription at the request of a sender, or because it expired (`by`: `None`).
    pub(super) fn unsubscribe(&mut self, id: String, by: Option<&Actor>) -> Result<Step, Problem> {
        let known = self.book.get(&id).ok_or_else(|| no_subscription(&id))?;
        if let Some(by) = by {
            self.check_owner(known, by)?;
        }
        let (mut batch, key) = (Batch::default(), Key::Subscription(id.clone()));
        batch.delete(&self.subscriptions, id.as_bytes(), self.condition(&key));
        self.journal(&mut batch, key, Some(Bytes::new()));
        let effect = Effect::Subscription(SubscriptionEffect::Ended(id));
        Ok(Step::Commit(self.store.commit(batch), effect))
    }

    /// Checks that the sender is the subscriber, which alone may change or end a subscription.
    fn check_owner(&self, known: &Subscription, by: &Actor) -> Result<(), Problem> {
        let owner = known.document.get(OWNER).and_then(serde_json::Value::as_str);
        let outcome = by.may_change(owner);
        outcome.inspect_err(|_| self.counters.count(Event::IdentityRefused))
    }

    fn keep_subscription(&self, effect: SubscriptionEffect, subscription: &Subscription) -> Step {
        let mut document = subscription.document.clone();
        if let Some(source) = subscription.source {
            document.insert(SOURCE.to_owned(), source.to_string().into());
        }
        let document = serde_json::to_vec(&document).unwrap_or_default().into();
        let record = SubscriptionRecord {
            id: subscription.id.clone(),
            document,
        };
        let (mut batch, key) = (Batch::default(), Key::Subscription(record.id.clone()));
        batch.put(&self.subscriptions, &record, self.condition(&key));
        self.journal(&mut batch, key, None);
        Step::Commit(self.store.commit(batch), Effect::Subscription(effect))
    }

    /// A change could not be made durable: it has not happened.
    pub(super) fn subscription_unkept(&mut self, effect: &SubscriptionEffect) {
        if let SubscriptionEffect::Made(subscription) = effect {
            self.subscribing -= 1;
            self.shares.give_back(&subscription.owner());
        }
    }

    /// A change is durable.
    pub(super) fn subscription_kept(&mut self, effect: SubscriptionEffect) -> Done {
        match effect {
            SubscriptionEffect::Made(subscription) => {
                self.subscribing -= 1;
                self.book.put(subscription.clone());
                self.counters.count(Event::Subscribed);
                Done::Subscribed(subscription)
            }
            SubscriptionEffect::Changed(subscription) => {
                self.book.put(subscription.clone());
                Done::SubscriptionChanged(subscription)
            }
            SubscriptionEffect::Ended(id) => {
                if let Some(gone) = self.book.remove(&id) {
                    self.shares.give_back(&gone.owner());
                }
                self.counters.count(Event::Unsubscribed);
                Done::Removed
            }
        }
    }
}

/// A subscription as the store has it, if it can still be read.
pub(super) fn parse_stored(id: &str, document: &[u8]) -> Option<Subscription> {
    let mut document: serde_json::Value = serde_json::from_slice(document).ok()?;
    let source = document.as_object_mut()?.remove(SOURCE);
    let until = validity_of(&document).ok()??;
    let mut subscription = Subscription::parse(document, id, until).ok()?;
    subscription.source = source.and_then(|source| source.as_str()?.parse().ok());
    Some(subscription)
}

/// `validityTime`.
///
/// # Errors
/// What was expected, where the value is another.
pub(super) fn validity_of(document: &serde_json::Value) -> Result<Option<OffsetDateTime>, &'static str> {
    let Some(value) = document.get("validityTime").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let parsed = value.as_str().and_then(model::shape::rules::time);
    parsed.map(Some).ok_or("expected a date and time as in RFC 3339")
}
