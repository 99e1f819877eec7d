//! Notifications of subscribers (TS 29.510 §5.2.2.6): how they are reached, and what they are sent after a loss.

use std::sync::Arc;

use http::Uri;
use notifier::{Bound, Event as Delivery, Notification, Policy, Publisher, at};
use sbi::client::{Client, Origin};
use sbi::dns::Dns;
use tokio::sync::{mpsc, oneshot};
use worker::Random;

use crate::config::Subscriptions;
use crate::events::{Counters, Event};
use crate::live::Live;

/// A request to the writer of the registry: the present state of these NF instances for a subscription.
#[derive(Debug)]
pub(crate) struct Resync {
    pub(crate) subscription: Arc<str>,
    pub(crate) instances: Vec<Arc<str>>,
    pub(crate) reply: oneshot::Sender<Vec<Notification>>,
}

/// Resynchronisations that wait for the writer.
pub(crate) const RESYNCS: usize = 64;

/// Places of a name that are tried at most when it does not answer (`dnsSrv`).
pub(crate) const ALTERNATES: usize = 4;

/// How subscribers are reached.
pub(crate) struct Subscribers {
    pub(crate) client: Client,
    pub(crate) live: Arc<Live>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) resyncs: mpsc::Sender<Resync>,
    /// Resolves the SRV records of subscribers' names, where the settings want it.
    pub(crate) names: Option<Dns>,
    pub(crate) random: Random,
}

impl Publisher for Subscribers {
    fn policy(&self) -> Policy {
        Policy {
            alternates: if self.names.is_some() { ALTERNATES } else { 0 },
            ..policy(&self.live.load().config.subscriptions)
        }
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
            Delivery::Resynced => Event::NotificationResynced,
            Delivery::Rerouted => Event::NotificationRerouted,
        });
    }

    /// A redirection leads only where a subscription may.
    fn permits(&self, from: &Uri, to: &Origin) -> bool {
        let permitted = self.live.load().destinations.permits_redirection(from, to);
        if !permitted {
            self.counters.count(Event::TargetDenied);
        }
        permitted
    }

    /// Other places of the subscriber's name that subscriptions may lead to.
    async fn alternates(&self, notification: &Notification) -> Vec<Uri> {
        let target = &notification.target;
        let Some((names, origin)) = self.names.as_ref().zip(Origin::of_uri(target).ok()) else {
            return Vec::new();
        };
        let found = names.alternates(&origin, || self.random.next()).await;
        let destinations = self.live.load().destinations.clone();
        let permitted = found.iter().filter(|origin| destinations.check(origin).is_ok());
        permitted
            .filter_map(|origin| at(target, origin.host(), Some(origin.port())))
            .collect()
    }

    async fn resync(&self, subscription: &str, instances: &[Arc<str>]) -> Vec<Notification> {
        let (reply, state) = oneshot::channel();
        let resync = Resync {
            subscription: subscription.into(),
            instances: instances.to_vec(),
            reply,
        };
        match self.resyncs.send(resync).await {
            Ok(()) => state.await.unwrap_or_default(),
            // The NRF is stopping.
            Err(_) => Vec::new(),
        }
    }
}

fn policy(settings: &Subscriptions) -> Policy {
    Policy {
        total: Bound {
            notifications: settings.queue_total,
            bytes: settings.queue_bytes.as_usize(),
        },
        per_subscription: Bound {
            notifications: settings.queue_per_subscriber,
            bytes: settings.queue_bytes_per_subscriber.as_usize(),
        },
        parallel: settings.parallel,
        attempts: settings.attempts.into(),
        pause: settings.retry_pause.duration(),
        max_pause: settings.max_retry_pause.duration(),
        timeout: settings.timeout.duration(),
        redirects: settings.redirects,
        alternates: 0,
        rate: settings.rate,
    }
}
