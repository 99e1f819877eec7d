//! A subscriber database server behind mutual TLS.

use dp::Config;
use dp::config::Sds;
use settings::{Faults, Listen, Validate as _};
use tls::authority::Authority;

use crate::support::{Router, config, metric, until};

#[test]
fn a_server_with_mutual_tls_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("operator").unwrap();
    let files = |name: &str| {
        let identity = authority.issue(&[name, "127.0.0.1"]).unwrap();
        authority.write(&identity, folder.path(), name).unwrap()
    };
    let local = "127.0.0.1:0".parse().unwrap();
    let mut server = sds::Config {
        listen: Listen(vec![local]),
        admin: local,
        workers: 1,
        directory: folder.path().join("sds"),
        tls: Some(files("sds.example")),
        ..sds::Config::default()
    };
    server.store.embedded.directory = folder.path().join("journal");
    std::fs::create_dir(&server.directory).unwrap();
    let text = "#signalbox-numbers,1\nimsi,001010000000001,hss1\n#end,1\n";
    std::fs::write(server.directory.join("load.csv"), text).unwrap();
    let server = sds::start(server).unwrap();
    let following = Config {
        sds: Some(Sds {
            addresses: vec![format!("https://{}", server.addresses()[0])],
            ..Sds::default()
        }),
        directory: Some(folder.path().join("dp")),
        ..config()
    };
    let mut faults = Faults::default();
    following.validate(&mut faults);
    let faults = format!("{faults:?}");
    assert!(faults.contains("clientTls"), "{faults}");
    let processor = dp::start(Config {
        client_tls: Some(files("dp.example")),
        ..following
    })
    .unwrap();
    until("the data", || metric(&processor, "signalbox_dp_numbers") == 1.0);
    let mut router = Router::new(processor.addresses()[0]);
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    processor.stop().unwrap();
    server.stop().unwrap();
}
