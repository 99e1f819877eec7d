//! Flow control and framing of a peer that uses all that the standard permits: windows that change while a body is on
//! its way, padding, header blocks in many frames.

use http2::{Body, Config, Event, Fault, Reason, name};
use proptest::prelude::*;

use crate::support::{
    Alone, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE, block, body,
    events, frame, get, headers, ok, post, value,
};

const PADDED: u8 = 8;
const PRIORITY_FLAG: u8 = 0x20;
const INITIAL: usize = 65_535;

/// SETTINGS with an initial window size.
fn initial_window(size: u32) -> Vec<u8> {
    let mut payload = vec![0, 4];
    payload.extend(size.to_be_bytes());
    frame(SETTINGS, 0, 0, &payload)
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Bytes of DATA that the engine sends on stream 1.
fn sent(alone: &mut Alone) -> usize {
    let data = |(kind, stream, payload): &(u8, u32, Vec<u8>)| {
        if (*kind, *stream) == (DATA, 1) {
            payload.len()
        } else {
            0
        }
    };
    alone.frames().iter().map(data).sum()
}

/// RFC 9113 §6.9.2: a smaller initial window takes from what was sent already, and the window may become negative.
fn shrinks_while_sending(alone: &mut Alone) {
    assert_eq!(sent(alone), INITIAL);
    alone.send(&window_update(0, 1_000_000)).unwrap();
    assert_eq!(sent(alone), 0, "the window of the stream is used up");
    alone.send(&initial_window(16_384)).unwrap();
    assert_eq!(sent(alone), 0);
    // 65,535 bytes are out, 16,384 were allowed: the window is -49,151.
    alone.send(&window_update(1, 49_151)).unwrap();
    assert_eq!(sent(alone), 0, "the window is 0");
    alone.send(&window_update(1, 1)).unwrap();
    assert_eq!(sent(alone), 1);
    // Below zero again, and back by another SETTINGS.
    alone.send(&initial_window(0)).unwrap();
    assert_eq!(sent(alone), 0);
    alone.send(&initial_window(16_384 + 10)).unwrap();
    assert_eq!(sent(alone), 10);
    alone.send(&initial_window(1_000_000)).unwrap();
    assert_eq!(sent(alone), 100_000 - INITIAL - 11);
    assert_eq!(alone.engine.unsent(), 0);
}

#[test]
fn the_window_of_a_request_may_become_negative() {
    let mut client = Alone::client(Config::default());
    client.engine.request(&post("/"), body(100_000)).unwrap();
    shrinks_while_sending(&mut client);
}

#[test]
fn the_window_of_an_answer_may_become_negative() {
    let mut server = Alone::server(Config::default());
    server.send(&headers(1, true)).unwrap();
    let came = events(&mut server.engine);
    let [Event::Request { stream, .. }] = came[..] else {
        panic!("{came:?}")
    };
    assert!(server.engine.respond(stream, &ok(), body(100_000)));
    shrinks_while_sending(&mut server);
}

#[test]
fn a_stream_that_opens_later_has_the_window_of_then() {
    let mut client = Alone::client(Config::default());
    client.send(&initial_window(5)).unwrap();
    client.frames();
    client.engine.request(&post("/"), body(20)).unwrap();
    assert_eq!(sent(&mut client), 5);
    client.send(&initial_window(12)).unwrap();
    assert_eq!(sent(&mut client), 7);
    client.send(&window_update(1, 8)).unwrap();
    assert_eq!(sent(&mut client), 8);
}

#[test]
fn windows_beyond_the_largest_are_errors() {
    let reason = |sent: Result<(), Fault>| sent.map_err(|fault| fault.reason);
    let mut client = Alone::client(Config::default());
    client.engine.request(&post("/"), body(100_000)).unwrap();
    client.frames();
    // The window of the stream is 0 now.
    client.send(&window_update(1, (1 << 31) - 1)).unwrap();
    assert_eq!(
        reason(client.send(&initial_window(INITIAL as u32 + 1))),
        Err(Reason::FLOW_CONTROL_ERROR)
    );
    let mut client = Alone::client(Config::default());
    assert_eq!(
        reason(client.send(&window_update(0, (1 << 31) - 1))),
        Err(Reason::FLOW_CONTROL_ERROR)
    );
    let mut client = Alone::client(Config::default());
    assert_eq!(
        reason(client.send(&initial_window(1 << 31))),
        Err(Reason::FLOW_CONTROL_ERROR)
    );
}

/// A DATA frame with padding.
fn padded(stream: u32, data: &[u8], padding: u8, end: bool) -> Vec<u8> {
    let payload = [&[padding], data, &vec![0; usize::from(padding)]].concat();
    frame(DATA, PADDED | if end { END_STREAM } else { 0 }, stream, &payload)
}

/// Padding uses up the windows (RFC 9113 §6.1) and is given back, so that a body goes on after any amount of it.
#[test]
fn padding_is_given_back() {
    let config = Config {
        max_body: 70_000,
        max_arriving: 70_000,
        ..Config::default()
    };
    let mut client = Alone::client(config);
    let asked = client.engine.request(&get("/"), Body::empty()).unwrap();
    let mut windows = [0_i64; 2];
    let given = |client: &mut Alone, windows: &mut [i64; 2]| {
        for (kind, stream, payload) in client.frames() {
            if kind == WINDOW_UPDATE {
                let bytes = u32::from_be_bytes(payload[..].try_into().unwrap());
                windows[stream as usize] += i64::from(bytes);
            }
        }
    };
    given(&mut client, &mut windows);
    windows = [INITIAL as i64; 2];
    client
        .send(&frame(HEADERS, END_HEADERS, 1, &block(&[(":status", "200")])))
        .unwrap();
    const FRAMES: usize = 2_000;
    for number in 0..FRAMES {
        let data = padded(1, b"x", 255, number + 1 == FRAMES);
        let size = data.len() as i64 - 9;
        assert!(
            windows.iter().all(|window| *window >= size),
            "after {number} frames: {windows:?}"
        );
        client.send(&data).unwrap();
        windows = windows.map(|window| window - size);
        given(&mut client, &mut windows);
    }
    let came = events(&mut client.engine);
    assert!(
        came.contains(&Event::Body {
            stream: asked,
            body: body(FRAMES)
        }),
        "{}",
        came.len()
    );
}

#[test]
fn padding_longer_than_its_frame_is_an_error() {
    for (kind, payload) in [
        (DATA, &[5_u8, b'x'][..]),
        (DATA, &[]),
        (HEADERS, &[9, 0x88]),
        (HEADERS, &[]),
    ] {
        let mut client = Alone::client(Config::default());
        client.engine.request(&get("/"), Body::empty()).unwrap();
        client
            .send(&frame(HEADERS, END_HEADERS, 1, &block(&[(":status", "200")])))
            .unwrap();
        let fault = client
            .send(&frame(kind, PADDED | END_HEADERS | END_STREAM, 1, payload))
            .unwrap_err();
        let expected = if payload.is_empty() {
            Reason::FRAME_SIZE_ERROR
        } else {
            Reason::PROTOCOL_ERROR
        };
        assert_eq!(fault.reason, expected, "{kind} {payload:?}");
    }
}

proptest! {
    /// A header block is the same in one frame or in several, with padding or priority or without, and so are trailers.
    #[test]
    fn a_block_may_come_in_any_number_of_frames(
        cuts in prop::collection::vec(0_usize..200, 0..12),
        padding in prop::option::of(0_u8..),
        priority in prop::bool::ANY,
        trailers in prop::bool::ANY,
    ) {
        let list = [(":status", "200"), ("content-type", "application/json"), ("x-own", "some value of some length")];
        let whole = block(&list);
        let mut client = Alone::client(Config::default());
        let stream = client.engine.request(&get("/"), Body::empty()).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % whole.len()).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
        let last = parts.len() - 1;
        for (number, part) in parts.into_iter().enumerate() {
            let ends = if number == last { END_HEADERS } else { 0 };
            if number > 0 {
                client.send(&frame(CONTINUATION, ends, 1, part)).unwrap();
                continue;
            }
            let (mut flags, mut payload) = (ends, Vec::new());
            if let Some(padding) = padding {
                flags |= PADDED;
                payload.push(padding);
            }
            if priority {
                flags |= PRIORITY_FLAG;
                payload.extend([0, 0, 0, 0, 15]);
            }
            payload.extend(part);
            payload.extend(vec![0; usize::from(padding.unwrap_or_default())]);
            client.send(&frame(HEADERS, flags, 1, &payload)).unwrap();
        }
        client.send(&frame(DATA, if trailers { 0 } else { END_STREAM }, 1, b"abc")).unwrap();
        if trailers {
            client.send(&frame(HEADERS, END_STREAM, 1, &block(&[("x-sum", "1")]))).unwrap();
            client.send(&frame(CONTINUATION, END_HEADERS, 1, &[])).unwrap();
        }
        let mut came = events(&mut client.engine);
        came.retain(|event| !matches!(event, Event::Arriving { .. }));
        let [Event::Sent { .. }, Event::Response { ref head, end: false, .. }, Event::Body { stream: of, body: ref whole }] = came[..] else {
            panic!("{came:?}")
        };
        prop_assert_eq!((of, whole), (stream, &Body::from(b"abc".to_vec())));
        prop_assert_eq!(head.fields.get(name::CONTENT_TYPE), Some(value("application/json")));
        prop_assert_eq!(head.fields.len(), 2);
    }
}
