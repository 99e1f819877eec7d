//! Pending notifications and the next step of their delivery. Pure: time, randomness and answers are arguments.

mod destinations;
mod progress;
mod subscriber;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::Uri;
use overload::{Rate, RateLimiter};

use self::destinations::Destinations;
use self::progress::{Next, Progress};
use self::subscriber::{Phase, Subscriber};
use crate::queue::{Missed, Pending};
use crate::{Answer, Event, Notification, Policy};

/// The pending notifications of all subscriptions.
pub struct Outbox<C> {
    policy: Policy,
    pace: RateLimiter,
    count: C,
    subscribers: AHashMap<Arc<str>, Subscriber>,
    /// Subscriptions of all pending notifications, the oldest first.
    order: BTreeMap<Number, Arc<str>>,
    /// Notifications that are in a step.
    leaving: BTreeSet<Number>,
    last: Number,
    bytes: usize,
    /// Subscriptions with something to send now. One that has lost its last notification meanwhile is skipped.
    ready: VecDeque<Arc<str>>,
    /// The same for subscribers that did not answer the last attempt: they get at most half of the requests in flight.
    doubtful: VecDeque<Arc<str>>,
    doubtful_in_flight: usize,
    destinations: Destinations,
    /// Subscriptions that pause after a failed attempt.
    paused: BTreeSet<(Instant, Arc<str>)>,
    /// Subscriptions that need a resynchronisation.
    stale: VecDeque<Arc<str>>,
    /// The same for silent destinations, while the queue is too full to resynchronise them.
    stale_silent: VecDeque<Arc<str>>,
    /// Subjects of all subscriptions whose state was not delivered.
    missed: usize,
    in_flight: usize,
    /// Notifications that no attempt has delivered, until they are taken.
    given_up: Vec<Notification>,
}

/// Position of a notification in the order of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    /// Notifications that have arrived until then, this one included.
    arrival: u64,
    /// Notifications of a present state that were made since the last arrival, this one included.
    made: u64,
}

/// Next step of the delivery.
#[derive(Debug)]
pub enum Step {
    /// Send the notification to its [`Flight::target`], then report by [`Outbox::answered`].
    Send(Flight),
    /// Resolve alternate addresses for the notification, then report by [`Outbox::resolved`].
    Resolve(Flight),
    /// Make notifications of the present state of these subjects, then report by [`Outbox::resynced`].
    Resync(Arc<str>, Vec<Arc<str>>),
    /// Nothing before that instant.
    Wait(Instant),
    /// Nothing until something is pushed or reported.
    Idle,
}

/// A notification that is in a step, whose outcome must be reported.
#[derive(Debug)]
pub struct Flight {
    number: Number,
    notification: Notification,
    progress: Progress,
    /// It goes to a subscriber that did not answer last time.
    doubtful: bool,
}

impl Flight {
    /// The notification.
    #[must_use]
    pub fn notification(&self) -> &Notification {
        &self.notification
    }

    /// Attempts before this one, of which none was accepted.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.progress.attempts()
    }

    /// Its destination in this step.
    #[must_use]
    pub fn target(&self) -> &Uri {
        self.progress.target(&self.notification)
    }
}

/// Subjects in one resynchronisation at most; the others follow when these are delivered.
const RESYNC_BATCH: usize = 64;

impl<C: FnMut(Event)> Outbox<C> {
    /// An empty outbox. Every event goes to `count`.
    pub fn new(policy: Policy, count: C) -> Self {
        Self {
            pace: RateLimiter::new(Rate::per_second(policy.rate.into())),
            policy,
            count,
            subscribers: AHashMap::new(),
            order: BTreeMap::new(),
            leaving: BTreeSet::new(),
            last: Number::default(),
            bytes: 0,
            ready: VecDeque::new(),
            doubtful: VecDeque::new(),
            doubtful_in_flight: 0,
            destinations: Destinations::default(),
            paused: BTreeSet::new(),
            stale: VecDeque::new(),
            stale_silent: VecDeque::new(),
            missed: 0,
            in_flight: 0,
            given_up: Vec::new(),
        }
    }

    /// Changes the settings. Smaller bounds take effect with the next notification.
    pub fn set_policy(&mut self, policy: Policy) {
        if policy != self.policy {
            self.pace.set_rate(Rate::per_second(policy.rate.into()));
            self.policy = policy;
        }
    }

    /// Whether nothing is pending or in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.order.is_empty() && self.in_flight == 0 && self.stale.is_empty() && self.stale_silent.is_empty()
    }

    /// Pending notifications, without those in flight.
    #[must_use]
    pub fn pending(&self) -> Pending {
        Pending {
            notifications: self.order.len(),
            bytes: self.bytes,
        }
    }

    /// The number of notifications, counted from the first that arrived, of which each was delivered, has failed or
    /// was dropped.
    #[must_use]
    pub fn settled(&self) -> u64 {
        let oldest = self
            .order
            .keys()
            .next()
            .into_iter()
            .chain(self.leaving.first())
            .min();
        match oldest {
            None => self.last.arrival,
            Some(Number { arrival, made: 0 }) => arrival - 1,
            Some(made) => made.arrival,
        }
    }

    /// Enqueues a notification behind those of the same subscription.
    pub fn push(&mut self, notification: Notification) {
        self.last = Number {
            arrival: self.last.arrival + 1,
            made: 0,
        };
        self.add(notification);
    }

    fn add(&mut self, notification: Notification) {
        let size = notification.body.len();
        if size > self.policy.per_subscription.bytes.min(self.policy.total.bytes) {
            // The present state would not fit either, so that a resynchronisation is useless.
            (self.count)(Event::Dropped);
            return;
        }
        let subscription = notification.subscription.clone();
        let subscriber = self.subscribers.entry(subscription.clone()).or_default();
        subscriber.destination = notification.target.authority().cloned();
        subscriber.touch(&notification.subject, notification.whole);
        if notification.whole && subscriber.missed.remove(&notification.subject) {
            self.missed -= 1;
        }
        self.insert(&subscription, self.last, notification, Progress::default());
        self.make_ready(&subscription);
        self.make_room(&subscription);
    }

    /// Accounts for notifications that were dropped on their way here: `missed` names some.
    pub fn overflowed(&mut self, dropped: usize, missed: Vec<Missed>) {
        for _ in 0..dropped {
            (self.count)(Event::Dropped);
            self.last.arrival += 1;
        }
        for lost in missed {
            let (subscription, subject) = (lost.subscription, lost.subject);
            let subscriber = self.subscribers.entry(subscription.clone()).or_default();
            subscriber.destination = lost.destination;
            subscriber.touch(&subject, false);
            self.miss(&subscription, subject);
            self.settle(&subscription);
        }
    }

    /// The next step at `now`.
    pub fn next(&mut self, now: Instant) -> Step {
        while let Some((until, _)) = self.paused.first()
            && *until <= now
            && let Some((_, subscription)) = self.paused.pop_first()
        {
            self.queue(subscription);
        }
        if self.in_flight >= self.policy.parallel.max(1) {
            return Step::Idle;
        }
        if let Some(step) = self.next_resync() {
            return step;
        }
        while let Some((subscription, doubtful)) = self.pop_ready() {
            let Some(subscriber) = self.subscribers.get_mut(&subscription) else {
                continue;
            };
            let Some(resolves) = subscriber.head().map(|head| head.progress.resolves()) else {
                subscriber.phase = Phase::Idle;
                self.settle(&subscription);
                continue;
            };
            if self.policy.rate > 0 && !resolves && !self.pace.allow(now) {
                match doubtful {
                    true => self.doubtful.push_front(subscription),
                    false => self.ready.push_front(subscription),
                }
                let wait = self.pace.wait(now).unwrap_or_default();
                return Step::Wait(now + wait.max(Duration::from_millis(1)));
            }
            subscriber.phase = Phase::InFlight;
            if let Some(flight) = self.take_head(&subscription, doubtful) {
                self.in_flight += 1;
                self.doubtful_in_flight += usize::from(doubtful);
                return if resolves {
                    Step::Resolve(flight)
                } else {
                    Step::Send(flight)
                };
            }
        }
        match self.paused.first() {
            Some((until, _)) => Step::Wait(*until),
            None => Step::Idle,
        }
    }

    /// Reports the answer to a [`Step::Send`]. `dice` is a random number of 0 to 1, for the jitter of a pause.
    pub fn answered(&mut self, mut flight: Flight, answer: Answer, now: Instant, dice: f64) {
        if self.destinations.heard(flight.target().authority(), &answer) {
            self.stale.append(&mut self.stale_silent);
        }
        let next = flight.progress.advance(&answer, &self.policy, dice);
        self.returned(&flight);
        if let Some(subscriber) = self.subscribers.get_mut(&flight.notification.subscription) {
            subscriber.silent = matches!(answer, Answer::Retry(_));
        }
        match next {
            Next::Delivered { rerouted } => {
                (self.count)(Event::Delivered);
                if rerouted {
                    (self.count)(Event::Rerouted);
                }
                if let Some(subscriber) = self.subscribers.get_mut(&flight.notification.subscription) {
                    subscriber.failing = false;
                }
                self.finish(&flight.notification.subscription);
            }
            Next::Refused => {
                (self.count)(Event::Failed);
                tracing::debug!(
                    subscription = %flight.notification.subscription,
                    target = %flight.notification.target,
                    "subscriber refused a notification"
                );
                self.finish(&flight.notification.subscription);
            }
            Next::Failed => self.fail(&flight),
            Next::Now { redirected } => {
                if redirected {
                    (self.count)(Event::Redirected);
                }
                self.again(flight, None);
            }
            Next::After(pause) => self.again(flight, Some(now + pause)),
        }
    }

    /// Reports the addresses found by a [`Step::Resolve`].
    pub fn resolved(&mut self, mut flight: Flight, places: Vec<Uri>) {
        self.returned(&flight);
        let own = flight.notification.target.authority().cloned();
        let others = places
            .into_iter()
            .filter(|place| place.authority() != own.as_ref());
        if flight.progress.resolved(others.take(self.policy.alternates)) {
            self.again(flight, None);
        } else {
            self.fail(&flight);
        }
    }

    /// Reports the notifications made by a [`Step::Resync`]. Those of subjects that have changed meanwhile are
    /// discarded: a later notification of the subject is already here.
    pub fn resynced(&mut self, subscription: &Arc<str>, state: Vec<Notification>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(subscriber) = self.subscribers.get_mut(subscription) else {
            return;
        };
        let touched = subscriber.touched.take().unwrap_or_default();
        for notification in state {
            match touched.get(&notification.subject) {
                None => {
                    (self.count)(Event::Resynced);
                    self.last.made += 1;
                    self.add(notification);
                }
                Some(true) => {}
                // The notification that came meanwhile has only a part of the state.
                Some(false) => self.miss(subscription, notification.subject),
            }
        }
        self.settle(subscription);
    }

    fn next_resync(&mut self) -> Option<Step> {
        let subscription = self.pop_stale()?;
        let subscriber = self.subscribers.get_mut(&subscription)?;
        subscriber.touched = Some(AHashMap::new());
        let mut subjects = Vec::new();
        while subjects.len() < RESYNC_BATCH
            && let Some(subject) = subscriber.missed.pop_first()
        {
            subjects.push(subject);
        }
        self.missed -= subjects.len();
        self.in_flight += 1;
        Some(Step::Resync(subscription, subjects))
    }

    /// The next subscription to resynchronise: only below half of the bounds, so that it does not evict other notifications. Those of
    /// silent destinations count for silent destinations alone.
    fn pop_stale(&mut self) -> Option<Arc<str>> {
        let total = self.policy.total;
        let is_low = |waiting: Pending| {
            waiting.notifications <= total.notifications / 2 && waiting.bytes <= total.bytes / 2
        };
        let mut of_others = self.pending();
        let for_silent = self.destinations.for_silent();
        of_others.sub(for_silent.notifications, for_silent.bytes);
        if is_low(self.pending()) {
            return self.stale.pop_front().or_else(|| self.stale_silent.pop_front());
        }
        while is_low(of_others)
            && let Some(subscription) = self.stale.pop_front()
        {
            let subscriber = self.subscribers.get(&subscription);
            let destination = subscriber.and_then(|subscriber| subscriber.destination.as_ref());
            if !self.destinations.is_silent(destination) {
                return Some(subscription);
            }
            self.stale_silent.push_back(subscription);
        }
        None
    }

    fn insert(
        &mut self,
        subscription: &Arc<str>,
        number: Number,
        notification: Notification,
        progress: Progress,
    ) {
        self.bytes += notification.body.len();
        self.destinations.add(&notification);
        self.order.insert(number, subscription.clone());
        let subscriber = self.subscribers.entry(subscription.clone()).or_default();
        subscriber.insert(number, notification, progress);
    }

    /// The next subscription with something to send, and whether its subscriber is doubtful.
    fn pop_ready(&mut self) -> Option<(Arc<str>, bool)> {
        let most = (self.policy.parallel / 2).max(1);
        // One doubtful subscriber is always tried, further ones only if no other has pending notifications.
        let tried = self.doubtful_in_flight;
        if (tried == 0 || tried < most && self.ready.is_empty())
            && let Some(subscription) = self.doubtful.pop_front()
        {
            return Some((subscription, true));
        }
        self.ready.pop_front().map(|subscription| (subscription, false))
    }

    /// A subscription joins those with something to send.
    fn queue(&mut self, subscription: Arc<str>) {
        if let Some(subscriber) = self.subscribers.get_mut(&subscription) {
            subscriber.phase = Phase::Ready;
            let target = subscriber
                .head()
                .and_then(|head| head.progress.target(&head.notification).authority());
            match self.destinations.is_silent(target) || subscriber.silent || subscriber.failing {
                true => self.doubtful.push_back(subscription),
                false => self.ready.push_back(subscription),
            }
        }
    }

    fn take_head(&mut self, subscription: &Arc<str>, doubtful: bool) -> Option<Flight> {
        let subscriber = self.subscribers.get_mut(subscription)?;
        let number = subscriber.head_number()?;
        let (waiting, _) = subscriber.remove(number)?;
        self.order.remove(&number);
        self.leaving.insert(number);
        self.bytes -= waiting.notification.body.len();
        self.destinations.remove(&waiting.notification);
        Some(Flight {
            number,
            notification: waiting.notification,
            progress: waiting.progress,
            doubtful,
        })
    }

    fn returned(&mut self, flight: &Flight) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.leaving.remove(&flight.number);
        let doubtful = usize::from(flight.doubtful);
        self.doubtful_in_flight = self.doubtful_in_flight.saturating_sub(doubtful);
    }

    /// A subscription with something to send joins the others, unless it has to wait.
    fn make_ready(&mut self, subscription: &Arc<str>) {
        let subscriber = self.subscribers.get(subscription);
        if subscriber.is_some_and(|one| one.phase == Phase::Idle && one.head().is_some()) {
            self.queue(subscription.clone());
        }
    }

    /// Drops notifications until the bounds hold: of this subscription, then of whichever has the oldest.
    fn make_room(&mut self, subscription: &Arc<str>) {
        while self.subscribers.get(subscription).is_some_and(|subscriber| {
            let (notifications, bytes) = subscriber.waiting();
            self.policy.per_subscription.exceeded_by(notifications, bytes)
        }) && self.evict(subscription)
        {}
        while self.policy.total.exceeded_by(self.order.len(), self.bytes)
            && let Some((_, subscription)) = self.order.first_key_value()
        {
            let subscription = subscription.clone();
            if !self.evict(&subscription) {
                break;
            }
        }
    }

    /// Drops the least useful notification of a subscription: the oldest that a later one replaces, else the oldest.
    fn evict(&mut self, subscription: &Arc<str>) -> bool {
        let subscriber = self.subscribers.get_mut(subscription);
        let Some((number, waiting, superseded)) = subscriber.and_then(Subscriber::remove_least) else {
            return false;
        };
        self.order.remove(&number);
        self.bytes -= waiting.notification.body.len();
        self.destinations.remove(&waiting.notification);
        (self.count)(Event::Dropped);
        if !superseded {
            self.miss(subscription, waiting.notification.subject);
        }
        true
    }

    /// Records that the state of a subject was not delivered. These records are bounded like the notifications, and as many again for
    /// destinations that answer; beyond the bound the subscriber gets the state with the next change of the subject.
    fn miss(&mut self, subscription: &Arc<str>, subject: Arc<str>) {
        let Some(subscriber) = self.subscribers.get_mut(subscription) else {
            return;
        };
        let answers = !self.destinations.is_silent(subscriber.destination.as_ref());
        if self.missed < self.policy.total.notifications.max(1) * (1 + usize::from(answers))
            && subscriber.missed.insert(subject)
        {
            self.missed += 1;
        }
    }

    /// A notification goes back to the head of its subscription, to be sent at once or at an instant.
    fn again(&mut self, flight: Flight, at: Option<Instant>) {
        let subscription = flight.notification.subscription.clone();
        self.insert(&subscription, flight.number, flight.notification, flight.progress);
        match at {
            Some(at) => {
                self.paused.insert((at, subscription.clone()));
                if let Some(subscriber) = self.subscribers.get_mut(&subscription) {
                    subscriber.phase = Phase::Paused;
                }
            }
            None => self.queue(subscription.clone()),
        }
        self.make_room(&subscription);
    }

    fn fail(&mut self, flight: &Flight) {
        (self.count)(Event::Failed);
        let Notification {
            subscription,
            subject,
            target,
            ..
        } = &flight.notification;
        let subscriber = self.subscribers.entry(subscription.clone()).or_default();
        // One line per outage, not per notification.
        if std::mem::replace(&mut subscriber.failing, true) {
            tracing::debug!(%subscription, %target, "notification failed");
        } else {
            tracing::warn!(%subscription, %target, "subscriber unreachable, notification failed");
        }
        if !subscriber.replaces(subject, flight.number) {
            self.miss(subscription, subject.clone());
        }
        self.given_up.push(flight.notification.clone());
        self.finish(subscription);
    }

    /// Takes the notifications that no attempt has delivered. Those that were refused have an answer.
    pub fn take_given_up(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.given_up)
    }

    /// A notification has come to its end.
    fn finish(&mut self, subscription: &Arc<str>) {
        if let Some(subscriber) = self.subscribers.get_mut(subscription) {
            subscriber.phase = Phase::Idle;
        }
        self.make_ready(subscription);
        self.settle(subscription);
    }

    /// Requests the present state of the missed subjects when it can be delivered; removes a subscriber without pending
    /// notifications or missed subjects.
    fn settle(&mut self, subscription: &Arc<str>) {
        let Some(subscriber) = self.subscribers.get_mut(subscription) else {
            return;
        };
        let room = subscriber.waiting().0 <= self.policy.per_subscription.notifications / 2;
        if subscriber.touched.is_none() && !subscriber.failing && room && !subscriber.missed.is_empty() {
            subscriber.touched = Some(AHashMap::new());
            self.stale.push_back(subscription.clone());
        }
        if subscriber.is_forgettable() {
            self.subscribers.remove(subscription);
        }
    }
}

impl<C> fmt::Debug for Outbox<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("pending", &self.order.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}
