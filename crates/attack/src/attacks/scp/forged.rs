//! Notifications that no NRF sent.

use std::rc::Rc;
use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::answer::{Ask, client, send};
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::Scp;
use crate::stage::{PRODUCER, PRODUCER_PATH, Server, producer_profile, profile};

pub(super) const ALL: &[Attack] = &[
    attack(
        "scp.forged-register",
        "a notification of an invented producer that is preferred to all others",
        Scp,
        |f| Box::pin(forged(f, Kind::Register)),
    ),
    attack(
        "scp.forged-change",
        "a notification that moves the honest producer to the attacker",
        Scp,
        |f| Box::pin(forged(f, Kind::Change)),
    ),
    attack(
        "scp.forged-deregister",
        "a notification that the honest producer is gone",
        Scp,
        |f| Box::pin(forged(f, Kind::Deregister)),
    ),
    attack("scp.forged-many", "thousands of invented producers", Scp, |f| {
        Box::pin(many(f))
    }),
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Register,
    Change,
    Deregister,
}

/// Paths that an unknown sender would try: the path that was fixed once, and paths that can be guessed from it.
const PATHS: [&str; 6] = [
    "/signalbox-scp/v1/nf-status-notify",
    "/signalbox-scp/v1/nf-status-notify/0",
    "/signalbox-scp/v1/nf-status-notify/1",
    "/signalbox-scp/v1/nf-status-notify/00000000-0000-4000-8000-000000000000",
    "/signalbox-scp/v1/nf-status-notify/",
    "/signalbox-scp/v1/nf-status-notify?set=0",
];

fn notification(event: &str, profile: &Value) -> Value {
    let id = profile["nfInstanceId"].as_str().unwrap_or(PRODUCER);
    let mut body = json!({
        "event": event,
        "nfInstanceUri": format!("http://127.0.0.1:9/nnrf-nfm/v1/nf-instances/{id}")
    });
    if event != "NF_DEREGISTERED" {
        body["nfProfile"] = profile.clone();
    }
    body
}

async fn forged(field: Rc<Field>, kind: Kind) -> anyhow::Result<()> {
    let thief = Server::start(Arc::new(|_| {
        sbi::json::response(StatusCode::OK, &json!({"by": "thief"}))
    }))?;
    let port = thief.address.port();
    let body = match kind {
        Kind::Register => {
            let id = "00000000-0000-4000-8000-0000000000e1";
            let best = json!({"priority": 0, "capacity": 65_535});
            notification("NF_REGISTERED", &profile(id, "UDM", "nudm-sdm", port, &best))
        }
        Kind::Change => notification("NF_PROFILE_CHANGED", &producer_profile(port)),
        Kind::Deregister => notification("NF_DEREGISTERED", &Value::Null),
    };
    for path in PATHS {
        let got = field.ask(&Ask::new(Method::POST, path).json(&body)).await;
        field.check(
            (400..500).contains(&got.status),
            format_args!(
                "{path}: a notification of an unknown sender is answered {}",
                got.text()
            ),
        );
    }
    // A consumer's request that is bound to the honest producer still goes there.
    for _ in 0..10 {
        let bound = crate::stage::wish(Ask::get(PRODUCER_PATH)).header(
            "3gpp-sbi-routing-binding",
            format!("bl=nf-instance; nfinst={PRODUCER}"),
        );
        let got = field.ask(&bound).await;
        field.check(
            got.status == 200 && got.json()["by"] == "honest",
            format_args!("a bound request: {}", got.text()),
        );
    }
    let stolen = thief.seen().len();
    field.check(stolen == 0, format_args!("{stolen} requests went to the thief"));
    Ok(())
}

async fn many(field: Rc<Field>) -> anyhow::Result<()> {
    let count = field.of(20_000u32, 1_000);
    let (client, origin) = (client("AF-attacker"), field.origin()?);
    let mut open = tokio::task::JoinSet::new();
    let mut kept = 0;
    for number in 0..count {
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let pad = json!({"pad": "x".repeat(4_000)});
        let body = notification("NF_REGISTERED", &profile(&id, "UDM", "nudm-sdm", 9, &pad));
        let ask = Ask::new(Method::POST, PATHS[0]).json(&body);
        let (client, origin) = (client.clone(), origin.clone());
        open.spawn_local(async move { send(&client, &origin, &ask).await.status });
        while open.len() >= 50 {
            kept += usize::from(matches!(open.join_next().await, Some(Ok(200..300))));
        }
    }
    while let Some(status) = open.join_next().await {
        kept += usize::from(matches!(status, Ok(200..300)));
    }
    field.check(
        kept == 0,
        format_args!("{kept} of {count} invented profiles were taken"),
    );
    Ok(())
}
