//! Replaces the brokers in a program without the feature `kafka`: the settings check refuses an enabled feed.

use super::pump::{Record, Sink, SinkError};
use crate::config::{Feed, WITHOUT_KAFKA};

/// There are none.
pub(super) enum Brokers {}

impl Brokers {
    pub(super) fn new(_settings: &Feed) -> Result<Self, String> {
        Err(format!("scp.feed.enabled {WITHOUT_KAFKA}"))
    }
}

/// There is none.
pub(super) enum Kafka {}

impl Kafka {
    pub(super) fn new(brokers: Brokers) -> Self {
        match brokers {}
    }
}

impl Sink for Kafka {
    fn partitions(&self) -> usize {
        match *self {}
    }

    async fn connect(&self) -> Result<(), SinkError> {
        match *self {}
    }

    fn disconnect(&self) {
        match *self {}
    }

    async fn send(&self, _partition: usize, _records: Vec<Record>) -> Result<(), SinkError> {
        match *self {}
    }
}
