//! Heart-beats: whether the cluster takes writes and answers reads, and how late the writes of other sites arrive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use scylla::statement::prepared::PreparedStatement;

use super::client::Failure;
use super::core::Core;
use super::tables::ENTRY_GRACE;
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
        let mut absences = Absences::default();
        let mut ticks = tokio::time::interval(self.core.config.heartbeat.duration());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.turn().await {
                Ok(()) => {
                    self.core.counters.trouble.end();
                    let delays = self.delays.at(self.core.clock.micros());
                    for (site, absence) in absences.ends(delays) {
                        tracing::warn!(
                            site,
                            absence_seconds = absence.as_secs(),
                            "a site is back after hints for it have expired; run nodetool repair of the keyspace"
                        );
                    }
                }
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

/// Sites whose writes have not arrived for longer than the cluster keeps hints, and for how long.
#[derive(Default)]
struct Absences(HashMap<String, Duration>);

impl Absences {
    /// Notes how late the writes of each other site are. Returns the sites whose writes arrive again, with their absence.
    fn ends(&mut self, delays: Vec<(String, Duration)>) -> Vec<(String, Duration)> {
        let kept = Duration::from_secs(u64::from(ENTRY_GRACE));
        let mut ended = Vec::new();
        for (site, delay) in delays {
            if delay > kept {
                let longest = self.0.entry(site).or_default();
                *longest = delay.max(*longest);
            } else if let Some(longest) = self.0.remove(&site) {
                ended.push((site, longest));
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_counts_when_hints_have_expired_and_once() {
        let mut absences = Absences::default();
        let mut after = |seconds: u64| absences.ends(vec![("b".to_owned(), Duration::from_secs(seconds))]);
        for short in [0, 3_600, 1] {
            assert_eq!(after(short), []);
        }
        for long in [3_601, 9_000, 4_000] {
            assert_eq!(after(long), []);
        }
        assert_eq!(after(2), [("b".to_owned(), Duration::from_secs(9_000))]);
        assert_eq!(after(1), []);
    }
}
