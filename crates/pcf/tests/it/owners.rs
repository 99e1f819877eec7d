//! Diameter sessions belong to the nodes that began them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use diameter::endpoint::{ClientOnly, Endpoint};
use diameter::proto::known::application;
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::{NodeConfig, PeerConfig, Security, TlsConfig};
use tls::authority::Authority;

use crate::diameter::{AAR, CCR_I, CCR_T, STR, ask, ask_over, peer, peer_of};
use crate::support::{local, start};

const UNKNOWN: &str = "Result-Code = DIAMETER_UNKNOWN_SESSION_ID";
const SUCCESS: &str = "Result-Code = DIAMETER_SUCCESS";
const UPDATE: &str = "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = RAT_CHANGE\nRAT-Type = UTRAN";

/// What a stranger tries on a Gx session and an Rx session of others, under a name.
const ATTEMPTS: &[(&str, &str)] = &[
    ("pgw;1;1", CCR_I),
    ("pgw;1;1", UPDATE),
    ("pgw;1;1", CCR_T),
    ("cscf;1;1", AAR),
    ("cscf;1;1", STR),
];

#[test]
fn a_stranger_acts_on_no_session_of_another() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let stranger = peer("stranger.example.org", &pcf).await;
        let relay = peer_of("relay.example.org", &pcf, &[application::RELAY]).await;
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        let rx = async |text: &str| ask(&cscf, "cscf.example.org", "cscf;1;1", text).await;
        assert!(gx(CCR_I).await.contains(SUCCESS));
        assert!(rx(AAR).await.contains(SUCCESS));
        for by in [&stranger, &relay] {
            for host in ["stranger.example.org", "pgw.example.org", "cscf.example.org"] {
                for (session, request) in ATTEMPTS {
                    let answer = ask(by, host, session, request).await;
                    assert!(answer.contains(UNKNOWN), "{host} {request}\n{answer}");
                    assert!(
                        !answer.contains("QoS") && !answer.contains("RAT-Type"),
                        "{answer}"
                    );
                }
            }
        }
        let update = AAR.replace("INITIAL_REQUEST", "UPDATE_REQUEST");
        let answer = ask(&stranger, "stranger.example.org", "cscf;1;1", &update).await;
        assert!(answer.contains(UNKNOWN), "{answer}");

        // Its own Session-Ids hide none of other interfaces.
        for session in ["rx:cscf;1;1", "gx:pgw;1;1", "sy:x", "sd:x", "ue-policy:in-flight"] {
            let answer = ask(&stranger, "stranger.example.org", session, CCR_I).await;
            assert!(answer.contains(SUCCESS), "{session}\n{answer}");
        }
        for (application, request) in [
            (application::SD, UPDATE),
            (application::SY, "SNR\nDestination-Host = \"pcf.example.org\""),
        ] {
            let applications = [application::GX, application];
            let host = format!("{application}.example.org");
            let other = peer_of(&host, &pcf, &applications).await;
            let answer = ask_over(&other, application, (&host, "x"), request).await;
            assert!(answer.contains(UNKNOWN), "{answer}");
        }

        // Their owners notice nothing.
        assert!(gx(UPDATE).await.contains(SUCCESS));
        assert!(rx(AAR).await.contains(SUCCESS));
        assert!(rx(STR).await.contains(SUCCESS));
        assert!(gx(CCR_T).await.contains(SUCCESS));
        let count = |event| pcf.running().count(event);
        assert!(count(pcf::Event::DiameterForged) > 0 && count(pcf::Event::DiameterForeign) > 0);
    });
}

#[test]
fn an_af_session_that_has_ended_is_confirmed_by_its_af_alone() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let stranger = peer("stranger.example.org", &pcf).await;
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T).await;
        let answer = ask(&stranger, "stranger.example.org", "cscf;1;1", STR).await;
        assert!(answer.contains(UNKNOWN), "{answer}");
        let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", STR).await;
        assert!(answer.contains(SUCCESS), "{answer}");
    });
}

/// A peer over TLS without or with a certificate of this name; whether it is served within a while.
async fn is_served(authority: &Authority, address: SocketAddr, host: &str, name: Option<&str>) -> bool {
    let identity = name.map(|name| authority.issue(&[name]).unwrap());
    let own = authority.issue(&["unused.example.org"]).unwrap();
    let sides = tls::Sides {
        client: authority.material(identity.as_ref(), false).client(&[]).unwrap(),
        server: authority.material(Some(&own), false).server(&[]).unwrap(),
    };
    let local =
        Capabilities::new(host, "example.org").with_applications([ApplicationId::tgpp(application::GX)]);
    let endpoint = Endpoint::new(NodeConfig::new(local), ClientOnly, None, 1);
    let peer = PeerConfig {
        security: Security::Tls(TlsConfig::new(Arc::new(sides), true)),
        ..PeerConfig::connect("pcf.example.org", [address])
    };
    endpoint.node().add_peer(peer).unwrap();
    let available = endpoint.available("pcf.example.org");
    tokio::time::timeout(Duration::from_secs(3), available)
        .await
        .is_ok()
}

#[test]
fn a_peer_over_tls_has_a_certificate_of_its_name() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("test").unwrap();
        let own = authority.issue(&["pcf.example.org"]).unwrap();
        let files = authority.write(&own, folder.path(), "pcf").unwrap();
        let pcf = start(|config| config.diameter.tls = Some(files));
        let address = pcf.running().diameter_addresses()[0];
        let host = "pgw.example.org";
        assert!(is_served(&authority, address, host, Some(host)).await);
        assert!(!is_served(&authority, address, host, None).await);
        assert!(!is_served(&authority, address, host, Some("cscf.example.org")).await);
    });
}

#[test]
fn agents_of_the_settings_speak_for_others() {
    local(async {
        let pcf = start(|config| {
            config.diameter.agents = vec!["dra.example.org".to_owned(), ".bsf.example.org".to_owned()];
        });
        for (number, agent) in ["dra.example.org", "one.bsf.example.org"].into_iter().enumerate() {
            let agent = peer(agent, &pcf).await;
            let session = format!("pgw;1;{number}");
            let answer = ask(&agent, "pgw.example.org", &session, CCR_I).await;
            assert!(answer.contains(SUCCESS), "{answer}");
            // The session is still its owner's.
            let answer = ask(&agent, "other.example.org", &session, CCR_T).await;
            assert!(answer.contains(UNKNOWN), "{answer}");
            let answer = ask(&agent, "PGW.example.org", &session, CCR_T).await;
            assert!(answer.contains(SUCCESS), "{answer}");
        }
    });
}
