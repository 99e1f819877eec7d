//! Clients of a BSF, over HTTP/2 and Rx.

use std::rc::Rc;

use http::Method;
use serde_json::{Value, json};

use crate::answer::{Ask, client};
use crate::attack::{Attack, attack};
use crate::attacks::diameter;
use crate::field::Field;
use crate::stage::Stage::Bsf;
use crate::stage::binding;

const ALL: &[Attack] = &[
    attack("bsf.bad-bindings", "invalid bindings and changes", Bsf, |f| {
        Box::pin(bad(f))
    }),
    attack("bsf.bad-queries", "invalid queries", Bsf, |f| {
        Box::pin(queries(f))
    }),
    attack(
        "bsf.one-address",
        "thousands of bindings at one address",
        Bsf,
        |f| Box::pin(one_address(f)),
    ),
    attack(
        "bsf.forged-notifications",
        "notifications that no NRF sent",
        Bsf,
        |f| Box::pin(forged(f)),
    ),
    attack(
        "bsf.forbidden-targets",
        "URIs for notifications at this machine's other ports, at the function itself, link-local",
        Bsf,
        |f| Box::pin(forbidden(f)),
    ),
    attack(
        "bsf.merge-bombs",
        "merge patches that make a binding grow",
        Bsf,
        |f| Box::pin(merges(f)),
    ),
    attack(
        "bsf.rx-malformed",
        "bytes that are not Diameter, before and after the exchange of capabilities",
        Bsf,
        |f| Box::pin(diameter::malformed(f)),
    ),
    attack(
        "bsf.rx-capabilities",
        "capabilities exchanged over and over, and connections that stay silent",
        Bsf,
        |f| Box::pin(diameter::capabilities(f)),
    ),
    attack(
        "bsf.rx-watchdogs",
        "watchdog requests as fast as they are taken",
        Bsf,
        |f| Box::pin(diameter::watchdogs(f)),
    ),
];

pub(super) fn all() -> Vec<Attack> {
    ALL.to_vec()
}

const BINDINGS: &str = "/nbsf-management/v1/pcfBindings";

async fn bad(field: Rc<Field>) -> anyhow::Result<()> {
    let with = |more: Value| {
        let mut value = binding("10.9.9.9", 99);
        if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
            value.extend(more.clone());
        }
        value.to_string()
    };
    for (what, body) in [
        ("nothing", String::new()),
        ("a list", "[]".to_owned()),
        ("depth", "[".repeat(50_000)),
        ("an empty address", with(json!({"ipv4Addr": ""}))),
        ("an address of numbers", with(json!({"ipv4Addr": 7}))),
        ("an invalid address", with(json!({"ipv4Addr": "999.0.0.1"}))),
        (
            "a prefix without a length",
            with(json!({"ipv6Prefix": "2001:db8::"})),
        ),
        ("a prefix of 129", with(json!({"ipv6Prefix": "2001:db8::/129"}))),
        ("a slice beyond", with(json!({"snssai": {"sst": 256}}))),
        ("invalid features", with(json!({"suppFeat": "xyz"}))),
        (
            "a port beyond",
            with(json!({"pcfIpEndPoints": [{"port": 70_000}]})),
        ),
        ("100 KB", with(json!({"x": "y".repeat(100_000)}))),
    ] {
        let got = field
            .ask(&Ask::new(Method::POST, BINDINGS).with("application/json", body))
            .await;
        field.check(
            (400..500).contains(&got.status),
            format_args!("{what}: {}", got.text()),
        );
    }
    // A prefix of 64 bits is one, and a change is answered.
    let mut good = binding("10.9.9.8", 98);
    good["ipv6Prefix"] = "2001:db8:9:9::/64".into();
    let got = field.ask(&Ask::new(Method::POST, BINDINGS).json(&good)).await;
    field.check(
        got.status == 201,
        format_args!("a prefix of 64 bits: {}", got.text()),
    );
    let place = got.headers.get("location").and_then(|place| place.to_str().ok());
    let id = place
        .and_then(|place| place.rsplit('/').next())
        .unwrap_or_default();
    let path = format!("{BINDINGS}/{id}");
    let patch =
        Ask::new(Method::PATCH, &*path).with("application/merge-patch+json", r#"{"pcfFqdn":"pcf2.example"}"#);
    let got = field.ask(&patch).await;
    field.check(got.status == 200, format_args!("a change: {}", got.text()));
    field.ask(&Ask::new(Method::DELETE, path)).await;
    Ok(())
}

async fn queries(field: Rc<Field>) -> anyhow::Result<()> {
    for query in [
        String::new(),
        "?dnn=internet".to_owned(),
        "?ipv4Addr=".to_owned(),
        "?ipv4Addr=999.1.1.1".to_owned(),
        "?ipv6Prefix=2001:db8::1".to_owned(),
        "?supi=a&snssai=1".to_owned(),
        "?supi=%ff".to_owned(),
        format!("?ipv4Addr=10.0.0.1&ipv4Addr={}", "1".repeat(50_000)),
    ] {
        for _ in 0..field.of(100, 2) {
            let got = field.ask(&Ask::get(format!("{BINDINGS}{query}"))).await;
            field.check(
                (400..500).contains(&got.status),
                format_args!("{query:.60}: {}", got.text()),
            );
        }
    }
    Ok(())
}

async fn one_address(field: Rc<Field>) -> anyhow::Result<()> {
    let evil = client("PCF-attacker");
    let mut made = Vec::new();
    for number in 0..field.of(3_000u32, 250) {
        let got = field
            .ask_as(
                &evil,
                &Ask::new(Method::POST, BINDINGS).json(&binding("10.7.7.7", 1_000 + number)),
            )
            .await;
        if let Some(place) = got.headers.get("location").and_then(|place| place.to_str().ok()) {
            made.push(place.rsplit('/').next().unwrap_or_default().to_owned());
        }
    }
    for _ in 0..field.of(200, 20) {
        let got = field
            .ask_as(&evil, &Ask::get(format!("{BINDINGS}?ipv4Addr=10.7.7.7")))
            .await;
        field.check(got.status != 0, "a query for an address of many is not answered");
    }
    field.note(format_args!("{} bindings at one address", made.len()));
    for id in made {
        field
            .ask_as(&evil, &Ask::new(Method::DELETE, format!("{BINDINGS}/{id}")))
            .await;
    }
    Ok(())
}

async fn forged(field: Rc<Field>) -> anyhow::Result<()> {
    for event in ["NF_DEREGISTERED", "NF_PROFILE_CHANGED", "NF_REGISTERED", "x"] {
        for n in 0..field.of(500, 10) {
            let notification = json!({
                "event": event,
                "nfInstanceUri": format!("http://127.0.0.1:9/nnrf-nfm/v1/nf-instances/6f1c7a52-0000-4000-8000-{:012x}", n % 2),
                "nfProfile": {"nfInstanceId": "6f1c7a52-0000-4000-8000-000000000001", "nfType": "PCF", "nfStatus": "SUSPENDED"}
            });
            let path = "/signalbox-bsf/v1/nf-status-notify";
            let got = field.ask(&Ask::new(Method::POST, path).json(&notification)).await;
            // Beyond the queue the answer is 503.
            let bounded = got.status == 503 || (200..500).contains(&got.status);
            field.check(bounded, format_args!("answered {}", got.text()));
        }
    }
    Ok(())
}

async fn merges(field: Rc<Field>) -> anyhow::Result<()> {
    let got = field
        .ask(&Ask::new(Method::POST, BINDINGS).json(&binding("10.7.7.8", 97)))
        .await;
    let place = got.headers.get("location").and_then(|place| place.to_str().ok());
    let id = place
        .and_then(|place| place.rsplit('/').next())
        .unwrap_or_default();
    let path = format!("{BINDINGS}/{id}");
    for n in 0..field.of(200, 20) {
        let patch = json!({format!("member{n}"): "x".repeat(30_000)}).to_string();
        let got = field
            .ask(&Ask::new(Method::PATCH, &*path).with("application/merge-patch+json", patch))
            .await;
        field.check(
            got.status != 0 && got.status < 500,
            format_args!("a change: {}", got.text()),
        );
    }
    let got = field
        .ask(&Ask::get(format!("{BINDINGS}?ipv4Addr=10.7.7.8")))
        .await;
    field.check(
        got.body.len() < 1_000_000,
        format_args!("a binding of {} bytes", got.body.len()),
    );
    field.ask(&Ask::new(Method::DELETE, path)).await;
    Ok(())
}

async fn forbidden(field: Rc<Field>) -> anyhow::Result<()> {
    let root = format!("http://{}", field.target);
    for uri in [
        "http://0.0.0.0:7777/n".to_owned(),
        "http://[::]:7777/n".to_owned(),
        "http://[::ffff:127.0.0.1]:7777/n".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[fe80::1]/n".to_owned(),
        "http://nef:secret@127.0.0.1:7777/n".to_owned(),
        format!("{root}{BINDINGS}"),
    ] {
        let body = json!({
            "events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": uri, "notifCorreId": "c",
            "supi": "imsi-001010000000001"
        });
        let ask = Ask::new(Method::POST, "/nbsf-management/v1/subscriptions").json(&body);
        let got = field.ask(&ask).await;
        field.check(
            got.status == 400,
            format_args!("a subscriber at {uri}: {}", got.status),
        );
    }
    Ok(())
}
