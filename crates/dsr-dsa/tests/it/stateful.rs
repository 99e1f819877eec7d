//! Measures that compare a message with what is known of its subscriber.

use std::time::Duration;

use diameter_proto::MessageBuilder;
use diameter_proto::known::{self, application, command};

use crate::support::*;

#[test]
fn a_subscriber_does_not_cross_the_ocean_within_minutes() {
    for (mode, fate, outcome) in MODES {
        for command in [ULR, AIR] {
            let mut bench = Bench::one("TimeDistChk", mode);
            for imsi in ["262011234567890", "262019934567890"] {
                registers(&mut bench, imsi);
            }
            let far = in_usa(command);
            bench.pass(Duration::from_secs(3600));
            assert_eq!(bench.request(FOREIGN_PEER, &far.message()), fate);
            assert_eq!(
                bench.request(FOREIGN_PEER, &far.excepted().message()),
                Fate::WentOn
            );
            // Germany is a neighbour of France, and France is where it is.
            for visited in [[0x62, 0xf2, 0x20], IN_FRANCE] {
                let near = Sent {
                    visited: Some(visited),
                    ..Sent::new(command)
                };
                assert_eq!(bench.request(FOREIGN_PEER, &near.message()), Fate::WentOn);
            }
            let found = bench.findings("TimeDistChk");
            let counts: Vec<_> = found
                .iter()
                .map(|(_, outcome, count)| (*outcome, *count))
                .collect();
            let mut expected = [(outcome, 1), ("excepted", 1)];
            expected.sort_unstable();
            assert_eq!(counts, expected);
            bench.pass(Duration::from_secs(8 * 3600));
            assert_eq!(
                bench.request(FOREIGN_PEER, &far.message()),
                Fate::WentOn,
                "a flight later"
            );
        }
    }
}

#[test]
fn tables_say_how_long_a_journey_takes_and_which_are_excepted() {
    let rows = [format!("TimeDistChk,{DROP}")];
    for (table, text, waits, fate) in [
        (
            "TimeDistChk_Config",
            "Node_ID_1,Node_ID_2,Minimum_Transition_Time\n310,208,30\n",
            31,
            Fate::WentOn,
        ),
        (
            "TimeDistChk_Config",
            "Node_ID_1,Node_ID_2,Minimum_Transition_Time\n310,208,3000\n",
            900,
            Fate::Dropped,
        ),
        (
            "TimeDistChk_Continent_Config",
            "Continent_1,Continent_2,Minimum_Transition_Time\nnorth-america,europe,30\n",
            31,
            Fate::WentOn,
        ),
        (
            "TimeDistChk_Exception_List",
            "MCC,Exception_List_For_Country\n310,208;262\n",
            0,
            Fate::WentOn,
        ),
        (
            "TimeDistChk_Country_Config",
            "MCC,Latitude,Longitude\n310,49,3\n",
            10,
            Fate::WentOn,
        ),
    ] {
        let directory = tables(&rows);
        write(directory.path(), table, text);
        let mut bench = Bench::with(&settings(directory.path()));
        registers(&mut bench, "262011234567890");
        // A time of up to 16 seconds is rounded.
        bench.pass(Duration::from_secs(60 * waits));
        assert_eq!(
            bench.request(FOREIGN_PEER, &in_usa(ULR).message()),
            fate,
            "{table}: {text}"
        );
    }
}

#[test]
fn only_the_mme_of_the_last_registration_purges_and_notifies() {
    for (mode, fate, _) in MODES {
        for command in [PUR, NOR] {
            let mut bench = Bench::one("PreLocChk", mode);
            registers(&mut bench, "262011234567890");
            registers(&mut bench, "262019934567890");
            let other = Sent {
                host: format!("mme2.{FRANCE}"),
                ..Sent::new(command)
            };
            assert_eq!(bench.request(FOREIGN_PEER, &other.message()), fate);
            assert_eq!(
                bench.request(FOREIGN_PEER, &other.excepted().message()),
                Fate::WentOn
            );
            let own = Sent {
                host: format!("MME1.{FRANCE}"),
                ..Sent::new(command)
            };
            assert_eq!(bench.request(FOREIGN_PEER, &own.message()), Fate::WentOn);
            let unknown = Sent {
                imsi: "262010000000001".to_owned(),
                ..Sent::new(command)
            };
            assert_eq!(bench.request(FOREIGN_PEER, &unknown.message()), fate);
        }
    }
}

#[test]
fn a_purged_or_cancelled_subscriber_is_registered_nowhere() {
    let mut bench = Bench::one("PreLocChk", DROP);
    registers(&mut bench, "262011234567890");
    // An HSS that cancels an older place leaves the new one.
    let cancels = |host: &str| Sent {
        host: home_hss(),
        realm: HOME.to_owned(),
        to_host: Some(format!("{host}.{FRANCE}")),
        to_realm: FRANCE.to_owned(),
        ..Sent::new(CLR)
    };
    let old = cancels("mme0");
    let answer = old.answer(&format!("mme0.{FRANCE}"), 2001);
    assert_eq!(bench.exchange(OWN_PEER, &old.message(), &answer), Fate::WentOn);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::WentOn
    );
    let now = cancels("mme1");
    // One that was not cancelled is registered still.
    let refused = now.answer(&format!("mme1.{FRANCE}"), 3002);
    assert_eq!(bench.exchange(OWN_PEER, &now.message(), &refused), Fate::WentOn);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::WentOn
    );
    let answer = now.answer(&format!("mme1.{FRANCE}"), 2001);
    assert_eq!(bench.exchange(OWN_PEER, &now.message(), &answer), Fate::WentOn);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::WentOn,
        "it was in flight"
    );
    bench.pass(RACE);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::Dropped
    );
    registers(&mut bench, "262011234567890");
    assert_eq!(succeeds(&mut bench, &Sent::new(PUR)), Fate::WentOn);
    bench.pass(RACE);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(PUR).message()),
        Fate::Dropped
    );
}

#[test]
fn only_the_hss_that_registered_a_guest_changes_its_data() {
    for (mode, fate, _) in MODES {
        for command in [IDR, DSR, CLR] {
            let mut bench = Bench::one("SrcHostValHss", mode);
            for imsi in ["208101234567890", "208109934567890"] {
                let ulr = Sent {
                    imsi: imsi.to_owned(),
                    ..Sent::of_ours(ULR)
                };
                let answer = ulr.answer(&format!("hss1.{FRANCE}"), 2001);
                assert_eq!(bench.exchange(OWN_PEER, &ulr.message(), &answer), Fate::WentOn);
            }
            let own = Sent::of_hss(command);
            assert_eq!(bench.request(FOREIGN_PEER, &own.message()), Fate::WentOn);
            let other = Sent {
                host: format!("hss2.{FRANCE}"),
                ..Sent::of_hss(command)
            };
            assert_eq!(bench.request(FOREIGN_PEER, &other.message()), fate);
            assert_eq!(
                bench.request(FOREIGN_PEER, &other.excepted().message()),
                Fate::WentOn
            );
            let unknown = Sent {
                imsi: "208100000000001".to_owned(),
                ..Sent::of_hss(command)
            };
            assert_eq!(bench.request(FOREIGN_PEER, &unknown.message()), fate);
        }
    }
}

#[test]
fn only_an_hss_that_has_registered_someone_resets() {
    for (mode, fate, _) in MODES {
        let mut bench = Bench::one("SrcHostValHss", mode);
        let reset = Sent {
            imsi: String::new(),
            ..Sent::of_hss(322)
        };
        assert_eq!(bench.request(FOREIGN_PEER, &reset.message()), fate);
        let ulr = Sent::of_ours(ULR);
        let answer = ulr.answer(&format!("hss1.{FRANCE}"), 2001);
        assert_eq!(bench.exchange(OWN_PEER, &ulr.message(), &answer), Fate::WentOn);
        assert_eq!(bench.request(FOREIGN_PEER, &reset.message()), Fate::WentOn);
    }
}

#[test]
fn a_subscriber_registers_where_it_was_authenticated() {
    for (mode, fate, _) in MODES {
        let mut bench = Bench::one("SrcHostValMme", mode);
        assert_eq!(
            bench.request(FOREIGN_PEER, &Sent::new(ULR).message()),
            fate,
            "not authenticated"
        );
        assert_eq!(succeeds(&mut bench, &Sent::new(AIR)), Fate::WentOn);
        assert_eq!(
            bench.request(FOREIGN_PEER, &in_usa(ULR).message()),
            fate,
            "elsewhere"
        );
        assert_eq!(
            bench.request(FOREIGN_PEER, &in_usa(ULR).excepted().message()),
            Fate::WentOn
        );
        assert_eq!(succeeds(&mut bench, &Sent::new(ULR)), Fate::WentOn);
        let other = Sent {
            host: format!("mme2.{FRANCE}"),
            ..Sent::new(PUR)
        };
        assert_eq!(bench.request(FOREIGN_PEER, &other.message()), fate);
        assert_eq!(
            bench.request(FOREIGN_PEER, &Sent::new(PUR).message()),
            Fate::WentOn
        );
        // An authentication that failed is none.
        let failed = in_usa(AIR);
        let answer = failed.answer(&home_hss(), 5001);
        assert_eq!(
            bench.exchange(FOREIGN_PEER, &failed.message(), &answer),
            Fate::WentOn
        );
        assert_eq!(bench.request(FOREIGN_PEER, &in_usa(ULR).message()), fate);
    }
}

/// Steering of roaming: the home network refuses a registration whose authentication it has answered.
#[test]
fn a_subscriber_that_is_refused_elsewhere_stays_where_it_is_registered() {
    for (mode, fate, _) in MODES {
        let mut bench = Bench::one("SrcHostValMme", mode);
        registers(&mut bench, "262011234567890");
        bench.pass(Duration::from_secs(600));
        assert_eq!(succeeds(&mut bench, &in_usa(AIR)), Fate::WentOn);
        let refused = in_usa(ULR);
        let answer = refused.answer(&home_hss(), 5004);
        assert_eq!(
            bench.exchange(FOREIGN_PEER, &refused.message(), &answer),
            Fate::WentOn
        );
        bench.pass(Duration::from_secs(99));
        let back = Sent {
            host: format!("mme2.{FRANCE}"),
            ..Sent::new(ULR)
        };
        assert_eq!(bench.request(FOREIGN_PEER, &back.message()), Fate::WentOn);
        // Once it has left, it has to authenticate itself.
        assert_eq!(succeeds(&mut bench, &Sent::new(PUR)), Fate::WentOn);
        bench.pass(RACE);
        assert_eq!(bench.request(FOREIGN_PEER, &back.message()), fate);
    }
}

#[test]
fn a_session_needs_a_registration() {
    let ccr = |imsi: &str, kind: i32| {
        let mut builder = MessageBuilder::request(command::CREDIT_CONTROL, application::GX);
        builder
            .put(known::SESSION_ID, "pgw;1;2")
            .put(known::ORIGIN_HOST, "pgw.epc.mnc010.mcc208.3gppnetwork.org")
            .put(known::ORIGIN_REALM, FRANCE)
            .put(known::DESTINATION_REALM, HOME)
            .put(known::CC_REQUEST_TYPE, kind)
            .group(known::SUBSCRIPTION_ID, |group| {
                group
                    .put(known::SUBSCRIPTION_ID_TYPE, 1)
                    .put(known::SUBSCRIPTION_ID_DATA, imsi);
            });
        builder.finish().unwrap()
    };
    for (mode, fate, _) in MODES {
        let mut bench = Bench::one("SesIntValChk", mode);
        registers(&mut bench, "262011234567890");
        for (imsi, kind, fate) in [
            ("262011234567890", 1, Fate::WentOn),
            ("262010000000001", 1, fate),
            ("262010000000001", 2, Fate::WentOn),
            ("262019900000001", 1, Fate::WentOn),
            ("208100000000001", 1, Fate::WentOn),
        ] {
            assert_eq!(
                bench.request(FOREIGN_PEER, &ccr(imsi, kind)),
                fate,
                "{imsi} {kind}"
            );
        }
    }
}

#[test]
fn messages_beyond_the_rate_of_a_peer_and_command_are_findings() {
    for (mode, fate, _) in MODES {
        let mut bench = Bench::one("MsgRateMon", mode);
        let air = Sent::new(AIR).message();
        let fates: Vec<_> = (0..4).map(|_| bench.request(FOREIGN_PEER, &air)).collect();
        assert_eq!(fates, [Fate::WentOn, Fate::WentOn, fate, fate]);
        assert_eq!(
            bench.request("ipx.east.example", &air),
            Fate::WentOn,
            "each peer alone"
        );
        assert_eq!(
            bench.request(FOREIGN_PEER, &Sent::new(ULR).message()),
            Fate::WentOn,
            "each command"
        );
        assert_eq!(
            bench.request(FOREIGN_PEER, &Sent::new(AIR).excepted().message()),
            Fate::WentOn
        );
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.request(FOREIGN_PEER, &air), Fate::WentOn, "the next second");
    }
}

#[test]
fn what_is_known_outlives_a_reload_of_which_pages_hear_first() {
    let directory = tables(&[format!("PreLocChk,{DROP}")]);
    let settings = settings(directory.path());
    let mut bench = Bench::with(&settings);
    registers(&mut bench, "262011234567890");
    let other = Sent {
        host: format!("mme2.{FRANCE}"),
        ..Sent::new(NOR)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::Dropped);
    bench.reload(&settings, |application| {
        assert!(application.findings().is_empty());
        assert_eq!(application.tables()[0].entries, 0);
        assert!(application.look_up("imsi:262011234567890").is_some());
    });
    assert_eq!(bench.application.tables()[0].entries, 1);
    assert_eq!(bench.findings("PreLocChk"), [("west".to_owned(), "dropped", 1)]);
    let its_own = Sent::new(NOR);
    assert_eq!(bench.request(FOREIGN_PEER, &its_own.message()), Fate::WentOn);
}

#[test]
fn measures_learn_before_they_block() {
    let directory = tables(&[format!("PreLocChk,{DROP}"), format!("AppIdWL,{DROP}")]);
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        learning: settings::Period::from_secs(3600),
        ..settings(directory.path())
    });
    let unknown = Sent::new(NOR);
    assert_eq!(bench.request(FOREIGN_PEER, &unknown.message()), Fate::WentOn);
    assert!(
        bench.findings("PreLocChk").is_empty(),
        "it may have registered before"
    );
    registers(&mut bench, "262011234567890");
    let other = Sent {
        host: format!("mme2.{FRANCE}"),
        ..Sent::new(NOR)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::WentOn);
    assert_eq!(bench.findings("PreLocChk"), [("west".to_owned(), "detected", 1)]);
    // What needs no state blocks from the beginning.
    let elsewhere = Sent {
        application: 16_777_217,
        ..Sent::new(ULR)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &elsewhere.message()), Fate::Dropped);
    bench.pass(Duration::from_secs(3601));
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::Dropped);
    assert_eq!(
        bench.request(FOREIGN_PEER, &unknown.message()),
        Fate::WentOn,
        "it is known by now"
    );
    bench.pass(Duration::from_secs(8 * 24 * 3600));
    assert_eq!(
        bench.request(FOREIGN_PEER, &unknown.message()),
        Fate::Dropped,
        "its lifetime is over"
    );
}

#[test]
fn a_subscriber_that_stays_for_long_is_known_for_as_long() {
    let day = Duration::from_secs(24 * 3600);
    let mut bench = Bench::new(&[format!("PreLocChk,{DROP}"), format!("TimeDistChk,{DROP}")]);
    registers(&mut bench, "262011234567890");
    for _ in 0..10 {
        bench.pass(6 * day);
        assert_eq!(succeeds(&mut bench, &Sent::new(AIR)), Fate::WentOn);
        assert_eq!(
            bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
            Fate::WentOn
        );
    }
    // It was seen there a moment ago.
    assert_eq!(bench.request(FOREIGN_PEER, &in_usa(ULR).message()), Fate::Dropped);
    // An authentication elsewhere says nothing about where it is registered.
    bench.pass(day);
    assert_eq!(succeeds(&mut bench, &in_usa(AIR)), Fate::WentOn);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::WentOn
    );
    bench.pass(8 * day);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::Dropped
    );
}

#[test]
fn a_full_table_refuses_newcomers_and_blames_no_one_for_it() {
    let directory = tables(&[format!("PreLocChk,{DROP}")]);
    let mut bench = Bench::with(&dsr_dsa::config::Dsa {
        max_subscribers: 256,
        ..settings(directory.path())
    });
    let imsi = |number: u32| format!("26201{number:010}");
    for number in 0..2000 {
        registers(&mut bench, &imsi(number));
    }
    let tables = bench.application.tables();
    let known = tables.iter().find(|table| table.name == "subscribers").unwrap();
    assert!((128..=256).contains(&known.entries), "{}", known.entries);
    for number in 0..2000 {
        let notifies = Sent {
            imsi: imsi(number),
            ..Sent::new(NOR)
        };
        assert_eq!(bench.request(FOREIGN_PEER, &notifies.message()), Fate::WentOn);
    }
    // What is out of date makes room.
    bench.pass(Duration::from_secs(8 * 24 * 3600));
    registers(&mut bench, &imsi(1999));
    let other = Sent {
        imsi: imsi(1999),
        host: format!("mme2.{FRANCE}"),
        ..Sent::new(NOR)
    };
    assert_eq!(bench.request(FOREIGN_PEER, &other.message()), Fate::Dropped);
}

#[test]
fn a_subscriber_takes_at_most_64_bytes() {
    let mut bench = Bench::one("PreLocChk", DETECT);
    for number in 0..30_000_u32 {
        let sent = Sent {
            imsi: format!("26201{number:010}"),
            ..Sent::new(ULR)
        };
        assert_eq!(succeeds(&mut bench, &sent), Fate::WentOn);
    }
    let tables = bench.application.tables();
    let known = tables.iter().find(|table| table.name == "subscribers").unwrap();
    assert_eq!(known.entries, 30_000);
    assert!(
        known.bytes <= 64 * known.entries,
        "{} bytes",
        known.bytes / known.entries
    );
    let found = bench.application.look_up("imsi:262010000000007").unwrap();
    assert_eq!(
        (&found["registered"], &found["visitedNetwork"]),
        (&true.into(), &"208-10".into())
    );
    assert_eq!(
        bench.application.look_up("imsi:262019999999999").unwrap()["known"],
        false
    );
}

#[test]
fn mme_and_sgsn_are_two_places_of_one_subscriber() {
    let mut bench = Bench::new(&[format!("PreLocChk,{DROP}"), format!("SrcHostValMme,{DROP}")]);
    registers(&mut bench, "262011234567890");
    let of_sgsn = |command: u32| Sent {
        host: format!("sgsn1.{FRANCE}"),
        ..Sent::new(command)
    };
    let registration = Sent {
        more: |builder| raw(builder, 10415, 1405, &[0, 0, 0, 0]),
        ..of_sgsn(ULR)
    };
    assert_eq!(succeeds(&mut bench, &registration), Fate::WentOn);
    for sent in [Sent::new(NOR), of_sgsn(NOR), of_sgsn(PUR)] {
        assert_eq!(succeeds(&mut bench, &sent), Fate::WentOn);
    }
    bench.pass(RACE);
    let mut request = |sent: &Sent| bench.request(FOREIGN_PEER, &sent.message());
    assert_eq!(request(&of_sgsn(NOR)), Fate::Dropped, "it was purged there");
    assert_eq!(request(&Sent::new(NOR)), Fate::WentOn);
    assert_eq!(succeeds(&mut bench, &Sent::new(PUR)), Fate::WentOn);
    bench.pass(RACE);
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(NOR).message()),
        Fate::Dropped
    );
}

#[test]
fn a_country_without_a_place_does_not_erase_the_last_one() {
    let mut bench = Bench::one("TimeDistChk", DROP);
    registers(&mut bench, "262011234567890");
    // An international network, and bytes that are not a network.
    for visited in [[0x09, 0xf1, 0x11], [0xff, 0xff, 0xff]] {
        for command in [AIR, ULR] {
            let ship = Sent {
                visited: Some(visited),
                ..Sent::new(command)
            };
            assert_eq!(succeeds(&mut bench, &ship), Fate::WentOn);
        }
        bench.pass(Duration::from_secs(3600));
        assert_eq!(bench.request(FOREIGN_PEER, &in_usa(ULR).message()), Fate::Dropped);
    }
    bench.pass(Duration::from_secs(8 * 3600));
    assert_eq!(bench.request(FOREIGN_PEER, &in_usa(ULR).message()), Fate::WentOn);
}

/// An MME of the network in France.
fn of_mme(number: u32, command: u32) -> Sent {
    Sent {
        host: format!("mme{number}.{FRANCE}"),
        ..Sent::new(command)
    }
}

#[test]
fn answers_that_overtake_each_other_leave_a_subscriber_where_it_is() {
    let mut bench = Bench::new(&[format!("PreLocChk,{DROP}"), format!("SrcHostValMme,{DROP}")]);
    registers(&mut bench, "262011234567890");
    // The HSS registers at 2 and then at 3; its answers come the other way round, and it cancels 2.
    for number in [3, 2] {
        assert_eq!(succeeds(&mut bench, &of_mme(number, ULR)), Fate::WentOn);
    }
    let cancel = Sent {
        host: home_hss(),
        realm: HOME.to_owned(),
        to_host: Some(format!("mme2.{FRANCE}")),
        to_realm: FRANCE.to_owned(),
        ..Sent::new(CLR)
    };
    let answer = cancel.answer(&format!("mme2.{FRANCE}"), 2001);
    assert_eq!(bench.exchange(OWN_PEER, &cancel.message(), &answer), Fate::WentOn);
    // What the earlier ones have sent is in flight still.
    for number in [1, 2, 3] {
        let notifies = of_mme(number, NOR).message();
        assert_eq!(bench.request(FOREIGN_PEER, &notifies), Fate::WentOn, "{number}");
    }
    bench.pass(RACE);
    for (number, fate) in [(1, Fate::Dropped), (2, Fate::Dropped), (3, Fate::WentOn)] {
        let notifies = of_mme(number, NOR).message();
        assert_eq!(bench.request(FOREIGN_PEER, &notifies), fate, "{number}");
    }
}

#[test]
fn a_registration_in_flight_is_not_that_of_an_attacker() {
    let mut bench = Bench::one("SrcHostValMme", DROP);
    // Another network of France has authenticated it by now.
    let other = |command: u32| Sent {
        visited: Some([0x02, 0xf8, 0x02]),
        ..Sent::new(command)
    };
    assert_eq!(succeeds(&mut bench, &Sent::new(AIR)), Fate::WentOn);
    assert_eq!(succeeds(&mut bench, &other(AIR)), Fate::WentOn);
    for sent in [Sent::new(ULR), other(ULR)] {
        assert_eq!(bench.request(FOREIGN_PEER, &sent.message()), Fate::WentOn);
    }
    bench.pass(RACE);
    for (sent, fate) in [(Sent::new(ULR), Fate::Dropped), (other(ULR), Fate::WentOn)] {
        assert_eq!(bench.request(FOREIGN_PEER, &sent.message()), fate);
    }
}
