//! What is known of subscribers survives the process.

use std::path::Path;
use std::time::{Duration, Instant};

use dsr_dsa::config::{Dsa, Store};
use testpeer::process::{Process, serve, settings as settings_of_process};

use crate::support::*;

const IMSI: &str = "262011234567890";

fn stored(directory: &Path, learning: u64) -> Dsa {
    Dsa {
        store: Some(Store {
            directory: directory.join("store"),
        }),
        learning: settings::Period::from_secs(learning),
        ..settings(directory)
    }
}

/// Waits until the part with a subscriber is on the disk.
fn is_stored(bench: &Bench) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let known = bench.application.look_up(&format!("imsi:{IMSI}")).unwrap();
        if known["stored"] == true {
            assert_eq!(known["registered"], true, "{known}");
            return;
        }
        assert!(Instant::now() < deadline, "{known}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The body of a process that is killed once a subscriber is stored.
#[test]
fn child() {
    let Some(directory) = settings_of_process() else {
        return;
    };
    let mut bench = Bench::with(&stored(Path::new(&directory), 0));
    registers(&mut bench, IMSI);
    is_stored(&bench);
    serve("stored");
}

/// A notification of the MME where the subscriber is registered, and one of another.
fn own_and_other() -> [Sent; 2] {
    let other = Sent {
        host: format!("mme2.{FRANCE}"),
        ..Sent::new(NOR)
    };
    [Sent::new(NOR), other]
}

#[test]
fn subscribers_are_known_after_a_crash() {
    let directory = tables(&[format!("PreLocChk,{DROP}"), format!("SrcHostValHss,{DROP}")]);
    let path = directory.path();
    let process = Process::start("durable::child", path.to_str().unwrap());
    process.kill();
    let mut bench = Bench::with(&stored(path, 0));
    for (sent, fate) in own_and_other().into_iter().zip([Fate::WentOn, Fate::Dropped]) {
        assert_eq!(bench.request(FOREIGN_PEER, &sent.message()), fate);
    }
    let known = bench.application.look_up(&format!("imsi:{IMSI}")).unwrap();
    assert_eq!(
        (&known["visitedNetwork"], &known["authenticatedIn"]),
        (&"208-10".into(), &"208-10".into())
    );
    assert!(known["ageSeconds"].as_u64().unwrap() < 3600, "{known}");
    // A purge, and a stop in order: what came last is stored at the end.
    let purge = Sent::new(PUR);
    assert_eq!(succeeds(&mut bench, &purge), Fate::WentOn);
    drop(bench);
    let mut bench = Bench::with(&stored(path, 0));
    assert_eq!(bench.request(FOREIGN_PEER, &purge.message()), Fate::Dropped);
}

#[test]
fn learning_does_not_begin_again_after_a_short_stop() {
    let directory = tables(&[format!("PreLocChk,{DROP}")]);
    let path = directory.path();
    let mut bench = Bench::with(&stored(path, 3600));
    registers(&mut bench, IMSI);
    let [_, other] = own_and_other();
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::WentOn);
    drop(bench);
    let mut bench = Bench::with(&stored(path, 3600));
    assert_eq!(
        bench.request(FOREIGN_PEER, &other.message()),
        Fate::WentOn,
        "it goes on"
    );
    bench.pass(Duration::from_secs(3600));
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::Dropped);
}

#[test]
fn a_reload_takes_the_open_store_and_another_one_needs_a_restart() {
    let directory = tables(&[format!("PreLocChk,{DROP}")]);
    let settings = stored(directory.path(), 0);
    let mut bench = Bench::with(&settings);
    registers(&mut bench, IMSI);
    bench.reload(&settings, |application| {
        let known = application.look_up(&format!("imsi:{IMSI}")).unwrap();
        assert_eq!(known["known"], true);
    });
    let [own, other] = own_and_other();
    assert_eq!(bench.request(FOREIGN_PEER, &own.message()), Fate::WentOn);
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::Dropped);
    let elsewhere = Dsa {
        store: None,
        ..settings.clone()
    };
    assert!(dsr_dsa::Dsa::may_replace(&settings, &settings).is_ok());
    let refused = dsr_dsa::Dsa::may_replace(&elsewhere, &settings).unwrap_err();
    assert!(refused.contains("`store` has changed"), "{refused}");
}
