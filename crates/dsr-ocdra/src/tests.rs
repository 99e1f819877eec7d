//! The application on a seat: what is parked and is not, and what a sender may have made up.

use std::sync::Arc;
use std::time::Instant;

use diameter_proto::known::{self, application, command};
use diameter_proto::{MessageBuilder, MessageMut, Origin, ResultCode, Routing};
use dsr_app::{Answered, Application, Flow, Loss, Lost, Memo, Out, Request, Resumed, Seated, Ticket, View};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sbr::pool::Server;

use crate::{Ocdra, config};

/// An application before one OCS, with a repository in this directory.
fn ocdra(directory: &std::path::Path) -> Arc<Ocdra> {
    let server = Server {
        host: "ocs.example".to_owned(),
        ..Server::default()
    };
    let pool = config::Pool {
        name: "all".to_owned(),
        servers: vec![server],
        ..config::Pool::default()
    };
    let mut settings = config::Ocdra {
        pools: vec![pool],
        ..config::Ocdra::default()
    };
    settings.repository.store.embedded.directory = directory.to_owned();
    Arc::new(Ocdra::open(&settings).unwrap())
}

/// Shows the application a request under this ticket.
fn show<T>(
    message: &MessageMut,
    memo: &mut Memo,
    number: u64,
    show: impl FnOnce(dsr_app::Turn<'_>, Request<'_>) -> T,
) -> T {
    let routing = Routing::scan(message, b"").unwrap();
    let turn = dsr_app::Turn {
        now: Instant::now(),
        is_congested: false,
        ticket: Ticket { worker: 0, number },
        memo,
        out: &mut Out::default(),
    };
    let request = Request {
        message,
        view: &View::new(message.application(), message.command(), 10, &routing),
        peer: "ctf.example",
        names: &Origin::new("dra.example", "example"),
    };
    show(turn, request)
}

/// What the application sends by itself when it is time.
fn sends(seat: &dyn Seated) -> Vec<(MessageMut, Memo)> {
    let mut out = Out::default();
    let turn = dsr_app::Turn {
        now: Instant::now(),
        is_congested: false,
        ticket: Ticket::default(),
        memo: &mut Memo::default(),
        out: &mut out,
    };
    seat.tick(turn, &Origin::new("dra.example", "example"));
    out.into_iter().collect()
}

/// Shows the application an answer to a request.
fn answer<'s>(
    seat: &'s dyn Seated,
    message: &MessageMut,
    memo: &mut Memo,
    show_it: impl FnOnce(&'s dyn Seated, dsr_app::Turn<'_>, Answered<'_>) -> Flow<'s>,
) -> Flow<'s> {
    show(message, memo, 2, |turn, request| {
        let mut answer = MessageBuilder::answer(request.message);
        answer.result(ResultCode::SUCCESS, &Origin::new("ocs.example", "example"));
        let answered = Answered {
            request: &request.message.clone().freeze(),
            answer: &answer.finish().unwrap(),
            names: request.names,
        };
        show_it(seat, turn, answered)
    })
}

/// A request that begins a session is answered, and its session is not written in time.
fn is_not_written_in_time(seat: &dyn Seated, message: &MessageMut) {
    let mut memo = Memo::default();
    show(message, &mut memo, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    let written = answer(seat, message, &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    assert!(matches!(written, Flow::Later(_)), "{written:?}");
    let failed = answer(seat, message, &mut memo, |seat, turn, answered| {
        seat.resume(turn, &Resumed::Answer(answered), None)
    });
    assert!(matches!(failed, Flow::Answer(fault) if fault.code == ResultCode::UNABLE_TO_COMPLY));
}

/// Waits until what was begun is on the disk.
fn is_quiet(ocdra: &Ocdra) {
    while ocdra.shared.opened.pending() > 0 {
        std::thread::yield_now();
    }
}

/// A request that begins a session.
fn initial() -> MessageMut {
    let mut builder = MessageBuilder::request(command::CREDIT_CONTROL, application::CREDIT_CONTROL);
    builder
        .put(known::SESSION_ID, "ctf;1")
        .put(known::ORIGIN_HOST, "ctf.example")
        .put(known::DESTINATION_HOST, "ocs.example")
        .put(known::SERVICE_CONTEXT_ID, "32251@3gpp.org")
        .put(known::CC_REQUEST_TYPE, 1)
        .put(known::CC_REQUEST_NUMBER, 0_u32);
    builder.finish().unwrap()
}

fn beginning(ocdra: &Ocdra) -> usize {
    let tables = Application::tables(ocdra);
    let found = tables.iter().find(|table| table.name == "beginning");
    found.unwrap().entries
}

/// Two requests with one Session-Id: the first is sent, the second waits. What becomes of the second, and then of the first.
fn second_ends(end: impl FnOnce(&dyn Seated, dsr_app::Turn<'_>, Resumed<'_>)) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let ocdra = ocdra(folder.path());
    let seat = dsr_app::seat(ocdra.clone());
    let (mut first, mut second) = (Memo::default(), Memo::default());
    let message = initial();
    show(&message, &mut first, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    show(&message, &mut second, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::Later(_)));
    });
    show(&message, &mut second, 2, |turn, request| {
        end(&*seat, turn, Resumed::Request(request));
    });
    show(&message, &mut first, 2, |turn, request| {
        let lost = Lost {
            request: &request.message.clone().freeze(),
            why: Loss::Full,
            names: request.names,
        };
        assert!(matches!(seat.lost(turn, &lost), Flow::Next));
    });
    beginning(&ocdra)
}

#[test]
fn one_that_waits_and_is_not_parked_gets_no_turn() {
    assert_eq!(
        second_ends(|seat, turn, resumed| seat.unparked(turn, &resumed)),
        0
    );
    let expire = |seat: &dyn Seated, turn: dsr_app::Turn<'_>, resumed: Resumed<'_>| {
        assert!(matches!(seat.resume(turn, &resumed, None), Flow::Answer(_)));
    };
    assert_eq!(second_ends(expire), 0);
}

#[test]
fn a_session_that_cannot_be_written_does_not_hold_its_session_id() {
    let folder = tempfile::tempdir().unwrap();
    let ocdra = ocdra(folder.path());
    let seat = dsr_app::seat(ocdra.clone());
    let (message, mut memo) = (initial(), Memo::default());
    show(&message, &mut memo, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    assert_eq!(beginning(&ocdra), 1);
    while ocdra.shared.opened.spawn(std::future::pending()) {}
    let failed = answer(&*seat, &message, &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    assert!(matches!(failed, Flow::Answer(fault) if fault.code == ResultCode::UNABLE_TO_COMPLY));
    // Its OCS has begun it.
    assert_eq!(sends(&*seat).len(), 1);
    assert_eq!(beginning(&ocdra), 0);
}

#[test]
fn a_session_whose_client_got_a_failure_is_ended_at_its_ocs() {
    let folder = tempfile::tempdir().unwrap();
    let ocdra = ocdra(folder.path());
    let seat = dsr_app::seat(ocdra.clone());
    is_not_written_in_time(&*seat, &initial());
    let sent = sends(&*seat);
    let [(end, memo)] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), 3);
    assert_eq!(end.require(known::CC_REQUEST_NUMBER).unwrap(), 1);
    assert_eq!(end.require(known::DESTINATION_HOST).unwrap(), "ocs.example");
    assert_eq!(end.require(known::SERVICE_CONTEXT_ID).unwrap(), "32251@3gpp.org");
    // It was written all the same, too late: the record goes as well.
    is_quiet(&ocdra);
    let mut memo = *memo;
    answer(&*seat, end, &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    is_quiet(&ocdra);
    let sessions = ocdra.sessions();
    let left = ocdra
        .shared
        .opened
        .ask(async move { sessions.session(b"ctf;1").await });
    assert_eq!(left, Some(Ok(None)));
    assert!(sends(&*seat).is_empty());
}

#[test]
fn a_session_that_begins_again_before_its_end_is_sent_is_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let ocdra = ocdra(folder.path());
    let seat = dsr_app::seat(ocdra.clone());
    is_not_written_in_time(&*seat, &initial());
    is_quiet(&ocdra);
    show(&initial(), &mut Memo::default(), 3, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    assert!(sends(&*seat).is_empty());
}

#[test]
fn a_request_that_repeats_one_whose_session_is_kept_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ocdra = ocdra(folder.path());
    let seat = dsr_app::seat(ocdra.clone());
    let mut memo = Memo::default();
    show(&initial(), &mut memo, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    answer(&*seat, &initial(), &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    is_quiet(&ocdra);
    is_not_written_in_time(&*seat, &initial());
    assert!(sends(&*seat).is_empty());
}

#[test]
fn any_request_is_answered_or_sent_and_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ocdra = ocdra(folder.path());
    let bytes = |most: usize| proptest::collection::vec(any::<u8>(), 0..most);
    let requests = (
        prop_oneof![Just(272_u32), Just(258), Just(274), 0..400_u32],
        proptest::option::of(prop_oneof![0..6_i32, any::<i32>()]),
        proptest::option::of(bytes(6)),
        proptest::option::of(bytes(600)),
        bytes(20),
    );
    let run = TestRunner::default().run(&requests, |(command, kind, number, session, host)| {
        let mut builder = MessageBuilder::request(command, application::CREDIT_CONTROL);
        let session = session.iter().map(|data| (known::SESSION_ID.key, data));
        let number = number.iter().map(|data| (known::CC_REQUEST_NUMBER.key, data));
        let hosts = [known::ORIGIN_HOST.key, known::DESTINATION_REALM.key].map(|key| (key, &host));
        for (key, data) in session.chain(number).chain(hosts) {
            builder.put_raw(key, diameter_proto::AvpFlags(0x40), data);
        }
        if let Some(kind) = kind {
            builder.put(known::CC_REQUEST_TYPE, kind);
        }
        takes(&ocdra, &builder.finish().unwrap())
    });
    run.unwrap();
}

/// Shows the application a request, which is lost if it goes on; nothing of it is held.
fn takes(ocdra: &Arc<Ocdra>, message: &MessageMut) -> Result<(), TestCaseError> {
    let seat = dsr_app::seat(ocdra.clone());
    let mut memo = Memo::default();
    show(message, &mut memo, 1, |turn, request| {
        let _ = Application::explain(&**ocdra, &request);
        let flow = seat.request(turn, &request);
        prop_assert!(
            matches!(flow, Flow::Next | Flow::To(_) | Flow::Answer(_)),
            "{flow:?}"
        );
        Ok(())
    })?;
    show(message, &mut memo, 2, |turn, request| {
        let lost = Lost {
            request: &request.message.clone().freeze(),
            why: Loss::Full,
            names: request.names,
        };
        seat.lost(turn, &lost);
    });
    prop_assert_eq!(beginning(ocdra), 0);
    Ok(())
}
