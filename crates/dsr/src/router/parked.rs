//! Transactions that applications have parked on this worker: until they are resumed, or their time is over.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use diameter::proto::{MessageMut, Routing};
use diameter::{Connection, Kept};
use dsr_app::{Answered, Flow, Found, Lost, Memo, Out, Request, Resumed, Seated, Ticket, Turn, View};
use smallvec::SmallVec;
use tokio::sync::{Notify, mpsc};

use super::chain::{Local, peer_of};
use super::followed::Came;
use super::{Core, Link, Transit};
use crate::config::Exception;
use crate::events::Event;
use crate::hosting::Arrival;

/// Transactions that are resumed before other tasks of the worker have their turn, at most: one group of commits may end many waits.
const RESUMED_AT_ONCE: usize = 64;

/// How an application parks a transaction.
#[derive(Debug)]
pub(super) struct Parking {
    pub(super) application: u32,
    pub(super) memo: Memo,
    pub(super) wait: Duration,
    /// The applications behind it in the chain of a request, by id.
    pub(super) rest: SmallVec<[u32; 4]>,
}

/// A parked transaction.
struct Waiting {
    parking: Parking,
    until: Instant,
    transit: Transit,
    stage: Stage,
}

/// At which point a transaction was parked.
pub(super) enum Stage {
    /// Its request had come.
    Request {
        message: MessageMut,
        from: Rc<Connection<Link>>,
    },
    /// Its answer had come, or it was lost.
    Back { kept: Kept, came: Came },
}

/// The parked transactions of a worker.
pub(super) struct Parked {
    worker: u16,
    next: Cell<u64>,
    state: RefCell<State>,
    /// Wakes the task that keeps time.
    earlier: Notify,
}

#[derive(Default)]
struct State {
    /// By the number of their tickets.
    waiting: AHashMap<u64, Waiting>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// By application.
    counts: AHashMap<u32, usize>,
}

impl Parked {
    pub(super) fn new(worker: usize) -> Self {
        Self {
            worker: worker as u16,
            next: Cell::new(1),
            state: RefCell::default(),
            earlier: Notify::new(),
        }
    }

    /// The ticket of the transaction that is parked next.
    #[inline]
    pub(super) fn ticket(&self) -> Ticket {
        Ticket {
            worker: self.worker,
            number: self.next.get(),
        }
    }

    fn count_of(&self, application: u32) -> usize {
        self.state
            .borrow()
            .counts
            .get(&application)
            .copied()
            .unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.state.borrow().waiting.len()
    }

    /// Takes the next ticket: no other transaction has it.
    fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    fn put(&self, waiting: Waiting) {
        let number = self.number();
        let mut state = self.state.borrow_mut();
        let entry = (waiting.until, number);
        *state.counts.entry(waiting.parking.application).or_default() += 1;
        state.deadlines.insert(entry);
        state.waiting.insert(number, waiting);
        if state.deadlines.first() == Some(&entry) {
            self.earlier.notify_one();
        }
    }

    fn take(&self, number: u64) -> Option<Waiting> {
        let mut state = self.state.borrow_mut();
        let waiting = state.waiting.remove(&number)?;
        state.deadlines.remove(&(waiting.until, number));
        if let Some(count) = state.counts.get_mut(&waiting.parking.application) {
            *count -= 1;
        }
        Some(waiting)
    }

    fn first_deadline(&self) -> Option<Instant> {
        self.state.borrow().deadlines.first().map(|(until, _)| *until)
    }

    /// The number of a transaction whose time is over.
    fn overdue(&self, now: Instant) -> Option<u64> {
        let state = self.state.borrow();
        let (until, number) = *state.deadlines.first()?;
        (until <= now).then_some(number)
    }

    /// The number of any transaction.
    pub(super) fn any(&self) -> Option<u64> {
        self.state.borrow().waiting.keys().next().copied()
    }
}

impl Core {
    /// Parks a transaction; beyond the bound of its application it is answered.
    pub(super) fn park(&self, parking: Parking, transit: Transit, stage: Stage) {
        let local = self.snapshot();
        let place = local.place_of(parking.application);
        let most = place.map_or(0, |place| place.seat.application().max_parked());
        if self.parked.count_of(parking.application) >= most {
            self.count(Event::ParkingFull);
            // What its application has begun for this ticket may still resume it.
            self.parked.number();
            return self.give_up(parking, transit, stage, Exception::Exhausted);
        }
        self.count(Event::Parked);
        self.parked.put(Waiting {
            until: (self.now() + parking.wait).min(transit.until),
            parking,
            transit,
            stage,
        });
        self.gauges().report_parked(self.parked.len());
    }

    /// Ends a transaction that is not parked any more, or was not; its application learns so first.
    fn give_up(&self, mut parking: Parking, transit: Transit, stage: Stage, why: Exception) {
        let local = self.snapshot();
        self.show(&local, &mut parking, &transit, &stage, |seat, turn, resumed| {
            seat.unparked(turn, resumed);
        });
        let kept = match stage {
            Stage::Request { message, from } => Kept::new(message.freeze(), from.route_record().clone()),
            Stage::Back { kept, .. } => kept,
        };
        self.fail(transit, kept, why);
    }

    /// Answers everything that is parked: the worker ends.
    pub(super) fn give_up_parked(&self) {
        while let Some(number) = self.parked.any() {
            if let Some(waiting) = self.parked.take(number) {
                let Waiting {
                    parking,
                    transit,
                    stage,
                    ..
                } = waiting;
                self.give_up(parking, transit, stage, Exception::NoAnswer);
            }
        }
    }

    /// Takes what applications resume, until the worker ends.
    pub(crate) async fn take_resumed(self: Rc<Self>, mut queue: mpsc::Receiver<Arrival>) {
        let mut arrived = Vec::new();
        while queue.recv_many(&mut arrived, RESUMED_AT_ONCE).await > 0 {
            self.refresh();
            for (number, found) in arrived.drain(..) {
                self.resume(number, Some(found));
            }
        }
    }

    /// Ends what was parked for too long, ticks the applications and sends their own requests, until the worker ends.
    pub(crate) async fn keep_time(self: Rc<Self>) {
        let mut ticked = AHashMap::<u32, Instant>::new();
        loop {
            let now = tokio::time::Instant::now().into_std();
            self.refresh();
            while let Some(number) = self.parked.overdue(now) {
                self.resume(number, None);
            }
            let next = self.tick(now, &mut ticked);
            self.originate_all();
            let next = next.into_iter().chain(self.parked.first_deadline()).min();
            let changed = self.parked.earlier.notified();
            match next {
                Some(next) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(next.into()) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Ticks the applications that are due; returns when the next one is.
    fn tick(&self, now: Instant, ticked: &mut AHashMap<u32, Instant>) -> Option<Instant> {
        let local = self.snapshot();
        let mut next = None;
        for place in local.places() {
            let Some(interval) = place.seat.interval() else {
                continue;
            };
            let last = ticked.entry(place.id).or_insert(now);
            if now >= *last + interval {
                let (mut memo, mut out) = (Memo::default(), Out::default());
                place.seat.tick(self.turn(&mut memo, &mut out), self.names(0));
                self.send_own(place.id, out);
                *last = now;
            }
            next = next.into_iter().chain([*last + interval]).min();
        }
        next
    }

    /// Wakes the task that keeps time: applications have changed.
    pub(super) fn wake_time(&self) {
        self.parked.earlier.notify_one();
    }

    /// Lets nodes see the time, before something is done outside of their turns.
    fn refresh(&self) {
        for node in self.nodes.borrow().iter() {
            node.refresh();
        }
    }

    /// Has the application go on with what it parked; nothing found: its time is over.
    fn resume(&self, number: u64, found: Option<Found>) {
        let Some(waiting) = self.parked.take(number) else {
            return;
        };
        self.gauges().report_parked(self.parked.len());
        self.count(match &found {
            Some(_) => Event::Resumed,
            None => Event::ParkedTooLong,
        });
        let local = self.snapshot();
        let Waiting {
            mut parking,
            transit,
            stage,
            ..
        } = waiting;
        if matches!(stage, Stage::Request { .. }) && !self.has_client(transit.origin) {
            // A server would begin what its client does not get.
            self.count(Event::ParkedAlone);
            self.show(&local, &mut parking, &transit, &stage, |seat, turn, resumed| {
                seat.unparked(turn, resumed);
            });
            return;
        }
        let flow = self.show(&local, &mut parking, &transit, &stage, |seat, turn, resumed| {
            seat.resume(turn, resumed, found)
        });
        // An application that was removed meanwhile leaves the transaction to the others.
        let flow = flow.unwrap_or(Flow::Next);
        match stage {
            Stage::Request { message, from } => self.go_on(&local, parking, flow, &from, message, transit),
            Stage::Back { kept, came } => {
                self.go_back(parking.application, parking.memo, flow, kept, came, transit);
            }
        }
    }

    /// Shows an application the transaction that it wanted to park. `None`: a reload has removed the application.
    fn show<'l, T>(
        &self,
        local: &'l Local,
        parking: &mut Parking,
        transit: &Transit,
        stage: &Stage,
        show: impl FnOnce(&'l dyn Seated, Turn<'_>, &Resumed<'_>) -> T,
    ) -> Option<T> {
        let place = local.place_of(parking.application)?;
        let names = self.names(transit.origin.node);
        let mut out = Out::default();
        let turn = self.turn(&mut parking.memo, &mut out);
        let shown = match stage {
            Stage::Request { message, from } => {
                // It was scanned when it came.
                let routing = Routing::scan_as(message, |name| local.is_own(name)).ok()?;
                let (application, command) = (message.application(), message.command());
                let request = Request {
                    message,
                    view: &View::new(application, command, transit.priority, &routing),
                    peer: peer_of(from),
                    names,
                };
                show(&*place.seat, turn, &Resumed::Request(request))
            }
            Stage::Back { kept, came } => {
                let request = kept.message();
                let resumed = match came {
                    Came::Answer(answer) => Resumed::Answer(Answered {
                        request,
                        answer,
                        names,
                    }),
                    Came::Lost(_) | Came::Dropped => Resumed::Lost(Lost {
                        request,
                        why: came.loss(),
                        names,
                    }),
                };
                show(&*place.seat, turn, &resumed)
            }
        };
        self.send_own(place.id, out);
        Some(shown)
    }
}
