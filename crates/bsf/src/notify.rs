//! Delivery of notifications: in order per subscription, retried, bounded (TS 29.521 §4.2.8).

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Uri;
use http::header::{CONTENT_TYPE, LOCATION};
use nrf_client::Nrfs;
use overload::{Rate, RateLimiter};
use sbi::Body;
use sbi::client::{Client, Origin, SendOptions};
use sbi::dns::{Dns, in_order};
use sbi::headers::names;
use tokio::sync::mpsc;

use crate::binding::{BindingId, PcfBinding, Subscription, UeBinding};
use crate::config::Notifications;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::peers::nrf::hosts_of_set;
use crate::repository::Repository;

/// Name of the callback (TS 29.500 annex B).
const CALLBACK: http::HeaderValue = http::HeaderValue::from_static("Nbsf_Management_Notify");

/// Something to be told.
#[derive(Clone, Debug)]
pub(crate) struct Notification {
    pub(crate) subscription: BindingId,
    pub(crate) target: Uri,
    pub(crate) body: Bytes,
    /// NF set of which any instance takes it.
    pub(crate) set: Option<String>,
}

/// Tells subscribers of a session's binding that has come or gone.
pub(crate) async fn tell_session(
    repository: &Repository,
    queue: &mpsc::Sender<Notification>,
    counters: &Counters,
    binding: &PcfBinding,
    come: bool,
) {
    let body = |subscription: &Subscription| subscription.tell_sessions(&[binding], come);
    tell(repository, queue, counters, binding.0.text_of("supi"), body).await;
}

/// Tells subscribers of a UE's binding that has come or gone.
pub(crate) async fn tell_ue(
    repository: &Repository,
    queue: &mpsc::Sender<Notification>,
    counters: &Counters,
    binding: &UeBinding,
    come: bool,
) {
    let body = |subscription: &Subscription| subscription.tell_ue(binding, come);
    tell(repository, queue, counters, binding.0.text_of("supi"), body).await;
}

async fn tell(
    repository: &Repository,
    queue: &mpsc::Sender<Notification>,
    counters: &Counters,
    supi: Option<&str>,
    body: impl Fn(&Subscription) -> Option<serde_json::Value>,
) {
    let Some(supi) = supi.filter(|_| repository.is_watched()) else {
        return;
    };
    let subscribers = match repository.subscribers_of(supi).await {
        Ok(subscribers) => subscribers,
        Err(error) => {
            tracing::warn!(%error, "subscribers could not be read; they are not told");
            return;
        }
    };
    for subscription in subscribers {
        let target = subscription
            .0
            .text_of("notifUri")
            .and_then(|uri| uri.parse().ok());
        let (Some(target), Some(body)) = (target, body(&subscription)) else {
            continue;
        };
        let notification = Notification {
            subscription: subscription.0.id,
            target,
            body: body.to_string().into(),
            set: subscription.1,
        };
        if queue.try_send(notification).is_err() {
            counters.count(Event::NotificationDropped);
        }
    }
}

/// The pace of all lanes together.
#[derive(Default)]
struct Pace(RefCell<(u32, Option<RateLimiter>)>);

impl Pace {
    /// Waits for a turn, at so many a second; 0: any number.
    async fn turn(&self, rate: u32) {
        while let Some(wait) = self.wait(rate, Instant::now()) {
            tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
        }
    }

    fn wait(&self, rate: u32, now: Instant) -> Option<Duration> {
        let mut state = self.0.borrow_mut();
        if state.0 != rate {
            *state = (
                rate,
                (rate > 0).then(|| RateLimiter::new(Rate::per_second(f64::from(rate)))),
            );
        }
        let limiter = state.1.as_mut()?;
        (!limiter.allow(now)).then(|| limiter.wait(now).unwrap_or_default())
    }
}

/// How subscribers are reached.
pub(crate) struct Ways {
    pub(crate) client: Client,
    /// They know who else is in a subscriber's set.
    pub(crate) nrfs: Rc<Nrfs>,
    /// They know where else a subscriber's name is served.
    pub(crate) names: Option<Dns>,
}

/// What all lanes share.
struct Shared {
    ways: Ways,
    live: Arc<ArcSwap<Live>>,
    counters: Arc<Counters>,
    pace: Pace,
}

/// Delivers what comes until every sender is gone. A few lanes, each one notification at a time; those of a
/// subscription keep to one lane, so that they arrive in order.
pub(crate) async fn deliver(
    mut incoming: mpsc::Receiver<Notification>,
    ways: Ways,
    live: Arc<ArcSwap<Live>>,
    counters: Arc<Counters>,
) {
    let settings = live.load().config.notifications.clone();
    let shared = Rc::new(Shared {
        ways,
        live,
        counters,
        pace: Pace::default(),
    });
    let per_lane = (settings.queue / settings.parallel.max(1)).max(1);
    let lanes: Vec<mpsc::Sender<Notification>> = (0..settings.parallel.max(1))
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
            shared.counters.count(Event::NotificationDropped);
        }
    }
}

async fn lane(mut queue: mpsc::Receiver<Notification>, shared: Rc<Shared>) {
    while let Some(notification) = queue.recv().await {
        let settings = shared.live.load().config.notifications.clone();
        let delivered = attempt(&notification, &shared, &settings).await;
        shared.counters.count(if delivered {
            Event::Notified
        } else {
            Event::NotificationFailed
        });
        if !delivered {
            tracing::warn!(subscription = %notification.subscription, target = %notification.target, "a notification could not be delivered");
        }
    }
}

/// What an answer of a subscriber means.
enum Outcome {
    Taken,
    /// It will not want it any more the next time.
    Refused,
    /// It wants it there (TS 29.500 §6.10.9).
    Elsewhere(Uri),
    Again,
}

/// Sends until the subscriber takes it, says it never will, or the attempts are used up.
async fn attempt(notification: &Notification, shared: &Shared, settings: &Notifications) -> bool {
    let mut target = notification.target.clone();
    let mut pause = settings.retry_pause.duration();
    for attempt in 0..settings.attempts.max(1) {
        if attempt > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let mut outcome = send(notification, &target, shared, settings).await;
        // Once a try: who sends us round in circles is not followed.
        if let Outcome::Elsewhere(there) = outcome {
            shared.counters.count(Event::NotificationRedirected);
            target = there;
            outcome = send(notification, &target, shared, settings).await;
        }
        match outcome {
            Outcome::Taken => return true,
            Outcome::Refused => return false,
            Outcome::Again => {}
            Outcome::Elsewhere(_) => target = notification.target.clone(),
        }
    }
    elsewhere(notification, shared, settings).await
}

/// Whoever subscribed does not answer: another instance of its set may, where it has said so, or another place of
/// its name.
async fn elsewhere(notification: &Notification, shared: &Shared, settings: &Notifications) -> bool {
    let mut others: Vec<Uri> = Vec::new();
    let target = &notification.target;
    if let Some(set) = notification.set.as_deref().filter(|_| settings.alternates > 0) {
        let hosts = hosts_of_set(&shared.ways.nrfs, set).await;
        others.extend(
            hosts
                .iter()
                .filter_map(|host| at(target, host, target.port_u16())),
        );
    }
    if let Some(names) = shared.ways.names.as_ref().filter(|_| settings.dns_srv)
        && let Ok(origin) = Origin::of_uri(target)
        && origin.host().parse::<IpAddr>().is_err()
        && let Ok(found) = names.services(origin.scheme(), origin.host()).await
    {
        let random = RandomState::new();
        let mut drawn = 0_u64;
        let places = in_order(&found, || {
            drawn += 1;
            random.hash_one(drawn)
        });
        others.extend(
            places
                .iter()
                .filter_map(|place| at(target, &place.host, Some(place.port))),
        );
    }
    others.retain(|other| other.authority() != target.authority());
    for other in others.iter().take(settings.alternates) {
        if matches!(send(notification, other, shared, settings).await, Outcome::Taken) {
            shared.counters.count(Event::NotificationRerouted);
            return true;
        }
    }
    false
}

/// The same URI at another place.
fn at(uri: &Uri, host: &str, port: Option<u16>) -> Option<Uri> {
    let authority = match port {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority.parse().ok()?);
    Uri::from_parts(parts).ok()
}

async fn send(
    notification: &Notification,
    target: &Uri,
    shared: &Shared,
    settings: &Notifications,
) -> Outcome {
    let Ok(origin) = Origin::of_uri(target) else {
        return Outcome::Refused;
    };
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let request = http::Request::post(path)
        .header(CONTENT_TYPE, "application/json")
        .header(names::CALLBACK, CALLBACK)
        .body(Body::from(notification.body.clone()));
    let Ok(request) = request else {
        return Outcome::Refused;
    };
    shared.pace.turn(settings.rate).await;
    let options = SendOptions {
        deadline: settings.timeout.duration(),
        priority: 16,
    };
    let Ok(response) = shared.ways.client.send(&origin, request, options).await else {
        return Outcome::Again;
    };
    let status = response.status();
    let there = || {
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let there: Uri = location.parse().ok()?;
        Origin::of_uri(&there).is_ok().then_some(there)
    };
    match status.as_u16() {
        200..300 => Outcome::Taken,
        307 | 308 => there().map_or(Outcome::Again, Outcome::Elsewhere),
        429 => Outcome::Again,
        400..500 => Outcome::Refused,
        _ => Outcome::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_paced() {
        let pace = Pace::default();
        let begun = Instant::now();
        assert!((0..100).all(|_| pace.wait(0, begun).is_none()));
        let mut now = begun;
        for _ in 0..31 {
            while let Some(wait) = pace.wait(10, now) {
                now += wait.max(Duration::from_millis(1));
            }
        }
        let spent = now - begun;
        assert!(
            (Duration::from_millis(2_900)..Duration::from_millis(3_300)).contains(&spent),
            "{spent:?}"
        );
    }
}
