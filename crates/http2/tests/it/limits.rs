//! Every limit, passed on purpose.

use std::time::Duration;

use http2::{Body, Config, Event, Flood, Oversize, Reason};

use crate::support::*;

fn flood_of_server(flood: Vec<u8>) -> (u32, Option<Flood>) {
    let mut server = Alone::server(Config::default());
    server.send(&headers(1, false)).unwrap();
    let (times, fault) = server.flood(2_000, |_| flood.clone());
    if let Some(fault) = fault {
        assert_eq!(fault.reason, Reason::ENHANCE_YOUR_CALM);
        let last = server.frames().pop().unwrap();
        assert_eq!((last.0, &last.2[4..]), (GOAWAY, &[0, 0, 0, 11][..]));
        assert!(
            server.engine.is_finished() && server.send(&flood).is_ok(),
            "what follows is dropped"
        );
    }
    (times, fault.and_then(|fault| fault.flood))
}

#[test]
fn control_frames_have_a_rate() {
    for flood in [
        frame(PING, 0, 0, &[1; 8]),
        frame(PING, ACK, 0, &[1; 8]),
        frame(SETTINGS, 0, 0, &[]),
        frame(SETTINGS, ACK, 0, &[]),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 9]),
        frame(GOAWAY, 0, 0, &[0; 8]),
        frame(99, 0, 0, b"?"),
    ] {
        assert_eq!(flood_of_server(flood), (100, Some(Flood::Control)));
    }
    let empty = frame(DATA, 0, 1, &[]);
    assert_eq!(flood_of_server(empty), (100, Some(Flood::EmptyData)));
    let padded = frame(DATA, 8, 1, &[3, 0, 0, 0]);
    assert_eq!(flood_of_server(padded), (100, Some(Flood::EmptyData)));
    for stream in [0, 1] {
        // Two are due to the stream.
        let update = frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1]);
        assert_eq!(flood_of_server(update), (1_002, Some(Flood::WindowUpdates)));
    }
    // In the next second there are more.
    let mut server = Alone::server(Config::default());
    for _ in 0..5 {
        assert_eq!(server.flood(100, |_| frame(PING, 0, 0, &[1; 8])).1, None);
        server.now += Duration::from_secs(1);
    }
}

#[test]
fn rapid_resets_end_the_connection() {
    let config = Config {
        max_reset_rate: 50,
        ..Config::default()
    };
    let mut server = Alone::server(config);
    let (times, fault) = server.flood(100, |i| {
        [
            headers(2 * i + 1, true),
            frame(RST_STREAM, 0, 2 * i + 1, &[0, 0, 0, 8]),
        ]
        .concat()
    });
    assert_eq!((times, fault.unwrap().flood), (50, Some(Flood::Resets)));
}

#[test]
fn resets_that_the_peer_provokes_end_the_connection() {
    // CVE-2025-8671: the server is made to reset the streams.
    let provocations: [fn(u32) -> Vec<u8>; 5] = [
        |stream| frame(WINDOW_UPDATE, 0, stream, &[0; 4]),
        |stream| frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff]),
        |stream| frame(PRIORITY, 0, stream, &[0; 4]),
        |stream| frame(DATA, END_STREAM, stream, b"after the end"),
        |stream| frame(HEADERS, END_HEADERS, stream, &[]),
    ];
    for provocation in provocations {
        let config = Config {
            max_error_resets: 20,
            ..Config::default()
        };
        let mut server = Alone::server(config);
        let (times, fault) = server.flood(100, |i| {
            [headers(2 * i + 1, true), provocation(2 * i + 1)].concat()
        });
        assert_eq!((times, fault.unwrap().flood), (20, Some(Flood::StreamErrors)));
        assert_eq!(server.engine.counts().error_resets, 21);
        assert_eq!(server.engine.streams(), 0);
    }
}

#[test]
fn header_blocks_are_bounded_in_frames_and_bytes() {
    for (piece, most) in [
        (block(&[("x", "y")]), 20),
        (vec![], 20),
        (block(&[("x", &"y".repeat(16_000))]), 12),
    ] {
        let mut server = Alone::server(Config::default());
        let begin = frame(HEADERS, END_STREAM, 1, &request_block("GET", &[]));
        server.send(&begin).unwrap();
        let (times, fault) = server.flood(10_000, |_| frame(CONTINUATION, 0, 1, &piece));
        assert_eq!(fault.unwrap().flood, Some(Flood::HeaderBlock));
        assert!(times <= most, "{times}");
    }
}

#[test]
fn headers_on_their_way_are_timed() {
    let second = Duration::from_secs(1);
    let mut server = Alone::server(Config::default());
    let whole = headers(1, true);
    server.send(&whole[..4]).unwrap();
    assert_eq!(
        server.engine.header_wait(server.now + second),
        Some(second),
        "part of a head"
    );
    server.send(&whole[4..20]).unwrap();
    assert_eq!(
        server.engine.header_wait(server.now + second),
        Some(second),
        "part of a payload"
    );
    server.send(&whole[20..]).unwrap();
    assert_eq!(server.engine.header_wait(server.now + second), None);
    server
        .send(&frame(HEADERS, 0, 3, &request_block("POST", &[])))
        .unwrap();
    let begun = server.now;
    server.now += second;
    server.send(&frame(CONTINUATION, 0, 3, &[])).unwrap();
    assert_eq!(
        server.engine.header_wait(server.now),
        Some(second),
        "from the beginning of the block"
    );
    server.send(&frame(CONTINUATION, END_HEADERS, 3, &[])).unwrap();
    server.send(&frame(DATA, 0, 3, &[7; 50])[..20]).unwrap();
    assert_eq!(
        server.engine.header_wait(begun + 9 * second),
        None,
        "bodies have a limit of their own"
    );
}

#[test]
fn lists_over_the_limit_are_reported_and_the_connection_goes_on() {
    let config = Config {
        max_header_list: 1_000,
        max_header_fields: 10,
        ..Config::default()
    };
    let mut server = Alone::server(config);
    let long = "y".repeat(1_000);
    let many: Vec<(&str, &str)> = (0..10).map(|_| ("x", "")).collect();
    for (stream, more, expected) in [
        (1, vec![("x", &long[..])], Oversize::List),
        (3, many, Oversize::Fields),
    ] {
        let block = request_block("POST", &more);
        server.send(&frame(HEADERS, END_HEADERS, stream, &block)).unwrap();
        let came = events(&mut server.engine);
        let [Event::Oversized { stream: id, what }] = came[..] else {
            panic!("{came:?}")
        };
        assert_eq!(what, expected);
        // What still comes is discarded.
        server.send(&frame(DATA, 0, stream, &[7; 100])).unwrap();
        assert_eq!(events(&mut server.engine), []);
        assert!(server.engine.respond(id, &ok(), Body::empty()));
        let frames: Vec<u8> = server.frames().iter().map(|frame| frame.0).collect();
        assert_eq!(
            frames,
            [HEADERS, RST_STREAM],
            "the rest of the request is not needed"
        );
        server.send(&frame(DATA, END_STREAM, stream, &[7; 100])).unwrap();
        events(&mut server.engine);
    }
    server.send(&headers(5, true)).unwrap();
    assert!(matches!(
        server.engine.next_event(),
        Some(Event::Request { end: true, .. })
    ));
    assert_eq!(server.engine.counts().discarded, 400);
}

#[test]
fn bodies_over_the_limit_are_discarded_announced_or_not() {
    let config = Config {
        max_body: 70_000,
        max_frame_size: 1 << 20,
        ..Config::default()
    };
    let mut server = Alone::server(config);
    let announced = request_block("POST", &[("content-length", "70001")]);
    server.send(&frame(HEADERS, END_HEADERS, 1, &announced)).unwrap();
    let came = events(&mut server.engine);
    assert!(
        matches!(came[..], [Event::Request { .. }, Event::TooLarge { .. }]),
        "{came:?}"
    );
    server.send(&headers(3, false)).unwrap();
    server.send(&frame(DATA, 0, 3, &vec![7; 70_000])).unwrap();
    let came = events(&mut server.engine);
    let [Event::Request { stream, .. }, Event::Arriving { bytes, .. }] = came[..] else {
        panic!("{came:?}")
    };
    assert!((70_000..140_000).contains(&bytes) && server.engine.held() > 70_000);
    server.send(&frame(DATA, END_STREAM, 3, &[7])).unwrap();
    assert_eq!(events(&mut server.engine), [Event::TooLarge { stream }]);
    assert!(server.engine.held() < 40_000, "{}", server.engine.held());
    // A byte beyond the window of the stream is an error.
    server.send(&headers(5, false)).unwrap();
    server.send(&frame(DATA, 0, 5, &vec![7; 70_002])).unwrap();
    let came = events(&mut server.engine);
    let reset = matches!(
        came[1],
        Event::Reset {
            reason: Reason::FLOW_CONTROL_ERROR,
            ..
        }
    );
    assert!(reset, "{came:?}");
}

#[test]
fn an_announced_length_takes_no_memory() {
    let mut server = Alone::server(Config::default());
    let before = server.engine.held();
    for i in 0..1_000 {
        let announced = request_block("POST", &[("content-length", "1000000")]);
        server
            .send(&frame(HEADERS, END_HEADERS, 2 * i + 1, &announced))
            .unwrap();
        server.send(&frame(DATA, 0, 2 * i + 1, b"x")).unwrap();
        events(&mut server.engine);
    }
    assert!(
        server.engine.held() - before < 1_000_000,
        "{}",
        server.engine.held()
    );
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let config = Config {
        max_concurrent_streams: 2,
        ..Config::default()
    };
    let mut server = Alone::server(config);
    for stream in [1, 3, 5] {
        server.send(&headers(stream, false)).unwrap();
    }
    assert_eq!(events(&mut server.engine).len(), 2);
    assert_eq!(server.frames(), [(RST_STREAM, 5, vec![0, 0, 0, 7])]);
    // What the peer sent before it knew is ignored.
    server.send(&frame(DATA, END_STREAM, 5, b"late")).unwrap();
    assert_eq!((server.frames(), events(&mut server.engine)), (vec![], vec![]));
    assert_eq!(
        (server.engine.counts().opened, server.engine.counts().refused),
        (3, 1)
    );
}

#[test]
fn the_window_of_the_connection_is_given_back_and_enforced() {
    let config = Config {
        max_body: 10_000,
        max_arriving: 0,
        ..Config::default()
    };
    let mut server = Alone::server(config.clone());
    let (mut given, mut sent) = (0_u32, 0);
    for i in 0..200 {
        let stream = 2 * i + 1;
        server.send(&headers(stream, false)).unwrap();
        match i % 4 {
            // Taken, padded, discarded, reset.
            0 | 1 => server
                .send(&frame(DATA, END_STREAM | 8, stream, &[9; 1_000]))
                .unwrap(),
            2 => server.send(&frame(DATA, 0, stream, &[7; 1_000])).unwrap(),
            _ => {
                let Some(Event::Request { stream: id, .. }) = server.engine.next_event() else {
                    panic!()
                };
                server.engine.reset(id, Reason::CANCEL);
                server
                    .send(&frame(DATA, END_STREAM, stream, &[7; 1_000]))
                    .unwrap();
            }
        }
        sent += 1_000;
        for event in events(&mut server.engine) {
            if let Event::Arriving { stream, .. } = event {
                server.engine.reset(stream, Reason::CANCEL);
            }
        }
        for (kind, stream, payload) in server.frames() {
            if kind == WINDOW_UPDATE {
                assert_eq!(stream, 0, "streams have one window");
                given += u32::from_be_bytes(payload[..4].try_into().unwrap());
            }
        }
        assert!(given <= sent && sent - given <= 65_535);
    }
    let mut server = Alone::server(config);
    let (times, fault) = server.flood(100, |i| {
        [headers(2 * i + 1, false), frame(DATA, 0, 2 * i + 1, &[7; 9_000])].concat()
    });
    assert_eq!((times, fault.unwrap().reason), (7, Reason::FLOW_CONTROL_ERROR));
}

#[test]
fn a_server_that_is_not_read_stops_to_read() {
    let config = Config {
        max_output: 1_000,
        ..Config::default()
    };
    let mut server = Alone::server(config);
    let mut sent = 0;
    for i in 0..10_000 {
        let request = headers(2 * i + 1, true);
        if server.engine.receive(&request, server.now).unwrap() < request.len() {
            break;
        }
        sent += 1;
        for event in events(&mut server.engine) {
            if let Event::Request { stream, .. } = event {
                server.engine.respond(stream, &ok(), body(100));
            }
        }
    }
    assert!(
        (20..400).contains(&sent) && !server.engine.takes_input(),
        "{sent}"
    );
    drain(&mut server.engine);
    assert!(server.engine.takes_input());
    server.send(&headers(2 * sent + 1, true)).unwrap();
}

#[test]
fn an_idle_connection_holds_little() {
    let mut server = Alone::server(Config::default());
    for i in 0..1_000 {
        server.send(&headers(2 * i + 1, true)).unwrap();
    }
    for event in events(&mut server.engine) {
        if let Event::Request { stream, .. } = event {
            server.engine.respond(stream, &ok(), body(10));
        }
    }
    drain(&mut server.engine);
    events(&mut server.engine);
    assert_eq!(server.engine.streams(), 0);
    assert!(server.engine.held() < 16 * 1_024, "{}", server.engine.held());
    server.engine.output().rest();
    assert_eq!(server.engine.output().held(), 0);
}

fn flood_of_client(flood: Vec<u8>) -> (u32, Option<(Reason, Option<Flood>)>) {
    let mut client = Alone::client(Config::default());
    client.engine.request(&get("/"), Body::empty()).unwrap();
    let (times, fault) = client.flood(2_000, |_| flood.clone());
    (times, fault.map(|fault| (fault.reason, fault.flood)))
}

#[test]
fn a_server_has_reason_for_some_frames_per_request() {
    let control = Some((Reason::ENHANCE_YOUR_CALM, Some(Flood::Control)));
    let informational = frame(HEADERS, END_HEADERS, 1, &block(&[(":status", "103")]));
    assert_eq!(flood_of_client(informational), (108, control));
    let reset = frame(RST_STREAM, 0, 1, &[0, 0, 0, 7]);
    assert_eq!(flood_of_client(reset), (101, control));
    let pushed = frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82, 0x84, 0x86]);
    assert_eq!(flood_of_client(pushed), (0, Some((Reason::PROTOCOL_ERROR, None))));
    let opened = frame(HEADERS, END_HEADERS, 2, &block(&[(":status", "200")]));
    assert_eq!(flood_of_client(opened), (0, Some((Reason::PROTOCOL_ERROR, None))));
}

#[test]
fn malformed_responses_reset_their_stream() {
    for fields in [
        &[(":status", "101")][..],
        &[(":status", "99")],
        &[("content-type", "text/plain")],
        &[(":status", "200"), (":status", "200")],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), ("content-length", "5")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "200"), ("Upper", "case")],
    ] {
        let mut client = Alone::client(Config::default());
        let stream = client.engine.request(&get("/"), Body::empty()).unwrap();
        let answer = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(fields));
        client.send(&answer).unwrap();
        let reset = Event::Reset {
            stream,
            reason: Reason::PROTOCOL_ERROR,
            processed: true,
        };
        assert_eq!(
            events(&mut client.engine),
            [Event::Sent { stream }, reset],
            "{fields:?}"
        );
    }
}
