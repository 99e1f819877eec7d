//! What `/readyz` says of the HSS.

use diameter::proto::known::command;
use http::StatusCode;
use serde_json::json;

use crate::network::Node;
use crate::support::{SUBSCRIPTIONS, Scef, local, server, start, subscription, until};

async fn says(scef: &Scef, words: Option<&str>) {
    until("the remark about the HSS", async || {
        let remarks = scef.running.handle().health().remarks();
        match (remarks.get("HSS"), words) {
            (Some(remark), Some(words)) => remark.contains(words),
            (remark, words) => remark.is_none() && words.is_none(),
        }
    })
    .await;
}

#[test]
fn an_hss_that_is_not_connected_or_does_not_answer_is_named() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        says(&scef, None).await;
        let body = subscription(&server.root(), &json!({}));
        scef.api.post(SUBSCRIPTIONS, &body).await;
        says(&scef, Some("no peer is available")).await;
        assert!(
            scef.running.handle().health().not_ready().is_empty(),
            "what is buffered is still delivered"
        );
        let mut hss = Node::hss(scef.diameter()).await;
        says(&scef, None).await;

        let silent = async {
            hss.expect(command::CONFIGURATION_INFORMATION).await;
            hss.0.break_off();
        };
        let (got, ()) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), silent);
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
        says(&scef, Some("no connected peer serves S6t")).await;
        let mut hss = Node::hss(scef.diameter()).await;
        let (_, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        says(&scef, None).await;
        scef.stop();
    });
}

#[test]
fn an_hss_of_the_settings_is_missed_from_the_start() {
    local(async {
        let scef = start(|config| {
            config.diameter.peers = vec![scef::config::Peer {
                host: "hss.example.org".to_owned(),
                addresses: vec![free_ports::address().unwrap()],
            }];
        });
        says(&scef, Some("no connected peer serves S6t")).await;
        let _hss = Node::hss(scef.diameter()).await;
        says(&scef, None).await;
        scef.stop();
    });
}

#[test]
fn an_hss_that_is_connected_and_silent_is_named() {
    local(async {
        let short = settings::Period::from_millis(200);
        let (scef, server) = (start(|config| config.diameter.timeout = short), server());
        let mut hss = Node::hss(scef.diameter()).await;
        says(&scef, None).await;
        let body = subscription(&server.root(), &json!({}));
        let silence = hss.expect(command::CONFIGURATION_INFORMATION);
        let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), silence);
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
        says(&scef, Some("no answer came in time")).await;
        scef.stop();
    });
}
