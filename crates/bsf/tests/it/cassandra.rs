//! Two BSFs on a Cassandra cluster of three nodes, one of which is killed under load.

use bsf::repository::Repository;
use http::StatusCode;
use serde_json::json;

use crate::churn::{Churn, settle};
use crate::clusters::Cluster;
use crate::process::Process;
use crate::support::{binding, client, config, local, request, send};

/// PCFs of each BSF at the same time.
const PCFS: usize = 4;
/// Bindings that live before a kill and after it.
const SOME: usize = 60;

#[test]
fn two_bsfs_on_cassandra_lose_a_node_and_no_acknowledged_binding() {
    let Some(cluster) = Cluster::start(3, 1, false) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let bsfs = ["one", "another"].map(|name| {
        let mut config = config(directory.path());
        config.store = cluster.config("site-1", 1);
        // Its NF instance id is kept there.
        config.store.embedded.directory = directory.path().join(name);
        Process::start(&config)
    });
    local(async {
        // What one has registered the other finds.
        let body = binding(&json!({"ipv4Addr": "10.99.0.1"})).to_string();
        let path = "/nbsf-management/v1/pcfBindings";
        let made = request(http::Method::POST, path, "application/json", body);
        let made = send(&client(), &bsfs[0].origin, made).await.unwrap();
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let query = request(http::Method::GET, &format!("{path}?ipv4Addr=10.99.0.1"), "", "");
        let found = send(&client(), &bsfs[1].origin, query).await.unwrap();
        assert_eq!(found.status, StatusCode::OK, "{}", found.json);
        assert_eq!(found.json["pcfFqdn"], "pcf1.example.org");
        let location = made.headers["location"].to_str().unwrap();
        let location: http::Uri = location.parse().unwrap();
        let delete = request(http::Method::DELETE, location.path(), "", "");
        let deleted = send(&client(), &bsfs[1].origin, delete).await.unwrap();
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.json);

        let churn = Churn::default();
        let pcfs: Vec<_> = (0..2 * PCFS)
            .map(|pcf| churn.clone().pcf(client(), bsfs[pcf % 2].origin.clone()))
            .map(tokio::task::spawn_local)
            .collect();
        churn.goes_on(SOME).await;
        assert!(cluster.run("kill", Some(1)));
        churn.goes_on(SOME).await;
        churn.stop.set(true);
        for pcf in pcfs {
            pcf.await.unwrap();
        }
        let errors = churn.errors.get();
        let mut lives = churn.lives.take();
        eprintln!(
            "{} bindings; the longest time without an acknowledgement: {:?}; {errors} errors",
            lives.len(),
            churn.silence()
        );
        // The two nodes that live have all of it.
        let repository = Repository::open(&cluster.config("site-1", 1), 16).await.unwrap();
        settle(&repository, &mut lives, "after the kill").await;
        repository.store().clone().close().await;
    });
}
