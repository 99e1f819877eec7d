//! Parked transactions: their names, and handles that resume them.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The name of a parked transaction. None has it again while the router runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Ticket {
    /// The worker that parks it.
    pub worker: u16,
    /// Counts on that worker.
    pub number: u64,
}

/// What a transaction is resumed with, without its type.
pub type Found = Box<dyn Any + Send>;

/// Hands a ticket to its worker; whether it could.
#[derive(Clone)]
pub struct Resumer(Arc<dyn Fn(Ticket, Found) -> bool + Send + Sync>);

impl Resumer {
    /// A handle that resumes by `resume`.
    pub fn new(resume: impl Fn(Ticket, Found) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(resume))
    }

    /// A handle for as long as no worker runs: nothing is resumed.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_, _| false)
    }

    /// The handle of an application on a worker. It is cloned with each message: clones of different workers share no count.
    #[must_use]
    pub fn typed<F: Send + 'static>(&self) -> Resume<F> {
        let own = self.0.clone();
        Resume(Self::new(move |ticket, found| own(ticket, found)), PhantomData)
    }
}

impl fmt::Debug for Resumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resumer")
    }
}

/// Resumes transactions that an application has parked, from any thread.
#[derive(Debug)]
pub struct Resume<F>(Resumer, PhantomData<fn(F)>);

impl<F> Clone for Resume<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<F: Send + 'static> Default for Resume<F> {
    /// As of [`Resumer::none`].
    fn default() -> Self {
        Resumer::none().typed()
    }
}

impl<F: Send + 'static> Resume<F> {
    /// Resumes a transaction with what was found: in a later turn of its worker. A ticket that is not parked any more is
    /// ignored. Returns whether the worker takes it; where its queue is full, the transaction stays until its time is over.
    pub fn resume(&self, ticket: Ticket, found: F) -> bool {
        (self.0.0)(ticket, Box::new(found))
    }

    /// What resumes a transaction with the outcome of work that was begun for it.
    pub fn with<T, G: FnOnce(T) -> F>(&self, ticket: Ticket, found: G) -> impl FnOnce(T) + use<F, T, G> {
        let resume = self.clone();
        move |outcome| {
            resume.resume(ticket, found(outcome));
        }
    }
}
