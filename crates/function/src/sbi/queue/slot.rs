//! The slot of a handler that has begun, and how it is given back while the handler awaits another function.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;

use super::RequestQueue;

thread_local! {
    /// The slot of the handler that this thread polls. A task that a handler has spawned has none.
    static POLLED: RefCell<Option<Rc<Held>>> = const { RefCell::new(None) };
}

/// A slot; it is free when it is dropped.
pub struct Slot(Rc<Held>);

struct Held {
    queue: Rc<RequestQueue>,
    /// Others that the handler awaits; its slot is free as long as it awaits one.
    awaited: Cell<usize>,
}

impl Slot {
    pub(super) fn new(queue: Rc<RequestQueue>) -> Self {
        let awaited = Cell::new(0);
        Self(Rc::new(Held { queue, awaited }))
    }

    /// Runs a handler in this slot.
    pub async fn run<T>(self, mut handler: Pin<Box<impl Future<Output = T>>>) -> T {
        poll_fn(|context| {
            let _polled = Polled::begin(&self.0);
            handler.as_mut().poll(context)
        })
        .await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.queue.ended();
    }
}

/// The handler is being polled; the one that was polled around it is again when this is dropped.
struct Polled(Option<Rc<Held>>);

impl Polled {
    fn begin(held: &Rc<Held>) -> Self {
        Self(POLLED.with(|polled| polled.replace(Some(held.clone()))))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        let before = self.0.take();
        let ended = POLLED.with(|polled| polled.replace(before));
        drop(ended);
    }
}

/// Awaits another function. A handler of a request gives its slot back for the time that this takes.
pub async fn elsewhere<T>(mut work: Pin<&mut impl Future<Output = T>>) -> T {
    let mut absence = None;
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() && absence.is_none() {
            absence = POLLED.with(|polled| polled.borrow().clone()).map(Absence::begin);
        }
        polled
    })
    .await
}

/// A handler awaits another function until this is dropped.
struct Absence(Rc<Held>);

impl Absence {
    fn begin(held: Rc<Held>) -> Self {
        if held.awaited.replace(held.awaited.get() + 1) == 0 {
            held.queue.left();
        }
        Self(held)
    }
}

impl Drop for Absence {
    fn drop(&mut self) {
        self.0.awaited.set(self.0.awaited.get().saturating_sub(1));
        if self.0.awaited.get() == 0 {
            self.0.queue.returned();
        }
    }
}
