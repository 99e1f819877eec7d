//! An NRF that sends invalid or hostile answers to the SCP and to the BSF.

use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use crate::answer::Ask;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::stage::Stage::{BsfPoisoned, ScpPoisoned};
use crate::stage::{profile, wish};

pub(super) const ALL: &[Attack] = &[
    attack(
        "scp.poisoned-nrf",
        "answers of an NRF: depth, sizes, patterns, addresses, bodies that are not JSON",
        ScpPoisoned,
        |f| Box::pin(poisoned(f)),
    ),
    attack(
        "bsf.poisoned-nrf",
        "the same to a BSF that follows its PCFs",
        BsfPoisoned,
        |f| Box::pin(poisoned_bsf(f)),
    ),
];

fn instances(profiles: &serde_json::Value) -> Vec<u8> {
    json!({"validityPeriod": 1, "nfInstances": profiles})
        .to_string()
        .into_bytes()
}

fn one(more: &serde_json::Value) -> Vec<u8> {
    instances(&json!([profile(
        "00000000-0000-4000-8000-0000000000e2",
        "UDM",
        "nudm-sdm",
        9,
        more
    )]))
}

fn bodies(large: usize) -> Vec<(&'static str, Vec<u8>)> {
    let service = |members: serde_json::Value| {
        let mut service = json!({
            "serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http", "nfServiceStatus": "REGISTERED",
            "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}],
            "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": 9}]
        });
        if let (Some(service), Some(members)) = (service.as_object_mut(), members.as_object()) {
            service.extend(members.clone());
        }
        one(&json!({"nfServices": [service]}))
    };
    let pattern = json!({"pattern": "^imsi-([0-9]{1,2000}x)+$"});
    let many: Vec<_> = (0..large / 400)
        .map(|n| {
            profile(
                &format!("00000000-0000-4000-8000-{n:012x}"),
                "UDM",
                "nudm-sdm",
                9,
                &json!({}),
            )
        })
        .collect();
    vec![
        ("nothing", Vec::new()),
        ("no JSON", b"<html>".to_vec()),
        ("bad UTF-8", b"{\"nfInstances\":[\"\xff\xfe\"]}".to_vec()),
        ("depth", "[".repeat(large / 10).into_bytes()),
        ("depth of members", r#"{"a":"#.repeat(large / 50).into_bytes()),
        (
            "a number beyond doubles",
            br#"{"validityPeriod":1e400,"nfInstances":[]}"#.to_vec(),
        ),
        (
            "a negative time",
            br#"{"validityPeriod":-1,"nfInstances":[]}"#.to_vec(),
        ),
        (
            "a time of centuries",
            br#"{"validityPeriod":18446744073709551615,"nfInstances":[]}"#.to_vec(),
        ),
        (
            "duplicate members",
            br#"{"nfInstances":[],"nfInstances":[{}]}"#.to_vec(),
        ),
        (
            "instances of the wrong type",
            br#"{"validityPeriod":1,"nfInstances":[1,null,"x",[],{}]}"#.to_vec(),
        ),
        (
            "an object of instances",
            br#"{"validityPeriod":1,"nfInstances":{"x":{}}}"#.to_vec(),
        ),
        ("many instances", instances(&json!(many))),
        ("more than is read", vec![b' '; large * 2]),
        (
            "patterns",
            one(&json!({"udmInfo": {"supiRanges": vec![pattern; large / 400]}})),
        ),
        (
            "port 0",
            service(json!({"ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": 0}]})),
        ),
        (
            "port 70000",
            service(json!({"ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": 70_000}]})),
        ),
        (
            "a line break in a prefix",
            service(json!({"apiPrefix": "/a\r\nx: y"})),
        ),
        ("a query in a prefix", service(json!({"apiPrefix": "a?b="}))),
        ("a line break in a name", service(json!({"fqdn": "a\r\nb"}))),
        ("a line break in an id", one(&json!({"nfInstanceId": "x\r\ny"}))),
        ("a scheme", service(json!({"scheme": "file"}))),
        ("a callback to another", one(&json!({"fqdn": "a@b:c/d"}))),
    ]
}

fn poison(field: &Field, status: u16, body: Vec<u8>) {
    let world = field.world.borrow();
    if let Some(poisoned) = &world.poisoned
        && let Ok(mut answer) = poisoned.answer.lock()
    {
        *answer = (status, body);
    }
}

async fn poisoned(field: Rc<Field>) -> anyhow::Result<()> {
    for (number, (what, body)) in bodies(field.of(3_000_000, 200_000)).into_iter().enumerate() {
        poison(&field, 200, body);
        for again in 0..field.of(8, 2) {
            let ask = wish(Ask::get("/nudm-sdm/v2/x"))
                .header(
                    "3gpp-sbi-discovery-supi",
                    format!("imsi-00101{number:05}{again:05}"),
                )
                .within(Duration::from_secs(8));
            let got = field.ask(&ask).await;
            // No answer of the NRF may reach the honest producer or redirect requests elsewhere.
            let by_honest = got.json()["by"] == "honest";
            field.check(
                got.status >= 400 || (got.status == 200 && by_honest),
                format_args!("{what}: {}", got.text()),
            );
        }
    }
    for status in [100, 204, 307, 404, 429, 500, 503, 999] {
        poison(&field, status, b"x".to_vec());
        let got = field
            .ask(&wish(Ask::get("/nudm-sdm/v2/x")).within(Duration::from_secs(8)))
            .await;
        field.check(
            got.status != 0 || status == 100,
            format_args!("status {status}: {}", got.text()),
        );
    }
    Ok(())
}

async fn poisoned_bsf(field: Rc<Field>) -> anyhow::Result<()> {
    for (_, body) in bodies(field.of(3_000_000, 200_000)) {
        poison(&field, 200, body);
        // The notification is a hint: the BSF queries the NRF, gets the poison, and keeps its bindings.
        for event in ["NF_DEREGISTERED", "NF_PROFILE_CHANGED"] {
            let notification = json!({
                "event": event,
                "nfInstanceUri": "http://127.0.0.1:9/nnrf-nfm/v1/nf-instances/6f1c7a52-0000-4000-8000-000000000001"
            });
            let path = "/signalbox-bsf/v1/nf-status-notify";
            field
                .ask(&Ask::new(http::Method::POST, path).json(&notification))
                .await;
        }
        tokio::time::sleep(Duration::from_millis(field.of(200, 30))).await;
    }
    Ok(())
}
