//! Requests under load.

use http::StatusCode;
use scef::Event;
use serde_json::json;

use crate::support::{SUBSCRIPTIONS, local, start, until};

#[test]
fn requests_are_discarded_under_load_until_that_is_switched_off() {
    local(async {
        let mut settings = None;
        let scef = start(|config| {
            config.workers = 1;
            config.overload.enabled = true;
            let levels = json!([{"level": {"name": "any", "set": "1%", "clear": "0%", "abatement": "1h"}, "discard": "100%"}]);
            config.overload.levels = serde_json::from_value(levels).unwrap();
            settings = Some(config.clone());
        });
        let is_served = async || scef.api.get(SUBSCRIPTIONS).await.status == StatusCode::OK;
        let is_refused = async || {
            let mut refused = 0;
            for _ in 0..20 {
                refused += usize::from(!is_served().await);
            }
            refused > 0
        };
        until("a refusal", is_refused).await;
        assert!(scef.running.count(Event::Discarded) >= 1);
        let mut wanted = settings.unwrap();
        wanted.overload.enabled = false;
        scef.running.reload(&wanted).unwrap();
        until("an answer", is_served).await;
        scef.stop();
    });
}
