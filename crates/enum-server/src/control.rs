//! What pages and timers of an ENUM server look at.

use std::sync::Arc;

use function::live::Live;
use telemetry::Alarms;

use crate::config::Config;
use crate::metrics::Meters;
use crate::tables::Tables;

/// What is in effect, what was counted, and what is wrong.
pub(crate) struct Control {
    pub(crate) live: Arc<Live<Config, Arc<Tables>>>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) alarms: Alarms,
}
