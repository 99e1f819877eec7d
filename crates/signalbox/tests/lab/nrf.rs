//! Drills and models of NRFs, short and at a low rate: what is right, not how fast.

use std::path::PathBuf;
use std::time::Duration;

use lab::callmodel::nrf::NrfModel;
use lab::run::{Options, Progress};

use crate::program;
use crate::scp::{holds, options, patient};

fn run(model: &str, change: impl FnOnce(&mut NrfModel, &mut Options)) {
    let folder = tempfile::tempdir().unwrap();
    let mut found = lab::callmodel::find(model).unwrap();
    let mut options = options(&folder, program());
    options.function_config = Some(patient(&folder, "nrf: {overload: {waiting: {target: 0s}}}\n"));
    change(found.model.nrf.as_mut().unwrap(), &mut options);
    let ran = lab::run::run(&found, &options, &mut Progress::default());
    let (report, series) = ran.unwrap_or_else(|error| panic!("{error}"));
    holds(&report, &series);
}

#[test]
fn consumers_of_an_nrf_that_is_killed_go_on_with_the_other_one() {
    if !PathBuf::from("/usr/sbin/mariadbd").exists() {
        return testpeer::skip::missing("MariaDB (apt-get install mariadb-server)");
    }
    run("nrf/kill-one", |_, options| {
        // Long enough for the other one to notice the death.
        options.duration = Duration::from_secs(21);
    });
}

#[test]
fn every_discovery_of_a_larger_registry_finds_as_many_as_it_must() {
    run("nrf/profiles-50k", |model, _| {
        for row in &mut model.population {
            row.count /= 20;
        }
    });
}
