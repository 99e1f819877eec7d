//! What operators read of a running SCP: pages and gauges.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{PATH, Producer, Scp, local, start, until};

/// A page as the admin endpoint answers it.
async fn page(scp: &Scp, path: &str) -> Value {
    let routes = scp.running.as_ref().unwrap().handle().routes();
    let (_, body) = testpeer::page(routes, path).await;
    serde_json::from_str(&body).unwrap()
}

#[test]
fn connections_discoveries_and_tokens_are_shown() {
    local(async {
        let producer = Producer::start(1);
        let nrf = Producer::start(99);
        let profile = producer.profile(&json!({}));
        nrf.answers(move |seen| {
            let body = match seen.path.as_str() {
                "/oauth2/token" => {
                    json!({"access_token": "secret", "token_type": "Bearer", "expires_in": 600})
                }
                _ => json!({"validityPeriod": 60, "nfInstances": [profile]}),
            };
            sbi::json::response(StatusCode::OK, &body)
        });
        let root = nrf.root();
        let scp = start(|config| {
            config.nrf.roots = vec![root];
            config.nrf.register = false;
            config.nrf.nf_types.clear();
            config.security.tokens.enabled = true;
        });
        let consumer = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
        let wish = [
            ("3gpp-sbi-discovery-target-nf-type", "UDM"),
            ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
            ("3gpp-sbi-discovery-requester-nf-instance-id", consumer),
            ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
        ];
        assert_eq!(scp.ask(Method::GET, PATH, &wish).await.status, StatusCode::OK);
        let discoveries = page(&scp, "/scp/discoveries").await;
        let query = discoveries[0]["query"].as_str().unwrap();
        assert!(query.contains("service-names=nudm-sdm"), "{discoveries}");
        assert_eq!(discoveries[0]["candidates"], 1);
        let tokens = page(&scp, "/scp/tokens").await;
        let of = |name: &str| tokens[0][name].as_str().unwrap_or_default();
        assert_eq!(
            [of("nfInstanceId"), of("targetNfType"), of("scope"), of("state")],
            [consumer, "UDM", "nudm-sdm", "valid"]
        );
        assert!(tokens[0]["secondsLeft"].as_u64() > Some(500), "{tokens}");
        assert!(!tokens.to_string().contains("secret"), "{tokens}");
        // Workers write it down twice a second.
        until("the connection is shown", async || {
            let producers = page(&scp, "/scp/producers").await;
            let shown = producers.as_array().unwrap();
            shown.iter().any(|one| {
                one["nfInstanceId"] == producer.id.as_str()
                    && one["connections"] == 1
                    && one["circuit"] == "closed"
            })
        })
        .await;
        assert_eq!(scp.count("signalbox_scp_producer_connections", "worker"), 1.0);
        assert_eq!(scp.count("signalbox_scp_discovery_answers", ""), 1.0);
        assert_eq!(scp.count("signalbox_scp_token_cache_entries", ""), 1.0);
    });
}
