//! Requests whose consumers do not wait any more (TS 29.500 §6.11.2).

use std::time::Duration;

use http::{Method, StatusCode};
use routing::policy::ServicePolicy;
use sbi::headers::{SbiHeader, SenderTimestamp};
use time::OffsetDateTime;

use crate::support::{Got, PATH, Producer, Scp, knowing, local};

/// Sends a request whose timestamp is this many milliseconds old.
async fn sent_ago(scp: &Scp, producer: &Producer, milliseconds: i64, max_rsp_time: &str) -> Got {
    let sent = OffsetDateTime::now_utc() - time::Duration::milliseconds(milliseconds);
    let sent = SenderTimestamp(sent).to_value().unwrap();
    let root = producer.root();
    let headers = [
        ("3gpp-sbi-target-apiroot", root.as_str()),
        ("3gpp-sbi-sender-timestamp", sent.to_str().unwrap()),
        ("3gpp-sbi-max-rsp-time", max_rsp_time),
    ];
    scp.ask(Method::GET, PATH, &headers).await
}

#[test]
fn a_request_that_came_too_late_goes_nowhere() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let late = sent_ago(&scp, &producer, 60_000, "5000").await;
        assert_eq!(
            (late.status, late.cause()),
            (StatusCode::GATEWAY_TIMEOUT, "TIMED_OUT_REQUEST")
        );
        assert_eq!(producer.count(), 0);
        assert_eq!(scp.count("signalbox_scp_refused_total", "late"), 1.0);
        let in_time = sent_ago(&scp, &producer, 1_000, "60000").await;
        assert_eq!(in_time.status, StatusCode::OK);
        // Both headers together are the deadline; they are forwarded unchanged.
        let headers = &producer.seen()[0].headers;
        assert_eq!(headers["3gpp-sbi-max-rsp-time"], "60000");
        assert!(headers.contains_key("3gpp-sbi-sender-timestamp"));
        // A timestamp in the future neither extends nor shortens the timeout.
        assert_eq!(
            sent_ago(&scp, &producer, -60_000, "5000").await.status,
            StatusCode::OK
        );
    });
}

#[test]
fn detection_can_be_switched_off() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| config.late_requests.detect = false);
        assert_eq!(
            sent_ago(&scp, &producer, 60_000, "5000").await.status,
            StatusCode::OK
        );
    });
}

#[test]
fn the_next_producer_gets_the_remaining_time() {
    local(async {
        let (silent, other) = (Producer::start(1), Producer::start(2));
        silent.waits(Duration::from_secs(60));
        let quick = ServicePolicy {
            response_timeout_ms: 300,
            total_timeout_ms: 20_000,
            ..ServicePolicy::default()
        };
        let scp = knowing(&[&silent, &other], |config| config.policies = vec![quick]);
        let root = silent.root();
        let headers = [
            ("3gpp-sbi-target-apiroot", root.as_str()),
            ("3gpp-sbi-max-rsp-time", "10000"),
        ];
        assert_eq!(scp.ask(Method::GET, PATH, &headers).await.by(), other.id);
        let left: u64 = other.seen()[0].headers["3gpp-sbi-max-rsp-time"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(left <= 9_700, "{left}");
    });
}
