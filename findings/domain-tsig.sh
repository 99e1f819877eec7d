#!/usr/bin/env bash
# What the DNS crate `domain` says to a request whose transaction signature (TSIG) is not that of the key.
#
# Guess:     the answer has RCODE NOTAUTH and the TSIG error BADSIG (16), as RFC 8945 §5.2.2 has it; the name of an algorithm is a
#            domain name and compared without case.
# Behaviour: the TSIG error is 1, FORMERR, so that dig and resolvers report a malformed message where the secret is wrong. An
#            algorithm that is written HMAC-SHA256. is unknown: BADKEY (17).
# Version:   domain 0.12.3 (crates.io), feature tsig.
# Matters:   an ENUM server on it has to put BADSIG into the answer itself, and to lower the case of the algorithm before the crate
#            sees the request; else an operator looks for a broken resolver instead of a mistyped secret.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
domain = { version = "=0.12.3", features = ["std", "tsig"] }
TOML
cat >src/main.rs <<'RS'
use std::str::FromStr;

use domain::base::iana::{Class, Rtype};
use domain::base::name::Name;
use domain::base::{Message, MessageBuilder};
use domain::rdata::tsig::{Time48, Tsig};
use domain::tsig::{Algorithm, ClientTransaction, Key, KeyName, ServerTransaction};

fn key(secret: u8) -> Key {
    Key::new(Algorithm::Sha256, &[secret; 32], KeyName::from_str("enum.").unwrap(), None, None).unwrap()
}

fn main() {
    let now = Time48::now();
    for (what, secret, upper) in [("the right secret", 1, false), ("another secret", 2, false), ("HMAC-SHA256", 1, true)] {
        let mut query = MessageBuilder::new_vec().question();
        query.push((Name::<Vec<u8>>::from_str("1.e164.arpa.").unwrap(), Rtype::NAPTR, Class::IN)).unwrap();
        let mut query = query.additional();
        ClientTransaction::request(key(secret), &mut query, now).unwrap();
        let mut octets = query.finish();
        if upper {
            let at = octets.windows(11).position(|part| part == b"hmac-sha256").unwrap();
            octets[at..at + 11].make_ascii_uppercase();
        }
        let mut query = Message::from_octets(octets).unwrap();
        let copy = query.clone();
        match ServerTransaction::request(&key(1), &mut query, now) {
            Ok(_) => println!("{what}: accepted"),
            Err(error) => {
                let answer = error.build_message(&copy, MessageBuilder::new_vec()).unwrap().into_message();
                let record = answer.additional().unwrap().limit_to::<Tsig<_, _>>().next().unwrap().unwrap();
                println!("{what}: {}, TSIG error {}", answer.header().rcode(), record.data().error().to_int());
            }
        }
    }
}
RS
seen=$(cargo run --quiet 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
the right secret: accepted
another secret: NOTAUTH, TSIG error 1
HMAC-SHA256: NOTAUTH, TSIG error 17
SEEN
