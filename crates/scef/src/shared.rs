//! What the threads of an SCEF share.

use std::net::SocketAddr;
use std::sync::Arc;

use function::Counts;
use function::sbi::Operational;
use notifier::Queue;
use serde_json::Value;
use telemetry::Dependency;

use crate::clock::{after, now};
use crate::events::Event;
use crate::live::Live;
use crate::notices;
use crate::orders::Orders;
use crate::quotas::{Buffers, Quota};
use crate::record::{Configuration, Downlink, Id, Notice, Subscription, Trigger};
use crate::repository::Repository;

/// What the threads of an SCEF share.
#[derive(Debug)]
pub struct Scef {
    pub(crate) repository: Repository,
    pub(crate) orders: Orders,
    pub(crate) queue: Queue,
    pub(crate) subscriptions: Quota,
    pub(crate) configurations: Quota,
    pub(crate) triggers: Quota,
    pub(crate) buffers: Buffers,
    pub(crate) counts: Counts<Event>,
    pub(crate) operational: Operational,
    pub(crate) workers: usize,
    pub(crate) live: Arc<Live>,
    /// Whether the HSS is connected, and answers.
    pub(crate) hss: Dependency,
    /// Whether the SMS-SC answers.
    pub(crate) sms_sc: Dependency,
    pub(crate) diameter: Vec<SocketAddr>,
}

impl Scef {
    /// Where it listens for Diameter.
    #[must_use]
    pub fn diameter_addresses(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts.sum(event)
    }

    /// Queues a notification that is stored.
    pub(crate) fn notify(&self, notice: &Notice) {
        match notices::notification(notice) {
            Some(notification) => self.queue.push(notification),
            None => tracing::warn!(target = notice.target, "a notification has no valid destination"),
        }
    }

    /// A notification about a resource, to be stored.
    pub(crate) fn notice(&self, about: String, document: &Value, body: Value) -> Notice {
        let target = document.get("notificationDestination").and_then(Value::as_str);
        let keep = self.live.load().config.notifications.keep.duration();
        Notice {
            id: Id::new(now()),
            about,
            target: target.unwrap_or_default().to_owned(),
            body,
            expires: after(keep),
        }
    }

    fn root(&self) -> String {
        let effective = self.live.load();
        effective.config.api_root.trim_end_matches('/').to_owned()
    }

    pub(crate) fn subscription_uri(&self, one: &Subscription) -> String {
        let (root, scs, id) = (self.root(), &one.scs, one.id());
        format!("{root}/3gpp-monitoring-event/v1/{scs}/subscriptions/{id}")
    }

    pub(crate) fn configuration_uri(&self, one: &Configuration) -> String {
        let (root, scs, id) = (self.root(), &one.scs, one.group.unwrap_or(one.id));
        format!("{root}/3gpp-nidd/v1/{scs}/configurations/{id}")
    }

    pub(crate) fn trigger_uri(&self, one: &Trigger) -> String {
        let (root, scs, id) = (self.root(), &one.scs, one.id);
        format!("{root}/3gpp-device-triggering/v1/{scs}/transactions/{id}")
    }

    pub(crate) fn downlink_uri(&self, one: &Downlink) -> String {
        self.delivery_uri(&one.scs, one.configuration, one.id)
    }

    /// The URI of data for the device, or the group, of a NIDD configuration of an SCS/AS.
    pub(crate) fn delivery_uri(&self, scs: &str, configuration: Id, delivery: Id) -> String {
        let root = self.root();
        format!(
            "{root}/3gpp-nidd/v1/{scs}/configurations/{configuration}/downlink-data-deliveries/{delivery}"
        )
    }
}
