//! What one SCS/AS may use, and what is buffered for a device.

use http::StatusCode;
use scef::Event;
use serde_json::json;

use crate::network::Node;
use crate::support::{
    CONFIGURATIONS, SUBSCRIPTIONS, configuration, data, local, path_of, server, soon, start, subscription,
    until,
};

#[test]
fn an_scs_as_has_its_quota_and_others_have_theirs() {
    local(async {
        let (scef, server) = (start(|config| config.limits.subscriptions = 2), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({}));
        let mut paths = Vec::new();
        for _ in 0..2 {
            let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
            paths.push(path_of(&got));
        }
        let more = scef.api.post(SUBSCRIPTIONS, &body).await;
        assert_eq!(
            (more.status, more.cause()),
            (StatusCode::FORBIDDEN, "RESOURCES_EXCEEDED")
        );
        let others = SUBSCRIPTIONS.replace("/as1/", "/as2/");
        let (got, _) = tokio::join!(scef.api.post(&others, &body), hss.configure());
        path_of(&got);
        let (ended, _) = tokio::join!(scef.api.delete(&paths[0]), hss.configure());
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        scef.stop();
    });
}

#[test]
fn a_subscription_whose_time_is_over_leaves_its_place_at_once() {
    local(async {
        let (scef, server) = (start(|config| config.limits.subscriptions = 1), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({"monitorExpireTime": soon()}));
        let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let body = subscription(&server.root(), &json!({}));
        let more = scef.api.post(SUBSCRIPTIONS, &body).await;
        assert_eq!(more.cause(), "RESOURCES_EXCEEDED", "{}", more.json);
        until("its end", async || {
            scef.api.get(&path).await.status == StatusCode::NOT_FOUND
        })
        .await;
        let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        scef.stop();
    });
}

#[test]
fn an_scs_as_that_sends_too_much_is_refused_alone() {
    local(async {
        let scef = start(|config| {
            config.workers = 1;
            config.limits.rate = 1;
        });
        let mut refused = 0;
        for _ in 0..50 {
            let got = scef.api.get(SUBSCRIPTIONS).await;
            refused += usize::from(got.status == StatusCode::TOO_MANY_REQUESTS);
        }
        assert!(refused > 0 && scef.running.count(Event::RateExceeded) == refused as u64);
        let other = scef.api.get(&SUBSCRIPTIONS.replace("/as1/", "/as2/")).await;
        assert_eq!(other.status, StatusCode::OK);
        scef.stop();
    });
}

#[test]
fn a_device_has_a_bounded_buffer() {
    local(async {
        let (scef, server) = (
            start(|config| {
                config.nidd.max_packets = 2;
                config.nidd.max_octets = settings::ByteSize(6);
                config.nidd.max_packet = settings::ByteSize(6);
            }),
            server(),
        );
        let mut hss = Node::hss(scef.diameter()).await;
        let body = configuration(&server.root(), &json!({}));
        let (got, _) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), hss.authorize());
        let downlinks = format!("{}/downlink-data-deliveries", path_of(&got));
        let send = async |text: &str| {
            let got = scef.api.post(&downlinks, data(text, &json!({}))).await;
            (got.status, got.cause().to_owned())
        };
        let created = (StatusCode::CREATED, String::new());
        let full = (StatusCode::FORBIDDEN, "QUOTA_EXCEEDED".to_owned());
        assert_eq!(
            send("AAAAAAAAAAAA").await,
            (StatusCode::FORBIDDEN, "DATA_TOO_LARGE".to_owned())
        );
        assert_eq!(send("AAAA").await, created);
        assert_eq!(send("AAAAAAA=").await, full, "octets");
        assert_eq!(send("AAAA").await, created);
        assert_eq!(send("").await, full, "packets");
        assert_eq!(scef.running.count(Event::BufferFull), 2);

        // Requests at one time have no more room.
        for one in scef.api.get(&downlinks).await.json.as_array().unwrap() {
            let uri: http::Uri = one["self"].as_str().unwrap().parse().unwrap();
            assert_eq!(scef.api.delete(uri.path()).await.status, StatusCode::NO_CONTENT);
        }
        let one = || send("AAAA");
        let (a, b, c, d, e, f) = tokio::join!(one(), one(), one(), one(), one(), one());
        let together = [a, b, c, d, e, f];
        assert_eq!(together.iter().filter(|one| **one == created).count(), 2);
        assert_eq!(together.iter().filter(|one| **one == full).count(), 4);
        scef.stop();
    });
}
