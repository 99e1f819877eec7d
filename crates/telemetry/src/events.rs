//! What can happen in a function: counted where it happens, declared once, shown as metrics.
//!
//! [`events!`](crate::events!) makes of a list with a sentence each the type `Event`. [`Counters`] count them: a set
//! belongs to one thread, so it is never contended, and a reader sums the sets.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics::{Alert, Declaration, Kind, Registry};

/// Something that can happen; made by [`events!`](crate::events!).
pub trait Happening: Copy + Send + Sync + 'static {
    /// Everything that can happen, in the order of the counters.
    const ALL: &'static [Self];

    /// Position in [`Happening::ALL`].
    fn index(self) -> usize;

    /// Name of the metric.
    fn metric(self) -> &'static str;

    /// What happened, in a sentence.
    fn help(self) -> &'static str;

    /// When an operator must look at it.
    fn alert(self) -> Option<Alert>;
}

/// Declares what can happen in a function: `events! { "nrf"; /// An NF registered. Registered = "registrations"; … }`.
///
/// The metric of an event is `signalbox_<function>_<name>_total`, its help the doc comment; `, alert …` behind the name says
/// when an operator must look at it.
#[macro_export]
macro_rules! events {
    ($function:literal; $($(#[doc = $doc:literal])+ $variant:ident = $name:literal $(, alert $alert:expr)?;)+) => {
        /// Something that happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[doc = $doc])+ $variant,)+ }

        impl Event {
            /// Every event, in the order of its counters.
            pub const ALL: &'static [Event] = &[$(Event::$variant),+];

            /// Name of the metric.
            #[must_use]
            pub const fn metric(self) -> &'static str {
                match self {
                    $(Event::$variant => concat!("signalbox_", $function, "_", $name, "_total"),)+
                }
            }

            /// What happened, in a sentence.
            #[must_use]
            pub fn help(self) -> &'static str {
                match self { $(Event::$variant => concat!($($doc),+).trim_start(),)+ }
            }
        }

        impl $crate::events::Happening for Event {
            const ALL: &'static [Self] = Event::ALL;

            fn index(self) -> usize {
                self as usize
            }

            fn metric(self) -> &'static str {
                Event::metric(self)
            }

            fn help(self) -> &'static str {
                Event::help(self)
            }

            fn alert(self) -> Option<$crate::Alert> {
                match self { $(Event::$variant => $crate::declare!(@alert $($alert)?),)+ }
            }
        }

        /// Counters of one thread.
        pub type Counters = $crate::events::Counters<Event>;
    };
}

/// Counters of one thread.
#[derive(Debug)]
pub struct Counters<E> {
    each: Box<[AtomicU64]>,
    of: PhantomData<E>,
}

impl<E: Happening> Default for Counters<E> {
    fn default() -> Self {
        Self {
            each: E::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            of: PhantomData,
        }
    }
}

impl<E: Happening> Counters<E> {
    /// Counts an event. Only the thread that owns the counters calls this.
    #[inline]
    pub fn count(&self, event: E) {
        self.add(event, 1);
    }

    /// Counts several at once.
    #[inline]
    pub fn add(&self, event: E, more: u64) {
        let counter = &self.each[event.index()];
        // A load and a store cost a tenth of an atomic addition, and no other thread writes.
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// How often it happened.
    #[must_use]
    pub fn get(&self, event: E) -> u64 {
        self.each[event.index()].load(Ordering::Relaxed)
    }
}

/// The metrics of all events.
pub fn declarations<E: Happening>() -> impl Iterator<Item = Declaration> {
    E::ALL.iter().map(|event| declaration(*event))
}

/// Shows all events; `read` returns the count of an event over all threads.
pub fn observe<E: Happening>(registry: &Registry, read: impl Fn(E) -> u64 + Clone + Send + Sync + 'static) {
    for event in E::ALL {
        let read = read.clone();
        registry.observe(&declaration(*event), move || read(*event) as f64);
    }
}

fn declaration<E: Happening>(event: E) -> Declaration {
    Declaration {
        name: event.metric(),
        kind: Kind::Counter,
        help: event.help(),
        labels: &[],
        alert: event.alert(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    crate::events! {
        "kettle";
        /// Water was put on.
        Filled = "fillings";
        /// It whistled.
        Whistled = "whistles";
    }

    #[test]
    fn events_are_counted_and_shown() {
        let counters: Arc<Counters> = Arc::default();
        counters.count(Event::Filled);
        counters.add(Event::Whistled, 3);
        let registry = Registry::new();
        observe::<Event>(&registry, move |event| counters.get(event));
        let text = registry.render();
        assert!(text.contains("signalbox_kettle_fillings_total 1"), "{text}");
        assert!(text.contains("signalbox_kettle_whistles_total 3"), "{text}");
        assert!(text.contains("It whistled."), "{text}");
    }
}
