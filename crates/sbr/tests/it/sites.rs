//! Routers at two sites, each with a database that replicates to the other: a cut, and what comes of it.

use std::time::{Duration, Instant};

use sbr::config::Sbr;
use sbr::{Binding, Counts, Kept, Opened, Party, Repository, Reserved, Session, binding_key};
use settings::Period;

use crate::databases::Servers;

/// How long something may take to reach the other site, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Subscribers to which both sites give a PCRF while they are cut from one another.
const SUBSCRIBERS: u64 = 60;

/// A router at a site, and what it has counted.
struct Router {
    opened: Opened,
    counts: Counts,
}

impl Router {
    fn new(servers: &Servers, site: u16) -> Self {
        let mut settings = Sbr {
            store: servers.config(&format!("site-{site}"), &[site]),
            ..Sbr::default()
        };
        settings.sweep.pause = Period::from_millis(50);
        Self {
            opened: Opened::open(&settings).unwrap(),
            counts: Counts::default(),
        }
    }

    fn ask<T: Send + 'static, F: Future<Output = Result<T, store::Error>> + Send + 'static>(
        &self,
        question: impl FnOnce(Repository) -> F,
    ) -> T {
        let work = question(self.opened.repository().clone());
        self.opened.ask(work).expect("an answer in time").unwrap()
    }

    fn keep(&self, session: &Session) -> Kept {
        let session = session.clone();
        self.ask(|all| async move { all.keep(session).await })
    }

    fn session(&self, id: &[u8]) -> Option<Session> {
        let id = id.to_vec();
        self.ask(|all| async move { all.session(&id).await })
    }

    fn has(&self, sessions: &[Session]) -> bool {
        sessions.iter().all(|session| self.session(&session.id).is_some())
    }

    /// The server that a new session of a subscriber gets.
    fn server(&self, subscriber: u64) -> String {
        let reserved = self.ask(|all| async move { all.reserve(&key(subscriber), Duration::ZERO).await });
        match reserved {
            Reserved::Bound(session) => session.server.host,
            other => panic!("subscriber {subscriber}: {other:?}"),
        }
    }

    fn count(&mut self) -> Counts {
        let more = self.opened.repository().take_counts();
        self.counts.older += more.older;
        self.counts.younger += more.younger;
        self.counts
    }
}

fn key(subscriber: u64) -> Vec<u8> {
    binding_key(format!("i{subscriber:015}").as_bytes(), "all")
}

fn session(id: &str, subscriber: u64, host: &str, began: u64) -> Session {
    let [.., high, low] = subscriber.to_be_bytes();
    Session {
        id: id.as_bytes().to_vec(),
        application: 16_777_238,
        server: Party {
            host: host.to_owned(),
            realm: "pcc.example".to_owned(),
        },
        pool: "all".to_owned(),
        binding: Some(Binding {
            key: key(subscriber),
            imsi: format!("{subscriber:015}"),
            ipv4: Some([10, u8::from(host == "b"), high, low].into()),
            ..Binding::default()
        }),
        began,
        ..Session::default()
    }
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn cut(servers: &Servers, command: &str) {
    for site in [1, 2] {
        assert!(servers.run(command, Some(site)));
    }
}

/// Whether the older session of a subscriber is at site 1.
fn is_older_at_one(subscriber: u64) -> bool {
    subscriber.is_multiple_of(3)
}

/// The sessions of two sites that are cut off from one another: each one gives a PCRF to each subscriber, every fifth the same one.
/// Every fourth subscriber has a second session at site 2.
fn begun_apart(now: u64) -> [Vec<Session>; 2] {
    let [mut at_one, mut at_two] = [Vec::new(), Vec::new()];
    for subscriber in 0..SUBSCRIBERS {
        let (first, second) = (now + 10 * subscriber, now + 10 * subscriber + 5);
        let (one, two) = match is_older_at_one(subscriber) {
            true => (first, second),
            false => (second, first),
        };
        let host = if subscriber.is_multiple_of(5) { "a" } else { "b" };
        at_one.push(session(&format!("one;{subscriber}"), subscriber, "a", one));
        at_two.push(session(&format!("two;{subscriber}"), subscriber, host, two));
        if subscriber.is_multiple_of(4) {
            at_two.push(session(
                &format!("two;{subscriber};2"),
                subscriber,
                host,
                now + 9_000,
            ));
        }
    }
    [at_one, at_two]
}

#[test]
fn after_a_cut_the_older_binding_wins_and_sessions_of_the_younger_stay_until_they_end() {
    let Some(servers) = Servers::sites(2) else { return };
    let [mut one, mut two] = [1, 2].map(|site| Router::new(&servers, site));
    let known = session("before", 1_000, "a", 1);
    assert_eq!(one.keep(&known), Kept::New);
    until("what site 1 has written is at site 2", || {
        two.has(std::slice::from_ref(&known))
    });

    cut(&servers, "cut");
    let [at_one, at_two] = begun_apart(one.opened.repository().now());
    for (router, sessions) in [(&one, &at_one), (&two, &at_two)] {
        for session in sessions {
            assert_eq!(router.keep(session), Kept::New);
        }
    }
    // Each site serves, and a binding from before is the same at both.
    assert_eq!((one.server(1), two.server(1)), ("a".to_owned(), "b".to_owned()));
    assert_eq!(
        (one.server(1_000), two.server(1_000)),
        ("a".to_owned(), "a".to_owned())
    );
    assert_eq!((one.count(), two.count()), (Counts::default(), Counts::default()));

    cut(&servers, "join");
    let all: Vec<Session> = at_one.iter().chain(&at_two).cloned().collect();
    until("both sites have all sessions", || one.has(&all) && two.has(&all));
    let older = |subscriber: u64| match is_older_at_one(subscriber) || subscriber.is_multiple_of(5) {
        true => "a",
        false => "b",
    };
    for subscriber in 0..SUBSCRIBERS {
        let both = [one.server(subscriber), two.server(subscriber)];
        assert_eq!(both, [older(subscriber); 2], "subscriber {subscriber}");
    }

    // Each session of a younger binding is counted once, by one of the sites, and the audit leaves no subscriber with two.
    let is_younger = |session: &&Session| {
        let subscriber = session.binding.as_ref().unwrap().imsi.parse().unwrap();
        session.server.host != older(subscriber)
    };
    let younger: Vec<Session> = all.iter().filter(is_younger).cloned().collect();
    until("every conflict is counted", || {
        one.count().younger + two.count().younger >= younger.len() as u64
    });
    until("both sites have what the audits have written", || {
        let yielded = |router: &Router| {
            let known = |session: &Session| router.session(&session.id).unwrap().has_yielded();
            younger.iter().all(known)
        };
        yielded(&one) && yielded(&two)
    });
    let found = one.count().older + two.count().older;
    for subscriber in 0..SUBSCRIBERS {
        let both = [one.server(subscriber), two.server(subscriber)];
        assert_eq!(both, [older(subscriber); 2], "subscriber {subscriber}");
    }
    assert_eq!(one.count().older + two.count().older, found, "a conflict is left");
    assert_eq!(one.count().younger + two.count().younger, younger.len() as u64);

    // A session of a younger binding stays at its PCRF until it ends, and its address leads there.
    for kept in &younger {
        let now = two.session(&kept.id).unwrap();
        assert_eq!(now.server, kept.server);
        let address = kept.binding.as_ref().unwrap().ipv4.unwrap();
        let found = one.ask(|all| async move { all.by_ipv4(address).await });
        assert!(
            found.iter().all(|session| session.server == kept.server),
            "{address}"
        );
        let imsi = kept.binding.as_ref().unwrap().imsi.clone();
        let found = one.ask(|all| async move { all.by_imsi(&imsi).await });
        assert_ne!(found[0].server, kept.server, "the number leads to the older one");
        let id = kept.id.clone();
        assert!(one.ask(|all| async move { all.end(&id).await }));
    }
}

#[test]
fn a_binding_that_moves_during_a_cut_stays_the_same_binding() {
    let Some(servers) = Servers::sites(2) else { return };
    let [one, mut two] = [1, 2].map(|site| Router::new(&servers, site));
    let first = session("first", 1, "a", 1);
    one.keep(&first);
    until("the session is at both sites", || {
        two.has(std::slice::from_ref(&first))
    });
    cut(&servers, "cut");
    // Its PCRF has failed for site 2; site 1 goes on with it.
    let moved = session("moved", 1, "b", 2);
    let kept = two.ask(|all| async move { all.keep_as(moved, true).await });
    assert_eq!(
        (kept, one.keep(&session("second", 1, "a", 3))),
        (Kept::New, Kept::New)
    );
    cut(&servers, "join");
    until("both sites follow the move", || {
        [one.server(1), two.server(1)] == ["b".to_owned(), "b".to_owned()]
    });
    assert_eq!(two.count().younger, 0);
}
