//! What requests over Rx add to the latencies and to the score of this instance.

use std::time::Instant;

use super::Agent;
use super::answer::Transit;
use super::request::Request;

impl Agent {
    /// A request is answered.
    pub(super) fn answered(&self, now: Instant, transit: &Transit, failed: bool) {
        let took = now.saturating_duration_since(transit.begun);
        let function = self.front.function();
        function.rx_latency.observe(transit.request.command(), took);
        self.front.worker().note_answer(failed, took);
    }

    /// A request goes nowhere.
    pub(super) fn refused(&self, request: &Request, now: Instant, failed: bool) {
        let took = now.saturating_duration_since(request.begun);
        self.front.worker().note_answer(failed, took);
    }
}
