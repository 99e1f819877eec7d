//! Delivery of notifications: in order per subscriber, retried, bounded (TS 29.510 §5.2.2.6).

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use http::header::CONTENT_TYPE;
use sbi::Body;
use sbi::client::{Client, SendOptions};
use sbi::headers::names;
use tokio::sync::mpsc;

use crate::config::Subscriptions;
use crate::events::{Counters, Event};
use crate::subscriptions::Notification;

/// Name of the callback (TS 29.500 annex B).
const CALLBACK: http::HeaderValue = http::HeaderValue::from_static("Nnrf_NFManagement_NFStatusNotify");

/// Delivers what comes until every sender is gone; each subscriber has a queue and a task of its own, so a
/// slow one delays nobody else.
pub(crate) async fn deliver(
    mut incoming: mpsc::Receiver<Notification>,
    client: Client,
    settings: Subscriptions,
    counters: Arc<Counters>,
) {
    let shared = Rc::new(Shared {
        client,
        settings,
        counters,
        waiting: Cell::new(0),
    });
    let mut queues: AHashMap<String, mpsc::Sender<Notification>> = AHashMap::new();
    while let Some(notification) = incoming.recv().await {
        if shared.waiting.get() >= shared.settings.queue_total {
            shared.counters.count(Event::NotificationDropped);
            continue;
        }
        queues.retain(|_, queue| !queue.is_closed());
        let queue = queues
            .entry(notification.subscription.clone())
            .or_insert_with(|| {
                let (sender, receiver) = mpsc::channel(shared.settings.queue_per_subscriber.max(1));
                tokio::task::spawn_local(subscriber(receiver, shared.clone()));
                sender
            });
        match queue.try_send(notification) {
            Ok(()) => shared.waiting.set(shared.waiting.get() + 1),
            Err(_) => shared.counters.count(Event::NotificationDropped),
        }
    }
}

struct Shared {
    client: Client,
    settings: Subscriptions,
    counters: Arc<Counters>,
    waiting: Cell<usize>,
}

/// How long an idle subscriber's task waits for more before it ends.
const IDLE: std::time::Duration = std::time::Duration::from_secs(60);

async fn subscriber(mut queue: mpsc::Receiver<Notification>, shared: Rc<Shared>) {
    let mut ready = VecDeque::new();
    loop {
        if ready.is_empty() {
            match tokio::time::timeout(IDLE, queue.recv()).await {
                Ok(Some(notification)) => ready.push_back(notification),
                Ok(None) => return,
                Err(_) => {
                    queue.close();
                    // What slipped in before the queue was closed is delivered, too.
                    while let Ok(notification) = queue.try_recv() {
                        ready.push_back(notification);
                    }
                    if ready.is_empty() {
                        return;
                    }
                }
            }
        }
        let Some(notification) = ready.pop_front() else {
            return;
        };
        let delivered = attempt(&notification, &shared).await;
        shared.waiting.set(shared.waiting.get().saturating_sub(1));
        shared.counters.count(if delivered {
            Event::Notified
        } else {
            Event::NotificationFailed
        });
        if !delivered {
            tracing::warn!(
                subscription = notification.subscription,
                target = %notification.target,
                "a notification could not be delivered"
            );
        }
    }
}

/// Sends until the subscriber takes it, says it never will, or the attempts are used up.
async fn attempt(notification: &Notification, shared: &Shared) -> bool {
    let mut pause = shared.settings.retry_pause.duration();
    for attempt in 0..shared.settings.attempts.max(1) {
        if attempt > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let request = http::Request::post(notification.target.path.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(names::CALLBACK, CALLBACK)
            .body(Body::from(notification.body.clone()));
        let Ok(request) = request else { return false };
        let options = SendOptions {
            deadline: shared.settings.timeout.duration(),
            priority: 16,
        };
        match shared
            .client
            .send(&notification.target.origin, request, options)
            .await
        {
            Ok(response) if response.status().is_success() => return true,
            // The subscriber will not want it any more the next time (TS 29.510 §5.2.2.6.2).
            Ok(response) if response.status().is_client_error() && response.status().as_u16() != 429 => {
                return false;
            }
            Ok(_) | Err(_) => {}
        }
    }
    false
}
