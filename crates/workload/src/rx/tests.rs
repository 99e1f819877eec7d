use std::time::Duration;

use diameter_proto::known::{self, application, command};
use diameter_proto::{Dictionary, Message, ResultCode, check};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use settings::{Percent, Period};

use super::*;
use callmodel::PriorityShare;
use loadgen::Ticket;
use loadgen::diameter::{Introduction, Requests, Turn};
use simulators::diameter::pcf::Pcf;
use simulators::diameter::{DiameterSettings, Node, Role};

fn plan(shares: Shares) -> AfPlan {
    AfPlan {
        realm: "pcf.example".to_owned(),
        shares,
        most_sessions: 50,
        priorities: Vec::new(),
        before: vec!["bindingCreate".to_owned()],
        first: 0,
    }
}

/// AFs and a PCF joined in memory: the PCF's answers to this many requests, by operation and result.
fn talk(afs: &mut Afs, pcf: &mut Pcf, count: usize) -> Vec<(u16, Result<(), loadgen::Fault>)> {
    let (mut random, mut other) = (SmallRng::seed_from_u64(1), SmallRng::seed_from_u64(2));
    let lines = [af(0, "ims.example"), af(1, "ims.example")];
    let server = Introduction::new("pcf000.pcf.example", "pcf.example", application::RX);
    let node = Node {
        number: 0,
        introduction: &server,
    };
    let mut done = Vec::new();
    for n in 0..count {
        let (mut out, mut answer) = (Vec::new(), Vec::new());
        let turn = Turn {
            line: n % 2,
            introduction: &lines[n % 2],
        };
        let next = afs.next(&mut random, turn, &mut out);
        let request = Message::parse(&out[..]).unwrap();
        check::check(&request, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
        assert_eq!(
            request.require(known::ORIGIN_HOST).unwrap(),
            lines[next.line].origin.host
        );
        let outcome = pcf.answer(node, request, &mut other, &mut answer);
        assert!(!outcome.bad);
        let message = Message::parse(&answer[..]).unwrap();
        check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
        done.push((next.ticket.operation, afs.judge(&next.ticket, message)));
        for (_, request) in outcome.then {
            let request = Message::parse(&request[..]).unwrap();
            check::check(&request, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
            let mut answer = Vec::new();
            afs.asked(turn, request, &mut answer);
            let answer = Message::parse(&answer[..]).unwrap();
            assert_eq!(answer.command(), request.command());
            assert_eq!(answer.require(known::RESULT_CODE).unwrap(), ResultCode::SUCCESS.0);
        }
    }
    done
}

#[test]
fn sessions_begin_go_on_and_end() {
    let shares = Shares {
        initial: 1.0,
        update: 1.0,
        termination: 1.0,
    };
    let mut afs = Afs::new(plan(shares), Box::new(UePool::default()));
    let mut pcf = Pcf::new(&DiameterSettings::default());
    let done = talk(&mut afs, &mut pcf, 3000);
    assert!(done.iter().all(|(_, verdict)| verdict.is_ok()), "{done:?}");
    for operation in 1..=3 {
        let count = done.iter().filter(|(o, _)| *o == operation).count();
        assert!((800..1200).contains(&count), "{operation}: {count}");
    }
    assert_eq!(afs.sessions(), pcf.sessions());
    assert_eq!(afs.operations()[1..], OPERATIONS.map(str::to_owned));
}

#[test]
fn all_requests_of_a_session_have_its_priority() {
    let shares = Shares {
        initial: 1.0,
        update: 1.0,
        termination: 1.0,
    };
    let priorities = [2, 24].map(|priority| PriorityShare {
        priority,
        weight: 1.0,
    });
    let plan = AfPlan {
        priorities: priorities.into(),
        ..plan(shares)
    };
    let mut afs = Afs::new(plan, Box::new(UePool::default()));
    let names = afs.operations();
    let mut pcf = Pcf::new(&DiameterSettings::default());
    let server = Introduction::new("pcf000.pcf.example", "pcf.example", application::RX);
    let node = Node {
        number: 0,
        introduction: &server,
    };
    let introduction = af(0, "ims.example");
    let turn = || Turn {
        line: 0,
        introduction: &introduction,
    };
    let (mut random, mut other) = (SmallRng::seed_from_u64(1), SmallRng::seed_from_u64(2));
    let mut of_sessions = std::collections::HashMap::new();
    for _ in 0..500 {
        let (mut out, mut answer) = (Vec::new(), Vec::new());
        let next = afs.next(&mut random, turn(), &mut out);
        let request = Message::parse(&out[..]).unwrap();
        let drmp = request.require(known::DRMP).unwrap();
        let name = &names[usize::from(next.ticket.operation)];
        assert!(
            name.ends_with(&format!(", priority {}", drmp * 2)),
            "{name}: {drmp}"
        );
        let session = request.require(known::SESSION_ID).unwrap().to_owned();
        assert_eq!(*of_sessions.entry(session).or_insert(drmp), drmp);
        pcf.answer(node, request, &mut other, &mut answer);
        afs.judge(&next.ticket, Message::parse(&answer[..]).unwrap())
            .unwrap();
    }
    let all: std::collections::HashSet<_> = of_sessions.values().collect();
    assert_eq!(all.len(), 2);
}

#[test]
fn a_pcf_asks_again_and_aborts() {
    let shares = Shares {
        initial: 1.0,
        update: 0.0,
        termination: 0.0,
    };
    let ues = UePool {
        ipv6: true,
        ..UePool::default()
    };
    let mut afs = Afs::new(plan(shares), Box::new(ues));
    let mut pcf = Pcf::new(&DiameterSettings {
        rar: Percent::new(50.0),
        asr: Percent::new(50.0),
        rar_after: Period(Duration::ZERO),
        ..DiameterSettings::default()
    });
    let done = talk(&mut afs, &mut pcf, 1000);
    let ended = done.iter().filter(|(operation, _)| *operation == 3).count();
    assert!(done.iter().all(|(_, verdict)| verdict.is_ok()));
    // Each ASR is followed by an STR, and at most 50 sessions stand otherwise.
    assert!((300..700).contains(&ended), "{ended}");
    assert!(afs.sessions() <= 51 && afs.sessions() == pcf.sessions());
    assert!(afs.heard() > 500);
}

#[test]
fn a_lost_session_is_removed_and_an_unknown_one_not_used_again() {
    let shares = Shares {
        initial: 1.0,
        update: 1.0,
        termination: 0.0,
    };
    let mut afs = Afs::new(plan(shares), Box::new(UePool::default()));
    let mut pcf = Pcf::new(&DiameterSettings::default());
    talk(&mut afs, &mut pcf, 10);
    let before = afs.sessions();
    let introduction = af(0, "ims.example");
    let turn = Turn {
        line: 0,
        introduction: &introduction,
    };
    let mut random = SmallRng::seed_from_u64(3);
    let mut out = Vec::new();
    let next = afs.next(&mut random, turn, &mut out);
    afs.lost(&next.ticket);
    assert!(afs.sessions() <= before);
    let answer = Message::parse(&out[..]).unwrap();
    assert!(afs.judge(&next.ticket, answer).is_err());
    assert!(afs.judge(&Ticket::default(), answer).is_err());
    out.clear();
    let mut stranger = diameter_proto::MessageBuilder::request(command::ABORT_SESSION, application::RX);
    stranger.put(known::SESSION_ID, "x;99;rx");
    let stranger = stranger.finish().unwrap().freeze();
    afs.asked(turn, stranger.view(), &mut out);
    let answer = Message::parse(&out[..]).unwrap();
    assert_eq!(
        answer.require(known::RESULT_CODE).unwrap(),
        ResultCode::UNKNOWN_SESSION_ID.0
    );
}
