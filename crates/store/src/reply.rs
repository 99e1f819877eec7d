//! Answers that are often there at once.
//!
//! The embedded engine answers reads where they are asked, in microseconds, without a thread or an allocation
//! for a future; a database answers later. Functions write `.await` and get the better of both.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake};

use telemetry::trace::{self, Scope, Span};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::dictionary::Dictionaries;
use crate::error::Error;
use crate::version::Version;

type Later<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// The answer to a read: a future that may be ready from the start.
#[must_use = "an answer does nothing unless awaited"]
pub struct Reply<T>(State<T>);

enum State<T> {
    Now(Option<Result<T, Error>>),
    Later(Later<T>),
}

// The value in `Now` is never pinned: it is only moved out.
impl<T> Unpin for Reply<T> {}

impl<T> Reply<T> {
    pub(crate) fn now(answer: Result<T, Error>) -> Reply<T> {
        Reply(State::Now(Some(answer)))
    }

    pub(crate) fn later(answer: impl Future<Output = Result<T, Error>> + Send + 'static) -> Reply<T> {
        Reply(State::Later(Box::pin(answer)))
    }

    /// The answer if it is there already, else the future of it.
    ///
    /// # Errors
    /// Not an error: `Err` holds the future.
    pub fn try_now(self) -> Result<Result<T, Error>, Reply<T>> {
        match self.0 {
            State::Now(Some(answer)) => Ok(answer),
            other => Err(Reply(other)),
        }
    }
}

static NONE: LazyLock<Dictionaries> = LazyLock::new(Dictionaries::none);

impl<T: 'static> Reply<T> {
    /// What `f` makes of the answer. Only engines that answer at once have dictionaries.
    pub(crate) fn decode<U>(
        self,
        dictionaries: &Dictionaries,
        f: impl FnOnce(T, &Dictionaries) -> Result<U, Error> + Send + 'static,
    ) -> Reply<U> {
        match self.0 {
            State::Now(answer) => {
                let decoded = answer.map(|answer| answer.and_then(|answer| f(answer, dictionaries)));
                Reply(State::Now(decoded))
            }
            State::Later(answer) => {
                Reply::later(async move { answer.await.and_then(|answer| f(answer, &NONE)) })
            }
        }
    }
}

impl<T> Future for Reply<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            // Polling a finished future again is the caller's bug; `Closed` is kinder than a panic.
            State::Now(answer) => Poll::Ready(answer.take().unwrap_or(Err(Error::Closed))),
            State::Later(answer) => worker::outside::poll(context, |context| answer.as_mut().poll(context)),
        }
    }
}

/// Name of the span of a commit.
pub(crate) const COMMIT: &str = "store commit";

/// The answer to a commit: resolves when the batch is durable, or refused.
#[must_use = "a commit is acknowledged only when this has resolved"]
#[derive(Debug)]
pub struct Receipt {
    state: ReceiptState,
    /// Of a commit for a traced request.
    span: Option<Span>,
}

enum ReceiptState {
    Refused(Option<Error>),
    Waiting(oneshot::Receiver<Result<Version, Error>>),
    Later(Later<Version>),
}

impl std::fmt::Debug for ReceiptState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => f.debug_tuple("Refused").field(error).finish(),
            Self::Waiting(_) => f.write_str("Waiting"),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// The engine's end of a [`Receipt`].
pub(crate) type Acknowledge = oneshot::Sender<Result<Version, Error>>;

impl Receipt {
    pub(crate) fn refused(error: Error) -> Receipt {
        Receipt::of(ReceiptState::Refused(Some(error)))
    }

    pub(crate) fn later(answer: impl Future<Output = Result<Version, Error>> + Send + 'static) -> Receipt {
        Receipt::of(ReceiptState::Later(Box::pin(answer)))
    }

    pub(crate) fn pair() -> (Acknowledge, Receipt) {
        let (sender, receiver) = oneshot::channel();
        (sender, Receipt::of(ReceiptState::Waiting(receiver)))
    }

    fn of(state: ReceiptState) -> Receipt {
        Receipt { state, span: None }
    }

    /// With the span of the commit, which ends when the receipt has resolved.
    pub(crate) fn spanned(self, span: Option<Span>) -> Receipt {
        Receipt { span, ..self }
    }

    /// The commit is made for a traced request that another thread serves, and has a span.
    pub fn within(self, scope: Option<Scope>) -> Receipt {
        match (&self.span, scope) {
            (None, Some(scope)) => {
                let span = scope.run(|| trace::client(|| COMMIT, || None));
                self.spanned(span)
            }
            _ => self,
        }
    }

    /// Waits on a thread that is not a runtime's.
    ///
    /// # Errors
    /// As the future.
    pub fn wait(self) -> Result<Version, Error> {
        match self.state {
            ReceiptState::Refused(error) => Err(error.unwrap_or(Error::Closed)),
            ReceiptState::Waiting(receiver) => receiver.blocking_recv().unwrap_or_else(|_| Err(lost())),
            ReceiptState::Later(answer) => block_on(answer),
        }
    }
}

/// Waits for an answer on a thread that is not a runtime's.
fn block_on<T>(mut answer: Later<T>) -> Result<T, Error> {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Ends the span of a commit. A condition that does not hold is an outcome, and no failure.
#[cold]
fn ended(mut span: Span, error: Option<&Error>) {
    match error {
        Some(Error::Conflict { .. }) => span.attribute("db.response.status_code", "conflict"),
        Some(error) => span.fail(error.to_string()),
        None => {}
    }
}

/// The engine has gone without an answer (its thread ended): whether the write is kept is not known.
fn lost() -> Error {
    Error::Unavailable {
        reason: "the engine stopped before it answered".to_owned(),
        maybe_applied: true,
    }
}

impl Future for Receipt {
    type Output = Result<Version, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.state {
            ReceiptState::Refused(error) => Poll::Ready(Err(error.take().unwrap_or(Error::Closed))),
            ReceiptState::Waiting(receiver) => match receiver.try_recv() {
                Ok(answer) => Poll::Ready(answer),
                Err(TryRecvError::Closed) => Poll::Ready(Err(lost())),
                Err(TryRecvError::Empty) => {
                    worker::outside::poll(context, |context| Pin::new(receiver).poll(context))
                        .map(|answer| answer.unwrap_or_else(|_| Err(lost())))
                }
            },
            ReceiptState::Later(answer) => {
                worker::outside::poll(context, |context| answer.as_mut().poll(context))
            }
        };
        if let Poll::Ready(outcome) = &outcome
            && let Some(span) = self.span.take()
        {
            ended(span, outcome.as_ref().err());
        }
        outcome
    }
}
