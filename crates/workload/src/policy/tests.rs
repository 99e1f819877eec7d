use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use callmodel::policy::PolicyModel;
use loadgen::{Answer, Draft, Fault, Ticket, Workload};

fn model(name: &str) -> PolicyModel {
    callmodel::find(name).unwrap().model.policy.unwrap()
}

fn workload(model: &PolicyModel, standing: u32) -> PolicyWorkload {
    let documents = Arc::new(Documents::new(model, "http://127.0.0.1:1"));
    let kinds = kinds(model).into_iter().enumerate().map(|(at, kind)| {
        let standing = (0..standing).map(|number| Standing {
            number,
            id: format!("{at}-{number}").into(),
        });
        let standing = standing.collect();
        (kind, standing)
    });
    PolicyWorkload::new(
        documents,
        kinds.collect(),
        Part {
            first: 1 << 20,
            step: 2,
        },
    )
}

fn answer(status: u16, body: &[u8]) -> Answer<'_> {
    Answer {
        status,
        length: body.len() as u64,
        body: Some(body),
    }
}

/// Answers as a PCF does that decides as the projects of the lab.
fn serve(workload: &mut PolicyWorkload, ticket: &Ticket, draft: &Draft) -> Result<(), Fault> {
    let path = String::from_utf8(draft.path.clone()).unwrap();
    if path.ends_with("/update") {
        return workload.judge(ticket, &answer(200, b"{}"));
    }
    if draft.method == "DELETE" || path.ends_with("/delete") {
        return workload.judge(ticket, &answer(204, b""));
    }
    let location = format!("http://pcf.example{path}/{}", ticket.first);
    workload.located(ticket, location.as_bytes());
    let gold = br#"{"suppFeat":"0","rfsp":3,"uplink":"1 Gbps","5qi":5}"#;
    let silver = br#"{"suppFeat":"0","rfsp":5,"uplink":"200 Mbps","5qi":5}"#;
    let basic = br#"{"suppFeat":"0","rfsp":5,"uplink":"10 Mbps","5qi":5}"#;
    let context: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
    let supi = context["supi"].as_str().unwrap();
    let number: u64 = supi.strip_prefix("imsi-").unwrap().parse().unwrap();
    let body: &[u8] = match simulators::policy::category(number) {
        "gold" => gold,
        "silver" => silver,
        _ => basic,
    };
    workload.judge(ticket, &answer(201, body))
}

#[test]
fn shares_are_those_of_each_model_and_the_level_is_kept() {
    for name in callmodel::names().filter(|name| name.starts_with("policy/")) {
        let model = model(name);
        if model.gx.is_some() {
            // Those have a workload of their own.
            continue;
        }
        let mut workload = workload(&model, 500);
        let before = workload.standing();
        let mut random = SmallRng::seed_from_u64(7);
        let mut counts = [0_u32; 9];
        for _ in 0..30_000 {
            let mut draft = Draft::default();
            let ticket = workload.next(&mut random, &mut draft);
            counts[usize::from(ticket.operation)] += 1;
            serve(&mut workload, &ticket, &draft).unwrap();
        }
        let rates = [model.sm_rates(), model.am, model.ue];
        let rates = rates
            .iter()
            .flat_map(|rates| [rates.create, rates.update, rates.delete]);
        for ((count, rate), operation) in counts.iter().zip(rates).zip(OPERATIONS) {
            let (got, wanted) = (f64::from(*count) / 30_000.0, rate / model.transactions());
            assert!(
                (got - wanted).abs() < 0.015,
                "{name} {operation}: {got} instead of {wanted}"
            );
        }
        let after = workload.standing();
        assert!(
            (before / 2..before * 2).contains(&after),
            "{name}: {after} of {before}"
        );
    }
}

#[test]
fn contexts_are_json_with_the_mandatory_members() {
    for name in ["policy/sm-41k", "policy/am-ue-75k"] {
        let model = model(name);
        let documents = Documents::new(&model, "http://127.0.0.1:1");
        for kind in kinds(&model) {
            let context: serde_json::Value =
                serde_json::from_slice(&documents.context(&kind, 12_345_678)).unwrap();
            let mandatory: &[&str] = match kind.service {
                Service::Sm => &[
                    "supi",
                    "pduSessionId",
                    "pduSessionType",
                    "dnn",
                    "notificationUri",
                    "sliceInfo",
                ],
                Service::Am | Service::Ue => &["notificationUri", "supi", "suppFeat"],
            };
            for member in mandatory {
                assert!(context.get(member).is_some(), "{name}: {member}");
            }
            for turn in 0..4 {
                serde_json::from_slice::<serde_json::Value>(&Documents::update(&kind, turn)).unwrap();
            }
        }
    }
}

#[test]
fn a_policy_of_another_category_is_a_failure() {
    let model = model("policy/sm-30k");
    let mut workload = workload(&model, 0);
    let mut random = SmallRng::seed_from_u64(7);
    let mut draft = Draft::default();
    let ticket = workload.next(&mut random, &mut draft);
    workload.located(
        &ticket,
        b"http://pcf.example/npcf-smpolicycontrol/v1/sm-policies/1",
    );
    let verdict = workload.judge(&ticket, &answer(201, br#"{"uplink":"3 bps"}"#));
    assert!(matches!(verdict, Err(Fault::Body(_))), "{verdict:?}");
    draft.clear();
    let ticket = workload.next(&mut random, &mut draft);
    workload.located(&ticket, b"http://pcf.example/elsewhere/1");
    let verdict = workload.judge(&ticket, &answer(201, b"{}"));
    assert!(matches!(verdict, Err(Fault::Body(_))), "{verdict:?}");
    draft.clear();
    let ticket = workload.next(&mut random, &mut draft);
    assert_eq!(workload.judge(&ticket, &answer(403, b"{}")), Err(Fault::Status));
    workload.lost(&ticket);
}
