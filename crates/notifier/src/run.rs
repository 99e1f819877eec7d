//! The task that delivers notifications.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Uri;
use sbi::Response;
use sbi::client::{Client, Origin};

use crate::outbox::{Flight, Outbox, Step};
use crate::post::{Answer, post};
use crate::queue::Receiver;
use crate::{Event, Notification, Policy};

/// A function that notifies its subscribers.
pub trait Publisher: 'static {
    /// The settings in effect.
    fn policy(&self) -> Policy;

    /// The client that subscribers are reached with.
    fn client(&self) -> &Client;

    /// Counts an event.
    fn count(&self, event: Event);

    /// A notification was sent once, with this outcome. `response`: what its receiver answered, for what the body reports.
    fn answered(&self, notification: &Notification, answer: &Answer, response: Option<&Response>) {
        let _ = (notification, answer, response);
    }

    /// The body of a further attempt, where the subject has changed since the first one; `None`: the same again.
    fn renewed(&self, notification: &Notification) -> impl Future<Output = Option<Bytes>> {
        let _ = notification;
        std::future::ready(None)
    }

    /// A notification is not tried again, and no attempt was answered. One that is refused has its answer.
    fn given_up(&self, notification: &Notification) {
        let _ = notification;
    }

    /// Whether a redirection from a place to an origin may be followed.
    fn permits(&self, from: &Uri, to: &Origin) -> bool;

    /// Other places that take a notification, when the subscriber does not answer. Its own place may be among them.
    fn alternates(&self, notification: &Notification) -> impl Future<Output = Vec<Uri>> {
        let _ = notification;
        std::future::ready(Vec::new())
    }

    /// Notifications of the present state of these subjects, after others of them were lost. None for a subscription
    /// that has ended.
    fn resync(&self, subscription: &str, subjects: &[Arc<str>]) -> impl Future<Output = Vec<Notification>>;
}

/// What a step has resulted in.
enum Done {
    Answered(Flight, Answer),
    Resolved(Flight, Vec<Uri>),
    Resynced(Arc<str>, Vec<Notification>),
}

/// Delivers notifications until every [`Queue`](crate::Queue) is gone and nothing is pending.
pub async fn run<P: Publisher>(mut receiver: Receiver, publisher: Rc<P>) {
    let counting = publisher.clone();
    let mut outbox = Outbox::new(publisher.policy(), move |event| counting.count(event));
    let mut steps: FuturesUnordered<Pin<Box<dyn Future<Output = Done>>>> = FuturesUnordered::new();
    let random = worker::Random::default();
    let mut open = true;
    while open || !outbox.is_idle() {
        outbox.set_policy(publisher.policy());
        if let Some(overflow) = receiver.shared.take_overflow() {
            outbox.overflowed(overflow.dropped, overflow.missed);
        }
        let wake = loop {
            match outbox.next(Instant::now()) {
                Step::Send(flight) => steps.push(Box::pin(send(flight, publisher.clone()))),
                Step::Resolve(flight) => steps.push(Box::pin(resolve(flight, publisher.clone()))),
                Step::Resync(subscription, subjects) => {
                    let publisher = publisher.clone();
                    steps.push(Box::pin(async move {
                        let state = publisher.resync(&subscription, &subjects).await;
                        Done::Resynced(subscription, state)
                    }));
                }
                Step::Wait(until) => break Some(until),
                Step::Idle => break None,
            }
        };
        receiver.shared.set_pending(outbox.pending(), outbox.settled());
        let alarm = async {
            match wake {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            notification = receiver.notifications.recv(), if open => match notification {
                Some(notification) => {
                    outbox.push(notification);
                    while let Ok(more) = receiver.notifications.try_recv() {
                        outbox.push(more);
                    }
                }
                None => open = false,
            },
            Some(done) = steps.next() => match done {
                Done::Answered(flight, answer) => {
                    outbox.answered(flight, answer, Instant::now(), random.fraction());
                }
                Done::Resolved(flight, places) => outbox.resolved(flight, places),
                Done::Resynced(subscription, state) => outbox.resynced(&subscription, state),
            },
            () = alarm => {}
        }
        for notification in outbox.take_given_up() {
            publisher.given_up(&notification);
        }
    }
}

async fn send<P: Publisher>(flight: Flight, publisher: Rc<P>) -> Done {
    let renewed = match flight.attempts() {
        0 => None,
        _ => publisher.renewed(flight.notification()).await,
    };
    let posted = post(
        publisher.client(),
        flight.notification(),
        (flight.target(), renewed),
        publisher.policy().timeout,
        |to| publisher.permits(flight.target(), to),
    );
    let (answer, response) = posted.await;
    publisher.answered(flight.notification(), &answer, response.as_ref());
    Done::Answered(flight, answer)
}

async fn resolve<P: Publisher>(flight: Flight, publisher: Rc<P>) -> Done {
    let places = publisher.alternates(flight.notification()).await;
    Done::Resolved(flight, places)
}
