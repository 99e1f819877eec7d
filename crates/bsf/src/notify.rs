//! Delivery of notifications: in order per subscription, retried, bounded (TS 29.521 §4.2.8).

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use http::header::CONTENT_TYPE;
use sbi::Body;
use sbi::client::{Client, Origin, SendOptions};
use sbi::headers::names;
use tokio::sync::mpsc;

use crate::binding::BindingId;
use crate::config::Notifications;
use crate::events::{Counters, Event};

/// Name of the callback (TS 29.500 annex B).
const CALLBACK: http::HeaderValue = http::HeaderValue::from_static("Nbsf_Management_Notify");

/// Something to be told.
#[derive(Clone, Debug)]
pub(crate) struct Notification {
    pub(crate) subscription: BindingId,
    pub(crate) target: Uri,
    pub(crate) body: Bytes,
}

/// Delivers what comes until every sender is gone. A few lanes, each one notification at a time; those of a
/// subscription keep to one lane, so that they arrive in order.
pub(crate) async fn deliver(
    mut incoming: mpsc::Receiver<Notification>,
    client: Client,
    settings: Notifications,
    counters: Arc<Counters>,
) {
    let shared = Rc::new((client, settings, counters));
    let per_lane = (shared.1.queue / shared.1.parallel.max(1)).max(1);
    let lanes: Vec<mpsc::Sender<Notification>> = (0..shared.1.parallel.max(1))
        .map(|_| {
            let (sender, receiver) = mpsc::channel(per_lane);
            tokio::task::spawn_local(lane(receiver, shared.clone()));
            sender
        })
        .collect();
    let hasher = RandomState::new();
    while let Some(notification) = incoming.recv().await {
        let lane = hasher.hash_one(notification.subscription) as usize % lanes.len();
        if lanes[lane].try_send(notification).is_err() {
            shared.2.count(Event::NotificationDropped);
        }
    }
}

async fn lane(mut queue: mpsc::Receiver<Notification>, shared: Rc<(Client, Notifications, Arc<Counters>)>) {
    let (client, settings, counters) = &*shared;
    while let Some(notification) = queue.recv().await {
        let delivered = attempt(&notification, client, settings).await;
        counters.count(if delivered {
            Event::Notified
        } else {
            Event::NotificationFailed
        });
        if !delivered {
            tracing::warn!(subscription = %notification.subscription, target = %notification.target, "a notification could not be delivered");
        }
    }
}

/// Sends until the subscriber takes it, says it never will, or the attempts are used up.
async fn attempt(notification: &Notification, client: &Client, settings: &Notifications) -> bool {
    let Ok(origin) = Origin::of_uri(&notification.target) else {
        return false;
    };
    let path = notification
        .target
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let mut pause = settings.retry_pause.duration();
    for attempt in 0..settings.attempts.max(1) {
        if attempt > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let request = http::Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .header(names::CALLBACK, CALLBACK)
            .body(Body::from(notification.body.clone()));
        let Ok(request) = request else { return false };
        let options = SendOptions {
            deadline: settings.timeout.duration(),
            priority: 16,
        };
        match client.send(&origin, request, options).await {
            Ok(response) if response.status().is_success() => return true,
            // The subscriber will not want it any more the next time.
            Ok(response) if response.status().is_client_error() && response.status().as_u16() != 429 => {
                return false;
            }
            Ok(_) | Err(_) => {}
        }
    }
    false
}
