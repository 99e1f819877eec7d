//! Subscriptions: sinks that say nothing, and one client that takes all places.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::json;
use testpeer::http2::Hostile;

use super::{id, put, remove};
use crate::answer::{Ask, client};
use crate::attack::{Attack, Bars, attack};
use crate::field::Field;
use crate::stage::Stage::Nrf;
use crate::stage::{Server, profile};

pub(super) const ALL: &[Attack] = &[
    attack(
        "nrf.silent-sinks",
        "subscribers that never answer, and changes of large profiles",
        Nrf,
        |f| Box::pin(silent(f)),
    )
    // The sinks stand for many hosts; here all of them, and the honest subscriber, have one address.
    .with_settings(|| json!({"subscriptions": {"maxPerSource": 100_000}}))
    .alone()
    .with_bars(Bars {
        cpu_s: 20.0,
        ..Bars::DEFAULT
    }),
    attack(
        "nrf.all-subscriptions",
        "one client subscribes as often as it can; another wants one place",
        Nrf,
        |f| Box::pin(all_places(f)),
    )
    .alone(),
    attack(
        "nrf.notification-targets",
        "subscriptions that notify invalid or forbidden addresses",
        Nrf,
        |f| Box::pin(targets(f)),
    )
    .alone(),
];

fn subscription(uri: &str, number: u32, nf_type: &str) -> Ask {
    Ask::new(Method::POST, "/nnrf-nfm/v1/subscriptions").json(&json!({
        "nfStatusNotificationUri": uri, "reqNfType": nf_type, "reqNfInstanceId": id(number),
        "subscrCond": {"nfType": "UDR"}, "validityTime": "2099-01-01T00:00:00Z"
    }))
}

async fn silent(field: Rc<Field>) -> anyhow::Result<()> {
    let sink = Hostile::answering(|_| Vec::new()).await?;
    let evil = client("AF-attacker");
    let mut taken = 0;
    for number in 0..field.of(900u32, 80) {
        let uri = format!("{}/{number}", sink.root());
        taken += u32::from(
            field
                .ask_as(&evil, &subscription(&uri, 0xe00 + number, "AF"))
                .await
                .status
                == 201,
        );
    }
    field.note(format_args!("{taken} subscriptions to silent sinks"));
    // An honest subscriber is notified all the same.
    let honest = Server::start(Arc::new(|_| {
        let mut response = sbi::Response::default();
        *response.status_mut() = http::StatusCode::NO_CONTENT;
        response
    }))?;
    let got = field.ask(&subscription(&honest.root(), 0xfff, "AMF")).await;
    field.check(
        got.status == 201,
        format_args!("the honest subscriber: {}", got.text()),
    );
    for round in 0..field.of(60u32, 6) {
        let large = profile(
            &id(0xe01),
            "UDR",
            "nudr-dr",
            9,
            &json!({"pad": "x".repeat(400_000), "priority": round}),
        );
        put(&field, 0xe01, &large).await;
    }
    for _ in 0..100 {
        if !honest.seen().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    field.check(!honest.seen().is_empty(), "the honest subscriber is not notified");
    remove(&field, 0xe01).await;
    Ok(())
}

async fn all_places(field: Rc<Field>) -> anyhow::Result<()> {
    let evil = client("AF-attacker");
    let (mut taken, mut last) = (0, 0);
    for number in 0..field.of(3_000u32, 1_200) {
        let got = field
            .ask_as(
                &evil,
                &subscription(&format!("http://127.0.0.1:9/{number}"), 0xe02, "AF"),
            )
            .await;
        taken += u32::from(got.status == 201);
        last = got.status;
    }
    field.note(format_args!("{taken} places taken, the last answer {last}"));
    let got = field
        .ask(&subscription("http://127.0.0.1:10/honest", 0xfff, "AMF"))
        .await;
    field.check(
        got.status == 201,
        format_args!("the honest subscriber: {}", got.text()),
    );
    Ok(())
}

async fn targets(field: Rc<Field>) -> anyhow::Result<()> {
    let admin = field.world.borrow().admin;
    for uri in [
        "",
        "x",
        "http://",
        "file:///etc/passwd",
        "http://169.254.169.254/latest",
        "http://[fe80::1]/x",
        "http://a\r\nb/x",
    ] {
        let got = field.ask(&subscription(uri, 0xe03, "AF")).await;
        let shown: String = uri.chars().take(50).collect();
        field.check(
            (400..500).contains(&got.status),
            format_args!("{shown:?}: answered {}", got.status),
        );
    }
    // Without a path it is a URI; with our own admin port as target it may be refused or fail later.
    for uri in [
        "http://127.0.0.1:9".to_owned(),
        "http://127.0.0.1:0/x".to_owned(),
        "http://127.0.0.1:99999/x".to_owned(),
        format!("http://{}/x", "a".repeat(5_000)),
        format!("http://{admin}/config"),
    ] {
        let got = field.ask(&subscription(&uri, 0xe04, "AF")).await;
        field.check(
            got.status != 0 && got.status < 500,
            format_args!("{uri:.60}: {}", got.text()),
        );
    }
    let own = profile(&id(0xe05), "UDR", "nudr-dr", 9, &json!({}));
    put(&field, 0xe05, &own).await;
    remove(&field, 0xe05).await;
    Ok(())
}
