//! Streams: opened, reset, made to be reset, left half-open.

use std::rc::Rc;
use std::time::Duration;

use testpeer::http2::{Peer, flood, frame};

use super::PATH;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;

pub(super) const ALL: &[Attack] = &[
    attack(
        "http2.rapid-reset",
        "requests reset at once, one connection after the other",
        Nrf,
        |f| Box::pin(rapid_reset(f)),
    ),
    attack(
        "http2.rapid-reset-below",
        "as many resets as the limit allows, on several connections",
        Nrf,
        |f| Box::pin(rapid_reset_below(f)),
    ),
    attack(
        "http2.made-you-reset",
        "eight ways to make the server reset streams",
        Nrf,
        |f| Box::pin(made_you_reset(f)),
    ),
    attack(
        "http2.half-open-streams",
        "streams without an end, as many as are allowed and more",
        Nrf,
        |f| Box::pin(half_open(f)),
    ),
    attack(
        "http2.many-requests",
        "more requests than 16 bits count, on one connection",
        Nrf,
        |f| Box::pin(many_requests(f)),
    ),
    attack(
        "http2.random-frames",
        "frames of random kinds, flags, streams and contents",
        Nrf,
        |f| Box::pin(random_frames(f)),
    ),
];

async fn rapid_reset(field: Rc<Field>) -> anyhow::Result<()> {
    let wanted = field.of(100_000, 6_000);
    let buffer = flood::rapid_resets(1, 5_000, PATH);
    let (mut sent, mut connections) = (0, 0);
    while sent < wanted {
        let mut peer = Peer::client(field.target).await?;
        let poured = peer.pour_to_the_end(&buffer, Duration::from_secs(20)).await;
        field.check(poured.ended, "5,000 resets on a connection, and it was not ended");
        field.check(
            poured.goaway.is_none_or(|code| code == 11),
            format_args!("ended with {:?}, not ENHANCE_YOUR_CALM", poured.goaway),
        );
        sent += 5_000 * poured.sent / buffer.len() as u64 + 1;
        connections += 1;
        if connections > 400 {
            break;
        }
    }
    field.note(format_args!("{sent} streams on {connections} connections"));
    Ok(())
}

async fn rapid_reset_below(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    for _ in 0..field.of(20, 2) {
        peers.push(Peer::client(field.target).await?);
    }
    let (mut first, seconds) = (1, field.of(6, 2));
    for _ in 0..seconds {
        let buffer = flood::rapid_resets(first, 900, PATH);
        for peer in &mut peers {
            peer.pour(&buffer, buffer.len() as u64, Duration::from_secs(1))
                .await;
        }
        first += 1_800;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    field.note(format_args!("{} streams", 900 * seconds as usize * peers.len()));
    Ok(())
}

async fn made_you_reset(field: Rc<Field>) -> anyhow::Result<()> {
    let count = field.of(20_000, 3_000);
    for (variant, name) in flood::MADE_YOU_RESET.into_iter().enumerate() {
        let buffer = flood::each_stream(1, count, |stream| flood::made_you_reset(variant, stream, PATH));
        let mut peer = Peer::client(field.target).await?;
        let poured = peer.pour_to_the_end(&buffer, Duration::from_secs(20)).await;
        field.check(poured.ended, format_args!("{name}: the connection was not ended"));
    }
    Ok(())
}

async fn half_open(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peers = Vec::new();
    for _ in 0..field.of(8, 2) {
        let mut peer = Peer::client(field.target).await?;
        let buffer = flood::each_stream(1, field.of(5_000, 4_500), |stream| frame::post(stream, PATH));
        let poured = peer
            .pour(&buffer, buffer.len() as u64, Duration::from_secs(10))
            .await;
        field.note(format_args!("{} refused, ended: {}", poured.resets, poured.ended));
        peers.push(peer);
    }
    Ok(())
}

async fn many_requests(field: Rc<Field>) -> anyhow::Result<()> {
    let mut peer = Peer::client(field.target).await?;
    let rounds = field.of(70, 4);
    let mut answers = 0;
    for round in 0..rounds {
        let buffer = flood::each_stream(1 + round * 2_000, 1_000, |stream| frame::get(stream, PATH));
        // Windows are opened beforehand, so that answers flow.
        peer.send(&frame::window(0, 20_000_000)).await?;
        peer.send(&buffer).await?;
        let last = 1 + round * 2_000 + 1_998;
        for _ in 0..1_000 {
            peer.wait_for("an answer", |f| f.kind == frame::kind::HEADERS)
                .await?;
            answers += 1;
        }
        anyhow::ensure!(last > 0);
    }
    field.note(format_args!("{answers} answers on one connection"));
    Ok(())
}

async fn random_frames(field: Rc<Field>) -> anyhow::Result<()> {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    let mut random = StdRng::seed_from_u64(9_113);
    let wanted = field.of(20_000, 2_000);
    let mut sent = 0;
    while sent < wanted {
        let mut peer = Peer::client(field.target).await?;
        let mut buffer = Vec::new();
        for _ in 0..20 {
            let mut payload = vec![0; random.random_range(0..200)];
            random.fill(&mut payload[..]);
            let kind = random.random_range(0..12);
            buffer.extend(frame::raw(
                kind,
                random.random(),
                random.random_range(0..64),
                &payload,
            ));
        }
        sent += 20;
        peer.pour(&buffer, buffer.len() as u64, Duration::from_millis(200))
            .await;
    }
    Ok(())
}
