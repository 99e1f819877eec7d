//! A resolution to test, and requests for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use diameter_proto::{MessageBuilder, MessageMut, Origin, Routing, known};
use dsr_app::{Flow, Memo, Out, Request, Seated, Ticket, Turn, View};
use dsr_fabr::{Fabr, config};

pub(crate) const S6A: u32 = 16_777_251;
pub(crate) const ULR: u32 = 316;

/// Destinations for every test, which its settings follow.
const DESTINATIONS: &str = "destinations:
  - {name: a, realm: a.example, host: hss.a.example}
  - {name: b, host: hss.b.example}
  - {name: c, realm: c.example}
";

/// Settings of these lines behind those of the destinations.
pub(crate) fn settings(yaml: &str) -> config::Fabr {
    settings::from_str(&format!("{DESTINATIONS}{yaml}"), "test").unwrap_or_else(|report| panic!("{report}"))
}

/// A file of this text.
pub(crate) fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

pub(crate) fn message(application: u32, command: u32, fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    let mut builder = MessageBuilder::request(command, application);
    fill(&mut builder);
    builder.finish().unwrap()
}

/// What becomes of a request on a worker at a time: `host/realm`, `next`, `drop`, or the code of an answer.
pub(crate) fn outcome_at(seat: &dyn Seated, message: &MessageMut, now: Instant) -> String {
    with(message, |request| {
        let turn = Turn {
            now,
            ticket: Ticket::default(),
            memo: &mut Memo::default(),
            out: &mut Out::default(),
            is_congested: false,
        };
        match seat.request(turn, request) {
            Flow::To(to) => format!("{}/{}", to.host, to.realm),
            Flow::Next => "next".to_owned(),
            Flow::Drop => "drop".to_owned(),
            Flow::Answer(fault) => format!("{}:{} {}", fault.vendor, fault.code.0, fault.reason),
            other => format!("{other:?}"),
        }
    })
}

fn with<T>(message: &MessageMut, show: impl FnOnce(&Request<'_>) -> T) -> T {
    let routing = Routing::scan(message, b"").unwrap();
    let view = View::new(message.application(), message.command(), 10, &routing);
    show(&Request {
        peer: "mme",
        message,
        view: &view,
        names: &Origin::new("dsr.example", "example"),
    })
}

pub(crate) fn outcome(fabr: &Arc<Fabr>, message: &MessageMut) -> String {
    outcome_at(&*dsr_app::seat(fabr.clone()), message, Instant::now())
}

/// What becomes of the ULR of a user.
pub(crate) fn of(fabr: &Arc<Fabr>, user: &str) -> String {
    let request = message(S6A, ULR, |b| {
        b.put(known::USER_NAME, user);
    });
    outcome(fabr, &request)
}

/// Why.
pub(crate) fn why(fabr: &Fabr, message: &MessageMut) -> String {
    with(message, |request| {
        let explained = dsr_app::Application::explain(fabr, request).unwrap();
        explained.reasons.join("; ")
    })
}
