//! Malformed messages (RFC 9113 §8.1.1): each rule of §8.1 to §8.3 is broken once, alone. Such a message resets its
//! stream with PROTOCOL_ERROR and reaches nothing behind the engine; the connection goes on.

use http2::{Body, Config, Event, Reason};

use crate::support::{
    Alone, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, block, body, events, frame, get,
    ok,
};

type List<'a> = &'a [(&'a str, &'a str)];

const METHOD: (&str, &str) = (":method", "POST");
const SCHEME: (&str, &str) = (":scheme", "http");
const PATH: (&str, &str) = (":path", "/nnrf-disc/v1");
const AUTHORITY: (&str, &str) = (":authority", "nrf.example");
const STATUS: (&str, &str) = (":status", "200");

/// Fields that no message may have: what is wrong, name and value.
const FIELDS: [(&str, &str, &str); 33] = [
    ("no name", "", "x"),
    ("upper case (§8.2.1)", "Accept", "x"),
    ("upper case in a name that is not known", "x-Own", "x"),
    ("a blank in a name", "x own", "x"),
    ("a blank before a name", " x-own", "x"),
    ("a blank behind a name", "accept ", "x"),
    ("NUL in a name", "x-\0", "x"),
    ("DEL in a name", "x-\x7f", "x"),
    ("beyond ASCII in a name", "x-ö", "x"),
    ("a colon in a name", "x:own", "x"),
    ("line end in a name", "x\r\ny", "x"),
    ("a separator in a name (RFC 9110 §5.1)", "x(own)", "x"),
    ("NUL in a value", "x-own", "a\0b"),
    ("NUL at the end of a value", "x-own", "a\0"),
    ("line feed in a value", "x-own", "a\nb"),
    ("carriage return in a value", "x-own", "a\rb"),
    ("line end, then a field", "accept", "a\r\nhost: b"),
    ("DEL in a value (RFC 9110 §5.5)", "x-own", "\x7f"),
    ("a blank before a value (§8.2.1)", "x-own", " a"),
    ("a blank behind a value", "x-own", "a "),
    ("a tab before a value", "x-own", "\ta"),
    ("a tab behind a value", "x-own", "a\t"),
    (
        "a blank behind a long value",
        "accept",
        "application/problem+json ",
    ),
    ("only a blank", "x-own", " "),
    ("connection (§8.2.2)", "connection", "close"),
    ("keep-alive", "keep-alive", "timeout=5"),
    ("proxy-connection", "proxy-connection", "close"),
    ("transfer-encoding", "transfer-encoding", "chunked"),
    ("upgrade", "upgrade", "h2c"),
    ("an unknown pseudo-header field (§8.3)", ":foo", "x"),
    (
        ":protocol without Extended CONNECT (RFC 8441 §4)",
        ":protocol",
        "websocket",
    ),
    ("content-length that is not a number", "content-length", "5,5"),
    ("content-length below zero", "content-length", "-1"),
];

/// Whole requests that are malformed.
const REQUESTS: [(&str, List<'_>); 29] = [
    ("no field", &[]),
    ("no :method (§8.3.1)", &[SCHEME, PATH, AUTHORITY]),
    ("no :scheme", &[METHOD, PATH, AUTHORITY]),
    ("no :path", &[METHOD, SCHEME, AUTHORITY]),
    ("empty :method", &[(":method", ""), SCHEME, PATH]),
    (
        ":method that is not a token",
        &[(":method", "GE T"), SCHEME, PATH],
    ),
    ("empty :scheme", &[METHOD, (":scheme", ""), PATH]),
    (":scheme that is none", &[METHOD, (":scheme", "1http"), PATH]),
    ("empty :path", &[METHOD, SCHEME, (":path", "")]),
    (
        ":path that does not begin with /",
        &[METHOD, SCHEME, (":path", "nnrf-disc")],
    ),
    (":path with a fragment", &[METHOD, SCHEME, (":path", "/a#b")]),
    (":path with a blank", &[METHOD, SCHEME, (":path", "/a b")]),
    (
        ":path with a blank at its end",
        &[METHOD, SCHEME, (":path", "/a ")],
    ),
    (":path * with POST", &[METHOD, SCHEME, (":path", "*")]),
    (
        ":authority with userinfo",
        &[METHOD, SCHEME, PATH, (":authority", "user@nrf")],
    ),
    (
        ":authority with a path",
        &[METHOD, SCHEME, PATH, (":authority", "nrf/x")],
    ),
    (
        ":authority with a blank",
        &[METHOD, SCHEME, PATH, (":authority", "nrf ")],
    ),
    (":method twice (§8.3)", &[METHOD, METHOD, SCHEME, PATH]),
    (":scheme twice", &[METHOD, SCHEME, SCHEME, PATH]),
    (":path twice", &[METHOD, SCHEME, PATH, PATH]),
    (":authority twice", &[METHOD, SCHEME, PATH, AUTHORITY, AUTHORITY]),
    (":status in a request", &[METHOD, SCHEME, PATH, STATUS]),
    (
        "a pseudo-header field behind another field",
        &[METHOD, SCHEME, ("accept", "x"), PATH],
    ),
    (
        "te other than trailers (§8.2.2)",
        &[METHOD, SCHEME, PATH, ("te", "gzip")],
    ),
    (
        "te with trailers and more",
        &[METHOD, SCHEME, PATH, ("te", "trailers, deflate")],
    ),
    ("CONNECT without :authority (§8.5)", &[(":method", "CONNECT")]),
    (
        "CONNECT with :scheme",
        &[(":method", "CONNECT"), SCHEME, AUTHORITY],
    ),
    ("CONNECT with :path", &[(":method", "CONNECT"), PATH, AUTHORITY]),
    (
        "content-length of two values (RFC 9110 §8.6)",
        &[
            METHOD,
            SCHEME,
            PATH,
            ("content-length", "1"),
            ("content-length", "2"),
        ],
    ),
];

/// Whole responses that are malformed.
const RESPONSES: [(&str, List<'_>); 13] = [
    ("no field", &[]),
    ("no :status (§8.3.2)", &[("content-type", "text/plain")]),
    ("empty :status", &[(":status", "")]),
    (":status of two digits", &[(":status", "99")]),
    (":status of four digits", &[(":status", "2000")]),
    (":status with a text", &[(":status", "200 OK")]),
    (":status twice", &[STATUS, STATUS]),
    (":status behind another field", &[("accept", "x"), STATUS]),
    ("101, which HTTP/2 does not have (§8.6)", &[(":status", "101")]),
    (":path in a response", &[STATUS, PATH]),
    (":method in a response", &[STATUS, METHOD]),
    (
        "a length without a body (§8.1.1)",
        &[STATUS, ("content-length", "5")],
    ),
    (
        "an interim response that ends the stream (§8.1)",
        &[(":status", "103")],
    ),
];

/// The stream of each RST_STREAM frame and its code.
fn resets(alone: &mut Alone) -> Vec<(u32, u32)> {
    let code = |payload: Vec<u8>| u32::from_be_bytes(payload[..4].try_into().unwrap());
    let frames = alone.frames().into_iter();
    frames
        .filter(|(kind, ..)| *kind == RST_STREAM)
        .map(|(_, stream, payload)| (stream, code(payload)))
        .collect()
}

/// A server that receives these frames on stream 1 resets it, reports nothing, and serves the next request.
fn server_refuses(what: &str, frames: &[Vec<u8>]) {
    let mut server = Alone::server(Config::default());
    for frame in frames {
        server
            .send(frame)
            .unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
    assert_eq!(events(&mut server.engine), [], "{what}");
    assert_eq!(
        resets(&mut server),
        [(1, Reason::PROTOCOL_ERROR.code())],
        "{what}"
    );
    let good = block(&[METHOD, SCHEME, PATH, AUTHORITY]);
    server
        .send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &good))
        .unwrap();
    let came = events(&mut server.engine);
    assert!(
        matches!(came[..], [Event::Request { end: true, .. }]),
        "{what}: {came:?}"
    );
}

/// A client that receives these frames as the answer to its request resets the stream, and its request has failed.
fn client_refuses(what: &str, frames: &[Vec<u8>], head_came: bool) {
    let mut client = Alone::client(Config::default());
    let stream = client.engine.request(&get("/"), Body::empty()).unwrap();
    client.frames();
    for frame in frames {
        client
            .send(frame)
            .unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
    let reset = Event::Reset {
        stream,
        reason: Reason::PROTOCOL_ERROR,
        processed: true,
    };
    let came = events(&mut client.engine);
    assert_eq!(came.last(), Some(&reset), "{what}");
    let heads = came
        .iter()
        .filter(|event| matches!(event, Event::Response { .. }));
    assert_eq!(heads.count(), usize::from(head_came), "{what}: {came:?}");
    assert_eq!(
        resets(&mut client),
        [(1, Reason::PROTOCOL_ERROR.code())],
        "{what}"
    );
}

fn whole(list: List<'_>) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(list))
}

#[test]
fn a_field_that_no_message_may_have_is_refused_in_all_of_them() {
    for (what, name, value) in FIELDS {
        let flaw = (name, value);
        server_refuses(what, &[whole(&[METHOD, SCHEME, PATH, AUTHORITY, flaw])]);
        client_refuses(what, &[whole(&[STATUS, flaw])], false);
        if name == "content-length" {
            continue;
        }
        let head = frame(HEADERS, END_HEADERS, 1, &block(&[STATUS]));
        client_refuses(what, &[head, whole(&[("x-sum", "1"), flaw])], true);
    }
}

#[test]
fn a_malformed_request_is_refused() {
    for (what, list) in REQUESTS {
        server_refuses(what, &[whole(list)]);
    }
}

#[test]
fn a_malformed_response_is_refused() {
    for (what, list) in RESPONSES {
        client_refuses(what, &[whole(list)], false);
    }
}

/// The flaw of a field stands in the table with it (RFC 7541 §6.1), and in a block of several frames.
#[test]
fn a_flaw_is_found_in_the_table_and_across_frames() {
    for (name, value) in [("Upper", "x"), ("x-own", "a "), ("connection", "close")] {
        let head = block(&[METHOD, SCHEME, PATH, AUTHORITY]);
        let mut literal = block(&[(name, value)]);
        literal[0] = 0x40;
        let mut server = Alone::server(Config::default());
        let first = [head.clone(), literal].concat();
        let (start, rest) = first.split_at(head.len() + 2);
        server.send(&frame(HEADERS, END_STREAM, 1, start)).unwrap();
        server.send(&frame(CONTINUATION, END_HEADERS, 1, rest)).unwrap();
        // The newest entry of the table.
        let second = [head.clone(), vec![0x80 | 62]].concat();
        server
            .send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &second))
            .unwrap();
        assert_eq!(events(&mut server.engine), [], "{name}");
        let code = Reason::PROTOCOL_ERROR.code();
        assert_eq!(resets(&mut server), [(1, code), (3, code)], "{name}");
    }
}

/// Blocks that repeat themselves are remembered with what was found out about them.
#[test]
fn a_malformed_head_is_refused_however_often_it_comes() {
    for (what, list) in REQUESTS {
        let mut server = Alone::server(Config::default());
        for stream in [1, 3, 5, 7] {
            let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(list));
            server.send(&request).unwrap();
            assert_eq!(events(&mut server.engine), [], "{what}");
            let code = Reason::PROTOCOL_ERROR.code();
            assert_eq!(resets(&mut server), [(stream, code)], "{what}");
        }
    }
}

#[test]
fn a_head_that_repeats_itself_still_announces_its_length() {
    let mut server = Alone::server(Config::default());
    let head = block(&[METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "5")]);
    for (stream, len) in [(1, 5), (3, 5), (5, 5), (7, 4), (9, 6), (11, 5)] {
        server.send(&frame(HEADERS, END_HEADERS, stream, &head)).unwrap();
        let data = frame(DATA, END_STREAM, stream, &vec![b'x'; len]);
        server.send(&data).unwrap();
        let came = events(&mut server.engine);
        let [Event::Request { head, .. }, after] = &came[..] else {
            panic!("{came:?}")
        };
        assert_eq!((head.method().as_str(), head.target()), ("POST", PATH.1));
        match after {
            Event::Body { body, .. } => assert_eq!((len, body.len()), (5, 5)),
            Event::Reset { reason, .. } => assert_eq!((len != 5, *reason), (true, Reason::PROTOCOL_ERROR)),
            other => panic!("{other:?}"),
        }
    }
    // Nor does a block without a body pass that announces one.
    let bodiless = frame(HEADERS, END_HEADERS | END_STREAM, 13, &head);
    server.send(&bodiless).unwrap();
    assert_eq!(events(&mut server.engine), []);
}

#[test]
fn a_head_that_was_seen_before_is_no_trailer() {
    let head = |stream, flags| frame(HEADERS, END_HEADERS | flags, stream, &block(&[STATUS]));
    let mut client = Alone::client(Config::default());
    for stream in [1, 3, 5] {
        client.engine.request(&get("/"), Body::empty()).unwrap();
        client.send(&head(stream, END_STREAM)).unwrap();
    }
    let stream = client.engine.request(&get("/"), Body::empty()).unwrap();
    events(&mut client.engine);
    client.send(&head(7, 0)).unwrap();
    client.send(&head(7, END_STREAM)).unwrap();
    let reset = Event::Reset {
        stream,
        reason: Reason::PROTOCOL_ERROR,
        processed: true,
    };
    assert_eq!(events(&mut client.engine).last(), Some(&reset));
}

/// Index 57 of the static table is `transfer-encoding` without a value (RFC 7541 Appendix A).
#[test]
fn transfer_encoding_of_the_static_table_is_refused() {
    let request = [block(&[METHOD, SCHEME, PATH, AUTHORITY]), vec![0x80 | 57]].concat();
    let whole = |block: &[u8]| frame(HEADERS, END_HEADERS | END_STREAM, 1, block);
    server_refuses("transfer-encoding", &[whole(&request)]);
    let response = [block(&[STATUS]), vec![0x80 | 57]].concat();
    client_refuses("transfer-encoding", &[whole(&response)], false);
}

#[test]
fn trailers_have_no_pseudo_header_fields_and_end_the_stream() {
    let head = frame(HEADERS, END_HEADERS, 1, &block(&[STATUS]));
    for (what, trailers) in [
        (":status in trailers (§8.1)", whole(&[STATUS])),
        (":path in trailers", whole(&[("x-sum", "1"), PATH])),
        (
            "trailers that do not end the stream",
            frame(HEADERS, END_HEADERS, 1, &block(&[("x-sum", "1")])),
        ),
    ] {
        client_refuses(what, &[head.clone(), trailers], true);
    }
}

#[test]
fn a_body_has_the_length_that_its_head_announces() {
    let announced = |length: &'static str| {
        frame(
            HEADERS,
            END_HEADERS,
            1,
            &block(&[STATUS, ("content-length", length)]),
        )
    };
    let data = |end: bool, len: usize| frame(DATA, if end { END_STREAM } else { 0 }, 1, &vec![b'x'; len]);
    client_refuses(
        "too short",
        &[announced("5"), data(false, 2), data(true, 2)],
        true,
    );
    client_refuses("too long", &[announced("5"), data(false, 4), data(true, 2)], true);
    client_refuses(
        "too short before trailers",
        &[announced("5"), data(false, 4), whole(&[("x-sum", "1")])],
        true,
    );
}

#[test]
fn what_is_unusual_and_permitted_arrives() {
    for (what, list) in [
        ("no :authority", &[METHOD, SCHEME, PATH][..]),
        ("CONNECT", &[(":method", "CONNECT"), (":authority", "nrf:443")]),
        ("OPTIONS *", &[(":method", "OPTIONS"), SCHEME, (":path", "*")]),
        ("a method of one's own", &[(":method", "x-Own"), SCHEME, PATH]),
        ("another scheme", &[METHOD, (":scheme", "coap+tcp"), PATH]),
        ("te: trailers", &[METHOD, SCHEME, PATH, ("te", "trailers")]),
        (
            "blanks and tabs inside",
            &[METHOD, SCHEME, PATH, ("x-own", "a \t b")],
        ),
        ("no value", &[METHOD, SCHEME, PATH, ("x-own", "")]),
        ("obs-text", &[METHOD, SCHEME, PATH, ("x-own", "ö")]),
        (
            "all characters of a token",
            &[METHOD, SCHEME, PATH, ("!#$%&'*+-.^_`|~09az", "x")],
        ),
        (
            "one length twice",
            &[
                METHOD,
                SCHEME,
                PATH,
                ("content-length", "0"),
                ("content-length", "0"),
            ],
        ),
    ] {
        let mut server = Alone::server(Config::default());
        server.send(&whole(list)).unwrap();
        let came = events(&mut server.engine);
        let [
            Event::Request {
                stream, end: true, ..
            },
        ] = came[..]
        else {
            panic!("{what}: {came:?}")
        };
        assert!(server.engine.respond(stream, &ok(), body(1)), "{what}");
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let mut client = Alone::client(Config::default());
    let stream = client.engine.request(&get("/"), Body::empty()).unwrap();
    for status in ["100", "102", "103", "199"] {
        let interim = block(&[(":status", status), ("link", "</a>")]);
        client.send(&frame(HEADERS, END_HEADERS, 1, &interim)).unwrap();
    }
    client.send(&whole(&[STATUS])).unwrap();
    let came = events(&mut client.engine);
    let [
        Event::Sent { .. },
        Event::Response {
            stream: of,
            ref head,
            end: true,
        },
    ] = came[..]
    else {
        panic!("{came:?}")
    };
    assert_eq!((of, head.status.as_u16(), head.fields.len()), (stream, 200, 0));
}
