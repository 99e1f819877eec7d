//! Work that a turn must not leave behind.

use std::time::Duration;

use super::*;

/// A member whose output makes another one have output.
struct Writes {
    reactor: Rc<Reactor>,
    key: MemberKey,
    then: Cell<Option<MemberKey>>,
    /// Turns before it has output itself.
    begins: Cell<bool>,
    flushed: Rc<Cell<u32>>,
}

impl Member for Writes {
    fn turn(self: Rc<Self>, _cx: &mut Context<'_>) {
        if self.begins.replace(false) {
            self.reactor.has_output(self.key);
        }
    }

    fn flush(self: Rc<Self>, _cx: &mut Context<'_>) {
        self.flushed.set(self.flushed.get() + 1);
        if let Some(then) = self.then.take() {
            self.reactor.has_output(then);
        }
    }

    fn timer(self: Rc<Self>, _tag: u64, _cx: &mut Context<'_>) {}

    fn panicked(self: Rc<Self>) {}
}

/// A turn that ends for its number of steps, as nothing else is ready, writes what its last writes have made.
#[test]
fn output_of_the_last_write_of_a_turn_leaves_without_another_event() {
    testpeer::local(async {
        let reactor = Reactor::of_worker();
        let flushed = Rc::new(Cell::new(0));
        let member = |begins| {
            reactor.join(false, |key| {
                Rc::new(Writes {
                    reactor: reactor.clone(),
                    key,
                    then: Cell::new(None),
                    begins: Cell::new(begins),
                    flushed: flushed.clone(),
                })
            })
        };
        // Exactly the steps of one turn are ready.
        let members: Vec<_> = (0..STEPS).map(|at| member(at == STEPS - 1)).collect();
        let last = &members[STEPS - 1];
        last.then.set(Some(members[0].key));
        members[0].then.set(Some(members[1].key));
        testpeer::until("all three are written", async || flushed.get() == 3).await;
    });
}

/// Notes what its bytes may have waited when it has its turn.
struct Waits {
    reactor: Rc<Reactor>,
    waited: Rc<RefCell<Vec<Duration>>>,
}

impl Member for Waits {
    fn turn(self: Rc<Self>, _cx: &mut Context<'_>) {
        let waited = self.reactor.waited().at(Instant::now(), None);
        self.waited.borrow_mut().push(waited);
    }

    fn flush(self: Rc<Self>, _cx: &mut Context<'_>) {}

    fn timer(self: Rc<Self>, _tag: u64, _cx: &mut Context<'_>) {}

    fn panicked(self: Rc<Self>) {}
}

fn waiting(reactor: &Rc<Reactor>, count: usize) -> Rc<RefCell<Vec<Duration>>> {
    let waited = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..count {
        let member = Waits {
            reactor: reactor.clone(),
            waited: waited.clone(),
        };
        reactor.join(false, |_| Rc::new(member));
    }
    waited
}

/// More connections are ready than one turn has steps: those that have to wait for later turns have waited.
#[test]
fn the_time_in_which_others_had_their_turns_counts() {
    const PAUSE: Duration = Duration::from_millis(2);
    testpeer::local(async {
        let reactor = Reactor::of_worker();
        let waited = waiting(&reactor, 4 * STEPS);
        for turn in 1..=4 {
            reactor.turn(Instant::now(), Waker::noop());
            assert_eq!(waited.borrow().len(), turn * STEPS);
            std::thread::sleep(PAUSE);
        }
        for (turn, waited) in (0..).zip(waited.borrow().chunks(STEPS)) {
            assert!(waited[0] >= turn * PAUSE, "{:?} in turn {turn}", waited[0]);
        }
    });
}

/// Where a runtime waits, connections of a reactor have as much of the worker as tasks beside it.
#[test]
fn a_reactor_with_much_to_do_goes_on_before_other_tasks_have_their_turn() {
    const TURNS: usize = 20;
    testpeer::local(async {
        let reactor = Reactor::of_worker();
        let waited = waiting(&reactor, TURNS * STEPS);
        let mut others = 0;
        while waited.borrow().len() < TURNS * STEPS {
            tokio::task::yield_now().await;
            others += usize::from(!waited.borrow().is_empty());
        }
        // A machine that pauses ends its share early.
        assert!(others < TURNS / 2, "{others}");
    });
}

/// Work that looks at something when it is dropped, as a request does that gives up what it has asked another connection.
struct Looks(Rc<RefCell<u32>>);

impl Drop for Looks {
    fn drop(&mut self) {
        *self.0.borrow_mut() += 1;
    }
}

/// A connection that charges memory, and so ends another one whose work is a request to it, is in the middle of its own state.
#[test]
fn work_that_is_given_up_is_dropped_when_nothing_is_borrowed() {
    testpeer::local(async {
        let reactor = Reactor::of_worker();
        let owner = reactor.join(false, |key| {
            Rc::new(Writes {
                reactor: reactor.clone(),
                key,
                then: Cell::new(None),
                begins: Cell::new(false),
                flushed: Rc::default(),
            })
        });
        let state = Rc::new(RefCell::new(0));
        let looks = Looks(state.clone());
        reactor.run(
            owner.key,
            Box::pin(async move {
                let _looks = looks;
                std::future::pending::<()>().await;
            }),
        );
        {
            let in_use = state.borrow_mut();
            reactor.abort(owner.key);
            assert_eq!(*in_use, 0);
        }
        testpeer::until("it is dropped", async || *state.borrow() == 1).await;
    });
}
