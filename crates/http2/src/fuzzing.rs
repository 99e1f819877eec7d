//! Bodies of the fuzz targets of this crate: operations on bytes from the network, and what must hold afterwards. Not part
//! of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};

use crate::fields::{Fields, Value};
use crate::hpack::{Decoder, Encoder, Limits};
use crate::{Body, Config, Connection, Event, RequestHead, ResponseHead};

/// Header blocks, each behind a byte that gives its length: what is decoded is encoded and decoded again as it was,
/// limits change nothing but what is stored, and memory is bounded.
pub fn header_blocks(bytes: &[u8]) {
    let wide = Limits {
        list: 1 << 20,
        fields: 10_000,
    };
    let narrow = Limits { list: 200, fields: 4 };
    let (mut decoder, mut careful) = (Decoder::new(4096), Decoder::new(4096));
    let (mut encoder, mut peer) = (Encoder::new(), Decoder::new(4096));
    let mut rest = bytes;
    while let Some((len, after)) = rest.split_first() {
        let (block, after) = after.split_at(after.len().min(usize::from(*len)));
        rest = after;
        let (mut list, mut start) = (Fields::new(), Fields::new());
        let outcome = decoder.decode(block, wide, &mut list);
        let limited = careful.decode(block, narrow, &mut start);
        assert_eq!(outcome.is_ok(), limited.is_ok());
        assert!(decoder.held() <= 32 * 1024, "{}", decoder.held());
        let (Ok(outcome), Ok(limited)) = (outcome, limited) else {
            return;
        };
        assert_eq!((outcome.size, outcome.fields), (limited.size, limited.fields));
        assert!(start.list_size() <= narrow.list && start.len() <= narrow.fields);
        assert!(start.all().eq(list.all().take(start.len())));
        if outcome.malformed.is_none() && !outcome.over {
            assert_eq!((outcome.size, outcome.fields), (list.list_size(), list.len()));
        }

        encoder.peer_table_size(u32::from(*len) * 32);
        let (mut again, mut copy) = (Vec::new(), Fields::new());
        encoder.fields(&list, &mut again);
        assert!(
            peer.decode(&again, wide, &mut copy)
                .is_ok_and(|outcome| outcome.malformed.is_none())
        );
        assert!(copy.all().eq(list.iter()));
    }
}

/// What a peer sends behind its preface: to a server if the first byte is even, to a client with three requests if it is
/// odd, in pieces of the length that the second byte says. Memory is bounded, and what the engine writes are whole frames.
pub fn connection(bytes: &[u8]) {
    let Some((&[role, size], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    let (now, config) = (Instant::now(), Arc::new(Config::default()));
    let is_client = role % 2 == 1;
    let mut engine = if is_client {
        Connection::client(config, now)
    } else {
        Connection::server(config, now)
    };
    if is_client {
        let text = Value::from_static;
        let head = RequestHead::new(Method::POST, text("http"), text("nrf"), text("/"));
        for len in [0, 100, 100_000] {
            let _ = engine.request(&head, Body::from(vec![7; len]));
        }
    } else {
        let preface = engine.receive(crate::frame::PREFACE, now);
        assert_eq!(preface, Ok(crate::frame::PREFACE.len()));
    }
    let mut written = written(&mut engine);
    for mut piece in bytes.chunks(usize::from(size) + 1) {
        while !piece.is_empty() {
            let Ok(taken) = engine.receive(piece, now) else {
                assert!(engine.is_finished() && engine.streams() == 0);
                break;
            };
            assert!(taken > 0, "what is written is taken, so that there is room");
            piece = &piece[taken..];
            answer(&mut engine);
            written.extend(self::written(&mut engine));
        }
        assert!(engine.held() < 512 * 1024, "{}", engine.held());
    }
    written.extend(self::written(&mut engine));
    let mut rest = &written[if is_client { crate::frame::PREFACE.len() } else { 0 }..];
    while let Some((head, after)) = rest.split_first_chunk() {
        rest = &after[crate::frame::Head::read(head).len..];
    }
    assert!(rest.is_empty());
}

/// Answers each request that is whole.
fn answer(engine: &mut Connection) {
    while let Some(event) = engine.next_event() {
        if let Event::Request {
            stream, end: true, ..
        }
        | Event::Body { stream, .. } = event
        {
            engine.respond(
                stream,
                &ResponseHead::new(StatusCode::OK),
                Body::from(vec![7; 2_000]),
            );
        }
    }
}

fn written(engine: &mut Connection) -> Vec<u8> {
    let mut written = Vec::new();
    loop {
        let output = engine.output();
        let mut slices = [std::io::IoSlice::new(&[]); 16];
        let filled = output.slices(&mut slices);
        let before = written.len();
        slices[..filled]
            .iter()
            .for_each(|slice| written.extend_from_slice(slice));
        let len = written.len() - before;
        output.advance(len);
        if len == 0 {
            return written;
        }
    }
}
