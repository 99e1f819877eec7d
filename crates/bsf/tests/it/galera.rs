//! Two BSFs on a Galera cluster of three nodes, one of which is killed under load.

use std::time::Duration;

use bsf::repository::Repository;

use crate::churn::{Churn, settle};
use crate::databases::Servers;
use crate::process::Process;
use crate::support::{client, config, local};

/// PCFs of each BSF at the same time.
const PCFS: usize = 12;
/// Bindings that live before a kill and after it.
const SOME: usize = 300;

#[test]
fn a_cluster_loses_a_node_and_no_acknowledged_binding() {
    let Some(servers) = Servers::galera(3) else { return };
    let directory = tempfile::tempdir().unwrap();
    let bsfs = [[1, 2, 3], [2, 3, 1]].map(|nodes| {
        let mut config = config(directory.path());
        config.store = servers.config("site-1", &nodes);
        Process::start(&config)
    });
    local(async {
        let churn = Churn::default();
        let pcfs: Vec<_> = (0..2 * PCFS)
            .map(|pcf| churn.clone().pcf(client(), bsfs[pcf % 2].origin.clone()))
            .map(tokio::task::spawn_local)
            .collect();
        churn.goes_on(SOME).await;
        let calm = churn.silence();
        // The node that one BSF uses and the other does not.
        assert!(servers.run("kill", Some(1)));
        churn.goes_on(SOME).await;
        churn.stop.set(true);
        for pcf in pcfs {
            pcf.await.unwrap();
        }
        let errors = churn.errors.get();
        let mut lives = churn.lives.take();
        eprintln!(
            "{} bindings; the longest time without an acknowledgement: {calm:?} before the kill, {:?} around it; \
             {errors} errors",
            lives.len(),
            churn.silence()
        );
        // What was on its way when the node died may have failed, nothing after it.
        assert!(errors <= 2 * PCFS as u64, "{errors} errors");
        // Another node has all of it.
        let elsewhere = servers.config("site-1", &[3]);
        let repository = Repository::open(&elsewhere, 16).await.unwrap();
        settle(&repository, &mut lives, "after the kill").await;
        repository.store().clone().close().await;
        assert!(churn.silence() < Duration::from_secs(30));
    });
}
