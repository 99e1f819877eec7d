//! Two BSFs on one database.

use std::time::Duration;

use diameter::PeerConfig;
use diameter::proto::known::command;
use http::Method;
use serde_json::json;
use testpeer::sbi::{Server, no_content};

use crate::databases::Servers;
use crate::rx::{AF, BSF, PCF, aar, ask, begun, peer, result, rx_peer};
use crate::support::{Bsf, binding, local, start};

const HOSTS: [&str; 2] = [BSF, "bsf2.example.org"];

#[test]
fn the_first_subscription_holds_at_once_at_the_other() {
    let Some(servers) = Servers::sites(1) else { return };
    local(async {
        let started = || start(|config| config.store = servers.config("site-1", &[1]));
        let (one, other) = (started(), started());
        let subscriber = Server::start(|_| no_content());
        for round in 1..=3 {
            // The last subscription has ended before each of them.
            let target = format!("{}/n", subscriber.root());
            let supi = format!("imsi-0000{round}");
            let body = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": target, "notifCorreId": "c",
                "supi": supi});
            let subscription = one.path(&one.post("subscriptions", &body).await);
            other.path(&other.post("pcfBindings", &binding(&json!({"supi": supi}))).await);
            while subscriber.count() < round {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            one.ask(Method::DELETE, &subscription, "", "").await;
        }
    });
}

#[test]
fn sessions_that_ended_at_the_other_leave_room_for_the_paths_of_new_ones() {
    let Some(servers) = Servers::sites(1) else { return };
    local(async {
        let (pcf, address) = peer(PCF);
        let bsfs: Vec<Bsf> = HOSTS
            .iter()
            .map(|host| {
                start(|config| {
                    config.store = servers.config("site-1", &[1]);
                    config.rx.host = (*host).to_owned();
                    config.rx.max_sessions = 20;
                    config.rx.peers = vec![rx_peer(PCF, address)];
                })
            })
            .collect();
        let (af, _) = peer(AF);
        for (host, bsf) in HOSTS.iter().zip(&bsfs) {
            let address = bsf.running.as_ref().unwrap().diameter_addresses()[0];
            af.node().add_peer(PeerConfig::connect(*host, [address])).unwrap();
            af.available(host).await;
            pcf.available(host).await;
        }
        bsfs[0].path(&bsfs[0].post("pcfBindings", &binding(&json!({}))).await);
        for number in 0..10 {
            let begun = ask(&af, HOSTS[0], aar(&format!("af;live;{number}"), [10, 0, 0, 1])).await;
            assert_eq!(result(&begun), 2001);
        }
        for number in 0..60 {
            let session = format!("af;short;{number}");
            assert_eq!(
                result(&ask(&af, HOSTS[0], aar(&session, [10, 0, 0, 1])).await),
                2001
            );
            let end = begun(command::SESSION_TERMINATION, &session, AF);
            assert_eq!(result(&ask(&af, HOSTS[1], end).await), 2001, "session {number}");
        }
        // Those that live have kept their paths.
        for number in 0..10 {
            let end = begun(command::SESSION_TERMINATION, &format!("af;live;{number}"), AF);
            assert_eq!(
                result(&ask(&af, HOSTS[1], end).await),
                2001,
                "living session {number}"
            );
        }
    });
}
