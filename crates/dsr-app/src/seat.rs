//! An application on a worker, and applications without their types: what the router has to do with.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::Origin;
use serde_json::Value;
use telemetry::Registry;
use telemetry::events::{self, Counters, Happening};

use crate::application::{Application, Explained, Finding, On, Table};
use crate::flow::Flow;
use crate::out::Out;
use crate::parking::{Found, Resumer, Ticket};
use crate::stage::{Answered, Lost, Memo, Request, Resumed};

/// An application without its type.
pub trait Installed: Debug + Send + Sync {
    /// As [`Application::KIND`].
    fn kind(&self) -> &'static str;
    /// As [`Application::IS_SERVER`].
    fn is_server(&self) -> bool;
    /// As [`Application::max_parked`].
    fn max_parked(&self) -> usize;
    /// As [`Application::tables`].
    fn tables(&self) -> Vec<Table>;
    /// As [`Application::explain`].
    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>>;
    /// As [`Application::findings`].
    fn findings(&self) -> Vec<Finding>;
    /// As [`Application::change`].
    fn change(&self, subject: &str, list: &str) -> Option<Result<(), String>>;
    /// As [`Application::look_up`].
    fn look_up(&self, subject: &str) -> Option<Value>;
    /// The counters of its kind: a [`Tally`] of its events.
    fn tally(&self, workers: usize, registry: &Registry) -> Arc<dyn Any + Send + Sync>;
    /// Takes it into use on a worker, with the state of `before`: the same application by name and kind.
    fn seat(
        self: Arc<Self>,
        worker: usize,
        tally: &(dyn Any + Send + Sync),
        resumer: &Resumer,
        before: Option<&dyn Any>,
    ) -> Rc<dyn Seated>;
}

impl<A: Application> Installed for A {
    fn kind(&self) -> &'static str {
        A::KIND
    }

    fn is_server(&self) -> bool {
        A::IS_SERVER
    }

    fn max_parked(&self) -> usize {
        Application::max_parked(self)
    }

    fn tables(&self) -> Vec<Table> {
        Application::tables(self)
    }

    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        Application::explain(self, request)
    }

    fn findings(&self) -> Vec<Finding> {
        Application::findings(self)
    }

    fn change(&self, subject: &str, list: &str) -> Option<Result<(), String>> {
        Application::change(self, subject, list)
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        Application::look_up(self, subject)
    }

    fn tally(&self, workers: usize, registry: &Registry) -> Arc<dyn Any + Send + Sync> {
        Arc::new(Tally::<A::Event>::new(workers, registry))
    }

    fn seat(
        self: Arc<Self>,
        worker: usize,
        tally: &(dyn Any + Send + Sync),
        resumer: &Resumer,
        before: Option<&dyn Any>,
    ) -> Rc<dyn Seated> {
        let before = before.and_then(|before| before.downcast_ref::<Seat<A>>());
        let tally = tally.downcast_ref::<Tally<A::Event>>();
        let counters = tally.map(|tally| tally.of(worker)).unwrap_or_default();
        let state = before.map(|before| before.state.clone()).unwrap_or_default();
        self.configure(&mut state.borrow_mut(), resumer.typed());
        Rc::new(Seat {
            application: self,
            counters,
            state,
        })
    }
}

/// An application on one worker that belongs to no router: its counters are shown nowhere, and it resumes nothing.
pub fn seat(application: Arc<dyn Installed>) -> Rc<dyn Seated> {
    application.seat(0, &(), &Resumer::none(), None)
}

/// One turn of an application: what it has at hand besides its own.
#[derive(Debug)]
pub struct Turn<'t> {
    /// The time.
    pub now: Instant,
    /// The ticket of the transaction, should it be parked.
    pub ticket: Ticket,
    /// The memo of the transaction.
    pub memo: &'t mut Memo,
    /// What the application sends.
    pub out: &'t mut Out,
    /// As [`On::is_congested`].
    pub is_congested: bool,
}

/// An application on one worker, without its type. What it is shown is as in [`Application`].
pub trait Seated {
    /// The application.
    fn application(&self) -> &dyn Installed;
    /// As [`Application::FOLLOWS`].
    fn follows(&self) -> bool;
    /// As [`Application::request`].
    fn request<'a>(&'a self, turn: Turn<'_>, request: &Request<'_>) -> Flow<'a>;
    /// As [`Application::answer`].
    fn answer<'a>(&'a self, turn: Turn<'_>, answered: &Answered<'_>) -> Flow<'a>;
    /// As [`Application::lost`].
    fn lost<'a>(&'a self, turn: Turn<'_>, lost: &Lost<'_>) -> Flow<'a>;
    /// As [`Application::resume`], or without anything found as [`Application::expired`].
    fn resume<'a>(&'a self, turn: Turn<'_>, resumed: &Resumed<'_>, found: Option<Found>) -> Flow<'a>;
    /// As [`Application::unparked`].
    fn unparked(&self, turn: Turn<'_>, resumed: &Resumed<'_>);
    /// As [`Application::TICK`].
    fn interval(&self) -> Option<Duration>;
    /// As [`Application::tick`].
    fn tick(&self, turn: Turn<'_>, names: &Origin);
    /// For [`Installed::seat`].
    fn as_any(&self) -> &dyn Any;
}

struct Seat<A: Application> {
    application: Arc<A>,
    counters: Arc<Counters<A::Event>>,
    state: Rc<RefCell<A::Worker>>,
}

impl<A: Application> Seat<A> {
    /// The state is borrowed while the application is shown something; it calls no one back meanwhile.
    #[inline]
    fn on<'a, T>(&'a self, turn: Turn<'_>, show: impl FnOnce(&'a A, &mut On<'_, A>) -> T) -> T {
        let mut on = On {
            worker: &mut *self.state.borrow_mut(),
            memo: turn.memo,
            counters: &self.counters,
            out: turn.out,
            ticket: turn.ticket,
            now: turn.now,
            is_congested: turn.is_congested,
        };
        show(&self.application, &mut on)
    }
}

impl<A: Application> Seated for Seat<A> {
    fn application(&self) -> &dyn Installed {
        &*self.application
    }

    fn follows(&self) -> bool {
        A::FOLLOWS
    }

    fn request<'a>(&'a self, turn: Turn<'_>, request: &Request<'_>) -> Flow<'a> {
        self.on(turn, |application, on| application.request(on, request))
    }

    fn answer<'a>(&'a self, turn: Turn<'_>, answered: &Answered<'_>) -> Flow<'a> {
        self.on(turn, |application, on| application.answer(on, answered))
    }

    fn lost<'a>(&'a self, turn: Turn<'_>, lost: &Lost<'_>) -> Flow<'a> {
        self.on(turn, |application, on| application.lost(on, lost))
    }

    fn resume<'a>(&'a self, turn: Turn<'_>, resumed: &Resumed<'_>, found: Option<Found>) -> Flow<'a> {
        let found = found.and_then(|found| found.downcast::<A::Found>().ok());
        self.on(turn, |application, on| match found {
            Some(found) => application.resume(on, resumed, *found),
            None => application.expired(on, resumed),
        })
    }

    fn unparked(&self, turn: Turn<'_>, resumed: &Resumed<'_>) {
        self.on(turn, |application, on| application.unparked(on, resumed));
    }

    fn interval(&self) -> Option<Duration> {
        A::TICK
    }

    fn tick(&self, turn: Turn<'_>, names: &Origin) {
        self.on(turn, |application, on| application.tick(on, names));
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Counters of one kind of application, a set for each worker.
#[derive(Debug)]
pub struct Tally<E>(Arc<[Arc<Counters<E>>]>);

impl<E: Happening> Tally<E> {
    /// Counters for a number of workers, shown in `registry`.
    #[must_use]
    pub fn new(workers: usize, registry: &Registry) -> Self {
        let sets: Arc<[Arc<Counters<E>>]> = (0..workers).map(|_| Arc::default()).collect();
        let shown = sets.clone();
        events::observe(registry, move |event| sum(&shown, event));
        Self(sets)
    }

    /// The count of an event on all workers.
    #[must_use]
    pub fn sum(&self, event: E) -> u64 {
        sum(&self.0, event)
    }

    fn of(&self, worker: usize) -> Arc<Counters<E>> {
        self.0.get(worker).cloned().unwrap_or_default()
    }
}

fn sum<E: Happening>(sets: &[Arc<Counters<E>>], event: E) -> u64 {
    sets.iter().map(|counters| counters.get(event)).sum()
}
