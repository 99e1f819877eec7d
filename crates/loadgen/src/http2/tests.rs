//! Two machines joined in memory, with input cut into pieces of any size; and bytes of an unknown sender.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// What one side has received: by stream, its head (method or status, then path) and body; and whether it ended.
type Heard = BTreeMap<u32, (Vec<u8>, Vec<u8>, bool)>;

/// Moves what `from` has put out to `to`, in pieces of these sizes.
fn carry(
    from: &mut Connection,
    to: &mut Connection,
    pieces: &mut impl Iterator<Item = usize>,
    heard: &mut Heard,
) -> bool {
    let bytes = std::mem::take(&mut from.out);
    let mut rest = &bytes[..];
    let moved = !rest.is_empty();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(pieces.next().unwrap_or(1).clamp(1, rest.len()));
        rest = after;
        let mut input = piece;
        while let Some(event) = to.next(&mut input).unwrap() {
            match event {
                Event::Head { stream, fields, end } => {
                    let head = fields
                        .get(":method")
                        .or(fields.get(":status"))
                        .unwrap_or_default()
                        .to_vec();
                    let more = fields.get(":path").or(fields.get("x-own")).unwrap_or_default();
                    heard.insert(stream, ([&head, more].concat(), Vec::new(), end));
                }
                Event::Data { stream, bytes, end } => {
                    let entry = heard.get_mut(&stream).unwrap();
                    entry.1.extend_from_slice(bytes);
                    entry.2 |= end;
                }
                Event::Ready => {}
                other => panic!("{other:?}"),
            }
        }
    }
    moved
}

fn body(length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8).collect::<Vec<_>>().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every message arrives whole, however the bytes are cut and however small the windows are.
    #[test]
    fn messages_arrive_whole(
        lengths in prop::collection::vec((0_usize..60_000, 0_usize..60_000), 1..12),
        cuts in prop::collection::vec(1_usize..5000, 1..40),
        stream_window in 1_u32..100_000,
        table in prop::option::of(0_u32..4096),
    ) {
        // Stream windows are never widened by this machine, so they must hold a body.
        let limits = Limits { stream_window: stream_window.max(60_000), connection_window: 70_000, ..Limits::default() };
        let mut client = Connection::new(Role::Client, limits);
        let mut server = Connection::new(Role::Server, limits);
        if let Some(size) = table {
            // As if the client had announced another table size.
            frame::put_settings(&mut client.out, &[(frame::SETTING_HEADER_TABLE_SIZE, size)]);
        }
        let mut pieces = cuts.iter().copied().cycle();
        let (mut asked, mut answered) = (Heard::new(), Heard::new());
        while !client.is_ready() {
            carry(&mut client, &mut server, &mut pieces, &mut asked);
            carry(&mut server, &mut client, &mut pieces, &mut answered);
        }
        for (n, (length, _)) in lengths.iter().enumerate() {
            let path = format!("/path/{n}");
            let own = [("x-own", path.as_str())];
            let head = RequestHead { method: "POST", path: path.as_bytes(), authority: "lab", stable: &[("user-agent", "x")], own: &own };
            prop_assert_eq!(client.request(&head, &body(*length)), n as u32 * 2 + 1);
        }
        let mut replied = 0;
        loop {
            let mut moved = carry(&mut client, &mut server, &mut pieces, &mut asked);
            let ready: Vec<u32> = asked.iter().filter(|(_, m)| m.2).map(|(s, _)| *s).collect();
            for stream in ready.into_iter().skip(replied) {
                let n = (stream as usize - 1) / 2;
                let own = format!("answer {n}");
                server.respond(stream, 200, &[("content-type", "x")], &[("x-own", &own)], &body(lengths[n].1));
                replied += 1;
            }
            moved |= carry(&mut server, &mut client, &mut pieces, &mut answered);
            if !moved {
                break;
            }
        }
        for (n, (asked_length, answered_length)) in lengths.iter().enumerate() {
            let stream = n as u32 * 2 + 1;
            let expected = (format!("POST/path/{n}").into_bytes(), body(*asked_length).to_vec(), true);
            prop_assert!(asked.get(&stream) == Some(&expected), "request {n}");
            let expected = (format!("200answer {n}").into_bytes(), body(*answered_length).to_vec(), true);
            prop_assert!(answered.get(&stream) == Some(&expected), "answer {n}");
        }
    }

    /// Whatever bytes arrive, the machine reports an error or waits for more.
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), server: bool, sensible: bool) {
        let mut machine = Connection::new(if server { Role::Server } else { Role::Client }, Limits::default());
        let mut all = if server { frame::PREFACE.to_vec() } else { Vec::new() };
        if sensible {
            // Valid frame headers around random payloads.
            for piece in bytes.chunks(12) {
                frame::put_header(&mut all, piece.len(), piece[0] % 11, piece[piece.len() - 1], u32::from(piece[0] % 4));
                all.extend_from_slice(piece);
            }
        } else {
            all.extend_from_slice(&bytes);
        }
        let mut input = &all[..];
        while let Ok(Some(_)) = machine.next(&mut input) {}
    }
}

#[test]
fn breaches_of_the_protocol_are_reported() {
    let breach = |make: &dyn Fn(&mut Vec<u8>)| {
        let mut machine = Connection::new(Role::Client, Limits::default());
        let mut bytes = Vec::new();
        frame::put_settings(&mut bytes, &[]);
        make(&mut bytes);
        let mut input = &bytes[..];
        loop {
            match machine.next(&mut input) {
                Ok(Some(_)) => {}
                Ok(None) => panic!("no error for {bytes:02x?}"),
                Err(failure) => return failure,
            }
        }
    };
    assert_eq!(
        breach(&|b| frame::put_header(b, 20_000, frame::DATA, 0, 1)),
        Failure::FrameSize
    );
    assert_eq!(
        breach(&|b| frame::put_header(b, 4, frame::PUSH_PROMISE, 0, 1)),
        Failure::Order
    );
    assert_eq!(
        breach(&|b| frame::put_header(b, 0, frame::CONTINUATION, 0, 1)),
        Failure::Order
    );
    assert_eq!(
        breach(&|b| {
            frame::put_header(b, 1, frame::HEADERS, 0, 1);
            b.push(0x88);
            frame::put_header(b, 0, frame::DATA, 0, 1);
        }),
        Failure::Order
    );
    assert_eq!(
        breach(&|b| {
            frame::put_header(b, 1, frame::HEADERS, frame::END_HEADERS, 1);
            b.push(0x80);
        }),
        Failure::Compression
    );
    assert_eq!(
        breach(&|b| frame::put_settings(b, &[(frame::SETTING_MAX_FRAME_SIZE, 1)])),
        Failure::FrameSize
    );
    let twice =
        |b: &mut Vec<u8>| (0..2).for_each(|_| frame::put_number(b, frame::WINDOW_UPDATE, 0, 0x7fff_ffff));
    assert_eq!(breach(&twice), Failure::FlowControl);
    let mut server = Connection::new(Role::Server, Limits::default());
    assert_eq!(
        server.next(&mut &b"GET / HTTP/1.1\r\n"[..]).unwrap_err(),
        Failure::Preface
    );
}
