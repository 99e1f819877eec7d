//! TLS between two routers, and whom certificates keep out.

use std::net::SocketAddr;
use std::path::Path;

use diameter::proto::ResultCode;
use diameter::proto::known::{self, command};
use dsr::config::{LocalNode, Peer as PeerConfig, Timers, TlsFiles};
use dsr::registry::HopState;
use dsr::{Config, Event, Running};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::support::{MME, answered, available, client, config, one_list, routing, run, ulr, until, world};

const EDGE: &str = "edge.example";

/// A certificate for this host by this authority.
fn files(folder: &Path, issuer: &CertifiedIssuer<'static, KeyPair>, host: &str) -> TlsFiles {
    let key = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(vec![host.to_owned()])
        .unwrap()
        .signed_by(&key, issuer)
        .unwrap();
    let file = |ending: &str| folder.join(format!("{host}.{ending}"));
    std::fs::write(file("pem"), signed.pem()).unwrap();
    std::fs::write(file("key"), key.serialize_pem()).unwrap();
    std::fs::write(file("ca"), issuer.pem()).unwrap();
    TlsFiles {
        certificates: file("pem"),
        key: file("key"),
        trust: file("ca"),
        mutual: true,
        match_identity: true,
        check_interval: settings::Period::from_secs(1),
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A router of this name that sends every request to `dsr.example`, over TLS by these files.
fn edge(name: &str, at: SocketAddr, tls: TlsFiles) -> Running {
    let base = config();
    let mut edge = Config {
        local_nodes: vec![LocalNode {
            host: name.to_owned(),
            ..base.local_nodes[0].clone()
        }],
        peers: vec![PeerConfig {
            host: "dsr.example".to_owned(),
            addresses: vec![at],
            tls: Some(tls),
            timers: Timers {
                reconnect_min: settings::Period::from_millis(50),
                reconnect_max: settings::Period::from_millis(50),
                ..Timers::default()
            },
            ..PeerConfig::default()
        }],
        ..base
    };
    routing(&mut edge, &one_list(&["dsr.example"]));
    dsr::start(edge).unwrap()
}

#[test]
fn routers_talk_over_mutual_tls_and_strangers_stay_out() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let issuer = authority();
        let mut inner = config();
        inner.local_nodes[0].tls = Some(files(folder.path(), &issuer, "dsr.example"));
        let (inner, _servers, mut peers) = world(inner, ["hss.example"], &one_list(&["hss.example"])).await;
        let at = inner.addresses()[0];
        let outer = edge(EDGE, at, files(folder.path(), &issuer, EDGE));
        available(&outer, "dsr.example").await;
        let mut mme = client(&outer, MME).await;
        mme.send(ulr("001010000000001").as_bytes()).await;
        let request = answered(&mut mme, &mut peers[0]).await;
        let path: Vec<_> = request
            .avps()
            .flatten()
            .filter(|avp| avp.is(known::ROUTE_RECORD))
            .collect();
        assert_eq!((path.len(), path[1].data), (2, EDGE.as_bytes()));

        // A certificate of another authority, and one about another name.
        let stranger = edge("a.example", at, files(folder.path(), &authority(), "a.example"));
        let pretender = edge("b.example", at, files(folder.path(), &issuer, "c.example"));
        until(|| stranger.count(Event::ConnectionRefused) + inner.count(Event::ConnectionRefused) > 0).await;
        for outside in [&stranger, &pretender] {
            let mut mme = client(outside, MME).await;
            mme.send(ulr("1").as_bytes()).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
                .await;
        }
        assert!(
            !inner.hops().contains_key(&b"a.example"[..]) && !inner.hops().contains_key(&b"b.example"[..])
        );
        // Files that are not there keep a router from starting.
        let mut missing = config();
        missing.local_nodes[0].tls = Some(TlsFiles {
            key: "nowhere.key".into(),
            ..files(folder.path(), &issuer, "x.example")
        });
        assert!(
            dsr::start(missing)
                .unwrap_err()
                .to_string()
                .contains("nowhere.key")
        );
    });
}

#[test]
fn certificates_are_replaced_while_routers_talk() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (authority(), authority());
        let mut inner = config();
        inner.workers = 2;
        inner.local_nodes[0].tls = Some(files(folder.path(), &old, "dsr.example"));
        let (inner, _servers, mut peers) = world(inner, ["hss.example"], &one_list(&["hss.example"])).await;
        let at = inner.addresses()[0];
        let outer = edge(EDGE, at, files(folder.path(), &old, EDGE));
        available(&outer, "dsr.example").await;
        let mut mme = client(&outer, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        // Files of the new authority, under the names that the router knows.
        files(folder.path(), &new, "dsr.example");
        assert!(inner.reread().is_ok());
        assert!(!inner.reread().unwrap(), "they are in use");
        let later = edge("later.example", at, files(folder.path(), &new, "later.example"));
        available(&later, "dsr.example").await;
        let late = edge("late.example", at, files(folder.path(), &old, "late.example"));
        // A file that cannot be used refuses a reload, and changes nothing.
        let key = folder.path().join("dsr.example.key");
        let good = std::fs::read(&key).unwrap();
        std::fs::write(&key, "-----BEGIN PRIVATE KEY-----").unwrap();
        let reason = inner.reread().unwrap_err();
        assert!(reason.contains("dsr.example.key"), "{reason}");
        let third = edge("third.example", at, files(folder.path(), &new, "third.example"));
        available(&third, "dsr.example").await;
        std::fs::write(&key, good).unwrap();
        assert_eq!(late.hops()[&b"dsr.example"[..]][0].state(), HopState::Down);
        assert!(!inner.hops().contains_key(&b"late.example"[..]));
        // The peer's files change by themselves, and it comes in.
        files(folder.path(), &new, "late.example");
        available(&late, "dsr.example").await;
        // All the while the first connection has stood.
        mme.send(ulr("1").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        assert_eq!(outer.count(Event::PeerUp), 2);
        assert_eq!(outer.count(Event::PeerDown), 0);
    });
}
