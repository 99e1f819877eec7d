//! Heart-beats: whether the cluster takes writes and answers reads, and how late the writes of other sites arrive.

use std::sync::Arc;

use scylla::statement::prepared::PreparedStatement;

use super::client::Failure;
use super::core::Core;
use crate::delays::Delays;
use crate::error::Error;

/// The task that beats.
pub(super) struct Heart {
    core: Arc<Core>,
    delays: Arc<Delays>,
    beat: PreparedStatement,
    look: PreparedStatement,
}

impl Heart {
    pub(super) async fn new(core: Arc<Core>, delays: Arc<Delays>) -> Result<Heart, Error> {
        let name = format!("{}.signalbox_heartbeat", core.config.keyspace);
        let beat = format!("INSERT INTO {name} (site, beat) VALUES (?, ?)");
        Ok(Heart {
            beat: core.client.prepare(beat).await?,
            look: core
                .client
                .prepare(format!("SELECT site, beat FROM {name}"))
                .await?,
            core,
            delays,
        })
    }

    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        let mut ticks = tokio::time::interval(self.core.config.heartbeat.duration());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.turn().await {
                Ok(()) => self.core.counters.trouble.end(),
                Err(failure) => self.core.counters.trouble.begin(&failure.reason()),
            }
        }
    }

    async fn turn(&self) -> Result<(), Failure> {
        let Core {
            client, site, clock, ..
        } = &*self.core;
        let now = clock.micros().cast_signed();
        client.run(&self.beat, (&**site, now)).await?;
        let beats: Vec<(String, Option<i64>)> = client.rows(&self.look, ()).await?;
        let beats = beats.into_iter();
        let beats = beats.map(|(site, beat)| (site, beat.unwrap_or_default().cast_unsigned()));
        self.delays.see(beats.collect(), site, clock.micros());
        Ok(())
    }
}
