//! Congestion on the way to other nodes, as they report it to this STP (TFC), and its end (Q.704 §13.7, §13.9). ASPs get SCON with
//! each level (RFC 4666 §3.4.4): their messages that this STP translates leave with its point code, and bring TFC to it.

use std::time::Instant;

use ss7_proto::PointCode;
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::{CongestionEvent, Management};

use super::Control;
use crate::path::{Notice, own_with_priority};
use crate::state::State;

/// Destinations whose congestion is followed, at most.
pub(super) const MOST: usize = 1_024;

impl Control {
    /// TFC for this STP. International networks have no levels, and no test (§13.6).
    pub(crate) fn controlled(&self, state: &State, code: PointCode, level: u8) {
        if !state.tables.points.has_levels() || state.tables.routes.find(code).is_none() {
            return;
        }
        let event = self
            .inner
            .lock()
            .congestion
            .controlled(code, level, Instant::now());
        if let Some(event) = event {
            self.follow_congestion(state, event);
        }
    }

    pub(super) fn tick_congestion(&self, now: Instant) {
        let mut events = Vec::new();
        self.inner.lock().congestion.tick(now, &mut events);
        let state = self.state.load();
        for event in events {
            self.follow_congestion(&state, event);
        }
    }

    /// How many destinations are reached with congestion.
    pub(crate) fn congested(&self) -> usize {
        self.inner.lock().congestion.levels().count()
    }

    fn follow_congestion(&self, state: &State, event: CongestionEvent) {
        match event {
            CongestionEvent::Level(code, level) => {
                tracing::info!(destination = state.tables.show(code), level, "congestion level");
                let hops = state.tables.hops.iter().enumerate();
                let others = hops.filter(|(at, hop)| hop.is_server && !state.is_behind(*at, code));
                for (hop, _) in others {
                    self.advise(state, hop, Notice::Congested(code, level));
                }
            }
            CongestionEvent::Test(code, priority) => {
                let mut user_data = Vec::new();
                Management::CongestionTest.write(state.tables.points.plan, 0, &mut user_data);
                let send = own_with_priority(state, code, ServiceIndicator::SNM, priority, &user_data);
                self.manage(state, send);
            }
        }
    }
}
