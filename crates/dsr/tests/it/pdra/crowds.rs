//! Many requests at once, and a store that refuses for a time. `SIGNALBOX_PAIRS` and `SIGNALBOX_FLOOD` are the numbers of pairs and of
//! requests of one subscriber, where another than that of each run is wanted.

use std::collections::HashMap;
use std::time::Duration;

use diameter::proto::ResultCode;
use diameter::proto::known::{self, command};
use dsr_pdra::Event;
use testpeer::diameter::Peer;
use testpeer::local_within;

use super::support::{IMSI, PCRFS, World, agent, ccr, client, initial};
use crate::databases::Servers;
use crate::support::run;

/// A number of the environment.
fn size(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Time for this many requests, on a busy machine.
fn deadline(requests: usize) -> Duration {
    Duration::from_secs(60) + Duration::from_millis(10) * requests as u32
}

/// Requests that are in flight at once.
const BATCH: usize = 100;

/// Each of this many subscribers begins two sessions at once, one at each of two gateways, of which the second may be at a router of its
/// own. They are at one PCRF. How many subscribers are at each.
async fn begin_pairs(pairs: usize, world: &mut World, mut second: Second) -> [usize; 2] {
    let (mut counts, mut begun) = ([0, 0], 0);
    while begun < pairs {
        let batch = begun..pairs.min(begun + BATCH);
        for number in batch.clone() {
            let imsi = format!("00101{number:010}");
            let [one, two] = ["a", "b"].map(|gateway| initial(&format!("{gateway};{number}"), &imsi));
            world.pgw.send(one.as_bytes()).await;
            second.gateway().send(two.as_bytes()).await;
        }
        let mut at = HashMap::new();
        for _ in 0..2 * batch.len() {
            let (position, request) = match &mut second {
                Second::Gateway(_) => {
                    let (position, request) = world.arrival(command::CREDIT_CONTROL).await;
                    world.pcrfs[position].answer(&request, ResultCode::SUCCESS).await;
                    (position, request)
                }
                Second::Router(other) => tokio::select! {
                    (position, request) = world.arrival(command::CREDIT_CONTROL) => {
                        world.pcrfs[position].answer(&request, ResultCode::SUCCESS).await;
                        (position, request)
                    }
                    (position, request) = other.arrival(command::CREDIT_CONTROL) => {
                        other.pcrfs[position].answer(&request, ResultCode::SUCCESS).await;
                        (position, request)
                    }
                },
            };
            let session = request.require(known::SESSION_ID).unwrap();
            let (_, number) = session.split_once(';').unwrap();
            let before = at.insert(number.to_owned(), position);
            assert!(before.is_none_or(|before| before == position), "{session}");
        }
        for _ in batch.clone() {
            for peer in [&mut world.pgw, second.gateway()] {
                peer.expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
                    .await;
            }
        }
        at.values().for_each(|position| counts[*position] += 1);
        begun = batch.end;
    }
    counts
}

/// Where the second one of two sessions begins.
enum Second {
    /// At another gateway of the same router.
    Gateway(Peer),
    /// At another router.
    Router(Box<World>),
}

impl Second {
    fn gateway(&mut self) -> &mut Peer {
        match self {
            Self::Gateway(gateway) => gateway,
            Self::Router(world) => &mut world.pgw,
        }
    }
}

#[test]
fn subscribers_share_no_pcrf_by_chance_and_none_is_at_two() {
    let pairs = size("SIGNALBOX_PAIRS", 200);
    local_within(deadline(2 * pairs), async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "      wait: 60s");
        config.workers = 2;
        let mut world = World::of(config, &PCRFS).await;
        let other = Second::Gateway(client(&world.dsr, "pgw2.example").await);
        let counts = begin_pairs(pairs, &mut world, other).await;
        // By the weights, which are the same.
        assert!(counts.iter().all(|count| *count > pairs / 4), "{counts:?}");
        assert_eq!(world.count(Event::Kept), 2 * pairs as u64);
    });
}

#[test]
fn subscribers_of_two_routers_on_one_database_are_at_one_pcrf() {
    let Some(servers) = Servers::sites(1) else { return };
    let pairs = size("SIGNALBOX_PAIRS", 40);
    local_within(deadline(10 * pairs), async {
        let folder = tempfile::tempdir().unwrap();
        // In one process two spellings of the address are two repositories.
        let config = |host: &str| {
            let mut config = agent(folder.path(), &PCRFS, "      wait: 60s");
            let repository = &mut config.applications[0].pdra.as_mut().unwrap().repository;
            repository.store = servers.config("site-1", &[1]);
            repository.store.mariadb.nodes[0].host = host.to_owned();
            config
        };
        let mut world = World::of(config("127.0.0.1"), &PCRFS).await;
        let other = world.beside(config("localhost")).await;
        let second = Second::Router(Box::new(other));
        begin_pairs(pairs, &mut world, second).await;
        let rows = world.dsr.pdra_sessions("binding", "001010000000000");
        assert_eq!(rows.len(), 2);
    });
}

#[test]
fn a_flood_of_one_subscriber_holds_a_bounded_number_and_others_are_served_beside_it() {
    let flood = size("SIGNALBOX_FLOOD", 1_000);
    local_within(deadline(flood), async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "      wait: 1h");
        config.applications[0]
            .pdra
            .as_mut()
            .unwrap()
            .repository
            .reservation = settings::Period::from_secs(3_600);
        config.routing.transaction.lifetime = settings::Period::from_secs(3_000);
        config.routing.transaction.answer = settings::Period::from_secs(3_000);
        let mut world = World::of(config, &PCRFS).await;
        let (at, first) = world.reaches(&initial("pgw;1;first", IMSI)).await;
        const WAITING: usize = 16;
        for number in 0..WAITING {
            let request = initial(&format!("pgw;1;waits{number}"), IMSI);
            world.pgw.send(request.as_bytes()).await;
        }
        let mut sent = 0;
        while sent < flood {
            let batch = sent..flood.min(sent + BATCH);
            for number in batch.clone() {
                let request = initial(&format!("pgw;1;{number}"), IMSI);
                world.pgw.send(request.as_bytes()).await;
            }
            for _ in batch.clone() {
                world
                    .pgw
                    .expect_result(command::CREDIT_CONTROL, ResultCode::TOO_BUSY)
                    .await;
            }
            world
                .session(&initial(&format!("honest;{sent}"), "001010000000002"))
                .await;
            sent = batch.end;
        }
        let beginning = world.dsr.applications();
        let beginning = beginning.iter().find(|row| row.table == "beginning").unwrap();
        assert_eq!(beginning.entries, 1);
        assert_eq!(world.count(Event::Crowded), flood as u64);
        assert_eq!(world.count(Event::Waited), WAITING as u64);
        world.answers(at, &first, ResultCode::SUCCESS).await;
        for _ in 0..WAITING {
            let request = world.pcrfs[at].expect(command::CREDIT_CONTROL).await;
            world.answers(at, &request, ResultCode::SUCCESS).await;
        }
    });
}

#[test]
fn sessions_of_one_subscriber_that_begin_at_once_leave_no_more_than_may_be() {
    const AT_ONCE: usize = 300;
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        for mut pcrf in world.pcrfs.drain(..) {
            tokio::task::spawn_local(async move {
                while let Some(message) = pcrf.next().await {
                    pcrf.answer(&message, ResultCode::SUCCESS).await;
                }
            });
        }
        for number in 0..AT_ONCE {
            let request = initial(&format!("pgw;1;{number}"), IMSI);
            world.pgw.send(request.as_bytes()).await;
        }
        let mut begun = 0;
        for _ in 0..AT_ONCE {
            let answer = world.pgw.expect(command::CREDIT_CONTROL).await;
            let result = ResultCode(answer.require(known::RESULT_CODE).unwrap());
            assert!(
                [ResultCode::SUCCESS, ResultCode::TOO_BUSY].contains(&result),
                "{result:?}"
            );
            begun += usize::from(result == ResultCode::SUCCESS);
        }
        assert!(begun > 16, "{begun}");
        let last = initial("pgw;1;last", IMSI);
        world.pgw.send(last.as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
            .await;
        let kept = world.dsr.pdra_sessions("binding", IMSI).len();
        assert!(kept <= 16, "{kept} of {begun} sessions are kept");
    });
}

#[test]
fn sessions_begin_again_when_the_store_takes_them_again() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "      wait: 60s");
        let pdra = config.applications[0].pdra.as_mut().unwrap();
        let store = &mut pdra.repository.store;
        store.max_batch_bytes = settings::ByteSize::kib(16);
        store.embedded.segment = settings::ByteSize::kib(32);
        store.embedded.group_interval = settings::Period::from_millis(0);
        // The last 16 take deletions alone.
        store.embedded.files = 32;
        store.embedded.compaction_rate = settings::ByteSize::mib(1_000);
        let mut world = World::of(config, &PCRFS).await;
        let begin = |number: usize| {
            ccr(&format!("pgw;1;{number}"), 1, |b| {
                super::support::subscriber(b, 1, &format!("00101{number:010}"));
                b.put(known::CALLED_STATION_ID, &*"x".repeat(100));
            })
        };
        // What a client cannot have, its PCRF does not keep.
        async fn is_ended(world: &mut World, at: usize) {
            let end = world.pcrfs[at].expect(command::CREDIT_CONTROL).await;
            assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), 3);
            world.pcrfs[at].answer(&end, ResultCode::SUCCESS).await;
        }
        let mut begun = 0;
        let refused = loop {
            let (at, arrived) = world.reaches(&begin(begun)).await;
            world.pcrfs[at].answer(&arrived, ResultCode::SUCCESS).await;
            let answer = world.pgw.expect(command::CREDIT_CONTROL).await;
            let result = answer.require(known::RESULT_CODE).unwrap();
            if result != ResultCode::SUCCESS.0 {
                is_ended(&mut world, at).await;
                break ResultCode(result);
            }
            begun += 1;
        };
        assert_eq!(refused, ResultCode::UNABLE_TO_COMPLY);
        assert!(begun > 100, "{begun}");
        assert!(world.count(Event::RepositoryFailed) > 0);
        // What was acknowledged goes on, and ends.
        for number in 0..begun {
            let request = begin(number);
            let session = request.require(known::SESSION_ID).unwrap();
            let end = ccr(session, 3, |_| ());
            world.session(&end).await;
        }
        assert_eq!(world.count(Event::Ended), begun as u64);
        // The one that was refused comes again, until the store has taken it.
        loop {
            let (at, arrived) = world.reaches(&begin(begun)).await;
            world.pcrfs[at].answer(&arrived, ResultCode::SUCCESS).await;
            let answer = world.pgw.expect(command::CREDIT_CONTROL).await;
            if answer.require(known::RESULT_CODE).unwrap() == ResultCode::SUCCESS.0 {
                break;
            }
            is_ended(&mut world, at).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let rows = world.dsr.pdra_sessions("binding", &format!("00101{begun:010}"));
        assert_eq!(rows.len(), 1);
    });
}
