//! One of two dies, stands still, or both lose the database.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::StatusCode;
use nrf::{Config, Running};
use serde_json::json;
use settings::Period;
use testpeer::sbi::{Server, send};

use super::{
    A_WHILE, JSON, Member, events, eventually, has_alarm, member, member_config, member_here, path_of, sink,
    turn, udm,
};
use crate::databases::Servers;
use crate::process::Process;
use crate::support::{id, local};

/// Settings of a member that finds another one dead soon.
fn quick(servers: &Servers, directory: &std::path::Path, number: u32) -> Config {
    let mut config = member_config(servers, directory, &[1], number);
    config.cluster.dead_after = Period::from_secs(4);
    config
}

/// One member in this process, and one that can be killed.
fn pair(servers: &Servers, directory: &std::path::Path) -> (Running, Process) {
    let running = nrf::start(quick(servers, directory, 1)).unwrap();
    (running, Process::start(&quick(servers, directory, 2)))
}

/// Eight subscribers, all by this member.
async fn subscribers(member: &Member) -> Vec<(Server, String)> {
    let sinks: Vec<(Server, String)> = (0..8).map(|_| sink()).collect();
    for (_, uri) in &sinks {
        member.subscribe(uri).await;
    }
    sinks
}

#[test]
fn the_other_one_takes_over_for_one_that_is_killed() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (running, victim) = pair(&servers, directory.path());
    local(async {
        let (a, b) = (member_here(&running), member(&victim.origin));
        let sinks = subscribers(&b).await;
        let mut beating = udm(1);
        beating["heartBeatTimer"] = 5.into();
        assert_eq!(b.put(&beating).await, StatusCode::CREATED);
        tokio::time::sleep(A_WHILE).await;
        // Acknowledged by the one that dies before it can notify all subscribers, then by the other one.
        assert_eq!(b.put(&udm(2)).await, StatusCode::CREATED);
        victim.kill();
        assert_eq!(a.get(&id(2)).await.status, StatusCode::OK);
        assert_eq!(a.put(&udm(3)).await, StatusCode::CREATED);
        assert_eq!(a.delete(&path_of(&id(2))).await, StatusCode::NO_CONTENT);
        let wanted = [("NF_REGISTERED", 3), ("NF_DEREGISTERED", 2)];
        let wanted = wanted.map(|(event, number)| (event.to_owned(), id(number)));
        let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
        // Longer than an NF may be silent.
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_secs(11) {
            assert_eq!(a.patch(&id(1), beat.clone()).await, StatusCode::NO_CONTENT);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        eventually("all subscribers have everything", async || {
            assert_eq!(a.patch(&id(1), beat.clone()).await, StatusCode::NO_CONTENT);
            sinks.iter().all(|(sink, _)| {
                let events = events(sink);
                wanted.iter().all(|wanted| events.contains(wanted))
            })
        })
        .await;
        let suspended = running.count(nrf::Event::Suspended);
        assert_eq!(suspended, 0, "it beat at the other one");
        assert_eq!(a.get(&id(1)).await.json["nfStatus"], "REGISTERED");
        assert!(has_alarm(&running));
    });
    running.stop().unwrap();
}

/// Consumers that register an instance each, one after another, and try the other NRF when one fails.
struct Load {
    members: [Member; 2],
    acknowledged: RefCell<Vec<u32>>,
    longest: Cell<Duration>,
    next: Cell<u32>,
    ended: Cell<bool>,
}

impl Load {
    async fn consumer(self: Rc<Self>, number: usize) {
        while !self.ended.get() {
            let instance = self.next.replace(self.next.get() + 1);
            let (body, begun) = (udm(instance).to_string(), Instant::now());
            for attempt in number.. {
                let member = &self.members[attempt % 2];
                let path = path_of(&id(instance));
                let request = testpeer::sbi::request(http::Method::PUT, &path, JSON, body.clone());
                let got = send(&member.client, &member.origin, request).await;
                if got.is_ok_and(|got| got.status.is_success()) {
                    break;
                }
            }
            self.longest.set(self.longest.get().max(begun.elapsed()));
            self.acknowledged.borrow_mut().push(instance);
        }
    }

    async fn goes_on(&self, count: usize) {
        let enough = self.acknowledged.borrow().len() + count;
        while self.acknowledged.borrow().len() < enough {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Registrations before the kill and after it; more by `NRF_CLUSTER_LOAD`.
fn load() -> usize {
    let wanted = std::env::var("NRF_CLUSTER_LOAD").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(300)
}

#[test]
fn a_kill_under_load_loses_no_registration_and_no_notification() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (running, victim) = pair(&servers, directory.path());
    local(async {
        let load_of = Rc::new(Load {
            members: [member_here(&running), member(&victim.origin)],
            acknowledged: RefCell::default(),
            longest: Cell::default(),
            next: Cell::new(1_000),
            ended: Cell::new(false),
        });
        let [a, b] = &load_of.members;
        let sinks: Vec<(Server, String)> = (0..6).map(|_| sink()).collect();
        for (number, (_, uri)) in sinks.iter().enumerate() {
            [a, b][number % 2].subscribe(uri).await;
        }
        let consumers: Vec<_> = (0..8)
            .map(|number| tokio::task::spawn_local(load_of.clone().consumer(number)))
            .collect();
        load_of.goes_on(load()).await;
        victim.kill();
        load_of.goes_on(load()).await;
        load_of.ended.set(true);
        for consumer in consumers {
            consumer.await.unwrap();
        }
        let acknowledged = load_of.acknowledged.borrow().clone();
        eprintln!(
            "{} registrations; the longest took {:?}",
            acknowledged.len(),
            load_of.longest.get()
        );
        for instance in &acknowledged {
            assert_eq!(a.get(&id(*instance)).await.status, StatusCode::OK, "{instance}");
        }
        for (number, (sink, _)) in sinks.iter().enumerate() {
            let mut seen = 0;
            eventually(&format!("all notifications of subscriber {number}"), async || {
                // Reading all of them takes a while, in which none arrives.
                if std::mem::replace(&mut seen, sink.count()) != sink.count() {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    return false;
                }
                let events = events(sink);
                let registered: std::collections::BTreeSet<&str> = events
                    .iter()
                    .filter(|(event, _)| event == "NF_REGISTERED")
                    .map(|(_, instance)| instance.as_str())
                    .collect();
                acknowledged
                    .iter()
                    .all(|instance| registered.contains(id(*instance).as_str()))
            })
            .await;
        }
    });
    running.stop().unwrap();
}

/// A notification that its subscriber has received and not answered is not delivered.
#[test]
fn what_is_in_flight_at_the_kill_is_notified_by_the_other() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    // Changes may be visible three seconds later than their version says: the other one reads back by that.
    let settings = |number| {
        let mut config = quick(&servers, directory.path(), number);
        config.store.mariadb.retry_for = Period::from_secs(1);
        config.store.mariadb.statement_timeout = Period::from_secs(1);
        config.subscriptions.timeout = Period::from_secs(600);
        config.client.user_agent = format!("NRF-{number}");
        config
    };
    let running = nrf::start(settings(1)).unwrap();
    let victim = Process::start(&settings(2));
    local(async {
        let b = member(&victim.origin);
        let sinks = subscribers(&b).await;
        tokio::time::sleep(A_WHILE).await;
        for (sink, _) in &sinks {
            sink.waits(Duration::from_secs(600));
        }
        assert_eq!(b.put(&udm(1)).await, StatusCode::CREATED);
        let all = async || sinks.iter().all(|(sink, _)| sink.count() == 1);
        eventually("the notifications are in flight", all).await;
        // Polls of the one that will be killed, which may not count them as delivered.
        tokio::time::sleep(Duration::from_secs(6)).await;
        victim.kill();
        let of_victim = |sink: &Server| sink.seen()[0].header("user-agent") == "NRF-2";
        let left: Vec<&Server> = sinks
            .iter()
            .map(|(sink, _)| sink)
            .filter(|sink| of_victim(sink))
            .collect();
        assert!(!left.is_empty(), "each of two members notifies some of eight");
        for sink in &left {
            sink.waits(Duration::ZERO);
        }
        let again = async || left.iter().all(|sink| sink.count() == 2);
        eventually("the notifications of the other", again).await;
        assert_eq!(events(left[0])[1], ("NF_REGISTERED".to_owned(), id(1)));
    });
    running.stop().unwrap();
}

/// A lone NRF takes over from itself: what it had acknowledged and not notified when it was killed is notified later.
#[test]
fn one_that_is_started_again_notifies_of_what_it_had_not() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = quick(&servers, directory.path(), 1);
    let victim = Process::start(&settings);
    local(async {
        let refuses = Rc::new(Cell::new(true));
        let refusing = refuses.clone();
        let sink = Server::start(move |_| match refusing.get() {
            true => sbi::problem::Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response(),
            false => testpeer::sbi::no_content(),
        });
        let before = member(&victim.origin);
        before.subscribe(&format!("{}/notified", sink.root())).await;
        assert_eq!(before.put(&udm(1)).await, StatusCode::CREATED);
        victim.kill();
        refuses.set(false);
        let refused = sink.count();
        let running = nrf::start(settings).unwrap();
        eventually("the notification", async || {
            let accepted = &events(&sink)[refused..];
            accepted.contains(&("NF_REGISTERED".to_owned(), id(1)))
        })
        .await;
        running.stop().unwrap();
    });
}

/// A member that stood still finds itself dead, and joins again.
#[test]
fn one_that_stood_still_joins_again() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let (running, other) = pair(&servers, directory.path());
    local(async {
        let (a, b) = (member_here(&running), member(&other.origin));
        let sinks = subscribers(&b).await;
        tokio::time::sleep(A_WHILE).await;
        other.signal("STOP");
        assert_eq!(a.put(&udm(1)).await, StatusCode::CREATED);
        eventually("the other one is dead", async || has_alarm(&running)).await;
        eventually("all are notified all the same", async || {
            sinks
                .iter()
                .all(|(sink, _)| events(sink).contains(&("NF_REGISTERED".to_owned(), id(1))))
        })
        .await;
        other.signal("CONT");
        eventually("the other one is back", async || !has_alarm(&running)).await;
        eventually("it sees what it has missed", async || b.found().await == [id(1)]).await;
        assert_eq!(
            b.patch(&id(1), json!([{"op": "add", "path": "/priority", "value": 3}]))
                .await,
            StatusCode::OK
        );
        assert_eq!(a.put(&udm(2)).await, StatusCode::CREATED);
        for number in [1, 2] {
            assert_eq!(b.delete(&path_of(&id(number))).await, StatusCode::NO_CONTENT);
            eventually("all are notified", async || {
                sinks
                    .iter()
                    .all(|(sink, _)| events(sink).contains(&("NF_DEREGISTERED".to_owned(), id(number))))
            })
            .await;
        }
    });
    running.stop().unwrap();
}

/// A member that stands still in the middle of a transaction has its locks: the database takes them away, so that the
/// others find it dead and notify in its place.
#[test]
fn one_that_stood_still_in_a_transaction_is_dead() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let running = nrf::start(quick(&servers, directory.path(), 1)).unwrap();
    let other = Process::start(&quick(&servers, directory.path(), 2));
    local(async {
        let b = member(&other.origin);
        let sinks = subscribers(&b).await;
        // The server shows its transactions as they were when it was last asked less than 0.1 s after the time before.
        let transactions = |condition: &str| {
            std::thread::sleep(Duration::from_millis(200));
            let count = "SELECT COUNT(*) FROM information_schema.innodb_trx t \
                         JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE";
            let count = servers.administer(1, &format!("{count} {condition}"));
            count.trim().parse::<u32>().unwrap()
        };
        let stopped_in_transaction = async || {
            // Both write their records with each poll, and wait in the middle of that for these locks.
            let hold = "START TRANSACTION; SELECT id FROM signalbox.nrf_members FOR UPDATE; SELECT SLEEP(4); ROLLBACK";
            std::thread::scope(|scope| {
                let holder = scope.spawn(|| servers.administer(1, hold));
                while !holder.is_finished() && transactions("t.trx_state = 'LOCK WAIT'") < 2 {}
                other.signal("STOP");
            });
            // The database carries out the statement that waited; the transaction is open, and its program asleep.
            let found = (0..2).all(|_| transactions("p.command = 'Sleep' AND t.trx_rows_modified > 0") > 0);
            if !found {
                other.signal("CONT");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            found
        };
        eventually("it stands still in a transaction", stopped_in_transaction).await;
        eventually("the other one is dead", async || has_alarm(&running)).await;
        other.signal("CONT");
        eventually("it is back", async || !has_alarm(&running)).await;
        assert_eq!(b.put(&udm(1)).await, StatusCode::CREATED);
        let event = ("NF_REGISTERED".to_owned(), id(1));
        let all = async || sinks.iter().all(|(sink, _)| events(sink).contains(&event));
        eventually("all are notified", all).await;
    });
    running.stop().unwrap();
}

/// While none of them can read or write, none of them is dead.
#[test]
fn an_outage_of_the_database_makes_members_not_ready_and_none_dead() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let started = [1, 2].map(|number| {
        let mut config = member_config(&servers, directory.path(), &[1], number);
        config.cluster.dead_after = Period::from_secs(10);
        nrf::start(config).unwrap()
    });
    local(async {
        let [a, b] = [0, 1].map(|index: usize| member_here(&started[index]));
        assert_eq!(a.put(&udm(1)).await, StatusCode::CREATED);
        eventually("B has it", async || b.found().await.len() == 1).await;
        let not_ready = |index: usize| started[index].handle().health().not_ready();
        assert!(not_ready(0).is_empty() && not_ready(1).is_empty());
        assert!(servers.run("kill", Some(1)));
        let lost = Instant::now();
        eventually("both are not ready", async || {
            (0..2).all(|index| not_ready(index).contains_key("cluster"))
        })
        .await;
        assert_eq!(b.found().await.len(), 1, "discovery goes on");
        // Longer than a member may stand still.
        tokio::time::sleep(Duration::from_secs(11).saturating_sub(lost.elapsed())).await;
        assert!(servers.run("restart", Some(1)));
        eventually("both are ready", async || {
            (0..2).all(|index| not_ready(index).is_empty())
        })
        .await;
        assert_eq!(b.put(&udm(2)).await, StatusCode::CREATED);
        eventually("A has it", async || a.found().await.len() == 2).await;
        assert!(!has_alarm(&started[0]) && !has_alarm(&started[1]));
    });
    for running in started {
        running.stop().unwrap();
    }
}
