//! Numbers that change beside the traffic.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::base::Rtype;
use domain::base::iana::Rcode;
use enum_server::Config;
use testpeer::process::Process;

use crate::support::{
    Client, admin, config, expressions, is_negative, metric, name, numbers, query, start, until,
};

const APEX: &str = "e164enum.net";

fn with_directory(folder: &std::path::Path) -> Config {
    let mut wanted = config();
    wanted.directory = Some(folder.join("changes"));
    wanted
}

#[test]
fn a_number_is_put_and_removed_and_a_restart_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(with_directory(folder.path()));
    let client = Client::new(server.addresses()[0]);
    let known = name("43112", APEX);
    assert!(is_negative(&client.naptr(&known), Rcode::NXDOMAIN));
    let put = admin(&server, "PUT", "/enum/numbers/+43-112", "ported,rn=+4366099");
    assert_eq!(put, (200, "1 numbers changed\n".to_owned()));
    assert_eq!(expressions(&client.naptr(&known)).len(), 2);
    assert!(is_negative(&client.naptr(&name("431", APEX)), Rcode::NOERROR));
    assert_eq!(admin(&server, "DELETE", "/enum/numbers/43112", "").0, 200);
    assert!(is_negative(&client.naptr(&known), Rcode::NXDOMAIN));
    assert!(is_negative(&client.naptr(&name("431", APEX)), Rcode::NXDOMAIN));
    let lines = "put,43112,ims\nput,43113,ims\n\nremove,43113\n";
    assert_eq!(admin(&server, "POST", "/enum/numbers", lines).0, 200);
    assert_eq!(metric(&server, "signalbox_enum_changed_numbers"), 1.0);
    assert!(server.handle().reread().unwrap());
    let mut files: Vec<_> = std::fs::read_dir(folder.path().join("changes"))
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["changes.log", "lock"]);
    server.stop().unwrap();
    let server = start(with_directory(folder.path()));
    let client = Client::new(server.addresses()[0]);
    assert_eq!(expressions(&client.naptr(&known)).len(), 1);
    assert!(is_negative(&client.naptr(&name("43113", APEX)), Rcode::NXDOMAIN));
}

#[test]
fn a_wrong_line_changes_nothing_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(with_directory(folder.path()));
    for (line, reason) in [
        ("put,431x,ims", "line 2: `431x` is not a number"),
        ("put,1234567890123456,ims", "line 2"),
        ("put,,ims", "line 2"),
        ("put,43112", "line 2"),
        ("put,43112,gone", "profile `gone` does not exist"),
        ("put,43112,other=ims", "no destination names a profile"),
        ("put,43112,ported,rn=a!b", "delimiter"),
        ("remove,43112,ims", "line 2"),
        ("drop,43112", "line 2"),
        ("nonsense", "line 2"),
    ] {
        let (status, body) = admin(
            &server,
            "POST",
            "/enum/numbers",
            &format!("put,43111,ims\n{line}\n"),
        );
        assert!(status == 400 && body.contains(reason), "{line}: {status} {body}");
    }
    // One number is one line.
    assert_eq!(
        admin(&server, "PUT", "/enum/numbers/43111", "ims\nput,43112,ims").0,
        400
    );
    assert_eq!(admin(&server, "PUT", "/enum/numbers/43111%0A", "ims").0, 400);
    assert_eq!(admin(&server, "DELETE", "/enum/numbers/43111%2Cims", "").0, 400);
    assert_eq!(metric(&server, "signalbox_enum_changed_numbers"), 0.0);
    let client = Client::new(server.addresses()[0]);
    assert!(is_negative(&client.naptr(&name("43111", APEX)), Rcode::NXDOMAIN));
    let without = start(config());
    let (status, body) = admin(&without, "PUT", "/enum/numbers/43112", "ims");
    assert!(status == 409 && body.contains("enum.directory"), "{body}");
}

#[test]
fn changes_stay_on_a_new_file_until_it_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(&path, "msisdn,43111,ims\nmsisdn,43112,ims\n");
    let mut wanted = with_directory(folder.path());
    wanted.numbers = Some(path.clone());
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    let lines = "put,43113,ims\nremove,43112\n";
    assert_eq!(admin(&server, "POST", "/enum/numbers", lines).0, 200);
    numbers(&path, "msisdn,43112,ims\nmsisdn,43113,ims\nmsisdn,43114,ims\n");
    assert!(server.handle().reread().unwrap());
    assert!(
        is_negative(&client.naptr(&name("43111", APEX)), Rcode::NXDOMAIN),
        "the new file does not have it"
    );
    assert!(
        is_negative(&client.naptr(&name("43112", APEX)), Rcode::NXDOMAIN),
        "it was removed"
    );
    assert_eq!(expressions(&client.naptr(&name("43113", APEX))).len(), 1);
    assert_eq!(expressions(&client.naptr(&name("43114", APEX))).len(), 1);
    until("changes that the file has are dropped", || {
        metric(&server, "signalbox_enum_changed_numbers") == 1.0
    });
    // The removal is still needed. A file that cannot be used changes nothing.
    std::fs::write(&path, "no file of numbers").unwrap();
    assert!(server.handle().reread().is_err());
    assert_eq!(expressions(&client.naptr(&name("43114", APEX))).len(), 1);
    assert!(is_negative(&client.naptr(&name("43112", APEX)), Rcode::NXDOMAIN));
}

/// Every query has its answer, and each acknowledged change is seen by the next query.
#[test]
fn reloads_and_changes_beside_the_traffic_lose_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(&path, "msisdn,43111,ims\n");
    let mut wanted = with_directory(folder.path());
    wanted.numbers = Some(path);
    let server = start(wanted);
    let at = server.addresses()[0];
    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let asking = threads.spawn(|| {
            let client = Client::new(at);
            let mut asked = 0;
            while !ended.load(Ordering::Relaxed) {
                assert_eq!(expressions(&client.naptr(&name("43111", APEX))).len(), 1);
                asked += 1;
            }
            asked
        });
        let reloading = threads.spawn(|| {
            for _ in 0..20 {
                assert!(server.handle().reread().unwrap());
            }
        });
        let client = Client::new(at);
        for number in 0..40 {
            let digits = format!("4369{number:04}");
            assert_eq!(
                admin(&server, "PUT", &format!("/enum/numbers/{digits}"), "ims").0,
                200
            );
            assert_eq!(
                expressions(&client.naptr(&name(&digits, APEX))).len(),
                1,
                "{digits}"
            );
        }
        reloading.join().unwrap();
        ended.store(true, Ordering::Relaxed);
        assert!(asking.join().unwrap() > 0);
    });
    let client = Client::new(at);
    for number in 0..40 {
        let digits = format!("4369{number:04}");
        assert_eq!(
            expressions(&client.naptr(&name(&digits, APEX))).len(),
            1,
            "{digits}"
        );
    }
}

/// A removal of what is unknown, and numbers as the file has them, leave nothing behind.
#[test]
fn a_change_that_says_what_the_file_says_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(&path, "msisdn,43111,ims\n");
    for with_file in [false, true] {
        let mut wanted = with_directory(&folder.path().join(with_file.to_string()));
        wanted.numbers = with_file.then(|| path.clone());
        let server = start(wanted.clone());
        let changed = || metric(&server, "signalbox_enum_changed_numbers");
        assert_eq!(admin(&server, "DELETE", "/enum/numbers/43112", "").0, 200);
        let lines = "put,43113,ims\nremove,43113\n";
        assert_eq!(admin(&server, "POST", "/enum/numbers", lines).0, 200);
        assert_eq!(changed(), 0.0);
        assert_eq!(admin(&server, "PUT", "/enum/numbers/43113", "ims").0, 200);
        assert_eq!(admin(&server, "DELETE", "/enum/numbers/43113", "").0, 200);
        assert_eq!(changed(), 0.0);
        let client = Client::new(server.addresses()[0]);
        assert!(is_negative(&client.naptr(&name("43113", APEX)), Rcode::NXDOMAIN));
        server.stop().unwrap();
        // The log has both of them; a restart comes to the same.
        let server = start(wanted);
        until("nothing is kept", || {
            metric(&server, "signalbox_enum_changed_numbers") == 0.0
        });
    }
}

/// A map has 65,535 different destination sets, and frees none: the numbers of one day use up those of a process otherwise.
#[test]
fn more_destination_sets_than_a_map_has_are_taken_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(with_directory(folder.path()));
    for hundred in 0..7 {
        let lines: String = (0..10_000)
            .map(|one| format!("put,43{one:04},ported,rn=+43{hundred}{one:04}\n"))
            .collect();
        assert_eq!(
            admin(&server, "POST", "/enum/numbers", &lines),
            (200, "10000 numbers changed\n".to_owned())
        );
    }
    let client = Client::new(server.addresses()[0]);
    for one in ["0000", "9999"] {
        let found = expressions(&client.naptr(&name(&format!("43{one}"), APEX)));
        assert!(found[1].contains(&format!("rn=+436{one}")), "{found:?}");
    }
    assert!(server.handle().reread().unwrap());
}

/// Changes that cannot be put into the numbers make those numbers fail, and nothing else.
#[test]
fn a_damaged_block_and_too_many_sets_leave_the_rest_in_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.num");
    numbers(&path, "msisdn,43111,ims\n");
    let mut wanted = with_directory(folder.path());
    wanted.numbers = Some(path.clone());
    let server = start(wanted.clone());
    let lines = "put,43112,ported,rn=+4366099\nput,99,ims\n";
    assert_eq!(admin(&server, "POST", "/enum/numbers", lines).0, 200);
    // As many sets as a map has, none of them those of the changes.
    let full: String = (0..65_535)
        .map(|one| format!("msisdn,4369{one:05},ported,rn=+{one}\n"))
        .collect();
    numbers(&path, &full);
    assert!(server.handle().reread().unwrap());
    let client = Client::new(server.addresses()[0]);
    assert_eq!(
        client.naptr(&name("43112", APEX)).header().rcode(),
        Rcode::SERVFAIL
    );
    assert_eq!(expressions(&client.naptr(&name("436900007", APEX))).len(), 2);
    server.stop().unwrap();
    let server = start(wanted.clone());
    let client = Client::new(server.addresses()[0]);
    assert_eq!(
        client.naptr(&name("43112", APEX)).header().rcode(),
        Rcode::SERVFAIL
    );
    let why = admin(&server, "GET", "/enum/why/43112", "").1;
    assert!(why.contains("no room"), "{why}");
    server.stop().unwrap();
    // One block of the file is damaged: the first one, behind the header.
    numbers(&path, "msisdn,43111,ims\nmsisdn,4399999999,ims\n");
    let mut octets = std::fs::read(&path).unwrap();
    let block = damaged(&path, &mut octets);
    std::fs::write(&path, &octets).unwrap();
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    assert_eq!(
        client.naptr(&name("43111", APEX)).header().rcode(),
        Rcode::SERVFAIL,
        "{block}"
    );
    assert_eq!(
        client.naptr(&name("43112", APEX)).header().rcode(),
        Rcode::SERVFAIL
    );
    assert_eq!(expressions(&client.naptr(&name("4399999999", APEX))).len(), 1);
    assert_eq!(expressions(&client.naptr(&name("99", APEX))).len(), 1);
}

/// Damages the block of 43111; returns where it begins.
fn damaged(path: &std::path::Path, octets: &mut [u8]) -> u64 {
    use numbers::{Key, Kind, Load, Map, Place};
    let key = Key::new(Kind::Msisdn, b"43111").unwrap();
    let map = Map::open(path, None, Load::Copied).unwrap();
    let Place::Base(at) = map.explain(key).place else {
        panic!("it is in the file");
    };
    octets[at as usize] ^= 0xff;
    at
}

/// The body of the process that is killed.
#[test]
fn child() {
    let Some(folder) = testpeer::process::settings() else {
        return;
    };
    let server = start(with_directory(std::path::Path::new(&folder)));
    // Acknowledged numbers are reported by a file of their own, each after its acknowledgement.
    let report = std::path::Path::new(&folder).join("acknowledged");
    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for number in (0..100_000).take_while(|_| !ended.load(Ordering::Relaxed)) {
                let digits = format!("4369{number:06}");
                let (status, body) = admin(&server, "PUT", &format!("/enum/numbers/{digits}"), "ims");
                assert_eq!(status, 200, "{body}");
                std::fs::write(report.with_extension("new"), digits).unwrap();
                std::fs::rename(report.with_extension("new"), &report).unwrap();
            }
        });
        testpeer::process::serve("writing");
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_was_acknowledged_survives_the_death_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let process = Process::start("provisioning::child", folder.path().to_str().unwrap());
        let report = folder.path().join("acknowledged");
        let acknowledged = || {
            std::fs::read_to_string(&report)
                .ok()
                .and_then(|digits| digits.strip_prefix("4369")?.parse::<u32>().ok())
        };
        until("numbers are acknowledged", || {
            acknowledged().is_some_and(|number| number > 20)
        });
        process.kill();
        last = acknowledged().unwrap().max(last);
        std::fs::remove_file(&report).unwrap();
        let server = start(with_directory(folder.path()));
        let client = Client::new(server.addresses()[0]);
        for number in 0..=last {
            let digits = format!("4369{number:06}");
            let answer = client.ask(&query(1, &name(&digits, APEX), Rtype::NAPTR, None));
            assert_eq!(expressions(&answer).len(), 1, "{digits} of {last}");
        }
        // The next process uses the directory.
        server.stop().unwrap();
    }
}
