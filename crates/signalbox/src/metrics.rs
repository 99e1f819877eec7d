//! What the program says of itself, in every function's metrics.

use telemetry::{Alert, When};

telemetry::declare! {
    /// What is said of the configuration file.
    pub METRICS;
    gauge DIFFERS = "signalbox_config_differs" []: "Whether the configuration file is not what runs: 1 when it has changed and was not reloaded, when a reload refused it or a part of it, or when a change of it needs a restart; otherwise 0.",
        alert Alert::minor(When::Above(0.0), 15, "Reload the file (SIGHUP), or restart where the reload says so; `/config` has what runs.");
}
