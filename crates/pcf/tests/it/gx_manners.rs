//! What PCEFs and AFs may leave out and what they may not, on Gx and Rx.

use std::time::Duration;

use diameter::endpoint::{Endpoint, SendOptions, To};
use diameter::proto::known::{application, command};
use diameter::proto::{AvpFlags, AvpKey, Dictionary, MessageBuilder, known, text};

use crate::diameter::{AAR, CCR_I, CCR_T, Peer, ask, peer, received};
use crate::support::{local, start};

const SUCCESS: &str = "Result-Code = DIAMETER_SUCCESS";

fn without(text: &str, start: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(start)).collect();
    lines.join("\n")
}

fn is_experimental(answer: &str, code: u32) -> bool {
    answer.contains(&format!("Experimental-Result-Code = {code}"))
}

#[test]
fn a_session_without_a_usable_subscriber_is_refused_unless_it_is_for_an_emergency() {
    local(async {
        let pcf = start(|_| {});
        let pgw = peer("pgw.example.org", &pcf).await;
        let mut number = 0;
        let mut begin = async |request: &str| {
            number += 1;
            ask(&pgw, "pgw.example.org", &format!("pgw;1;{number}"), request).await
        };
        let equipment = "User-Equipment-Info = { User-Equipment-Info-Type = IMEISV User-Equipment-Info-Value = \"3566090012345601\" }";
        let anonymous = format!("{}\n{equipment}", without(CCR_I, "Subscription-Id"));
        for wrong in ["", "   ", "abc", "12", "1234567890123456", "00101\u{e9}0000000"] {
            let request = CCR_I.replace("001010000000001", wrong);
            let answer = begin(&request).await;
            assert!(is_experimental(&answer, 5140), "{wrong:?}\n{answer}");
        }
        assert!(is_experimental(&begin(&anonymous).await, 5140));
        // TS 23.203 §6.1.10: local policy decides for an emergency.
        for apn in ["sos", "SOS.mnc001.mcc001.gprs"] {
            let request = anonymous.replace(
                "Called-Station-Id = \"ims\"",
                &format!("Called-Station-Id = \"{apn}\""),
            );
            let answer = begin(&request).await;
            assert!(answer.contains(SUCCESS), "{answer}");
            assert!(answer.contains("Default-EPS-Bearer-QoS"), "{answer}");
        }
        let cscf = peer("cscf.example.org", &pcf).await;
        let aar = AAR.replace("Called-Station-Id = \"ims\"", "Called-Station-Id = \"sos\"");
        // TS 29.214 §5.5.3: UNAUTHORIZED_NON_EMERGENCY_SESSION.
        let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", &aar).await;
        assert!(is_experimental(&answer, 5066), "{answer}");
        for (number, urn) in ["urn:service:sos", "SOS.fire"].into_iter().enumerate() {
            let aar = format!("{aar}\nService-URN = \"{urn}\"");
            let answer = ask(&cscf, "cscf.example.org", &format!("cscf;2;{number}"), &aar).await;
            assert!(answer.contains(SUCCESS), "{answer}");
        }
    });
}

#[test]
fn texts_that_cannot_be_are_refused_and_features_that_cannot_be_read_are_none() {
    local(async {
        let pcf = start(|_| {});
        let pgw = peer("pgw.example.org", &pcf).await;
        let begin = async |session: &str, request: &str| ask(&pgw, "pgw.example.org", session, request).await;
        let invalid = "Result-Code = DIAMETER_INVALID_AVP_VALUE";
        for apn in ["a b", &"x".repeat(101), "a\u{7f}b"] {
            let request = CCR_I.replace(
                "Called-Station-Id = \"ims\"",
                &format!("Called-Station-Id = \"{apn}\""),
            );
            let answer = begin("pgw;1;1", &request).await;
            assert!(
                answer.contains(invalid) && answer.contains("Failed-AVP"),
                "{answer}"
            );
        }
        let answer = begin(&"s".repeat(1_025), CCR_I).await;
        assert!(answer.contains(invalid), "{answer}");

        let features = "Supported-Features";
        let answer = begin("pgw;1;2", &without(CCR_I, features)).await;
        assert!(answer.contains(SUCCESS) && !answer.contains(features), "{answer}");
        let answer = begin("pgw;1;3", &CCR_I.replace("Vendor-Id = 10415 Feature", "Feature")).await;
        assert!(answer.contains(SUCCESS) && !answer.contains(features), "{answer}");
        let answer = begin("pgw;1;4", CCR_I).await;
        assert!(answer.contains("Feature-List = 11"), "{answer}");
    });
}

#[test]
fn an_address_that_is_released_is_the_session_s_no_more() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        gx(&format!(
            "{CCR_I}\nFramed-IPv6-Prefix = 0x004020010db8000100020000000000000000"
        ))
        .await;
        let release = |number: u32, address: &str| {
            format!(
                "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = {number}\n\
                 Event-Trigger = UE_IP_ADDRESS_RELEASE\nFramed-IP-Address = {address}"
            )
        };
        let answer = gx(&release(1, "0x0a000009")).await;
        assert!(is_experimental(&answer, 5141), "not its address\n{answer}");
        assert!(gx(&release(2, "0x0a000001")).await.contains(SUCCESS));
        let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        assert!(is_experimental(&answer, 5065), "{answer}");
        let allocate = release(3, "0x0a000001").replace("RELEASE", "ALLOCATE");
        assert!(gx(&allocate).await.contains(SUCCESS));
        let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        assert!(answer.contains(SUCCESS), "{answer}");
    });
}

#[test]
fn a_trigger_that_contradicts_the_session_is_refused_once_it_is_new() {
    local(async {
        let pcf = start(|_| {});
        let pgw = peer("pgw.example.org", &pcf).await;
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        gx(CCR_I).await;
        let rat = |number: u32, rat: &str| {
            format!(
                "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = {number}\nEvent-Trigger = RAT_CHANGE\nRAT-Type = {rat}"
            )
        };
        assert!(is_experimental(&gx(&rat(1, "EUTRAN")).await, 5141));
        assert!(gx(&rat(2, "UTRAN")).await.contains(SUCCESS));
        // Sent again: the answer was lost.
        assert!(gx(&rat(2, "UTRAN")).await.contains(SUCCESS));
    });
}

#[test]
fn a_request_of_a_ue_for_resources_without_a_rule_is_refused() {
    local(async {
        let pcf = start(|_| {});
        let pgw = peer("pgw.example.org", &pcf).await;
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        gx(CCR_I).await;
        let request = |number: u32| {
            format!(
                "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = {number}\n\
                 Event-Trigger = RESOURCE_MODIFICATION_REQUEST\nPacket-Filter-Operation = ADDITION\n\
                 Packet-Filter-Information = {{ Packet-Filter-Identifier = 0x01 \
                 Packet-Filter-Content = \"permit out 17 from any to any 80\" Flow-Direction = DOWNLINK }}"
            )
        };
        // The built-in project grants none: DIAMETER_ERROR_TRAFFIC_MAPPING_INFO_REJECTED.
        let answer = gx(&request(1)).await;
        assert!(is_experimental(&answer, 5144), "{answer}");
        let answer = gx("CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 2").await;
        assert!(answer.contains(SUCCESS), "{answer}");
    });
}

#[test]
fn a_pcef_that_has_restarted_leaves_no_session_behind() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, other) = (
            peer("pgw.example.org", &pcf).await,
            peer("other.example.org", &pcf).await,
        );
        let cscf = peer("cscf.example.org", &pcf).await;
        let request = |state: u32, address: &str| {
            format!("{CCR_I}\nOrigin-State-Id = {state}").replace("0x0a000001", address)
        };
        ask(&pgw, "pgw.example.org", "pgw;1;1", &request(1_000, "0x0a000001")).await;
        ask(&pgw, "pgw.example.org", "pgw;1;2", &request(1_000, "0x0a000002")).await;
        ask(
            &other,
            "other.example.org",
            "other;1;1",
            &request(1_000, "0x0a000003"),
        )
        .await;
        ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        ask(&pgw, "pgw.example.org", "pgw;2;1", &request(2_000, "0x0a000002")).await;
        while pcf.running().count(pcf::Event::GxLost) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(received(&cscf, 1).await.starts_with("Abort-Session-Request"));
        for (peer, host, session, is_left) in [
            (&pgw, "pgw.example.org", "pgw;1;1", false),
            (&pgw, "pgw.example.org", "pgw;1;2", false),
            (&pgw, "pgw.example.org", "pgw;2;1", true),
            (&other, "other.example.org", "other;1;1", true),
        ] {
            let answer = ask(peer, host, session, CCR_T).await;
            assert_eq!(answer.contains(SUCCESS), is_left, "{session}\n{answer}");
        }
    });
}

/// Sends a request of this text with more AVPs; the answer as text.
async fn ask_with(peer: &Endpoint<Peer>, request: &str, fill: impl Fn(&mut MessageBuilder)) -> String {
    let message = text::parse(request, Dictionary::standard()).unwrap();
    let mut builder = MessageBuilder::request(message.command(), message.application());
    builder.append_encoded(message.avps().remaining());
    fill(&mut builder);
    let options = SendOptions {
        deadline: Duration::from_secs(60),
        failover: false,
    };
    let to = To::Peer("pcf.example.org");
    let answer = peer
        .request(to, builder.finish().unwrap(), options)
        .await
        .unwrap();
    text::print(&answer, Dictionary::standard()).to_string()
}

#[test]
fn what_is_not_understood_or_missing_is_refused_with_its_avp() {
    local(async {
        let pcf = start(|_| {});
        let cscf = peer("cscf.example.org", &pcf).await;
        let head = format!(
            "AAR app={} flags=RP {{\nSession-Id = \"cscf;1;1\"\nOrigin-Host = \"cscf.example.org\"\n\
             Origin-Realm = \"example.org\"\nDestination-Realm = \"example.org\"\nFramed-IP-Address = 0x0a000001\n}}",
            application::RX
        );
        let unknown = AvpKey {
            vendor: 99_999,
            code: 1,
        };
        let with_application = |builder: &mut MessageBuilder| {
            builder.put(known::AUTH_APPLICATION_ID, application::RX);
        };
        let answer = ask_with(&cscf, &head, |_| {}).await;
        assert!(
            answer.contains("DIAMETER_MISSING_AVP") && answer.contains("Failed-AVP"),
            "{answer}"
        );
        let answer = ask_with(&cscf, &head, |builder| {
            with_application(builder);
            with_application(builder);
        });
        assert!(answer.await.contains("DIAMETER_AVP_OCCURS_TOO_MANY_TIMES"));
        for (flags, is_refused) in [(AvpFlags::MANDATORY, true), (AvpFlags::default(), false)] {
            for in_group in [false, true] {
                let answer = ask_with(&cscf, &head, |builder| {
                    with_application(builder);
                    if in_group {
                        builder.group(known::MEDIA_COMPONENT_DESCRIPTION, |group| {
                            group
                                .put(known::MEDIA_COMPONENT_NUMBER, 1)
                                .put_raw(unknown, flags, b"x");
                        });
                    } else {
                        builder.put_raw(unknown, flags, b"x");
                    }
                });
                let answer = answer.await;
                let refused = answer.contains("DIAMETER_AVP_UNSUPPORTED") && answer.contains("Failed-AVP");
                assert_eq!(refused, is_refused, "{answer}");
                assert_eq!(is_experimental(&answer, 5065), !is_refused, "{answer}");
            }
        }
        let end = head.replacen("AAR", "STR", 1);
        let answer = ask_with(&cscf, &end, with_application).await;
        assert!(answer.contains("DIAMETER_MISSING_AVP"), "{answer}");
        assert!(
            !answer.contains("Auth-Application-Id"),
            "an STA has none\n{answer}"
        );
        assert_eq!(
            text::parse(&end, Dictionary::standard()).unwrap().command(),
            command::SESSION_TERMINATION
        );
    });
}
