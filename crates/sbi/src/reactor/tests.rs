//! Work that a turn must not leave behind.

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
