//! Sy: SLR to AVPs, SLA and SNR to documents.

use diameter_proto::known::{application, command};
use pcc::sy::{RequestKind, is_abort, put_request, read_status};
use serde_json::{Value, json};

use super::{parse, written};

#[test]
fn an_slr_names_the_subscriber_and_the_counters() {
    let text = written(command::SPENDING_LIMIT, application::SY, |out| {
        let identities = ["imsi-001010000000001", "msisdn-15551234567", "gli-1"];
        put_request(out, RequestKind::Initial, identities, ["day", "month"]);
    });
    for line in [
        "SL-Request-Type = INITIAL_REQUEST",
        "Subscription-Id-Type = END_USER_IMSI",
        "Subscription-Id-Data = \"001010000000001\"",
        "Subscription-Id-Type = END_USER_E164",
        "Subscription-Id-Data = \"15551234567\"",
        "Policy-Counter-Identifier = \"day\"",
        "Policy-Counter-Identifier = \"month\"",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert_eq!(text.matches("Subscription-Id = {").count(), 2, "{text}");
    let text = written(command::SPENDING_LIMIT, application::SY, |out| {
        put_request(out, RequestKind::Intermediate, ["nai-a@example"], []);
    });
    assert!(
        text.contains("INTERMEDIATE_REQUEST") && text.contains("END_USER_NAI"),
        "{text}"
    );
}

#[test]
fn an_snr_is_read_as_policy_counters() {
    let snr = |kind: u32| {
        parse(&format!(
            r#"SNR app=16777302 {{
  Session-Id = "pcrf;1;1"
  Auth-Application-Id = 16777302
  Origin-Host = "ocs.example"
  Origin-Realm = "example"
  Destination-Realm = "example"
  Destination-Host = "pcrf.example"
  SN-Request-Type = {kind}
  Policy-Counter-Status-Report = {{
    Policy-Counter-Identifier = "day"
    Policy-Counter-Status = "low"
    Pending-Policy-Counter-Information = {{
      Policy-Counter-Status = "high"
      Pending-Policy-Counter-Change-Time = time 1767225600
    }}
  }}
  Policy-Counter-Status-Report = {{ Policy-Counter-Identifier = "month" Policy-Counter-Status = "high" }}
}}"#
        ))
    };
    let message = snr(1);
    assert_eq!(
        Value::Object(read_status(message.view()).unwrap()),
        json!({
            "day": {"policyCounterId": "day", "currentStatus": "low", "penPolCounterStatuses": [
                {"policyCounterStatus": "high", "activationTime": "2026-01-01T00:00:00Z"}]},
            "month": {"policyCounterId": "month", "currentStatus": "high"},
        })
    );
    assert_eq!(is_abort(message.view()), Ok(false));
    assert_eq!(is_abort(snr(2).view()), Ok(true));
}
