//! An application that refuses a subscriber's requests beyond a rate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::{Fault, MessageBuilder, Origin, ResultCode, Routing, known};
use dsr_app::{Application, Digits, Flow, Memo, On, Out, Request, Table, Ticket, Turn, View, seat};

telemetry::events! {
    "dsr";
    /// A request was beyond the rate of its subscriber.
    Refused = "quota_refusals";
}

#[derive(Debug)]
struct Quota {
    requests_per_second: u32,
}

impl Application for Quota {
    const KIND: &'static str = "quota";
    const TICK: Option<Duration> = Some(Duration::from_secs(1));

    type Event = Event;
    type Worker = HashMap<Digits, u32>;
    type Found = ();

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        let Some(imsi) = request.view.imsi() else {
            return Flow::Next;
        };
        let count = on.worker.entry(*imsi).or_default();
        *count += 1;
        if *count <= self.requests_per_second {
            return Flow::Next;
        }
        on.count(Event::Refused);
        Flow::refuse(Fault::new(
            ResultCode::TOO_BUSY,
            "the subscriber has used its quota",
        ))
    }

    fn tick(&self, on: &mut On<'_, Self>, _: &Origin) {
        on.worker.clear();
    }

    fn tables(&self) -> Vec<Table> {
        let (name, entries, bytes) = ("rate", self.requests_per_second as usize, 0);
        vec![Table { name, entries, bytes }]
    }
}

#[test]
fn requests_beyond_the_rate_are_refused_until_the_next_second() {
    let quota = seat(Arc::new(Quota {
        requests_per_second: 2,
    }));
    let mut ulr = MessageBuilder::request(known::command::UPDATE_LOCATION, known::application::S6A);
    ulr.put(known::USER_NAME, "001010000000001");
    let ulr = ulr.finish().unwrap();
    let routing = Routing::scan(&ulr, b"").unwrap();
    let request = Request {
        message: &ulr,
        view: &View::new(ulr.application(), ulr.command(), 10, &routing),
        peer: "mme.example",
        names: &Origin::new("dsr.example", "example"),
    };
    let (mut memo, mut out) = (Memo::default(), Out::default());
    let mut in_turn = |ticks: bool| {
        let turn = Turn {
            now: Instant::now(),
            ticket: Ticket::default(),
            memo: &mut memo,
            out: &mut out,
            is_congested: false,
        };
        if ticks {
            quota.tick(turn, request.names);
            return false;
        }
        let flow = quota.request(turn, &request);
        matches!(flow, Flow::Answer(fault) if fault.code == ResultCode::TOO_BUSY)
    };
    let refused = [false, false, false, true, false].map(&mut in_turn);
    assert_eq!(refused, [false, false, true, false, false]);
}
