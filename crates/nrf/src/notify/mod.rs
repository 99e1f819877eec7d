//! Delivery of notifications: bounded queues, retries (TS 29.510 §5.2.2.6).
