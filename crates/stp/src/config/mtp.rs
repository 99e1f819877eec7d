//! Timers of links of M2PA and of their link sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;
use ss7_proto::{Plan, m2pa, mtp3};

/// Timers of M2PA (RFC 4165 §4.1), by their names in Q.703. They count from the next alignment of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct M2pa {
    /// How long the peer may take to send Ready after proving.
    pub t1: Period,
    /// How long the peer may take to send Alignment.
    pub t2: Period,
    /// How long the peer may take from Alignment to proving.
    pub t3: Period,
    /// Proving period.
    pub t4n: Period,
    /// Proving period in an emergency: no other link of the link set is available.
    pub t4e: Period,
    /// How long the peer may be busy.
    pub t6: Period,
    /// How long the peer may take to acknowledge a message.
    pub t7: Period,
}

impl Default for M2pa {
    fn default() -> Self {
        let timers = m2pa::Timers::default();
        Self {
            t1: timers.ready.into(),
            t2: timers.not_aligned.into(),
            t3: timers.aligned.into(),
            t4n: timers.proving.into(),
            t4e: timers.emergency_proving.into(),
            t6: timers.remote_busy.into(),
            t7: timers.acknowledgement.into(),
        }
    }
}

impl M2pa {
    pub(crate) fn timers(&self) -> m2pa::Timers {
        m2pa::Timers {
            ready: self.t1.duration(),
            not_aligned: self.t2.duration(),
            aligned: self.t3.duration(),
            proving: self.t4n.duration(),
            emergency_proving: self.t4e.duration(),
            remote_busy: self.t6.duration(),
            acknowledgement: self.t7.duration(),
            ..m2pa::Timers::default()
        }
    }
}

/// Timers of link sets of M2PA (Q.704 §16.8, Q.707 §5.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Mtp {
    /// How long messages are held before they leave by another link than one that was inhibited, or by another link set than one
    /// whose last link has failed: those that were sent before arrive first.
    pub t1: Period,
    /// How long the peer may take to acknowledge a changeover.
    pub t2: Period,
    /// How long messages are held before they return to a link set that is available again, or whose adjacent node allows a
    /// destination again (T6).
    pub t3: Period,
    /// How long the peer may take to acknowledge a changeback.
    pub t4: Period,
    /// The same for the repetition of a changeback.
    pub t5: Period,
    /// How long the peer may take to acknowledge that a link is inhibited no longer; asked twice.
    pub t12: Period,
    /// How long the peer may take to answer that a link is to be inhibited; asked twice.
    pub t14: Period,
    /// After a report of congestion (TFC), until its end is tested (RCT). National networks alone have levels of congestion.
    pub t15: Period,
    /// How long a report may take to follow such a test; then the level is one less.
    pub t16: Period,
    /// How long this STP waits, when its first link set of several is available, for the others and for what their nodes report of
    /// destinations (MTP restart). 0: it carries traffic at once.
    pub t18: Period,
    /// How long an adjacent node that was inaccessible may take to report its destinations and end its restart (TRA), before it
    /// gets traffic. 0: it gets traffic at once.
    pub t21: Period,
    /// How long the peer may take to acknowledge a link test (T1 of Q.707).
    pub link_test_timeout: Period,
    /// Interval of link tests (T2 of Q.707).
    pub link_test_interval: Period,
}

impl Default for Mtp {
    fn default() -> Self {
        let set = mtp3::LinkSetTimers::default();
        let test = mtp3::LinkTestTimers::default();
        let restart = mtp3::RestartTimers::default();
        let congestion = mtp3::CongestionTimers::default();
        Self {
            t1: set.diversion.into(),
            t2: set.changeover.into(),
            t3: Period::from_secs(1),
            t4: set.changeback.into(),
            t5: set.second_changeback.into(),
            t12: set.uninhibit.into(),
            t14: set.inhibit.into(),
            t15: congestion.start.into(),
            t16: congestion.outcome.into(),
            t18: restart.collection.into(),
            t21: restart.neighbour.into(),
            link_test_timeout: test.acknowledgement.into(),
            link_test_interval: test.interval.into(),
        }
    }
}

impl Mtp {
    pub(crate) fn timers(&self) -> mtp3::LinkSetTimers {
        mtp3::LinkSetTimers {
            diversion: self.t1.duration(),
            changeover: self.t2.duration(),
            changeback: self.t4.duration(),
            second_changeback: self.t5.duration(),
            uninhibit: self.t12.duration(),
            inhibit: self.t14.duration(),
            ..mtp3::LinkSetTimers::default()
        }
    }

    pub(crate) fn restart_timers(&self, plan: Plan) -> mtp3::RestartTimers {
        mtp3::RestartTimers {
            collection: self.t18.duration(),
            neighbour: self.t21.duration(),
            repetition: (plan == Plan::Ansi).then_some(mtp3::RestartTimers::REPETITION),
            ..mtp3::RestartTimers::default()
        }
    }

    pub(crate) fn congestion_timers(&self) -> mtp3::CongestionTimers {
        mtp3::CongestionTimers {
            start: self.t15.duration(),
            outcome: self.t16.duration(),
        }
    }

    pub(crate) fn test_timers(&self) -> mtp3::LinkTestTimers {
        mtp3::LinkTestTimers {
            acknowledgement: self.link_test_timeout.duration(),
            interval: self.link_test_interval.duration(),
        }
    }
}
