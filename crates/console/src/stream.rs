//! The stream of a browser (Server-Sent Events): the whole summary first, then each second the sections that have changed. A
//! browser that is slow misses states in between and costs no memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::unfold;
use tokio::sync::watch;

use crate::access::{Access, Right, Visitor};
use crate::summary::{Sections, Watch};

/// Browsers that are served at the same time.
pub(crate) const MOST_STREAMS: usize = 32;
/// Interval of updates; one that has changed nothing shows that the console lives.
const INTERVAL: Duration = Duration::from_secs(1);

/// What all streams are fed from.
#[derive(Debug)]
pub(crate) struct Feed {
    sections: watch::Sender<Views>,
    streams: AtomicUsize,
}

impl Feed {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            sections: watch::Sender::new(Views::default()),
            streams: AtomicUsize::new(0),
        })
    }

    /// Makes the sections each second while anyone reads them; ends with its runtime.
    pub(crate) async fn run(self: Arc<Self>, watch: Arc<Watch>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        loop {
            ticks.tick().await;
            if self.streams.load(Ordering::Relaxed) > 0 {
                watch.attention.pay();
                self.sections.send_replace(Views::new(&watch));
            }
        }
    }
}

/// The sections for those who may see subscribers, and for the others.
#[derive(Clone, Debug, Default)]
struct Views {
    whole: Arc<Sections>,
    masked: Arc<Sections>,
}

impl Views {
    fn new(watch: &Watch) -> Self {
        let (whole, masked) = watch.sections();
        Self {
            whole: Arc::new(whole),
            masked: Arc::new(masked),
        }
    }

    fn of(&self, visitor: &Visitor) -> Arc<Sections> {
        let view = if visitor.may(Right::Trace) {
            &self.whole
        } else {
            &self.masked
        };
        view.clone()
    }
}

/// A position among the streams, free again when dropped.
struct Place(Arc<Feed>);

impl Place {
    fn take(feed: &Arc<Feed>) -> Option<Self> {
        let step = |taken| (taken < MOST_STREAMS).then_some(taken + 1);
        let taken = feed
            .streams
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        taken.is_ok().then(|| Self(feed.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers with a stream, or refuses in words. It ends with the session of the visitor.
pub(crate) fn stream(feed: &Arc<Feed>, watch: &Watch, access: Arc<Access>, visitor: Visitor) -> Response {
    let Some(place) = Place::take(feed) else {
        let words = format!("{MOST_STREAMS} pages are open already; close one of them\n");
        return (StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    watch.attention.pay();
    let mut receiver = feed.sections.subscribe();
    let first = Views::new(watch);
    receiver.mark_unchanged();
    let start = (place, receiver, Some(first), Arc::<Sections>::default());
    let viewer = Arc::new((access, visitor));
    let events = unfold(start, move |(place, mut receiver, first, sent)| {
        let viewer = viewer.clone();
        async move {
            let views = match first {
                Some(first) => first,
                None => {
                    receiver.changed().await.ok()?;
                    receiver.borrow_and_update().clone()
                }
            };
            let (access, visitor) = &*viewer;
            // Roles may have changed, and the session may have ended.
            let next = views.of(&access.again(visitor, Instant::now())?);
            let event = Event::default().event("summary").data(difference(&sent, &next));
            Some((Ok::<_, Infallible>(event), (place, receiver, None, next)))
        }
    });
    Sse::new(events).into_response()
}

/// The sections that a browser does not have, as one object.
fn difference(sent: &Sections, next: &Sections) -> String {
    let changed = next.iter().filter(|(name, text)| sent.get(*name) != Some(text));
    let members: Vec<String> = changed.map(|(name, text)| format!("\"{name}\":{text}")).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_sent() {
        let before: Sections = [("alarms", "[1]".to_owned()), ("headline", "{}".to_owned())].into();
        let now: Sections = [("alarms", "[2]".to_owned()), ("headline", "{}".to_owned())].into();
        assert_eq!(difference(&before, &now), "{\"alarms\":[2]}");
        assert_eq!(difference(&now, &now), "{}");
    }

    #[test]
    fn positions_are_bounded_and_come_back() {
        let feed = Feed::new();
        let taken: Vec<_> = (0..MOST_STREAMS).map_while(|_| Place::take(&feed)).collect();
        assert_eq!(taken.len(), MOST_STREAMS);
        assert!(Place::take(&feed).is_none());
        drop(taken);
        assert!(Place::take(&feed).is_some());
    }
}
