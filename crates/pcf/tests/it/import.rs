//! Policy associations from a file, before the PCF runs.

use http::StatusCode;
use pcf::import::{ImportError, import};
use serde_json::json;

use crate::support::{SM_POLICIES, config, context, local, start};

const ID: &str = "0b0c5f5e-7a0f-4e86-9f0a-1c2d3e4f5a6b";

#[test]
fn imported_sessions_are_updated_and_deleted_under_their_identities() {
    let directory = tempfile::tempdir().unwrap();
    let store = config(directory.path()).store;
    let rule = json!({"pccRuleId": "moved", "precedence": 7});
    let known = json!({"associationId": ID, "kind": "sm", "context": context(&json!({})),
        "policy": {"pccRules": {"moved": rule}}});
    let others = (2..600).map(|number| {
        let own = json!({"supi": format!("imsi-00101{number:010}")});
        json!({"kind": "sm", "context": context(&own)}).to_string()
    });
    let lines: Vec<String> = std::iter::once(known.to_string()).chain(others).collect();
    local(async {
        assert_eq!(import(&store, lines.join("\n").as_bytes()).await.unwrap(), 599);
        // An association of the same identity is replaced.
        assert_eq!(import(&store, lines[0].as_bytes()).await.unwrap(), 1);
        let mut pcf = start(|config| config.store = store.clone());
        let path = format!("{SM_POLICIES}/{ID}");
        let got = pcf.get(&path).await;
        assert_eq!(
            (got.status, &got.json["policy"]["pccRules"]["moved"]),
            (StatusCode::OK, &rule)
        );
        assert_eq!(
            got.json["context"]["vendorExtra"],
            context(&json!({}))["vendorExtra"]
        );
        // The PCF takes over: an update answers with the difference to what the SMF has.
        let updated = pcf
            .post(&format!("{path}/update"), &json!({"ratType": "EUTRA"}))
            .await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        assert_eq!(updated.json["pccRules"]["moved"], json!(null));
        let deleted = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        pcf.stop();
    });
}

#[test]
fn the_first_line_that_is_no_association_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = config(directory.path()).store;
    let good = json!({"kind": "sm", "context": context(&json!({}))}).to_string();
    for (bad, reason) in [
        ("[]".to_owned(), "expected an object"),
        (
            json!({"kind": "gx", "context": {}}).to_string(),
            "expected sm, am or ue",
        ),
        (
            json!({"kind": "am", "context": {"supi": "imsi-1"}}).to_string(),
            "context.notificationUri is missing",
        ),
        (
            json!({"associationId": 5, "kind": "sm", "context": {}}).to_string(),
            "expected a UUID",
        ),
    ] {
        let lines = format!("{good}\n{bad}\n");
        local(async {
            match import(&store, lines.as_bytes()).await {
                Err(ImportError::Line {
                    line: 2,
                    reason: said,
                }) => assert!(said.contains(reason), "{said}"),
                other => panic!("{bad}: {other:?}"),
            }
        });
    }
}
