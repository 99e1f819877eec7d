//! Several NRFs on one database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};
use store::EngineKind;

/// Several NRFs of a set that share one database (`store.engine: mariadb` or `cassandra`): each sees the registrations and subscriptions
/// of the others, and takes over for one that dies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Cluster {
    /// Whether this NRF shares its database with others.
    pub enabled: bool,
    /// How often an NRF writes its own state and reads what the others have changed.
    pub poll: Period,
    /// Time without an update of its record after which an NRF counts as dead and the others send its notifications.
    pub dead_after: Period,
    /// Largest difference between the clocks of the NRFs.
    pub clock_skew: Period,
    /// How long the journal of changes is kept. An NRF that was cut off for longer reads everything.
    pub keep_changes: Period,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            enabled: false,
            poll: Period::from_millis(250),
            dead_after: Period::from_secs(5),
            clock_skew: Period::from_secs(2),
            keep_changes: Period::from_secs(600),
        }
    }
}

impl Cluster {
    /// How long after its first record a member begins to own subscriptions: until then all others have read the record.
    pub(crate) fn grace(&self) -> std::time::Duration {
        self.clock_skew.duration() + 4 * self.poll.duration()
    }

    /// How long a commit can take from its version to the moment at which others can read it.
    pub(crate) fn latest_commit(store: &store::Config) -> std::time::Duration {
        let (retry_for, statement_timeout) = match store.engine {
            EngineKind::Cassandra => (store.cassandra.retry_for, store.cassandra.statement_timeout),
            EngineKind::Embedded | EngineKind::Mariadb => {
                (store.mariadb.retry_for, store.mariadb.statement_timeout)
            }
        };
        // A group of batches is tried, then each batch on its own.
        2 * retry_for.duration() + statement_timeout.duration()
    }

    /// What is wrong with it beside these settings of the store.
    pub(crate) fn check(&self, store: &store::Config, faults: &mut Faults) {
        if !self.enabled {
            return;
        }
        if store.engine == EngineKind::Embedded {
            faults.at("cluster.enabled").say(
                "is true with the embedded store, which belongs to one process",
                "`store.engine: mariadb` or `cassandra`, or `enabled: false`",
            );
        }
        let least = 2 * (Self::latest_commit(store) + self.clock_skew.duration());
        if self.keep_changes.duration() < least {
            let seconds = least.as_secs_f64().ceil();
            faults.at("cluster.keepChanges").say(
                "is too short for the longest commit with its retries",
                format!("at least {seconds}s: twice clockSkew, four times retryFor of the database and twice its statementTimeout"),
            );
        }
    }
}

impl Validate for Cluster {
    fn validate(&self, faults: &mut Faults) {
        if self.poll.is_zero() {
            faults.at("poll").say("is 0", "a period such as 250ms");
        }
        if self.dead_after.duration() <= self.grace() {
            faults.at("deadAfter").say(
                "is not longer than clockSkew and four polls",
                "a longer period, such as 5s",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let faults = |engine, change: &dyn Fn(&mut Cluster)| {
            let mut cluster = Cluster {
                enabled: true,
                ..Cluster::default()
            };
            change(&mut cluster);
            let store = store::Config {
                engine,
                ..store::Config::default()
            };
            let mut faults = Faults::default();
            cluster.validate(&mut faults);
            cluster.check(&store, &mut faults);
            format!("{faults:?}")
        };
        let embedded = faults(EngineKind::Embedded, &|_| {});
        assert!(embedded.contains("belongs to one process"), "{embedded}");
        let off = faults(EngineKind::Embedded, &|cluster| cluster.enabled = false);
        assert!(!off.contains("enabled"), "{off}");
        let fits = faults(EngineKind::Mariadb, &|_| {});
        assert_eq!(fits, format!("{:?}", Faults::default()));
        let soon = faults(EngineKind::Mariadb, &|cluster| {
            cluster.dead_after = Period::from_secs(3);
        });
        assert!(soon.contains("deadAfter"), "{soon}");
        let short = faults(EngineKind::Mariadb, &|cluster| {
            cluster.keep_changes = Period::from_secs(30);
        });
        assert!(short.contains("keepChanges"), "{short}");
    }
}
