//! The order of entities and AVPs, services, and what becomes of requests that are not resolved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::{MessageBuilder, known};
use dsr_fabr::Fabr;

use crate::support::{S6A, ULR, message, outcome, outcome_at, settings, why, written};

const RX: u32 = 16_777_236;

fn resolution(subscribers: &str, more: &str) -> Arc<Fabr> {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "s.csv", subscribers);
    let config = settings(&format!(
        "file: {file}
lookups:
  - applications: [{S6A}]
    commands: [{ULR}]
    service: lte-hss
    entities:
      - {{entity: imsi, avps: [userName, subscriptionIdImsi]}}
      - {{entity: msisdn, avps: [msisdn]}}
  - applications: [{RX}]
    service: pcrf
    entities: [{{entity: msisdn, avps: [subscriptionIdE164]}}, {{entity: impu, avps: [subscriptionIdSipUri]}}]
    default: c
{more}"
    ));
    Arc::new(Fabr::load(&config).unwrap())
}

fn subscription(b: &mut MessageBuilder, kind: i32, data: &str) {
    b.group(known::SUBSCRIPTION_ID, |group| {
        group
            .put(known::SUBSCRIPTION_ID_TYPE, kind)
            .put(known::SUBSCRIPTION_ID_DATA, data);
    });
}

#[test]
fn entities_and_avps_are_tried_in_order_and_a_range_stands_in() {
    let fabr = resolution(
        "imsi,001010000000001,a\nimsi,00102*,b\nimsi,001020..001021,c\nmsisdn,49170,lte-hss=c\nmsisdn,49171,pcrf=a\n",
        "",
    );
    let to = |user: &str, msisdn: &[u8]| {
        outcome(
            &fabr,
            &message(S6A, ULR, |b| {
                b.put(known::USER_NAME, user).put(known::MSISDN, msisdn);
            }),
        )
    };
    const MSISDN: &[u8] = &[0x94, 0x71, 0xf0];
    assert_eq!(to("001010000000001", MSISDN), "hss.a.example/a.example");
    // The range with the most digits; it counts before the next entity.
    assert_eq!(to("001022000000001", MSISDN), "hss.b.example/");
    assert_eq!(to("001021999999999", MSISDN), "/c.example");
    // Not known: the next entity. A subscriber without a destination for the service is not known either.
    assert_eq!(to("001010000000002", MSISDN), "/c.example");
    assert_eq!(to("nothing", MSISDN), "/c.example");
    assert_eq!(to("001010000000002", &[0x94, 0x71, 0xf1]), "next");
    // The second AVP where the first has none.
    let second = message(S6A, ULR, |b| {
        b.put(known::USER_NAME, "alice");
        subscription(b, 1, "001010000000001");
    });
    assert_eq!(outcome(&fabr, &second), "hss.a.example/a.example");
    assert_eq!(
        why(&fabr, &second),
        "imsi: User-Name `alice` is not one; imsi: Subscription-Id of END_USER_IMSI 001010000000001; \
         destination a by file"
    );
    let unknown = message(S6A, ULR, |b| {
        b.put(known::USER_NAME, "001010000000009");
    });
    assert_eq!(
        why(&fabr, &unknown),
        "imsi: User-Name 001010000000009; imsi 001010000000009 is not known; msisdn: no MSISDN; onNoMatch"
    );
}

#[test]
fn each_service_has_its_destination_and_each_lookup_its_default() {
    let fabr = resolution(
        "msisdn,49170,a,pcrf=b\nmsisdn,49171,lte-hss=a\nimpu,sip:*@x,b\n",
        "",
    );
    let of = |application: u32, command: u32, number: &str| {
        outcome(
            &fabr,
            &message(application, command, |b| {
                b.put(known::MSISDN, &[0x94, 0x71, 0xf0]);
                subscription(b, 0, number);
            }),
        )
    };
    assert_eq!(of(S6A, ULR, "49170"), "hss.a.example/a.example");
    assert_eq!(of(RX, 265, "49170"), "hss.b.example/");
    assert_eq!(of(RX, 265, "49171"), "/c.example", "the default");
    let by_identity = message(RX, 265, |b| {
        subscription(b, 0, "49172");
        subscription(b, 2, "sip:bob@x");
    });
    assert_eq!(outcome(&fabr, &by_identity), "hss.b.example/");
}

#[test]
fn each_exception_has_an_action_of_its_own() {
    let fabr = resolution(
        "imsi,001010000000001,a\n",
        "invalidMccs: ['999', '300-309']
queriesPerSecond: 2
onUnknownCommand: {destination: b}
onNoValidAddress: {answer: {resultCode: 5001, vendorId: 10415, message: who}}
onNoMatch: {answer: {resultCode: 3002, message: where}}
onDatabaseCongested: abandon
",
    );
    let of = |application: u32, command: u32, user: &str| {
        let user = message(application, command, |b| {
            b.put(known::USER_NAME, user);
        });
        outcome(&fabr, &user)
    };
    assert_eq!(of(S6A, 318, "001010000000001"), "hss.b.example/");
    assert_eq!(of(4, ULR, "001010000000001"), "hss.b.example/");
    assert_eq!(of(S6A, ULR, "alice"), "10415:5001 who");
    assert_eq!(of(S6A, ULR, "001010000000002"), "0:3002 where");
    for invalid in ["999010000000001", "300010000000001", "309010000000001"] {
        assert_eq!(of(S6A, ULR, invalid), "10415:5001 who", "{invalid}");
    }
    assert_eq!(of(S6A, ULR, "310010000000001"), "0:3002 where");
    // Two queries a second for each worker; requests without an address ask nothing.
    let (seat, now) = (dsr_app::seat(fabr.clone()), Instant::now());
    let at = |user: &str, after: u64| {
        let user = message(S6A, ULR, |b| {
            b.put(known::USER_NAME, user);
        });
        outcome_at(&*seat, &user, now + Duration::from_millis(after))
    };
    assert_eq!(at("001010000000001", 0), "hss.a.example/a.example");
    for after in [1, 2, 3] {
        assert_eq!(at("alice", after), "10415:5001 who");
    }
    assert_eq!(at("001010000000002", 900), "0:3002 where");
    assert_eq!(at("001010000000001", 999), "drop");
    assert_eq!(at("001010000000001", 1000), "hss.a.example/a.example");
}

#[test]
fn wrong_settings_are_named_with_what_would_be_right() {
    for (yaml, wanted) in [
        ("lookups: [{entities: []}]", "one to 3 entities"),
        (
            "lookups: [{entities: [{entity: imsi, avps: []}]}]",
            "one or 2 AVPs",
        ),
        (
            "lookups: [{entities: [{entity: imsi, avps: [userName, userName, userName]}]}]",
            "one or 2 AVPs",
        ),
        (
            "lookups: [{entities: [{entity: imsi, avps: [userName]}, {entity: imsi, avps: [userName]}]}]",
            "`imsi` is there twice",
        ),
        (
            "lookups: [{entities: [{entity: imsi, avps: [msisdn]}]}]",
            "MSISDN has an MSISDN, which imsi is not",
        ),
        (
            "lookups: [{entities: [{entity: imsi, avps: [userName]}], default: nowhere}]",
            "unknown destination `nowhere`",
        ),
        (
            "onNoMatch: {destination: nowhere}",
            "unknown destination `nowhere`",
        ),
        ("invalidMccs: ['26']", "`26` is not a country code"),
        ("invalidMccs: ['310-300']", "is not a country code"),
        ("lookups: [{service: hlr}]", "hlr"),
    ] {
        let text = format!("destinations: [{{name: a, realm: a.example}}]\n{yaml}\n");
        let report = settings::from_str::<dsr_fabr::config::Fabr>(&text, "test").unwrap_err();
        let report = report.to_string();
        assert!(
            report.contains(wanted) && report.contains(":2:"),
            "{yaml}: {report}"
        );
    }
    for (destinations, wanted) in [
        ("{name: a}", "neither realm nor host"),
        ("{name: 'a,b', realm: x}", "comma"),
        ("{name: '', realm: x}", "no destination"),
        ("{name: a, realm: x}, {name: a, realm: y}", "`a` is there twice"),
    ] {
        let text = format!("destinations: [{destinations}]\n");
        let report = settings::from_str::<dsr_fabr::config::Fabr>(&text, "test").unwrap_err();
        assert!(report.to_string().contains(wanted), "{destinations}: {report}");
    }
}
