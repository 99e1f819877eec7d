//! What happens to machines: a process killed, a file that takes no more, bits that flip, too few descriptors.

mod store;

use std::rc::Rc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testpeer::http2::{Peer, flood, frame};

use crate::answer::{Ask, client};
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::{Nrf, Scp};
use crate::stage::{Process, Stage, profile};

const ALL: &[Attack] = &[
    attack(
        "faults.kill",
        "SIGKILL in a storm of registrations; what was acknowledged is there",
        Nrf,
        |f| Box::pin(store::kill(f)),
    )
    .unaccompanied(),
    attack(
        "faults.full",
        "files that take no more; what was acknowledged is there, and readiness and alarms say so",
        Nrf,
        |f| Box::pin(store::full(f)),
    )
    .unaccompanied(),
    attack(
        "faults.damage",
        "bits that flip in a log, a log cut short, files that are missing: refused by name, or nothing is lost",
        Nrf,
        |f| Box::pin(store::damage(f)),
    )
    .with_settings(small_segments)
    .unaccompanied(),
    attack(
        "faults.descriptors",
        "more connections than descriptors",
        Nrf,
        |f| Box::pin(descriptors(f)),
    )
    .unaccompanied(),
    attack(
        "faults.address-space",
        "a bound of the address space, and header lists that want more",
        Nrf,
        |f| Box::pin(address_space(f)),
    )
    .unaccompanied()
    .full_only()
    .with_bars(Bars { cpu_s: 20.0, ..Bars::DEFAULT }),
    attack(
        "faults.silent-nrf",
        "the NRF of an SCP stands still; producers that are known serve",
        Scp,
        |f| Box::pin(silent_nrf(f)),
    )
    .alone(),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

fn small_segments() -> Value {
    json!({"store": {"embedded": {"segment": "128KiB"}, "maxBatchBytes": "32KiB"}})
}

/// The NF instance with this number.
fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn path(number: u32) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{}", id(number))
}

fn register(number: u32) -> Ask {
    let pad = json!({"pad": "x".repeat(1_000)});
    Ask::new(Method::PUT, path(number)).json(&profile(&id(number), "UDR", "nudr-dr", 9, &pad))
}

/// Starts the function once more, on the same state, within these limits; the field shows the new process.
fn restart(field: &Field, limits: &str) -> anyhow::Result<std::net::SocketAddr> {
    let mut world = field.world.borrow_mut();
    world.process.kill();
    let recipe = world.recipe.clone();
    world.process = Process::start(
        &recipe.binary,
        &recipe.functions,
        &recipe.config,
        world.folder.path(),
        limits,
    )?;
    world.admin = world.process.address("nrf admin")?;
    world.target = world.process.address("nrf SBI")?;
    Ok(world.target)
}

async fn descriptors(field: Rc<Field>) -> anyhow::Result<()> {
    let target = restart(&field, "-n 64")?;
    let honest = client("UDM-honest");
    let disc = Ask::get(crate::stage::disc());
    let got = field.ask_as(&honest, &disc).await;
    field.check(got.status == 200, format_args!("before: {}", got.text()));
    let mut held = Vec::new();
    for _ in 0..field.of(300, 150) {
        held.extend(Peer::silent(target).await);
    }
    for _ in 0..field.of(50, 10) {
        let got = field.ask_as(&honest, &disc).await;
        field.check(
            got.status == 200,
            format_args!("a client that is connected: {}", got.text()),
        );
    }
    drop(held);
    // Newcomers are served as soon as there are descriptors.
    let mut served = false;
    for _ in 0..100 {
        served = field.ask(&disc).await.status == 200;
        if served {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    field.check(served, "no newcomer is served when there are descriptors again");
    Ok(())
}

async fn address_space(field: Rc<Field>) -> anyhow::Result<()> {
    let target = restart(&field, "-v 1300000")?;
    let mut kept = Vec::new();
    for number in 0..500 {
        if field.ask(&register(number)).await.status == 201 {
            kept.push(number);
        }
    }
    let fields = frame::request_fields("POST", "/nnrf-disc/v1/nf-instances");
    let mut peers = Vec::new();
    for _ in 0..4 {
        let mut peer = Peer::client(target).await?;
        let mut buffer = flood::headers_of(1, &flood::indexing_block(&fields, "a", "", 1_799), false);
        let others = flood::indexed_block(&fields, 1_800);
        buffer.extend(flood::each_stream(3, 4_000, |stream| {
            flood::headers_of(stream, &others, false)
        }));
        peer.pour(&buffer, buffer.len() as u64, Duration::from_secs(10))
            .await;
        peers.push(peer);
    }
    let ended = field.world.borrow_mut().process.ended();
    field.check(ended.is_none(), "the process is gone");
    restart(&field, "")?;
    let mut lost = 0;
    for number in &kept {
        lost += u32::from(field.ask(&Ask::get(path(*number))).await.status != 200);
    }
    field.check(
        lost == 0,
        format_args!("{lost} of {} registrations are lost", kept.len()),
    );
    Ok(())
}

async fn silent_nrf(field: Rc<Field>) -> anyhow::Result<()> {
    debug_assert_eq!(field.world.borrow().stage, Stage::Scp);
    let signal = |name: &str| {
        for process in &field.world.borrow().beside {
            process.signal(name);
        }
    };
    signal("STOP");
    tokio::time::sleep(field.of(Duration::from_secs(8), Duration::from_secs(1))).await;
    signal("CONT");
    Ok(())
}
