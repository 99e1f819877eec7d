//! Diameter peers that break or strain the rules, against a router and a BSF's Rx.

mod policy;
pub(super) mod raw;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use diameter_proto::known::{self, command};
use diameter_proto::{AvpFlags, AvpKey, AvpWriter, MessageBuilder, ResultCode};

use self::raw::Raw;
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::measure;
use crate::stage::Stage::Dsr;
use crate::stage::{HSS, MME, ulr};

const ALL: &[Attack] = &[
    attack(
        "diameter.malformed",
        "bytes that are not Diameter, before and after the exchange of capabilities",
        Dsr,
        |f| Box::pin(malformed(f)),
    ),
    attack(
        "diameter.large-messages",
        "depth of 900 groups, 30,000 AVPs, 2,000 Route-Records, a Session-Id of 200 KB",
        Dsr,
        |f| Box::pin(large(f)),
    ),
    attack(
        "diameter.dribbled-lengths",
        "messages that announce much and arrive byte by byte",
        Dsr,
        |f| Box::pin(dribble(f)),
    ),
    attack(
        "diameter.capabilities",
        "capabilities exchanged over and over, and connections that stay mute",
        Dsr,
        |f| Box::pin(capabilities(f)),
    ),
    attack(
        "diameter.watchdogs",
        "watchdog requests as fast as they are taken",
        Dsr,
        |f| Box::pin(watchdogs(f)),
    ),
    attack(
        "diameter.requests",
        "requests for peers that do not exist, as fast as they are taken",
        Dsr,
        |f| Box::pin(requests(f)),
    ),
    attack(
        "diameter.identities",
        "names of others, in capitals, and of 60 KB",
        Dsr,
        |f| Box::pin(identities(f)),
    ),
    attack(
        "diameter.forged-answers",
        "answers that were not asked for, with all hop-by-hop identifiers",
        Dsr,
        |f| Box::pin(forged_answers(f)),
    ),
    attack(
        "diameter.unread-answers",
        "requests whose answers are never read",
        Dsr,
        |f| Box::pin(unread(f)),
    )
    .with_bars(Bars {
        cpu_s: 15.0,
        ..Bars::DEFAULT
    }),
    attack(
        "diameter.new-names",
        "thousands of peers that come once",
        Dsr,
        |f| Box::pin(new_names(f)),
    ),
    attack(
        "diameter.reconnects",
        "an identity that reconnects without a word, over and over",
        Dsr,
        |f| Box::pin(reconnects(f)),
    ),
];

pub(super) fn all() -> Vec<Attack> {
    [ALL, policy::ALL].concat()
}

fn target(field: &Field) -> anyhow::Result<SocketAddr> {
    field.world.borrow().diameter.context("a stage without Diameter")
}

const SHORT: Duration = Duration::from_millis(60);

fn bytes_of_no_diameter() -> Vec<Vec<u8>> {
    let header = |version: u8, length: [u8; 3], flags: u8| {
        let mut bytes = vec![version, length[0], length[1], length[2], flags];
        bytes.extend([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        bytes
    };
    vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 4_096],
        header(1, [0, 0, 19], 0x80),
        header(1, [0, 0, 22], 0x80),
        header(1, [0, 0, 0], 0x80),
        header(2, [0, 0, 20], 0x80),
        header(1, [0, 0, 20], 0x00),
        header(1, [0, 0, 20], 0xff),
        header(1, [0xff, 0xff, 0xfc], 0x80),
        [header(1, [0, 0, 28], 0x80), vec![0, 0, 1, 8, 0x40, 0, 0, 0]].concat(),
        [
            header(1, [0, 0, 28], 0x80),
            vec![0, 0, 1, 8, 0x40, 0xff, 0xff, 0xff],
        ]
        .concat(),
        [header(1, [0, 0, 28], 0x80), vec![0, 0, 1, 8, 0x80, 0, 0, 8]].concat(),
    ]
}

pub(super) async fn malformed(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    for round in 0..field.of(20, 1) {
        for (number, bytes) in bytes_of_no_diameter().into_iter().enumerate() {
            let mut stranger = Raw::connect(target, None).await?;
            stranger.send(&bytes).await;
            stranger.read_for(SHORT).await;
            let mut admitted = Raw::admitted(target, &format!("bad{round}-{number}.epc.example")).await?;
            admitted.send(&bytes).await;
            admitted.read_for(SHORT).await;
        }
    }
    // Every AVP of a request with a length of its own that is not true.
    let request = ulr("bad.epc.example", "001010000000001", 7)?;
    let whole = request.as_bytes().to_vec();
    let mut at = 20;
    let mut bad = Raw::admitted(target, "bad.epc.example").await?;
    while let Some(length) = whole.get(at + 5..at + 8) {
        let length = usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
        for wrong in [[0xff; 3], [0, 0, 7], [0, 0, 0], [0, 1, 0xf1]] {
            let mut broken = whole.clone();
            if let Some(place) = broken.get_mut(at + 5..at + 8) {
                place.copy_from_slice(&wrong);
            }
            if !bad.send(&broken).await {
                bad = Raw::admitted(target, "bad.epc.example").await?;
            }
        }
        at += length.max(8).next_multiple_of(4);
    }
    bad.read_for(SHORT).await;
    Ok(())
}

/// A request for the HSS with these AVPs added.
fn padded(origin: &str, avps: &[u8]) -> anyhow::Result<Vec<u8>> {
    let base = ulr(origin, "001010000000001", 9)?;
    let mut builder = MessageBuilder::new(base.header());
    for avp in base.avps().flatten() {
        builder.copy(&avp);
    }
    builder.append_encoded(avps);
    Ok(builder.finish()?.as_bytes().to_vec())
}

async fn large(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let optional = AvpKey {
        code: 65_000,
        vendor: 0,
    };
    let mut deep: Vec<u8> = b"deep".to_vec();
    for _ in 0..900 {
        let mut group = AvpWriter::with_capacity(deep.len() + 16);
        group.put_raw(optional, AvpFlags(0), &deep);
        deep = group.as_bytes().to_vec();
    }
    let mut many = AvpWriter::with_capacity(300_000);
    for _ in 0..30_000 {
        many.put_raw(optional, AvpFlags(0), b"");
    }
    let mut route = AvpWriter::with_capacity(100_000);
    for n in 0..2_000 {
        route.put(known::ROUTE_RECORD, &format!("r{n}.example"));
    }
    let mut long = AvpWriter::with_capacity(200_100);
    long.put(known::SESSION_ID, &"s".repeat(200_000));
    for round in 0..field.of(50, 2) {
        for (number, avps) in [&deep, many.as_bytes(), route.as_bytes(), long.as_bytes()]
            .into_iter()
            .enumerate()
        {
            let name = format!("large{round}-{number}.epc.example");
            let mut peer = Raw::admitted(target, &name).await?;
            peer.send(&padded(&name, avps)?).await;
            peer.read_for(SHORT * 3).await;
        }
    }
    Ok(())
}

async fn dribble(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let mut peers = Vec::new();
    for number in 0..field.of(30, 12) {
        let name = format!("slow{number}.epc.example");
        let mut peer = Raw::admitted(target, &name).await?;
        // 16 MB are beyond the limit, 250 KB are not.
        let length = if number % 2 == 0 {
            [0xff, 0xff, 0xfc]
        } else {
            [3, 0xd0, 0x90]
        };
        peer.send(&[1, length[0], length[1], length[2], 0xc0, 0, 1, 0x3c])
            .await;
        peers.push(peer);
    }
    for _ in 0..field.of(25, 5) {
        for peer in &mut peers {
            peer.send(&[0]).await;
        }
        tokio::time::sleep(Duration::from_millis(field.of(1_000, 100))).await;
    }
    if field.of(true, false) {
        let mut open = 0;
        for peer in &mut peers {
            open += usize::from(!peer.read_for(SHORT).await.1);
        }
        field.check(
            open == 0,
            format_args!("{open} dribbling connections are open after 25 s"),
        );
    }
    Ok(())
}

pub(super) async fn capabilities(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let mut held = Vec::new();
    for number in 0..field.of(3_000, 150) {
        let mut peer = Raw::connect(target, None).await?;
        peer.send(&raw::cer(&format!("cer{number}.epc.example"), peer.local())?)
            .await;
        held.push(peer);
    }
    for _ in 0..field.of(1_000, 60) {
        held.push(Raw::connect(target, None).await?);
    }
    // The same again and again on one connection.
    let mut one = Raw::admitted(target, "again.epc.example").await?;
    let buffer = raw::cer("again.epc.example", one.local())?.repeat(100);
    for _ in 0..field.of(200, 5) {
        if !one.send(&buffer).await {
            break;
        }
        one.read_for(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(field.of(Duration::from_secs(2), Duration::from_millis(200))).await;
    Ok(())
}

pub(super) async fn watchdogs(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let one = raw::dwr("dwr.epc.example")?.repeat(500);
    let mut reading = Raw::admitted(target, "dwr.epc.example").await?;
    let sent = reading.pour(&one, field.flood_time(), true).await;
    let mut deaf = Raw::admitted(target, "deaf.epc.example").await?;
    let unread = deaf.pour(&one, field.flood_time(), false).await;
    field.note(format_args!(
        "{} and {} KiB of DWR taken",
        sent / 1_024,
        unread / 1_024
    ));
    Ok(())
}

async fn requests(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let mut request = MessageBuilder::new(ulr("flood.epc.example", "1", 1)?.header());
    request
        .put(known::SESSION_ID, "flood")
        .put(known::ORIGIN_HOST, "flood.epc.example")
        .put(known::ORIGIN_REALM, "epc.example")
        .put(known::DESTINATION_REALM, "nowhere.example")
        .put(known::DESTINATION_HOST, "hss.nowhere.example");
    let buffer = request.finish()?.as_bytes().repeat(200);
    let mut peer = Raw::admitted(target, "flood.epc.example").await?;
    let sent = peer.pour(&buffer, field.flood_time(), true).await;
    field.note(format_args!("{} KiB of requests taken", sent / 1_024));
    Ok(())
}

async fn identities(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let elsewhere = Some("127.0.0.99".parse()?);
    // A name is taken while its owner is there; it has come and gone in attacks before.
    let log = field.world.borrow().process.log.clone();
    let (open, down) = ["open", "down"]
        .map(|state| format!("peer is {state} peer=\"{MME}\""))
        .into();
    let is_there = |log: String| log.rfind(&open) > log.rfind(&down);
    for _ in 0..500 {
        if std::fs::read_to_string(&log).is_ok_and(is_there) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for name in [
        HSS,
        MME,
        "HSS.EPC.EXAMPLE",
        "Mme.Epc.Example",
        crate::stage::DSR_HOST,
    ] {
        let mut thief = Raw::connect(target, elsewhere).await?;
        thief.send(&raw::cer(name, thief.local())?).await;
        let (answers, _) = thief.read_for(Duration::from_millis(field.of(1_000, 300))).await;
        let result = answers
            .first()
            .and_then(|cea| cea.get(known::RESULT_CODE).ok().flatten());
        field.check(
            result != Some(ResultCode::SUCCESS.0),
            format_args!("{name} is let in from elsewhere"),
        );
    }
    let before = measure::file_bytes(&log);
    for _ in 0..field.of(50, 5) {
        let mut long = Raw::connect(target, None).await?;
        long.send(&raw::cer(
            &format!("{}.epc.example", "h".repeat(60_000)),
            long.local(),
        )?)
        .await;
        let (answers, _) = long.read_for(SHORT * 5).await;
        let result = answers
            .first()
            .and_then(|cea| cea.get(known::RESULT_CODE).ok().flatten());
        field.check(result != Some(ResultCode::SUCCESS.0), "a name of 60 KB is let in");
    }
    let grown = measure::file_bytes(&log).saturating_sub(before);
    field.check(
        grown < 50_000,
        format_args!("names of 60 KB made {grown} bytes of log"),
    );
    Ok(())
}

async fn forged_answers(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let mut peer = Raw::admitted(target, "forger.epc.example").await?;
    for number in 0..field.of(200_000u32, 5_000) {
        let mut answer = MessageBuilder::answer(&ulr(MME, "001010000000001", number)?);
        answer
            .put(known::RESULT_CODE, 5_001)
            .put(known::ORIGIN_HOST, HSS)
            .put(known::ORIGIN_REALM, "epc.example");
        answer.identifiers(number.wrapping_mul(2_654_435_761), number);
        if !peer.send(answer.finish()?.as_bytes()).await {
            peer = Raw::admitted(target, "forger.epc.example").await?;
        }
    }
    Ok(())
}

async fn unread(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let buffer = ulr("unread.epc.example", "001010000000001", 5)?
        .as_bytes()
        .repeat(100);
    let mut peer = Raw::admitted(target, "unread.epc.example").await?;
    let sent = peer.pour(&buffer, field.flood_time() / 2, false).await;
    field.note(format_args!("{} KiB of requests taken", sent / 1_024));
    Ok(())
}

async fn new_names(field: Rc<Field>) -> anyhow::Result<()> {
    let (target, admin) = (target(&field)?, field.world.borrow().admin);
    let page = || async move {
        crate::attacks::admin::get(admin, "/metrics")
            .await
            .map_or(0, |page| page.len())
    };
    let before = page().await;
    for number in 0..field.of(3_000, 200) {
        Raw::admitted(target, &format!("new{number}.epc.example")).await?;
    }
    let grown = page().await.saturating_sub(before);
    field.check(grown < 40_000, format_args!("the metrics grew by {grown} bytes"));
    Ok(())
}

async fn reconnects(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let mut answered = 0;
    for number in 0..field.of(500u32, 40) {
        let mut peer = Raw::admitted(target, "again.epc.example").await?;
        peer.send(ulr("again.epc.example", "001010000000001", number)?.as_bytes())
            .await;
        let (answers, _) = peer.read_until(1, Duration::from_secs(10)).await;
        let these = answers
            .iter()
            .filter(|answer| answer.command() == command::UPDATE_LOCATION)
            .count();
        answered += these;
        // No DPR: a reset, and the same name at once on another connection.
        peer.break_off();
    }
    field.check(
        answered == field.of(500, 40),
        format_args!("{answered} answers came for {} requests", field.of(500, 40)),
    );
    Ok(())
}
