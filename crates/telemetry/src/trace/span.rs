//! One request's share of a trace.

use std::cell::Cell;
use std::time::{Instant, SystemTime};

use super::{TRACER, TraceContext, Tracer};

/// A sampled request under way. It is sent to the collector when it is dropped.
#[derive(Debug)]
pub struct Span {
    /// Until it is dropped.
    inner: Option<Finished>,
    began: Instant,
}

/// A span for the collector.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) function: &'static str,
    pub(super) name: &'static str,
    pub(super) context: TraceContext,
    pub(super) parent: Option<u64>,
    pub(super) start: SystemTime,
    pub(super) nanos: u64,
    pub(super) status: Option<u16>,
    pub(super) attributes: Vec<(&'static str, String)>,
}

thread_local! {
    /// What this thread owes to the share of requests that begin a trace.
    static OWED: Cell<f64> = const { Cell::new(0.0) };
    /// When this second has begun, and how many spans [`late`] has been asked for in it.
    static LATE: Cell<Option<(Instant, u32)>> = const { Cell::new(None) };
}

/// Begins the span of a request that a function serves, if it is sampled: when its sender traces it, or as one
/// of the share that begins a trace here. `name` is of a bounded set: `Nnrf_NFDiscovery GET`.
#[inline]
#[must_use]
pub fn begin<'a>(
    function: &'static str,
    name: &'static str,
    traceparent: impl FnOnce() -> Option<&'a str>,
) -> Option<Span> {
    // Without a tracer this is all.
    let tracer = TRACER.get()?;
    let parent: Option<TraceContext> = traceparent().and_then(|text| text.parse().ok());
    let context = sampled(tracer.share, tracer.follow, parent)?;
    Some(Span {
        inner: Some(Finished {
            function,
            name,
            context,
            parent: parent.map(|parent| parent.span),
            start: SystemTime::now(),
            nanos: 0,
            status: None,
            attributes: Vec::new(),
        }),
        began: Instant::now(),
    })
}

/// A request that was not sampled has ended: where it was slow or has failed, it has a span after all.
#[inline]
pub fn late(function: &'static str, name: &'static str, began: Instant, status: u16) {
    if let Some(tracer) = TRACER.get()
        && (status >= 500 || began.elapsed() > tracer.slow)
    {
        tracer.late(function, name, began, status);
    }
}

/// The context of a request that is sampled. A sender that has decided is followed, or it is not traced.
fn sampled(share: f64, follow: bool, parent: Option<TraceContext>) -> Option<TraceContext> {
    if let Some(parent) = parent {
        return (follow && parent.sampled).then(|| parent.child(rand::random()));
    }
    OWED.with(|owed| {
        let now = owed.get() + share;
        let begins = now >= 1.0;
        owed.set(if begins { now - 1.0 } else { now });
        begins.then(|| TraceContext::begin(rand::random(), rand::random(), true))
    })
}

impl Span {
    /// The context for requests that are sent on behalf of this one: their `traceparent`.
    #[must_use]
    pub fn context(&self) -> Option<TraceContext> {
        self.inner.as_ref().map(|span| span.context)
    }

    /// The HTTP status (or Diameter result) it was answered with; 500 and above are failures.
    pub fn status(&mut self, status: u16) {
        if let Some(span) = &mut self.inner {
            span.status = Some(status);
        }
    }

    /// What else is worth knowing.
    pub fn attribute(&mut self, name: &'static str, value: impl Into<String>) {
        /// More are a mistake of the caller's.
        const MOST: usize = 16;
        if let Some(span) = &mut self.inner
            && span.attributes.len() < MOST
        {
            span.attributes.push((name, value.into()));
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let (Some(mut span), Some(tracer)) = (self.inner.take(), TRACER.get()) {
            span.nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            tracer.take(span);
        }
    }
}

/// Spans a second of a worker that [`late`] may make: a function that refuses everything has other work to do.
const MOST_LATE: u32 = 100;

impl Tracer {
    #[cold]
    fn late(&self, function: &'static str, name: &'static str, began: Instant, status: u16) {
        let now = Instant::now();
        let admitted = LATE.with(|late| {
            let (since, count) = late.get().unwrap_or((now, 0));
            let (since, count) = if now.duration_since(since).as_secs() >= 1 {
                (now, 0)
            } else {
                (since, count)
            };
            late.set(Some((since, count + 1)));
            count < MOST_LATE
        });
        if !admitted {
            return;
        }
        let elapsed = now.duration_since(began);
        self.take(Finished {
            function,
            name,
            context: TraceContext::begin(rand::random(), rand::random(), true),
            parent: None,
            start: SystemTime::now()
                .checked_sub(elapsed)
                .unwrap_or(SystemTime::UNIX_EPOCH),
            nanos: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            status: Some(status),
            attributes: Vec::new(),
        });
    }

    fn take(&self, span: Finished) {
        if self.queue.try_send(span).is_err() {
            self.dropped.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_followed_and_a_share_begins() {
        let parent = |sampled| Some(TraceContext::begin(7, 9, sampled));
        let followed = sampled(0.0, true, parent(true)).unwrap();
        assert_eq!((followed.trace, followed.sampled), (7, true));
        assert_ne!(followed.span, 9);
        assert_eq!(
            sampled(1.0, true, parent(false)),
            None,
            "its sender does not trace it"
        );
        assert_eq!(sampled(1.0, false, parent(true)), None, "not to be followed");
        let begun = (0..1000).filter(|_| sampled(0.25, true, None).is_some()).count();
        assert_eq!(begun, 250);
        assert!(begin("test", "x", || None).is_none(), "no tracer");
    }
}
