//! TLS between two routers, and whom certificates keep out.

use std::path::Path;

use diameter::proto::ResultCode;
use diameter::proto::known::{self, command};
use dsr::config::{LocalNode, Peer as PeerConfig, TlsFiles};
use dsr::{Config, Event};
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
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[test]
fn routers_talk_over_mutual_tls_and_strangers_stay_out() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let issuer = authority();
        let mut inner = config();
        inner.local_nodes[0].tls = Some(files(folder.path(), &issuer, "dsr.example"));
        let (inner, _servers, mut peers) = world(inner, ["hss.example"], &one_list(&["hss.example"])).await;
        let edge = |name: &str, tls: TlsFiles| {
            let base = config();
            let mut edge = Config {
                local_nodes: vec![LocalNode {
                    host: name.to_owned(),
                    ..base.local_nodes[0].clone()
                }],
                peers: vec![PeerConfig {
                    host: "dsr.example".to_owned(),
                    addresses: vec![inner.addresses()[0]],
                    tls: Some(tls),
                    ..PeerConfig::default()
                }],
                ..base
            };
            routing(&mut edge, &one_list(&["dsr.example"]));
            dsr::start(edge).unwrap()
        };
        let outer = edge(EDGE, files(folder.path(), &issuer, EDGE));
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
        let stranger = edge("a.example", files(folder.path(), &authority(), "a.example"));
        let pretender = edge("b.example", files(folder.path(), &issuer, "c.example"));
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
