//! A client that sends too much is refused; other clients are not.

use http::StatusCode;
use sbi::Body;

use crate::support::{local, start};

#[test]
fn a_consumer_that_floods_limits_itself() {
    local(async {
        let bsf = start(|config| {
            config.overload.consumer_rate = 10;
            config.overload.consumers = vec![bsf::config::ConsumerRate {
                consumer: "PCF".to_owned(),
                rate: 0,
            }];
        });
        let ask = async |agent: &str| {
            let request = http::Request::get("/nbsf-management/v1/pcfBindings?supi=imsi-1")
                .header("user-agent", agent.to_owned())
                .body(Body::empty())
                .unwrap();
            bsf.send(request).await
        };
        let mut limited = 0;
        for _ in 0..200 {
            let got = ask("NEF-flood").await;
            if got.status == StatusCode::TOO_MANY_REQUESTS {
                assert_eq!(got.cause(), "NF_CONGESTION_RISK");
                limited += 1;
            }
        }
        assert!(limited > 0);
        assert_eq!(ask("AF-quiet").await.status, StatusCode::NO_CONTENT);
        for _ in 0..50 {
            assert_eq!(
                ask("PCF-6f1c7a52-0000-4000-8000-000000000001").await.status,
                StatusCode::NO_CONTENT
            );
        }
        let running = bsf.running.as_ref().unwrap();
        assert_eq!(running.count(bsf::Event::ConsumerLimited), limited);
    });
}
