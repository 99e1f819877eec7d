//! Message processors of one router: workers that place connections, processes that forward to one another.

use diameter::proto::ResultCode;
use diameter::proto::known::command;
use dsr::config::{LocalNode, Peer as PeerConfig};
use dsr::{Config, Event, Running};

use crate::support::{Waiting, admin, answered, available, client, config, run, serve, ulr_to, until};

fn named(name: &str) -> Config {
    let base = config();
    Config {
        local_nodes: vec![LocalNode {
            host: name.to_owned(),
            ..base.local_nodes[0].clone()
        }],
        ..base
    }
}

#[test]
fn siblings_forward_to_one_another_and_not_in_circles() {
    run(async {
        let (first, second) = ("mp1.example", "mp2.example");
        let hss = Waiting::new("hss.example").await;
        // The second has the HSS's connection.
        let mut config = named(second);
        config.peers = vec![
            hss.peer(),
            PeerConfig {
                host: first.to_owned(),
                sibling: true,
                ..PeerConfig::default()
            },
        ];
        let two = dsr::start(config).unwrap();
        let mut server = hss.connected(&two).await;
        let mut config = named(first);
        config.peers = vec![
            PeerConfig {
                host: second.to_owned(),
                addresses: vec![two.addresses()[0]],
                sibling: true,
                ..PeerConfig::default()
            },
            PeerConfig {
                host: "hss.example".to_owned(),
                via: second.to_owned(),
                ..PeerConfig::default()
            },
        ];
        let one = dsr::start(config).unwrap();
        available(&one, second).await;
        available(&two, first).await;
        let mut mme = client(&one, "mme.example").await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        let request = answered(&mut mme, &mut server).await;
        let path = request
            .avps()
            .flatten()
            .filter(|avp| avp.is(diameter::proto::known::ROUTE_RECORD));
        assert_eq!(path.count(), 2, "the client and the first message processor");
        // In the other direction: the siblings are queried for a client that the second does not know.
        server.send(ulr_to("mme.example").as_bytes()).await;
        answered(&mut server, &mut mme).await;
        // No sibling knows this host; the request ends with an answer.
        server.send(ulr_to("unknown.example").as_bytes()).await;
        server
            .expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(one.count(Event::Loop) + two.count(Event::Loop), 0);
        // The connection between the processors is lost: an answer all the same.
        mme.send(ulr_to("hss.example").as_bytes()).await;
        server.expect(command::UPDATE_LOCATION).await;
        tokio::task::spawn_blocking(move || two.stop())
            .await
            .unwrap()
            .unwrap();
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
    });
}

fn workers_of(dsr: &Running) -> Vec<i64> {
    (0..2).map(|worker| dsr.connections_of(worker)).collect()
}

#[test]
fn connections_are_spread_and_kept_away_from_a_congested_processor() {
    run(async {
        let mut two = config();
        two.workers = 2;
        // One of them goes back to what is measured.
        two.overload.assumed_load = None;
        let dsr = dsr::start(two).unwrap();
        let mut clients = Vec::new();
        for n in 0..20 {
            clients.push(client(&dsr, &format!("mme{n}.example")).await);
        }
        assert_eq!(
            workers_of(&dsr),
            [10, 10],
            "connections are spread evenly over the processors"
        );
        // Without room anywhere a front end is to send connections elsewhere.
        dsr.drive_load(0, Some(62.0));
        dsr.drive_load(1, Some(62.0));
        until(|| !dsr.handle().health().not_ready().is_empty()).await;
        dsr.drive_load(1, None);
        until(|| dsr.congestion_level(0) == 2 && dsr.congestion_level(1) < 2).await;
        until(|| dsr.handle().health().not_ready().is_empty()).await;
        for n in 20..30 {
            clients.push(client(&dsr, &format!("mme{n}.example")).await);
        }
        assert_eq!(workers_of(&dsr), [10, 20]);
        until(|| {
            dsr.handle()
                .alarms()
                .active()
                .iter()
                .any(|alarm| alarm.number == 5005)
        })
        .await;
        // What it has, it keeps; and it is used again when it has recovered.
        dsr.drive_load(0, Some(5.0));
        until(|| dsr.congestion_level(0) == 0).await;
        for n in 30..40 {
            clients.push(client(&dsr, &format!("mme{n}.example")).await);
        }
        assert_eq!(workers_of(&dsr), [20, 20]);
        for mme in &mut clients {
            mme.send(ulr_to("unknown.example").as_bytes()).await;
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
                .await;
        }
        until(|| {
            dsr.handle()
                .alarms()
                .active()
                .iter()
                .all(|alarm| alarm.number != 5005)
        })
        .await;
    });
}

#[test]
fn a_mate_carries_the_traffic_of_the_other() {
    run(async {
        let names = ["dsr1.example", "dsr2.example"];
        let servers = [
            Waiting::new("hss.example").await,
            Waiting::new("hss.example").await,
        ];
        let mate = |name: &str, addresses: Vec<std::net::SocketAddr>| PeerConfig {
            host: name.to_owned(),
            addresses,
            mate: true,
            ..PeerConfig::default()
        };
        let mut config = named(names[1]);
        config.peers = vec![servers[1].peer(), mate(names[0], Vec::new())];
        let two = dsr::start(config).unwrap();
        let mut config = named(names[0]);
        config.peers = vec![servers[0].peer(), mate(names[1], vec![two.addresses()[0]])];
        let one = dsr::start(config).unwrap();
        available(&two, names[0]).await;
        let mut clients = [
            client(&one, "mme.example").await,
            client(&two, "mme.example").await,
        ];
        let mut hss = [servers[0].connected(&one).await, servers[1].connected(&two).await];
        for (mme, server) in clients.iter_mut().zip(&mut hss) {
            mme.send(ulr_to("hss.example").as_bytes()).await;
            answered(mme, server).await;
        }
        // With its mate available a processor has to keep room for the load of both.
        two.drive_load(0, Some(40.0));
        let active = |number: u32| {
            let alarms = two.handle().alarms().active();
            alarms.iter().any(|alarm| alarm.number == number)
        };
        until(|| active(10_204)).await;
        tokio::task::spawn_blocking(move || one.stop())
            .await
            .unwrap()
            .unwrap();
        until(|| active(22_051) && !active(10_204)).await;
        two.drive_load(0, Some(0.0));
        for _ in 0..20 {
            clients[1].send(ulr_to("hss.example").as_bytes()).await;
            answered(&mut clients[1], &mut hss[1]).await;
        }
    });
}

/// Routers of these names, each a sibling of all others and connected to those before it.
async fn siblings(names: &[String], more: impl Fn(usize, &mut Config)) -> Vec<Running> {
    let mut running: Vec<Running> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let mut config = named(name);
        let others = names.iter().enumerate().filter(|(other, _)| *other != number);
        config.peers = others
            .map(|(other, host)| PeerConfig {
                host: host.clone(),
                addresses: running
                    .get(other)
                    .map(|dsr| dsr.addresses()[0])
                    .into_iter()
                    .collect(),
                networks: vec!["127.0.0.0/8".parse().unwrap()],
                sibling: true,
                ..PeerConfig::default()
            })
            .collect();
        more(number, &mut config);
        running.push(dsr::start(config).unwrap());
    }
    for (number, dsr) in running.iter().enumerate() {
        for (other, name) in names.iter().enumerate() {
            if other != number {
                available(dsr, name).await;
            }
        }
    }
    running
}

async fn stop(dsr: Running) {
    tokio::task::spawn_blocking(move || dsr.stop())
        .await
        .unwrap()
        .unwrap();
}

#[test]
fn six_siblings_are_one_router_and_some_may_go() {
    run(async {
        let names: Vec<String> = (0..6).map(|number| format!("mp{number}.example")).collect();
        let mut all = siblings(&names, |_, _| ()).await;
        let last = all.pop().unwrap();
        // A client that no configuration names, at the fifth sibling of the router that is asked for it.
        let mut mme = client(&last, "mme.example").await;
        let mut server = client(&all[0], "hss.example").await;
        server.send(ulr_to("mme.example").as_bytes()).await;
        answered(&mut server, &mut mme).await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        answered(&mut mme, &mut server).await;
        // Without four of them the others go on.
        for gone in all.drain(1..) {
            stop(gone).await;
        }
        let is_gone = |dsr: &Running, host: &String| {
            let hops = dsr.hops();
            let hops = hops.get(host.as_bytes()).into_iter().flatten();
            hops.into_iter().all(|hop| hop.state() == dsr::HopState::Down)
        };
        for dsr in [&all[0], &last] {
            until(|| names[1..5].iter().all(|host| is_gone(dsr, host))).await;
        }
        server.send(ulr_to("mme.example").as_bytes()).await;
        answered(&mut server, &mut mme).await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        answered(&mut mme, &mut server).await;
        assert_eq!(all[0].count(Event::Loop) + last.count(Event::Loop), 0);
    });
}

#[test]
fn siblings_share_the_rate_of_a_throttle_group() {
    run(async {
        let names: Vec<String> = (0..3).map(|number| format!("mp{number}.example")).collect();
        let hss = Waiting::new("hss.example").await;
        let group = |number: usize, config: &mut Config| {
            if number > 0 {
                return;
            }
            config.peers.push(hss.peer());
            let group = |name: &str, shared_with_siblings| dsr::config::ThrottleGroup {
                name: name.to_owned(),
                peers: vec!["hss.example".to_owned()],
                rate: 30,
                shared_with_siblings,
                ..dsr::config::ThrottleGroup::default()
            };
            config.throttle_groups = vec![group("own", false), group("shared", true)];
        };
        let (mut all, mut server) = {
            let starting = siblings(&names, group);
            let (all, server) = tokio::join!(starting, hss.reconnected());
            (all, server)
        };
        available(&all[0], "hss.example").await;
        let part = |dsr: &Running, position| dsr.snapshot().throttle_share(position, 0);
        assert!(
            (part(&all[0], 0) - 1.0).abs() < 1e-9,
            "a group of this router alone"
        );
        assert!(
            (part(&all[0], 1) - 1.0 / 3.0).abs() < 1e-9,
            "two siblings have the others"
        );
        stop(all.pop().unwrap()).await;
        until(|| (part(&all[0], 1) - 0.5).abs() < 1e-9).await;
        stop(all.pop().unwrap()).await;
        until(|| (part(&all[0], 1) - 1.0).abs() < 1e-9).await;
        let mut mme = client(&all[0], "mme.example").await;
        mme.send(ulr_to("hss.example").as_bytes()).await;
        answered(&mut mme, &mut server).await;
    });
}

#[test]
fn siblings_share_a_rate_by_their_demand() {
    run(async {
        let names: Vec<String> = (0..2).map(|number| format!("mp{number}.example")).collect();
        let servers = [
            Waiting::new("hss.example").await,
            Waiting::new("hss.example").await,
        ];
        let (listeners, admins): (Vec<_>, Vec<_>) = (0..2).map(|_| admin()).unzip();
        let more = |number: usize, config: &mut Config| {
            config.peers[0].admin = Some(admins[1 - number]);
            config.peers.push(servers[number].peer());
            config.throttle_groups = vec![dsr::config::ThrottleGroup {
                name: "shared".to_owned(),
                peers: vec!["hss.example".to_owned()],
                rate: 100_000,
                shared_with_siblings: true,
                ..dsr::config::ThrottleGroup::default()
            }];
        };
        let starting = siblings(&names, more);
        let (mut all, mut first, _second) =
            tokio::join!(starting, servers[0].reconnected(), servers[1].reconnected());
        for (listener, dsr) in listeners.into_iter().zip(&all) {
            serve(listener, dsr);
            available(dsr, "hss.example").await;
        }
        let share = |dsr: &Running| dsr.throttles()[0].share;
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-3;
        // Without demand, by equal parts.
        until(|| all.iter().all(|dsr| near(share(dsr), 0.5))).await;
        let mut mme = client(&all[0], "mme.example").await;
        // A tenth stays with the one that has none; the other has that tenth, and what follows demand.
        while !(near(share(&all[0]), 0.9) && near(share(&all[1]), 0.1)) {
            mme.send(ulr_to("hss.example").as_bytes()).await;
            answered(&mut mme, &mut first).await;
        }
        assert!(all[0].throttles()[0].demand > 0.0);
        stop(all.pop().unwrap()).await;
        until(|| near(share(&all[0]), 1.0)).await;
    });
}
