//! Bodies that are nested deep: what the PCF takes it can read again, and a record that it cannot read harms itself alone.

use http::{Method, StatusCode};
use pcf::Event;
use pcf::association::{Association, AssociationId, Kind};
use serde_json::{Value, json};
use settings::Period;
use store::{Batch, Condition};
use testpeer::page;
use testpeer::sbi::Server;

use crate::authorization::{APP_SESSIONS, call};
use crate::pages::admin;
use crate::policies::{AM, UE, association};
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

/// Lists in one another.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn what_is_nested_too_deep_is_refused_and_the_rest_can_be_read() {
    local(async {
        let pcf = start(|_| {});
        let bodies = |levels: usize| {
            let x = nested(levels);
            [
                (SM_POLICIES.to_owned(), context(&json!({"x": x}))),
                (AM.to_owned(), association(&json!({"x": x}))),
                (UE.to_owned(), association(&json!({"x": x}))),
            ]
        };
        for levels in [64, 100, 122, 123, 124, 125, 126] {
            for (path, body) in bodies(levels) {
                let refused = pcf.post(&path, &body).await;
                assert_eq!(
                    (refused.status, refused.cause()),
                    (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT"),
                    "{path} {levels}"
                );
            }
        }
        for (path, body) in bodies(63) {
            let path = path_of(&pcf.post(&path, &body).await);
            assert_eq!(pcf.get(&path).await.status, StatusCode::OK);
            let (update, delete) = (format!("{path}/update"), format!("{path}/delete"));
            for levels in [64, 126] {
                let refused = pcf.post(&update, &json!({"y": nested(levels)})).await;
                assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path} {levels}");
            }
            let updated = pcf.post(&update, &json!({"y": nested(63)})).await;
            assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
            assert_eq!(pcf.get(&path).await.status, StatusCode::OK);
            let deleted = match path.starts_with(SM_POLICIES) {
                true => pcf.post(&delete, &json!({})).await,
                false => pcf.ask(Method::DELETE, &path, "", "").await,
            };
            assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        }
    });
}

#[test]
fn an_af_does_not_make_the_session_of_a_ue_unreadable() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        for levels in [63, 100, 120, 122, 123, 124, 125] {
            let refused = pcf
                .post(
                    APP_SESSIONS,
                    &call("http://127.0.0.1:9", &json!({"x": nested(levels)})),
                )
                .await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{levels}");
        }
        let made = pcf
            .post(
                APP_SESSIONS,
                &call("http://127.0.0.1:9", &json!({"x": nested(62)})),
            )
            .await;
        let session = path_of(&made);
        let patch = json!({"ascReqData": {"y": nested(62)}}).to_string();
        let patched = pcf
            .ask(Method::PATCH, &session, "application/merge-patch+json", patch)
            .await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.json);
        for (path, body) in [
            (format!("{path}/update"), json!({})),
            (format!("{path}/delete"), json!({})),
        ] {
            let got = pcf.post(&path, &body).await;
            assert!(got.status.is_success(), "{path}: {}", got.json);
        }
    });
}

async fn show(pcf: &Pcf, path: &str) -> (u16, String) {
    page(pcf.running().handle().routes(), path).await
}

/// Writes an association as no request makes one: nested deeper than its reader reads.
async fn poison(pcf: &Pcf, kind: Kind, context: Value) -> AssociationId {
    let mut association = Association::new(kind, context);
    association.context["x"] = nested(126);
    write(pcf, &association).await
}

async fn write(pcf: &Pcf, association: &Association) -> AssociationId {
    let repository = pcf.running().repository();
    let mut batch = Batch::default();
    batch.put(repository.associations(), association, Condition::Absent);
    repository.store().commit(batch).await.unwrap();
    association.id
}

#[test]
fn a_record_that_cannot_be_read_harms_itself_alone_and_is_deleted_by_its_key() {
    local(async {
        let pcf = start(|_| {});
        let kept = pcf.session(&json!({})).await;
        let sm = poison(&pcf, Kind::Sm, context(&json!({"pduSessionId": 9}))).await;
        let ue = poison(&pcf, Kind::Ue, association(&json!({}))).await;
        // An AF finds the session beside it, and lists go on.
        let made = pcf
            .post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let id = kept.rsplit('/').next().unwrap();
        for page in [
            "sessions",
            "find/10.0.0.1",
            "find/imsi-001010000000001",
            "explain/10.0.0.1",
        ] {
            let (status, text) = show(&pcf, &format!("/pcf/{page}")).await;
            assert!(status == 200 && text.contains(id), "{page}: {status} {text}");
        }
        let (_, listed) = show(&pcf, "/pcf/unreadable").await;
        for id in [sm, ue] {
            assert!(
                listed.contains(&id.to_string()) && listed.contains("recursion"),
                "{listed}"
            );
        }
        let alarms = pcf.running().handle().alarms();
        let is_alarmed = || alarms.active().iter().any(|alarm| alarm.number == 10_563);
        assert!(is_alarmed());

        assert_eq!(
            pcf.get(&format!("{SM_POLICIES}/{sm}")).await.status,
            StatusCode::INTERNAL_SERVER_ERROR
        );
        let deleted = pcf.post(&format!("{SM_POLICIES}/{sm}/delete"), &json!({})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert_eq!(
            pcf.get(&format!("{SM_POLICIES}/{sm}")).await.status,
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            admin(&pcf, "DELETE", &format!("/pcf/sessions/{ue}"), "").await,
            200
        );
        let (_, listed) = show(&pcf, "/pcf/unreadable").await;
        assert_eq!(listed.trim(), "[]");
        assert!(!is_alarmed());
    });
}

#[test]
fn the_audit_goes_on_beside_a_record_that_cannot_be_read() {
    local(async {
        let gone = Server::start(|_| {
            sbi::problem::Problem::with_cause(StatusCode::NOT_FOUND, "CONTEXT_NOT_FOUND").into_response()
        });
        let root = gone.root();
        let pcf = start(|config| {
            config.audit.walk = store::AuditConfig {
                enabled: true,
                older_than: Period::from_millis(1),
                rate: 10_000,
                pause: Period::from_millis(10),
            };
            config.audit.timeout = Period::from_secs(60);
        });
        for number in 0..3 {
            poison(&pcf, Kind::Sm, context(&json!({"pduSessionId": number}))).await;
        }
        for number in 0..3 {
            let more = json!({"notificationUri": format!("{root}/n"), "pduSessionId": 100 + number,
                "ipv4Address": format!("10.0.1.{number}")});
            pcf.session(&more).await;
        }
        testpeer::until("the audit removes what is lost", async || {
            pcf.running().count(Event::AuditUnknown) >= 3
        })
        .await;
    });
}

#[test]
fn ue_policies_of_before_are_taken_up_beside_one_that_cannot_be_read() {
    local(async {
        let amf = Server::start(|_| testpeer::sbi::no_content());
        let root = amf.root();
        let pcf = start(|config| {
            config.ue_policy.amf_api_root = Some(root);
            config.ue_policy.t3501 = Period::from_millis(20);
            config.ue_policy.timeout = Period::from_millis(20);
        });
        let mut left = Association::new(Kind::Ue, association(&json!({})));
        let pending = json!({"progress": "pending", "pti": 128, "content": "0", "attempts": 0, "due": 0});
        left.rooms.insert("uePolicy".to_owned(), pending);
        let mut poisoned = left.clone();
        poisoned.id = AssociationId::random();
        poisoned.context["x"] = nested(126);
        write(&pcf, &poisoned).await;
        write(&pcf, &left).await;
        testpeer::until("the delivery is taken up", async || {
            pcf.running().count(Event::UePolicyResumed) >= 1
        })
        .await;
    });
}
