//! Call models of the PCF in small doses: our own PCF, with a real NRF and BSF beside it and simulated UDR and CHF.

use lab::run::{Options, Rate};

use crate::bsf::{options, run};
use crate::program;

#[test]
fn our_pcf_serves_sessions_with_the_data_of_their_subscribers() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        sessions: Some(200),
        rate: Rate::Tps(60.0),
        ..options(&folder)
    };
    let (report, failed) = run("policy/pcf-30k-binding", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    for name in ["smCreate", "smUpdate", "smDelete"] {
        let one = report.operations.iter().find(|one| one.name == name);
        assert!(
            one.is_some_and(|one| one.count > 3 && one.errors == 0),
            "{name}: {one:?}"
        );
    }
}

/// The transactions of the guide are those in and those out: both are counted, each at its receiver.
#[test]
fn our_pcf_serves_amfs_with_projects_of_high_complexity() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        sessions: Some(100),
        rate: Rate::Tps(40.0),
        ..options(&folder)
    };
    let (report, failed) = run("policy/am-ue-75k", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    for name in ["amCreate", "amDelete", "ueCreate", "ueDelete"] {
        let one = report.operations.iter().find(|one| one.name == name);
        assert!(
            one.is_some_and(|one| one.count > 3 && one.errors == 0),
            "{name}: {one:?}"
        );
    }
    let egress = report.egress.unwrap();
    let out = |name: &str| {
        egress
            .receivers
            .iter()
            .find(|(one, _)| one == name)
            .map(|(_, rate)| *rate)
    };
    assert!(out("UDR").is_some_and(|rate| rate > 1.0), "{egress:?}");
    assert!(out("AMF and SMF").is_some() && out("NRF").is_some(), "{egress:?}");
    assert!(
        egress.cpu_us_per_transaction > 0.0
            && egress.cpu_us_per_transaction < report.functions[0].cpu_us_per_transaction,
        "{egress:?}"
    );
}
