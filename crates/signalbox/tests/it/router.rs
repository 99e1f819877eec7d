//! A Diameter router as an operator meets it.

use std::path::Path;

use crate::process::{Process, ask, harmless, signalbox, text, until};

#[test]
fn a_running_router_can_be_looked_into_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsr.yaml");
    let file = harmless(Some(&example), folder.path());
    let process = Process::start(&["run", "dsr", "--config", file.to_str().unwrap()], folder.path());
    let address = process.address("dsr admin");
    let admin = address.to_string();
    let look = |args: &[&str]| {
        let mut all = vec!["dsr"];
        all.extend_from_slice(args);
        all.extend_from_slice(&["--admin", &admin]);
        let output = signalbox(&all);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    // Nobody listens where the example's HSSs are said to be.
    until("both HSSs are known and not there", || {
        let peers = look(&["peers"]);
        peers.contains("hss1.epc") && peers.contains("hss2.epc") && !peers.contains(" available")
    });
    let routes = look(&["routes"]);
    assert!(
        routes.contains("2 entries") && routes.contains("unavailable"),
        "{routes}"
    );
    until("the alarm that a peer is not there", || {
        look(&["alarms"]).contains("22051")
    });
    until("the indicators", || look(&["indicators"]).contains("MpCPUAvg"));
    assert!(look(&["metrics", "dsr_peers"]).contains("state=\"unavailable\"} 2"));

    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        before
            .replace("weight: 2", "weight: 7")
            .replace("connections: 4096", "connections: 5"),
    )
    .unwrap();
    let (status, said) = ask(address, "POST", "/config/reload");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, &said["applied"]),
        (200, &serde_json::json!(["dsr.routing.routeGroups"]))
    );
    assert_eq!(
        said["refused"],
        serde_json::json!(["dsr.limits.connections (needs a restart)"])
    );
    // A name that leads nowhere changes nothing.
    std::fs::write(&file, before.replace("routeList: hss", "routeList: hsx")).unwrap();
    let (status, said) = ask(address, "POST", "/config/reload");
    assert!(
        status == 422 && said.contains("there is no route list `hsx`"),
        "{said}"
    );
    process.signal("TERM");
    assert!(process.ended().success());
}
