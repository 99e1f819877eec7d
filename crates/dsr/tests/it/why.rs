//! `dsr why` says where a request goes: the tables that decide are the same.

use std::fmt::Write as _;

use diameter::proto::known::{self, command};
use diameter::proto::{Dictionary, ResultCode, text};
use serde_json::Value;

use crate::support::{MME, REALM, client, config, run, world};

const HSS: [&str; 3] = ["hss1.example", "hss2.example", "hss3.example"];
const RULES: &str = "  peerRouteTables:
    - name: default
      rules:
        - {priority: 5, when: {commands: [321], imsi: {startsWith: ['00101']}}, action: {answer: {resultCode: 3001, message: not here}}}
        - {priority: 10, when: {imsi: {startsWith: ['00102']}}, action: {routeList: second}}
        - {priority: 20, when: {imsi: {startsWith: ['00103']}, destinationRealm: {equals: [epc.example]}}, action: {routeList: third}}
        - {priority: 30, when: {commands: [318]}, action: {routeList: first}}
        - {priority: 40, when: {destinationRealm: {equals: [other.example]}}, action: {answer: {resultCode: 5012}}}
  routeLists:
    - {name: first, groups: [first, second]}
    - {name: second, groups: [second]}
    - {name: third, groups: [third, first]}
  routeGroups:
    - {name: first, peers: [{host: hss1.example}]}
    - {name: second, peers: [{host: hss2.example}]}
    - {name: third, peers: [{host: hss3.example}]}
";
const COMMANDS: [(&str, u32); 3] = [("ULR", command::UPDATE_LOCATION), ("AIR", 318), ("PUR", 321)];

/// The servers that an explanation leaves; none: it is answered.
fn expected(explained: &Value) -> Vec<String> {
    let route = &explained["route"];
    let outcome = route["outcome"].as_str().unwrap();
    if let Some(host) = outcome.strip_prefix("the peer ") {
        return vec![host.to_owned()];
    }
    let rows = route["peers"].as_array().unwrap().iter();
    let chosen = rows.filter(|row| row["active"] == true && row["state"] == "available");
    chosen
        .map(|row| row["host"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_thousand_requests_go_where_why_says() {
    run(async {
        let (dsr, _servers, mut peers) = world(config(), HSS, RULES).await;
        let mut mme = client(&dsr, MME).await;
        let (mut served, mut refused) = (0, 0);
        // The same numbers in each run: xorshift (Marsaglia).
        let mut state = 35_u64;
        let mut below = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % most
        };
        for number in 0..1_000 {
            let (name, code) = COMMANDS[below(3)];
            let (user, realm) = (below(4) + 1, [REALM, "EPC.example", "other.example"][below(3)]);
            let mut message = format!(
                "{name} app=16777251 flags=RP {{ Session-Id = \"{MME};{number}\" Origin-Host = \"{MME}\" Origin-Realm = \"{REALM}\" \
                 User-Name = \"0010{user}000000{number:04}\" Destination-Realm = \"{realm}\""
            );
            if below(3) == 0 {
                let host = ["hss1.example", "hss2.example", "HSS3.example", "nowhere.example"][below(4)];
                write!(message, " Destination-Host = \"{host}\"").unwrap();
            }
            message.push_str(" }");
            let explained = dsr.why(MME, &message);
            let octets = text::parse(&message, Dictionary::standard()).unwrap();
            let hex: String = octets
                .as_bytes()
                .iter()
                .map(|octet| format!("{octet:02x} "))
                .collect();
            // As digits, and without the name of the peer, which is its Origin-Host.
            let of_digits = dsr.why("", &hex);
            assert_eq!(of_digits["route"], explained["route"], "{message}");
            mme.send(octets.as_bytes()).await;
            let [first, second, third] = &mut peers[..] else {
                unreachable!()
            };
            let (at, request) = tokio::select! {
                request = first.expect(code) => (Some(0), request),
                request = second.expect(code) => (Some(1), request),
                request = third.expect(code) => (Some(2), request),
                answer = mme.expect(code) => (None, answer),
            };
            let wanted = expected(&explained);
            if let Some(at) = at {
                served += 1;
                assert!(
                    wanted.iter().any(|host| host.eq_ignore_ascii_case(HSS[at])),
                    "{message}: {}, {explained:#}",
                    HSS[at]
                );
                peers[at].answer(&request, ResultCode::SUCCESS).await;
                mme.expect_result(code, ResultCode::SUCCESS).await;
                continue;
            }
            refused += 1;
            let result = request.get(known::RESULT_CODE).unwrap().unwrap();
            let outcome = explained["route"]["outcome"].as_str().unwrap();
            let is_answered = outcome.starts_with("answer ") && outcome.contains(&format!("({result})"));
            // A host without a peer has no route.
            let has_no_route = result == ResultCode::UNABLE_TO_DELIVER.0
                && (outcome.contains("noRoute") || wanted.iter().all(|host| host == "nowhere.example"));
            assert!(is_answered || has_no_route, "{message}: {result}, {explained:#}");
        }
        assert!(
            served > 200 && refused > 200,
            "{served} served, {refused} refused"
        );
    });
}
