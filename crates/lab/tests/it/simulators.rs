//! Simulators as processes.

use lab::client::{Client, Request};
use lab::run::Simulator;
use lab::sim::{GroupRange, Misbehaviour, RoleName, Settings};
use settings::Percent;

use crate::support::program;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn a_simulator_listens_answers_tells_and_ends_with_the_lab() {
    let Some(program) = program("lab") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings {
        role: RoleName::Slf,
        ports: 2,
        ..Settings::default()
    };
    settings.slf.groups.push(GroupRange {
        nf_type: "UDM".into(),
        from: 1,
        to: 9,
        group: "g".into(),
    });
    let mut simulator = Simulator::start(&program, "slf", &settings, &[], folder.path()).unwrap();
    assert_eq!(simulator.addresses.len(), 2);
    let ask = |address, subscriber: u32| {
        let path =
            format!("/nudr-group-id-map/v1/nf-group-ids?nf-type=UDM&subscriberId=imsi-{subscriber:015}");
        Client::connect(address, PATIENCE)
            .unwrap()
            .exchange(&[Request::new("GET", path)])
            .unwrap()
            .remove(0)
    };
    assert_eq!(ask(simulator.addresses[0], 5).text(), r#"{"UDM":"g"}"#);
    assert_eq!(ask(simulator.addresses[1], 10).status, 404);
    let stats = simulator.stats().unwrap();
    assert_eq!((stats.requests, stats.answered, stats.accepted), (2, 2, 2));
    simulator
        .misbehave(&Misbehaviour {
            error: Percent::new(100.0),
            ..Misbehaviour::default()
        })
        .unwrap();
    // The next command is read after the one before it has been obeyed; the next tick makes it so.
    simulator.stats().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(ask(simulator.addresses[0], 5).status, 503);
    assert!(simulator.process().usage().is_some());
}

#[test]
fn settings_with_mistakes_are_refused_with_their_places() {
    let Some(program) = program("lab") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    std::fs::write(&file, "role: slf\nlatencey: 3s\n").unwrap();
    let output = std::process::Command::new(program)
        .arg("lab-sim")
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("bad.yaml:2:1") && text.contains("latency"),
        "{text}"
    );
}
