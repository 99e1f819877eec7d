//! Which subscriber a message names, and messages that contradict themselves.

use std::time::Duration;

use diameter_proto::known::{self, application, command};
use diameter_proto::{MessageBuilder, MessageMut};

use crate::support::*;

const ULR: u32 = 316;
const AIR: u32 = 318;
const IDR: u32 = 319;
const PUR: u32 = 321;

const OURS: &str = "262011234567890";
const OTHER: &str = "262011234567899";

fn listed(builder: &mut MessageBuilder, data: &[&str]) {
    builder.group(known::SUBSCRIPTION_ID, |group| {
        group.put(known::SUBSCRIPTION_ID_TYPE, 1);
        for data in data {
            group.put(known::SUBSCRIPTION_ID_DATA, *data);
        }
    });
}

fn fate_of(measure: &str, sent: &Sent) -> Fate {
    Bench::one(measure, DROP).request(FOREIGN_PEER, &sent.message())
}

#[test]
fn a_message_that_names_two_subscribers_is_a_finding_of_each_measure_that_reads_one() {
    let ways: [fn(&mut MessageBuilder); 5] = [
        |builder| {
            builder.put(known::USER_NAME, OTHER);
        },
        |builder| listed(builder, &[OTHER]),
        |builder| {
            listed(builder, &[OURS]);
            listed(builder, &[OTHER]);
        },
        |builder| listed(builder, &[OURS, OTHER]),
        |builder| {
            builder.group(known::USER_IDENTIFIER, |group| {
                group.put(known::USER_NAME, OTHER);
            });
        },
    ];
    for (measure, command) in [
        ("RealmIMSICst", ULR),
        ("SubsIdenValid", ULR),
        ("TimeDistChk", AIR),
        ("PreLocChk", PUR),
        ("SrcHostValHss", IDR),
        ("SrcHostValMme", PUR),
    ] {
        for (number, way) in ways.into_iter().enumerate() {
            let sent = Sent {
                more: way,
                ..Sent::new(command)
            };
            assert_eq!(fate_of(measure, &sent), Fate::Dropped, "{measure}, way {number}");
        }
        // A subscriber of a stranger and one of ours.
        let sent = Sent {
            imsi: "208101234567890".to_owned(),
            more: |builder| listed(builder, &[OURS]),
            ..Sent::new(command)
        };
        assert_eq!(fate_of(measure, &sent), Fate::Dropped, "{measure}");
    }
}

/// A CCR of Gx.
fn gx(fill: impl Fn(&mut MessageBuilder)) -> MessageMut {
    let mut builder = MessageBuilder::request(command::CREDIT_CONTROL, application::GX);
    builder
        .put(known::SESSION_ID, &format!("pgw.{FRANCE};1"))
        .put(known::ORIGIN_HOST, &format!("pgw.{FRANCE}"))
        .put(known::ORIGIN_REALM, FRANCE)
        .put(known::DESTINATION_REALM, HOME);
    fill(&mut builder);
    builder.finish().unwrap()
}

#[test]
fn on_gx_a_subscription_id_counts_and_a_user_name_may_be_any_number() {
    let of = |measure: &str, message: &MessageMut| Bench::one(measure, DROP).request(FOREIGN_PEER, message);
    let initial = |builder: &mut MessageBuilder| raw(builder, 0, 416, &[0, 0, 0, 1]);
    let honest = gx(|builder| {
        initial(builder);
        builder.put(known::USER_NAME, "491701234567");
        listed(builder, &[OURS]);
    });
    assert_eq!(of("SubsIdenValid", &honest), Fate::WentOn);
    assert_eq!(of("RealmIMSICst", &honest), Fate::WentOn);
    let two = gx(|builder| {
        initial(builder);
        listed(builder, &[OURS]);
        listed(builder, &[OTHER]);
    });
    let kinds = gx(|builder| {
        raw(builder, 0, 416, &[0, 0, 0, 2]);
        initial(builder);
        listed(builder, &[OURS]);
    });
    for measure in ["SubsIdenValid", "RealmIMSICst", "SesIntValChk"] {
        assert_eq!(of(measure, &two), Fate::Dropped, "{measure}");
    }
    assert_eq!(of("SesIntValChk", &kinds), Fate::Dropped, "two CC-Request-Types");
}

#[test]
fn an_imsi_of_s6a_is_6_to_15_digits_alone() {
    let of = |imsi: &str| {
        fate_of(
            "SubsIdenValid",
            &Sent {
                imsi: imsi.to_owned(),
                ..Sent::new(ULR)
            },
        )
    };
    for good in [OURS, "262011"] {
        assert_eq!(of(good), Fate::WentOn, "{good}");
    }
    for bad in [
        "26201",
        "0262011234567890",
        "6262011234567890",
        "262011234567890@nai.epc.mnc001.mcc262.3gppnetwork.org",
        "26201123456789x",
        "2620112345678901",
    ] {
        assert_eq!(of(bad), Fate::Dropped, "{bad}");
    }
}

#[test]
fn a_user_identifier_of_s6t_names_a_subscriber() {
    let of = |imsi: &'static str| {
        let mut builder = MessageBuilder::request(8_388_718, 16_777_345);
        builder
            .put(known::ORIGIN_HOST, &format!("scef.{FRANCE}"))
            .put(known::ORIGIN_REALM, FRANCE)
            .put(known::DESTINATION_REALM, HOME)
            .group(known::USER_IDENTIFIER, |group| {
                group.put(known::USER_NAME, imsi);
            });
        let message = builder.finish().unwrap();
        Bench::one("SubsIdenValid", DROP).request(FOREIGN_PEER, &message)
    };
    assert_eq!(of(OURS), Fate::WentOn);
    assert_eq!(of("310261234567890"), Fate::Dropped);
}

#[test]
fn a_request_of_ours_with_a_foreign_realm_beside_a_home_one_is_screened() {
    // Behind our own realm a foreign one as Origin-Realm, then as Destination-Realm.
    let origin = Sent {
        host: format!("mme1.{HOME}"),
        realm: HOME.to_owned(),
        more: |builder| {
            builder.put(known::ORIGIN_REALM, FRANCE);
        },
        ..Sent::new(ULR)
    };
    let destination = Sent {
        host: format!("mme1.{HOME}"),
        realm: HOME.to_owned(),
        more: |builder| {
            builder.put(known::DESTINATION_REALM, FRANCE);
        },
        ..Sent::new(ULR)
    };
    for sent in [origin, destination] {
        let mut bench = Bench::one("RealmWLScr", DROP);
        assert_eq!(bench.request(OWN_PEER, &sent.message()), Fate::Dropped);
        assert_eq!(bench.findings("RealmWLScr"), [("west".to_owned(), "dropped", 1)]);
    }
}

#[test]
fn a_message_that_contradicts_itself_teaches_nothing() {
    let ways: [fn(&mut MessageBuilder); 3] = [
        |builder| {
            builder.put(known::USER_NAME, OTHER);
        },
        |builder| raw(builder, 10415, 1407, &IN_USA),
        |builder| {
            builder.put(known::ORIGIN_HOST, "mme2.example");
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let mut bench = Bench::one("PreLocChk", DROP);
        let sent = Sent {
            more: way,
            ..Sent::new(ULR)
        };
        let answer = sent.answer(&format!("hss.{HOME}"), 2001);
        bench.exchange(FOREIGN_PEER, &sent.message(), &answer);
        bench.pass(Duration::from_secs(1));
        let known = bench.application.look_up(&format!("imsi:{OURS}")).unwrap();
        assert_eq!(known["known"], false, "way {number}");
    }
}

#[test]
fn an_exception_of_a_request_counts_for_its_answer_whose_line_names_subscriber_and_peer() {
    let directory = tables(&[format!("SpecAVPScr,{DROP}")]);
    let file = directory.path().join("findings.jsonl");
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        findings: Some(file.clone()),
        ..settings(directory.path())
    });
    let bad_answer = |sent: &Sent| {
        let mut builder = MessageBuilder::answer(&sent.message());
        builder
            .put(known::RESULT_CODE, 2001)
            .put(known::ORIGIN_HOST, &format!("hss.{HOME}"))
            .put(known::ORIGIN_REALM, HOME);
        // Terminal-Information with a Software-Version of 66.
        let version = [0, 0, 5, 123, 0xc0, 0, 0, 14, 0, 0, 0x28, 0xaf, b'6', b'6', 0, 0];
        raw(&mut builder, 10415, 1401, &version);
        builder.finish().unwrap()
    };
    let sent = Sent::new(ULR);
    let excepted = sent.excepted();
    assert_eq!(
        bench.exchange(FOREIGN_PEER, &excepted.message(), &bad_answer(&excepted)),
        Fate::WentOn
    );
    assert_eq!(bench.findings("SpecAVPScr"), [("west".to_owned(), "excepted", 1)]);
    assert_eq!(
        bench.exchange(FOREIGN_PEER, &sent.message(), &bad_answer(&sent)),
        Fate::Dropped
    );
    let line = &lines_of(&file, 1)[0];
    let read: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&read["imsi"], &read["peer"], &read["isRequest"]),
        (&OURS.into(), &FOREIGN_PEER.into(), &false.into())
    );
}
