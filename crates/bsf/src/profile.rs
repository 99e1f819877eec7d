//! This BSF at the NRFs (TS 29.510 §5.2.2.2).

use function::sbi::Profile;
use telemetry::{AlarmKind, Severity};

/// What every BSF of ours says in its profile.
pub(crate) const PROFILE: &Profile = &Profile {
    nf_type: "BSF",
    info: "bsfInfo",
    services: &[("nbsf-management", "1.3.1")],
    allowed_nf_types: |_| &[],
    // The number is ours.
    not_registered: AlarmKind {
        number: 10540,
        name: "BSF Not Registered",
        severity: Severity::Major,
        text: "No NRF has accepted the registration of the function, so consumers do not find it.",
        advice: "Check `nrf.apiRoots` and the log; the alarm clears by itself.",
    },
};
