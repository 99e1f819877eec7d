//! Two subscriber database servers on one MariaDB: a processor follows either one, and no acknowledged change is missing.

use std::path::Path;

use dp::Config;
use dp::config::Sds;
use settings::{Listen, Period};
use testpeer::{local, process};

use crate::databases::Servers;
use crate::support::{Router, config, metric, until};

/// Not a test of its own: what the process of a server does.
#[test]
fn child() {
    if let Some(settings) = process::settings() {
        let running = sds::start(serde_json::from_str(&settings).unwrap()).unwrap();
        process::serve(&running.addresses()[0].to_string());
    }
}

/// A server in a process of its own.
fn server(config: &sds::Config) -> process::Process {
    process::Process::start("pair::child", &serde_json::to_string(config).unwrap())
}

/// Settings of a server at a port of its own, which a restart takes again.
fn member(servers: &Servers, directory: &Path, number: u32) -> sds::Config {
    let port = free_ports::port().unwrap();
    let mut config = sds::Config {
        listen: Listen(vec![([127, 0, 0, 1], port).into()]),
        admin: "127.0.0.1:0".parse().unwrap(),
        workers: 1,
        directory: directory.join(number.to_string()),
        store: servers.config("site-1", &[1]),
        ..sds::Config::default()
    };
    config.journal.poll = Period::from_millis(50);
    config.overload.enabled = false;
    config
}

/// Sets an IMSI at a server.
fn set(server: &process::Process, imsi: &str, destination: &str) {
    let origin: sbi::client::Origin = format!("http://{}", server.ready).parse().unwrap();
    let client = testpeer::sbi::client("CRM-test");
    let body = format!("{{\"destinations\": \"{destination}\"}}");
    let request =
        http::Request::put(format!("/subscribers/imsi/{imsi}")).header("content-type", "application/json");
    let request = request.body(sbi::Body::from(body)).unwrap();
    let got = local(testpeer::sbi::send(&client, &origin, request)).unwrap();
    assert_eq!(got.status, 200, "{}", got.json);
}

#[test]
fn a_processor_follows_either_of_two_servers() {
    let Some(servers) = Servers::sites(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let settings = [1, 2].map(|number| member(&servers, folder.path(), number));
    let [one, two] = settings.each_ref().map(server);
    let addresses = settings
        .each_ref()
        .map(|one| format!("http://{}", one.listen.0[0]));
    let processor = dp::start(Config {
        sds: Some(Sds {
            addresses: addresses.to_vec(),
            name: "dp1".to_owned(),
        }),
        directory: Some(folder.path().join("dp")),
        ..config()
    })
    .unwrap();
    let offset = |wanted: f64| {
        until("the offset", || {
            metric(&processor, "signalbox_dp_journal_offset") == wanted
        });
    };
    let mut router = Router::new(processor.addresses()[0]);
    set(&one, "001010000000001", "hss1");
    offset(1.0);
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    // The server that it follows is killed in the moment of a change.
    set(&one, "001010000000002", "hss2");
    one.kill();
    set(&two, "001010000000001", "hss3");
    offset(3.0);
    let found = ["001010000000001", "001010000000002"].map(|imsi| router.imsi(imsi));
    assert_eq!(found, ["exact hss3", "exact hss2"]);
    // And back, without another checkpoint.
    let one = server(&settings[0]);
    two.kill();
    set(&one, "001010000000004", "hss4");
    offset(4.0);
    assert_eq!(router.imsi("001010000000004"), "exact hss4");
    assert_eq!(
        metric(&processor, "signalbox_dp_polls_total{outcome=\"checkpoint\"}"),
        1.0
    );
    processor.stop().unwrap();
}
