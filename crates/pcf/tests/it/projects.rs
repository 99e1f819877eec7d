//! Policy projects of the operator: compiled at the start and at a reload, and what happens when an evaluation fails.

use std::path::Path;

use http::StatusCode;
use serde_json::{Value, json};
use testpeer::page;

use crate::support::{Pcf, SM_POLICIES, config, context, local, start};

fn write(folder: &Path, blocks: &str) {
    let text = format!("name: test\nservice: sm\nblocks:\n{blocks}\n");
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

fn with_project(folder: &Path) -> Pcf {
    start(|config| config.policy.sm = Some(folder.to_owned()))
}

#[test]
fn a_mistake_keeps_the_pcf_from_starting_and_a_reload_from_changing_anything() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "  - block: odd\n    sessionRule: {nonsense: 1}");
        let mut wanted = config(folder.path());
        wanted.policy.sm = Some(folder.path().to_owned());
        let reason = pcf::start(wanted.clone()).err().unwrap().to_string();
        assert!(
            reason.contains("policy.sm") && reason.contains("project.yaml") && reason.contains("blocks[0]"),
            "{reason}"
        );

        write(
            folder.path(),
            "  - block: one\n    sessionRule: {sessRuleId: one}\n",
        );
        let pcf = with_project(folder.path());
        let rules = async || pcf.post(SM_POLICIES, &context(&json!({}))).await.json["sessRules"].clone();
        assert_eq!(rules().await, json!({"one": {"sessRuleId": "one"}}));
        write(folder.path(), "  - block: odd\n    nonsense: 1");
        let mut wanted = config(pcf.directory.path());
        wanted.policy.sm = Some(folder.path().to_owned());
        let reason = pcf.running().reload(&wanted).unwrap_err();
        assert!(reason.contains("project.yaml"), "{reason}");
        assert_eq!(rules().await, json!({"one": {"sessRuleId": "one"}}));
        write(
            folder.path(),
            "  - block: two\n    sessionRule: {sessRuleId: two}\n",
        );
        pcf.running().reload(&wanted).unwrap();
        assert_eq!(rules().await, json!({"two": {"sessRuleId": "two"}}));

        // Files that have changed under the names they had, without a change of settings.
        assert_eq!(pcf.running().reread(), Ok(false));
        write(
            folder.path(),
            "  - block: three\n    sessionRule: {sessRuleId: three}\n",
        );
        assert_eq!(pcf.running().reread(), Ok(true));
        assert_eq!(rules().await, json!({"three": {"sessRuleId": "three"}}));
        write(folder.path(), "  - block: odd\n    nonsense: 1");
        assert!(pcf.running().reread().is_err());
        assert_eq!(rules().await, json!({"three": {"sessRuleId": "three"}}));
    });
}

#[test]
fn a_project_refuses_with_the_status_of_its_cause() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "  - reject: {cause: $request.dnn, detail: by policy}",
        );
        let pcf = with_project(folder.path());
        for (cause, status) in [
            ("USER_UNKNOWN", StatusCode::BAD_REQUEST),
            ("ERROR_INITIAL_PARAMETERS", StatusCode::BAD_REQUEST),
            ("POLICY_CONTEXT_DENIED", StatusCode::FORBIDDEN),
            ("ERROR_TRAFFIC_MAPPING_INFO_REJECTED", StatusCode::FORBIDDEN),
        ] {
            let refused = pcf.post(SM_POLICIES, &context(&json!({"dnn": cause}))).await;
            assert_eq!((refused.status, refused.cause()), (status, cause));
            assert_eq!(refused.json["detail"], "by policy");
        }
    });
}

#[test]
fn an_endless_loop_ends_within_its_budget_and_the_fallback_decides() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let endless = "  - block: endless\n    while: {$eq: [$request.dnn, loop]}\n    do:\n      - set: {x: 1}\n  - sessionRule: {sessRuleId: own}";
        write(folder.path(), endless);
        let mut wanted = None;
        let pcf = start(|config| {
            config.policy.sm = Some(folder.path().to_owned());
            wanted = Some(config.clone());
        });
        let create = async |dnn: &str| pcf.post(SM_POLICIES, &context(&json!({"dnn": dnn}))).await;
        assert!(create("internet").await.json["sessRules"]["own"].is_object());
        assert!(create("loop").await.json["sessRules"]["default"].is_object());
        assert_eq!(pcf.running().count(pcf::Event::PolicyFault), 1);
        let mut wanted = wanted.unwrap();
        wanted.policy.fallback = pcf::config::Fallback::Refuse;
        pcf.running().reload(&wanted).unwrap();
        let refused = create("loop").await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::INTERNAL_SERVER_ERROR, "UNSPECIFIED_NF_FAILURE")
        );
        assert!(create("internet").await.json["sessRules"]["own"].is_object());
    });
}

#[test]
fn a_page_has_the_projects_in_effect_beside_what_their_folders_have() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "  - block: one\n    sessionRule: {sessRuleId: one}",
        );
        let pcf = with_project(folder.path());
        let show = async |path: &str| {
            let (status, text) = page(pcf.running().handle().routes(), path).await;
            (status, serde_json::from_str::<Value>(&text).unwrap_or_default())
        };
        let (_, list) = show("/pcf/projects").await;
        assert_eq!(
            list[0],
            json!({"service": "sm", "name": "test", "description": "", "builtIn": false, "blocks": 1})
        );
        assert_eq!(
            (&list[1]["service"], &list[1]["builtIn"]),
            (&json!("am"), &json!(true))
        );
        let (_, same) = show("/pcf/projects/sm").await;
        assert!(
            same["files"][0]["text"].as_str().unwrap().contains("block: one"),
            "{same}"
        );
        assert_eq!(
            same["folder"],
            json!({"differs": false, "files": [], "mistakes": null})
        );
        write(folder.path(), "  - block: two\n    nonsense: 1");
        let (_, draft) = show("/pcf/projects/sm").await;
        assert!(
            draft["files"][0]["text"].as_str().unwrap().contains("block: one"),
            "{draft}"
        );
        assert_eq!(draft["folder"]["differs"], true);
        assert!(
            draft["folder"]["files"][0]["text"]
                .as_str()
                .unwrap()
                .contains("block: two")
        );
        let mistakes = draft["folder"]["mistakes"].as_str().unwrap();
        assert!(
            mistakes.contains("project.yaml:4") && mistakes.contains("nonsense"),
            "{mistakes}"
        );
        let (_, built_in) = show("/pcf/projects/ue").await;
        assert!(
            built_in["files"][0]["text"]
                .as_str()
                .unwrap()
                .contains("service: ue"),
            "{built_in}"
        );
        assert!(built_in["folder"].is_null());
        assert_eq!(show("/pcf/projects/x").await.0, 404);
        std::fs::remove_dir_all(folder.path()).unwrap();
        let (_, gone) = show("/pcf/projects/sm").await;
        assert_eq!(gone["folder"]["differs"], true);
        assert!(
            gone["folder"]["mistakes"]
                .as_str()
                .unwrap()
                .starts_with("policy.sm: "),
            "{gone}"
        );
    });
}
