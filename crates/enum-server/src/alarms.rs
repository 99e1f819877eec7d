//! Alarms of an ENUM server.

use telemetry::{AlarmKind, Severity};

/// Changes cannot be kept.
pub(crate) const UNWRITTEN: AlarmKind = AlarmKind {
    number: 10580,
    name: "ENUM Changes Not Written",
    severity: Severity::Major,
    text: "The directory of changed numbers cannot be written: changes are refused, and answers stay as they are.",
    advice: "Check the disk and the permissions of `enum.directory`. The next change that is written clears the alarm; where changes are still refused, restart the server.",
};
/// Queries for numbers of a damaged block are answered SERVFAIL.
pub(crate) const DAMAGED: AlarmKind = AlarmKind {
    number: 10581,
    name: "ENUM Numbers Damaged",
    severity: Severity::Major,
    text: "A part of the file of numbers is damaged, or changed numbers have no room beside it: queries for these numbers are answered SERVFAIL.",
    advice: "Import the file of numbers again (`signalbox numbers import`), and reload.",
};
/// Numbers name profiles that do not exist.
pub(crate) const NO_PROFILE: AlarmKind = AlarmKind {
    number: 10582,
    name: "ENUM Profile Missing",
    severity: Severity::Minor,
    text: "Numbers that were queried name a profile that does not exist, or their records cannot be written: SERVFAIL.",
    advice: "Add the profile to `enum.profiles`, or correct the numbers; `signalbox enum why NUMBER` has the reason.",
};
