//! Sessions of online charging: kept, moved, ended by their ends, counted apart.

use std::path::Path;

use sbr::config::Charging;
use sbr::{Change, ChargingSession, ChargingSessions, Kept, Opened, Party};
use settings::Period;

use crate::databases::Servers;

fn party(host: &str) -> Party {
    Party {
        host: host.to_owned(),
        realm: "example".to_owned(),
    }
}

fn session(id: &str) -> ChargingSession {
    ChargingSession {
        id: id.as_bytes().to_vec(),
        client: party("pgw"),
        server: party("ocs1"),
        pool: "all".to_owned(),
        rule: "chosen by weight".to_owned(),
        began: 1,
        ..ChargingSession::default()
    }
}

fn settings(directory: &Path) -> Charging {
    let mut settings = Charging::default();
    settings.store.embedded.directory = directory.to_owned();
    settings.sweep.pause = Period::from_millis(10);
    settings
}

/// What comes of a question on the thread of a repository.
fn ask<T: Send + 'static, F: Future<Output = Result<T, store::Error>> + Send + 'static>(
    opened: &Opened<ChargingSessions>,
    question: impl FnOnce(ChargingSessions) -> F,
) -> T {
    opened
        .ask(question(opened.repository().clone()))
        .unwrap()
        .unwrap()
}

fn found(opened: &Opened<ChargingSessions>) -> Option<ChargingSession> {
    ask(opened, |all| async move { all.session(b"a").await })
}

#[test]
fn a_session_is_kept_once_and_moves_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let opened = Opened::open(&settings).unwrap();
    let keep = |session: ChargingSession| ask(&opened, |all| async move { all.keep(&session).await });
    assert_eq!(keep(session("a")), Kept::New);
    let again = ChargingSession {
        began: 9,
        rule: "other".to_owned(),
        has_failover: true,
        ..session("a")
    };
    assert_eq!(keep(again), Kept::Again);
    let known = found(&opened).unwrap();
    assert_eq!(
        (known.began, known.rule.as_str(), known.has_failover),
        (1, "chosen by weight", true)
    );
    let foreign = ChargingSession {
        client: party("mallory"),
        ..session("a")
    };
    assert_eq!(keep(foreign), Kept::Taken);
    let change = Change {
        moved: Some((party("ocs2"), "moved".to_owned())),
        has_failover: Some(false),
    };
    for (id, exists) in [("a", true), ("b", false)] {
        let change = change.clone();
        let changed = ask(
            &opened,
            |all| async move { all.change(id.as_bytes(), &change).await },
        );
        assert_eq!(changed, exists);
    }
    let known = found(&opened).unwrap();
    assert_eq!((known.server, known.has_failover), (party("ocs2"), false));
    let end = |may: bool| ask(&opened, move |all| async move { all.end(b"a", |_| may).await });
    assert_eq!([end(false), end(true), end(true)], [false, true, false]);
    assert_eq!(found(&opened), None);
}

#[test]
fn sessions_survive_a_restart_and_go_when_they_are_stale() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    let opened = Opened::open(&settings).unwrap();
    ask(&opened, |all| async move { all.keep(&session("a")).await });
    drop(opened);
    let opened = Opened::<ChargingSessions>::open(&settings).unwrap();
    assert_eq!(opened.repository().held(), 1);
    drop(opened);
    settings.stale = Period::from_millis(1);
    settings.max_sessions = 1;
    let opened = Opened::<ChargingSessions>::open(&settings).unwrap();
    assert!(opened.repository().is_full());
    // Its use is noted with the new lifetime.
    ask(&opened, |all| async move {
        all.change(b"a", &Change::default()).await
    });
    while opened.repository().is_full() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(found(&opened), None);
}

#[test]
fn routers_on_one_database_have_the_same_sessions() {
    let Some(servers) = Servers::sites(1) else { return };
    let router = || {
        let settings = Charging {
            store: servers.config("site-1", &[1]),
            ..Charging::default()
        };
        Opened::<ChargingSessions>::open(&settings).unwrap()
    };
    let (one, other) = (router(), router());
    let keep = |opened: &Opened<ChargingSessions>, session: ChargingSession| {
        ask(opened, |all| async move { all.keep(&session).await })
    };
    assert_eq!(keep(&one, session("a")), Kept::New);
    let known = found(&other).unwrap();
    assert_eq!((&known.server, known.began), (&party("ocs1"), 1));
    let again = ChargingSession {
        began: 9,
        ..session("a")
    };
    assert_eq!(keep(&other, again), Kept::Again);
    let foreign = ChargingSession {
        client: party("mallory"),
        ..session("a")
    };
    assert_eq!(keep(&other, foreign), Kept::Taken);
    // What the other changes, this one has, and so with the end.
    let change = Change {
        moved: Some((party("ocs2"), "moved".to_owned())),
        has_failover: Some(true),
    };
    ask(&other, |all| async move { all.change(b"a", &change).await });
    let known = found(&one).unwrap();
    assert_eq!((known.server, known.has_failover), (party("ocs2"), true));
    let end = |opened| {
        ask(opened, |all| async move {
            all.end(b"a", |session| session.is_of("pgw")).await
        })
    };
    assert_eq!([end(&one), end(&other)], [true, false]);
    assert_eq!(found(&other), None);
    // Of two that begin the same session at once, one begins it.
    let at_once = std::thread::scope(|scope| {
        let begun = [&one, &other].map(|opened| scope.spawn(move || keep(opened, session("b"))));
        begun.map(|begun| begun.join().unwrap())
    });
    assert!(
        at_once.contains(&Kept::New) && at_once.contains(&Kept::Again),
        "{at_once:?}"
    );
}
