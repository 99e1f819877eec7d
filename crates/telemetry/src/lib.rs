//! Metrics, alarms, health, logs and trace context: what happened, in one place.
