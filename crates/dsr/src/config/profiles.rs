//! DA-MP profiles: what a message processor is planned for, by the names of the benchmarking guide.

/// What a message processor is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Name of its profile; none: planned by a number.
    pub profile: Option<&'static str>,
    /// Messages per second.
    pub mps: u32,
}

/// The guide's profiles by rising rate.
const PROFILES: &[(&str, u32)] = &[
    ("5K_MPS", 5_000),
    ("6K_MPS", 6_000),
    ("8K_MPS", 8_000),
    ("10K_MPS", 10_000),
    ("12K_MPS", 12_000),
    ("14K_MPS", 14_000),
    ("16K_MPS", 16_000),
    ("18K_MPS", 18_000),
    ("21K_MPS", 21_000),
    ("24K_MPS", 24_000),
    ("27K_MPS", 27_000),
    ("30K_MPS", 30_000),
    ("35K_MPS", 35_000),
    ("40K_MPS", 40_000),
    ("40K_MPS_FABR", 40_000),
];

/// The profile of this name. The guide writes `18k MPS`, `40K_MPS_FABR` and `VM:35K_MPS`: case, a `VM:` before it
/// and what stands between the words do not count.
pub(super) fn find(written: &str) -> Option<Plan> {
    let name = match written.get(..3) {
        Some(vm) if vm.eq_ignore_ascii_case("VM:") => &written[3..],
        _ => written,
    };
    let name = name.trim().replace([' ', '-'], "_");
    let (profile, mps) = PROFILES
        .iter()
        .find(|(profile, _)| profile.eq_ignore_ascii_case(&name))?;
    Some(Plan {
        profile: Some(profile),
        mps: *mps,
    })
}

/// The fault of an unknown profile, with the nearest name.
pub(super) fn fault(written: &str) -> (String, String) {
    let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
    let mut said = format!("`{written}` is not a DA-MP profile");
    if let Some(near) = settings::nearest(written, &names) {
        said.push_str(&format!("; did you mean `{near}`?"));
    }
    (said, format!("one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_found_as_the_guide_writes_them() {
        for (written, mps) in [
            ("18k MPS", 18_000),
            ("18K_MPS", 18_000),
            ("VM:35K_MPS", 35_000),
            ("vm: 5k_mps", 5_000),
            ("VM:40k-MPS-FABR", 40_000),
        ] {
            assert_eq!(find(written).map(|plan| plan.mps), Some(mps), "{written}");
        }
        assert_eq!(find("VM:10K_MPS").unwrap().profile, Some("10K_MPS"));
        for written in ["", "VM:", "18", "17K_MPS", "ü18K_MPS", "VM:VM:18K_MPS"] {
            assert_eq!(find(written), None, "{written}");
        }
    }

    #[test]
    fn an_unknown_profile_is_reported_with_the_known_ones() {
        let (said, expected) = fault("18K_MSP");
        assert!(said.ends_with("did you mean `18K_MPS`?"), "{said}");
        assert!(
            expected.starts_with("one of 5K_MPS, 6K_MPS") && expected.ends_with("40K_MPS_FABR"),
            "{expected}"
        );
        assert!(!fault("large").0.contains("mean"));
        let read = |overload: &str| {
            let read = settings::from_str::<crate::Config>(&format!("overload: {overload}"), "test");
            read.map(|config| config.overload.plan())
                .map_err(|report| report.to_string())
        };
        let report = read("{profile: 18K_MSP}").unwrap_err();
        assert!(
            report.contains("did you mean `18K_MPS`?") && report.contains("6K_MPS, 8K_MPS"),
            "{report}"
        );
        let report = read("{profile: 18k MPS, profileMps: 1000}").unwrap_err();
        assert!(report.contains("exclude one another"), "{report}");
        assert_eq!(
            read("{profile: 18k MPS}").unwrap().map(|plan| plan.mps),
            Some(18_000)
        );
        let number = Plan {
            profile: None,
            mps: 1_000,
        };
        assert_eq!(read("{profileMps: 1000}").unwrap(), Some(number));
        assert_eq!(read("{}").unwrap(), None);
    }
}
