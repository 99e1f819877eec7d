//! Little on the wire, much in memory.

use std::rc::Rc;
use std::time::Duration;

use http::Method;
use serde_json::json;
use testpeer::http2::frame::{self, kind, setting};
use testpeer::http2::{Peer, flood};

use super::PATH;
use crate::answer::Ask;
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;
use crate::stage::profile;

pub(super) const ALL: &[Attack] = &[
    attack("http2.header-list", "a header list of 1 MB", Nrf, |f| {
        Box::pin(header_list(f))
    }),
    attack(
        "http2.hpack-long-entry",
        "an entry of 4,000 bytes named 15 times in each of 4,000 streams",
        Nrf,
        |f| Box::pin(hpack(f, 1, "x".repeat(3_900), 15)),
    ),
    attack(
        "http2.hpack-wide",
        "an entry of 33 bytes named 1,800 times in each of 4,000 open streams",
        Nrf,
        |f| Box::pin(hpack(f, 1, String::new(), 1_800)),
    )
    .alone()
    .with_bars(Bars::BUDGET),
    attack("http2.hpack-wide-4", "the same on four connections", Nrf, |f| {
        Box::pin(hpack(f, 4, String::new(), 1_800))
    })
    .alone()
    .with_bars(Bars::BUDGET),
    attack(
        "http2.endless-bodies",
        "bodies without an end, as much as the windows allow, on 40 connections",
        Nrf,
        |f| Box::pin(endless_bodies(f)),
    )
    .alone()
    .with_bars(Bars::BUDGET),
    attack(
        "http2.untaken-answers",
        "answers of 400 KB asked for on many streams and never taken",
        Nrf,
        |f| Box::pin(untaken(f)),
    )
    .alone()
    .with_bars(Bars::BUDGET),
    attack(
        "http2.drip",
        "an answer taken by a window of one byte at a time",
        Nrf,
        |f| Box::pin(drip(f)),
    ),
    attack(
        "http2.deaf-pings",
        "PINGs below the limit and requests whose answers stay unread",
        Nrf,
        |f| Box::pin(deaf(f)),
    ),
];

async fn header_list(field: Rc<Field>) -> anyhow::Result<()> {
    for _ in 0..field.of(20, 3) {
        let mut peer = Peer::client(field.target).await?;
        let long = "x".repeat(15_000);
        let first = frame::block(&frame::request_fields("GET", PATH));
        peer.send(&frame::raw(kind::HEADERS, 1, 1, &first)).await?;
        let more = frame::raw(kind::CONTINUATION, 0, 1, &frame::block(&[("x-long", &long)]));
        let poured = peer.pour(&more, 1 << 20, Duration::from_secs(5)).await;
        let end = frame::raw(kind::CONTINUATION, 4, 1, &[]);
        let end = peer.pour_to_the_end(&end, Duration::from_secs(10)).await;
        field.check(
            poured.ended || end.ended || end.answers + end.resets + poured.resets > 0,
            "a header list of 1 MB was neither answered nor refused",
        );
    }
    Ok(())
}

/// Streams that stay open, each with a list that names one entry of the table so often.
async fn hpack(field: Rc<Field>, connections: usize, value: String, times: usize) -> anyhow::Result<()> {
    let streams = field.of(4_000, 2_200);
    let mut peers = Vec::new();
    let mut sent = 0;
    for _ in 0..connections {
        let mut peer = Peer::client(field.target).await?;
        let fields = frame::request_fields("POST", PATH);
        let first = flood::indexing_block(&fields, "a", &value, times - 1);
        let others = flood::indexed_block(&fields, times);
        let mut buffer = flood::headers_of(1, &first, false);
        buffer.extend(flood::each_stream(3, streams - 1, |stream| {
            flood::headers_of(stream, &others, false)
        }));
        let poured = peer
            .pour(&buffer, buffer.len() as u64, Duration::from_secs(15))
            .await;
        sent += poured.sent;
        peers.push(peer);
    }
    tokio::time::sleep(field.of(Duration::from_secs(2), Duration::from_millis(300))).await;
    field.note(format_args!("{} KiB sent", sent / 1_024));
    Ok(())
}

async fn endless_bodies(field: Rc<Field>) -> anyhow::Result<()> {
    let (mut peers, mut sent) = (Vec::new(), 0);
    for _ in 0..field.of(40, 26) {
        let mut peer = Peer::client(field.target).await?;
        peer.settle(Duration::from_millis(20)).await;
        let (mut connection, stream_window) = peer.windows();
        // Bodies a little shorter than the limit are kept while they arrive.
        let one = i64::from(stream_window).min(1_000_000);
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", crate::stage::PRODUCER);
        let mut stream = 1;
        while connection >= one && stream < 200 {
            let mut fields = frame::request_fields("PUT", &path);
            fields.push(("content-type", "application/json"));
            let mut buffer = frame::headers(stream, &fields, false);
            let mut left = one;
            while left > 0 {
                let piece = left.min(16_000);
                buffer.extend(frame::data(stream, &vec![b' '; piece as usize], false));
                left -= piece;
            }
            let poured = peer
                .pour(&buffer, buffer.len() as u64, Duration::from_secs(5))
                .await;
            sent += poured.sent;
            if poured.ended {
                break;
            }
            connection -= one;
            stream += 2;
        }
        peers.push(peer);
    }
    field.note(format_args!("{} MiB sent", sent >> 20));
    Ok(())
}

async fn untaken(field: Rc<Field>) -> anyhow::Result<()> {
    // The size that a profile may have; the honest client does not discover it.
    let id = "00000000-0000-4000-8000-00000000b160";
    let large = profile(id, "UDR", "nudr-dr", 8_080, &json!({"pad": "x".repeat(400_000)}));
    let path = format!("/nnrf-nfm/v1/nf-instances/{id}");
    let got = field.ask(&Ask::new(Method::PUT, &*path).json(&large)).await;
    anyhow::ensure!(got.status == 201, "{}", got.text());
    let mut peers = Vec::new();
    for _ in 0..field.of(20, 8) {
        let mut peer = Peer::client_with(field.target, &[(setting::INITIAL_WINDOW_SIZE, 0)]).await?;
        let buffer = flood::each_stream(1, field.of(1_000, 400), |stream| frame::get(stream, &path));
        peer.pour(&buffer, buffer.len() as u64, Duration::from_secs(5))
            .await;
        peers.push(peer);
    }
    // The same, discovered: each answer is composed.
    let discovered = "/nnrf-disc/v1/nf-instances?target-nf-type=UDR&requester-nf-type=AMF&limit=";
    for n in 0..field.of(10, 2) {
        let mut peer = Peer::client_with(field.target, &[(setting::INITIAL_WINDOW_SIZE, 0)]).await?;
        let buffer = flood::each_stream(1, field.of(500, 100), |stream| {
            frame::get(stream, &format!("{discovered}{}", n * 1_000 + stream))
        });
        peer.pour(&buffer, buffer.len() as u64, Duration::from_secs(5))
            .await;
        peers.push(peer);
    }
    tokio::time::sleep(field.of(Duration::from_secs(3), Duration::from_millis(500))).await;
    Ok(())
}

async fn drip(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    for _ in 0..field.of(200, 30) {
        let mut peer = Peer::client_with(field.target, &[(setting::INITIAL_WINDOW_SIZE, 1)]).await?;
        peer.send(&frame::get(1, PATH)).await?;
        peers.push(peer);
    }
    for _ in 0..field.of(10, 3) {
        for peer in &mut peers {
            let _ = peer.send(&frame::window(1, 1)).await;
        }
        tokio::time::sleep(Duration::from_millis(field.of(500, 100))).await;
    }
    Ok(())
}

async fn deaf(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    for _ in 0..field.of(50, 6) {
        let mut peer = Peer::client_with(field.target, &[(setting::INITIAL_WINDOW_SIZE, 1 << 30)]).await?;
        peer.send(&frame::window(0, 1 << 30)).await?;
        let mut buffer = flood::each_stream(1, field.of(2_000, 500), |stream| frame::get(stream, PATH));
        for n in 0..90 {
            buffer.extend(frame::ping([n; 8]));
        }
        peer.pour_deaf(&buffer, Duration::from_millis(field.of(1_000, 400)))
            .await;
        peers.push(peer);
    }
    tokio::time::sleep(field.of(Duration::from_secs(3), Duration::from_millis(300))).await;
    Ok(())
}
