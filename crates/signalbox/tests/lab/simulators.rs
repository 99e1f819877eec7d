//! Simulators as processes.

use std::net::SocketAddr;
use std::time::Instant;

use lab::run::Simulator;
use lab::sim::{FarSettings, GroupRange, Misbehaviour, RoleName, Settings};
use lab::workload::scp::address_of;
use loadgen::client::{Client, Request};
use settings::{Percent, Period};

use crate::program;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn a_simulator_listens_answers_tells_and_ends_with_the_lab() {
    let program = program();
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
    let program = program();
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

#[test]
fn far_producers_and_servers_behind_a_wire_answer_later() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let later = Period::from_millis(80);
    let start = |name: &str, settings: Settings| {
        Simulator::start(&program, name, &settings, &[], folder.path()).unwrap()
    };
    let mut producers = Settings {
        role: RoleName::Producer,
        listen: settings::Listen::from(SocketAddr::from(([0, 0, 0, 0], 0))),
        ..Settings::default()
    };
    producers.producer.far = FarSettings {
        latency: later,
        numbers: vec![1],
    };
    let mut producers = start("producers", producers);
    let port = producers.addresses[0].port();
    let wire = start(
        "wire",
        Settings {
            role: RoleName::Wire,
            latency: later,
            upstream: Some((address_of(0), port).into()),
            ..Settings::default()
        },
    );
    for (number, address) in [
        (1, (address_of(1), port).into()),
        (2, wire.addresses[0]),
        (3, (address_of(0), port).into()),
    ] {
        let began = Instant::now();
        let mut client = Client::connect(address, PATIENCE).unwrap();
        let answers = client.exchange(&[Request::new("GET", "/x"), Request::new("GET", "/y")]);
        assert!(
            answers
                .unwrap()
                .iter()
                .all(|answer| answer.status == 200 && answer.body.len() == 1000)
        );
        // Never sooner; those that are near only when the machine is slow.
        assert!(number == 3 || began.elapsed() >= later.duration(), "{number}");
    }
    assert_eq!(producers.stats().unwrap().requests, 6);
    // A wire to nowhere is a mistake in its settings.
    let nowhere = Settings {
        role: RoleName::Wire,
        ..Settings::default()
    };
    let error = Simulator::start(&program, "nowhere", &nowhere, &[], folder.path()).unwrap_err();
    assert!(error.to_string().contains("upstream"), "{error}");
}
