//! Optional features of the APIs (TS 29.122 §5.2.7): which are offered, and which of them an SCS/AS has.

use model::features::SupportedFeatures;
use serde_json::Value;

/// The features of an API that are offered.
pub(super) struct Features {
    /// Their numbers.
    pub(super) offered: &'static [usize],
    /// Number of Notification_test_event, which is one of them.
    pub(super) test: usize,
}

/// Of MonitoringEvent (table 5.3.4-1): a notification of each monitoring type that is served, from Loss_of_connectivity_notification (1)
/// to Availability_after_DDN_failure_notification (7), Notification_test_event (10) and Subscription_modification (11).
pub(super) const MONITORING: Features = Features {
    offered: &[1, 2, 3, 4, 5, 6, 7, 10, 11],
    test: 10,
};

/// Of NIDD (table 5.6.4-1): GroupMessageDelivery (1), Notification_test_event (3), MT_NIDD_modification_cancellation (4) and PatchUpdate (8).
pub(super) const NIDD: Features = Features {
    offered: &[1, 3, 4, 8],
    test: 3,
};

/// Of DeviceTriggering (table 5.7.4-1): Notification_test_event (2) and PatchUpdate (3).
pub(super) const TRIGGERING: Features = Features {
    offered: &[2, 3],
    test: 2,
};

impl Features {
    /// Leaves of the features of an SCS/AS those that are offered (TS 29.500 §6.6.2).
    pub(super) fn negotiate(&self, document: &mut Value) {
        if let Some(features) = document.get_mut("supportedFeatures") {
            let asked = features.as_str().map(SupportedFeatures::parse);
            let asked = asked.and_then(Result::ok).unwrap_or_default();
            let common = asked.common(&SupportedFeatures::of(self.offered));
            *features = common.to_string().into();
        }
    }

    /// Whether an SCS/AS asks for a notification that tests whether notifications reach it (TS 29.122 §5.2.5.3).
    pub(super) fn asks_for_test(&self, document: &Value) -> bool {
        document.get("requestTestNotification") == Some(&Value::Bool(true)) && has(document, self.test)
    }

    /// Whether a change of a resource asks for that notification, which the resource before did not: it is sent once (§5.2.5.3).
    pub(super) fn begins_to_ask(&self, document: &Value, before: &Value) -> bool {
        self.asks_for_test(document) && !self.asks_for_test(before)
    }
}

/// Whether an SCS/AS has a feature. One that does not say which features it has, has those that its request uses.
pub(super) fn has(document: &Value, number: usize) -> bool {
    let features = document.get("supportedFeatures").and_then(Value::as_str);
    features.is_none_or(|features| SupportedFeatures::parse(features).is_ok_and(|set| set.has(number)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn features_of_both_sides_are_negotiated() {
        for (api, all) in [(&MONITORING, "67F"), (&NIDD, "8D"), (&TRIGGERING, "6")] {
            for (asked, common) in [("FFFFFF", all), ("0", "0"), ("", "0"), ("0000", "0")] {
                let mut document = json!({"supportedFeatures": asked});
                api.negotiate(&mut document);
                assert_eq!(document["supportedFeatures"], common, "{asked}");
            }
            assert!(api.offered.contains(&api.test));
        }
        let mut none = json!({});
        NIDD.negotiate(&mut none);
        assert_eq!(none, json!({}));
    }

    #[test]
    fn a_test_is_for_who_has_the_feature_or_names_none() {
        let asks = |document: Value| TRIGGERING.asks_for_test(&document);
        assert!(asks(json!({"requestTestNotification": true})));
        assert!(asks(
            json!({"requestTestNotification": true, "supportedFeatures": "2"})
        ));
        assert!(!asks(
            json!({"requestTestNotification": true, "supportedFeatures": "4"})
        ));
        assert!(!asks(json!({"requestTestNotification": false})));
        assert!(!asks(json!({"supportedFeatures": "2"})));
    }
}
