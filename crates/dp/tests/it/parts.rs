//! All subscribers of a server, taken in parts beside changes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dp_proto::Kind;
use http::Method;
use sbi::client::Origin;
use testpeer::sbi::{client, request, send};
use testpeer::{local, until};

use crate::secured::{following, with_data};
use crate::support::{Router, metric};

/// More than two parts of them.
const NUMBERS: u64 = 25_000;
const NAMES: u64 = 50;
/// Transactions beside the parts.
const CHANGES: u64 = 60;

fn imsi(number: u64) -> String {
    format!("00101{number:010}")
}

/// A transaction, and what becomes of its subject.
fn change(step: u64) -> (String, (Kind, String), Option<&'static str>) {
    let number = imsi(step * 6_551 % (NUMBERS + 9_000));
    let (kind, to) = match step % 3 {
        0 => ("imsi", None),
        1 => ("imsi", Some("hss2")),
        _ => ("name", Some("hss3")),
    };
    let subject = match kind {
        "imsi" => (Kind::Imsi, number),
        _ => (Kind::Name, format!("n{step}@x")),
    };
    let destinations = to.map_or("null".to_owned(), |to| format!("\"{to}\""));
    let body = format!(
        "[{{\"{kind}\": \"{}\", \"destinations\": {destinations}}}]",
        subject.1
    );
    (body, subject, to)
}

#[test]
fn parts_that_are_taken_beside_changes_are_the_records_of_one_moment() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::from("#signalbox-numbers,1\n");
        (0..NUMBERS).for_each(|number| writeln!(text, "imsi,{},hss1", imsi(number)).unwrap());
        (0..NAMES).for_each(|number| writeln!(text, "name,n{number}@x,hss1").unwrap());
        writeln!(text, "#end,{}", NUMBERS + NAMES).unwrap();
        let server = sds::start(with_data(folder.path(), &text)).unwrap();
        let origin: Origin = format!("http://{}", server.addresses()[0]).parse().unwrap();
        let (client, mut expected) = (client("CRM-test"), BTreeMap::new());
        for number in 0..NUMBERS {
            expected.insert((Kind::Imsi as u8, imsi(number)), "hss1");
        }
        for number in 0..NAMES {
            expected.insert((Kind::Name as u8, format!("n{number}@x")), "hss1");
        }
        let processor = dp::start(following(&server, "http", folder.path())).unwrap();
        let mut changed = Vec::new();
        for step in 0..CHANGES {
            let (body, subject, to) = change(step);
            let sent = request(Method::POST, "/transactions", "application/json", body);
            assert_eq!(send(&client, &origin, sent).await.unwrap().status, 200);
            let key = (subject.0 as u8, subject.1.clone());
            match to {
                Some(to) => expected.insert(key, to),
                None => expected.remove(&key),
            };
            changed.push(subject);
        }
        until("the last transaction", async || {
            metric(&processor, "signalbox_dp_journal_offset") == (CHANGES + 1) as f64
        })
        .await;
        let mut router = Router::new(processor.addresses()[0]);
        changed.extend([0, NUMBERS / 2, NUMBERS - 1].map(|number| (Kind::Imsi, imsi(number))));
        for (kind, value) in changed {
            let found = expected.get(&(kind as u8, value.clone()));
            let outcome = found.map_or("unknown".to_owned(), |to| format!("exact {to}"));
            assert_eq!(router.ask(kind, "", &value), outcome, "{value}");
        }
        let is_name = |key: &&(u8, String)| key.0 == Kind::Name as u8;
        let names = expected.keys().filter(is_name).count();
        assert_eq!(metric(&processor, "signalbox_dp_names"), names as f64);
        assert_eq!(
            metric(&processor, "signalbox_dp_numbers"),
            (expected.len() - names) as f64
        );
        assert_eq!(server.count(sds::Event::Checkpoint), 1);
        processor.stop().unwrap();
        server.stop().unwrap();
    });
}
