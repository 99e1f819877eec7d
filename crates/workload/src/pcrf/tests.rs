use std::sync::Arc;

use callmodel::policy::Rates;
use diameter_proto::known::{self, application, command};
use diameter_proto::{Dictionary, Message, MessageBuilder, ResultCode, check};
use loadgen::diameter::{Introduction, Requests, Turn, append};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::{Counts, OPERATIONS, PcrfClients, Plan};

fn clients(counts: &Arc<Counts>, usage: bool) -> PcrfClients {
    PcrfClients::new(plan(usage), counts)
}

fn plan(usage: bool) -> Plan {
    let each = |rate| Rates {
        create: rate,
        update: rate,
        delete: rate,
    };
    Plan {
        gx: each(1.0),
        rx: each(1.0),
        realm: "example.org".to_owned(),
        apn: "ims".to_owned(),
        subscribers: 100,
        usage,
        nodes: 2,
        first: 3,
        step: 5,
        first_node: 0,
        most_sessions: 50,
        each: 1,
        has_alternate_keys: false,
        are_in_pairs: false,
    }
}

fn pcrf() -> Introduction {
    Introduction::new("pcf.example.org", "example.org", application::GX)
}

/// A RAR that installs or removes a rule of this name at the PCEF of a session.
fn rar(session: &str, installs: bool, rule: &[u8]) -> Vec<u8> {
    let mut request = MessageBuilder::request(command::RE_AUTH, application::GX);
    request.put(known::SESSION_ID, session);
    match installs {
        true => request.group(known::CHARGING_RULE_INSTALL, |group| {
            group.group(known::CHARGING_RULE_DEFINITION, |rules| {
                rules.put(known::CHARGING_RULE_NAME, rule);
            });
        }),
        false => request.group(known::CHARGING_RULE_REMOVE, |group| {
            group.put(known::CHARGING_RULE_NAME, rule);
        }),
    };
    let mut out = Vec::new();
    append(request, &mut out);
    out
}

/// The result of the answer to a RAR at the node of this connection.
fn answered(clients: &mut PcrfClients, line: usize, request: &[u8]) -> u32 {
    let (own, mut out) = (clients.nodes().swap_remove(line), Vec::new());
    let turn = Turn {
        line,
        introduction: &own,
    };
    clients.asked(turn, Message::parse(request).unwrap(), &mut out);
    Message::parse(&out[..])
        .unwrap()
        .require(known::RESULT_CODE)
        .unwrap()
}

/// Answers this many requests, all as a PCRF would, and installs a rule for each call.
fn talk(clients: &mut PcrfClients, count: usize, with_rule: bool) -> (Vec<u64>, u64) {
    let (mut random, own) = (SmallRng::seed_from_u64(1), pcrf());
    let nodes = clients.nodes();
    let (mut right, mut wrong) = (vec![0; OPERATIONS.len()], 0);
    for _ in 0..count {
        let mut out = Vec::new();
        let turn = Turn {
            line: 0,
            introduction: &nodes[0],
        };
        let next = clients.next(&mut random, turn, &mut out);
        let request = Message::parse(&out[..]).unwrap();
        check::check(&request, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
        assert_eq!(
            request.require(known::ORIGIN_HOST).unwrap(),
            nodes[next.line].origin.host
        );
        let session = request.require(known::SESSION_ID).unwrap().to_owned();
        let mut answer = MessageBuilder::answer(&request);
        answer.result(ResultCode::SUCCESS, &own.origin);
        if with_rule {
            answer.group(known::CHARGING_RULE_INSTALL, |_| {});
        }
        let mut bytes = Vec::new();
        append(answer, &mut bytes);
        match clients.judge(&next.ticket, Message::parse(&bytes[..]).unwrap()) {
            Ok(()) => right[usize::from(next.ticket.operation)] += 1,
            Err(_) => wrong += 1,
        }
        // The rules of a call reach the PCEF of its session.
        let number = session.rsplit(';').nth(1).unwrap();
        let at_pcef = format!("{};{number};gx", nodes[0].origin.host);
        match OPERATIONS[usize::from(next.ticket.operation)] {
            "rxAarInitial" => {
                let request = rar(&at_pcef, true, b"af-1");
                // Not at the other PCEF.
                assert_eq!(answered(clients, 1, &request), 5002);
                assert_eq!(answered(clients, 0, &request), 2001);
            }
            "rxStr" => assert_eq!(answered(clients, 0, &rar(&at_pcef, false, b"af-1")), 2001),
            _ => {}
        }
    }
    (right, wrong)
}

#[test]
fn sessions_and_calls_pass_through_all_requests() {
    let counts = Arc::new(Counts::default());
    let mut clients = clients(&counts, false);
    let (right, wrong) = talk(&mut clients, 3_000, true);
    assert!(wrong == 0 && right.iter().all(|count| *count > 100), "{right:?}");
    let seen = counts.seen();
    assert_eq!((seen.calls.0, seen.gx.0), (right[3], right[3]));
    assert_eq!((seen.calls.1, seen.gx.1), (right[5], right[5]));
    let followed = [right[1], right[3] + right[4]];
    assert_eq!((seen.sent, seen.accepted), (followed, followed));
    // The charging identifier of each call is reported at most once.
    assert!(seen.reported > 50 && seen.reported <= right[3], "{seen:?}");
    // A session that no PCEF has is answered as such.
    let host = clients.nodes().swap_remove(0).origin.host;
    assert_eq!(
        answered(
            &mut clients,
            0,
            &rar(&format!("{host};4294967295;gx"), true, b"x")
        ),
        5002
    );
}

#[test]
fn two_sessions_of_a_subscriber_have_prefixes_of_their_own_that_calls_name() {
    let plan = Plan {
        each: 2,
        step: 1,
        first: 0,
        has_alternate_keys: true,
        are_in_pairs: false,
        ..plan(false)
    };
    let mut clients = PcrfClients::new(plan, &Arc::default());
    let nodes = clients.nodes();
    let mut random = SmallRng::seed_from_u64(1);
    let (mut prefixes, mut calls) = (Vec::new(), 0);
    for _ in 0..300 {
        let mut out = Vec::new();
        let turn = Turn {
            line: 0,
            introduction: &nodes[0],
        };
        let next = clients.next(&mut random, turn, &mut out);
        let request = Message::parse(&out[..]).unwrap();
        check::check(&request, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
        let prefix = request.get(known::FRAMED_IPV6_PREFIX).unwrap();
        match (OPERATIONS[usize::from(next.ticket.operation)], prefix) {
            ("ccrInitial", Some([0, 64, prefix @ ..])) => {
                assert!(!prefixes.contains(&prefix.to_vec()));
                prefixes.push(prefix.to_vec());
                let mut ids = request.walk().map_while(Result::ok);
                let imsi = ids.find(|avp| avp.is(known::SUBSCRIPTION_ID)).unwrap();
                let imsi = imsi.group().get(known::SUBSCRIPTION_ID_DATA).unwrap().unwrap();
                let number = (prefixes.len() as u64 - 1) / 2 % 100;
                assert!(imsi.ends_with(&format!("{number:03}")), "{imsi}");
            }
            ("rxAarInitial", Some([0, 128, address @ ..])) => {
                calls += 1;
                assert!(address.len() == 16 && prefixes.contains(&address[..8].to_vec()));
            }
            ("ccrInitial" | "rxAarInitial", other) => panic!("{other:?}"),
            _ => {}
        }
        let mut answer = MessageBuilder::answer(&request);
        answer.result(ResultCode::SUCCESS, &pcrf().origin);
        answer.group(known::CHARGING_RULE_INSTALL, |_| {});
        let mut bytes = Vec::new();
        append(answer, &mut bytes);
        clients
            .judge(&next.ticket, Message::parse(&bytes[..]).unwrap())
            .unwrap();
    }
    assert!(prefixes.len() > 20 && calls > 20, "{calls}");
}

#[test]
fn answers_without_rules_or_quotas_are_wrong() {
    let counts = Arc::new(Counts::default());
    let (right, wrong) = talk(&mut clients(&counts, false), 300, false);
    assert!(right[0] == 0 && wrong > 20, "{right:?}");
    let (right, wrong) = talk(&mut clients(&counts, true), 300, true);
    assert!(wrong > 20 && right[0] > 20, "{right:?}");
}

#[test]
fn a_rule_whose_qos_has_no_arp_is_a_fault() {
    let answer = |fill: fn(&mut diameter_proto::AvpWriter)| {
        let mut answer = MessageBuilder::request(command::CREDIT_CONTROL, application::GX);
        answer.group(known::CHARGING_RULE_INSTALL, |install| {
            install.group(known::CHARGING_RULE_DEFINITION, |rule| {
                rule.put(known::CHARGING_RULE_NAME, b"a");
                rule.group(known::QOS_INFORMATION, |qos| {
                    qos.put(known::QOS_CLASS_IDENTIFIER, 9);
                    fill(qos);
                });
            });
        });
        answer.finish().unwrap()
    };
    assert!(!super::clients::names_bearers(answer(|_| {}).view()));
    let whole = answer(|qos| {
        qos.group(known::ALLOCATION_RETENTION_PRIORITY, |arp| {
            arp.put(known::PRIORITY_LEVEL, 8);
        });
    });
    assert!(super::clients::names_bearers(whole.view()));
}
