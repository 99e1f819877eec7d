//! The application on a seat: what is parked and is not, what cannot be written, and what is owed then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::{MessageBuilder, Origin, ResultCode, Routing, known};
use dsr_app::{Answered, Application, Flow, Loss, Lost, Memo, Out, Request, Resumed, Ticket, View};
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
    let mut memo = Memo::default();
    show("pgw;1", &mut memo, 1, |turn, request| {
        assert!(matches!(seat.request(turn, &request), Flow::To(_)));
    });
    assert_eq!(requests_in_flight(&pdra), 1);
    while pdra.shared.opened.spawn(std::future::pending()) {}
    show("pgw;1", &mut memo, 2, |turn, request| {
        let mut answer = MessageBuilder::answer(request.message);
        answer.result(ResultCode::SUCCESS, &Origin::new("pcrf.example", "example"));
        let answered = Answered {
            request: &request.message.clone().freeze(),
            answer: &answer.finish().unwrap(),
            names: request.names,
        };
        match seat.answer(turn, &answered) {
            Flow::Answer(fault) => assert_eq!(fault.code, ResultCode::UNABLE_TO_COMPLY),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(requests_in_flight(&pdra), 0);
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
