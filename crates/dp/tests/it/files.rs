//! Data of files: right answers, damage, reloads.

use dp_proto::{Kind, Outcome};

use crate::support::{Router, damage, imported, metric, until, with_files};

#[test]
fn queries_are_answered_in_bundles_and_names_by_their_realm() {
    let folder = tempfile::tempdir().unwrap();
    let processor = dp::start(with_files(folder.path())).unwrap();
    let mut router = Router::new(processor.addresses()[0]);
    let queries = [
        (Kind::Imsi, "", "001010000000001", "exact hss1"),
        (Kind::Imsi, "pcrf", "001010000000001", "exact pcrf7"),
        (Kind::Imsi, "ocs", "001010000000001", "exact hss1"),
        (Kind::Imsi, "", "001010000000002", "unknown "),
        (Kind::Imsi, "", "01010000000001", "unknown "),
        (Kind::Msisdn, "", "49151100001", "exact hss2"),
        (Kind::Imei, "", "49151100001", "unknown "),
        (Kind::Imsi, "", "0010100000000012", "unknown "),
        (Kind::Imsi, "", "00101x", "unknown "),
        (Kind::Name, "", "meter7@iot.example", "exact hss1"),
        (Kind::Name, "", "meter8@iot.example", "realm hss2"),
        (Kind::Name, "ims-hss", "sip:alice@ims.example", "realm hss3"),
        (Kind::Name, "pcrf", "sip:alice@ims.example", "unknown "),
        (Kind::Name, "", "alice@ims.example", "unknown "),
    ];
    router.send(&queries.map(|(kind, service, value, _)| (kind, service, value)));
    let answers = router.next().unwrap();
    let expected = queries.iter().enumerate();
    let expected: Vec<(u32, &str)> = expected.map(|(id, query)| (id as u32, query.3)).collect();
    let answers: Vec<(u32, String)> = answers
        .into_iter()
        .map(|(id, outcome, to)| (id, format!("{} {to}", outcome.as_str())))
        .collect();
    assert_eq!(
        answers
            .iter()
            .map(|(id, text)| (*id, text.as_str()))
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(
        metric(&processor, "signalbox_dp_queries_total{outcome=\"exact\"}"),
        5.0
    );
    assert_eq!(
        metric(&processor, "signalbox_dp_queries_total{outcome=\"realm\"}"),
        2.0
    );
    // A probe is a frame without entries, and its answer is one.
    std::io::Write::write_all(&mut router.stream, &[0, 0, 0, 4, 1, 1, 0, 0]).unwrap();
    assert_eq!(router.next(), Some(Vec::new()));
}

#[test]
fn pages_say_what_is_known() {
    testpeer::local(async {
        let folder = tempfile::tempdir().unwrap();
        let processor = dp::start(with_files(folder.path())).unwrap();
        for (path, wanted) in [
            ("/dp/lookup/imsi:001010000000001", "hss1,pcrf=pcrf7"),
            ("/dp/lookup/imsi:001010000000001", ", base, byte "),
            ("/dp/lookup/imsi:999990000000001", ", none\""),
            ("/dp/lookup/imsi:001010000000002", "\"outcome\":\"unknown\""),
            ("/dp/lookup/name:Meter8@iot.example", "*@iot.example"),
            ("/dp/lookup/imsi:1x", "expected 1 to 15 digits"),
            ("/dp/lookup/other", "expected KIND:VALUE"),
            ("/dp/data", "\"numbers\":2"),
        ] {
            let (status, body) = testpeer::page(processor.handle().routes(), path).await;
            assert!(status == 200 && body.contains(wanted), "{path}: {status} {body}");
        }
    });
}

#[test]
fn files_are_replaced_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let config = with_files(folder.path());
    let processor = dp::start(config).unwrap();
    let mut router = Router::new(processor.addresses()[0]);
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    std::fs::write(folder.path().join("names.csv"), "name,a@b,hss1\nname,a@b,hss2\n").unwrap();
    imported(folder.path(), "imsi,001010000000001,hss9\n");
    let wrong = processor.handle().reread().unwrap_err();
    assert!(wrong.contains("names.csv: line 2: a@b is there twice"), "{wrong}");
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    std::fs::write(folder.path().join("names.csv"), "name,a@b,hss1\n").unwrap();
    assert_eq!(processor.handle().reread(), Ok(true));
    assert_eq!(router.imsi("001010000000001"), "exact hss9");
    assert_eq!(router.ask(Kind::Name, "", "a@b"), "exact hss1");
    assert_eq!(router.ask(Kind::Name, "", "meter7@iot.example"), "unknown");
}

#[test]
fn a_damaged_block_refuses_its_own_numbers_and_raises_the_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let config = with_files(folder.path());
    imported(
        folder.path(),
        "imsi,001010000000001,hss1\nimsi,001020000000001,hss1\n",
    );
    damage(&folder.path().join("s.num"), "001020000000001");
    let processor = dp::start(config).unwrap();
    let mut router = Router::new(processor.addresses()[0]);
    assert_eq!(router.imsi("001020000000001"), Outcome::Damaged.as_str());
    assert_eq!(router.imsi("001010000000001"), "exact hss1");
    until("the alarm", || {
        let active = processor.handle().alarms().active();
        active.iter().any(|alarm| alarm.number == 10_591)
    });
}
