//! Two sites of one region and a second region behind its own SCP: where requests go while a site refuses, dies and comes
//! back, then both sites of the region.

use http::StatusCode;
use routing::policy::{Reroute, Route, ServicePolicy, StagePolicy};
use serde_json::{Value, json};

use crate::support::{PATH, Producer, Scp, local, start, until};

/// Producers by the place where they are.
struct Sites {
    east1: Vec<Producer>,
    east2: Vec<Producer>,
    west1: Vec<Producer>,
}

impl Sites {
    fn start() -> Self {
        let of = |from: u32| (from..from + 2).map(Producer::start).collect();
        Self {
            east1: of(0x10),
            east2: of(0x20),
            west1: of(0x30),
        }
    }

    fn profiles(&self) -> Vec<Value> {
        let at = |site: &Vec<Producer>, locality: &str| -> Vec<Value> {
            let profile = |one: &Producer| one.profile(&json!({"locality": locality}));
            site.iter().map(profile).collect()
        };
        [
            at(&self.east1, "east1"),
            at(&self.east2, "east2"),
            at(&self.west1, "west1"),
        ]
        .concat()
    }

    fn counts(&self) -> [usize; 3] {
        [&self.east1, &self.east2, &self.west1].map(|site| site.iter().map(|one| one.count()).sum())
    }
}

/// An SCP at `east1` that reaches the west through `west`.
fn east(profiles: Vec<Value>, west: &Scp) -> Scp {
    let stage = StagePolicy {
        route: Route::LoadBalance,
        reroute: Reroute::Anywhere,
    };
    start(|config| {
        config.fqdn = "scp-east.test".into();
        config.producers = profiles;
        config.places.locality = "east1".into();
        config.places.regions = [("east", vec!["east1", "east2"]), ("west", vec!["west1"])]
            .map(|(region, places)| (region.to_owned(), places.into_iter().map(str::to_owned).collect()))
            .into();
        config.next_hops = [("west".to_owned(), vec![west.origin.to_string()])].into();
        config.policies = vec![ServicePolicy {
            initial: stage,
            subsequent: stage,
            attempts: 5,
            ..ServicePolicy::default()
        }];
        let outliers = &mut config.protection.outliers;
        outliers.consecutive_failures = 3;
        outliers.base_ejection = settings::Period::from_millis(100);
        outliers.max_ejection = settings::Period::from_millis(100);
        config.protection.breaker.open = settings::Period::from_millis(100);
        config.protection.breaker.max_open = settings::Period::from_millis(100);
        config.client.backoff_max = settings::Period::from_millis(50);
    })
}

#[test]
fn a_site_that_refuses_dies_and_comes_back_is_stood_in_for_by_the_nearest() {
    local(async {
        let sites = Sites::start();
        let west = start(|config| config.fqdn = "scp-west.test".into());
        let scp = east(sites.profiles(), &west);
        let root = sites.east1[0].root();
        // What each place has received of a hundred requests, all of them answered.
        let serve = async |phase: &str| {
            let before = sites.counts();
            for _ in 0..100 {
                let target = [("3gpp-sbi-target-apiroot", root.as_str())];
                let got = scp.ask(http::Method::GET, PATH, &target).await;
                assert_eq!(got.status, StatusCode::OK, "{phase}");
            }
            let after = sites.counts();
            let served: Vec<usize> = after
                .iter()
                .zip(before)
                .map(|(after, before)| after - before)
                .collect();
            served
        };
        assert_eq!(serve("all well").await, [100, 0, 0]);
        sites.east1.iter().for_each(|one| one.fails_with(503));
        let served = serve("east1 answers 503").await;
        assert_eq!(
            (served[1], served[2]),
            (100, 0),
            "the other site of the region serves"
        );
        sites.east1.iter().for_each(|one| one.stop());
        let served = serve("east1 is dead").await;
        assert_eq!((served[1], served[2]), (100, 0));
        sites.east2.iter().for_each(|one| one.fails_with(503));
        let served = serve("east1 is dead, east2 answers 503").await;
        assert_eq!(served[2], 100, "the other region serves, through its SCP");
        let back: Vec<Producer> = sites
            .east1
            .iter()
            .zip(0x10..)
            .map(|(one, number)| Producer::at(number, one.address))
            .collect();
        until("east1 serves again", async || {
            let target = [("3gpp-sbi-target-apiroot", root.as_str())];
            let got = scp.ask(http::Method::GET, PATH, &target).await;
            assert_eq!(got.status, StatusCode::OK);
            back.iter().any(|one| one.id == got.by())
        })
        .await;
        until("east1 serves all of it", async || {
            let before = sites.counts()[2];
            for _ in 0..20 {
                let target = [("3gpp-sbi-target-apiroot", root.as_str())];
                assert_eq!(
                    scp.ask(http::Method::GET, PATH, &target).await.status,
                    StatusCode::OK
                );
            }
            sites.counts()[2] == before
        })
        .await;
    });
}
