//! The application on a seat: what is parked and is not, what cannot be written, and what is owed then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::{MessageBuilder, MessageMut, Origin, ResultCode, Routing, known};
use dsr_app::{Answered, Application, Flow, Loss, Lost, Memo, Out, Request, Resumed, Seated, Ticket, View};
use sbr::Congestion;

use crate::Pdra;
use crate::config::{self, Pcrf, Pool};

/// Shows the application a request of one subscriber that begins this session.
fn show<T>(
    session: &str,
    memo: &mut Memo,
    number: u64,
    show: impl FnOnce(dsr_app::Turn<'_>, Request<'_>) -> T,
) -> T {
    let mut builder = MessageBuilder::request(known::command::CREDIT_CONTROL, known::application::GX);
    builder
        .put(known::SESSION_ID, session)
        .put(known::DESTINATION_HOST, "pcrf.example")
        .put(known::CC_REQUEST_TYPE, 1)
        .group(known::SUBSCRIPTION_ID, |group| {
            group
                .put(known::SUBSCRIPTION_ID_TYPE, 1)
                .put(known::SUBSCRIPTION_ID_DATA, "001010000000001");
        });
    let message = builder.finish().unwrap();
    let routing = Routing::scan(&message, b"").unwrap();
    let turn = dsr_app::Turn {
        now: Instant::now(),
        ticket: Ticket { worker: 0, number },
        memo,
        out: &mut Out::default(),
        is_congested: false,
    };
    let request = Request {
        message: &message,
        view: &View::new(message.application(), message.command(), 10, &routing),
        peer: "pgw.example",
        names: &Origin::new("dra.example", "example"),
    };
    show(turn, request)
}

/// Shows the application the answer of its PCRF to such a request.
fn answered<'s>(
    seat: &'s dyn Seated,
    session: &str,
    memo: &mut Memo,
    show_it: impl FnOnce(&'s dyn Seated, dsr_app::Turn<'_>, Answered<'_>) -> Flow<'s>,
) -> Flow<'s> {
    show(session, memo, 2, |turn, request| {
        let mut answer = MessageBuilder::answer(request.message);
        answer.result(ResultCode::SUCCESS, &Origin::new("pcrf.example", "example"));
        let answered = Answered {
            request: &request.message.clone().freeze(),
            answer: &answer.finish().unwrap(),
            names: request.names,
        };
        show_it(seat, turn, answered)
    })
}

/// What the application sends by itself when it is time.
fn sends(seat: &dyn Seated) -> Vec<(MessageMut, Memo)> {
    let mut out = Out::default();
    let turn = dsr_app::Turn {
        now: Instant::now(),
        ticket: Ticket::default(),
        memo: &mut Memo::default(),
        out: &mut out,
        is_congested: false,
    };
    seat.tick(turn, &Origin::new("dra.example", "example"));
    out.into_iter().collect()
}

/// A request that begins a session is sent; what is kept with it.
fn is_sent(seat: &dyn Seated, session: &str) -> Memo {
    let mut memo = Memo::default();
    show(session, &mut memo, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    memo
}

/// Such a request is answered, and its session is not written in time.
fn is_not_written_in_time(seat: &dyn Seated, session: &str) {
    let mut memo = is_sent(seat, session);
    let written = answered(seat, session, &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    assert!(matches!(written, Flow::Later(_)), "{written:?}");
    let failed = answered(seat, session, &mut memo, |seat, turn, answered| {
        seat.resume(turn, &Resumed::Answer(answered), None)
    });
    assert!(matches!(failed, Flow::Answer(fault) if fault.code == ResultCode::UNABLE_TO_COMPLY));
}

/// Waits until what was begun is on the disk.
fn is_quiet(pdra: &Pdra) {
    while pdra.shared.opened.pending() > 0 {
        std::thread::yield_now();
    }
}

/// An application with one PCRF.
fn one() -> (tempfile::TempDir, Arc<Pdra>) {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool {
        name: "all".to_owned(),
        pcrfs: vec![Pcrf {
            host: "pcrf.example".to_owned(),
            ..Pcrf::default()
        }],
        ..Pool::default()
    };
    let mut settings = config::Pdra {
        pools: vec![pool],
        ..config::Pdra::default()
    };
    settings.repository.store.embedded.directory = folder.path().to_owned();
    let pdra = Arc::new(Pdra::open(&settings).unwrap());
    (folder, pdra)
}

#[test]
fn sessions_do_not_begin_while_the_repository_is_overloaded() {
    let (_folder, pdra) = one();
    let seat = dsr_app::seat(pdra.clone());
    let flow = |number: u64| {
        let mut memo = Memo::default();
        show(
            &format!("pgw;{number}"),
            &mut memo,
            number,
            |turn, request| match seat.request(turn, &request) {
                Flow::Answer(fault) => Some(fault.code),
                _ => None,
            },
        )
    };
    let mut seen = vec![pdra.shared.opened.congestion()];
    assert_eq!(flow(1), None);
    while pdra.shared.opened.congestion() < Congestion::Major {
        assert!(pdra.shared.opened.spawn(std::future::pending()));
        seen.push(pdra.shared.opened.congestion());
    }
    assert_eq!(flow(2), Some(ResultCode::TOO_BUSY));
    seen.dedup();
    assert_eq!(seen, [Congestion::None, Congestion::Minor, Congestion::Major]);
}

fn requests_in_flight(pdra: &Pdra) -> usize {
    let tables = Application::tables(pdra);
    let beginning = tables.iter().find(|table| table.name == "beginning").unwrap();
    beginning.entries
}

#[test]
fn a_session_that_cannot_be_written_does_not_hold_its_subscriber() {
    let (_folder, pdra) = one();
    let seat = dsr_app::seat(pdra.clone());
    let mut memo = is_sent(&*seat, "pgw;1");
    assert_eq!(requests_in_flight(&pdra), 1);
    while pdra.shared.opened.spawn(std::future::pending()) {}
    let failed = answered(&*seat, "pgw;1", &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    assert!(matches!(failed, Flow::Answer(fault) if fault.code == ResultCode::UNABLE_TO_COMPLY));
    assert_eq!(requests_in_flight(&pdra), 0);
    // Its PCRF has begun it.
    assert_eq!(sends(&*seat).len(), 1);
}

#[test]
fn a_request_that_repeats_one_whose_session_is_kept_ends_nothing() {
    let (_folder, pdra) = one();
    let seat = dsr_app::seat(pdra.clone());
    let mut memo = is_sent(&*seat, "pgw;1");
    answered(&*seat, "pgw;1", &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    is_quiet(&pdra);
    // What it repeats is the session that its client has, whose record can be written no more.
    let mut memo = is_sent(&*seat, "pgw;1");
    while pdra.shared.opened.spawn(std::future::pending()) {}
    let failed = answered(&*seat, "pgw;1", &mut memo, |seat, turn, answered| {
        seat.answer(turn, &answered)
    });
    assert!(matches!(failed, Flow::Answer(_)), "{failed:?}");
    assert!(sends(&*seat).is_empty());
}

#[test]
fn a_session_that_begins_again_before_its_end_is_sent_is_not_ended() {
    let (_folder, pdra) = one();
    let seat = dsr_app::seat(pdra.clone());
    for session in ["pgw;1", "pgw;2"] {
        is_not_written_in_time(&*seat, session);
        is_quiet(&pdra);
    }
    is_sent(&*seat, "pgw;1");
    let sent = sends(&*seat);
    let sessions: Vec<&str> = sent
        .iter()
        .map(|(end, _)| end.require(known::SESSION_ID).unwrap())
        .collect();
    assert_eq!(sessions, ["pgw;2"]);
}

#[test]
fn what_was_written_too_late_goes_with_the_end_at_its_pcrf() {
    let (_folder, pdra) = one();
    let seat = dsr_app::seat(pdra.clone());
    is_not_written_in_time(&*seat, "pgw;1");
    is_quiet(&pdra);
    let sent = sends(&*seat);
    let [(end, memo)] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), 3);
    let mut memo = *memo;
    let mut answer = MessageBuilder::answer(end);
    answer.result(ResultCode::SUCCESS, &Origin::new("pcrf.example", "example"));
    show("pgw;1", &mut memo, 3, |turn, request| {
        let answered = Answered {
            request: &end.clone().freeze(),
            answer: &answer.finish().unwrap(),
            names: request.names,
        };
        seat.answer(turn, &answered);
    });
    is_quiet(&pdra);
    let repository = pdra.shared.opened.repository().clone();
    let left = pdra
        .shared
        .opened
        .ask(async move { repository.session(b"pgw;1").await });
    assert_eq!(left, Some(Ok(None)));
    assert!(sends(&*seat).is_empty());
}

#[test]
fn one_that_waits_and_is_not_parked_gets_no_turn() {
    let (_folder, pdra) = one();
    let seat = dsr_app::seat(pdra.clone());
    let (mut first, mut second) = (Memo::default(), Memo::default());
    show("pgw;1", &mut first, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    show("pgw;2", &mut second, 1, |turn, request| {
        let flow = seat.request(turn, &request);
        assert!(matches!(flow, Flow::Later(wait) if wait == Duration::from_secs(2)));
    });
    show("pgw;2", &mut second, 2, |turn, request| {
        seat.unparked(turn, &Resumed::Request(request));
    });
    show("pgw;1", &mut first, 2, |turn, request| {
        let lost = Lost {
            request: &request.message.clone().freeze(),
            why: Loss::Full,
            names: request.names,
        };
        assert!(matches!(seat.lost(turn, &lost), Flow::Next));
    });
    assert_eq!(requests_in_flight(&pdra), 0);
}
