use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use callmodel;
use callmodel::bsf::Operations;
use loadgen::{Answer, Draft, Fault, Ticket, Workload};

fn workload(operations: Operations, standing: u32) -> BsfWorkload {
    let standing = (0..standing)
        .map(|number| Binding {
            number,
            id: format!("{number:032x}").into(),
        })
        .collect::<Vec<_>>();
    let part = Part {
        first: 1 << 20,
        step: 2,
    };
    BsfWorkload::new(&operations, Arc::new(Sessions::new(2)), standing, part)
}

fn answer(status: u16, body: &[u8]) -> Answer<'_> {
    Answer {
        status,
        length: body.len() as u64,
        body: Some(body),
    }
}

/// Answers as a BSF does that has everything.
fn serve(workload: &mut BsfWorkload, ticket: &Ticket, draft: &Draft) -> Result<(), Fault> {
    match draft.method {
        "POST" => {
            let location = format!("http://bsf.example{COLLECTION}/{:032x}", ticket.first);
            workload.located(ticket, location.as_bytes());
            workload.judge(ticket, &answer(201, &draft.body))
        }
        "DELETE" => workload.judge(ticket, &answer(204, b"")),
        _ => {
            let body = Sessions::new(2).body(ticket.first);
            workload.judge(ticket, &answer(200, &body))
        }
    }
}

#[test]
fn shares_are_those_of_each_model_and_the_level_is_kept() {
    for name in callmodel::names().filter(|name| name.starts_with("bsf/")) {
        let model = callmodel::find(name).unwrap().model.bsf.unwrap();
        let mut workload = workload(model.operations, 1000);
        let mut random = SmallRng::seed_from_u64(7);
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            let mut draft = Draft::default();
            let ticket = workload.next(&mut random, &mut draft);
            counts[usize::from(ticket.operation)] += 1;
            serve(&mut workload, &ticket, &draft).unwrap();
        }
        let Operations {
            binding_create,
            binding_delete,
            binding_discover,
        } = model.operations;
        let total = model.operations.total();
        for (count, rate) in counts
            .iter()
            .zip([binding_create, binding_delete, binding_discover])
        {
            let (got, wanted) = (f64::from(*count) / 30_000.0, rate / total);
            assert!((got - wanted).abs() < 0.015, "{name}: {got} instead of {wanted}");
        }
        assert!((400..2200).contains(&workload.standing()), "{name}");
    }
}

#[test]
fn wrong_answers_are_failures() {
    let only = |create, discover| Operations {
        binding_create: create,
        binding_discover: discover,
        ..Operations::default()
    };
    let mut random = SmallRng::seed_from_u64(7);
    let mut draft = Draft::default();

    let mut creating = workload(only(1.0, 0.0), 0);
    let ticket = creating.next(&mut random, &mut draft);
    assert_eq!(creating.judge(&ticket, &answer(200, b"")), Err(Fault::Status));
    draft.clear();
    let ticket = creating.next(&mut random, &mut draft);
    creating.located(&ticket, b"http://bsf.example/elsewhere/1");
    let verdict = creating.judge(&ticket, &answer(201, &draft.body));
    assert!(matches!(verdict, Err(Fault::Body(_))), "{verdict:?}");
    assert_eq!(creating.standing(), 0);

    let mut looking = workload(only(0.0, 1.0), 100);
    draft.clear();
    let ticket = looking.next(&mut random, &mut draft);
    let other = Sessions::new(2).body(ticket.first ^ 2);
    assert_eq!(looking.judge(&ticket, &answer(204, b"")), Err(Fault::Status));
    let verdict = looking.judge(&ticket, &answer(200, &other));
    assert!(matches!(verdict, Err(Fault::Body(_))), "{verdict:?}");
}

#[test]
fn a_lost_registration_frees_its_place() {
    let create = Operations {
        binding_create: 1.0,
        ..Operations::default()
    };
    let mut workload = workload(create, 0);
    let mut random = SmallRng::seed_from_u64(7);
    for _ in 0..3 {
        let ticket = workload.next(&mut random, &mut Draft::default());
        assert_eq!(ticket.second, 0);
        workload.lost(&ticket);
    }
}

#[test]
fn a_refused_removal_leaves_the_binding() {
    let delete = Operations {
        binding_delete: 1.0,
        ..Operations::default()
    };
    let mut workload = workload(delete, 100);
    let mut random = SmallRng::seed_from_u64(7);
    for (status, left) in [(503, 100), (429, 100), (204, 99), (404, 98)] {
        let mut draft = Draft::default();
        let ticket = workload.next(&mut random, &mut draft);
        assert_eq!((draft.method, ticket.second), ("DELETE", 0));
        let _ = workload.judge(&ticket, &answer(status, b""));
        assert_eq!(workload.standing(), left, "{status}");
    }
    let mut draft = Draft::default();
    let ticket = workload.next(&mut random, &mut draft);
    workload.lost(&ticket);
    assert_eq!(workload.standing(), 97);
}

#[test]
fn requests_carry_the_priorities_that_reports_distinguish() {
    let model = callmodel::find("bsf/overload-3x").unwrap().model.bsf.unwrap();
    let mut workload = workload(model.operations, 1000).with_priorities(&model.priorities);
    let names = workload.operations();
    let mut random = SmallRng::seed_from_u64(7);
    for _ in 0..1000 {
        let mut draft = Draft::default();
        let ticket = workload.next(&mut random, &mut draft);
        let (name, value) = &draft.headers[0];
        let operation = match draft.method {
            "POST" => "bindingCreate",
            "DELETE" => "bindingDelete",
            _ => "bindingDiscover",
        };
        assert_eq!(*name, "3gpp-sbi-message-priority");
        assert_eq!(
            names[usize::from(ticket.operation)],
            format!("{operation}, priority {value}")
        );
        serve(&mut workload, &ticket, &draft).unwrap();
    }
}

#[test]
fn bindings_are_json_with_one_address_each() {
    let sessions = Sessions::new(2);
    for number in [0, 1, 2, 3, 65_536, u32::MAX] {
        let binding: serde_json::Value = serde_json::from_slice(&sessions.body(number)).unwrap();
        assert_eq!(binding["supi"], sessions.supi(number));
        let (kind, address) = sessions.address(number);
        assert_eq!(binding[kind], address);
        assert!(binding.get("ipv4Addr").is_some() != binding.get("ipv6Prefix").is_some());
        assert!(sessions.query(number).contains(kind));
        let bytes = sessions.body(number).len();
        assert!((335..=370).contains(&bytes), "{bytes} bytes");
    }
    assert_eq!(sessions.supi(4), sessions.supi(5));
    assert_eq!(
        Sessions::new(1).query(1),
        format!("{COLLECTION}?ipv6Prefix=2001%3Adb8%3A0%3A1%3A%3A%2F64&dnn=ims")
    );
}

#[test]
fn numbers_are_shared_out_without_a_list() {
    let all = Numbers {
        first: 5,
        step: 3,
        count: 10,
    };
    let list: Vec<u32> = all.iter().collect();
    assert_eq!((list.len(), list[0], list[9]), (10, 5, 32));
    let (old, young) = (all.to(4), all.from(4));
    assert!(old.iter().chain(young.iter()).eq(list.iter().copied()));
    assert_eq!((all.to(20).count, all.from(20).count), (10, 0));
    let mut shared: Vec<u32> = (0..3).flat_map(|of| all.share(of, 3).iter()).collect();
    shared.sort_unstable();
    assert_eq!(shared, list);
    assert_eq!(all.share(11, 12).count, 0);
    let mut left = all.to(1);
    assert_eq!((left.pop(), left.pop()), (Some(5), None));
}

#[test]
fn the_oldest_go_first_and_identities_follow_from_numbers() {
    let before = Numbers {
        first: 7,
        step: 1,
        count: 2,
    };
    let mut stock = Stock::from(before);
    stock.push(Binding {
        number: 99,
        id: "later".into(),
    });
    assert_eq!(
        (stock.number(0), stock.number(2), stock.number(3)),
        (Some(7), Some(99), None)
    );
    let ids: Vec<String> = std::iter::from_fn(|| stock.pop())
        .map(|binding| binding.id.into())
        .collect();
    assert_eq!(
        ids,
        [
            Sessions::id(7).to_string(),
            Sessions::id(8).to_string(),
            "later".to_owned()
        ]
    );
    assert!(stock.is_empty());
    let mut ids: Vec<_> = (0..100_000).map(Sessions::id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100_000);
}
