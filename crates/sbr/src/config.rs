//! The settings of a repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};
use store::SweepConfig;

/// Session and binding repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Sbr {
    /// Where sessions and bindings are kept. Of the embedded engine, each router has a directory of its own; on a database,
    /// routers share them. A change takes effect when the router starts.
    pub store: store::Config,
    /// Time without a message after which a session is taken for ended: its end was lost. Messages renew it, each time that
    /// an eighth of it has passed.
    pub stale: Period,
    /// Removal of stale sessions.
    pub sweep: SweepConfig,
    /// Bound on sessions of gateways; beyond, requests that begin one are refused. Sessions of AFs and TDFs have the same bound
    /// for themselves; beyond, they are not kept.
    pub max_sessions: usize,
    /// Bound on the sessions of one subscriber in one pool; beyond, a new one takes the place of the oldest.
    pub max_sessions_per_subscriber: usize,
    /// Bound on requests that wait while another request of their subscriber chooses a server, for one subscriber.
    pub max_waiting: usize,
    /// Time that a request without an outcome holds its subscriber, at most; longer than the router's `lifetime`.
    pub reservation: Period,
}

impl Default for Sbr {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "data/sbr".into();
        Self {
            store,
            stale: Period::from_secs(7 * 24 * 3600),
            sweep: SweepConfig::default(),
            max_sessions: 16_000_000,
            max_sessions_per_subscriber: 16,
            max_waiting: 16,
            reservation: Period::from_secs(60),
        }
    }
}

impl Validate for Sbr {
    fn validate(&self, faults: &mut Faults) {
        faults.within("store", &self.store);
        faults.within("sweep", &self.sweep);
        let periods = [("stale", self.stale), ("reservation", self.reservation)];
        for (name, _) in periods.iter().filter(|(_, period)| period.is_zero()) {
            faults.at(name).say("is 0", "some time, such as 60s");
        }
        let counts = [
            ("maxSessions", self.max_sessions),
            ("maxSessionsPerSubscriber", self.max_sessions_per_subscriber),
        ];
        for (name, _) in counts.iter().filter(|(_, count)| *count == 0) {
            faults.at(name).say("is 0", "at least 1");
        }
        if self.max_sessions_per_subscriber > MOST_PER_SUBSCRIBER {
            let expected = format!("at most {MOST_PER_SUBSCRIBER}");
            faults
                .at("maxSessionsPerSubscriber")
                .say(format!("is {}", self.max_sessions_per_subscriber), expected);
        }
    }
}

/// All of them are read when a session begins.
const MOST_PER_SUBSCRIBER: usize = 1_000;
