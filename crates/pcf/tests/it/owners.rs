//! Diameter sessions belong to the nodes that began them.

use diameter::proto::known::application;

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
