//! Signed queries (RFC 8945), with dig as the other side.

use std::process::Command;
use std::str::FromStr as _;

use domain::base::iana::Rcode;
use domain::base::{MessageBuilder, Name, Rtype};
use domain::rdata::tsig::Time48;
use domain::tsig::{ClientTransaction, Key, KeyName};
use enum_server::config::{Algorithm, TsigKey};
use settings::{Faults, Secret, Validate as _};

use crate::support::{Client, config, metric, query, start, until};

const KNOWN: &str = "7.6.5.4.3.2.1.0.6.6.3.4.e164enum.net";
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const OTHER: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

fn dig(port: u16, key: &str, more: &[&str]) -> Option<String> {
    let mut dig = Command::new("dig");
    dig.args([
        "@127.0.0.1",
        "-p",
        &port.to_string(),
        "-y",
        key,
        "+tries=1",
        "+time=60",
        KNOWN,
        "NAPTR",
    ])
    .args(more);
    let output = testpeer::skip::output(&mut dig)?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn signed_queries_get_signed_answers_and_wrong_signatures_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, format!("{KEY}\n")).unwrap();
    let mut wanted = config();
    let key = |name: &str, algorithm| TsigKey {
        name: name.to_owned(),
        algorithm,
        secret: Secret::File(path.clone()),
    };
    wanted.tsig = vec![
        key("client.example", Algorithm::HmacSha256),
        key("old.example", Algorithm::HmacSha1),
        key("new.example", Algorithm::HmacSha512),
    ];
    wanted.require_tsig = true;
    let server = start(wanted);
    let port = server.addresses()[0].port();
    let client = Client::new(server.addresses()[0]);
    let unsigned = client.ask(&query(1, KNOWN, Rtype::NAPTR, Some(1_232)));
    assert_eq!(unsigned.header().rcode(), Rcode::REFUSED);
    for (name, algorithm) in [
        ("client.example", "hmac-sha256"),
        ("old.example", "hmac-sha1"),
        ("new.example", "hmac-sha512"),
    ] {
        for more in [&[][..], &["+tcp"], &["+noedns"]] {
            let Some(text) = dig(port, &format!("{algorithm}:{name}:{KEY}"), more) else {
                return;
            };
            assert!(
                text.contains("status: NOERROR") && text.contains("sip:+436601234567"),
                "{text}"
            );
            assert!(text.contains("TSIG PSEUDOSECTION"), "{text}");
            assert!(
                !text.contains("Couldn't verify") && !text.contains("failed"),
                "{text}"
            );
        }
    }
    for (key, error) in [
        (format!("hmac-sha256:client.example:{OTHER}"), "BADSIG"),
        (format!("hmac-sha256:unknown.example:{KEY}"), "BADKEY"),
        (format!("hmac-sha384:client.example:{KEY}"), "BADKEY"),
    ] {
        let Some(text) = dig(port, &key, &[]) else { return };
        assert!(
            text.contains("status: NOTAUTH") && text.contains(error),
            "{key}: {text}"
        );
        assert!(!text.contains("sip:"), "{text}");
    }
    until("signatures that do not fit are counted", || {
        metric(&server, "signalbox_enum_answers_total{outcome=\"signature\"}") == 3.0
    });
}

/// RFC 8945 §5.3: an answer that its signature leaves no room for has TC, the question, and the signature.
#[test]
fn the_longest_question_and_the_longest_name_of_a_key_fit_without_edns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, KEY).unwrap();
    let labels = |lengths: &[usize]| {
        let labels: Vec<String> = lengths.iter().map(|length| "k".repeat(*length)).collect();
        labels.join(".")
    };
    let mut wanted = config();
    let longest = labels(&[63, 34]);
    wanted.tsig = vec![TsigKey {
        name: longest.clone(),
        algorithm: Algorithm::HmacSha512,
        secret: Secret::File(path),
    }];
    let mut longer = wanted.clone();
    longer.tsig[0].name.push('k');
    for (config, count) in [(&wanted, 0), (&longer, 1)] {
        let mut faults = Faults::default();
        config.validate(&mut faults);
        assert_eq!(faults.into_vec().len(), count);
    }
    let server = start(wanted);
    let client = Client::new(server.addresses()[0]);
    let name = Name::<Vec<u8>>::from_str(&labels(&[63, 63, 63, 61])).unwrap();
    let mut question = MessageBuilder::new_vec().question();
    question.push((&name, Rtype::NAPTR)).unwrap();
    let mut additional = question.additional();
    let algorithm = domain::tsig::Algorithm::Sha512;
    let secret = b"0123456789abcdef0123456789abcdef";
    let key = Key::new(
        algorithm,
        secret,
        KeyName::from_str(&longest).unwrap(),
        None,
        None,
    )
    .unwrap();
    let transaction = ClientTransaction::request(&key, &mut additional, Time48::now()).unwrap();
    let mut answer = client.ask(&additional.finish());
    assert!(answer.as_slice().len() <= 512);
    transaction.answer(&mut answer, Time48::now()).unwrap();
    assert_eq!(answer.sole_question().unwrap().qname(), &name);
}
