//! Heart-beats between sites, which measure how far replication is behind; and the table of commits, which is
//! kept short.
//!
//! Each site writes the time into a row of its own; the database's replication carries it to the others. When a
//! new beat of another site appears, the difference to the clock here is the delay at that moment: of the
//! replication, of looking (a tenth of the heart-beat's period) and of the clocks' difference. While no new one
//! appears the delay is at least the age of the last.

use std::sync::Arc;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::Counters;
use super::nodes::{Connection, Failure, Nodes};
use super::reindex::Repair;
use super::sql::SqlTable;
use super::triggers;
use crate::config::MariadbConfig;
use crate::delays::Delays;
use crate::version::Clock;

/// The task that beats.
pub(super) struct Heart {
    pub(super) nodes: Arc<Nodes>,
    pub(super) tables: Arc<Vec<SqlTable>>,
    pub(super) delays: Arc<Delays>,
    pub(super) counters: Arc<Counters>,
    pub(super) config: MariadbConfig,
    pub(super) site: Arc<str>,
    pub(super) clock: Clock,
}

/// Looks at others' beats in one period.
const LOOKS: u32 = 10;
/// Heart-beats from one search for records of an earlier release to the next.
const REPAIRS: u32 = 30;
/// Rows of the table of commits removed at a time; few, so that a cluster does not stall on one large change.
const FORGET: usize = 2_000;

impl Heart {
    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        let mut connection = None;
        let mut ticks = tokio::time::interval(self.config.heartbeat.duration() / LOOKS);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut tick = 0u32;
        let mut repair = Repair::new(self.config.upgrade_window.duration());
        let mut warned = false;
        loop {
            ticks.tick().await;
            let is_beat = tick.is_multiple_of(LOOKS);
            // It writes, so it notices a node that does not take writes also when no function does.
            if let Err(failure) = self.turn(&mut connection, is_beat).await {
                self.nodes.failed(&mut connection, &failure, true);
                // Another node may be ready, and the store serves with it.
                if let Err(failure) = self.turn(&mut connection, is_beat).await {
                    self.nodes.failed(&mut connection, &failure, true);
                    self.counters.trouble.begin(&failure.reason());
                }
            }
            if tick.is_multiple_of(LOOKS * REPAIRS) {
                self.repair(&mut connection, &mut repair).await;
            }
            if !warned && tick.is_multiple_of(LOOKS) && self.delays.are_known() {
                warned = true;
                self.warn_of_conflicts(&mut connection).await;
            }
            tick = tick.wrapping_add(1);
        }
    }

    /// Indexes what programs of an earlier release have written.
    async fn repair(&self, connection: &mut Option<Connection>, repair: &mut Repair) {
        let Ok(conn) = self.nodes.connected(connection).await else {
            return;
        };
        if let Err(error) = repair.pass(conn, &self.tables, self.clock.micros()).await {
            tracing::warn!(%error, "cannot index records of an earlier release; the next search follows");
            *connection = None;
        }
    }

    /// There are other sites: a server that does not settle conflicts with them is worth a line.
    async fn warn_of_conflicts(&self, connection: &mut Option<Connection>) {
        let Ok(conn) = self.nodes.connected(connection).await else {
            return;
        };
        if !triggers::are_run(conn).await {
            tracing::warn!(
                "other sites write to this database, and it does not run triggers for what it receives: records that two sites have written stay different; set slave_run_triggers_for_rbr = ENFORCE"
            );
        }
    }

    async fn turn(&self, connection: &mut Option<Connection>, beat: bool) -> Result<(), Failure> {
        let conn = self.nodes.connected(connection).await?;
        if beat {
            self.nodes.within(self.beat(conn)).await?;
            for probe in self.tables.iter().flat_map(SqlTable::probes) {
                self.nodes.within(conn.query_drop(probe)).await?;
            }
            // The database takes writes, and has the tables.
            self.counters.trouble.end();
            self.nodes.within(self.forget(conn)).await?;
        }
        let look = conn.query::<(String, u64), _>("SELECT site_id, beat FROM signalbox_heartbeat");
        let beats = self.nodes.within(look).await?;
        self.delays.see(beats, &self.site, self.clock.micros());
        Ok(())
    }

    async fn beat(&self, conn: &mut Conn) -> Result<(), mysql_async::Error> {
        let beat =
            "INSERT INTO signalbox_heartbeat VALUES (?, ?) ON DUPLICATE KEY UPDATE beat = VALUES(beat)";
        conn.exec_drop(beat, (&*self.site, self.clock.micros())).await
    }

    async fn forget(&self, conn: &mut Conn) -> Result<(), mysql_async::Error> {
        let before = self
            .clock
            .micros()
            .saturating_sub(self.config.remember_commits.duration().as_micros() as u64);
        let mut stamp = [0; 16];
        stamp[..8].copy_from_slice(&before.to_be_bytes());
        loop {
            let forget = format!("DELETE FROM signalbox_commits WHERE stamp < ? LIMIT {FORGET}");
            conn.exec_drop(forget, (&stamp[..],)).await?;
            if conn.affected_rows() < FORGET as u64 {
                return Ok(());
            }
        }
    }
}
