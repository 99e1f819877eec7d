//! Each measure by three messages, a good one, a bad one and an excepted one: in all modes, in each direction that it screens.

use std::time::Duration;

use diameter_proto::known::{self, application, command};
use diameter_proto::{MessageBuilder, MessageMut};

use crate::support::*;

/// A measure in a direction.
struct Case {
    measure: &'static str,
    /// Who sends the messages: a foreign peer, or one of ours what goes out.
    peer: &'static str,
    /// What has happened before.
    before: fn(&mut Bench),
    good: MessageMut,
    bad: MessageMut,
    excepted: MessageMut,
}

/// What makes a message bad for a measure without state, coming in and going out; none: it does not screen what goes out.
type Change = fn(&mut Sent);
const STATELESS: [(&str, Change, Option<Change>); 14] = [
    (
        "AppIdWL",
        |sent| sent.application = 16_777_217,
        Some(|sent| sent.application = 16_777_217),
    ),
    (
        "AppCmdCst",
        |sent| sent.command = 322,
        Some(|sent| sent.command = 322),
    ),
    (
        "RealmWLScr",
        |sent| sent.realm = "epc.mnc099.mcc208.3gppnetwork.org".to_owned(),
        Some(|sent| sent.to_realm = "epc.mnc099.mcc208.3gppnetwork.org".to_owned()),
    ),
    (
        "OhOrCstChk",
        |sent| sent.host = format!("mme1.evil{FRANCE}"),
        Some(|sent| sent.host = format!("mme1.evil{HOME}")),
    ),
    ("DrOrMatch", |sent| sent.realm = HOME.to_ascii_uppercase(), None),
    (
        "VplmnORCst",
        |sent| sent.visited = Some(IN_USA),
        Some(|sent| sent.visited = Some(IN_USA)),
    ),
    (
        "RealmIMSICst",
        |sent| sent.imsi = "208101234567890".to_owned(),
        Some(|sent| sent.imsi = "262011234567890".to_owned()),
    ),
    (
        "SubsIdenValid",
        |sent| sent.imsi = "310261234567890".to_owned(),
        Some(|sent| sent.imsi = "310261234567890".to_owned()),
    ),
    ("SpecAVPScr", barred, Some(barred)),
    ("AVPInstChk", twice, Some(twice)),
    ("AVPWLScr", unlisted, Some(unlisted)),
    (
        "OhOrFrmChk",
        |sent| sent.host = "mme1".to_owned(),
        Some(|sent| sent.host = "mme1".to_owned()),
    ),
    (
        "SesIdValChk",
        |sent| sent.session_first = false,
        Some(|sent| sent.session_first = false),
    ),
    (
        "DhDrFrmChk",
        |sent| sent.to_host = Some(format!("hss.{USA}")),
        Some(|sent| sent.to_host = Some(format!("hss.{USA}"))),
    ),
];

fn barred(sent: &mut Sent) {
    sent.more = |builder| raw(builder, 10415, 1032, &[0, 0, 0, 0]);
}

fn twice(sent: &mut Sent) {
    sent.more = |builder| raw(builder, 10415, 1407, &IN_FRANCE);
}

fn unlisted(sent: &mut Sent) {
    sent.more = |builder| raw(builder, 10415, 1405, &[0, 0, 0, 1]);
}

fn nothing(_: &mut Bench) {}

fn stateless() -> Vec<Case> {
    let case = |measure, peer, good: Sent, change: Change| {
        let mut bad = good.clone();
        change(&mut bad);
        Case {
            measure,
            peer,
            before: nothing,
            good: good.message(),
            bad: bad.message(),
            excepted: bad.excepted().message(),
        }
    };
    let ingress = STATELESS.map(|(measure, change, _)| case(measure, FOREIGN_PEER, Sent::new(ULR), change));
    let egress = STATELESS.into_iter().filter_map(|(measure, _, change)| {
        change.map(|change| case(measure, OWN_PEER, Sent::of_ours(ULR), change))
    });
    ingress.into_iter().chain(egress).collect()
}

/// Subscribers of ours, the second one excepted, have registered in France.
fn both_register(bench: &mut Bench) {
    let first = Sent::new(ULR);
    for imsi in [first.excepted().imsi, first.imsi] {
        registers(bench, &imsi);
    }
}

/// A subscriber of France and an excepted one have registered here.
fn guests_register(bench: &mut Bench) {
    let guest = Sent::of_ours(ULR);
    for sent in [guest.excepted(), guest] {
        let answer = sent.answer(&format!("hss1.{FRANCE}"), 2001);
        assert_eq!(bench.exchange(OWN_PEER, &sent.message(), &answer), Fate::WentOn);
    }
}

/// Two authentications of a second are the most that a peer may send.
fn sends_two(bench: &mut Bench, peer: &str, sent: &Sent) {
    for _ in 0..2 {
        assert_eq!(bench.request(peer, &sent.message()), Fate::WentOn);
    }
}

fn initial_request(imsi: &str) -> MessageMut {
    let mut builder = MessageBuilder::request(command::CREDIT_CONTROL, application::GX);
    builder
        .put(known::SESSION_ID, "pgw;1;2")
        .put(known::ORIGIN_HOST, &format!("pgw.{FRANCE}"))
        .put(known::ORIGIN_REALM, FRANCE)
        .put(known::DESTINATION_REALM, HOME)
        .put(known::CC_REQUEST_TYPE, 1)
        .group(known::SUBSCRIPTION_ID, |group| {
            group
                .put(known::SUBSCRIPTION_ID_TYPE, 1)
                .put(known::SUBSCRIPTION_ID_DATA, imsi);
        });
    builder.finish().unwrap()
}

fn stateful() -> Vec<Case> {
    let case = |measure, before, good: Sent, bad: Sent| Case {
        measure,
        peer: FOREIGN_PEER,
        before,
        good: good.message(),
        bad: bad.message(),
        excepted: bad.excepted().message(),
    };
    let of_host = |host: &str, sent: Sent| Sent {
        host: format!("{host}.{FRANCE}"),
        ..sent
    };
    vec![
        case(
            "MsgRateMon",
            |bench| sends_two(bench, FOREIGN_PEER, &Sent::new(AIR)),
            Sent::new(ULR),
            Sent::new(AIR),
        ),
        Case {
            peer: OWN_PEER,
            ..case(
                "MsgRateMon",
                |bench| sends_two(bench, OWN_PEER, &Sent::of_ours(AIR)),
                Sent::of_ours(ULR),
                Sent::of_ours(AIR),
            )
        },
        case(
            "TimeDistChk",
            |bench| {
                both_register(bench);
                bench.pass(Duration::from_secs(3600));
            },
            Sent::new(ULR),
            in_usa(ULR),
        ),
        case(
            "PreLocChk",
            both_register,
            Sent::new(NOR),
            of_host("mme2", Sent::new(NOR)),
        ),
        case(
            "SrcHostValHss",
            guests_register,
            Sent::of_hss(IDR),
            of_host("hss2", Sent::of_hss(IDR)),
        ),
        case("SrcHostValMme", both_register, Sent::new(ULR), in_usa(ULR)),
        Case {
            measure: "SesIntValChk",
            peer: FOREIGN_PEER,
            before: both_register,
            good: initial_request("262011234567890"),
            bad: initial_request("262010000000001"),
            excepted: initial_request("262019900000001"),
        },
    ]
}

#[test]
fn each_measure_has_its_way_with_good_bad_and_excepted_messages_in_all_modes_and_directions() {
    let cases: Vec<Case> = stateless().into_iter().chain(stateful()).collect();
    for measure in MEASURES {
        assert!(cases.iter().any(|case| case.measure == measure), "{measure}");
    }
    for (mode, fate, outcome) in MODES {
        for case in &cases {
            let what = format!("{} of {} in {mode}", case.measure, case.peer);
            let mut bench = Bench::one(case.measure, mode);
            (case.before)(&mut bench);
            for (message, becomes) in [
                (&case.good, Fate::WentOn),
                (&case.bad, fate),
                (&case.excepted, Fate::WentOn),
            ] {
                assert_eq!(bench.request(case.peer, message), becomes, "{what}");
            }
            let mut found: Vec<_> = bench
                .findings(case.measure)
                .into_iter()
                .map(|(_, outcome, count)| (outcome, count))
                .collect();
            found.sort_unstable();
            let mut expected = [(outcome, 1), ("excepted", 1)];
            expected.sort_unstable();
            assert_eq!(found, expected, "{what}");
        }
    }
}

#[test]
fn a_message_of_a_measure_that_is_off_goes_on() {
    for case in stateless() {
        let other = if case.measure == "DrOrMatch" {
            "DhDrFrmChk"
        } else {
            "DrOrMatch"
        };
        let mut bench = Bench::one(other, DROP);
        assert_eq!(
            bench.request(case.peer, &case.bad),
            Fate::WentOn,
            "{}",
            case.measure
        );
    }
}
