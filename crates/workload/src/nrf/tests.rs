//! The NRF's traffic without an NRF.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::setup::Subscription;
use super::traffic::{OPERATIONS, Shared};
use super::*;
use callmodel::{self, nrf::NrfModel};
use loadgen::{Answer, Draft, Fault, Ticket, Workload};

fn model(name: &str) -> NrfModel {
    callmodel::find(name).unwrap().model.nrf.unwrap()
}

fn workload(model: &NrfModel) -> (NrfWorkload, Shared, Population) {
    let population = Population::new(model);
    let plan = Arc::new(Plan::new(model, &population));
    let standing: Vec<Subscription> = plan
        .conditions
        .iter()
        .enumerate()
        .map(|(at, condition)| Subscription {
            id: format!("s{at}"),
            condition: condition.clone(),
        })
        .collect();
    let shared = Shared {
        queries: Arc::new(Queries::new(model, &population)),
        plan,
        sinks: vec!["127.0.0.1:9".parse().unwrap()],
        expected: Arc::default(),
    };
    (
        NrfWorkload::new(model, &population, &standing, &shared, (0, 1)),
        shared,
        population,
    )
}

#[test]
fn profiles_have_the_size_the_model_says_and_are_json() {
    for name in callmodel::names().filter(|name| name.starts_with("nrf/")) {
        let model = model(name);
        for function in Population::new(&model).functions {
            let text = profiles::profile(&function, 30, Some("127.0.0.1:80".parse().unwrap()));
            let off = text.len() as i64 - i64::from(function.bytes);
            assert!(
                (-4..=0).contains(&off),
                "{} {}: {} bytes",
                function.kind,
                function.number,
                text.len()
            );
            let profile: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(profile["nfInstanceId"].as_str().unwrap().len(), 36);
        }
    }
}

#[test]
fn the_mix_is_the_model_s() {
    let model = model("nrf/51k");
    let (mut workload, ..) = workload(&model);
    let mut random = SmallRng::seed_from_u64(1);
    let mut draft = Draft::default();
    let mut counts = [0_u32; OPERATIONS.len()];
    let draws = 2_000_000;
    for _ in 0..draws {
        draft.clear();
        let ticket = workload.next(&mut random, &mut draft);
        counts[usize::from(ticket.operation)] += 1;
        // Answers keep the churn going.
        match OPERATIONS[usize::from(ticket.operation)] {
            "nfStatusSubscribe" => {
                answer(&mut workload, ticket, 201, json!({ "subscriptionId": "new" })).unwrap();
            }
            "nfRegister" => answer(&mut workload, ticket, 201, json!({})).unwrap(),
            "nfDeregister" | "nfStatusUnsubscribe" => answer(&mut workload, ticket, 204, json!({})).unwrap(),
            _ => {}
        }
    }
    let per_second = |name: &str| {
        let at = OPERATIONS.iter().position(|o| *o == name).unwrap();
        f64::from(counts[at]) / f64::from(draws) * model.operations.total()
    };
    let close =
        |got: f64, wanted: f64, by: f64| assert!((got / wanted - 1.0).abs() < by, "{got} for {wanted}");
    close(per_second("nfDiscover.forwarded"), 5160.0, 0.02);
    close(per_second("nfDiscover.fromNrf"), 5160.0, 0.02);
    close(
        per_second("nfHeartbeat") + per_second("nfHeartbeat.load"),
        52.0,
        0.1,
    );
    close(per_second("nfStatusSubscribe.update"), 6.0, 0.2);
    assert!(per_second("nfRegister") > 0.3 && per_second("nfStatusUnsubscribe") > 0.3);
    let slf = per_second("nfDiscover.slf") + per_second("nfDiscover.forwarded");
    // Of those from another NRF the same share asks the SLF.
    close(slf, model.slf_queries() * 0.9, 0.03);
}

fn answer(workload: &mut NrfWorkload, ticket: Ticket, status: u16, body: Value) -> Result<(), Fault> {
    let body = body.to_string();
    let answer = Answer {
        status,
        length: body.len() as u64,
        body: Some(body.as_bytes()),
    };
    workload.judge(&ticket, &answer)
}

#[test]
fn every_query_finds_as_many_profiles_as_it_must() {
    for name in ["nrf/5k", "nrf/38k", "nrf/51k"] {
        let model = model(name);
        let population = Population::new(&model);
        let queries = Queries::new(&model, &population);
        for query in queries.all().iter().filter(|q| q.kind == Kind::Local) {
            let path = String::from_utf8(query.path.clone()).unwrap();
            let found = population
                .functions
                .iter()
                .filter(|f| f.nf_type() == query.target && matches(f, &path));
            let count = found.count().min(model.features.max_profiles as usize);
            assert_eq!(count, query.profiles as usize, "{path}");
        }
    }
}

/// A reading of the lab's own queries, simple enough to be right at sight.
fn matches(function: &Function, path: &str) -> bool {
    let value = |name: &str| {
        path.split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    };
    let profile: Value = serde_json::from_str(&profiles::profile(function, 30, None)).unwrap();
    let text = profile.to_string();
    let groups = value("group-id-list").is_none_or(|g| Some(g.to_owned()) == function.group());
    let services =
        value("service-names").is_none_or(|names| names.split(',').any(|n| function.services().contains(&n)));
    let holds = |name: &str| value(name).is_none_or(|v| text.contains(&format!("\"{v}\"")));
    let amf = value("guami").is_none_or(|_| path.contains(&profiles::amf_id(function.cell)));
    groups && services && amf && ["dnn", "pgw", "routing-indicator"].into_iter().all(holds)
}

#[test]
fn wrong_answers_are_failures() {
    let model = model("nrf/5k");
    let (mut workload, shared, population) = workload(&model);
    let at = shared
        .queries
        .all()
        .iter()
        .position(|q| q.kind == Kind::Slf && q.target == "UDM")
        .unwrap();
    let ticket = Ticket {
        operation: 0,
        first: at as u32,
        second: 0,
    };
    let instances: Vec<Value> = population
        .of("UDM")
        .map(|f| serde_json::from_str(&profiles::profile(f, 30, None)).unwrap())
        .collect();
    let right = json!({ "validityPeriod": 60, "nfInstances": instances });
    assert_eq!(answer(&mut workload, ticket, 200, right.clone()), Ok(()));
    assert_eq!(shared.expected.slf_queries.load(Ordering::Relaxed), 1);
    assert_eq!(answer(&mut workload, ticket, 503, json!({})), Err(Fault::Status));
    for (what, wrong) in [
        (
            "5 profiles",
            json!({ "validityPeriod": 60, "nfInstances": instances[..5] }),
        ),
        ("validityPeriod", json!({ "nfInstances": instances })),
        ("nfInstances", json!({ "validityPeriod": 60 })),
    ] {
        let Err(Fault::Body(why)) = answer(&mut workload, ticket, 200, wrong) else {
            panic!("{what} passed")
        };
        assert!(why.contains(what), "{why}");
    }
    // A length that was read and right is not read again, another one is.
    let length = right.to_string().len() as u64;
    use loadgen::Interest::{Body, Skip};
    assert_eq!(workload.interest(&ticket, 200, Some(length)), Skip);
    assert_eq!(workload.interest(&ticket, 200, Some(length + 1)), Body);
    assert_eq!(workload.interest(&ticket, 200, None), Body);
}

#[test]
fn heartbeats_cause_the_notifications_of_the_model() {
    let model = model("nrf/51k");
    let (mut workload, shared, _) = workload(&model);
    let mut random = SmallRng::seed_from_u64(2);
    let mut draft = Draft::default();
    let mut drawn = 0_u32;
    while drawn < 3_000_000 {
        draft.clear();
        let ticket = workload.next(&mut random, &mut draft);
        drawn += 1;
        match OPERATIONS[usize::from(ticket.operation)] {
            "nfHeartbeat" | "nfHeartbeat.load" | "nfUpdate" | "nfStatusUnsubscribe" | "nfDeregister" => {
                answer(&mut workload, ticket, 204, json!({})).unwrap();
            }
            "nfRegister" => answer(&mut workload, ticket, 201, json!({})).unwrap(),
            "nfStatusSubscribe" => {
                answer(&mut workload, ticket, 201, json!({ "subscriptionId": "n" })).unwrap();
            }
            _ => {}
        }
    }
    let seconds = f64::from(drawn) / model.operations.total();
    let rate = shared.expected.notifications.load(Ordering::Relaxed) as f64 / seconds;
    assert!((rate / model.outgoing.notifications - 1.0).abs() < 0.1, "{rate}");
}
