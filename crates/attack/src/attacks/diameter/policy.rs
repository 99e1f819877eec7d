//! A client that strains a Policy DRA: the sessions of one subscriber, sessions that are not its own, and addresses that are none.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use diameter_proto::known::{self, application, command};
use diameter_proto::{CommandFlags, MessageBuilder, MessageMut};
use serde_json::{Value, json};

use super::raw::Raw;
use super::target;
use crate::attack::{Attack, attack};
use crate::attacks::admin;
use crate::field::Field;
use crate::stage::Stage::Dsr;
use crate::stage::{HSS, REALM};

/// CC-Request-Type (RFC 8506 §8.3).
const INITIAL: i32 = 1;
const TERMINATION: i32 = 3;

/// Sessions that a subscriber has in a pool when many have begun at once: 16, and as many as are in flight together.
const MOST_SESSIONS: u64 = 16 + 2 * 17;

pub(super) const ALL: &[Attack] = &[
    attack(
        "diameter.one-subscriber",
        "CCR-Is of one subscriber as fast as they are taken, and 300 connections with one each",
        Dsr,
        |f| Box::pin(one_subscriber(f)),
    )
    .with_settings(settings),
    attack(
        "diameter.wrong-sessions",
        "CCRs, AARs and RARs of sessions that are over, of others, or of no valid name, and prefixes of 129 bits",
        Dsr,
        |f| Box::pin(wrong_sessions(f)),
    )
    .with_settings(settings),
];

/// A Policy DRA with the honest server as its PCRF.
fn settings() -> Value {
    json!({
        "applications": [{
            "name": "policy",
            "pdra": {
                "repository": {"store": {"embedded": {"directory": "sessions"}}},
                "pools": [{"name": "all", "pcrfs": [{"host": HSS}]}],
            },
        }],
        "routing": {"applicationRouteTables": [{
            "name": "default",
            "rules": [{
                "when": {"applications": [application::GX, application::RX]},
                "action": {"application": "policy"},
            }],
        }]},
    })
}

/// A request of a session.
fn request(
    (application, command): (u32, u32),
    origin: &str,
    session: &str,
    fill: impl FnOnce(&mut MessageBuilder),
) -> anyhow::Result<MessageMut> {
    let mut builder = MessageBuilder::request(command, application);
    builder
        .put(known::SESSION_ID, session)
        .put(known::AUTH_APPLICATION_ID, application)
        .put(known::ORIGIN_HOST, origin)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM);
    fill(&mut builder);
    Ok(builder.finish()?)
}

/// A CCR of this type.
fn ccr(
    origin: &str,
    session: &str,
    kind: i32,
    fill: impl FnOnce(&mut MessageBuilder),
) -> anyhow::Result<MessageMut> {
    request((application::GX, command::CREDIT_CONTROL), origin, session, |b| {
        b.put(known::CC_REQUEST_TYPE, kind)
            .put(known::CC_REQUEST_NUMBER, 0);
        fill(b);
    })
}

/// The subscriber of all sessions.
fn subscriber(builder: &mut MessageBuilder) {
    builder.group(known::SUBSCRIPTION_ID, |group| {
        group
            .put(known::SUBSCRIPTION_ID_TYPE, 1)
            .put(known::SUBSCRIPTION_ID_DATA, "001010000000001");
    });
}

/// Sends requests with numbers of their own, and checks that each is answered once.
async fn all_answered(field: &Field, peer: &mut Raw, requests: Vec<MessageMut>) {
    let count = requests.len();
    let mut answers = Vec::new();
    // As many as a subscriber may have waiting.
    for (chunk, first) in requests.chunks(16).zip((1_u32..).step_by(16)) {
        for (request, number) in chunk.iter().zip(first..) {
            let mut request = request.clone();
            request.set_hop_by_hop(number);
            request.set_end_to_end(number);
            peer.send(request.as_bytes()).await;
        }
        let expected = answers.len() + chunk.len();
        let end = Instant::now() + Duration::from_secs(20);
        while answers.len() < expected && Instant::now() < end {
            // Requests of the router come as well: those that lead back here.
            let (more, is_over) = peer.read_until(1, Duration::from_secs(1)).await;
            answers.extend(more.into_iter().filter(|message| !message.is_request()));
            if is_over {
                break;
            }
        }
    }
    let mut numbers: Vec<u32> = answers.iter().map(|answer| answer.hop_by_hop()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    field.check(
        numbers.len() == count && answers.len() == count,
        format_args!(
            "{} answers to {} of {count} requests",
            answers.len(),
            numbers.len()
        ),
    );
}

/// Checks that nothing of a flood is held, and that the subscriber has no more sessions than it may have.
async fn is_bounded(field: &Field, most: u64) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    let mut held = u64::MAX;
    for _ in 0..200 {
        let page: Value = serde_json::from_str(&admin::get(admin, "/dsr/applications").await?)?;
        let rows = page.as_array().context("no rows")?;
        let entries = |table: &str| {
            let row = rows.iter().find(|row| row["table"] == table);
            row.and_then(|row| row["entries"].as_u64()).unwrap_or(u64::MAX)
        };
        held = entries("beginning").saturating_add(entries("pending"));
        if held == 0 {
            let sessions = entries("sessions");
            field.check(
                sessions <= most,
                format_args!("{sessions} sessions are kept, {most} at most"),
            );
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    field.check(
        held == 0,
        format_args!("{held} requests are held after the attack"),
    );
    Ok(())
}

async fn one_subscriber(field: Rc<Field>) -> anyhow::Result<()> {
    let target = target(&field)?;
    let mut flood = Vec::new();
    for number in 0..field.of(5_000, 500) {
        let request = ccr(
            "flood.epc.example",
            &format!("flood;{number}"),
            INITIAL,
            subscriber,
        )?;
        flood.extend_from_slice(request.as_bytes());
    }
    let mut peer = Raw::admitted(target, "flood.epc.example").await?;
    let sent = peer.pour(&flood, field.flood_time(), true).await;
    field.note(format_args!(
        "{} KiB of CCR-Is of one subscriber taken",
        sent / 1_024
    ));
    let mut crowd = Vec::new();
    for number in 0..field.of(300, 60) {
        let name = format!("crowd{number}.epc.example");
        let mut peer = Raw::admitted(target, &name).await?;
        peer.send(ccr(&name, &format!("crowd;{number}"), INITIAL, subscriber)?.as_bytes())
            .await;
        crowd.push(peer);
    }
    let mut unanswered = 0;
    for peer in &mut crowd {
        let (answers, _) = peer.read_until(1, Duration::from_secs(10)).await;
        unanswered += usize::from(answers.is_empty());
    }
    field.check(
        unanswered == 0,
        format_args!("{unanswered} connections without an answer"),
    );
    is_bounded(&field, MOST_SESSIONS).await
}

/// A CCR-I with this Framed-IPv6-Prefix.
fn prefixed(session: &str, length: u8, octets: usize) -> anyhow::Result<MessageMut> {
    let prefix = [&[0, length][..], &vec![0xff; octets]].concat();
    ccr("wrong.epc.example", session, INITIAL, |b| {
        subscriber(b);
        b.put(known::FRAMED_IPV6_PREFIX, &prefix);
    })
}

async fn wrong_sessions(field: Rc<Field>) -> anyhow::Result<()> {
    let (target, own) = (target(&field)?, "wrong.epc.example");
    let mut requests = Vec::new();
    for round in 0..field.of(200_u64, 10) {
        let session = format!("wrong;{round}");
        let initial = || ccr(own, &session, INITIAL, subscriber);
        let mut again = initial()?;
        again.set_flags(again.flags().with(CommandFlags::RETRANSMITTED));
        requests.extend([initial()?, initial()?, again]);
        // Of another client, and of another subscriber.
        requests.push(ccr("other.epc.example", &session, INITIAL, subscriber)?);
        requests.push(ccr(own, &session, INITIAL, |_| ())?);
        for kind in [2, TERMINATION, TERMINATION, 4, 9, -1] {
            requests.push(ccr(own, &session, kind, |_| ())?);
            requests.push(ccr(own, &format!("unknown;{round}"), kind, |_| ())?);
        }
        for (application, command) in [
            (application::GX, command::RE_AUTH),
            (application::RX, command::ABORT_SESSION),
            (application::RX, command::SESSION_TERMINATION),
            (application::RX, command::AA),
            (application::GX, command::CREDIT_CONTROL),
        ] {
            for name in [&*session, "", "dead;1"] {
                requests.push(request((application, command), own, name, |_| ())?);
            }
        }
        for (length, octets) in [
            (129, 16),
            (255, 16),
            (0, 0),
            (31, 4),
            (64, 16),
            (64, 7),
            (128, 17),
        ] {
            requests.push(prefixed(
                &format!("prefix;{round};{length};{octets}"),
                length,
                octets,
            )?);
        }
        for length in [512, 513, 60_000] {
            let long = "s".repeat(length - 1) + &(round % 10).to_string();
            requests.push(ccr(own, &long, INITIAL, |_| ())?);
            requests.push(ccr(own, &long, TERMINATION, |_| ())?);
        }
    }
    let mut peer = Raw::admitted(target, own).await?;
    all_answered(&field, &mut peer, requests).await;
    // Those without a number are subscribers of their own.
    let rounds = field.of(200_u64, 10);
    is_bounded(&field, MOST_SESSIONS + 4 * rounds).await
}
