//! Two sites, each with a database and a BSF; the databases follow each other. When one site dies, the Rx requests
//! for its sessions are answered at the other.

use std::time::{Duration, Instant};

use bsf::config::{RxPeer, RxTransport};
use bsf::repository::Repository;
use diameter::PeerConfig;
use diameter::proto::known;
use http::{Method, StatusCode};
use settings::Period;

use crate::churn::{COLLECTION, Churn, Life, Stage, by_address, members, settle};
use crate::databases::Servers;
use crate::process::Process;
use crate::rx::{AF, BSF, aar, ask, peer, result};
use crate::sessions::combination;
use crate::support::{Bsf, client, config, local, request, send, start};

/// The PCFs of bindings as registered and as changed.
const PCFS: [&str; 2] = ["pcf1.example.org", "pcf2.example.org"];
/// Bindings that live before site 1 dies.
const SOME: usize = 200;
/// How long something may take to reach the other site.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn the_other_site_takes_over_when_one_dies() {
    let Some(servers) = Servers::sites(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    local(async {
        let pcfs = PCFS.map(peer);
        let settings = |site: u16, host: &str| {
            let mut config = config(directory.path());
            config.store = servers.config(&format!("site-{site}"), &[site]);
            config.rx.host = host.to_owned();
            config.rx.peers = PCFS
                .iter()
                .zip(&pcfs)
                .map(|(host, (_, address))| RxPeer {
                    host: (*host).to_owned(),
                    addresses: vec![*address],
                    transport: RxTransport::Tcp,
                    names: Vec::new(),
                })
                .collect();
            config
        };
        let first = Process::start(&settings(1, "bsf1.example.org"));
        let second = Process::start(&settings(2, BSF));
        for (pcf, _) in &pcfs {
            pcf.available(BSF).await;
        }

        // All traffic at site 1.
        let churn = Churn::default();
        let client = client();
        let working: Vec<_> = (0..8)
            .map(|_| churn.clone().pcf(client.clone(), first.origin.clone()))
            .map(tokio::task::spawn_local)
            .collect();
        churn.goes_on(SOME).await;
        churn.stop.set(true);
        for pcf in working {
            pcf.await.unwrap();
        }
        assert_eq!(churn.errors.get(), 0);
        let mut lives = churn.lives.take();

        // What is written last at site 1 arrives at site 2 last.
        let last = churn.next.get();
        let body = members(last, false);
        let message = request(Method::POST, COLLECTION, "application/json", body.to_string());
        assert_eq!(
            send(&client, &first.origin, message).await.unwrap().status,
            StatusCode::CREATED
        );
        let registered = Life {
            acknowledged: Stage::Registered,
            ..Life::default()
        };
        lives.insert(last, registered);
        let begun = Instant::now();
        until("the last binding is at site 2", async || {
            let message = request(Method::GET, &by_address(&body), "", "");
            send(&client, &second.origin, message).await.unwrap().status == StatusCode::OK
        })
        .await;
        eprintln!(
            "the last of {} bindings was at site 2 after {:?}",
            lives.len(),
            begun.elapsed()
        );
        let there = Repository::open(&settings(2, BSF).store, 16).await.unwrap();
        until("site 2 knows how far it is behind", async || {
            let delays = there.store().stats().replication_delay;
            delays
                .iter()
                .any(|(site, delay)| site == "site-1" && *delay < Duration::from_secs(5))
        })
        .await;
        eprintln!(
            "site 2 is behind by {:?}",
            there.store().stats().replication_delay
        );

        // Site 1 dies.
        drop(first);
        assert!(servers.run("kill", Some(1)));
        let (af, _) = peer(AF);
        af.node()
            .add_peer(PeerConfig::connect(BSF, [second.diameter]))
            .unwrap();
        af.available(BSF).await;
        settle(&there, &mut lives, "at site 2").await;
        let mut asked = 0;
        for (number, life) in &lives {
            let changed = life.acknowledged == Stage::Changed;
            let value = members(*number, changed);
            let (false, Some(address)) = (life.acknowledged == Stage::Removed, value["ipv4Addr"].as_str())
            else {
                continue;
            };
            let address: std::net::Ipv4Addr = address.parse().unwrap();
            let answer = ask(&af, BSF, aar(&format!("af;9;{number}"), address.octets())).await;
            let origin = answer.require(known::ORIGIN_HOST).unwrap();
            assert_eq!(
                (result(&answer), origin),
                (2001, PCFS[usize::from(changed)]),
                "binding {number}"
            );
            asked += 1;
        }
        assert!(asked > SOME / 10, "{asked} sessions");
        // New ones begin there as well.
        let body = members(last + 1, false);
        let message = request(Method::POST, COLLECTION, "application/json", body.to_string());
        assert_eq!(
            send(&client, &second.origin, message).await.unwrap().status,
            StatusCode::CREATED
        );
        there.store().clone().close().await;
    });
}

async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Four sites follow one another. Site 1 no longer receives what the others write: the BSF there says so for each of them,
/// those of the others do not.
#[test]
fn replication_that_has_stopped_raises_an_alarm_until_it_goes_on() {
    const REPLICATION_STOPPED: u32 = 10524;
    let Some(servers) = Servers::sites(4) else { return };
    local(async {
        let bsfs: [Bsf; 4] = [1, 2, 3, 4].map(|site| {
            start(|config| {
                config.store = servers.config(&format!("site-{site}"), &[site]);
                config.store.replication_alarm = Period::from_secs(5);
            })
        });
        let alarms = bsfs
            .each_ref()
            .map(|bsf| bsf.running.as_ref().unwrap().handle().alarms().clone());
        let active = |site: usize| {
            let all = alarms[site - 1].active().into_iter();
            let stopped = all.filter(|alarm| alarm.number == REPLICATION_STOPPED);
            stopped.map(|alarm| alarm.instance).collect::<Vec<_>>()
        };
        let register = async |site: usize, number: u64| {
            let created = bsfs[site - 1].post("pcfBindings", &members(number, false)).await;
            assert_eq!(created.status, StatusCode::CREATED);
        };
        let has = async |site: usize, number: u64| {
            let message = request(Method::GET, &by_address(&members(number, false)), "", "");
            bsfs[site - 1].send(message).await.status == StatusCode::OK
        };
        for number in 1..=4 {
            register(number as usize, number).await;
            until("the binding of each site is at all others", async || {
                has(1, number).await && has(2, number).await && has(3, number).await && has(4, number).await
            })
            .await;
        }
        let follow = async || (1..=4).all(|site| active(site).is_empty());
        until("each site follows the others", follow).await;

        assert!(servers.run("cut", Some(1)));
        until("site 1 raises the alarms", async || {
            active(1) == ["site-2", "site-3", "site-4"]
        })
        .await;
        until("the others follow all sites as before", async || {
            (2..=4).all(|site| active(site).is_empty())
        })
        .await;
        register(1, 6).await;
        register(2, 5).await;
        until("bindings of sites 1 and 2 are at site 4", async || {
            has(4, 6).await && has(4, 5).await
        })
        .await;
        assert!(!has(1, 5).await);

        assert!(servers.run("join", Some(1)));
        until("the alarms are cleared", async || active(1).is_empty()).await;
        until("the last binding is at site 1", async || has(1, 5).await).await;
        let cleared = alarms[0].cleared();
        assert!(
            cleared
                .iter()
                .any(|alarm| (alarm.number, alarm.instance.as_str()) == (REPLICATION_STOPPED, "site-2")),
            "{cleared:?}"
        );
    });
}

/// Two PCFs at two BSFs of one database, at the same moment: the database decides, not the clocks of the BSFs.
#[test]
fn one_pcf_at_most_gets_the_combination_whichever_bsf_it_asks() {
    let Some(servers) = Servers::sites(1) else { return };
    local(async {
        let bsfs: [Bsf; 2] =
            std::array::from_fn(|_| start(|config| config.store = servers.config("site-1", &[1])));
        for round in 0..40 {
            let supi = format!("imsi-{round:015}");
            let more = serde_json::json!({"supi": supi, "paraCom": {"supi": supi}});
            let bodies = [1, 2].map(|pcf| combination(pcf, &more));
            let (first, second) = tokio::join!(
                bsfs[0].post("pcfBindings", &bodies[0]),
                bsfs[1].post("pcfBindings", &bodies[1])
            );
            let mut statuses = [first.status, second.status];
            statuses.sort_unstable();
            assert_eq!(
                statuses,
                [StatusCode::CREATED, StatusCode::FORBIDDEN],
                "round {round}"
            );
            let found = bsfs[0].find(&format!("supi={supi}")).await;
            assert_eq!(found.status, StatusCode::OK, "round {round}: {}", found.json);
        }
    });
}
