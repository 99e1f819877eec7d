//! Sites and regions: where requests are rerouted to, and through whom others are reached.

use http::{Method, StatusCode};
use routing::policy::{Reroute, ServicePolicy, StagePolicy};
use serde_json::{Value, json};

use crate::support::{PATH, Producer, Scp, local, start, until};

/// An SCP at `east1`, with `east2` in its region and `west1` in another.
fn at_east1(profiles: Vec<Value>, change: impl FnOnce(&mut scp::Config)) -> Scp {
    start(|config| {
        config.producers = profiles;
        config.places.locality = "east1".into();
        config.places.regions = [("east", vec!["east1", "east2"]), ("west", vec!["west1"])]
            .map(|(region, places)| (region.to_owned(), places.into_iter().map(str::to_owned).collect()))
            .into();
        change(config);
    })
}

fn placed(producer: &Producer, locality: &str) -> Value {
    producer.profile(&json!({"locality": locality}))
}

fn rerouting(reroute: Reroute) -> Vec<ServicePolicy> {
    let stage = StagePolicy {
        reroute,
        ..StagePolicy::default()
    };
    vec![ServicePolicy {
        initial: stage,
        subsequent: stage,
        ..ServicePolicy::default()
    }]
}

#[test]
fn rerouting_goes_as_far_as_its_policy_lets_it() {
    local(async {
        let (named, east2, west1) = (Producer::start(1), Producer::start(2), Producer::start(3));
        named.fails_with(503);
        for (reroute, others, expected) in [
            (Reroute::WithinSite, [Some("east2"), Some("west1")], None),
            (
                Reroute::WithinRegion,
                [Some("east2"), Some("west1")],
                Some(&east2),
            ),
            (Reroute::WithinRegion, [None, Some("west1")], None),
            (Reroute::Anywhere, [None, Some("west1")], Some(&west1)),
            (Reroute::None, [Some("east1"), Some("east1")], None),
            (Reroute::WithinSite, [Some("east1"), Some("west1")], Some(&east2)),
        ] {
            let known = [&east2, &west1].into_iter().zip(others);
            let mut profiles = vec![placed(&named, "east1")];
            profiles.extend(known.filter_map(|(producer, at)| Some(placed(producer, at?))));
            let scp = at_east1(profiles, |config| config.policies = rerouting(reroute));
            let got = scp.get(&named).await;
            match expected {
                Some(producer) => assert_eq!(got.by(), producer.id, "{reroute:?} {others:?}"),
                None => {
                    assert_eq!(
                        got.status,
                        StatusCode::SERVICE_UNAVAILABLE,
                        "{reroute:?} {others:?}"
                    );
                }
            }
        }
    });
}

/// A service that is deployed for a site, or for a region, is not served from beyond it. Only a producer that the request
/// names is used wherever it is.
#[test]
fn the_deployment_of_a_service_bounds_whom_a_discovery_chooses() {
    use routing::policy::Scope;
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        for (scope, [at, other_at], expected) in [
            (Scope::SiteWide, ["east1", "west1"], Some(&first)),
            (Scope::SiteWide, ["east2", "west1"], None),
            (Scope::Regional, ["east2", "west1"], Some(&first)),
            (Scope::Regional, ["west1", "west1"], None),
            (Scope::Global, ["east2", "west1"], Some(&first)),
        ] {
            let profiles = vec![placed(&first, at), placed(&second, other_at)];
            let scp = at_east1(profiles, |config| {
                config.discovery.order = scp::config::Order::ScpThenNrf;
                config.policies = vec![ServicePolicy {
                    scope,
                    ..ServicePolicy::default()
                }];
            });
            for _ in 0..5 {
                let discovery = [
                    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
                    ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
                    ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
                ];
                let got = scp.ask(Method::GET, PATH, &discovery).await;
                match expected {
                    Some(producer) => assert_eq!(got.by(), producer.id, "{scope:?} {at}"),
                    None => assert!(
                        got.status.is_client_error() || got.status.is_server_error(),
                        "{scope:?} {at}"
                    ),
                }
            }
            assert_eq!(scp.get(&second).await.by(), second.id, "{scope:?}");
        }
    });
}

#[test]
fn a_refused_producer_is_replaced_only_where_the_policy_reroutes() {
    local(async {
        let (refused, other) = (Producer::start(1), Producer::start(2));
        let closed = refused.profile(&json!({"allowedNfTypes": ["SMF"]}));
        for (reroute, status) in [(Reroute::None, 403), (Reroute::WithinRegion, 200)] {
            let profiles = vec![closed.clone(), other.profile(&json!({}))];
            let scp = start(|config| {
                config.producers = profiles;
                config.policies = rerouting(reroute);
            });
            let got = scp.get(&refused).await;
            assert_eq!(got.status.as_u16(), status, "{reroute:?}");
        }
        assert_eq!((refused.count(), other.count()), (0, 1));
    });
}

#[test]
fn a_binding_is_kept_to_wherever_its_instance_is() {
    local(async {
        let (near, far, west) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let profiles = vec![
            placed(&near, "east1"),
            placed(&far, "east2"),
            placed(&west, "west1"),
        ];
        let scp = at_east1(profiles, |_| {});
        let set = "set1.udmset.5gc.mnc001.mcc001";
        for bound in [&far, &west, &near] {
            let binding = format!("bl=nf-instance; nfinst={}; nfset={set}", bound.id);
            for _ in 0..10 {
                let got = scp
                    .ask(Method::PUT, PATH, &[("3gpp-sbi-routing-binding", &binding)])
                    .await;
                assert_eq!(got.by(), bound.id);
            }
        }
        // A set binding leaves the choice to this SCP: the nearest.
        let binding = format!("bl=nf-set; nfset={set}");
        let got = scp
            .ask(Method::PUT, PATH, &[("3gpp-sbi-routing-binding", &binding)])
            .await;
        assert_eq!(got.by(), near.id);
    });
}

/// An SCP of the east that reaches the west through these SCPs, in this order.
fn through(hops: &[String], profiles: Vec<Value>) -> Scp {
    let hops = hops.to_vec();
    at_east1(profiles, |config| {
        config.fqdn = "scp-east.test".into();
        config.next_hops = [("west".to_owned(), hops)].into();
        config.protection.outliers.consecutive_failures = 3;
        config.protection.breaker.failures = 1_000;
    })
}

#[test]
fn an_scp_on_the_way_that_is_dead_is_gone_round_and_its_producers_are_not_blamed() {
    local(async {
        let producer = Producer::start(1);
        let gone = Producer::start(2);
        let dead = gone.root();
        gone.stop();
        let alive = start(|config| config.fqdn = "scp-west.test".into());
        let hops = [dead.clone(), alive.origin.to_string()];
        let scp = through(&hops, vec![placed(&producer, "west1")]);
        until("the dead one is gone", async || {
            scp.count("signalbox_scp_attempts_total", "connect") >= 1.0 || {
                scp.get(&producer).await;
                false
            }
        })
        .await;
        for _ in 0..20 {
            let got = scp.get(&producer).await;
            assert_eq!((got.status, got.by()), (StatusCode::OK, producer.id.as_str()));
        }
        // It was ejected: the last requests went past it, and no failure was counted for the producer.
        let failed = |with: &str| scp.count("signalbox_scp_attempts_total", with);
        let authority = dead.trim_start_matches("http://").to_owned();
        assert!(failed(&format!("producer=\"{authority}\",outcome=\"connect\"")) <= 3.0);
        let of_producer = format!("producer=\"{}\",outcome=\"connect\"", producer.address);
        assert!(failed(&of_producer) < 1.0);
    });
}

#[test]
fn endpoints_of_an_instance_stand_in_for_one_another() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let dead = first.address.port();
        let mut profile = second.profile(&json!({}));
        let endpoint = |port: u16| json!({"ipv4Address": "127.0.0.1", "port": port});
        profile["nfServices"][0]["ipEndPoints"] = json!([endpoint(dead), endpoint(second.address.port())]);
        let scp = start(|config| {
            config.producers = vec![profile];
            config.policies = rerouting(Reroute::None);
            config.protection.outliers.consecutive_failures = 3;
        });
        let root = first.root();
        first.stop();
        let binding = format!("bl=nf-instance; nfinst={}", second.id);
        for header in [
            ("3gpp-sbi-target-apiroot", root.as_str()),
            ("3gpp-sbi-routing-binding", binding.as_str()),
        ] {
            until("the dead endpoint is gone", async || {
                scp.ask(Method::POST, "/nudm-sdm/v2/x", &[header]).await.by() == second.id
            })
            .await;
            for _ in 0..10 {
                let got = scp.ask(Method::POST, "/nudm-sdm/v2/x", &[header]).await;
                assert_eq!(got.by(), second.id, "{header:?}");
            }
        }
    });
}
