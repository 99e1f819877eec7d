//! This PCF at the NRFs (TS 29.510 §5.2.2.2).

use function::sbi::Profile;
use telemetry::{AlarmKind, Severity};

/// What every PCF of ours says in its profile.
pub(crate) const PROFILE: &Profile = &Profile {
    nf_type: "PCF",
    info: "pcfInfo",
    services: &[
        ("npcf-smpolicycontrol", "1.2.4"),
        ("npcf-am-policy-control", "1.2.1"),
        ("npcf-ue-policy-control", "1.2.1"),
        ("npcf-policyauthorization", "1.2.3"),
    ],
    // The number is ours.
    not_registered: AlarmKind {
        number: 10560,
        name: "PCF Not Registered",
        severity: Severity::Major,
        text: "No NRF has accepted the registration of the function, so consumers do not find it.",
        advice: "Check `nrf.apiRoots` and the log; the alarm clears by itself.",
    },
};
