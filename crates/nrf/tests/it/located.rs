//! Location functions and other NRFs, each a server of its own.

use std::cell::Cell;
use std::rc::Rc;

use http::StatusCode;
use sbi::Response;
use serde_json::json;
use testpeer::sbi::Server;

use crate::support::{Nrf, config, id, local, profile, start};

/// Registers a UDM of the group with its number: `g1`, `g2` …
async fn put_grouped(nrf: &Nrf, number: u32) {
    let more = json!({"udmInfo": {"groupId": format!("g{number}")}});
    let put = nrf.put(&profile(&id(number), "UDM", "nudm-sdm", &more)).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.json);
}

#[test]
fn the_group_of_a_subscriber_is_asked_for() {
    local(async {
        let slf = Server::start(|seen| match &seen.path {
            path if path.contains("imsi-1") => sbi::json::response(StatusCode::OK, &json!({"UDM": "g2"})),
            _ => sbi::problem::Problem::new(sbi::problem::Cause::ResourceNotFound).into_response(),
        });
        let nrf = start(|config| config.slf.target_types = vec!["UDM".into()]);
        for number in [1, 2] {
            put_grouped(&nrf, number).await;
        }
        let base = "target-nf-type=UDM&requester-nf-type=AMF";
        // No NF offers the service yet: discovery continues without a group.
        assert_eq!(nrf.found(&format!("{base}&supi=imsi-1")).await.len(), 2);
        let mut udr = profile(&id(9), "UDR", "nudr-group-id-map", &json!({}));
        udr["nfServices"][0]["ipEndPoints"][0]["port"] = json!(slf.address.port());
        nrf.put(&udr).await;
        assert_eq!(nrf.found(&format!("{base}&supi=imsi-1")).await, [id(2)]);
        assert_eq!(
            nrf.found(&format!("{base}&supi=imsi-7")).await,
            Vec::<String>::new()
        );
        assert_eq!(
            nrf.found(&format!("{base}&supi=imsi-1&group-id-list=g1")).await,
            [id(1)]
        );
        let asked = slf.seen();
        assert_eq!(
            asked.len(),
            2,
            "a query that names groups needs no group: {asked:?}"
        );
        assert!(
            asked[0]
                .path
                .ends_with("/nudr-group-id-map/v1/nf-group-ids?nf-type=UDM&subscriberId=imsi-1")
        );
    });
}

/// A subscriber that is asked for all the time is not forgotten for others that are asked for once.
#[test]
fn a_full_cache_of_groups_keeps_those_in_use() {
    local(async {
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec![slf.root()];
            config.slf.cache_for = settings::Period::from_secs(600);
            config.slf.cache_size = 4;
        });
        let query = |imsi: usize| format!("target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-{imsi}");
        nrf.found(&query(0)).await;
        for other in 1..=20 {
            nrf.found(&query(other)).await;
            nrf.found(&query(0)).await;
        }
        assert_eq!(slf.seen().len(), 21, "each of them was asked for once");
    });
}

/// A subscriber identity of arbitrary length takes no memory of the cache.
#[test]
fn long_identities_are_not_cached() {
    local(async {
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec![slf.root()];
            config.slf.cache_for = settings::Period::from_secs(600);
        });
        for (length, queries) in [(253, 1), (254, 3)] {
            let user = "a".repeat(length);
            let query = format!("target-nf-type=UDM&requester-nf-type=AMF&supi=nai-{user}");
            for _ in 0..3 {
                nrf.found(&query).await;
            }
            assert_eq!(slf.take().len(), queries, "{length}");
        }
    });
}

/// What an NRF sends to others in a second is bounded: queries of location functions, and what it forwards.
#[test]
fn queries_and_forwarded_requests_keep_to_their_rates() {
    const MANY: usize = 50;
    local(async {
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let far = Server::start(|_| {
            sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 1, "nfInstances": []}))
        });
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec![slf.root()];
            config.slf.rate = 1;
            config.forwarding.rate = 1;
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                nf_types: vec!["SMF".into()],
                targets: vec![far.root()],
                ..Default::default()
            }];
        });
        put_grouped(&nrf, 1).await;
        put_grouped(&nrf, 2).await;
        let mut refused = 0;
        for number in 0..MANY {
            // Without an answer of the location function every group is found.
            let found = nrf
                .found(&format!(
                    "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-{number}"
                ))
                .await;
            assert!(found == [id(1)] || found.len() == 2, "{found:?}");
            let got = nrf.discover("target-nf-type=SMF&requester-nf-type=AMF").await;
            if got.status == StatusCode::SERVICE_UNAVAILABLE {
                assert_eq!(got.json["cause"], "NF_CONGESTION");
                refused += 1;
            }
        }
        assert!((1..MANY).contains(&slf.count()), "{}", slf.count());
        assert!(
            (1..MANY).contains(&far.count()) && refused > 0,
            "{}, {refused}",
            far.count()
        );
        assert_eq!(far.count() + refused, MANY);
    });
}

#[test]
fn a_dead_location_function_is_passed_over() {
    local(async {
        let dead = free_ports::address().unwrap();
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec![format!("http://{dead}"), slf.root()];
        });
        put_grouped(&nrf, 1).await;
        put_grouped(&nrf, 2).await;
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
        assert_eq!(nrf.found(query).await, [id(1)]);
    });
}

/// One location function behind two SCPs, whose health is not checked: the other SCP is tried when the first is dead.
#[test]
fn a_dead_scp_is_passed_over_also_with_one_location_function() {
    local(async {
        let dead = free_ports::address().unwrap();
        let scp = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec!["http://127.0.0.1:9".into()];
            config.slf.scps = vec![format!("http://{dead}"), scp.root()];
            config.slf.max_attempts = 2;
        });
        for number in [1, 2] {
            put_grouped(&nrf, number).await;
        }
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
        assert_eq!(nrf.found(query).await, [id(1)]);
        assert_eq!(scp.seen().len(), 1);
    });
}

/// Two location functions behind two SCPs: an SCP that does not answer is gone round without giving up the location
/// function, and a location function of no use without giving up the SCP.
#[test]
fn every_pair_of_scp_and_location_function_is_tried() {
    local(async {
        let dead = free_ports::address().unwrap();
        for good in ["http://127.0.0.1:1", "http://127.0.0.1:2"] {
            let scp = Server::start(move |seen| match seen.header("3gpp-sbi-target-apiroot") == good {
                true => sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})),
                false => sbi::problem::Problem::new(sbi::problem::Cause::SystemFailure).into_response(),
            });
            let nrf = start(|config| {
                config.slf.target_types = vec!["UDM".into()];
                config.slf.static_targets = vec!["http://127.0.0.1:1".into(), "http://127.0.0.1:2".into()];
                config.slf.scps = vec![format!("http://{dead}"), scp.root()];
                // One more than fails before the pair that works.
                config.slf.max_attempts = if good.ends_with('1') { 2 } else { 3 };
            });
            for number in [1, 2] {
                put_grouped(&nrf, number).await;
            }
            let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
            assert_eq!(nrf.found(query).await, [id(1)], "{good}");
            let before = scp.count();
            // The pair that works is the first from then on.
            assert_eq!(nrf.found(query).await, [id(1)]);
            assert_eq!(scp.count(), before + 1);
        }
    });
}

/// What another NRF refuses for a moment is refused with its `Retry-After`.
#[test]
fn when_to_try_again_is_passed_on() {
    local(async {
        let far = Server::start(|_| {
            let problem = sbi::problem::Problem::new(sbi::problem::Cause::TooManyRequests);
            let mut response = problem.into_response();
            response.headers_mut().set_printed("retry-after", 7);
            response
        });
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                targets: vec![far.root()],
                ..Default::default()
            }];
        });
        let got = near.discover("target-nf-type=UDM&requester-nf-type=AMF").await;
        assert_eq!(
            (got.status, got.header("retry-after")),
            (StatusCode::TOO_MANY_REQUESTS, "7")
        );
    });
}

#[test]
fn what_is_not_here_is_asked_of_another_nrf_but_not_in_circles() {
    local(async {
        let far = start(|_| {});
        far.put(&profile(&id(5), "UDM", "nudm-sdm", &json!({}))).await;
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                nf_types: vec!["UDM".into()],
                targets: vec![far.origin.to_string()],
                when_empty: true,
                ..Default::default()
            }];
        });
        let query = "target-nf-type=UDM&requester-nf-type=AMF";
        assert_eq!(near.found(query).await, [id(5)]);
        near.put(&profile(&id(6), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(near.found(query).await, [id(6)]);
        assert!(
            near.found("target-nf-type=UDR&requester-nf-type=AMF")
                .await
                .is_empty()
        );

        // Two that forward to one another answer, instead of asking for ever.
        let turn = Server::start(|_| {
            sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 1, "nfInstances": []}))
        });
        let circle = start(|config| {
            config.nf_instance_id = id(77);
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                targets: vec![turn.root()],
                ..Default::default()
            }];
        });
        let been = http::Request::get(format!("/nnrf-disc/v1/nf-instances?{query}"))
            .header("via", format!("2.0 NRF-{}", id(77)))
            .body(sbi::Body::empty())
            .unwrap();
        assert_eq!(
            circle.send(been).await.json["validityPeriod"],
            60,
            "answered here"
        );
    });
}

#[test]
fn location_queries_name_the_subscriber_and_pass_over_a_sick_scp() {
    local(async {
        let sick =
            Server::start(|_| sbi::problem::Problem::new(sbi::problem::Cause::NfCongestion).into_response());
        let well = Server::start(|seen| {
            if seen.path == "/health" {
                return Response::default();
            }
            assert_eq!(seen.header("3gpp-sbi-correlation-info"), "imsi-1");
            assert_eq!(seen.header("3gpp-sbi-target-apiroot"), "http://udr.example:80");
            sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"}))
        });
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec!["http://udr.example:80".into()];
            config.slf.scps = vec![sick.root(), well.root()];
            config.slf.scp_health_path = "/health".into();
            config.slf.scp_health_interval = settings::Period::from_millis(20);
            config.slf.max_attempts = 1;
        });
        put_grouped(&nrf, 1).await;
        while well.count() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        for _ in 0..5 {
            let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
            assert_eq!(nrf.found(query).await, [id(1)]);
        }
        assert!(
            sick.seen().iter().all(|seen| seen.path.ends_with("/health")),
            "{:?}",
            sick.seen()
        );
    });
}

#[test]
fn tokens_and_subscriptions_are_forwarded_by_rule() {
    use nrf::config::ForwardedOperation::{AccessToken, Subscription};
    local(async {
        let far = start(|_| {});
        far.put(&profile(&id(5), "UDM", "nudm-sdm", &json!({}))).await;
        far.put(&profile(&id(6), "AMF", "namf-comm", &json!({}))).await;
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                nf_types: vec!["UDM".into()],
                operations: vec![AccessToken, Subscription],
                targets: vec![far.origin.to_string()],
                when_empty: true,
                ..Default::default()
            }];
        });
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm",
            id(6)
        );
        let ask = |body: String| {
            near.ask(
                http::Method::POST,
                "/oauth2/token",
                "application/x-www-form-urlencoded",
                body,
            )
        };
        let token = ask(form.clone()).await;
        assert_eq!(token.status, StatusCode::OK, "{}", token.json);
        assert!(token.json["access_token"].is_string());
        let refused = ask(form.replace("UDM", "SMF")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);

        let wanted = |nf_type: &str| {
            json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": {"nfType": nf_type}})
                .to_string()
        };
        let path = "/nnrf-nfm/v1/subscriptions";
        let there = near
            .ask(http::Method::POST, path, "application/json", wanted("UDM"))
            .await;
        assert_eq!(there.status, StatusCode::CREATED, "{}", there.json);
        let location = there.headers["location"].to_str().unwrap();
        assert!(location.starts_with(&far.origin.to_string()), "{location}");
        let here = near
            .ask(http::Method::POST, path, "application/json", wanted("SMF"))
            .await;
        assert!(
            here.headers["location"]
                .to_str()
                .unwrap()
                .starts_with(&near.origin.to_string())
        );
    });
}

/// Another NRF that protects its services gets a token of its own from the NRF that forwards to it.
#[test]
fn what_is_forwarded_to_a_protected_nrf_has_a_token() {
    local(async {
        let far = start(|config| {
            config.tokens.protect_own_services = true;
            config.nf_instance_id = id(0xfa);
        });
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                targets: vec![far.origin.to_string()],
                ..Default::default()
            }];
        });
        for _ in 0..3 {
            let got = near.discover("target-nf-type=UDM&requester-nf-type=AMF").await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        }
        let far = far.running.as_ref().unwrap();
        assert_eq!(far.count(nrf::Event::TokenIssued), 1, "and keeps it");
        assert_eq!(far.count(nrf::Event::Discovered), 3);
    });
}

/// A consumer is not asked for a token that would not help.
#[test]
fn an_nrf_that_grants_no_access_is_not_reached() {
    local(async {
        let far =
            Server::start(|_| sbi::problem::Problem::of_status(StatusCode::UNAUTHORIZED).into_response());
        let near = start(|config| {
            config.forwarding.rules = vec![nrf::config::ForwardingRule {
                targets: vec![far.root()],
                ..Default::default()
            }];
        });
        let got = near.discover("target-nf-type=UDM&requester-nf-type=AMF").await;
        assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT, "{}", got.json);
    });
}

/// What is answered while no location function answers is a choice, and valid for seconds.
#[test]
fn without_a_location_function_the_operator_has_chosen_what_is_answered() {
    use nrf::config::WhenUnavailable::{EveryGroup, NoGroup, Refuse};
    local(async {
        let dead = free_ports::address().unwrap();
        for (choice, found) in [(EveryGroup, Some(2)), (NoGroup, Some(1)), (Refuse, None)] {
            let nrf = start(|config| {
                config.slf.target_types = vec!["UDM".into()];
                config.slf.static_targets = vec![format!("http://{dead}")];
                config.slf.when_unavailable = choice;
            });
            put_grouped(&nrf, 1).await;
            nrf.put(&profile(&id(2), "UDM", "nudm-sdm", &json!({}))).await;
            let base = "target-nf-type=UDM&requester-nf-type=AMF";
            let got = nrf.discover(&format!("{base}&supi=imsi-1")).await;
            let Some(count) = found else {
                assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT, "{}", got.json);
                continue;
            };
            assert_eq!(got.json["nfInstances"].as_array().unwrap().len(), count);
            assert_eq!(got.json["validityPeriod"], 5);
            // One that asks for no subscriber has an answer of its own.
            assert_eq!(nrf.discover(base).await.json["validityPeriod"], 60);
        }
    });
}

/// A location function that offers the service with a priority and a capacity.
fn location_function(number: u32, server: &Server, priority: u16, capacity: u16) -> serde_json::Value {
    let more = json!({"priority": priority, "capacity": capacity});
    let mut udr = profile(&id(number), "UDR", "nudr-group-id-map", &more);
    udr["nfServices"][0]["ipEndPoints"][0]["port"] = json!(server.address.port());
    udr
}

/// Location functions of one priority are queried in proportion to their capacity; one that fails gives way to the others
/// for a while, and comes back.
#[test]
fn location_functions_share_by_capacity_and_come_back() {
    local(async {
        let fails = Rc::new(Cell::new(false));
        let failing = fails.clone();
        let answer = || sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"}));
        let large = Server::start(move |_| match failing.get() {
            true => sbi::problem::Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response(),
            false => answer(),
        });
        let (small, spare) = (Server::start(move |_| answer()), Server::start(move |_| answer()));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.retry_after = settings::Period::from_millis(300);
        });
        put_grouped(&nrf, 1).await;
        let functions = [(&large, 1, 300), (&small, 1, 100), (&spare, 2, 60_000)];
        for (number, (server, priority, capacity)) in (2..).zip(functions) {
            nrf.put(&location_function(number, server, priority, capacity))
                .await;
        }
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
        for _ in 0..400 {
            assert_eq!(nrf.found(query).await, [id(1)]);
        }
        let counts = (large.count(), small.count(), spare.count());
        assert!(
            (240..360).contains(&counts.0) && (40..160).contains(&counts.1),
            "{counts:?}"
        );
        assert_eq!(counts.2, 0, "of a lower priority");
        fails.set(true);
        for _ in 0..50 {
            assert_eq!(nrf.found(query).await, [id(1)]);
        }
        let refused = large.count() - counts.0;
        assert!((1..25).contains(&refused), "{refused}");
        fails.set(false);
        let before = large.count();
        crate::support::until(async || {
            nrf.found(query).await;
            large.count() > before
        })
        .await;
        let running = nrf.running.as_ref().unwrap();
        assert_eq!(running.count(nrf::Event::SlfFailed), 0);
        let metrics = running.handle().registry().render();
        let asked = running.count(nrf::Event::SlfAsked);
        assert!(
            metrics.contains(&format!("signalbox_nrf_slf_seconds_count {asked}")),
            "{metrics}"
        );
    });
}

/// The NRF sends a query, with its token, to a registered location function only where `outgoing` permits; a reload that
/// changes `outgoing` holds for the location functions that are known already.
#[test]
fn registered_location_functions_lie_where_the_nrf_may_send_to() {
    local(async {
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let settings = |config: &mut nrf::Config| {
            config.nf_instance_id = id(0xa0);
            config.slf.target_types = vec!["UDM".into()];
            config.slf.use_access_token = true;
            config.outgoing.denied_networks = vec!["127.0.0.0/8".parse().unwrap()];
        };
        let nrf = start(settings);
        for number in [1, 2] {
            put_grouped(&nrf, number).await;
        }
        nrf.put(&location_function(3, &slf, 1, 1)).await;
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1";
        let running = nrf.running.as_ref().unwrap();
        let denied = || running.count(nrf::Event::TargetDenied);
        assert_eq!(
            nrf.found(query).await,
            [id(1), id(2)],
            "as without a location function"
        );
        assert_eq!((slf.count(), denied()), (0, 1));
        assert_eq!(running.count(nrf::Event::SlfFailed), 1);
        let shown = nrf.shown("/nrf/slf").await;
        let reason = shown[0]["refused"].as_str().unwrap();
        assert!(reason.contains("outgoing.deniedNetworks"), "{reason}");

        let mut wanted = config(nrf.directory.path());
        settings(&mut wanted);
        wanted.outgoing.denied_networks.clear();
        running.reload(&wanted).unwrap();
        assert_eq!(nrf.found(query).await, [id(1)]);
        assert_eq!((slf.count(), denied()), (1, 1));
        settings(&mut wanted);
        running.reload(&wanted).unwrap();
        assert_eq!(nrf.found(query).await.len(), 2);
        assert_eq!((slf.count(), denied()), (1, 2));

        // The operator's own setting is not checked.
        wanted.slf.static_targets = vec![slf.root()];
        running.reload(&wanted).unwrap();
        assert_eq!(nrf.found(query).await, [id(1)]);
        assert_eq!((slf.count(), denied()), (2, 2));
    });
}

/// Queries carry an access token of this NRF for the service, which is made once (TS 29.510 §6.3).
#[test]
fn location_queries_carry_a_token_that_is_made_once() {
    local(async {
        let slf = Server::start(|_| sbi::json::response(StatusCode::OK, &json!({"UDM": "g1"})));
        let nrf = start(|config| {
            config.slf.target_types = vec!["UDM".into()];
            config.slf.static_targets = vec![slf.root()];
            config.slf.use_access_token = true;
            config.nf_instance_id = id(0xa0);
        });
        for imsi in 1..4 {
            nrf.found(&format!(
                "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-{imsi}"
            ))
            .await;
        }
        let seen = slf.seen();
        let tokens: Vec<&str> = seen
            .iter()
            .map(|seen| seen.headers["authorization"].to_str().unwrap())
            .collect();
        assert!(
            tokens.len() == 3 && tokens.iter().all(|token| *token == tokens[0]),
            "{tokens:?}"
        );
        let token = tokens[0].strip_prefix("Bearer ").unwrap();
        let claims = crate::tokens::claims(&json!(token));
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"], &claims["scope"]),
            (
                &json!(id(0xa0)),
                &json!(id(0xa0)),
                &json!("UDR"),
                &json!("nudr-group-id-map")
            )
        );
        let lifetime = claims["exp"].as_u64().unwrap() - tokens_now();
        assert!(lifetime <= 86_400, "{lifetime}");
    });
}

fn tokens_now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}
