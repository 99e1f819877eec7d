//! Producers that break the rules, asked through an SCP.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use testpeer::http2::frame::{self, kind};
use testpeer::http2::hostile::answer;
use testpeer::http2::{Hostile, flood};

use crate::answer::Ask;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::Scp;

macro_rules! floods {
    ($($name:literal, $about:literal, $frame:expr;)*) => {
        const FLOODS: &[Attack] = &[$(
            attack($name, $about, Scp, |f| Box::pin(poured(f, $frame))),
        )*];
    };
}

floods! {
    "producer.settings", "a producer pours SETTINGS", frame::settings(&[(4, 65_535)]);
    "producer.pings", "a producer pours PINGs", frame::ping([7; 8]);
    "producer.ping-acks", "a producer pours PING ACKs that were not asked for", frame::raw(kind::PING, 1, 0, &[7; 8]);
    "producer.unknown-frames", "a producer pours frames of an unknown kind", frame::raw(0xbe, 0, 0, b"x");
    "producer.window-updates", "a producer pours WINDOW_UPDATE", frame::window(0, 1);
    "producer.resets", "a producer resets a stream over and over", frame::reset(1, 8);
    "producer.priorities", "a producer pours PRIORITY frames", frame::raw(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 16]);
    "producer.early-hints", "a producer pours answers 103", frame::status(1, 103, false);
}

const ANSWERS: &[Attack] = &[
    attack(
        "producer.bad-answers",
        "invalid answers: line breaks, lengths, status codes, pseudo-headers, trailers",
        Scp,
        |f| Box::pin(bad_answers(f)),
    ),
    attack(
        "producer.endless-body",
        "an answer whose body never ends",
        Scp,
        |f| Box::pin(endless_body(f)),
    ),
    attack(
        "producer.header-flood",
        "an answer with a header list of 1 MB",
        Scp,
        |f| Box::pin(header_flood(f)),
    ),
    attack(
        "producer.goaways",
        "GOAWAY for streams that are in progress, and for none",
        Scp,
        |f| Box::pin(goaways(f)),
    ),
    attack(
        "producer.break-off",
        "connections that break in the middle of answers",
        Scp,
        |f| Box::pin(break_off(f)),
    ),
    attack("producer.silence", "requests that are never answered", Scp, |f| {
        Box::pin(silence(f))
    }),
    attack(
        "producer.hpack-wide",
        "answers whose lists name one entry 1,800 times",
        Scp,
        |f| Box::pin(hpack_wide(f)),
    ),
];

pub(super) fn all() -> Vec<Attack> {
    [FLOODS, ANSWERS].concat()
}

/// A request through the SCP to this producer.
fn to(root: &str, path: &str) -> Ask {
    Ask::get(path)
        .header("3gpp-sbi-target-apiroot", root)
        .within(Duration::from_secs(8))
}

/// How long the end of a connection is awaited that is flooded no more.
const LATE: Duration = Duration::from_secs(8);

async fn poured(field: Rc<Field>, one: Vec<u8>) -> anyhow::Result<()> {
    let (sent, ended) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let (its_sent, its_ended, time) = (sent.clone(), ended.clone(), field.flood_time());
    let buffer = Rc::new(flood::repeated(&one));
    let server = Hostile::start(move |mut peer| {
        let (sent, ended, buffer) = (its_sent.clone(), its_ended.clone(), buffer.clone());
        async move {
            // Only what asks is attacked: from the first request on.
            let asked = peer.wait_for("a request", |f| f.kind == kind::HEADERS).await;
            if asked.is_ok() {
                let mut poured = peer.pour(&buffer, u64::MAX, time).await;
                if !poured.ended {
                    // A busy machine may not have read yet what was sent.
                    poured.ended = peer.pour_to_the_end(&[], LATE).await.ended;
                }
                *sent.borrow_mut() += poured.sent;
                ended.borrow_mut().push(poured.ended);
            }
        }
    })
    .await?;
    let ask = to(&server.root(), "/nudr-dr/v2/flood").within(time + Duration::from_secs(3));
    for _ in 0..field.of(3, 1) {
        let got = field.ask(&ask).await;
        field.check(got.status != 200, "a flood was taken for an answer");
    }
    // The scripts say so once the connection is over, or is not.
    for _ in 0..100 {
        if ended.borrow().len() as u64 >= server.connections().min(1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    field.note(format_args!(
        "{} KiB on {} connections",
        *sent.borrow() / 1_024,
        server.connections()
    ));
    let all_ended = ended.borrow().iter().all(|ended| *ended) && !ended.borrow().is_empty();
    field.check(all_ended, "a producer's flood was never ended");
    Ok(())
}

type Case = (&'static str, fn(u32) -> Vec<u8>);

fn with(stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![(":status", "200")];
    fields.extend(more);
    answer(stream, &fields, b"x")
}

const BAD: &[Case] = &[
    ("a line break in a value", |s| {
        with(s, &[("x-a", "b\r\nset-cookie: c")])
    }),
    ("a line break in a name", |s| with(s, &[("x-a\r\nx-b", "c")])),
    ("NUL in a value", |s| with(s, &[("x-a", "b\0c")])),
    ("a name in capitals", |s| with(s, &[("X-Capitals", "b")])),
    ("a content-length too long", |s| {
        with(s, &[("content-length", "5")])
    }),
    ("a content-length too short", |s| {
        with(s, &[("content-length", "0")])
    }),
    ("two content-lengths", |s| {
        with(s, &[("content-length", "1"), ("content-length", "2")])
    }),
    ("a negative content-length", |s| {
        with(s, &[("content-length", "-1")])
    }),
    ("no status", |s| {
        answer(s, &[("content-type", "text/plain")], b"x")
    }),
    ("a status of letters", |s| answer(s, &[(":status", "abc")], b"x")),
    ("a status of one digit", |s| answer(s, &[(":status", "2")], b"x")),
    ("a status of four digits", |s| {
        answer(s, &[(":status", "2000")], b"x")
    }),
    ("status 999", |s| answer(s, &[(":status", "999")], b"x")),
    ("status 101", |s| answer(s, &[(":status", "101")], b"x")),
    ("transfer-encoding", |s| {
        with(s, &[("transfer-encoding", "chunked")])
    }),
    ("a push", |s| {
        let mut promised = 2u32.to_be_bytes().to_vec();
        promised.extend(frame::block(&frame::request_fields("GET", "/x")));
        [frame::raw(kind::PUSH_PROMISE, 4, s, &promised), with(s, &[])].concat()
    }),
    ("DATA before HEADERS", |s| {
        [frame::data(s, b"x", false), with(s, &[])].concat()
    }),
    ("a stream that was never opened", |s| with(s + 1_000, &[])),
    ("a broken header block", |s| {
        frame::raw(kind::HEADERS, 5, s, &[0xff; 40])
    }),
    ("an HTTP/1.1 answer", |_| {
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx".to_vec()
    }),
];

async fn bad_answers(field: Rc<Field>) -> anyhow::Result<()> {
    for (what, frames) in BAD {
        let server = Hostile::answering(frames).await?;
        let ask = to(&server.root(), "/nudr-dr/v2/bad").within(Duration::from_secs(3));
        for _ in 0..field.of(5, 1) {
            let got = field.ask(&ask).await;
            // It may be cut off, too: then the status is 0.
            let refused = got.status == 0 || (400..600).contains(&got.status);
            field.check(refused, format_args!("{what}: forwarded as {}", got.status));
        }
    }
    // What does not belong there may be left out instead: the answer is then as it should have been.
    let cleaned: [Case; 2] = [
        ("a method in an answer", |s| {
            with(s, &[(":method", "GET"), ("x-a", "b")])
        }),
        ("trailers with a pseudo-header", |s| {
            let mut bytes = frame::status(s, 200, false);
            bytes.extend(frame::data(s, b"x", false));
            bytes.extend(frame::headers(s, &[(":status", "500")], true));
            bytes
        }),
    ];
    for (what, frames) in cleaned {
        let server = Hostile::answering(frames).await?;
        let got = field.ask(&to(&server.root(), "/nudr-dr/v2/bad")).await;
        let clean = got.status == 200 && got.body == b"x" && !got.headers.contains_key("method");
        field.check(clean || got.status >= 400, format_args!("{what}: {}", got.text()));
    }
    // 204 has no body (RFC 9110 §15.3.5).
    let server = Hostile::answering(|s| answer(s, &[(":status", "204")], b"x")).await?;
    let got = field.ask(&to(&server.root(), "/nudr-dr/v2/bad")).await;
    field.check(
        got.status != 204 || got.body.is_empty(),
        "204 with a body is forwarded",
    );
    Ok(())
}

async fn endless_body(field: Rc<Field>) -> anyhow::Result<()> {
    let server = Hostile::start(|mut peer| async move {
        let Ok(found) = peer.wait_for("a request", |f| f.kind == kind::HEADERS).await else {
            return;
        };
        let mut bytes = frame::status(found.stream, 200, false);
        bytes.extend(flood::repeated(&frame::data(found.stream, &[b'x'; 8_000], false)));
        if peer.send(&bytes).await.is_err() {
            return;
        }
        // Windows are not kept: what is beyond them is a mistake that ends the connection.
        let more = flood::repeated(&frame::data(found.stream, &[b'x'; 8_000], false));
        peer.pour(&more, 64 << 20, Duration::from_secs(5)).await;
    })
    .await?;
    for _ in 0..field.of(5, 1) {
        let got = field.ask(&to(&server.root(), "/nudr-dr/v2/endless")).await;
        field.check(got.status != 200, "an endless body was an answer");
    }
    Ok(())
}

async fn header_flood(field: Rc<Field>) -> anyhow::Result<()> {
    let server = Hostile::answering(|stream| {
        let long = "x".repeat(15_000);
        let mut bytes = frame::raw(kind::HEADERS, 0, stream, &frame::block(&[(":status", "200")]));
        for _ in 0..70 {
            bytes.extend(frame::raw(
                kind::CONTINUATION,
                0,
                stream,
                &frame::block(&[("x-long", &long)]),
            ));
        }
        bytes.extend(frame::raw(kind::CONTINUATION, 4, stream, &[]));
        bytes.extend(frame::data(stream, b"x", true));
        bytes
    })
    .await?;
    for _ in 0..field.of(50, 3) {
        let got = field.ask(&to(&server.root(), "/nudr-dr/v2/headers")).await;
        field.check(got.status != 200, "a header list of 1 MB was an answer");
    }
    Ok(())
}

async fn goaways(field: Rc<Field>) -> anyhow::Result<()> {
    let cases: [fn(u32) -> Vec<u8>; 4] = [
        |_| frame::goaway(0, 0),
        |s| [frame::goaway(s, 0), answer(s, &[(":status", "200")], b"x")].concat(),
        |_| frame::goaway(0, 11),
        |s| [frame::goaway(s, 0), frame::goaway(s + 2, 0)].concat(),
    ];
    for case in cases {
        let server = Hostile::answering(case).await?;
        for _ in 0..field.of(30, 5) {
            let ask = to(&server.root(), "/nudr-dr/v2/goaway").within(Duration::from_secs(2));
            field.ask(&ask).await;
        }
        field.note(format_args!("{} connections", server.connections()));
    }
    Ok(())
}

async fn break_off(field: Rc<Field>) -> anyhow::Result<()> {
    let server = Hostile::start(|mut peer| async move {
        if let Ok(found) = peer.wait_for("a request", |f| f.kind == kind::HEADERS).await {
            let half = [
                frame::status(found.stream, 200, false),
                frame::data(found.stream, b"half", false),
            ];
            let _ = peer.send(&half.concat()).await;
        }
    })
    .await?;
    for _ in 0..field.of(500, 30) {
        let got = field.ask(&to(&server.root(), "/nudr-dr/v2/half")).await;
        field.check(got.status != 200, "half an answer was one");
    }
    Ok(())
}

async fn silence(field: Rc<Field>) -> anyhow::Result<()> {
    let server = Hostile::answering(|_| Vec::new()).await?;
    let client = crate::answer::client("AF-attacker");
    let origin = field.origin()?;
    let mut open = tokio::task::JoinSet::new();
    for _ in 0..field.of(2_000, 100) {
        let (client, origin) = (client.clone(), origin.clone());
        let ask = to(&server.root(), "/nudr-dr/v2/silent")
            .header("3gpp-sbi-max-rsp-time", "1000")
            .within(Duration::from_secs(15));
        open.spawn_local(async move { crate::answer::send(&client, &origin, &ask).await.status });
    }
    while let Some(status) = open.join_next().await {
        let status = status.unwrap_or_default();
        field.check(status != 200, "silence was an answer");
    }
    Ok(())
}

async fn hpack_wide(field: Rc<Field>) -> anyhow::Result<()> {
    let server = Hostile::answering(|stream| {
        let block = flood::indexing_block(&[(":status", "200")], "a", "", 1_800);
        flood::headers_of(stream, &block, false)
    })
    .await?;
    let client = crate::answer::client("AF-attacker");
    let origin = field.origin()?;
    let mut open = tokio::task::JoinSet::new();
    for _ in 0..field.of(2_000, 200) {
        let (client, origin) = (client.clone(), origin.clone());
        let ask = to(&server.root(), "/nudr-dr/v2/wide").within(Duration::from_secs(10));
        open.spawn_local(async move { crate::answer::send(&client, &origin, &ask).await.status });
    }
    while open.join_next().await.is_some() {}
    Ok(())
}
