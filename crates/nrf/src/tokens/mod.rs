//! Access tokens (TS 29.510 §5.4.2, §6.3).
