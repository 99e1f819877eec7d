//! Notifications of subscribers (TS 29.521 §4.2.8): who gets them, and where else they are taken.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use notifier::{Bound, Event as Delivery, Notification, Policy, Publisher, Queue, at};
use nrf_client::Nrfs;
use sbi::client::{Client, Origin};
use sbi::dns::Dns;

use crate::binding::{BindingId, Document, PcfBinding, SessionChange, Subscription, UeBinding};
use crate::config::Notifications;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::owed::Owed;
use crate::peers::nrf::hosts_of_set;
use crate::repository::Repository;

/// Enqueues the notifications of changes. One per thread; all share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    pub(crate) repository: Repository,
    pub(crate) queue: Queue,
    pub(crate) owed: Owed,
}

/// What has happened to a binding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Registered,
    /// It is at another PCF.
    Moved,
    Deregistered,
}

impl Notices {
    /// A session's binding has changed.
    pub(crate) async fn session(&self, binding: &PcfBinding, change: Change) {
        let subscriptions = self.subscriptions_to(&binding.0).await;
        let alone = match subscriptions.iter().any(Subscription::wants_pairs) {
            true => self.is_alone(binding, change).await,
            false => false,
        };
        let change = match (change, alone) {
            (Change::Registered, true) => SessionChange::Began,
            (Change::Registered, false) | (Change::Moved, _) => SessionChange::Joined,
            (Change::Deregistered, false) => SessionChange::Left,
            (Change::Deregistered, true) => SessionChange::Ended,
        };
        let body = |subscription: &Subscription| subscription.sessions_body(&[binding], change);
        self.enqueue(&subscriptions, binding.0.id, body);
        self.await_end(binding.0.id);
    }

    /// A UE's binding has changed.
    pub(crate) async fn ue(&self, binding: &UeBinding, change: Change) {
        let subscriptions = self.subscriptions_to(&binding.0).await;
        let body =
            |subscription: &Subscription| subscription.ue_body(binding, change != Change::Deregistered);
        self.enqueue(&subscriptions, binding.0.id, body);
        self.await_end(binding.0.id);
    }

    /// Has the mark of a change taken away when its notifications, and those that were pushed before, have ended.
    fn await_end(&self, id: BindingId) {
        if !self.repository.is_shared() && self.repository.is_watched() {
            self.owed.pushed(self.queue.pushed(), id);
        }
    }

    async fn subscriptions_to(&self, binding: &Document) -> Vec<Subscription> {
        let supi = binding.text_of("supi").filter(|_| self.repository.is_watched());
        let Some(supi) = supi else {
            return Vec::new();
        };
        self.repository
            .subscribers_of(supi)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to load subscribers, notification skipped");
                Vec::new()
            })
    }

    /// Whether the subscriber has no other session of the same slice and DNN. Of sessions that begin at the same moment,
    /// the one that was written first is the first; of those that end at the same moment, each may be the last.
    async fn is_alone(&self, binding: &PcfBinding, change: Change) -> bool {
        let supi = binding.0.text_of("supi").unwrap_or_default();
        let held = match self.repository.of_subscriber(supi).await {
            Ok(held) => held,
            Err(error) => {
                tracing::warn!(%error, "failed to load bindings, notification of slice and DNN skipped");
                return false;
            }
        };
        let own = held.iter().find(|held| held.record.0.id == binding.0.id);
        let began = match change {
            Change::Registered => own.map(|own| own.created),
            Change::Moved | Change::Deregistered => None,
        };
        !held.iter().any(|held| {
            held.record.0.id != binding.0.id
                && began.is_none_or(|began| held.created < began)
                && held.record.same_pair(binding)
        })
    }

    fn enqueue(
        &self,
        subscriptions: &[Subscription],
        subject: BindingId,
        body: impl Fn(&Subscription) -> Option<serde_json::Value>,
    ) {
        for subscription in subscriptions {
            if let Some(body) = body(subscription)
                && let Some(notification) = notification(subscription, subject, &body)
            {
                self.queue.push(notification);
            }
        }
    }
}

fn notification(
    subscription: &Subscription,
    subject: BindingId,
    body: &serde_json::Value,
) -> Option<Notification> {
    Some(Notification {
        subscription: subscription.0.id.to_string().into(),
        subject: subject.to_string().into(),
        whole: true,
        target: subscription.0.text_of("notifUri")?.parse().ok()?,
        callback: "Nbsf_Management_myNotification",
        body: body.to_string().into(),
        set: subscription.1.as_deref().map(Into::into),
        mark: 0,
    })
}

/// How subscribers are reached.
pub(crate) struct Subscribers {
    pub(crate) client: Client,
    /// They know the instances of a subscriber's set.
    pub(crate) nrfs: Rc<Nrfs>,
    /// Resolves other places of a subscriber's name.
    pub(crate) names: Option<Dns>,
    pub(crate) repository: Repository,
    pub(crate) live: Arc<Live>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) random: worker::Random,
}

impl Publisher for Subscribers {
    fn policy(&self) -> Policy {
        policy(&self.live.load().config.notifications)
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn count(&self, event: Delivery) {
        self.counters.count(match event {
            Delivery::Delivered => Event::Notified,
            Delivery::Failed => Event::NotificationFailed,
            Delivery::Dropped => Event::NotificationDropped,
            Delivery::Redirected => Event::NotificationRedirected,
            Delivery::Rerouted => Event::NotificationRerouted,
            Delivery::Resynced => Event::NotificationResynced,
        });
    }

    fn permits(&self, from: &Uri, to: &Origin) -> bool {
        let permitted = self.live.load().destinations.permits_redirection(from, to);
        if !permitted {
            self.counters.count(Event::TargetDenied);
        }
        permitted
    }

    /// Other instances of the subscriber's set, where the subscription names one, and other places of its name.
    async fn alternates(&self, notification: &Notification) -> Vec<Uri> {
        let target = &notification.target;
        let mut places = Vec::new();
        if let Some(set) = &notification.set {
            let hosts = hosts_of_set(&self.nrfs, set).await;
            places.extend(
                hosts
                    .iter()
                    .filter_map(|host| at(target, host, target.port_u16())),
            );
        }
        let dns_srv = self.live.load().config.notifications.dns_srv;
        if let Some(names) = self.names.as_ref().filter(|_| dns_srv)
            && let Ok(origin) = Origin::of_uri(target)
        {
            let found = names.alternates(&origin, || self.random.next()).await;
            let place = |place: &Origin| at(target, place.host(), Some(place.port()));
            places.extend(found.iter().filter_map(place));
        }
        places
    }

    /// The bindings that are still registered. A deregistration that was lost cannot be made from what is stored.
    async fn resync(&self, subscription: &str, subjects: &[Arc<str>]) -> Vec<Notification> {
        match self.present(subscription, subjects).await {
            Ok(notifications) => notifications,
            Err(error) => {
                tracing::warn!(%error, subscription, "failed to load bindings, resynchronisation skipped");
                Vec::new()
            }
        }
    }
}

impl Subscribers {
    async fn present(
        &self,
        subscription: &str,
        subjects: &[Arc<str>],
    ) -> Result<Vec<Notification>, store::Error> {
        let repository = &self.repository;
        let mut notifications = Vec::new();
        let Some(id) = BindingId::parse(subscription) else {
            return Ok(notifications);
        };
        let Some(subscription) = repository.subscriptions.get(&id.0).await? else {
            return Ok(notifications);
        };
        let subscription = &subscription.record;
        for id in subjects.iter().filter_map(|subject| BindingId::parse(subject)) {
            let body = match repository.sessions.get(&id.0).await? {
                Some(session) => subscription.sessions_body(&[&session.record], SessionChange::Began),
                None => match repository.ues.get(&id.0).await? {
                    Some(ue) => subscription.ue_body(&ue.record, true),
                    None => None,
                },
            };
            notifications.extend(body.and_then(|body| notification(subscription, id, &body)));
        }
        Ok(notifications)
    }
}

fn policy(settings: &Notifications) -> Policy {
    Policy {
        total: Bound {
            notifications: settings.queue,
            bytes: settings.queue_bytes.as_usize(),
        },
        per_subscription: Bound {
            notifications: settings.queue_per_subscription,
            bytes: settings.queue_bytes_per_subscription.as_usize(),
        },
        parallel: settings.parallel,
        attempts: settings.attempts,
        pause: settings.retry_pause.duration().max(Duration::from_millis(1)),
        max_pause: settings.max_retry_pause.duration(),
        timeout: settings.timeout.duration(),
        redirects: settings.redirects,
        alternates: settings.alternates,
        rate: settings.rate,
    }
}
