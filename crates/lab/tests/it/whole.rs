//! A short run of a call model against the real function.

use std::time::Duration;

use lab::run::{Options, Progress, Rate};

use crate::support::program;

#[test]
fn the_smallest_nrf_mix_at_a_low_rate_passes() {
    let Some(program) = program("signalbox") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let found = lab::callmodel::find("nrf/5k").unwrap();
    let options = Options {
        rate: Rate::Tps(200.0),
        duration: Duration::from_secs(3),
        warmup: Duration::from_secs(1),
        pin: Vec::new(),
        connections: Some(4),
        generators: 2,
        out: folder.path().to_owned(),
        program: Some(program),
        target: None,
        function_config: None,
    };
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let failed: Vec<_> = report
        .checks
        .iter()
        .filter(|c| !c.pass && c.name != "generator on time")
        .collect();
    assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
    assert!(
        report
            .operations
            .iter()
            .any(|o| o.name == "nfDiscover.slf" && o.count > 300)
    );
    assert!(report.functions[0].rss_mb_max > 1.0 && report.functions[0].connections_in >= 4);
}
