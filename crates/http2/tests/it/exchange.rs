//! Requests and responses between two engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use http2::{Body, Config, Connection, Event, NotOpened, Reason, ResponseHead, name};

use crate::support::{Pair, body, events, get, ok, post, value};

#[test]
fn a_request_is_answered() {
    let mut pair = Pair::default();
    let asked = pair.client.request(&post("/nnrf-disc/v1"), body(4_000)).unwrap();
    pair.settle().unwrap();
    let mut came = events(&mut pair.server).into_iter();
    let Some(Event::Request { stream, head, end }) = came.next() else {
        panic!()
    };
    assert_eq!(
        (head.method(), head.target(), end),
        (&Method::POST, "/nnrf-disc/v1", false)
    );
    assert_eq!(
        head.fields.get(name::CONTENT_LENGTH),
        Some(value("4000")),
        "added"
    );
    assert_eq!(
        came.next(),
        Some(Event::Body {
            stream,
            body: body(4_000)
        })
    );
    assert_eq!(came.next(), None);
    assert!(pair.server.respond(stream, &ok(), body(3)));
    assert!(!pair.server.respond(stream, &ok(), body(3)), "only once");
    assert_eq!(events(&mut pair.server), [Event::Sent { stream }]);
    pair.settle().unwrap();
    let mut expected = ok();
    expected.fields.append(name::CONTENT_LENGTH, value("3"));
    let (stream, head, end) = (asked, expected, false);
    assert_eq!(
        events(&mut pair.client),
        [
            Event::Sent { stream },
            Event::Response { stream, head, end },
            Event::Body {
                stream,
                body: body(3)
            }
        ]
    );
    assert_eq!((pair.client.streams(), pair.server.streams()), (0, 0));
    for engine in [&mut pair.client, &mut pair.server] {
        engine.output().rest();
        assert_eq!(engine.output().held(), 0);
    }
}

#[test]
fn messages_without_a_body_say_so() {
    let mut pair = Pair::default();
    let mut head = get("/");
    for (method, status, given, length) in [
        (Method::GET, 200, 0, None),
        (Method::GET, 204, 5, None),
        (Method::GET, 304, 5, Some("5")),
        (Method::HEAD, 200, 5, Some("5")),
    ] {
        head = http2::RequestHead::of_fields(method.clone(), head.fields);
        head.fields.set(name::METHOD, value(method.as_str()));
        let asked = pair.client.request(&head, Body::empty()).unwrap();
        pair.settle().unwrap();
        let came = events(&mut pair.server);
        let [
            Event::Request {
                stream, end: true, ..
            },
        ] = came[..]
        else {
            panic!("{came:?}")
        };
        let response = ResponseHead::new(StatusCode::from_u16(status).unwrap());
        assert!(pair.server.respond(stream, &response, body(given)));
        pair.settle().unwrap();
        let came = events(&mut pair.client);
        let [
            _,
            Event::Response {
                stream,
                head: answer,
                end: true,
            },
        ] = &came[..]
        else {
            panic!("{came:?}")
        };
        assert_eq!((*stream, answer.status.as_u16()), (asked, status));
        assert_eq!(answer.fields.get(name::CONTENT_LENGTH), length.map(value));
        events(&mut pair.server);
    }
}

#[test]
fn windows_hold_back_what_the_peer_does_not_take() {
    for takes in [true, false] {
        three_bodies_for_one_window(takes);
    }
}

fn three_bodies_for_one_window(takes: bool) {
    let client = Config {
        max_body: 99_999,
        max_arriving: 150_000,
        ..Config::default()
    };
    let mut pair = Pair::new(Config::default(), client);
    for _ in 0..3 {
        pair.client.request(&get("/"), Body::empty()).unwrap();
    }
    pair.settle().unwrap();
    let mut answered = Vec::new();
    for event in events(&mut pair.server) {
        let Event::Request { stream, .. } = event else {
            panic!("{event:?}")
        };
        assert!(pair.server.respond(stream, &ok(), body(80_000)));
        answered.push(pair.server.is_sending(stream));
    }
    assert_eq!(answered, [false, true, true]);
    pair.settle().unwrap();
    assert_eq!(
        pair.server.unsent(),
        90_000,
        "three bodies share a window of 150,000 bytes"
    );
    let limit = Duration::from_secs(1);
    assert_eq!(pair.server.give_up_unsent(pair.now, limit), 0);
    if takes {
        // The client gives back what it takes.
        for left in [10_000, 0, 0] {
            assert_eq!(bodies(&mut pair.client), 1);
            pair.settle().unwrap();
            assert_eq!(pair.server.unsent(), left);
        }
        return;
    }
    assert_eq!(pair.server.give_up_unsent(pair.now + limit / 2, limit), 0);
    assert_eq!(pair.server.give_up_unsent(pair.now + limit, limit), 2);
    pair.settle().unwrap();
    let came = events(&mut pair.client);
    let given_up = |event: &&Event| {
        matches!(
            event,
            Event::Reset {
                reason: Reason::CANCEL,
                ..
            }
        )
    };
    assert_eq!(came.iter().filter(given_up).count(), 2);
    assert_eq!(events(&mut pair.server).len(), 3);
    // Everything is given back: a large body passes.
    pair.client.request(&get("/"), Body::empty()).unwrap();
    pair.settle().unwrap();
    let Some(Event::Request { stream, .. }) = pair.server.next_event() else {
        panic!()
    };
    assert!(pair.server.respond(stream, &ok(), body(99_999)));
    pair.settle().unwrap();
    assert_eq!(pair.server.unsent(), 0);
}

#[test]
fn a_body_that_is_made_while_it_is_sent_takes_one_segment_of_memory() {
    const SEGMENTS: u8 = 20;
    let client = Config {
        max_body: 999_999,
        ..Config::default()
    };
    let server = Config {
        max_output: 65_536,
        ..Config::default()
    };
    let mut pair = Pair::new(server, client);
    pair.client.request(&get("/"), Body::empty()).unwrap();
    pair.settle().unwrap();
    let Some(Event::Request { stream, .. }) = pair.server.next_event() else {
        panic!()
    };
    let made = Arc::new(AtomicU8::new(0));
    let counted = made.clone();
    let body = Body::streamed(move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        // An empty segment is passed over.
        let length = if number % 3 == 1 { 0 } else { 40_000 };
        (number < SEGMENTS).then(|| vec![number; length].into())
    });
    assert_eq!(made.load(Ordering::Relaxed), 1, "the first one");
    assert!(pair.server.respond(stream, &ok(), body));
    // No more is made than fills the output, and one segment.
    pair.server.output();
    assert!(pair.server.is_sending(stream) && made.load(Ordering::Relaxed) < 6);
    let mut received = Vec::new();
    while received.is_empty() {
        pair.settle().unwrap();
        assert!(pair.server.unsent() <= 40_000);
        for event in events(&mut pair.client) {
            match event {
                Event::Response { head, .. } => assert_eq!(head.fields.get(name::CONTENT_LENGTH), None),
                Event::Body { body, .. } => received = body.to_bytes().to_vec(),
                _ => {}
            }
        }
    }
    let expected: Vec<u8> = (0..SEGMENTS)
        .filter(|number| number % 3 != 1)
        .flat_map(|number| vec![number; 40_000])
        .collect();
    assert_eq!(received, expected);
    assert_eq!(events(&mut pair.server), [Event::Sent { stream }]);
    assert_eq!((pair.server.unsent(), pair.server.streams()), (0, 0));
}

#[test]
fn a_body_that_is_made_while_it_is_sent_ends_with_its_stream() {
    let mut pair = Pair::default();
    let asked = pair.client.request(&get("/"), Body::empty()).unwrap();
    pair.settle().unwrap();
    let Some(Event::Request { stream, .. }) = pair.server.next_event() else {
        panic!()
    };
    let held = Arc::new(());
    let weak = Arc::downgrade(&held);
    let body = Body::streamed(move || {
        let _ = &held;
        Some(vec![0; 9_000].into())
    });
    assert!(pair.server.respond(stream, &ok(), body));
    pair.server.output();
    pair.client.reset(asked, Reason::CANCEL);
    pair.settle().unwrap();
    assert_eq!(weak.upgrade(), None, "what makes it is dropped");
    assert_eq!(pair.server.unsent(), 0);
}

fn bodies(client: &mut Connection) -> usize {
    let came = events(client);
    came.iter()
        .filter(|event| matches!(event, Event::Body { .. }))
        .count()
}

#[test]
fn streams_share_the_connection_by_frames() {
    let mut pair = Pair::default();
    for _ in 0..3 {
        pair.client.request(&get("/"), Body::empty()).unwrap();
    }
    pair.settle().unwrap();
    for (event, len) in events(&mut pair.server)
        .into_iter()
        .zip([400_000, 200_000, 200_000])
    {
        let Event::Request { stream, .. } = event else {
            panic!()
        };
        pair.server.respond(stream, &ok(), body(len));
    }
    let bytes = crate::support::drain(&mut pair.server);
    let (mut rest, mut streams) = (&bytes[..], Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<9>() {
        let len = usize::from(head[1]) << 8 | usize::from(head[2]);
        assert!(len <= 16_384);
        if head[3] == 0 && len == 16_384 {
            streams.push(head[8]);
        }
        rest = &after[len..];
    }
    // The first one filled the output before the others came; then they take turns.
    let turns = &streams[streams.iter().position(|stream| *stream == 3).unwrap()..];
    for window in turns.windows(2).take(8) {
        assert_ne!(window[0], window[1], "{streams:?}");
    }
}

#[test]
fn a_client_opens_as_many_streams_as_the_server_permits() {
    let server = Config {
        max_concurrent_streams: 2,
        ..Config::default()
    };
    let mut pair = Pair::new(server, Config::default());
    assert_eq!(pair.client.room(), 2);
    let first = pair.client.request(&get("/"), Body::empty()).unwrap();
    pair.client.request(&get("/"), Body::empty()).unwrap();
    assert_eq!(
        pair.client.request(&get("/"), Body::empty()),
        Err(NotOpened::NoRoom)
    );
    pair.client.reset(first, Reason::CANCEL);
    assert_eq!(pair.client.room(), 1);
    pair.settle().unwrap();
    let came = events(&mut pair.server);
    assert!(matches!(
        came[..],
        [
            Event::Request { .. },
            Event::Request { .. },
            Event::Reset {
                reason: Reason::CANCEL,
                ..
            }
        ]
    ));
}

#[test]
fn a_server_that_shuts_down_finishes_what_it_took() {
    let mut pair = Pair::default();
    pair.client.request(&get("/1"), Body::empty()).unwrap();
    pair.settle().unwrap();
    let Some(Event::Request { stream: first, .. }) = pair.server.next_event() else {
        panic!()
    };
    // A request is on its way when the server begins to shut down.
    pair.client.request(&get("/2"), Body::empty()).unwrap();
    pair.server.shut_down();
    pair.settle().unwrap();
    let Some(Event::Request { stream: second, .. }) = pair.server.next_event() else {
        panic!()
    };
    assert_eq!(
        pair.client.request(&get("/3"), Body::empty()),
        Err(NotOpened::Closing)
    );
    assert!(!pair.server.is_finished());
    for stream in [first, second] {
        assert!(pair.server.respond(stream, &ok(), body(2_000)));
    }
    pair.settle().unwrap();
    let came = events(&mut pair.client);
    assert_eq!(
        came.iter()
            .filter(|event| matches!(event, Event::Body { .. }))
            .count(),
        2
    );
    assert!(came.contains(&Event::GoAway {
        reason: Reason::NO_ERROR
    }));
    assert!(pair.server.is_finished() && pair.client.is_finished());
}

#[test]
fn requests_beyond_the_last_processed_one_are_safe_to_repeat() {
    let mut pair = Pair::default();
    let first = pair.client.request(&get("/1"), Body::empty()).unwrap();
    pair.settle().unwrap();
    pair.server.close(Reason::NO_ERROR);
    let second = pair.client.request(&get("/2"), Body::empty()).unwrap();
    pair.settle().unwrap();
    let came = events(&mut pair.client);
    let unprocessed = Event::Reset {
        stream: second,
        reason: Reason::NO_ERROR,
        processed: false,
    };
    assert!(came.contains(&unprocessed), "{came:?}");
    assert!(
        !came
            .iter()
            .any(|event| matches!(event, Event::Reset { stream, .. } if *stream == first))
    );
    assert!(pair.server.is_finished() && !pair.client.is_finished());
}

#[test]
fn pings_are_answered() {
    let mut pair = Pair::default();
    pair.client.ping([7; 8]);
    pair.server.ping([8; 8]);
    pair.settle().unwrap();
    assert_eq!(events(&mut pair.client), [Event::Pong { payload: [7; 8] }]);
    assert_eq!(events(&mut pair.server), [Event::Pong { payload: [8; 8] }]);
}

#[test]
fn an_early_answer_ends_the_request() {
    let server = Config {
        max_body: 10_000,
        ..Config::default()
    };
    let mut pair = Pair::new(server, Config::default());
    let asked = pair.client.request(&post("/"), body(100_000)).unwrap();
    pair.settle().unwrap();
    let came = events(&mut pair.server);
    let [Event::Request { stream, .. }, Event::TooLarge { .. }] = came[..] else {
        panic!("{came:?}")
    };
    let refused = ResponseHead::new(StatusCode::PAYLOAD_TOO_LARGE);
    assert!(pair.server.respond(stream, &refused, body(20)));
    pair.settle().unwrap();
    let came = events(&mut pair.client);
    let [Event::Response { .. }, Event::Body { .. }, Event::Sent { stream }] = came[..] else {
        panic!("{came:?}")
    };
    assert_eq!(stream, asked);
    assert_eq!(
        (pair.client.streams(), pair.server.streams(), pair.client.unsent()),
        (0, 0, 0)
    );
}
