//! What applications need of the router on every worker: counters for each kind, and a way to resume what is parked.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dsr_app::{Application, Found, Installed, Resumer, Tally, Ticket};
use parking_lot::Mutex;
use telemetry::{Declaration, Registry, events};
use tokio::sync::mpsc;

/// A ticket's number on its worker, and what its transaction is resumed with.
pub(crate) type Arrival = (u64, Found);

/// What applications of all workers share.
pub(crate) struct Hosting {
    workers: usize,
    registry: Registry,
    /// By kind.
    tallies: Mutex<BTreeMap<&'static str, Arc<dyn Any + Send + Sync>>>,
    resumer: Resumer,
}

impl fmt::Debug for Hosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hosting")
    }
}

impl Hosting {
    /// With the ends of the queues by which workers are handed what is resumed; at most `most` are pending for one of them.
    pub(crate) fn new(
        workers: usize,
        most: usize,
        registry: &Registry,
    ) -> (Self, Vec<mpsc::Receiver<Arrival>>) {
        let queues = (0..workers).map(|_| mpsc::channel::<Arrival>(most.max(1)));
        let (senders, receivers): (Vec<_>, Vec<_>) = queues.unzip();
        let resume = move |ticket: Ticket, found| {
            let sender = senders.get(usize::from(ticket.worker));
            sender.is_some_and(|sender| sender.try_send((ticket.number, found)).is_ok())
        };
        let hosting = Self {
            workers,
            registry: registry.clone(),
            tallies: Mutex::default(),
            resumer: Resumer::new(resume),
        };
        hosting.tally::<dsr_rbar::Rbar>();
        hosting.tally::<dsr_eir::Eir>();
        hosting.tally::<dsr_fabr::Fabr>();
        hosting.tally::<dsr_dsa::Dsa>();
        hosting.tally::<dsr_pdra::Pdra>();
        hosting.tally::<dsr_ocdra::Ocdra>();
        (hosting, receivers)
    }

    /// Shows the counters of a kind before there is an application of it.
    fn tally<A: Application>(&self) {
        let tally = Tally::<A::Event>::new(self.workers, &self.registry);
        self.tallies.lock().insert(A::KIND, Arc::new(tally));
    }

    /// The counters of an application's kind.
    pub(crate) fn tally_of(&self, application: &dyn Installed) -> Arc<dyn Any + Send + Sync> {
        let mut tallies = self.tallies.lock();
        let known = tallies.entry(application.kind());
        let new = || application.tally(self.workers, &self.registry);
        known.or_insert_with(new).clone()
    }

    /// How often an event of a kind of application has happened.
    pub(crate) fn sum<A: Application>(&self, event: A::Event) -> u64 {
        let tallies = self.tallies.lock();
        let tally = tallies.get(A::KIND).and_then(|tally| tally.downcast_ref());
        tally.map_or(0, |tally: &Tally<A::Event>| tally.sum(event))
    }

    pub(crate) const fn resumer(&self) -> &Resumer {
        &self.resumer
    }
}

/// The metrics of the kinds that settings know.
pub(crate) fn declarations() -> impl Iterator<Item = Declaration> {
    events::declarations::<dsr_rbar::Event>()
        .chain(events::declarations::<dsr_eir::Event>())
        .chain(events::declarations::<dsr_fabr::Event>())
        .chain(events::declarations::<dsr_dsa::Event>())
        .chain(events::declarations::<dsr_pdra::Event>())
        .chain(events::declarations::<dsr_ocdra::Event>())
}
