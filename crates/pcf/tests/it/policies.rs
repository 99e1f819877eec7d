//! AM and UE policies of AMFs.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{local, path_of, start, with};

pub const AM: &str = "/npcf-am-policy-control/v1/policies";
pub const UE: &str = "/npcf-ue-policy-control/v1/policies";

/// `PolicyAssociationRequest` with these further members; a null takes one away.
pub fn association(more: &Value) -> Value {
    let value = json!({
        "notificationUri": "http://127.0.0.1:9/amf/n1", "supi": "imsi-001010000000001", "gpsi": "msisdn-15551234567",
        "accessType": "3GPP_ACCESS", "servingPlmn": {"mcc": "001", "mnc": "01"}, "ratType": "NR",
        "guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "0000ff"}, "suppFeat": "0", "vendorExtra": [1, null]
    });
    with(value, more)
}

#[test]
fn an_am_policy_is_created_read_updated_and_deleted() {
    local(async {
        let pcf = start(|_| {});
        let created = pcf
            .post(AM, &association(&json!({"rfsp": 7, "suppFeat": "fff"})))
            .await;
        let path = path_of(&created);
        assert_eq!(
            (&created.json["rfsp"], &created.json["suppFeat"]),
            (&json!(7), &json!("11D"))
        );
        let read = pcf.get(&path).await;
        assert_eq!(read.json["request"]["vendorExtra"], json!([1, null]));
        assert_eq!(read.json["rfsp"], 7);

        let update = json!({"triggers": ["RFSP_CH"], "rfsp": 9});
        let updated = pcf.post(&format!("{path}/update"), &update).await;
        assert_eq!(
            (updated.status, &updated.json["rfsp"]),
            (StatusCode::OK, &json!(9))
        );
        assert_eq!(updated.json.get("triggers"), None, "unchanged");
        assert!(updated.json["resourceUri"].as_str().unwrap().ends_with(&path));

        // An association of one service is none of the other.
        let id = path.rsplit('/').next().unwrap();
        assert_eq!(pcf.get(&format!("{UE}/{id}")).await.status, StatusCode::NOT_FOUND);
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            assert_eq!(pcf.ask(Method::DELETE, &path, "", "").await.status, status);
        }
        let late = pcf.post(&format!("{path}/update"), &update).await;
        assert_eq!(late.status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_trigger_comes_with_its_data() {
    local(async {
        let pcf = start(|_| {});
        let place = json!({"nrLocation": {"tai": {"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "000001"},
            "ncgi": {"plmnId": {"mcc": "001", "mnc": "01"}, "nrCellId": "000000001"}}});
        let area = json!({"1": {"praId": "1", "presenceState": "IN_AREA"}});
        for service in [AM, UE] {
            let path = path_of(&pcf.post(service, &association(&json!({}))).await);
            for (trigger, member, data) in [("LOC_CH", "userLoc", &place), ("PRA_CH", "praStatuses", &area)] {
                let update = json!({"triggers": [trigger]});
                let refused = pcf.post(&format!("{path}/update"), &update).await;
                assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{trigger}");
                assert_eq!(refused.json["cause"], "ERROR_REQUEST_PARAMETERS");
                assert_eq!(refused.json["invalidParams"][0]["param"], "/triggers");
                let update = json!({"triggers": [trigger], member: data});
                let updated = pcf.post(&format!("{path}/update"), &update).await;
                assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
            }
        }
        let path = pcf.session(&json!({})).await;
        for trigger in ["PRA_CH", "SAREA_CH", "SCNN_CH", "UE_TZ_CH", "US_RE", "LOC_CH"] {
            let update = json!({"repPolicyCtrlReqTriggers": [trigger]});
            let refused = pcf.post(&format!("{path}/update"), &update).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{trigger}");
            assert_eq!(refused.json["cause"], "ERROR_TRIGGER_EVENT", "{trigger}");
        }
        let update = json!({"repPolicyCtrlReqTriggers": ["PRA_CH", "SAREA_CH"], "repPraInfos": area, "userLocationInfo": place});
        let updated = pcf.post(&format!("{path}/update"), &update).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
    });
}

#[test]
fn a_path_with_an_empty_segment_names_nothing() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        for wrong in [
            format!("{}/", crate::support::SM_POLICIES),
            format!("{path}/"),
            format!("{path}//update"),
            format!("{AM}/"),
            format!("{UE}//update"),
            format!("{}/", crate::authorization::APP_SESSIONS),
            format!("{}//delete", crate::authorization::APP_SESSIONS),
        ] {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                let got = pcf.ask(method, &wrong, "application/json", "{}").await;
                assert_eq!(got.status, StatusCode::NOT_FOUND, "{wrong}");
                assert_eq!(got.json["cause"], "RESOURCE_URI_STRUCTURE_NOT_FOUND", "{wrong}");
            }
        }
    });
}

#[test]
fn a_v_pcf_gets_the_ue_policy_in_octets_and_an_amf_does_not() {
    local(async {
        let pcf = start(|_| {});
        let at_amf = pcf.post(UE, &association(&json!({}))).await;
        assert_eq!(at_amf.status, StatusCode::CREATED);
        assert_eq!(at_amf.json.get("uePolicy"), None);
        assert_eq!(at_amf.json.get("urspRules"), None);
        let at_v_pcf = pcf.post(UE, &association(&json!({"guami": null}))).await;
        let path = path_of(&at_v_pcf);
        let policy = at_v_pcf.json["uePolicy"].as_str().unwrap();
        assert!(
            policy.starts_with("gAEA"),
            "PTI 80, MANAGE UE POLICY COMMAND: {policy}"
        );
        assert_eq!(pcf.get(&path).await.json["uePolicy"], policy);
        let update = json!({"triggers": ["UE_POLICY"], "uePolDelResult": "gAI="});
        let updated = pcf.post(&format!("{path}/update"), &update).await;
        assert_eq!(
            (updated.status, updated.json.get("uePolicy")),
            (StatusCode::OK, None)
        );
        assert_eq!(
            pcf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NO_CONTENT
        );
    });
}

#[test]
fn wrong_requests_are_refused() {
    local(async {
        let pcf = start(|_| {});
        for (path, more, cause, pointer) in [
            (AM, json!({"supi": null}), "MANDATORY_IE_MISSING", "/supi"),
            (AM, json!({"suppFeat": null}), "MANDATORY_IE_MISSING", "/suppFeat"),
            (
                AM,
                json!({"notificationUri": "x"}),
                "MANDATORY_IE_INCORRECT",
                "/notificationUri",
            ),
            (AM, json!({"rfsp": 257}), "OPTIONAL_IE_INCORRECT", "/rfsp"),
            (UE, json!({"suppFeat": null}), "MANDATORY_IE_MISSING", "/suppFeat"),
            (UE, json!({"uePolReq": "%"}), "OPTIONAL_IE_INCORRECT", "/uePolReq"),
            (
                UE,
                json!({"guami": {"amfId": "0000ff"}}),
                "MANDATORY_IE_MISSING",
                "/guami/plmnId",
            ),
        ] {
            let refused = pcf.post(path, &association(&more)).await;
            assert_eq!(
                (refused.status, refused.cause()),
                (StatusCode::BAD_REQUEST, cause),
                "{more}"
            );
            assert_eq!(refused.json["invalidParams"][0]["param"], pointer, "{more}");
        }
        for (method, path, allowed) in [
            (Method::GET, AM.to_owned(), "POST"),
            (Method::PUT, format!("{UE}/7"), "DELETE, GET"),
            (Method::GET, format!("{UE}/7/update"), "POST"),
        ] {
            let refused = pcf.ask(method, &path, "", "").await;
            assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert_eq!(refused.header("allow"), allowed, "{path}");
        }
    });
}
