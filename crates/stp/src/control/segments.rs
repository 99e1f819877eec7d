//! Segments whose others do not come in time.

use std::time::Instant;

use parking_lot::Mutex;
use ss7_proto::sccp::{Reassembly, ReassemblyLimits};

use super::{Control, Frame};
use crate::config::Config;
use crate::metrics::count;
use crate::path::Segments;

/// Octets for each message of which segments are awaited, on average: sixteen segments of XUDT.
const OCTETS: usize = 4_096;

/// For one application server or link set.
pub(super) fn new(config: &Config) -> Segments {
    let messages = config.segments.messages;
    Mutex::new(Reassembly::new(ReassemblyLimits {
        messages,
        octets: messages * OCTETS,
        timeout: config.segments.timeout.duration(),
    }))
}

impl Control {
    /// Returns first segments whose time has come to their senders.
    pub(super) fn return_late(&self, now: Instant) {
        let state = self.state.load();
        for segments in &self.segments {
            let late = segments.lock().expired(now);
            for first in late {
                let decision = first.give_back(&state);
                if let Some(outcome) = decision.segmented {
                    count(&state.meters.segmented, outcome as usize);
                }
                if let Some(cause) = decision.cause {
                    state.meters.dropped(cause);
                }
                if let Some(send) = decision.send {
                    state.meters.returned.inc();
                    count(&state.meters.egress, send.hop);
                    self.deliver(&state, send.hop, &send.target, Frame::data(send.octets, send.sls));
                }
            }
        }
    }
}
