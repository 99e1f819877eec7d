//! Alarms of a database processor. Those of the guide have its numbers.

use function::sbi::Profile;
use telemetry::{AlarmKind, Severity};

/// The journal of the servers is not followed.
pub(crate) const NOT_FOLLOWED: AlarmKind = AlarmKind {
    number: 10590,
    name: "Subscriber Data Not Followed",
    severity: Severity::Major,
    text: "No subscriber database server has answered for 10 s, or what it answers cannot be used: the data of this processor are as of its last answer.",
    advice: "Check `dp.sds.addresses` and the servers; the log has the reason, and `signalbox dp data` the offset of the data.",
};
/// Queries for numbers of a damaged block.
pub(crate) const DAMAGED: AlarmKind = AlarmKind {
    number: 10591,
    name: "Subscriber Numbers Damaged",
    severity: Severity::Major,
    text: "A part of the file of numbers is damaged: queries for these numbers are answered as damaged.",
    advice: "Import the file again (`signalbox numbers import`) and reload. With `sds` all data are taken again by themselves; where the alarm returns check the disk.",
};
/// Queries beyond the rate.
pub(crate) const CONGESTED: AlarmKind = AlarmKind {
    number: 19826,
    name: "Communication Agent Connection Congested",
    severity: Severity::Major,
    text: "Routers send more queries in a second than `dp.queriesPerSecond` permits; those beyond are answered as congested.",
    advice: "Add a database processor to `processors` of the routers, or raise `dp.queriesPerSecond`.",
};
/// The processor is busy.
pub(crate) const CPU: AlarmKind = AlarmKind {
    number: 19900,
    name: "Process CPU Utilization",
    severity: Severity::Minor,
    text: "The database processor uses more than 80 % of the processor time that its workers can have.",
    advice: "Add workers or another database processor.",
};
/// What NRFs know of a processor: a consumer, which gets access tokens.
pub(crate) const PROFILE: &Profile = &Profile {
    nf_type: "DP",
    info: "customInfo",
    services: &[],
    allowed_nf_types: |_| &[],
    not_registered: AlarmKind {
        number: 10592,
        name: "Database Processor Not Registered",
        severity: Severity::Major,
        text: "No NRF has accepted the registration of the processor, so that it may get no access token for the subscriber database servers.",
        advice: "Check `dp.nrfs` and the log; the alarm clears by itself.",
    },
};
