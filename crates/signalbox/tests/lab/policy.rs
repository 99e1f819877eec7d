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
