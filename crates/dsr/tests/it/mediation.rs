//! Mediation at the wire: what is changed, what is not, what is counted and explained.

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use dsr::{Config, Event};

use crate::support::{MME, answered, client, config, one_list, run, ulr, ulr_with, world};

const HSS: &str = "hss1.example";

fn rules(yaml: &str) -> Config {
    let mut config = config();
    let read: Config = settings::from_str(&format!("mediation:\n  rules:\n{yaml}"), "test")
        .unwrap_or_else(|report| panic!("{report}"));
    config.mediation = read.mediation;
    config
}

/// The data of every AVP of this vendor and code.
fn all(message: &MessageMut, vendor: u32, code: u32) -> Vec<Vec<u8>> {
    let avps = message.avps().flatten();
    avps.filter(|avp| avp.vendor == vendor && avp.code == code)
        .map(|avp| avp.data.to_vec())
        .collect()
}

#[test]
fn requests_and_answers_that_fit_are_changed_and_no_others() {
    run(async {
        let config = rules(
            "  - name: number
    when:
      applications: [16777251]
      commands: [316]
      peers: [MME.example]
      proxiable: true
      avps:
      - {avp: User-Name, startsWith: ['00101']}
      - {avp: RAT-Type, equals: [EUTRAN]}
      - {avp: Destination-Host, present: false}
    changes:
    - replace: {avp: User-Name, value: '001019999999999'}
    - remove: Visited-PLMN-Id
    - add: {avp: '99999:7', value: '0x0102'}
    - add: {avp: Subscription-Id, value: '{ Subscription-Id-Type = 1 Subscription-Id-Data = \"5\" }'}
  - name: later
    when: {avps: [{avp: Subscription-Id/Subscription-Id-Data, equals: ['5']}]}
    changes: [{replace: {avp: Origin-Realm, value: inside.example}}]
    last: true
  - name: never
    when: {commands: [316], avps: [{avp: Subscription-Id, present: true}]}
    changes: [{remove: User-Name}]
  - name: back
    messages: answers
    when: {results: [5001], peers: [hss1.example]}
    changes: [{replace: {avp: Result-Code, value: '5012'}}, {add: {avp: Error-Message, value: 'say \"no\"'}}]
",
        );
        let (dsr, _servers, mut peers) = world(config, [HSS], &one_list(&[HSS])).await;
        let mut mme = client(&dsr, MME).await;
        let request = ulr("001010000000001");
        mme.send(request.as_bytes()).await;
        let seen = peers[0].expect(command::UPDATE_LOCATION).await;
        assert_eq!(seen.require(known::USER_NAME).unwrap(), "001019999999999");
        assert_eq!(seen.require(known::ORIGIN_REALM).unwrap(), "inside.example");
        assert_eq!(all(&seen, 10415, 1407), Vec::<Vec<u8>>::new());
        assert_eq!(all(&seen, 99_999, 7), [[1, 2]]);
        assert_eq!(all(&seen, 0, 443).len(), 1);
        assert_eq!(
            seen.require(known::SESSION_ID).unwrap(),
            request.require(known::SESSION_ID).unwrap()
        );
        assert_eq!(seen.as_bytes().len(), seen.header().length as usize);
        peers[0].answer(&seen, ResultCode(5001)).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode(5012))
            .await;
        assert_eq!(answer.require(known::ERROR_MESSAGE).unwrap(), "say \"no\"");
        assert_eq!(dsr.count(Event::Mediated), 2);
        // Each of these misses one condition; it arrives as it was sent.
        let others = [
            ulr("002010000000001"),
            ulr_with("001010000000001", |b| {
                b.put(known::DESTINATION_HOST, HSS);
            }),
        ];
        for request in others {
            mme.send(request.as_bytes()).await;
            let seen = answered(&mut mme, &mut peers[0]).await;
            assert_eq!(
                seen.require(known::USER_NAME).unwrap(),
                request.require(known::USER_NAME).unwrap()
            );
            assert_eq!(all(&seen, 10415, 1407).len(), 1);
        }
        assert_eq!(dsr.count(Event::Mediated), 2);
        let counted = |name: &str| {
            let rows = dsr.measurements();
            rows.iter()
                .any(|row| row.kind == "mediation_rule" && row.name == name && row.count == 1)
        };
        crate::support::until(|| counted("number") && counted("later") && counted("back")).await;
    });
}

#[test]
fn mediated_requests_are_routed_by_what_they_are_now() {
    run(async {
        let config = rules(
            "  - when: {avps: [{avp: User-Name, endsWith: ['7']}]}
    changes: [{add: {avp: Destination-Host, value: hss2.example}}]
",
        );
        let (dsr, _servers, mut peers) = world(config, [HSS, "hss2.example"], "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("17").as_bytes()).await;
        answered(&mut mme, &mut peers[1]).await;
        mme.send(ulr("18").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
    });
}

#[test]
fn a_message_is_explained() {
    run(async {
        let config = rules(
            "  - name: of-7
    when: {avps: [{avp: User-Name, endsWith: ['7']}]}
    changes: [{replace: {avp: Destination-Realm, value: other.example}}]
",
        );
        let (dsr, _servers, _peers) = world(config, [HSS], &one_list(&[HSS])).await;
        let ulr = |user: &str| {
            format!(
                "ULR app=16777251 {{ Session-Id = \"x\" Destination-Realm = \"a\" User-Name = \"{user}\" }}"
            )
        };
        let why = dsr.why(MME, &ulr("17"));
        assert_eq!(why["mediation"][0]["rule"], "of-7");
        assert_eq!(why["mediation"][0]["outcome"], "changes the message");
        assert!(
            why["message"].as_str().unwrap().contains("other.example"),
            "{why}"
        );
        assert_eq!(why["route"]["outcome"], "route list all");
        assert_eq!(why["route"]["peers"][0]["state"], "available");
        let why = dsr.why(MME, &ulr("18"));
        assert_eq!(why["mediation"][0]["outcome"], "when.avps[0] does not hold");
        assert!(dsr.why(MME, "nonsense")["error"].is_string());
        assert_eq!(dsr.count(Event::Mediated), 0, "nothing was sent");
    });
}

#[test]
fn rules_that_cannot_be_are_named() {
    let fails = |rule: &str, wanted: &str| {
        let yaml = format!("mediation: {{rules: [{rule}]}}");
        let report = settings::from_str::<Config>(&yaml, "test")
            .unwrap_err()
            .to_string();
        assert!(report.contains(wanted), "{report}");
    };
    fails("{changes: []}", "is empty");
    fails("{changes: [{remove: No-Such}]}", "unknown AVP `No-Such`");
    fails(
        "{changes: [{remove: Route-Record}]}",
        "needed to route the answer",
    );
    fails(
        "{when: {avps: [{avp: User-Name/Class, present: true}]}, changes: [{remove: Class}]}",
        "User-Name is not a group",
    );
    fails(
        "{changes: [{add: {avp: RAT-Type, value: x}}]}",
        "is not a value of RAT-Type",
    );
    // Nothing can be smuggled in beside a value.
    fails(
        "{changes: [{add: {avp: RAT-Type, value: '1004 Session-Id = \"x\"'}}]}",
        "is not a value of RAT-Type",
    );
    fails(
        "{when: {results: [2001]}, changes: [{remove: User-Name}]}",
        "about answers",
    );
    fails(
        "{when: {avps: [{avp: RAT-Type, startsWith: ['1']}]}, changes: [{remove: User-Name}]}",
        "is not text",
    );
    fails(
        "{when: {avps: [{avp: RAT-Type}]}, changes: [{remove: User-Name}]}",
        "has no condition, or more than one",
    );
}

#[test]
fn messages_that_rules_make_too_long_are_counted() {
    run(async {
        let mut config = rules(
            "  - {messages: requests, when: {avps: [{avp: User-Name, endsWith: ['7']}]}, changes: [{remove: RAT-Type}]}
  - {messages: answers, changes: [{remove: Error-Message}]}
",
        );
        // 17 MB in all; a message has 16 at most.
        let value = "x".repeat(1 << 20);
        for rule in &mut config.mediation.rules {
            let add = dsr::config::AvpValue {
                avp: "99999:7".to_owned(),
                value: value.clone(),
            };
            rule.changes = vec![dsr::config::Change::Add(add); 17];
        }
        let (dsr, _servers, mut peers) = world(config, [HSS], &one_list(&[HSS])).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("17").as_bytes()).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::TOO_BUSY)
            .await;
        assert_eq!(dsr.count(Event::MediationTooLong), 1);
        mme.send(ulr("18").as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        assert_eq!(dsr.count(Event::MediationTooLong), 2);
        assert_eq!(dsr.count(Event::Mediated), 0);
    });
}
