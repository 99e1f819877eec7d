//! Sessions and bindings: found by every key, kept over a restart, one server for a subscriber.

use std::path::Path;
use std::time::Duration;

use model::Ipv6Prefix;
use sbr::config::Sbr;
use sbr::{Binding, Kept, Opened, Party, Repository, Reserved, Session, binding_key, tables};
use store::Store;

const IMSI: &str = "001010000000001";
/// The same as the key of a binding has it.
const SUBSCRIBER: &[u8] = b"i001010000000001";

/// These settings, with a directory of the embedded engine.
fn at(mut settings: Sbr, directory: &Path) -> Sbr {
    settings.store.embedded.directory = directory.to_owned();
    settings
}

fn session(number: u64, server: &str, prefixes: &[&str]) -> Session {
    Session {
        id: format!("pgw.example;1;{number}").into_bytes(),
        application: 16_777_238,
        server: Party {
            host: server.to_owned(),
            realm: "pcc.example".to_owned(),
        },
        pool: "all".to_owned(),
        binding: Some(Binding {
            key: binding_key(SUBSCRIBER, "all"),
            imsi: IMSI.to_owned(),
            msisdn: "49170".to_owned(),
            ipv4: Some([10, 0, 0, number as u8].into()),
            prefixes: prefixes.iter().map(|text| text.parse().unwrap()).collect(),
            ..Binding::default()
        }),
        began: number,
        ..Session::default()
    }
}

/// A test on an open store with these settings.
fn with(settings: Sbr, test: impl AsyncFnOnce(&Store, &Sbr)) {
    let folder = tempfile::tempdir().unwrap();
    let settings = at(settings, folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let store = Store::open(&settings.store, &tables()).await.unwrap();
        test(&store, &settings).await;
        store.close().await;
    });
}

/// The servers of these sessions.
fn servers(found: &[Session]) -> Vec<&str> {
    found.iter().map(|session| session.server.host.as_str()).collect()
}

async fn on(store: &Store, settings: &Sbr, owner: Option<u64>) -> Repository {
    let repository = Repository::new(store, settings, owner).unwrap();
    repository.refresh().await.unwrap();
    repository
}

#[test]
fn a_session_is_found_by_every_key_until_it_ends() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        all.keep(session(1, "a", &["2001:db8:0:1::/64"])).await.unwrap();
        let key = binding_key(SUBSCRIBER, "all");
        let address: Ipv6Prefix = "2001:db8:0:1::77/128".parse().unwrap();
        assert_eq!(all.bound(&key).await.unwrap().unwrap().server.host, "a");
        assert_eq!(all.bound(&binding_key(SUBSCRIBER, "other")).await.unwrap(), None);
        assert_eq!(servers(&all.by_imsi(IMSI).await.unwrap()), ["a"]);
        assert_eq!(servers(&all.by_msisdn("49170").await.unwrap()), ["a"]);
        assert_eq!(servers(&all.by_ipv4([10, 0, 0, 1].into()).await.unwrap()), ["a"]);
        assert_eq!(servers(&all.by_prefix(&address).await.unwrap()), ["a"]);
        let foreign: Ipv6Prefix = "2001:db8:0:2::77/128".parse().unwrap();
        assert!(all.by_prefix(&foreign).await.unwrap().is_empty());
        assert!(all.end(b"pgw.example;1;1").await.unwrap());
        assert!(!all.end(b"pgw.example;1;1").await.unwrap());
        assert!(all.by_prefix(&address).await.unwrap().is_empty());
        assert_eq!(all.bound(&key).await.unwrap(), None);
    });
}

#[test]
fn a_subscriber_is_bound_in_each_pool_apart() {
    let settings = Sbr {
        max_sessions_per_subscriber: 1,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        for subscriber in [SUBSCRIBER, b"m49170", b"s1"] {
            let key = |pool: &str| binding_key(subscriber, pool);
            for (number, pool) in [(1, "all"), (2, "voice")] {
                let mut one = session(number, pool, &[]);
                one.id.extend(subscriber);
                let binding = one.binding.as_mut().unwrap();
                binding.key = key(pool);
                if subscriber != SUBSCRIBER {
                    binding.imsi.clear();
                }
                assert_eq!(all.keep(one).await, Ok(Kept::New));
            }
            for pool in ["all", "voice"] {
                let bound = all.bound(&key(pool)).await.unwrap().unwrap();
                assert_eq!(bound.server.host, pool);
            }
            // One more takes the place of the other of its pool.
            let mut more = session(3, "c", &[]);
            more.id.extend(subscriber);
            more.binding.as_mut().unwrap().key = key("voice");
            if subscriber != SUBSCRIBER {
                more.binding.as_mut().unwrap().imsi.clear();
            }
            assert_eq!(all.keep(more).await, Ok(Kept::Instead));
            assert_eq!(all.bound(&key("all")).await.unwrap().unwrap().server.host, "all");
            assert_eq!(all.unbind(&key("voice"), "c").await, Ok(1));
            assert_eq!(all.bound(&key("voice")).await.unwrap(), None);
        }
    });
}

#[test]
fn an_address_finds_the_longest_prefix_that_holds_it() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        let with = [
            ("2001:db8:8::/45", "wide"),
            ("2001:db8:8:100::/56", "site"),
            ("2001:db8:8:180::/57", "half"),
            ("2001:db8:8:101::/64", "link"),
            ("2001:db8:8:101::1/128", "host"),
        ];
        for (number, (prefix, server)) in with.iter().enumerate() {
            all.keep(session(number as u64, server, &[prefix])).await.unwrap();
        }
        let expected = [
            ("2001:db8:8:101::1/128", Some("host")),
            ("2001:db8:8:101::2/128", Some("link")),
            ("2001:db8:8:101::/64", Some("link")),
            ("2001:db8:8:102::1/128", Some("site")),
            ("2001:db8:8:181::1/128", Some("half")),
            ("2001:db8:9::1/128", Some("wide")),
            ("2001:db8:8:100::/55", Some("wide")),
            ("2001:db8:7::1/128", None),
        ];
        // The second one is that of another run.
        for one in [all, on(store, settings, None).await] {
            for (wanted, server) in expected {
                let found = one.by_prefix(&wanted.parse().unwrap()).await.unwrap();
                assert_eq!(servers(&found).first().copied(), server, "{wanted}");
            }
        }
    });
}

#[test]
fn what_is_kept_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = at(Sbr::default(), folder.path());
    {
        let opened: Opened = Opened::open(&settings).unwrap();
        let repository = opened.repository().clone();
        let kept = opened.ask(async move { repository.keep(session(1, "a", &[])).await });
        kept.unwrap().unwrap();
        let second = Opened::<Repository>::open(&settings).unwrap_err();
        assert!(!second.is_empty(), "one process has the directory");
    }
    let opened: Opened = Opened::open(&settings).unwrap();
    assert_eq!(opened.repository().held(), 1);
    let repository = opened.repository().clone();
    let found = opened.ask(async move { repository.session(b"pgw.example;1;1").await });
    assert_eq!(found.unwrap().unwrap().unwrap().server.host, "a");
}

#[test]
fn a_subscriber_has_a_bound_of_sessions_and_the_oldest_goes() {
    let settings = Sbr {
        max_sessions_per_subscriber: 3,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        for number in 1..=100 {
            let kept = all.keep(session(number, "a", &[])).await.unwrap();
            assert_eq!(kept == Kept::Instead, number > 3);
        }
        // The same session again takes no room.
        let again = all.keep(session(100, "a", &[])).await;
        assert_eq!((again, all.held()), (Ok(Kept::Again), 3));
        let began = |found: Vec<Session>| found.iter().map(|one| one.began).collect::<Vec<_>>();
        assert_eq!(began(all.by_imsi(IMSI).await.unwrap()), [100, 99, 98]);
    });
}

#[test]
fn sessions_of_a_subscriber_that_begin_at_once_leave_no_more_than_may_be() {
    let settings = Sbr {
        max_sessions_per_subscriber: 3,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        for round in 0..3 {
            // None of them sees the others.
            let mut writes = tokio::task::JoinSet::new();
            for number in 0..12 {
                let (all, one) = (all.clone(), session(round * 100 + number, "a", &[]));
                writes.spawn(async move { all.keep(one).await });
            }
            while let Some(kept) = writes.join_next().await {
                assert!(matches!(kept, Ok(Ok(Kept::New | Kept::Instead))));
            }
            let last = all.keep(session(round * 100 + 99, "a", &[])).await;
            assert_eq!(last, Ok(Kept::Instead));
            assert_eq!(all.by_imsi(IMSI).await.unwrap().len(), 3, "round {round}");
        }
    });
}

#[test]
fn what_is_stale_is_out_and_swept() {
    let settings = Sbr {
        stale: settings::Period::from_millis(40),
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        all.keep(session(1, "a", &[])).await.unwrap();
        while all.session(b"pgw.example;1;1").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(all.by_imsi(IMSI).await.unwrap().is_empty());
        all.touch(b"pgw.example;1;1").await.unwrap();
        assert!(all.by_imsi(IMSI).await.unwrap().is_empty(), "its time is over");
        let swept = tokio::time::timeout(Duration::from_secs(60), async {
            tokio::select! {
                ended = all.look_after() => ended.unwrap(),
                () = async { while all.held() > 0 { tokio::time::sleep(Duration::from_millis(5)).await; } } => {}
            }
        });
        swept.await.unwrap();
    });
}

#[test]
fn use_renews_a_session() {
    with(Sbr::default(), async |store, settings| {
        let with = |seconds| Sbr {
            stale: settings::Period::from_secs(seconds),
            ..settings.clone()
        };
        let one = session(1, "a", &[]);
        on(store, &with(60), None).await.keep(one.clone()).await.unwrap();
        let renewing = on(store, &with(3600), None).await;
        let soon = renewing.now() + 600_000_000;
        let expires = async || renewing.session(&one.id).await.unwrap().unwrap().expires;
        assert!(expires().await < soon);
        renewing.touch(&one.id).await.unwrap();
        assert!(expires().await > soon);
    });
}

#[test]
fn of_two_routers_on_one_store_one_chooses() {
    with(Sbr::default(), async |store, settings| {
        let (one, other) = (
            on(store, settings, Some(1)).await,
            on(store, settings, Some(2)).await,
        );
        let key = binding_key(SUBSCRIBER, "all");
        let now = Duration::ZERO;
        assert!(matches!(one.reserve(&key, now).await.unwrap(), Reserved::Free));
        // The request that waits at its own router goes on under the same reservation.
        assert!(matches!(one.reserve(&key, now).await.unwrap(), Reserved::Free));
        assert!(matches!(other.reserve(&key, now).await.unwrap(), Reserved::Busy));
        // What is not its own it does not release.
        other.release(&key).await.unwrap();
        assert!(matches!(other.reserve(&key, now).await.unwrap(), Reserved::Busy));
        one.release(&key).await.unwrap();
        assert!(matches!(other.reserve(&key, now).await.unwrap(), Reserved::Free));
        let waits = one.reserve(&key, Duration::from_secs(60));
        let keeps = other.keep(session(1, "b", &[]));
        let (reserved, kept) = tokio::join!(waits, keeps);
        kept.unwrap();
        let Reserved::Bound(session) = reserved.unwrap() else {
            panic!("the other router has kept a session");
        };
        assert_eq!(session.server.host, "b");
    });
}

#[test]
fn sessions_of_any_application_are_kept_without_a_binding() {
    let settings = Sbr {
        max_sessions: 1,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        let online = Session {
            application: 4,
            binding: None,
            ..session(1, "ocs", &[])
        };
        assert_eq!(all.keep(online.clone()).await, Ok(Kept::New));
        assert_eq!(all.keep(online.clone()).await, Ok(Kept::Again));
        assert_eq!((all.held(), all.held_found(), all.is_full()), (1, 1, false));
        let found = all.session(b"pgw.example;1;1").await.unwrap().unwrap();
        assert_eq!((found.application, found.server.host.as_str()), (4, "ocs"));
        assert!(all.by_imsi(IMSI).await.unwrap().is_empty());
        assert_eq!(all.end_read(&session(1, "ocs", &[])).await, Ok(false));
        assert_eq!(all.end_read(&found).await, Ok(true));
        assert_eq!(all.end_read(&found).await, Ok(false));
        assert_eq!(all.held(), 0);
    });
}

#[test]
fn the_newest_of_many_sessions_at_an_address_is_found() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        for number in 1..=100 {
            let mut one = session(number, "a", &[]);
            one.id = format!("pgw;{number:03}").into_bytes();
            let binding = one.binding.as_mut().unwrap();
            (binding.key, binding.ipv4) = (one.id.clone(), Some([10, 0, 0, 1].into()));
            all.keep(one).await.unwrap();
        }
        let found = all.by_ipv4([10, 0, 0, 1].into()).await.unwrap();
        assert_eq!((found.len(), found[0].began), (100, 100));
    });
}

#[test]
fn a_session_stays_what_it_is_and_those_of_afs_have_a_bound() {
    let settings = Sbr {
        max_sessions: 1,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        let first = session(1, "a", &[]);
        assert_eq!(all.keep(first.clone()).await, Ok(Kept::New));
        let repeated = Session {
            began: 9,
            rule: "request repeated".to_owned(),
            ..first.clone()
        };
        assert_eq!(all.keep(repeated).await, Ok(Kept::Again));
        let mut other = first.clone();
        other.binding.as_mut().unwrap().key = binding_key(b"other", "all");
        assert_eq!(all.keep(other).await, Ok(Kept::Taken));
        let stands = all.session(&first.id).await.unwrap().unwrap();
        let (key, binding) = (binding_key(SUBSCRIBER, "all"), stands.binding.unwrap());
        assert_eq!((stands.began, stands.rule.as_str(), binding.key), (1, "", key));
        // Those without a binding count for themselves, and a Session-Id is one of both kinds.
        assert!(all.is_full());
        let of_af = |id: &[u8]| Session {
            id: id.to_vec(),
            binding: None,
            ..first.clone()
        };
        assert_eq!(all.keep(of_af(&first.id)).await, Ok(Kept::Taken));
        assert_eq!(all.keep(of_af(b"af;1")).await, Ok(Kept::New));
        assert_eq!(all.keep(of_af(b"af;2")).await, Ok(Kept::Full));
        let of_gateway = Session {
            id: b"af;1".to_vec(),
            ..first.clone()
        };
        assert_eq!(all.keep(of_gateway).await, Ok(Kept::Taken));
        assert_eq!(
            (all.session(b"af;2").await, all.held(), all.held_found()),
            (Ok(None), 2, 1)
        );
        all.touch(b"af;1").await.unwrap();
        assert!(all.end(b"af;1").await.unwrap() && !all.end(b"af;1").await.unwrap());
        assert_eq!((all.held(), all.held_found()), (1, 0));
    });
}

#[test]
fn sessions_that_are_asked_about_are_found_when_they_are_stale_and_stay_as_long_again() {
    with(Sbr::default(), async |store, settings| {
        let asking = |seconds| Sbr {
            stale: settings::Period::from_secs(seconds),
            audit_rate: 1,
            ..settings.clone()
        };
        let all = on(store, &asking(600), None).await;
        for number in 1..=3 {
            all.keep(session(number, "a", &[])).await.unwrap();
        }
        assert!(all.stale(0, 10).await.unwrap().is_empty());
        // They expire in 1,200 s: for one whose sessions are stale with 1,300 s left, they are.
        let later = on(store, &asking(1_300), None).await;
        let found = later.stale(0, 2).await.unwrap();
        assert_eq!(found.len(), 2);
        let more = later.stale(found[1].expires + 1, 2).await.unwrap();
        assert_eq!(more.len(), 1);
        assert!(later.is_stale(&more[0].id).await.unwrap());
        later.touch(&more[0].id).await.unwrap();
        assert!(!later.is_stale(&more[0].id).await.unwrap());
        assert!(!later.is_stale(b"other").await.unwrap());
        assert_eq!(later.stale(0, 10).await.unwrap().len(), 2);
    });
}

#[test]
fn a_subscriber_that_moves_is_followed_and_a_younger_binding_is_not() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        let key = binding_key(SUBSCRIBER, "all");
        let server = async || all.bound(&key).await.unwrap().unwrap().server.host;
        all.keep(session(1, "a", &[])).await.unwrap();
        all.keep_as(session(2, "b", &[]), true).await.unwrap();
        assert_eq!(server().await, "b");
        // Another router has chosen without knowledge of that: its session stays, and no session follows it.
        all.keep(session(3, "c", &[])).await.unwrap();
        assert_eq!((server().await, all.take_counts().younger), ("b".to_owned(), 1));
        let stays = all.session(&session(3, "c", &[]).id).await.unwrap().unwrap();
        assert!(stays.has_yielded() && stays.server.host == "c");
        assert_eq!(servers(&all.by_ipv4([10, 0, 0, 3].into()).await.unwrap()), ["c"]);
        assert_eq!(servers(&all.by_imsi(IMSI).await.unwrap()), ["b", "a", "c"]);
        // One that began before the others, and is written after them, is the older one.
        let mut late = session(4, "d", &[]);
        late.began = 0;
        all.keep(late).await.unwrap();
        assert_eq!((server().await, all.take_counts().younger), ("d".to_owned(), 2));
        // What comes again stays what it is.
        assert_eq!(all.keep(session(3, "c", &[])).await, Ok(Kept::Again));
        assert_eq!((server().await, all.take_counts().older), ("d".to_owned(), 0));
        for number in [1, 2, 4] {
            assert!(all.end(&session(number, "", &[]).id).await.unwrap());
        }
        assert_eq!(all.bound(&key).await.unwrap(), None);
    });
}

#[test]
fn a_read_under_one_address_has_a_bound_and_says_so() {
    let settings = Sbr {
        max_sessions_per_subscriber: 1_000,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        for number in 1..=300 {
            let mut one = session(number, "a", &[]);
            let binding = one.binding.as_mut().unwrap();
            (binding.key, binding.ipv4) = (one.id.clone(), Some([10, 0, 0, 1].into()));
            all.keep(one).await.unwrap();
        }
        assert_eq!(all.take_counts().crowded, 0);
        let found = all.by_ipv4([10, 0, 0, 1].into()).await.unwrap();
        assert_eq!((found.len(), all.take_counts().crowded), (256, 1));
    });
}

#[test]
fn what_the_server_before_answers_after_a_move_is_no_conflict() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        all.keep(session(1, "a", &[])).await.unwrap();
        all.keep_as(session(3, "b", &[]), true).await.unwrap();
        all.keep(session(2, "a", &[])).await.unwrap();
        let key = binding_key(SUBSCRIBER, "all");
        assert_eq!(all.bound(&key).await.unwrap().unwrap().server.host, "b");
        for number in 1..=3 {
            let kept = all.session(&session(number, "", &[]).id).await.unwrap().unwrap();
            assert!(!kept.has_yielded(), "{number}");
        }
        let counts = all.take_counts();
        assert_eq!((counts.older, counts.younger), (0, 0));
    });
}

#[test]
fn a_repeated_session_that_is_elsewhere_moves_its_binding_and_one_that_has_yielded_none() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        let key = binding_key(SUBSCRIBER, "all");
        let server = async || all.bound(&key).await.unwrap().unwrap().server.host;
        all.keep(session(1, "a", &[])).await.unwrap();
        for (number, host) in [(2, "b"), (3, "c")] {
            all.keep_as(session(number, host, &[]), true).await.unwrap();
        }
        // Its own server has failed, after the binding has moved twice.
        assert_eq!(all.keep_as(session(1, "d", &[]), true).await, Ok(Kept::Again));
        assert_eq!((server().await.as_str(), all.held()), ("d", 3));
        assert_eq!(all.take_counts().younger, 0);
        // Another router has begun a younger binding, of which one comes again.
        all.keep(session(4, "e", &[])).await.unwrap();
        assert_eq!((server().await.as_str(), all.take_counts().younger), ("d", 1));
        assert_eq!(all.keep_as(session(4, "f", &[]), true).await, Ok(Kept::Again));
        let stays = all.session(&session(4, "", &[]).id).await.unwrap().unwrap();
        assert!(stays.has_yielded() && stays.server.host == "f");
        assert_eq!((server().await.as_str(), all.take_counts().younger), ("d", 0));
    });
}

#[test]
fn sessions_that_have_yielded_are_unbound_from_their_server() {
    with(Sbr::default(), async |store, settings| {
        let all = on(store, settings, None).await;
        all.keep(session(1, "a", &[])).await.unwrap();
        all.keep(session(2, "b", &[])).await.unwrap();
        assert_eq!(all.take_counts().younger, 1);
        assert_eq!(all.unbind(&binding_key(SUBSCRIBER, "all"), "B").await, Ok(1));
        assert_eq!(servers(&all.by_imsi(IMSI).await.unwrap()), ["a"]);
    });
}

#[test]
fn the_bound_of_a_subscriber_holds_in_four_pools_before_it_is_crowded() {
    let settings = Sbr {
        max_sessions_per_subscriber: 40,
        ..Sbr::default()
    };
    with(settings, async |store, settings| {
        let all = on(store, settings, None).await;
        let key = |number: u64| binding_key(SUBSCRIBER, &format!("pool{}", number % 10));
        let keep = async |number: u64| {
            let mut one = session(number, "a", &[]);
            one.binding.as_mut().unwrap().key = key(number);
            assert_eq!(all.keep(one).await, Ok(Kept::New));
        };
        // Those of two sites in each pool, and one more.
        let most = 4 * (2 * 40 + 1);
        for number in 1..most {
            keep(number).await;
        }
        assert!(all.bound(&key(1)).await.unwrap().is_some());
        assert_eq!(all.take_counts().crowded, 0);
        keep(most).await;
        assert!(all.bound(&key(1)).await.unwrap().is_some());
        assert_eq!(all.take_counts().crowded, 1);
    });
}
