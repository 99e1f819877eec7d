use std::collections::HashMap;
use std::sync::Arc;

use callmodel::policy::Rates;
use diameter_proto::known::{self, application, command};
use diameter_proto::{Dictionary, Message, MessageBuilder, ResultCode, check};
use loadgen::diameter::{Requests, Turn, append};
use loadgen::{Fault, Ticket};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::{ChargingClients, Counts, Kind, Messages, Plan, Refused, ctf};

fn plan() -> Plan {
    Plan {
        gy: Rates {
            create: 1.0,
            update: 2.0,
            delete: 1.0,
        },
        events: 0.2,
        nodes: 2,
        first_node: 4,
        first: 1,
        step: 3,
        standing: 7,
        most_sessions: 20,
    }
}

fn clients(counts: &Arc<Counts>) -> ChargingClients {
    let messages = Messages::new("ocs.example", 100).unwrap();
    ChargingClients::new(plan(), &Arc::new(messages), counts)
}

/// Sends the next request; its bytes, and its ticket.
fn next(clients: &mut ChargingClients, random: &mut SmallRng) -> (Vec<u8>, Ticket) {
    let own = ctf(4);
    let turn = Turn {
        line: 0,
        introduction: &own,
    };
    let mut out = Vec::new();
    let next = clients.next(random, turn, &mut out);
    let request = Message::parse(&out[..]).unwrap();
    check::check(&request, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
    let host = request.require(known::ORIGIN_HOST).unwrap();
    assert_eq!(host, ctf(4 + next.line).origin.host);
    assert!(request.require(known::SESSION_ID).unwrap().starts_with(host));
    (out, next.ticket)
}

/// The answer to a request, with this number.
fn answer(request: &[u8], code: ResultCode, number: u32) -> Vec<u8> {
    let request = Message::parse(request).unwrap();
    let mut answer = MessageBuilder::answer(&request);
    answer.result(code, &ctf(0).origin);
    answer
        .put(
            known::CC_REQUEST_TYPE,
            request.require(known::CC_REQUEST_TYPE).unwrap(),
        )
        .put(known::CC_REQUEST_NUMBER, number);
    let services = Dictionary::standard().avp_named("Multiple-Services-Credit-Control");
    let services = services.unwrap();
    answer.put_raw(services.key, services.flags(), &[]);
    let mut out = Vec::new();
    append(answer, &mut out);
    out
}

#[test]
fn the_numbers_of_each_session_follow_one_another() {
    let counts = Arc::new(Counts::default());
    let (mut clients, mut random) = (clients(&counts), SmallRng::seed_from_u64(1));
    // Those that stand have had their first.
    let mut numbers: HashMap<u32, u32> = [(1, 0), (4, 0)].into();
    let mut sent = [0_u64; 4];
    for _ in 0..2_000 {
        let (request, ticket) = next(&mut clients, &mut random);
        sent[usize::from(ticket.operation)] += 1;
        assert_eq!(ticket.first % 3, 1);
        let expected = numbers.get(&ticket.first).map_or(0, |last| last + 1);
        assert_eq!(ticket.second, expected, "{}", ticket.first);
        let begins = [Kind::Initial as u16, Kind::Event as u16].contains(&ticket.operation);
        assert_eq!(begins, ticket.second == 0);
        numbers.insert(ticket.first, ticket.second);
        let answer = answer(&request, ResultCode::SUCCESS, ticket.second);
        clients
            .judge(&ticket, Message::parse(&answer[..]).unwrap())
            .unwrap();
    }
    assert!(sent.iter().all(|count| *count > 50), "{sent:?}");
    let seen = counts.seen();
    assert_eq!((seen.sent, seen.answered), (2_000, 2_000));
    assert_eq!(seen.updates, [sent[1], sent[1]]);
}

#[test]
fn an_answer_to_another_number_is_wrong_and_a_refusal_ends_the_session() {
    let counts = Arc::new(Counts::default());
    let (mut clients, mut random) = (clients(&counts), SmallRng::seed_from_u64(1));
    let (request, ticket) = next(&mut clients, &mut random);
    let wrong = answer(&request, ResultCode::SUCCESS, ticket.second + 1);
    let judged = clients.judge(&ticket, Message::parse(&wrong[..]).unwrap());
    assert!(matches!(judged, Err(Fault::Body(text)) if text.contains("CC-Request-Number")));
    let (request, ticket) = next(&mut clients, &mut random);
    let refusal = answer(&request, ResultCode::UNABLE_TO_DELIVER, ticket.second);
    let judged = clients.judge(&ticket, Message::parse(&refusal[..]).unwrap());
    assert!(matches!(judged, Err(Fault::Status)));
    let refused = Refused {
        kind: Kind::ALL[usize::from(ticket.operation)],
        session: ticket.first,
        number: ticket.second,
        code: 3002,
    };
    assert_eq!(counts.refused(), [refused]);
    for _ in 0..500 {
        let (request, later) = next(&mut clients, &mut random);
        assert_ne!(later.first, ticket.first);
        let answer = answer(&request, ResultCode::SUCCESS, later.second);
        clients
            .judge(&later, Message::parse(&answer[..]).unwrap())
            .unwrap();
    }
}

#[test]
fn a_rar_counts_at_the_gateway_of_its_session_alone() {
    let counts = Arc::new(Counts::default());
    let mut clients = clients(&counts);
    for (line, expected) in [(0, 2001), (1, 5002)] {
        let own = ctf(4 + line);
        let mut request = MessageBuilder::request(command::RE_AUTH, application::CREDIT_CONTROL);
        request.put(known::SESSION_ID, "ctf004.epc.example;0000000001;gy");
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        append(request, &mut bytes);
        let turn = Turn {
            line,
            introduction: &own,
        };
        clients.asked(turn, Message::parse(&bytes[..]).unwrap(), &mut out);
        let answer = Message::parse(&out[..]).unwrap();
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), expected);
    }
    assert_eq!(counts.seen().re_auths, 1);
}
