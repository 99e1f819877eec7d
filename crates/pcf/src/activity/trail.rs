//! The trail of a request: what is known of its subscriber, and with it whether its messages, decisions and writes are kept.
//!
//! A trail belongs to a task and follows it through every call, so that the places that send, decide and write need not pass it
//! on. Without a traced subscriber there are no trails.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use diameter::proto::Message;
use sbi::{Request, Response};
use time::OffsetDateTime;

use super::entry::{of_answer, of_request};
use super::{Activity, Entry, Subject, of_diameter};
use crate::association::Association;

tokio::task_local! {
    static TRAIL: Rc<Trail>;
}

/// The trail of a request.
struct Trail {
    activity: Arc<Activity>,
    /// What distinguishes the entries of one request from those of others.
    request: u64,
    state: RefCell<State>,
}

/// Makes the entry of a request that came in.
type Came = Box<dyn FnOnce() -> Entry>;

/// What is known of the subscriber.
enum State {
    /// Nothing yet; with the request that came in, which only the entry of a traced subscriber reads.
    Open(Option<Came>),
    /// It is not traced.
    Untraced,
    Traced(Arc<Subject>),
}

/// A trail whose subscriber is traced, for other threads.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    activity: Arc<Activity>,
    request: u64,
    subject: Arc<Subject>,
}

impl PartialEq for Mark {
    fn eq(&self, other: &Self) -> bool {
        self.request == other.request && self.subject == other.subject
    }
}

impl Eq for Mark {}

impl Mark {
    /// Keeps an entry.
    pub(crate) fn note(&self, entry: Entry) {
        self.activity.record(&self.subject, self.request, entry);
    }
}

fn number() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

async fn within<T>(trail: Trail, work: impl Future<Output = T>) -> T {
    TRAIL.scope(Rc::new(trail), Box::pin(work)).await
}

/// Runs work of the PCF that no message has caused.
pub(crate) async fn own<T>(activity: &Arc<Activity>, work: impl Future<Output = T>) -> T {
    match activity.is_active() {
        true => within(Trail::open(activity, None), work).await,
        false => work.await,
    }
}

/// Answers a request of a consumer.
pub(crate) async fn of_sbi(
    activity: &Arc<Activity>,
    request: &Request,
    limit: usize,
    work: impl Future<Output = Response>,
) -> Response {
    if !activity.is_active() {
        return work.await;
    }
    let (at, peer) = (OffsetDateTime::now_utc(), request.peer.addr);
    let (head, body) = (request.head.clone(), request.body.clone());
    let came = move || of_request((&head, body), peer, at, limit);
    within(Trail::open(activity, Some(Box::new(came))), async move {
        let response = work.await;
        note(|| of_answer(request, &response));
        response
    })
    .await
}

/// Answers a request of a Diameter peer.
pub(crate) async fn of_peer<B: AsRef<[u8]>>(
    activity: &Arc<Activity>,
    (peer, request): (&str, &Message),
    work: impl Future<Output = diameter::proto::Message<B>>,
) -> diameter::proto::Message<B> {
    if !activity.is_active() {
        return work.await;
    }
    let (at, from, message) = (OffsetDateTime::now_utc(), peer.to_owned(), request.clone());
    let came = move || Entry {
        at,
        ..of_diameter("in", &from, &message)
    };
    within(Trail::open(activity, Some(Box::new(came))), async move {
        let answer = work.await;
        note(|| of_diameter("out", peer, &answer));
        answer
    })
    .await
}

/// Runs work in the trail that a mark is of.
pub(crate) async fn resume<T>(mark: Option<Mark>, work: impl Future<Output = T>) -> T {
    match mark {
        Some(mark) => {
            let trail = Trail {
                activity: mark.activity,
                request: mark.request,
                state: RefCell::new(State::Traced(mark.subject)),
            };
            within(trail, work).await
        }
        None => work.await,
    }
}

/// The mark of the current trail; none where its subscriber is not traced.
pub(crate) fn mark() -> Option<Mark> {
    let of = |trail: &Rc<Trail>| match &*trail.state.borrow() {
        State::Traced(subject) => Some(Mark {
            activity: trail.activity.clone(),
            request: trail.request,
            subject: subject.clone(),
        }),
        _ => None,
    };
    TRAIL.try_with(of).ok().flatten()
}

/// The current trail is about an association.
pub(crate) fn concerns(association: &Association) {
    // Without a trail it is no more than this.
    let _ = TRAIL.try_with(|trail| trail.identify(|activity| activity.subject(association)));
}

/// The current trail is about a subscriber without an association.
pub(crate) fn concerns_subscriber(supi: Option<&str>, gpsi: Option<&str>) {
    let _ = TRAIL.try_with(|trail| {
        trail.identify(|activity| {
            activity.traces(supi, gpsi).then(|| {
                Arc::new(Subject {
                    supi: supi.map(Into::into),
                    gpsi: gpsi.map(Into::into),
                    association: None,
                })
            })
        });
    });
}

/// Whether the subscriber of the current trail is traced.
pub(crate) fn is_traced() -> bool {
    let is = |trail: &Rc<Trail>| matches!(*trail.state.borrow(), State::Traced(_));
    TRAIL.try_with(is).unwrap_or(false)
}

/// Keeps an entry, where the subscriber of the current trail is traced.
pub(crate) fn note(entry: impl FnOnce() -> Entry) {
    if let Some(mark) = mark() {
        mark.note(entry());
    }
}

/// Keeps an entry about an association, in the current trail or outside of one; none where its subscriber is not traced.
pub(crate) fn note_about(
    activity: &Arc<Activity>,
    association: &Association,
    entry: impl FnOnce() -> Entry,
) -> Option<Mark> {
    let mark = Mark {
        activity: activity.clone(),
        request: TRAIL.try_with(|trail| trail.request).unwrap_or_else(|_| number()),
        subject: activity.subject(association)?,
    };
    mark.note(entry());
    Some(mark)
}

impl Trail {
    fn open(activity: &Arc<Activity>, came: Option<Came>) -> Self {
        Self {
            activity: activity.clone(),
            request: number(),
            state: RefCell::new(State::Open(came)),
        }
    }

    fn identify(&self, subject: impl FnOnce(&Activity) -> Option<Arc<Subject>>) {
        let mut state = self.state.borrow_mut();
        let subject = match &*state {
            State::Untraced => return,
            State::Open(_) | State::Traced(_) => subject(&self.activity),
        };
        match (&mut *state, subject) {
            (State::Open(came), Some(subject)) => {
                if let Some(came) = came.take() {
                    self.activity.record(&subject, self.request, came());
                }
                *state = State::Traced(subject);
            }
            (State::Open(_), None) => *state = State::Untraced,
            // Other associations of the subscriber follow.
            (State::Traced(_), Some(subject)) => *state = State::Traced(subject),
            _ => {}
        }
    }
}
