//! NIR of the HSS: an authorization for NIDD that changes.

use std::time::{Duration, SystemTime};

use diameter::proto::MessageMut;
use diameter::proto::kind::TimeValue;
use diameter::proto::known::{self, application, command};
use http::StatusCode;
use scef::Event;
use serde_json::json;

use crate::judge;
use crate::network::{ESTABLISH, Node, SUCCESS, result_of};
use crate::support::{IMSI, configured, local, notified, path_of, server, start};

const UNKNOWN: (u32, u32) = (known::VENDOR_3GPP, 5001);

fn update(hss: &Node, number: u32, imsi: &str, (apn, until): (Option<&str>, SystemTime)) -> MessageMut {
    hss.request((command::NIDD_INFORMATION, application::S6T), number, |out| {
        out.group(known::USER_IDENTIFIER, |group| {
            group.put(known::USER_NAME, imsi);
        });
        out.group(known::NIDD_AUTHORIZATION_UPDATE, |group| {
            group.group(known::APN_VALIDITY_TIME, |group| {
                group
                    .put(known::GRANTED_VALIDITY_TIME, TimeValue::from_system_time(until))
                    .maybe(known::SERVICE_SELECTION, apn);
            });
        });
    })
}

#[test]
fn an_authorization_is_shortened_and_withdrawn_by_the_hss() {
    local(async {
        let (scef, server) = (start(|config| config.nidd.apn = "iot.example".into()), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let long = json!({"duration": "2100-01-01T00:00:00Z"});
        let (got, _) = configured(&scef, &mut hss, &server.root(), &long).await;
        let path = path_of(&got);
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);

        let (later, past) = (
            SystemTime::now() + Duration::from_secs(86_400),
            SystemTime::now() - Duration::from_secs(1),
        );
        let unknown = update(&hss, 5, "001019999999999", (None, past));
        assert_eq!(result_of(&hss.ask(&unknown).await), UNKNOWN);
        let other = update(&hss, 6, IMSI, (Some("other.example"), past));
        assert_eq!(result_of(&hss.ask(&other).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.json["duration"], "2100-01-01T00:00:00Z");
        let shorter = update(&hss, 7, IMSI, (Some("IoT.example"), later));
        assert_eq!(result_of(&hss.ask(&shorter).await), SUCCESS);
        let duration = scef.api.get(&path).await.json["duration"].clone();
        assert!(duration.as_str().unwrap() < "2100", "{duration}");

        let withdrawn = update(&hss, 8, IMSI, (None, past));
        assert_eq!(result_of(&hss.ask(&withdrawn).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        let release = mme.expect(command::CONNECTION_MANAGEMENT).await;
        assert_eq!(release.get(known::CONNECTION_ACTION), Ok(Some(1)));
        let seen = notified(&server, 1).await;
        judge::nidd("NiddConfigurationStatusNotification", &seen[0]);
        assert_eq!(seen[0]["status"], "TERMINATED_UE_NOT_AUTHORIZED");
        assert_eq!(result_of(&hss.ask(&withdrawn).await), UNKNOWN);
        scef.stop();
    });
}

#[test]
fn only_the_hss_that_was_asked_withdraws_an_authorization() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let (got, _) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let path = path_of(&got);
        let past = SystemTime::now() - Duration::from_secs(1);
        // An MME, and another peer that calls itself an HSS.
        let mut mme = Node::mme(scef.diameter()).await;
        let mut other = Node::hss_named(scef.diameter(), "hss2.example.org").await;
        for (node, number) in [(&mut mme, 5), (&mut other, 6)] {
            let withdrawn = update(node, number, IMSI, (None, past));
            assert_eq!(result_of(&node.ask(&withdrawn).await), (0, 5012));
        }
        assert_eq!(scef.running.count(Event::SenderRefused), 2);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        let withdrawn = update(&hss, 7, IMSI, (None, past));
        assert_eq!(result_of(&hss.ask(&withdrawn).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        scef.stop();
    });
}

#[test]
fn another_hss_of_the_settings_may_withdraw_it() {
    local(async {
        let second = "hss2.example.org";
        let (scef, server) = (
            start(|config| {
                config.diameter.peers = vec![scef::config::Peer {
                    host: second.to_owned(),
                    addresses: vec![free_ports::address().unwrap()],
                }];
            }),
            server(),
        );
        let mut hss = Node::hss(scef.diameter()).await;
        let (got, _) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let mut other = Node::hss_named(scef.diameter(), second).await;
        let past = SystemTime::now() - Duration::from_secs(1);
        let withdrawn = update(&other, 5, IMSI, (None, past));
        assert_eq!(result_of(&other.ask(&withdrawn).await), SUCCESS);
        assert_eq!(scef.api.get(&path_of(&got)).await.status, StatusCode::NOT_FOUND);
        scef.stop();
    });
}
