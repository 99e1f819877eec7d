//! What an audit may remove: the brake, its pace, and the alarm while it holds.

use std::sync::Arc;
use std::time::Instant;

use telemetry::{AlarmKind, Alarms};

use crate::brake::{Bounds, Brake, Permit};

/// The subject of the alarm.
const AUDIT: &str = "audit";

/// The removals of an audit.
#[derive(Clone)]
pub struct Removals {
    brake: Arc<Brake>,
    alarms: Alarms,
    braked: &'static AlarmKind,
}

impl Removals {
    /// Removals within a brake, which raises this alarm when it begins to hold.
    #[must_use]
    pub fn new(brake: Arc<Brake>, alarms: Alarms, braked: &'static AlarmKind) -> Self {
        Self {
            brake,
            alarms,
            braked,
        }
    }

    /// Waits until one of about `total` records of a table may go; `false`: it stays. The caller counts it.
    pub async fn permit(&self, table: &'static str, total: u64, bounds: &Bounds) -> bool {
        loop {
            match self.brake.permit(Instant::now(), table, bounds, total) {
                Permit::Now => return true,
                Permit::After(wait) => tokio::time::sleep(wait).await,
                Permit::Never(first) => {
                    if first {
                        let share = bounds.most_removed;
                        let detail = format!(
                            "audit.mostRemoved ({share}) of about {total} records of {table} are removed; the others stay"
                        );
                        tracing::error!(table, total, "the audit is braked: it removes no more records");
                        self.alarms.raise(self.braked, AUDIT, detail);
                    }
                    return false;
                }
            }
        }
    }

    /// A record that might be removed was not: it had changed meanwhile.
    pub fn unused(&self, table: &'static str) {
        self.brake.unused(table);
    }

    /// Waits until an operator releases the brake, which ends the alarm. What was held back is found by the next walk.
    pub async fn released(&self) {
        self.brake.released.notified().await;
        self.alarms.clear(self.braked, AUDIT);
    }
}
