//! One request's share of a trace, and what is sent on its behalf.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use super::{TRACER, TraceContext, Tracer};

/// A sampled request in flight: one that is served, or one that is sent on its behalf. It is sent to the collector when it is
/// dropped.
#[derive(Debug)]
pub struct Span(
    /// Until it is dropped.
    Option<Box<Finished>>,
);

/// A span for the collector.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) function: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) context: TraceContext,
    pub(super) parent: Option<u64>,
    /// The span of another trace that belongs to it.
    pub(super) link: Option<TraceContext>,
    pub(super) start: SystemTime,
    pub(super) began: Instant,
    pub(super) nanos: u64,
    /// The HTTP status.
    pub(super) status: Option<u16>,
    pub(super) failed: bool,
    pub(super) attributes: Vec<(&'static str, String)>,
}

/// Which side of a request a span is of; the number is that of OTLP's `SpanKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server = 2,
    Client = 3,
}

impl Finished {
    fn begin(
        function: &'static str,
        name: &'static str,
        kind: Kind,
        (context, parent): (TraceContext, Option<TraceContext>),
    ) -> Self {
        Self {
            function,
            name,
            kind,
            context,
            parent: parent.map(|parent| parent.span),
            link: None,
            start: SystemTime::now(),
            began: Instant::now(),
            nanos: 0,
            status: None,
            failed: false,
            attributes: Vec::new(),
        }
    }

    fn end(&mut self) {
        self.nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
}

thread_local! {
    /// What this thread owes to the share of requests that begin a trace.
    static OWED: Cell<f64> = const { Cell::new(0.0) };
    /// When this second has begun, and how many spans [`late`] has been asked for in it.
    static LATE: Cell<Option<(Instant, u32)>> = const { Cell::new(None) };
    /// The function that this thread belongs to.
    static FUNCTION: Cell<&'static str> = const { Cell::new("signalbox") };
    /// The span of the request that this thread works for now.
    static CURRENT: Cell<Option<TraceContext>> = const { Cell::new(None) };
}

/// From now on what this thread sends is sent by this function.
pub fn enter(function: &'static str) {
    FUNCTION.set(function);
}

/// The function that this thread belongs to ([`enter`]).
#[must_use]
pub fn function() -> &'static str {
    FUNCTION.get()
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
    begin_if(function, || name, || false, traceparent)
}

/// As [`begin`]; a request for which `is_wanted` holds is sampled in any case.
#[inline]
#[must_use]
pub fn begin_if<'a>(
    function: &'static str,
    name: impl FnOnce() -> &'static str,
    is_wanted: impl FnOnce() -> bool,
    traceparent: impl FnOnce() -> Option<&'a str>,
) -> Option<Span> {
    // Without a tracer this is all.
    let tracer = TRACER.get()?;
    let parent: Option<TraceContext> = traceparent().and_then(|text| text.parse().ok());
    let mut context = sampled(tracer.share, tracer.follow, parent);
    if context.is_none() && is_wanted() {
        context = Some(forced(parent));
    }
    let context = context?;
    let span = Finished::begin(function, name(), Kind::Server, (context, parent));
    Some(Span(Some(Box::new(span))))
}

/// Begins the span of a request that this thread sends, if it sends it for a sampled one: work within a [`Scope`], or a task of its own
/// whose request has the `traceparent` of the one that it is sent for. `name` is of a bounded set.
#[inline]
#[must_use]
pub fn client<'a>(
    name: impl FnOnce() -> &'static str,
    traceparent: impl FnOnce() -> Option<&'a str>,
) -> Option<Span> {
    // Without a tracer this is all.
    let tracer = TRACER.get()?;
    let parent = CURRENT.get().or_else(|| {
        let header: TraceContext = traceparent().filter(|_| tracer.follow)?.parse().ok()?;
        header.sampled.then_some(header)
    })?;
    let context = parent.child(rand::random());
    let span = Finished::begin(FUNCTION.get(), name(), Kind::Client, (context, Some(parent)));
    Some(Span(Some(Box::new(span))))
}

/// A sampled request for which a thread works: what is sent meanwhile is sent on its behalf.
#[derive(Clone, Copy, Debug)]
pub struct Scope(TraceContext);

impl Scope {
    /// That of the request for which this thread works now.
    #[must_use]
    pub fn of_thread() -> Option<Self> {
        CURRENT.get().map(Self)
    }

    /// The context of the request.
    #[must_use]
    pub fn context(self) -> TraceContext {
        self.0
    }

    /// Runs a step of the work.
    pub fn run<T>(self, step: impl FnOnce() -> T) -> T {
        struct Restore(Option<TraceContext>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self.0)));
        step()
    }

    /// The work, of which each step is run so.
    pub fn around<F: Future + Unpin>(self, work: F) -> impl Future<Output = F::Output> {
        Within { scope: self, work }
    }
}

/// Work for a sampled request.
struct Within<F> {
    scope: Scope,
    work: F,
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let work = Pin::new(&mut this.work);
        this.scope.run(|| work.poll(cx))
    }
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

/// The context of a request that is sampled whatever its sender has decided.
fn forced(parent: Option<TraceContext>) -> TraceContext {
    match parent {
        Some(parent) => TraceContext {
            sampled: true,
            ..parent.child(rand::random())
        },
        None => TraceContext::begin(rand::random(), rand::random(), true),
    }
}

impl Span {
    /// The context for requests that are sent on behalf of this one: their `traceparent`.
    #[must_use]
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|span| span.context)
    }

    /// The scope for work on behalf of this request.
    #[must_use]
    pub fn scope(&self) -> Option<Scope> {
        self.context().map(Scope)
    }

    /// The HTTP status it was answered with; 500 and above are failures.
    pub fn status(&mut self, status: u16) {
        if let Some(span) = &mut self.0 {
            span.status = Some(status);
            span.failed |= status >= 500;
        }
    }

    /// It has failed, for this reason.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.attribute("error.type", reason);
        if let Some(span) = &mut self.0 {
            span.failed = true;
        }
    }

    /// It is of a subscriber that an operator follows; its exchange before this one, if it was of another trace, has these numbers of
    /// trace and span.
    pub fn follows(&mut self, before: Option<(u128, u64)>) {
        self.attribute("signalbox.followed", "true");
        if let (Some(span), Some((trace, before))) = (&mut self.0, before) {
            span.link = Some(TraceContext::begin(trace, before, true));
        }
    }

    /// What else is worth knowing.
    pub fn attribute(&mut self, name: &'static str, value: impl Into<String>) {
        /// More are a mistake of the caller's.
        const MOST: usize = 16;
        if let Some(span) = &mut self.0
            && span.attributes.len() < MOST
        {
            span.attributes.push((name, value.into()));
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let (Some(mut span), Some(tracer)) = (self.0.take(), TRACER.get()) {
            span.end();
            tracer.take(*span);
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
        let context = TraceContext::begin(rand::random(), rand::random(), true);
        let mut span = Finished::begin(function, name, Kind::Server, (context, None));
        let earlier = span.start.checked_sub(now.duration_since(began));
        span.start = earlier.unwrap_or(SystemTime::UNIX_EPOCH);
        span.began = began;
        span.status = Some(status);
        span.failed = status >= 500;
        span.end();
        self.take(span);
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
        // A request that an operator follows is one of its sender's trace, sampled or not.
        let unsampled = forced(parent(false));
        assert_eq!((unsampled.trace, unsampled.sampled), (7, true));
    }

    #[test]
    fn work_has_a_scope_while_it_runs_and_not_between() {
        let scope = Scope(TraceContext::begin(7, 9, true));
        let within = |inner: &str| assert_eq!(CURRENT.get().map(|it| it.span), Some(9), "{inner}");
        let mut polls = 0;
        let work = std::future::poll_fn(|_| {
            within("a step");
            polls += 1;
            if polls < 2 { Poll::Pending } else { Poll::Ready(()) }
        });
        let mut work = std::pin::pin!(scope.around(work));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(work.as_mut().poll(&mut context).is_pending());
        assert_eq!(CURRENT.get(), None, "between two steps");
        assert!(work.as_mut().poll(&mut context).is_ready());
        scope.run(|| {
            Scope(TraceContext::begin(7, 10, true)).run(|| {});
            within("behind an inner one");
        });
        assert_eq!(CURRENT.get(), None);
    }
}
