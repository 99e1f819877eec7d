//! Settings that change while requests come in.

use std::cell::Cell;

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::json;

use crate::support::{binding, config, local, start};

#[test]
fn changed_settings_take_effect_and_mistakes_change_nothing() {
    local(async {
        let bsf = start(|_| {});
        let long = binding(&json!({"vendorExtra": "x".repeat(5_000)}));
        bsf.path(&bsf.post("pcfBindings", &long).await);
        let running = bsf.running.as_ref().unwrap();
        let mut wanted = config(bsf.directory.path());
        wanted.max_body_size = settings::ByteSize::kib(1);
        assert!(running.congestion_control(), "on unless switched off");
        wanted.overload.enabled = false;
        running.reload(&wanted).unwrap();
        assert!(!running.congestion_control());
        let refused = bsf.post("pcfBindings", &long).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);

        wanted.max_body_size = settings::ByteSize::kib(64);
        wanted.tokens.key_sets = vec!["/there/is/no/such/set.json".into()];
        let reason = running.reload(&wanted).unwrap_err();
        assert!(reason.contains("set.json"), "{reason}");
        assert_eq!(
            bsf.post("pcfBindings", &long).await.status,
            StatusCode::PAYLOAD_TOO_LARGE
        );
    });
}

/// Each reload changes settings; no request is refused, and each binding that was acknowledged and not deleted is there.
#[test]
fn a_hundred_reloads_under_load_lose_nothing() {
    local(async {
        let bsf = start(|_| {});
        let (done, made) = (Cell::new(false), Cell::new(0_u32));
        let address = |number: u32| format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
        let bind = async |lane: u32| {
            let (mut number, mut kept) = (lane, Vec::new());
            while !done.get() {
                let one = binding(&json!({"ipv4Addr": address(number)}));
                let path = bsf.path(&bsf.post("pcfBindings", &one).await);
                let found = bsf.find(&format!("ipv4Addr={}", address(number))).await;
                assert_eq!(found.status, StatusCode::OK, "{}", found.json);
                if number % 8 < 4 {
                    let deleted = bsf.ask(Method::DELETE, &path, "", Body::empty()).await;
                    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.json);
                } else {
                    kept.push(number);
                }
                made.set(made.get() + 1);
                number += 4;
            }
            kept
        };
        let reloads = async {
            let mut next = config(bsf.directory.path());
            for round in 0..100_u32 {
                next.max_body_size = settings::ByteSize::kib(64 + u64::from(round));
                bsf.running.as_ref().unwrap().reload(&next).unwrap();
                let before = made.get();
                while made.get() < before + 2 {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            }
            done.set(true);
        };
        let lanes = futures_util::future::join_all((0..4).map(bind));
        let (kept, ()) = tokio::join!(lanes, reloads);
        for number in kept.into_iter().flatten() {
            let found = bsf.find(&format!("ipv4Addr={}", address(number))).await;
            assert_eq!(found.status, StatusCode::OK, "{number}: {}", found.json);
        }
    });
}
