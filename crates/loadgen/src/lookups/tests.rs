use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use dp_proto::{Answer, Bundle, Frame, Kind, Outcome, Query};
use rand::Rng as _;
use rand::rngs::SmallRng;

use super::{Lookups, Question, Routers};
use crate::load::{Arrivals, FailureKind, Fault, Generator, Plan, Record, TICK, Ticket, Traffic};

/// Asks for single digits, each of which has to be answered by itself.
struct Digits;

impl Lookups for Digits {
    fn operations(&self) -> Vec<String> {
        vec!["digit".to_owned()]
    }

    fn next(&mut self, random: &mut SmallRng, value: &mut Vec<u8>) -> Question {
        let digit = random.random_range(b'0'..=b'9');
        value.push(digit);
        Question {
            ticket: Ticket {
                first: u32::from(digit),
                ..Ticket::default()
            },
            kind: Kind::Imsi,
            service: b"",
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        match answer.outcome {
            Outcome::Exact if u32::from(answer.destination[0]) == ticket.first => Ok(()),
            Outcome::Congested => Err(Fault::Status),
            _ => Err(Fault::Body("another digit".to_owned())),
        }
    }
}

/// A processor that answers `7` wrongly and `8` as congested, and ends its first connection at the first frame.
fn processor() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            std::thread::spawn(move || serve(stream, number == 0));
        }
    });
    address
}

fn serve(mut stream: TcpStream, ends: bool) {
    let (mut input, mut chunk) = (Vec::new(), vec![0; 4096]);
    while let Some(count) = stream.read(&mut chunk).ok().filter(|count| *count > 0) {
        if ends {
            return;
        }
        input.extend_from_slice(&chunk[..count]);
        let mut out = Bundle::default();
        while let Some((frame, length)) = Frame::<Query<'_>>::split(&input).unwrap() {
            let answer = |query: Query<'_>| {
                let (outcome, destination): (_, &[u8]) = match query.value {
                    b"7" => (Outcome::Exact, b"x"),
                    b"8" => (Outcome::Congested, b""),
                    value => (Outcome::Exact, value),
                };
                out.push(&Answer {
                    id: query.id,
                    outcome,
                    destination,
                });
            };
            frame.each(answer).unwrap();
            out.close();
            input.drain(..length);
        }
        let mut octets = Vec::new();
        out.take_into(&mut octets);
        if stream.write_all(&octets).is_err() {
            return;
        }
    }
}

#[test]
fn each_look_up_is_judged_by_its_own_answer_and_a_lost_connection_comes_back() {
    let address = processor();
    let plan = Plan {
        targets: vec![address],
        authority: String::new(),
        connections: 2,
        timeout: Duration::from_secs(60),
        max_in_flight: 100_000,
        arrivals: Arrivals::Poisson,
        seed: 1,
        cpus: Vec::new(),
        tick: TICK,
        tls: None,
        sources: Vec::new(),
    };
    let routers = Routers::new(address, 2, Box::new(Digits), plan.timeout);
    let generator = Generator::start(&plan, vec![Traffic::from(routers)]).unwrap();
    generator.set(2000.0, 1);
    let mut record = Record::new(1);
    let mut in_flight = u64::MAX;
    let mut gather = |until: &dyn Fn(&Record, u64) -> bool| {
        while !until(&record, in_flight) {
            for snapshot in generator.snapshots(Duration::from_millis(50)) {
                in_flight = snapshot.in_flight;
                record.merge(&snapshot.record);
            }
        }
        record.total()
    };
    gather(&|record, _| record.total().succeeded > 1000);
    generator.set(0.0, 0);
    let total = gather(&|record, in_flight| {
        let total = record.total();
        in_flight == 0 && total.offered == total.succeeded + total.failures()
    });
    let failed = |kind| total.failed[kind as usize];
    let own = [FailureKind::Wrong, FailureKind::Refused, FailureKind::Connection];
    assert!(own.iter().all(|kind| failed(*kind) > 0), "{:?}", total.failed);
    assert_eq!(total.failures_of(&own), total.failures(), "{:?}", total.failed);
    // One digit of ten each.
    let wrong = failed(FailureKind::Wrong) as f64 / total.succeeded as f64;
    assert!((0.05..0.25).contains(&wrong), "{wrong}");
}
