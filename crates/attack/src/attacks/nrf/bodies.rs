//! Bodies and texts: invalid profiles, what unpacks to too much, what reaches logs and metrics.

use std::io::Write as _;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::{Value, json};

use super::{id, instance, put, remove};
use crate::answer::Ask;
use crate::attack::{Attack, attack};
use crate::field::Field;
use crate::measure;
use crate::stage::Stage::Nrf;
use crate::stage::profile;

pub(super) const ALL: &[Attack] = &[
    attack("nrf.bad-profiles", "invalid profiles", Nrf, |f| Box::pin(bad(f))),
    attack(
        "nrf.gzip-bombs",
        "bodies that unpack to 10 and to 400 MiB",
        Nrf,
        |f| Box::pin(gzip(f)),
    ),
    attack(
        "nrf.types",
        "NF types of many names, long names, line breaks and escape sequences",
        Nrf,
        |f| Box::pin(types(f)),
    ),
    attack(
        "nrf.many-functions",
        "hundreds of functions register, and leave without a word",
        Nrf,
        |f| Box::pin(many(f)),
    ),
];

fn bad_profiles() -> Vec<(&'static str, Vec<u8>)> {
    let whole = || profile(&id(0xd00), "UDM", "nudm-sdm", 8_080, &json!({}));
    let with = |more: Value| {
        profile(&id(0xd00), "UDM", "nudm-sdm", 8_080, &more)
            .to_string()
            .into_bytes()
    };
    let service = |members: Value| {
        let mut profile = whole();
        if let Some(service) = profile["nfServices"][0].as_object_mut() {
            service.extend(members.as_object().cloned().unwrap_or_default());
        }
        profile.to_string().into_bytes()
    };
    vec![
        ("nothing", Vec::new()),
        ("half an object", b"{\"nfInstanceId\":".to_vec()),
        ("a list", b"[]".to_vec()),
        ("bad UTF-8", b"{\"nfType\":\"\xff\"}".to_vec()),
        ("depth", "[".repeat(200_000).into_bytes()),
        ("depth of members", r#"{"a":"#.repeat(50_000).into_bytes()),
        (
            "without a type",
            json!({"nfInstanceId": id(0xd00), "nfStatus": "REGISTERED"})
                .to_string()
                .into_bytes(),
        ),
        ("another id", with(json!({"nfInstanceId": id(0xdff)}))),
        ("an invalid id", with(json!({"nfInstanceId": "../../x"}))),
        ("a status of numbers", with(json!({"nfStatus": 7}))),
        (
            "an invalid address",
            with(json!({"ipv4Addresses": ["999.0.0.1"]})),
        ),
        ("an empty address", with(json!({"ipv4Addresses": [""]}))),
        (
            "a bad PLMN",
            with(json!({"plmnList": [{"mcc": "1", "mnc": "01"}]})),
        ),
        ("a PLMN of numbers", with(json!({"plmnList": [1]}))),
        ("a list that is an object", with(json!({"nfServices": {"x": 1}}))),
        ("a service without a name", with(json!({"nfServices": [{}]}))),
        ("a priority beyond", with(json!({"priority": 70_000}))),
        ("a negative capacity", with(json!({"capacity": -1}))),
        (
            "a number beyond doubles",
            String::from_utf8_lossy(&with(json!({"load": 77})))
                .replace(":77", ":1e400")
                .into_bytes(),
        ),
        (
            "port 70000",
            service(json!({"ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": 70_000}]})),
        ),
        (
            "a prefix with a line break",
            service(json!({"apiPrefix": "/a\r\nx: y"})),
        ),
        (
            "an escaped duplicate",
            String::from_utf8_lossy(&with(json!({})))
                .replacen('{', r#"{"nf\u0054ype":"AMF","#, 1)
                .into_bytes(),
        ),
        (
            "an invalid pattern",
            with(json!({"udmInfo": {"supiRanges": [{"pattern": "("}]}})),
        ),
        (
            "a bad notification address",
            with(
                json!({"defaultNotificationSubscriptions": [{"notificationType": "N1_MESSAGES", "callbackUri": 7}]}),
            ),
        ),
    ]
}

async fn bad(field: Rc<Field>) -> anyhow::Result<()> {
    for _ in 0..field.of(50, 1) {
        for (what, body) in bad_profiles() {
            let ask = Ask::new(Method::PUT, instance(0xd00)).with("application/json", body);
            let got = field.ask(&ask).await;
            field.check(
                (400..500).contains(&got.status),
                format_args!("{what}: answered {}", got.text()),
            );
        }
    }
    // The smallest that is one, and a list of ten thousand members: taken or refused, never the end.
    let minimal =
        json!({"nfInstanceId": id(0xd01), "nfType": "UDM", "nfStatus": "REGISTERED", "fqdn": "a.example"});
    let got = put(&field, 0xd01, &minimal).await;
    field.check(
        got.status == 201,
        format_args!("a minimal profile: {}", got.text()),
    );
    remove(&field, 0xd01).await;
    let long = profile(
        &id(0xd02),
        "UDM",
        "nudm-ueau",
        9,
        &json!({"allowedNfTypes": vec!["AMF"; 10_000]}),
    );
    let got = put(&field, 0xd02, &long).await;
    field.check(
        got.status != 0 && got.status < 500,
        format_args!("a list of 10,000: {}", got.text()),
    );
    remove(&field, 0xd02).await;
    Ok(())
}

async fn gzip(field: Rc<Field>) -> anyhow::Result<()> {
    for mib in field.of(vec![10, 400], vec![10]) {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(br#"{"pad":""#)?;
        for _ in 0..mib {
            packed.write_all(&vec![b' '; 1 << 20])?;
        }
        let body = packed.finish()?;
        for _ in 0..field.of(10, 3) {
            let ask = Ask::new(Method::PUT, instance(0xd10))
                .header("content-encoding", "gzip")
                .with("application/json", body.clone());
            let got = field.ask(&ask).await;
            field.check(
                (400..500).contains(&got.status),
                format_args!("{mib} MiB unpacked: {}", got.text()),
            );
        }
    }
    Ok(())
}

async fn types(field: Rc<Field>) -> anyhow::Result<()> {
    let count = field.of(3_000u32, 300);
    let before = metrics(&field).await;
    for number in 0..count {
        let own = profile(
            &id(0x10_000 + number),
            &format!("INVENTED{number}"),
            "nx-y",
            9,
            &json!({}),
        );
        put(&field, 0x10_000 + number, &own).await;
    }
    let grown = metrics(&field).await.saturating_sub(before);
    field.note(format_args!("{count} types: the metrics grew by {grown} bytes"));
    field.check(
        grown < 20_000,
        format_args!("{count} types: the metrics grew by {grown} bytes"),
    );
    let log = field.world.borrow().process.log.clone();
    let logged = measure::file_bytes(&log);
    for name in [
        "A\nINFO forged: line",
        "\u{1b}[2J\u{1b}[31m",
        "\u{202e}txt",
        "X\r\n\r\nGET /",
    ] {
        let own = profile(&id(0xd20), name, "nx-y", 9, &json!({}));
        let got = put(&field, 0xd20, &own).await;
        field.check(
            (400..500).contains(&got.status),
            format_args!("{name:?}: answered {}", got.status),
        );
    }
    let long = profile(&id(0xd21), &"L".repeat(50_000), "nx-y", 9, &json!({}));
    let got = put(&field, 0xd21, &long).await;
    field.check((400..500).contains(&got.status), "a type of 50 KB is taken");
    let text = std::fs::read(&log)?;
    let tail = text.get(usize::try_from(logged)?..).unwrap_or_default();
    field.check(!tail.contains(&0x1b), "an escape sequence reached the log");
    field.check(
        !String::from_utf8_lossy(tail)
            .lines()
            .any(|line| line.starts_with("INFO forged")),
        "a forged line reached the log",
    );
    for number in (0..count).map(|n| 0x10_000 + n).chain([0xd20, 0xd21]) {
        remove(&field, number).await;
    }
    Ok(())
}

/// Length of the metrics page.
async fn metrics(field: &Field) -> usize {
    let admin = field.world.borrow().admin;
    crate::attacks::admin::get(admin, "/metrics")
        .await
        .map_or(0, |page| page.len())
}

async fn many(field: Rc<Field>) -> anyhow::Result<()> {
    let count = field.of(2_000u32, 200);
    for number in 0..count {
        let own = profile(&id(0x20_000 + number), "AMF", "namf-comm", 9, &json!({}));
        // A client of its own each, gone with its answer.
        let got = put(&field, 0x20_000 + number, &own).await;
        field.check(
            got.status == 201,
            format_args!("function {number}: {}", got.text()),
        );
    }
    for number in 0..count {
        remove(&field, 0x20_000 + number).await;
    }
    Ok(())
}
