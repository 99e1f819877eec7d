//! What can happen in an NRF, as types; each becomes a counter, a log line, perhaps an alarm.
