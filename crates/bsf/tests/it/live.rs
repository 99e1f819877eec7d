//! Settings that change while requests come in.

use http::StatusCode;
use serde_json::json;

use crate::support::{binding, config, local, start};

#[test]
fn changed_settings_take_effect_and_mistakes_change_nothing() {
    local(async {
        let bsf = start(|_| {});
        let long = binding(&json!({"vendorExtra": "x".repeat(5_000)}));
        bsf.path(&bsf.post("pcfBindings", &long).await);
        let running = bsf.running.as_ref().unwrap();
        let mut wanted = config(bsf.directory.path());
        wanted.max_body_size = settings::ByteSize::kib(1);
        wanted.overload.enabled = true;
        running.reconfigure(&wanted).unwrap();
        assert!(running.congestion_control());
        let refused = bsf.post("pcfBindings", &long).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);

        wanted.max_body_size = settings::ByteSize::kib(64);
        wanted.tokens.key_sets = vec!["/there/is/no/such/set.json".into()];
        let reason = running.reconfigure(&wanted).unwrap_err();
        assert!(reason.contains("set.json"), "{reason}");
        assert_eq!(
            bsf.post("pcfBindings", &long).await.status,
            StatusCode::PAYLOAD_TOO_LARGE
        );
    });
}
