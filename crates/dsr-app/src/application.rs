//! What an application implements.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use diameter_proto::{Fault, Origin, ResultCode};
use serde_json::Value;
use telemetry::events::{Counters, Happening};

use crate::flow::Flow;
use crate::out::Out;
use crate::parking::{Resume, Ticket};
use crate::stage::{Answered, Lost, Memo, Request, Resumed};

/// An application inside a router. It does no IO while it is shown something, and takes no lock that another thread may hold
/// for long; what has to wait is [`Flow::Later`].
pub trait Application: Debug + Send + Sync + Sized + 'static {
    /// The key of its kind in the configuration.
    const KIND: &'static str;

    /// Whether it answers requests itself. Those without the P flag are for it then (RFC 6733 §3), and so are those for
    /// this node.
    const IS_SERVER: bool = false;

    /// Whether it is shown the answers to requests that it let through, and that they got none. It costs an allocation for
    /// each request.
    const FOLLOWS: bool = false;

    /// Interval of [`Application::tick`] on each worker; none: it is not called.
    const TICK: Option<Duration> = None;

    /// What can happen in it, made by `telemetry::events!`: counters that applications of a kind share.
    type Event: Happening;

    /// Its state on one worker. It outlives a reload as long as the application keeps its name and kind.
    type Worker: Default + 'static;

    /// What it resumes a parked transaction with.
    type Found: Send + 'static;

    /// Prepares the state of a worker: when the worker takes the application into use, and after each change of settings or
    /// file.
    fn configure(&self, worker: &mut Self::Worker, resume: Resume<Self::Found>) {
        let _ = (worker, resume);
    }

    /// What becomes of a request that an application route rule has led here.
    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a>;

    /// What becomes of the answer to a request that it let through. [`Flow::To`] sends the request once more.
    fn answer<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let _ = (on, answered);
        Flow::Next
    }

    /// What becomes of a request that it let through and that nothing answers: each attempt of the router has failed.
    /// [`Flow::Next`] answers as the router's settings say, or drops it; [`Flow::To`] sends the request once more, and where
    /// that is not possible, this is called again.
    fn lost<'a>(&'a self, on: &mut On<'_, Self>, lost: &Lost<'_>) -> Flow<'a> {
        let _ = (on, lost);
        Flow::Next
    }

    /// Goes on with a transaction that it parked.
    fn resume<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>, found: Self::Found) -> Flow<'a> {
        let _ = (on, resumed, found);
        Flow::Next
    }

    /// Goes on with a transaction that it parked and did not resume in time.
    fn expired<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>) -> Flow<'a> {
        let _ = (on, resumed);
        let why = "the request was parked for too long";
        Flow::refuse(Fault::new(ResultCode::UNABLE_TO_DELIVER, why))
    }

    /// Learns that a transaction is not parked as it wanted: [`Application::max_parked`] is reached, or the worker ends; or that it
    /// was, and its client has no connection any more. The router answers or drops it; what the application holds for it ends here.
    fn unparked(&self, on: &mut On<'_, Self>, resumed: &Resumed<'_>) {
        let _ = (on, resumed);
    }

    /// Does what is due without a request. `names` are those of the first local node.
    fn tick(&self, on: &mut On<'_, Self>, names: &Origin) {
        let _ = (on, names);
    }

    /// Bound on the transactions that it has parked on one worker; beyond, the router answers by `exceptions.exhausted`.
    fn max_parked(&self) -> usize {
        10_000
    }

    /// What it would do with a request, and why, for `signalbox dsr why`: it counts nothing and changes no state. None: it
    /// is asked as on a worker that has seen no request yet.
    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        let _ = request;
        None
    }

    /// What it has found wrong with messages, for metrics.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Its tables, for pages and metrics.
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    /// Puts an entry on a list, or takes it off; none: its entries are not changed one by one. It may wait for the disk.
    fn change(&self, subject: &str, list: &str) -> Option<Result<(), String>> {
        let _ = (subject, list);
        None
    }

    /// What it knows of a subject, for pages; none: it is asked about nothing.
    fn look_up(&self, subject: &str) -> Option<Value> {
        let _ = subject;
        None
    }
}

/// What an application has at hand while it is shown something.
pub struct On<'w, A: Application> {
    /// Its state on this worker.
    pub worker: &'w mut A::Worker,
    /// What it keeps with the transaction, where it [follows](Application::FOLLOWS) or parks it.
    pub memo: &'w mut Memo,
    /// Counters of this worker.
    pub counters: &'w Counters<A::Event>,
    /// Takes requests of its own.
    pub out: &'w mut Out,
    /// The name of the transaction, should it be parked now.
    pub ticket: Ticket,
    /// The time.
    pub now: Instant,
    /// Whether the worker has too much to do: what an application can put off waits.
    pub is_congested: bool,
}

impl<A: Application> On<'_, A> {
    /// Counts an event.
    #[inline]
    pub fn count(&self, event: A::Event) {
        self.counters.count(event);
    }

    /// Lets an answer go on whose session was to be removed: counts `ended` where it was, `failed` where the store failed; what is
    /// left there is stale in time.
    pub fn removed<'a, E>(&self, removed: &Result<bool, E>, ended: A::Event, failed: A::Event) -> Flow<'a> {
        match removed {
            Ok(true) => self.count(ended),
            Ok(false) => {}
            Err(_) => self.count(failed),
        }
        Flow::Next
    }

    /// Counts an event and refuses the request at hand.
    pub fn refuse<'a>(&self, event: A::Event, code: ResultCode, why: &'static str) -> Flow<'a> {
        self.count(event);
        Flow::refuse(Fault::new(code, why))
    }
}

/// What an application would do with a request.
#[derive(Debug)]
pub struct Explained<'a> {
    /// What becomes of it.
    pub flow: Flow<'a>,
    /// Reasons, in the order in which they were found.
    pub reasons: Vec<String>,
}

/// How often messages of a partner were found to be wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The partner.
    pub partner: String,
    /// What found it.
    pub measure: &'static str,
    /// What became of the message.
    pub outcome: &'static str,
    /// How often.
    pub count: u64,
}

/// A table of an application.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name.
    pub name: &'static str,
    /// Number of entries.
    pub entries: usize,
    /// Memory that the entries take.
    pub bytes: usize,
}
