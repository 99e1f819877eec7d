//! Associations of PDU sessions, from their creation to their deletion.

use http::StatusCode;
use serde_json::json;

use crate::support::{SM_POLICIES, context, local, path_of, start};

#[test]
fn a_session_is_created_read_updated_and_deleted() {
    local(async {
        let pcf = start(|_| {});
        let created = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        let path = path_of(&created);
        assert!(
            created
                .header("location")
                .starts_with(&format!("{}{SM_POLICIES}/", pcf.origin)),
            "{}",
            created.header("location")
        );
        let rule = &created.json["sessRules"]["default"];
        assert_eq!(
            rule["authSessAmbr"],
            json!({"uplink": "300 Mbps", "downlink": "1 Gbps"})
        );
        assert_eq!(rule["authDefQos"]["5qi"], 8);
        // Of 16 features, those that the PCF has as well.
        assert_eq!(created.json["suppFeat"], "897C");

        let read = pcf.get(&path).await;
        assert_eq!(read.status, StatusCode::OK);
        assert_eq!(
            read.json["context"]["vendorExtra"],
            json!({"kept": [1, 2.50, null]})
        );
        assert_eq!(read.json["policy"]["sessRules"], created.json["sessRules"]);

        let update = json!({"repPolicyCtrlReqTriggers": ["SE_AMBR_CH"],
            "subsSessAmbr": {"uplink": "1 Mbps", "downlink": "2 Mbps"}, "vendorOther": 1});
        let updated = pcf.post(&format!("{path}/update"), &update).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        assert_eq!(
            updated.json["sessRules"]["default"]["authSessAmbr"]["downlink"],
            "2 Mbps"
        );
        let members: Vec<&String> = updated.json.as_object().unwrap().keys().collect();
        assert_eq!(members, ["sessRules"], "what has not changed is not repeated");

        let same = json!({"repPolicyCtrlReqTriggers": ["RAT_TY_CH"], "ratType": "EUTRA"});
        let updated = pcf.post(&format!("{path}/update"), &same).await;
        assert_eq!((updated.status, updated.json), (StatusCode::OK, json!({})));
        let read = pcf.get(&path).await;
        let context = &read.json["context"];
        assert_eq!(
            (&context["ratType"], &context["vendorOther"]),
            (&json!("EUTRA"), &json!(1))
        );
        assert_eq!(context.get("repPolicyCtrlReqTriggers"), None);

        let delete = format!("{path}/delete");
        let deleted = pcf.post(&delete, &json!({"pduSessRelCause": "RULE_ERROR"})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        for (path, body) in [
            (&delete, json!({})),
            (&format!("{path}/update"), json!({})),
            (
                &format!("{SM_POLICIES}/{}/update", "00000000-0000-4000-8000-000000000000"),
                json!({}),
            ),
        ] {
            let gone = pcf.post(path, &body).await;
            assert_eq!(
                (gone.status, gone.cause()),
                (StatusCode::NOT_FOUND, "CONTEXT_NOT_FOUND"),
                "{path}"
            );
        }
        assert_eq!(pcf.get(&path).await.status, StatusCode::NOT_FOUND);
        let counted = |event| pcf.running().count(event);
        assert_eq!(counted(pcf::Event::SmCreated), 1);
        assert_eq!(counted(pcf::Event::SmUpdated), 2);
        assert_eq!(counted(pcf::Event::SmDeleted), 1);
    });
}

#[test]
fn a_consumer_without_features_and_subscription_gets_a_sensible_session() {
    local(async {
        let pcf = start(|_| {});
        let bare = context(
            &json!({"suppFeat": null, "subsSessAmbr": null, "subsDefQos": null, "gpsi": null,
            "ipv4Address": null, "ipv6AddressPrefix": null, "dnn": "ims"}),
        );
        let created = pcf.post(SM_POLICIES, &bare).await;
        assert_eq!(created.status, StatusCode::CREATED);
        assert_eq!(created.json.get("suppFeat"), None);
        let rule = &created.json["sessRules"]["default"];
        assert_eq!(rule["authDefQos"]["5qi"], 5, "IMS signalling");
        assert!(rule["authSessAmbr"]["uplink"].is_string());
        assert!(rule["authDefQos"]["arp"]["priorityLevel"].is_u64());
        // SMFs make a second QoS flow of a rule that matches all traffic, with an ARP that they require.
        assert_eq!(
            (created.json.get("pccRules"), created.json.get("qosDecs")),
            (None, None)
        );
    });
}

#[test]
fn sessions_survive_a_restart_and_are_found_by_their_addresses() {
    local(async {
        let mut pcf = start(|_| {});
        let path = pcf.session(&json!({"ipDomain": "a"})).await;
        let update = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1",
            "ipv4Address": "10.0.0.2", "addIpv6AddrPrefixes": "2001:db8:7::/64"});
        pcf.post(&format!("{path}/update"), &update).await;
        pcf.stop();
        let config = crate::support::config(pcf.directory.path());
        let running = pcf::start(config).unwrap();
        let repository = running.repository();
        let id = path.rsplit('/').next().unwrap();
        for (text, domain, found) in [
            ("10.0.0.2", Some("a"), 1),
            ("10.0.0.2", None, 1),
            ("10.0.0.2", Some("b"), 0),
            ("10.0.0.1", None, 0),
            ("2001:db8:1:2::77", None, 1),
            ("2001:db8:7::1", None, 1),
            ("2001:db8:8::1", None, 0),
        ] {
            let address = pcf::association::address::UeAddress::parse(text).unwrap();
            let held = repository.at(address, domain).await.unwrap();
            assert_eq!(held.len(), found, "{text} {domain:?}");
            assert!(held.iter().all(|one| one.record.id.to_string() == id));
        }
        assert_eq!(repository.of_supi("imsi-001010000000001").await.unwrap().len(), 1);
        assert_eq!(repository.of_gpsi("msisdn-15551234567").await.unwrap().len(), 1);
        running.stop().unwrap();
    });
}
