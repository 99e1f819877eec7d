//! TLS between two routers, and whom certificates keep out.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use diameter::proto::ResultCode;
use diameter::proto::known::{self, command};
use dsr::HopState;
use dsr::config::{Listener, LocalNode, Peer as PeerConfig, Timers};
use dsr::{Config, Event, Running};
use tls::TlsFiles;
use tls::authority::Authority;

use crate::support::{MME, answered, available, client, config, one_list, routing, run, ulr, until, world};

const EDGE: &str = "edge.example";

/// A certificate for this host by this authority, in a folder of its own.
fn files(folder: &Path, authority: &Authority, host: &str) -> TlsFiles {
    let folder = folder.join(host);
    std::fs::create_dir_all(&folder).unwrap();
    let identity = authority.issue(&[host]).unwrap();
    TlsFiles {
        check_interval: settings::Period::from_secs(1),
        ..authority.write(&identity, &folder, host).unwrap()
    }
}

fn authority() -> Authority {
    Authority::new("test").unwrap()
}

/// A router of this name that sends every request to `dsr.example`, over TLS by these files.
fn edge(name: &str, at: SocketAddr, tls: TlsFiles) -> Running {
    edge_with(name, at, tls, false)
}

/// As [`edge`]; `inband`: TLS begins after the capabilities exchange.
fn edge_with(name: &str, at: SocketAddr, tls: TlsFiles, inband: bool) -> Running {
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
            inband_security: inband,
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
            inner.hops().get(&b"a.example"[..]).is_none() && inner.hops().get(&b"b.example"[..]).is_none()
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
        let key = folder.path().join("dsr.example/dsr.example.key");
        let good = std::fs::read(&key).unwrap();
        std::fs::write(&key, "-----BEGIN PRIVATE KEY-----").unwrap();
        let reason = inner.reread().unwrap_err();
        assert!(reason.contains("dsr.example.key"), "{reason}");
        let third = edge("third.example", at, files(folder.path(), &new, "third.example"));
        available(&third, "dsr.example").await;
        std::fs::write(&key, good).unwrap();
        assert_eq!(
            late.hops().get(&b"dsr.example"[..]).unwrap()[0].state(),
            HopState::Down
        );
        assert!(inner.hops().get(&b"late.example"[..]).is_none());
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

#[test]
fn a_hundred_reloads_beside_changed_certificates_lose_nothing() {
    const RELOADS: u32 = 100;
    /// Requests in flight.
    const WINDOW: u32 = 32;
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let issuer = authority();
        let mut inner = config();
        inner.workers = 2;
        inner.local_nodes[0].tls = Some(files(folder.path(), &issuer, "dsr.example"));
        let (inner, _servers, mut peers) = world(inner, ["hss.example"], &one_list(&["hss.example"])).await;
        let outer = edge(EDGE, inner.addresses()[0], files(folder.path(), &issuer, EDGE));
        available(&outer, "dsr.example").await;
        let mut mme = client(&outer, MME).await;
        let up = [&inner, &outer].map(|router| router.count(Event::PeerUp));
        let mut hss = peers.remove(0);
        let serving = tokio::task::spawn_local(async move {
            while let Some(request) = hss.next().await {
                if request.command() == command::UPDATE_LOCATION {
                    hss.answer(&request, ResultCode::SUCCESS).await;
                }
            }
        });
        let routers = Arc::new((inner, outer));
        let (changed, home) = (routers.clone(), folder.path().to_owned());
        let reloads = tokio::task::spawn_blocking(move || {
            for round in 1..=RELOADS {
                for (router, host) in [(&changed.0, "dsr.example"), (&changed.1, EDGE)] {
                    files(&home, &issuer, host);
                    let mut next = Config::clone(&router.snapshot().config);
                    next.ingress.maximum = 1_000_000 + round;
                    router.reload(&next).unwrap();
                }
            }
        });
        let (mut sent, mut answered) = (0_u32, 0_u32);
        let mut missing = std::collections::BTreeSet::new();
        while !reloads.is_finished() || answered < sent {
            while !reloads.is_finished() && missing.len() < WINDOW as usize {
                sent += 1;
                let mut request = ulr(&sent.to_string());
                request.set_hop_by_hop(sent);
                request.set_end_to_end(sent);
                missing.insert(sent);
                mme.send(request.as_bytes()).await;
            }
            let answer = mme.next().await.unwrap();
            if answer.command() == command::UPDATE_LOCATION {
                assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001, "{answer:?}");
                assert!(missing.remove(&answer.hop_by_hop()), "{answer:?} came twice");
                answered += 1;
            }
        }
        reloads.await.unwrap();
        for (router, up) in [&routers.0, &routers.1].into_iter().zip(up) {
            assert_eq!(router.snapshot().config.ingress.maximum, 1_000_000 + RELOADS);
            assert_eq!(router.snapshot().version, 1 + RELOADS);
            assert_eq!(router.count(Event::Request), u64::from(sent));
            assert_eq!(router.count(Event::AnswerSent), u64::from(sent));
            assert_eq!(
                (router.count(Event::PeerUp), router.count(Event::PeerDown)),
                (up, 0)
            );
            assert!(!router.reread().unwrap(), "the last files are in use");
        }
        serving.abort();
    });
}

/// RFC 6733 §2.1, §13.1: one node listens in the clear and over TLS; jDiameter begins TLS after the capabilities exchange.
#[test]
fn one_name_is_reached_in_the_clear_and_over_tls_of_both_kinds() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let issuer = authority();
        let mut inner = config();
        let keys = files(folder.path(), &issuer, "dsr.example");
        let listener = |inband_security| Listener {
            listen: "127.0.0.1:0".parse::<SocketAddr>().unwrap().into(),
            tls: Some(keys.clone()),
            inband_security,
            ..Listener::default()
        };
        inner.local_nodes[0].listen_also = vec![listener(false), listener(true)];
        let (inner, _servers, mut peers) = world(inner, ["hss.example"], &one_list(&["hss.example"])).await;
        let [_, tls, inband] = *inner.addresses() else {
            panic!("{:?}", inner.addresses())
        };
        let mut clear = client(&inner, MME).await;
        clear.send(ulr("1").as_bytes()).await;
        answered(&mut clear, &mut peers[0]).await;
        for (name, at, is_inband) in [("edge1.example", tls, false), ("edge2.example", inband, true)] {
            let outer = edge_with(name, at, files(folder.path(), &issuer, name), is_inband);
            available(&outer, "dsr.example").await;
            let mut mme = client(&outer, "mme2.example").await;
            mme.send(ulr("2").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        // A client that leaves TLS out does not get around it.
        let mut bare = testpeer::diameter::Peer::connect(inband).await;
        bare.send_cer("bare.example", crate::support::APPLICATIONS).await;
        bare.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::NO_COMMON_SECURITY)
            .await;
        // Nor does a server that offers none get requests of a peer that is to be secured.
        let wrong = edge_with(
            "edge3.example",
            inner.addresses()[0],
            files(folder.path(), &issuer, "edge3.example"),
            true,
        );
        let row = || wrong.peers().into_iter().find(|row| row.host == "dsr.example");
        until(|| row().is_some_and(|row| !row.last_error.is_empty())).await;
        assert_eq!(row().unwrap().state, "unavailable");
    });
}
