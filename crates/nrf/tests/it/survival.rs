//! A restart keeps what was acknowledged. (`kill -9` of the whole process is tested with the binary.)

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{config, id, local, profile, start};

#[test]
fn registrations_and_subscriptions_survive_a_restart() {
    local(async {
        let mut nrf = start(|_| {});
        for number in 0..20 {
            nrf.put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
        }
        nrf.ask(
            Method::DELETE,
            &format!("/nnrf-nfm/v1/nf-instances/{}", id(3)),
            "",
            "",
        )
        .await;
        let data = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfType": "AMF"});
        let subscribed = nrf
            .ask(
                Method::POST,
                "/nnrf-nfm/v1/subscriptions",
                "application/json",
                data.to_string(),
            )
            .await;
        let subscription = subscribed.json["subscriptionId"].as_str().unwrap().to_owned();
        nrf.stop();

        let again = nrf::start(config(nrf.directory.path())).unwrap();
        nrf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
        nrf.running = Some(again);
        for number in 0..20 {
            let got = nrf
                .get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(number)))
                .await;
            let expected = if number == 3 {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::OK
            };
            assert_eq!(got.status, expected, "{number}");
        }
        let gone = nrf
            .ask(
                Method::DELETE,
                &format!("/nnrf-nfm/v1/subscriptions/{subscription}"),
                "",
                "",
            )
            .await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
    });
}
