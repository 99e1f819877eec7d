//! The alarms of an SCP.

use telemetry::Severity;
use telemetry::alarms::AlarmKind;

/// No NRF of a set answers.
pub(crate) const NRF_UNREACHABLE: AlarmKind = AlarmKind {
    number: 10_530,
    name: "SCP NRF Set Unreachable",
    severity: Severity::Major,
    text: "No NRF of the set answers; the SCP continues with the cached profiles.",
    advice: "Check the NRFs and the connection to them.",
};

/// No producer of a set accepts requests.
pub(crate) const SET_UNAVAILABLE: AlarmKind = AlarmKind {
    number: 10_532,
    name: "SCP NF Set Unavailable",
    severity: Severity::Critical,
    text: "All producers of the set are ejected or have open circuits, as one worker sees them.",
    advice: "Check the producers: `signalbox scp why` shows their standing.",
};
