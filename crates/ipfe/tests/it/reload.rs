//! Message processors and bounds that change while the front end runs.

use std::io::{Read, Write};
use std::net::SocketAddr;

use crate::support::{Echo, config, connect, counts, until};

#[test]
fn processors_are_added_and_removed_beside_the_traffic() {
    let (one, two) = (Echo::start(), Echo::start());
    let settings = config(vec![one.backend("mp1")], 0);
    let front = ipfe::start(settings.clone()).unwrap();
    let mut held = connect(&front);
    let mut wanted = settings;
    wanted.target_sets[0].backends = vec![two.backend("mp2")];
    wanted.target_sets[0].max_connections = 3;
    front.reload(&wanted).unwrap();
    until("mp2 is there", || front.backends()[0].name == "mp2");
    let next = connect(&front);
    assert_eq!(counts(&front), [1], "connections that are made now go to mp2");
    // Connections of mp1 continue.
    held.write_all(b"still").unwrap();
    let mut back = [0; 5];
    held.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"still");
    // They count for the bound, which the reload has changed.
    let third = connect(&front);
    let mut fourth = std::net::TcpStream::connect(front.addresses()[0]).unwrap();
    assert_eq!(fourth.read(&mut [0; 8]).unwrap_or_default(), 0);

    // mp1 returns, and is checked: it is in stasis.
    one.status.store(503, std::sync::atomic::Ordering::Relaxed);
    wanted.target_sets[0].backends.push(one.backend("mp1"));
    front.reload(&wanted).unwrap();
    until("stasis is seen", || {
        front.backends().get(1).is_some_and(|row| row.state == "stasis")
    });
    let alarms = front.handle().alarms();
    until("the alarm", || {
        alarms.active().iter().any(|alarm| alarm.number == 5005)
    });
    wanted.target_sets[0].backends.pop();
    front.reload(&wanted).unwrap();
    until("no alarm for one that is removed", || alarms.active().is_empty());
    drop((next, third));
}

#[test]
fn an_address_changes_with_a_restart_only() {
    let echo = Echo::start();
    let settings = config(vec![echo.backend("mp1")], 0);
    let front = ipfe::start(settings.clone()).unwrap();
    let mut wanted = settings;
    wanted.target_sets[0].listen = "127.0.0.1:4000".parse::<SocketAddr>().unwrap().into();
    wanted.target_sets[0].backends.clear();
    let refused = front.reload(&wanted).unwrap_err();
    assert!(
        refused.contains("targetSets") && refused.contains("restart"),
        "{refused}"
    );
    drop(connect(&front));
    assert_eq!(front.backends().len(), 1, "nothing has changed");
}

/// A reload may come before any task has run that follows it.
#[test]
fn a_reload_right_after_the_start_is_followed() {
    let echo = Echo::start();
    let settings = config(vec![echo.backend("mp1")], 0);
    let mut wanted = settings.clone();
    wanted.target_sets[0].backends = vec![echo.backend("mp2")];
    for _ in 0..20 {
        let front = ipfe::start(settings.clone()).unwrap();
        front.reload(&wanted).unwrap();
        until("mp2 is there", || front.backends()[0].name == "mp2");
        front.stop().unwrap();
    }
}
