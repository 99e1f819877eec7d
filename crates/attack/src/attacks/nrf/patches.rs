//! JSON Patch: few operations, large results, much work.

use std::rc::Rc;
use std::time::Duration;

use http::Method;
use serde_json::json;

use super::{PATCH, instance, put, remove};
use crate::answer::{Ask, Got};
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::NrfHeartBeat;
use crate::stage::profile;

pub(super) const ALL: &[Attack] = &[
    attack(
        "nrf.patch-bomb",
        "60 copies, each of them twice as large as the one before, in a profile and in a subscription",
        NrfHeartBeat,
        |f| Box::pin(bomb(f)),
    ),
    attack(
        "nrf.patch-growth",
        "a patch whose result is larger than a profile may be",
        NrfHeartBeat,
        |f| Box::pin(growth(f)),
    ),
    attack(
        "nrf.patch-many-adds",
        "15,000 operations on a profile of 500 KB",
        NrfHeartBeat,
        |f| Box::pin(many(f, "add")),
    ),
    attack(
        "nrf.patch-many-copies",
        "7,000 copies on a profile of 500 KB",
        NrfHeartBeat,
        |f| Box::pin(many(f, "copy")),
    ),
    attack(
        "nrf.patch-edges",
        "depth, invalid indexes, moves into themselves, tests that fail at the end",
        NrfHeartBeat,
        |f| Box::pin(edges(f)),
    ),
];

fn doubling(copies: usize) -> String {
    let mut operations = vec![json!({"op": "add", "path": "/c", "value": ["x".repeat(100)]})];
    operations.extend(vec![json!({"op": "copy", "from": "/c", "path": "/c/-"}); copies]);
    json!(operations).to_string()
}

async fn patch(field: &Field, path: &str, body: String) -> Got {
    let ask = Ask::new(Method::PATCH, path).with(PATCH, body);
    field.ask(&ask.within(Duration::from_secs(10))).await
}

fn refused(field: &Field, what: &str, got: &Got) {
    field.check(
        (400..500).contains(&got.status),
        format_args!("{what}: answered {}", got.text()),
    );
}

async fn bomb(field: Rc<Field>) -> anyhow::Result<()> {
    let own = profile(
        "00000000-0000-4000-8000-000000000b01",
        "AF",
        "naf-x",
        9,
        &json!({}),
    );
    put(&field, 0xb01, &own).await;
    let got = patch(&field, &instance(0xb01), doubling(60)).await;
    refused(&field, "a patch bomb in a profile", &got);
    let subscription = json!({
        "nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfType": "AF", "subscrCond": {"nfType": "UDM"},
        "validityTime": "2099-01-01T00:00:00Z"
    });
    let made = field
        .ask(&Ask::new(Method::POST, "/nnrf-nfm/v1/subscriptions").json(&subscription))
        .await;
    let place = made.headers.get("location").and_then(|place| place.to_str().ok());
    let id = place
        .and_then(|place| place.rsplit('/').next())
        .unwrap_or_default();
    let path = format!("/nnrf-nfm/v1/subscriptions/{id}");
    let got = patch(&field, &path, doubling(60)).await;
    refused(&field, "a patch bomb in a subscription", &got);
    field.ask(&Ask::new(Method::DELETE, path)).await;
    remove(&field, 0xb01).await;
    Ok(())
}

async fn growth(field: Rc<Field>) -> anyhow::Result<()> {
    let own = profile(
        "00000000-0000-4000-8000-000000000b02",
        "AF",
        "naf-x",
        9,
        &json!({}),
    );
    put(&field, 0xb02, &own).await;
    // 100 bytes, doubled 15 times: 3.3 MB.
    let got = patch(&field, &instance(0xb02), doubling(15)).await;
    refused(&field, "a result of 3.3 MB", &got);
    let got = field.ask(&Ask::get(instance(0xb02))).await;
    field.check(
        got.body.len() < 600_000,
        format_args!("{} bytes are kept", got.body.len()),
    );
    remove(&field, 0xb02).await;
    Ok(())
}

async fn many(field: Rc<Field>, op: &str) -> anyhow::Result<()> {
    let own = profile(
        "00000000-0000-4000-8000-000000000b03",
        "AF",
        "naf-x",
        9,
        &json!({"pad": ["x".repeat(480_000)], "c": [1]}),
    );
    put(&field, 0xb03, &own).await;
    let operations: Vec<_> = match op {
        "add" => vec![json!({"op": "add", "path": "/a", "value": 1}); field.of(15_000, 3_000)],
        _ => vec![json!({"op": "copy", "from": "/c/0", "path": "/c/0"}); field.of(7_000, 2_000)],
    };
    let body = json!(operations).to_string();
    for _ in 0..field.of(5, 2) {
        let got = patch(&field, &instance(0xb03), body.clone()).await;
        field.note(format_args!("{} bytes of patch: {}", body.len(), got.status));
        field.check(got.status != 0, "a large patch is not answered");
    }
    remove(&field, 0xb03).await;
    Ok(())
}

async fn edges(field: Rc<Field>) -> anyhow::Result<()> {
    let own = profile(
        "00000000-0000-4000-8000-000000000b04",
        "AF",
        "naf-x",
        9,
        &json!({"l": [1]}),
    );
    put(&field, 0xb04, &own).await;
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let path = format!("/{}", "a/".repeat(50_000));
    for body in [
        format!(r#"[{{"op":"add","path":"/d","value":{deep}}}]"#),
        json!([{"op": "add", "path": path, "value": 1}]).to_string(),
        json!([{"op": "add", "path": "/l/01", "value": 1}]).to_string(),
        json!([{"op": "add", "path": "/l/99999999999999999999", "value": 1}]).to_string(),
        json!([{"op": "remove", "path": "/l/-"}]).to_string(),
        json!([{"op": "move", "from": "/l", "path": "/l/0"}]).to_string(),
        json!([{"op": "replace", "path": "", "value": 1}]).to_string(),
        json!([{"op": "remove", "path": ""}]).to_string(),
        json!([{"op": "add", "path": "/x", "value": 1}, {"op": "test", "path": "/x", "value": 2}])
            .to_string(),
        json!([{"op": "evil", "path": "/x"}]).to_string(),
        json!({"op": "add"}).to_string(),
        "[".repeat(100_000),
    ] {
        let got = patch(&field, &instance(0xb04), body.clone()).await;
        let shown: String = body.chars().take(60).collect();
        refused(&field, &shown, &got);
    }
    remove(&field, 0xb04).await;
    Ok(())
}
