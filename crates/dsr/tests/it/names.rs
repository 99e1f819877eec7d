//! Peers by DNS: names of hosts, SRV and NAPTR records (RFC 6733 §5.2).

use std::net::{IpAddr, Ipv4Addr};

use dsr::{Config, Running};
use testpeer::diameter::Peer;
use testpeer::dns::NameServer;

use crate::support::{MME, Waiting, answered, client, config, one_list, routing, run, ulr, until};

const HSS: &str = "hss1.example";
const LOOPBACK: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];

/// A router that knows the server by this name alone.
fn named(server: &Waiting, name: &str, names: &NameServer) -> Config {
    let mut config = config();
    config.dns.servers = vec![names.address];
    config.dns.negative_ttl = settings::Period::from_millis(1);
    let mut peer = server.peer();
    peer.addresses.clear();
    peer.names = vec![name.to_owned()];
    config.peers.push(peer);
    routing(&mut config, &one_list(&[HSS]));
    config
}

async fn relays(dsr: &Running, server: &mut Peer) {
    let mut mme = client(dsr, MME).await;
    mme.send(ulr("1").as_bytes()).await;
    answered(&mut mme, server).await;
}

#[test]
fn a_host_is_found_by_its_name() {
    run(async {
        let names = NameServer::start().await.unwrap();
        let server = Waiting::new(HSS).await;
        let name = format!("hss1.epc.test:{}", server.port());
        let dsr = dsr::start(named(&server, &name, &names)).unwrap();
        // No server knows the name at first.
        until(|| names.asked() > 2).await;
        names.addresses("hss1.epc.test", 60, LOOPBACK);
        relays(&dsr, &mut server.connected(&dsr).await).await;
    });
}

#[test]
fn a_realm_leads_to_its_servers_by_naptr_and_srv() {
    run(async {
        let names = NameServer::start().await.unwrap();
        let server = Waiting::new(HSS).await;
        names.naptrs(
            "epc.test",
            60,
            &[
                (1, "s", "AAA+AP16777251:diameter.sctp", "_diameter._sctp.epc.test"),
                (2, "S", "AAA+AP16777251:diameter.tcp", "_s6a._tcp.epc.test"),
            ],
        );
        names.services(
            "_s6a._tcp.epc.test",
            60,
            &[(1, 1, server.port(), "hss1.epc.test")],
        );
        // What has no NAPTR record is not taken.
        names.services("_diameter._tcp.epc.test", 60, &[(1, 1, 9, "other.epc.test")]);
        names.addresses("hss1.epc.test", 60, LOOPBACK);
        let dsr = dsr::start(named(&server, "epc.test", &names)).unwrap();
        relays(&dsr, &mut server.connected(&dsr).await).await;
    });
}

#[test]
fn a_server_that_moves_is_found_again_by_srv() {
    run(async {
        let names = NameServer::start().await.unwrap();
        let (first, second) = (Waiting::new(HSS).await, Waiting::new(HSS).await);
        names.addresses("hss1.epc.test", 60, LOOPBACK);
        let at = |server: &Waiting| {
            names.services(
                "_diameter._tcp.epc.test",
                0,
                &[(1, 1, server.port(), "hss1.epc.test")],
            );
        };
        at(&first);
        let mut config = named(&first, "epc.test", &names);
        config.dns.max_ttl = settings::Period::from_millis(1);
        let dsr = dsr::start(config).unwrap();
        let peer = first.connected(&dsr).await;
        at(&second);
        peer.break_off();
        relays(&dsr, &mut second.connected(&dsr).await).await;
    });
}

#[test]
fn names_that_cannot_be_are_refused() {
    for (name, valid) in [
        ("epc.test", true),
        ("hss:3868", true),
        ("hss:0", false),
        ("a b", false),
        ("hss:x", false),
    ] {
        let yaml = format!("peers: [{{host: a.example, names: [\"{name}\"]}}]");
        let read = settings::from_str::<Config>(&yaml, "test");
        assert_eq!(read.is_ok(), valid, "{name}");
    }
}
