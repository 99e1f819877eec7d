//! Which subscribers are served, by the sources that know them.

use http::StatusCode;
use pcf::config::{UnknownUser, ValidateUser};
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::Server;

use crate::diameter::{CCR_I, ask, peer};
use crate::support::{Pcf, SM_POLICIES, context, local, start};

const AM: &str = "/npcf-am-policy-control/v1/policies";
const UE: &str = "/npcf-ue-policy-control/v1/policies";

/// A UDR that knows no subscriber.
fn stranger() -> Server {
    Server::start(|_| Problem::of_status(StatusCode::NOT_FOUND).into_response())
}

fn with(udr: &Server, validate: ValidateUser, unknown: UnknownUser) -> Pcf {
    start(|config| {
        config.pds.udr.enabled = true;
        config.pds.udr.api_roots = vec![udr.root()];
        config.pds.udr.unknown_user = unknown;
        config.pds.validate_user = validate;
        config.pds.deadline = settings::Period::from_secs(20);
    })
}

fn of_amf() -> Value {
    json!({"supi": "imsi-001010000000001", "notificationUri": "http://127.0.0.1:9/amf", "suppFeat": "0"})
}

#[test]
fn a_user_whom_no_source_knows_is_refused_over_every_interface() {
    local(async {
        let udr = stranger();
        let pcf = with(&udr, ValidateUser::Required, UnknownUser::Default);
        for (path, body) in [(SM_POLICIES, context(&json!({}))), (AM, of_amf()), (UE, of_amf())] {
            let got = pcf.post(path, &body).await;
            assert_eq!(
                (got.status, &got.json["cause"]),
                (StatusCode::BAD_REQUEST, &json!("USER_UNKNOWN")),
                "{path}"
            );
        }
        let pcef = peer("pcef.example", &pcf).await;
        let answer = ask(&pcef, "pcef.example", "pcef;1", CCR_I).await;
        assert!(
            answer.contains("5030") || answer.contains("USER_UNKNOWN"),
            "{answer}"
        );
    });
}

#[test]
fn without_validation_a_user_whom_no_source_knows_is_served() {
    local(async {
        let udr = stranger();
        let pcf = with(&udr, ValidateUser::Off, UnknownUser::Reject);
        for (path, body) in [(SM_POLICIES, context(&json!({}))), (AM, of_amf()), (UE, of_amf())] {
            let got = pcf.post(path, &body).await;
            assert_eq!(got.status, StatusCode::CREATED, "{path}: {}", got.json);
        }
        let pcef = peer("pcef.example", &pcf).await;
        let answer = ask(&pcef, "pcef.example", "pcef;1", CCR_I).await;
        assert!(!answer.contains("5030"), "{answer}");
    });
}

#[test]
fn a_source_that_does_not_answer_leaves_its_fallback_to_decide() {
    local(async {
        let udr = Server::start(|_| Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response());
        let pcf = with(&udr, ValidateUser::Required, UnknownUser::Reject);
        let got = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
    });
}

#[test]
fn without_a_source_every_user_is_valid() {
    local(async {
        let pcf = start(|config| config.pds.validate_user = ValidateUser::Required);
        pcf.session(&json!({})).await;
    });
}

#[test]
fn a_user_without_policy_data_is_known() {
    local(async {
        let udr =
            Server::start(|_| Problem::with_cause(StatusCode::NOT_FOUND, "DATA_NOT_FOUND").into_response());
        let pcf = with(&udr, ValidateUser::Required, UnknownUser::Reject);
        for (path, body) in [(SM_POLICIES, context(&json!({}))), (AM, of_amf()), (UE, of_amf())] {
            let got = pcf.post(path, &body).await;
            assert_eq!(got.status, StatusCode::CREATED, "{path}: {}", got.json);
        }
    });
}
