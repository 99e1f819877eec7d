//! Members of request bodies have the JSON types that the OpenAPI files declare, however deep; others are refused by name.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::openapi::OpenApi;

use crate::authorization::{APP_SESSIONS, call};
use crate::bdt::{POLICIES as BDT_POLICIES, offer, windows, wish};
use crate::policies::{AM as AM_POLICIES, UE as UE_POLICIES, association};
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

const AF: &str = "TS29514_Npcf_PolicyAuthorization.yaml";
const SM: &str = "TS29512_Npcf_SMPolicyControl.yaml";
const AM: &str = "TS29507_Npcf_AMPolicyControl.yaml";
const UE: &str = "TS29525_Npcf_UEPolicyControl.yaml";
const BDT: &str = "TS29554_Npcf_BDTPolicyControl.yaml";

/// A request whose body is of a data type.
struct Operation {
    method: Method,
    path: String,
    content_type: &'static str,
    data_type: (&'static str, &'static str),
    /// The member of the body that is of the data type; empty for the body itself.
    member: &'static str,
    /// A value that is accepted.
    good: Value,
}

async fn operations(pcf: &Pcf) -> Vec<Operation> {
    let json = |method: Method, path: String, data_type, member, good| Operation {
        content_type: match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        },
        method,
        path,
        data_type,
        member,
        good,
    };
    let post = |path: &str, data_type, good| json(Method::POST, path.to_owned(), data_type, "", good);
    let sm = pcf.session(&json!({})).await;
    let am = path_of(&pcf.post(AM_POLICIES, &association(&json!({}))).await);
    let ue = path_of(&pcf.post(UE_POLICIES, &association(&json!({}))).await);
    let bdt = path_of(&pcf.post(BDT_POLICIES, &wish(&json!({}))).await);
    let af_body = call("http://127.0.0.1:9", &json!({}));
    let af = path_of(&pcf.post(APP_SESSIONS, &af_body).await);
    let request = af_body["ascReqData"].clone();
    let events = request["evSubsc"].clone();
    vec![
        post(SM_POLICIES, (SM, "SmPolicyContextData"), context(&json!({}))),
        post(
            &format!("{sm}/update"),
            (SM, "SmPolicyUpdateContextData"),
            json!({}),
        ),
        post(&format!("{sm}/delete"), (SM, "SmPolicyDeleteData"), json!({})),
        post(
            AM_POLICIES,
            (AM, "PolicyAssociationRequest"),
            association(&json!({})),
        ),
        post(
            &format!("{am}/update"),
            (AM, "PolicyAssociationUpdateRequest"),
            json!({}),
        ),
        post(
            UE_POLICIES,
            (UE, "PolicyAssociationRequest"),
            association(&json!({})),
        ),
        post(
            &format!("{ue}/update"),
            (UE, "PolicyAssociationUpdateRequest"),
            json!({}),
        ),
        json(
            Method::POST,
            APP_SESSIONS.to_owned(),
            (AF, "AppSessionContextReqData"),
            "ascReqData",
            request,
        ),
        json(
            Method::PATCH,
            af.clone(),
            (AF, "AppSessionContextUpdateData"),
            "ascReqData",
            json!({}),
        ),
        post(
            &format!("{af}/delete"),
            (AF, "EventsSubscReqData"),
            events.clone(),
        ),
        json(
            Method::PUT,
            format!("{af}/events-subscription"),
            (AF, "EventsSubscReqData"),
            "",
            events,
        ),
        post(
            &format!("{APP_SESSIONS}/pcscf-restoration"),
            (AF, "PcscfRestorationRequestData"),
            json!({"ueIpv4": "10.0.0.1"}),
        ),
        post(BDT_POLICIES, (BDT, "BdtReqData"), wish(&json!({}))),
        json(Method::PATCH, bdt, (BDT, "PatchBdtPolicy"), "", json!({})),
    ]
}

/// A value of a wrong type is refused, and so is what lacks beside it: objects around it have nothing else.
const CAUSES: [&str; 3] = [
    "MANDATORY_IE_INCORRECT",
    "OPTIONAL_IE_INCORRECT",
    "MANDATORY_IE_MISSING",
];

#[test]
fn every_declared_member_has_its_type() {
    let Some(files) = OpenApi::find(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    local(async {
        let pcf = start(|config| offer(config, &json!({"windows": windows(&json!({}))})));
        let mut missed = Vec::new();
        for operation in operations(&pcf).await {
            let (file, name) = operation.data_type;
            let all = files.mistyped(file, name);
            assert!(!all.is_empty(), "{name}");
            for wrong in all {
                let mut body = operation.good.clone();
                for (member, value) in wrong.value.as_object().unwrap() {
                    body[member] = value.clone();
                }
                let mut pointer = wrong.pointer.clone();
                if !operation.member.is_empty() {
                    body = json!({operation.member: body});
                    pointer = format!("/{}{pointer}", operation.member);
                }
                let (method, path) = (operation.method.clone(), &operation.path);
                let got = pcf
                    .ask(method, path, operation.content_type, body.to_string())
                    .await;
                let params = got.json["invalidParams"].as_array().cloned().unwrap_or_default();
                let is_named = params.iter().any(|param| param["param"] == pointer.as_str());
                if got.status != StatusCode::BAD_REQUEST || !CAUSES.contains(&got.cause()) || !is_named {
                    missed.push(format!("{name} {pointer}: {} {}", got.status, got.cause()));
                }
            }
        }
        assert!(
            missed.is_empty(),
            "{} members:\n{}",
            missed.len(),
            missed.join("\n")
        );
    });
}

#[test]
fn a_member_of_a_wrong_type_is_named() {
    local(async {
        let pcf = start(|_| {});
        for (path, body) in [
            (SM_POLICIES, context(&json!({"traceReq": 7}))),
            (AM_POLICIES, association(&json!({"traceReq": 7}))),
            (
                SM_POLICIES,
                context(&json!({"traceReq": null, "userLocationInfo": {"nrLocation": {"tai": {"tac": 7}}}})),
            ),
            (UE_POLICIES, association(&json!({"userLoc": {"nrLocation": 7}}))),
        ] {
            let got = pcf.post(path, &body).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT"),
                "{body}"
            );
        }
        // What no release knows stays, beside what is judged.
        let location = json!({"nrLocation": {"tai": {"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "000001", "vendorExtra": 7},
            "ncgi": {"plmnId": {"mcc": "001", "mnc": "01"}, "nrCellId": "000000001"}}});
        let path = pcf.session(&json!({"userLocationInfo": location})).await;
        let kept = pcf.get(&path).await.json;
        assert_eq!(kept["context"]["userLocationInfo"], location);
        // `traceReq` may be null (TS 29.571): it ends the trace.
        let got = pcf
            .post(&format!("{path}/update"), &json!({"traceReq": null}))
            .await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
    });
}
