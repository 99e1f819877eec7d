//! Bindings: whom a request is bound to, for services and for callbacks.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Got, PATH, Producer, Scp, delegating, local, nrf_that_finds, start, until};

const SET: &str = "set1.udmset.5gc.mnc001.mcc001";

async fn bound(scp: &Scp, path: &str, binding: &str, more: &[(&str, &str)]) -> Got {
    let headers = [&[("3gpp-sbi-routing-binding", binding)], more].concat();
    scp.ask(Method::POST, path, &headers).await
}

/// A profile whose service has a second instance at `other`, in another service set.
fn with_two(producer: &Producer, other: &Producer) -> Value {
    let mut profile = producer.profile(&json!({}));
    let mut second = profile["nfServices"][0].clone();
    second["serviceInstanceId"] = json!("sdm-2");
    second["ipEndPoints"][0]["port"] = json!(other.address.port());
    second["nfServiceSetIdList"] = json!(["second.set"]);
    profile["nfServices"] = json!([profile["nfServices"][0].clone(), second]);
    profile
}

#[test]
fn the_service_instance_or_set_that_is_bound_serves() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let profile = with_two(&first, &second);
        let scp = start(|config| config.producers = vec![profile]);
        let id = &first.id;
        for (binding, expected) in [
            (
                format!("bl=nfservice-instance; nfinst={id}; nfservinst=sdm-2; nfset={SET}"),
                &second.id,
            ),
            (
                format!("bl=nfservice-instance; nfinst={id}; nfservinst=sdm-1; nfset={SET}"),
                id,
            ),
            (
                format!("bl=nfservice-set; nfserviceset=second.set; nfset={SET}"),
                &second.id,
            ),
        ] {
            for _ in 0..10 {
                let got = bound(&scp, PATH, &binding, &[]).await;
                assert_eq!(got.by(), *expected, "{binding}");
            }
        }
    });
}

#[test]
fn a_backup_serves_when_the_bound_instance_is_dead() {
    local(async {
        let (dead, backup) = (Producer::start(1), Producer::start(2));
        let profiles = vec![
            dead.profile(&json!({"nfSetIdList": []})),
            backup.profile(&json!({"nfSetIdList": []})),
        ];
        let scp = start(|config| config.producers = profiles);
        for name in ["backupnf", "backupamfinst"] {
            let binding = format!("bl=nf-instance; nfinst={}; {name}={}", dead.id, backup.id);
            assert_eq!(bound(&scp, PATH, &binding, &[]).await.by(), dead.id);
        }
        let root = dead.root();
        dead.stop();
        for name in ["backupnf", "backupamfinst"] {
            let binding = format!("bl=nf-instance; nfinst={}; {name}={}", dead.id, backup.id);
            for more in [&[][..], &[("3gpp-sbi-target-apiroot", root.as_str())]] {
                until("the backup serves", async || {
                    bound(&scp, PATH, &binding, more).await.by() == backup.id
                })
                .await;
            }
        }
    });
}

#[test]
fn callbacks_reach_the_function_that_their_binding_names() {
    local(async {
        let (amf, other) = (Producer::start(1), Producer::start(2));
        let mut profile = amf.profile(&json!({"allowedNfTypes": ["SMF"]}));
        profile["nfServices"][0]["apiPrefix"] = json!("prefix");
        let profiles = vec![profile, other.profile(&json!({"nfSetIdList": ["set9"]}))];
        let scp = start(|config| config.producers = profiles);
        let callback = (
            "3gpp-sbi-callback",
            "Namf_Communication_N1N2TransferFailureNotification",
        );
        let path = "/my/callback/7";
        for (binding, more) in [
            (
                format!("bl=nf-set; nfset={SET}; servname=nudm-sdm; scope=callback"),
                &[][..],
            ),
            (format!("bl=nf-set; nfset={SET}; servname=nudm-sdm"), &[callback]),
            (format!("bl=nf-set; nfset={SET}"), &[callback]),
            (format!("bl=nf-instance; nfinst={}", amf.id), &[callback]),
        ] {
            let got = bound(&scp, path, &binding, more).await;
            assert_eq!(
                (got.status, got.by()),
                (StatusCode::OK, amf.id.as_str()),
                "{binding}"
            );
        }
        assert!(
            amf.seen().iter().all(|seen| seen.path == path),
            "callbacks have no prefix"
        );
        let got = bound(&scp, path, &format!("bl=nf-set; nfset={SET}"), &[]).await;
        assert_eq!(got.cause(), "NF_DISCOVERY_FAILURE", "not a callback");
        assert_eq!(other.count(), 0);
    });
}

const DELEGATED: [(&str, &str); 2] = [
    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
    ("3gpp-sbi-discovery-service-names", "nudm-sdm, nudm-uecm"),
];

#[test]
fn what_a_discovery_prefers_and_the_version_of_the_path_decide_first() {
    local(async {
        let (first, second, old) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let mut of_v1 = old.profile(&json!({}));
        of_v1["nfServices"][0]["versions"] = json!([{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}]);
        let profiles = vec![of_v1, first.profile(&json!({})), second.profile(&json!({}))];
        let nrf = nrf_that_finds(profiles);
        let scp = delegating(vec![nrf.root()], |_| {});
        let wish = ("3gpp-sbi-discovery-preferred-nf-instances", second.id.as_str());
        for _ in 0..10 {
            let got = scp
                .ask(Method::GET, PATH, &[&DELEGATED[..], &[wish]].concat())
                .await;
            assert_eq!(got.by(), second.id);
            let got = scp.ask(Method::GET, PATH, &DELEGATED).await;
            assert_ne!(got.by(), old.id, "{PATH}");
        }
        assert!(
            nrf.seen()[0].path.contains("nudm-sdm,nudm-uecm"),
            "{}",
            nrf.seen()[0].path
        );
        let got = scp
            .ask(Method::GET, "/nudm-sdm/v1/imsi-1/am-data", &DELEGATED)
            .await;
        assert_eq!(got.by(), old.id);
        // Where no one offers the version it is for a producer to say so.
        let got = scp
            .ask(Method::GET, "/nudm-sdm/v9/imsi-1/am-data", &DELEGATED)
            .await;
        assert_eq!(got.status, StatusCode::OK);
    });
}

#[test]
fn a_notification_without_a_subscription_goes_where_the_profile_takes_it() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let taking = |producer: &Producer, kind: &str, class: &str| {
            let uri = format!("{}/namf-callback/v1/{class}", producer.root());
            producer.profile(&json!({"defaultNotificationSubscriptions": [
                {"notificationType": kind, "callbackUri": uri, "n1MessageClass": class}, {"of": "a later release"}
            ]}))
        };
        let nrf = nrf_that_finds(vec![
            taking(&first, "N1_MESSAGES", "LPP"),
            taking(&second, "N1_MESSAGES", "SMS"),
        ]);
        let scp = delegating(vec![nrf.root()], |_| {});
        let headers = [
            ("3gpp-sbi-callback", "Namf_Communication_N1MessageNotify"),
            ("3gpp-sbi-discovery-target-nf-type", "UDM"),
            ("3gpp-sbi-discovery-notification-type", "N1_MESSAGES"),
            ("3gpp-sbi-discovery-n1-msg-class", "SMS"),
        ];
        let got = scp.ask(Method::POST, "/n1-message-notify", &headers).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, second.id.as_str()));
        assert_eq!(second.seen()[0].path, "/namf-callback/v1/SMS");
        assert_eq!(first.count(), 0);
    });
}

#[test]
fn discovery_parameters_name_those_who_stand_in_for_a_dead_producer() {
    local(async {
        let (dead, found) = (Producer::start(1), Producer::start(2));
        let nrf = nrf_that_finds(vec![found.profile(&json!({}))]);
        let scp = delegating(vec![nrf.root()], |_| {});
        let root = dead.root();
        let headers = [&DELEGATED[..], &[("3gpp-sbi-target-apiroot", root.as_str())]].concat();
        assert_eq!(scp.ask(Method::GET, PATH, &headers).await.by(), dead.id);
        assert_eq!(nrf.count(), 0, "the named producer serves");
        dead.stop();
        until("the other serves", async || {
            scp.ask(Method::GET, PATH, &headers).await.by() == found.id
        })
        .await;
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(got.header("3gpp-sbi-target-apiroot"), found.root());
        assert_eq!(nrf.count(), 1);
        // The same where the named place is unknown.
        let unknown = [
            &DELEGATED[..],
            &[("3gpp-sbi-target-apiroot", "http://169.254.1.1:80")],
        ]
        .concat();
        assert_eq!(scp.ask(Method::GET, PATH, &unknown).await.by(), found.id);
    });
}

#[test]
fn the_time_of_the_consumer_is_one_budget_for_discovery_and_attempts() {
    local(async {
        let silent = Producer::start(1);
        silent.waits(Duration::from_secs(60));
        let nrf = nrf_that_finds(vec![silent.profile(&json!({}))]);
        nrf.waits(Duration::from_millis(600));
        let scp = delegating(vec![nrf.root()], |_| {});
        let timed = |time: &'static str| [&DELEGATED[..], &[("3gpp-sbi-max-rsp-time", time)]].concat();
        let got = scp.ask(Method::GET, PATH, &timed("300")).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::GATEWAY_TIMEOUT, "TIMED_OUT_REQUEST")
        );
        assert_eq!(
            silent.count(),
            0,
            "nothing is sent for a consumer that does not wait"
        );
        let got = scp.ask(Method::GET, PATH, &timed("1000")).await;
        assert_eq!(got.cause(), "TIMED_OUT_REQUEST");
    });
}
