//! For the tests of functions: reloads under load, beside changes of another kind.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::contract::NetworkFunction;
use crate::running::Running;

/// What happens while a function is reloaded again and again.
pub struct UnderLoad<W, I, B, L> {
    /// How often to reload.
    pub times: u32,
    /// The configuration of each reload.
    pub wanted: W,
    /// Whether that configuration is in effect; it has to be at once, and to stay until the next.
    pub is_in_effect: I,
    /// A change of another kind, such as a key rotation; runs again and again beside the reloads.
    pub beside: B,
    /// Sends requests while the condition holds, and panics when one is lost. Runs on a thread of its own.
    pub load: L,
}

impl<W, I, B, L> UnderLoad<W, I, B, L> {
    /// Runs it.
    ///
    /// # Panics
    /// When a reload fails or is lost, or the load panics.
    pub fn run<F: NetworkFunction>(self, running: &Running<F>)
    where
        W: Fn(u32) -> F::Config,
        I: Fn(u32, &F::Config) -> bool,
        B: Fn() + Send,
        L: FnOnce(&dyn Fn() -> bool) + Send,
    {
        let ended = AtomicBool::new(false);
        let goes_on = || !ended.load(Ordering::Relaxed);
        let check = |round: u32| {
            let now = running.handle().live().load_full();
            assert!(
                (self.is_in_effect)(round, &now.config),
                "reload {round} of the {} was lost",
                F::TITLE
            );
        };
        std::thread::scope(|threads| {
            let load = self.load;
            let loading = threads.spawn(move || load(&goes_on));
            let beside = self.beside;
            threads.spawn(move || {
                while goes_on() {
                    beside();
                }
            });
            // A check that fails ends the other threads as well.
            let ends = Ends(&ended);
            for round in 0..self.times {
                running
                    .reload(&(self.wanted)(round))
                    .expect("the settings can be used");
                check(round);
                // Other threads have their turn, and may undo it.
                std::thread::yield_now();
                check(round);
            }
            drop(ends);
            assert!(loading.join().is_ok(), "requests were lost; see above");
        });
    }
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
