//! Settings that change while requests come in.

use http::StatusCode;
use serde_json::json;

use crate::support::{config, id, local, profile, start};

#[test]
fn changed_settings_take_effect_and_mistakes_change_nothing() {
    local(async {
        let nrf = start(|_| {});
        for number in 0..5 {
            let put = nrf
                .put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
            assert_eq!(put.status, StatusCode::CREATED);
        }
        let query = "target-nf-type=UDM&requester-nf-type=AMF";
        assert_eq!(nrf.found(query).await.len(), 5);
        let running = nrf.running.as_ref().unwrap();
        let mut wanted = config(nrf.directory.path());
        wanted.discovery.max_profiles = 2;
        wanted.max_profiles = 5;
        running.reconfigure(&wanted).unwrap();
        assert_eq!(nrf.found(query).await.len(), 2);
        let refused = nrf.put(&profile(&id(9), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(refused.cause(), "INSUFFICIENT_RESOURCES");

        wanted.discovery.max_profiles = 1;
        wanted.tokens.signing_keys = vec!["/there/is/no/such/key.pem".into()];
        let reason = running.reconfigure(&wanted).unwrap_err();
        assert!(reason.contains("key.pem"), "{reason}");
        assert_eq!(nrf.found(query).await.len(), 2);
    });
}
