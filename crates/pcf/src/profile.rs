//! This PCF at the NRFs (TS 29.510 §5.2.2.2).

use function::sbi::Profile;
use telemetry::{AlarmKind, Severity};

/// What every PCF of ours says in its profile.
pub(crate) const PROFILE: &Profile = &profile(SERVICES.split_at(SERVICES.len() - 1).0);
/// As [`PROFILE`], of one that offers background data transfers.
pub(crate) const PROFILE_WITH_BDT: &Profile = &profile(SERVICES);

/// The services, that of background data transfers last.
const SERVICES: &[(&str, &str)] = &[
    ("npcf-smpolicycontrol", "1.2.4"),
    ("npcf-am-policy-control", "1.2.1"),
    ("npcf-ue-policy-control", "1.2.1"),
    ("npcf-policyauthorization", "1.2.3"),
    ("npcf-bdtpolicycontrol", "1.2.0"),
];

const fn profile(services: &'static [(&'static str, &'static str)]) -> Profile {
    Profile {
        nf_type: "PCF",
        info: "pcfInfo",
        services,
        allowed_nf_types,
        // The number is ours.
        not_registered: AlarmKind {
            number: 10560,
            name: "PCF Not Registered",
            severity: Severity::Major,
            text: "No NRF has accepted the registration of the function, so consumers do not find it.",
            advice: "Check `nrf.apiRoots` and the log; the alarm clears by itself.",
        },
    }
}

/// The consumers of TS 23.502 table 5.2.5.1-1: an AF has no business with the policies of sessions and UEs. An SCP asks for
/// what its consumers ask it for. `nrf.profile` has other types where an operator needs them.
pub(crate) fn allowed_nf_types(service: &str) -> &'static [&'static str] {
    match service {
        "npcf-smpolicycontrol" => &["SMF", "SCP"],
        "npcf-am-policy-control" => &["AMF", "SCP"],
        // A PCF of the visited network.
        "npcf-ue-policy-control" => &["AMF", "PCF", "SCP"],
        // TS 29.554 §4.1.2.
        "npcf-bdtpolicycontrol" => &["NEF", "SCP"],
        // The BSF serves AFs over Rx, and looks for another PCF of a set.
        "npcf-policyauthorization" => &["AF", "NEF", "PCSCF", "TSCTSF", "BSF", "SCP"],
        _ => &[],
    }
}
