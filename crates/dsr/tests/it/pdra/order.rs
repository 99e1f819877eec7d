//! An answer reaches its client before what the PCRF sends behind it, in one write.

use diameter::proto::known::{self, application, command};
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use dsr_pdra::Event;
use testpeer::diameter::Peer;

use super::support::{AF, IMSI, PCRFS, PGW, World, aar, agent, ccr, request, subscriber};
use crate::support::run;

/// The answer of a PCRF, and its next request in the session: with the name of its client, and without.
fn answer_and_next(
    at: usize,
    asked: &MessageMut,
    command: u32,
    client: Option<&str>,
) -> (MessageMut, MessageMut) {
    let mut answer = MessageBuilder::answer(asked);
    answer
        .put(known::RESULT_CODE, ResultCode::SUCCESS.0)
        .put(known::ORIGIN_HOST, PCRFS[at]);
    let session = asked.require(known::SESSION_ID).unwrap();
    let next = request(command, asked.application(), PCRFS[at], session, |b| {
        if let Some(client) = client {
            b.put(known::DESTINATION_HOST, client);
        }
    });
    (answer.finish().unwrap(), next)
}

/// Has a PCRF send both in one write, and its client receive them in their order.
async fn in_order(
    pcrf: &mut Peer,
    client: &mut Peer,
    answer_first: bool,
    (answer, next): (MessageMut, MessageMut),
) {
    let (answer_bytes, next_bytes) = (answer.as_bytes(), next.as_bytes());
    let both = if answer_first {
        [answer_bytes, next_bytes].concat()
    } else {
        [next_bytes, answer_bytes].concat()
    };
    pcrf.send(&both).await;
    client.expect_result(answer.command(), ResultCode::SUCCESS).await;
    let arrived = client.expect(next.command()).await;
    client.answer(&arrived, ResultCode::SUCCESS).await;
    pcrf.expect_result(next.command(), ResultCode::SUCCESS).await;
}

#[test]
fn what_a_pcrf_sends_behind_an_answer_does_not_overtake_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "      wait: 60s");
        config.workers = 2;
        let mut world = World::of(config, &PCRFS).await;
        let cases = [
            (command::RE_AUTH, true),
            (command::RE_AUTH, false),
            (command::ABORT_SESSION, true),
        ];
        for (number, (command, answer_first)) in cases.into_iter().enumerate() {
            for name in [None, Some(PGW)] {
                let session = format!("pgw;{number};{}", name.is_some());
                let address = [10, 0, number as u8, u8::from(name.is_some())];
                // The session begins, it reports an address, an AF begins its own.
                let initial = ccr(&session, 1, |b| subscriber(b, 1, IMSI));
                let update = ccr(&session, 2, |b| {
                    b.put(known::FRAMED_IP_ADDRESS, &address);
                });
                for request in [initial, update] {
                    let (at, asked) = world.reaches(&request).await;
                    let both = answer_and_next(at, &asked, command, name);
                    in_order(&mut world.pcrfs[at], &mut world.pgw, answer_first, both).await;
                }
                let of_af = aar(&format!("af;{session}"), |b| {
                    b.put(known::FRAMED_IP_ADDRESS, &address);
                });
                world.af.send(of_af.as_bytes()).await;
                let (at, asked) = world.arrival(command::AA).await;
                let both = answer_and_next(at, &asked, command, name.map(|_| AF));
                in_order(&mut world.pcrfs[at], &mut world.af, answer_first, both).await;
            }
        }
    });
}

#[test]
fn a_request_behind_a_refusal_goes_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let first = ccr("pgw;1;1", 1, |b| subscriber(b, 1, IMSI));
        let (at, asked) = world.reaches(&first).await;
        let rar = request(command::RE_AUTH, application::GX, PCRFS[at], "pgw;1;1", |_| ());
        world.pcrfs[at].send(rar.as_bytes()).await;
        crate::support::until(|| world.count(Event::Ordered) == 1).await;
        world
            .answers(at, &asked, ResultCode::AUTHORIZATION_REJECTED)
            .await;
        // There is no such session.
        world.pcrfs[at]
            .expect_result(command::RE_AUTH, ResultCode::UNKNOWN_SESSION_ID)
            .await;
    });
}

#[test]
fn a_request_of_a_pcrf_waits_for_its_answer_for_a_bounded_time() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 100ms").await;
        let first = ccr("pgw;1;1", 1, |b| subscriber(b, 1, IMSI));
        let (at, asked) = world.reaches(&first).await;
        let (_, rar) = answer_and_next(at, &asked, command::RE_AUTH, Some(PGW));
        world.pcrfs[at].send(rar.as_bytes()).await;
        let arrived = world.pgw.expect(command::RE_AUTH).await;
        world.pgw.answer(&arrived, ResultCode::UNKNOWN_SESSION_ID).await;
        world.pcrfs[at]
            .expect_result(command::RE_AUTH, ResultCode::UNKNOWN_SESSION_ID)
            .await;
        assert_eq!(world.count(Event::Ordered), 1);
    });
}
