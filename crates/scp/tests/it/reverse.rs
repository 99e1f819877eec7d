//! The SCP in the place of producers: consumers find their resources at it.

use http::{Method, StatusCode};
use routing::policy::ServicePolicy;
use serde_json::json;

use crate::support::{PATH, Producer, Scp, knowing, local};

const COLLECTION: &str = "/nudm-sdm/v2/imsi-001010000000001/sdm-subscriptions";

fn standing_in(producers: &[&Producer]) -> Scp {
    knowing(producers, |config| {
        config.policies = vec![ServicePolicy {
            services: vec!["nudm-sdm".into()],
            reverse_proxy_support: true,
            ..ServicePolicy::default()
        }];
        config.forward_to_unknown = false;
    })
}

/// Answers 201 with this `Location`.
fn creates(producer: &Producer, location: String) {
    let id = producer.id.clone();
    producer.answers(move |seen| {
        let mut response = sbi::json::response(StatusCode::CREATED, &json!({"by": id, "path": seen.path}));
        let headers = response.headers_mut();
        headers.set_printed("location", &location);
        headers.set_printed("3gpp-sbi-target-apiroot", "http://its.own.name");
        response
    });
}

#[test]
fn a_resource_is_found_at_the_scp_and_reached_there_by_its_uri_alone() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let scp = standing_in(&[&first, &second]);
        for (producer, location) in [
            (&first, format!("{}{COLLECTION}/5", first.root())),
            // Relative to the producer's root.
            (&second, format!("{COLLECTION}/5")),
        ] {
            creates(producer, location);
            let root = producer.root();
            let named = [("3gpp-sbi-target-apiroot", root.as_str())];
            let got = scp.ask(Method::POST, COLLECTION, &named).await;
            assert_eq!(
                (got.status, got.by()),
                (StatusCode::CREATED, producer.id.as_str())
            );
            let location = got.header("location");
            let own = scp.origin.to_string();
            assert!(
                location.starts_with(&own) && location.ends_with(&format!("{COLLECTION}/5")),
                "{location}"
            );
            assert_eq!(
                got.header("3gpp-sbi-target-apiroot"),
                "",
                "nothing leads past the SCP"
            );
            // The consumer does no more than follow the URI.
            let path = location.strip_prefix(&own).unwrap();
            for _ in 0..4 {
                let got = scp.ask(Method::DELETE, path, &[]).await;
                assert_eq!(
                    (got.by(), got.json["path"].as_str()),
                    (&*producer.id, Some(&*format!("{COLLECTION}/5")))
                );
            }
            // Or takes the API root out of it.
            let root = location.strip_suffix(&format!("{COLLECTION}/5")).unwrap();
            let got = scp
                .ask(Method::GET, PATH, &[("3gpp-sbi-target-apiroot", root)])
                .await;
            assert_eq!((got.by(), got.json["path"].as_str()), (&*producer.id, Some(PATH)));
        }
        let sdm = r#"service="nudm-sdm""#;
        assert_eq!(
            scp.count("signalbox_scp_requests_total", sdm),
            12.0,
            "counted by what they are for"
        );
    });
}

#[test]
fn it_stands_in_for_none_but_those_it_knows_and_the_services_it_is_told() {
    local(async {
        let (producer, stranger) = (Producer::start(1), Producer::start(2));
        let scp = standing_in(&[&producer]);
        creates(&producer, format!("{}{COLLECTION}/5", stranger.root()));
        let got = scp.get(&producer).await;
        let path = got
            .header("location")
            .strip_prefix(&scp.origin.to_string())
            .unwrap()
            .to_owned();
        let refused = scp.ask(Method::GET, &path, &[]).await;
        assert_eq!(refused.cause(), "TARGET_NF_NOT_REACHABLE");
        assert_eq!(stranger.count(), 0);
        // Another service of the same producer, and a prefix that says nothing.
        for path in [
            path.replace("nudm-sdm", "nudm-uecm"),
            format!("/signalbox-scp/to/eHg{PATH}"),
            "/signalbox-scp/to/".to_owned(),
        ] {
            let got = scp.ask(Method::GET, &path, &[]).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "MANDATORY_IE_MISSING")
            );
        }
        // A URI that is this SCP's own leads round once and no more.
        let own = scp.origin.to_string();
        creates(&producer, format!("{own}{COLLECTION}/5"));
        let got = scp.get(&producer).await;
        let path = got.header("location").strip_prefix(&own).unwrap().to_owned();
        assert_eq!(
            scp.ask(Method::GET, &path, &[]).await.cause(),
            "TARGET_NF_NOT_REACHABLE"
        );

        let plain = knowing(&[&producer], |_| {});
        let location = format!("{}{COLLECTION}/5", producer.root());
        creates(&producer, location.clone());
        let got = plain.get(&producer).await;
        assert_eq!(got.header("location"), location);
        // Only SCPs name a producer.
        assert_eq!(got.header("3gpp-sbi-target-apiroot"), "");
    });
}
