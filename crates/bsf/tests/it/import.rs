//! Bindings from a file, before the BSF runs.

use bsf::import::{ImportError, import};
use http::StatusCode;
use serde_json::json;

use crate::support::{binding, config, local, start};

const ID: &str = "0b0c5f5e-7a0f-4e86-9f0a-1c2d3e4f5a6b";

#[test]
fn imported_bindings_are_served_under_their_identities() {
    let directory = tempfile::tempdir().unwrap();
    let store = config(directory.path()).store;
    let lines = |pcf: &str| {
        let known = binding(&json!({"bindingId": ID, "pcfFqdn": pcf}));
        let others = (0..600).map(|number| {
            let prefix = format!("2001:db8:{number:x}::/48");
            binding(&json!({"ipv4Addr": null, "ipv6Prefix": prefix})).to_string()
        });
        std::iter::once(known.to_string())
            .chain(others)
            .collect::<Vec<_>>()
            .join("\n")
    };
    local(async {
        assert_eq!(
            import(&store, lines("old.example.org").as_bytes()).await.unwrap(),
            601
        );
        // The one with an identity is replaced.
        let again = lines("new.example.org");
        let first = again.lines().next().unwrap();
        assert_eq!(import(&store, first.as_bytes()).await.unwrap(), 1);
        let mut bsf = start(|config| config.store = store.clone());
        let got = bsf.find("ipv4Addr=10.0.0.1").await;
        assert_eq!(
            (got.status, &got.json["pcfFqdn"]),
            (StatusCode::OK, &json!("new.example.org"))
        );
        assert_eq!(got.json["bindingId"], json!(null));
        // Prefixes are found, so their lengths were learnt.
        for number in [0, 599] {
            let got = bsf
                .find(&format!("ipv6Prefix=2001:db8:{number:x}:1::1/128"))
                .await;
            assert_eq!(got.status, StatusCode::OK, "{number}");
        }
        let path = format!("/nbsf-management/v1/pcfBindings/{ID}");
        let gone = bsf.ask(http::Method::DELETE, &path, "", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        bsf.stop();
    });
}

/// What an export writes, an import reads: the same bindings under the same identities.
#[test]
fn exported_bindings_can_be_imported() {
    let directory = tempfile::tempdir().unwrap();
    local(async {
        let mut bsf = start(|config| config.store = self::config(&directory.path().join("one")).store);
        let kept = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let gone = bsf.path(
            &bsf.post("pcfBindings", &binding(&json!({"ipv4Addr": "10.0.0.2"})))
                .await,
        );
        let removed = bsf.ask(http::Method::DELETE, &gone, "", "").await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT);
        let ue = json!({"supi": "imsi-1", "pcfForUeFqdn": "pcf1.example.org"});
        bsf.path(&bsf.post("pcf-ue-bindings", &ue).await);
        let subscription = json!({"events": ["PCF_UE_BINDING_REGISTRATION"], "notifUri": "http://127.0.0.1:9/told",
            "notifCorreId": "c1", "supi": "imsi-1"});
        bsf.path(&bsf.post("subscriptions", &subscription).await);
        bsf.stop();
        let (mut lines, mut tables) = (String::new(), Vec::new());
        store::export(&directory.path().join("one"), |record| {
            let store::Exported {
                table, key, value, ..
            } = &record;
            if let Some((_, value)) = bsf::export::readable(table, key, value).unwrap() {
                tables.push((table.to_string(), value));
            }
            if let Some(binding) = bsf::export::importable(table, key, value).unwrap() {
                lines.push_str(&format!("{binding}\n"));
            }
            Ok::<_, store::Error>(())
        })
        .unwrap();
        let names: Vec<&str> = tables.iter().map(|(table, _)| table.as_str()).collect();
        assert_eq!(names, ["pcf_binding", "pcf_ue_binding", "bsf_subscription"]);
        assert_eq!(tables[2].1["notifCorreId"], "c1");
        let store = self::config(&directory.path().join("two")).store;
        assert_eq!(import(&store, lines.as_bytes()).await.unwrap(), 1);
        let bsf = start(|config| config.store = store);
        let got = bsf.find("ipv4Addr=10.0.0.1").await;
        assert_eq!(
            (got.status, &got.json["vendorExtra"]),
            (StatusCode::OK, &binding(&json!({}))["vendorExtra"])
        );
        let gone = bsf.ask(http::Method::DELETE, &kept, "", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "under the same identity");
    });
}

#[test]
fn the_line_that_is_wrong_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = config(directory.path()).store;
    let good = binding(&json!({})).to_string();
    local(async {
        for (bad, told) in [
            ("{", "EOF"),
            ("[]", "expected"),
            (
                &binding(&json!({"ipv4Addr": "10.0.0.999"})).to_string(),
                "/ipv4Addr",
            ),
            (
                &binding(&json!({"bindingId": "7"})).to_string(),
                "expected a UUID",
            ),
        ] {
            let text = format!("{good}\n{bad}\n{good}\n");
            match import(&store, text.as_bytes()).await {
                Err(ImportError::Line { line: 2, reason }) => assert!(reason.contains(told), "{reason}"),
                other => panic!("{bad}: {other:?}"),
            }
        }
    });
}
