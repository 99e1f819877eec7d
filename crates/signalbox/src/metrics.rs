//! What the program says of itself, in every function's metrics.

telemetry::declare! {
    /// What is said of the configuration file.
    pub METRICS;
    gauge DIFFERS = "signalbox_config_differs" []: "Whether the configuration file is not what runs: 1 when it has changed and was not reloaded, when a reload refused it or a part of it, or when a change of it needs a restart; otherwise 0.";
}
