//! P-CSCF restoration: asked for over N5 and Rx, passed on over N7 and Gx.

use http::{Method, StatusCode};
use serde_json::json;
use testpeer::sbi::no_content;

use crate::authorization::{APP_SESSIONS, listener, notification};
use crate::diameter::{CCR_I, STR, ask, peer, received};
use crate::support::{local, start};

const RESTORATION: &str = "/npcf-policyauthorization/v1/app-sessions/pcscf-restoration";

#[test]
fn an_smf_is_notified_of_a_restoration_over_n5() {
    local(async {
        let smf = listener();
        let pcf = start(|_| {});
        let uri = format!("{}/smf", smf.root());
        pcf.session(&json!({"notificationUri": uri, "ipDomain": "a"}))
            .await;
        for wanted in [
            json!({"ueIpv4": "10.0.0.1", "dnn": "internet", "ipDomain": "a", "sliceInfo": {"sst": 1, "sd": "00000A"}}),
            json!({"ueIpv6": "2001:db8:1:2::7", "supi": "imsi-001010000000001"}),
        ] {
            let got = pcf.post(RESTORATION, &wanted).await;
            assert_eq!(got.status, StatusCode::NO_CONTENT, "{}", got.json);
        }
        for number in 1..=2 {
            let (path, body) = notification(&smf, number).await;
            assert_eq!(path, "/smf/update");
            assert_eq!(body["smPolicyDecision"], json!({"pcscfRestIndication": true}));
            crate::judge::is(crate::judge::SM, "SmPolicyNotification", &body);
        }
        // It is an indication and no part of the decision.
        let resource = notification(&smf, 1).await.1["resourceUri"].clone();
        let path = resource.as_str().unwrap().parse::<http::Uri>().unwrap();
        assert_eq!(
            pcf.get(path.path()).await.json["policy"].get("pcscfRestIndication"),
            None
        );
        assert_eq!(pcf.running().count(pcf::Event::PcscfRestored), 2);
    });
}

#[test]
fn a_restoration_that_is_wrong_or_finds_no_session_is_refused() {
    local(async {
        let pcf = start(|_| {});
        for (body, status, cause) in [
            (json!({}), 400, "MANDATORY_IE_MISSING"),
            (
                json!({"ueIpv4": "10.0.0.1", "ueIpv6": "2001:db8::1"}),
                400,
                "MANDATORY_IE_INCORRECT",
            ),
            (json!({"ueIpv4": 7}), 400, "OPTIONAL_IE_INCORRECT"),
            (json!({"ueIpv4": "10.0.0.9"}), 500, "PDU_SESSION_NOT_AVAILABLE"),
        ] {
            let got = pcf.post(RESTORATION, &body).await;
            assert_eq!((got.status.as_u16(), got.cause()), (status, cause), "{body}");
        }
        assert_eq!(pcf.get(RESTORATION).await.status, StatusCode::METHOD_NOT_ALLOWED);
        let path = format!("{APP_SESSIONS}/pcscf-restoration/delete");
        assert_eq!(
            pcf.ask(Method::POST, &path, "", "").await.status,
            StatusCode::NOT_FOUND
        );

        // An SMF without the feature gets nothing of it.
        pcf.session(&json!({"suppFeat": "0"})).await;
        let got = pcf.post(RESTORATION, &json!({"ueIpv4": "10.0.0.1"})).await;
        assert_eq!(got.status, StatusCode::NO_CONTENT);
        let count = |event| pcf.running().count(event);
        assert_eq!(count(pcf::Event::PcscfNotRestored), 1);
        assert_eq!(count(pcf::Event::PcscfRestored) + count(pcf::Event::Notified), 0);
    });
}

#[test]
fn a_pcef_is_notified_of_a_restoration_over_rx() {
    local(async {
        let smf = testpeer::sbi::Server::start(|_| no_content());
        let pcf = start(|config| config.diameter.retry_pause = settings::Period::from_millis(5));
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let rx = async |session: &str, text: &str| ask(&cscf, "cscf.example.org", session, text).await;
        // Of the features of the AF and the PCEF the PCF has this one.
        let ccr = CCR_I.replace("Feature-List = 11", "Feature-List = 16777227");
        let begun = ask(&pgw, "pgw.example.org", "pgw;1;1", &ccr).await;
        assert!(begun.contains("Feature-List = 16777227"), "{begun}");

        const AAR: &str = "AAR\nRx-Request-Type = PCSCF_RESTORATION\nAuth-Session-State = NO_STATE_MAINTAINED\n\
             Supported-Features = { Vendor-Id = 10415 Feature-List-ID = 2 Feature-List = 1 }\n";
        const IMSI: &str = "Subscription-Id = { Subscription-Id-Type = END_USER_IMSI Subscription-Id-Data = \"001010000000001\" }";
        pgw.service().result.set(5012);
        let answer = rx("cscf;1;1", &format!("{AAR}Framed-IP-Address = 0x0a000001")).await;
        for line in [
            "Result-Code = DIAMETER_SUCCESS",
            "Auth-Session-State = NO_STATE_MAINTAINED",
            "Feature-List-ID = 2",
        ] {
            assert!(answer.contains(line), "no {line} in\n{answer}");
        }
        assert!(rx("cscf;1;1", STR).await.contains("DIAMETER_UNKNOWN_SESSION_ID"));
        let first = received(&pgw, 1).await;
        assert!(first.contains("PCSCF-Restoration-Indication = 0"), "{first}");
        assert!(!first.contains("Charging-Rule"), "{first}");
        // A PCEF that does not take it gets it again.
        pgw.service().result.set(2001);
        let again = received(&pgw, 2).await;
        assert!(again.contains("PCSCF-Restoration-Indication = 0"), "{again}");

        // Without an address the subscriber and the APN say whose session it is.
        let answer = rx("cscf;1;2", &format!("{AAR}{IMSI}\nCalled-Station-Id = \"ims\"")).await;
        assert!(answer.contains("DIAMETER_SUCCESS"), "{answer}");
        received(&pgw, 3).await;
        let answer = rx(
            "cscf;1;3",
            &format!("{AAR}{IMSI}\nCalled-Station-Id = \"internet\""),
        )
        .await;
        assert!(answer.contains("5065"), "{answer}");
        let answer = rx("cscf;1;4", &format!("{AAR}Called-Station-Id = \"ims\"")).await;
        assert!(answer.contains("DIAMETER_MISSING_AVP"), "{answer}");

        // Rx reaches the SMF of a session as well.
        let uri = format!("{}/smf", smf.root());
        pcf.session(&json!({"notificationUri": uri, "ipv4Address": "10.0.0.2"}))
            .await;
        let answer = rx("cscf;1;5", &format!("{AAR}Framed-IP-Address = 0x0a000002")).await;
        assert!(answer.contains("DIAMETER_SUCCESS"), "{answer}");
        let (_, body) = notification(&smf, 1).await;
        assert_eq!(body["smPolicyDecision"], json!({"pcscfRestIndication": true}));
        assert_eq!(pcf.running().count(pcf::Event::AfCreated), 0);
    });
}
