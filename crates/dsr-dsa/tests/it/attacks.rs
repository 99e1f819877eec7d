//! The attacks on roaming interfaces that are publicly described: each is found by the measure that should find it, and by all measures
//! together. `docs/dsa.md` has the list, and where it comes from.

use std::time::Duration;

use diameter_proto::known::{self, application, command};
use diameter_proto::{MessageBuilder, MessageMut};

use crate::support::*;

/// The page with the list.
const PAGE: &str = include_str!("../../../../docs/dsa.md");

/// Subscribers of ours in France, and of France here.
const OURS: &str = "262011234567890";
const GUEST: &str = "208101234567890";

/// Applications that are not for interconnection of mobile networks here.
const SH: u32 = 16_777_217;
const SLH: u32 = 16_777_291;
const SLG: u32 = 16_777_255;

/// An attack: its name on the page, its category, the measure that finds it, and its messages, of which the last one is found.
struct Attack {
    name: &'static str,
    category: u8,
    measure: &'static str,
    messages: fn() -> Vec<MessageMut>,
}

/// A message of an application without a subscriber of S6a.
fn foreign(app: u32, command: u32, fill: impl FnOnce(&mut MessageBuilder)) -> Vec<MessageMut> {
    let mut builder = MessageBuilder::request(command, app);
    builder
        .put(known::SESSION_ID, &format!("gw.{FRANCE};1;2"))
        .put(known::ORIGIN_HOST, &format!("gw.{FRANCE}"))
        .put(known::ORIGIN_REALM, FRANCE)
        .put(known::DESTINATION_REALM, HOME);
    fill(&mut builder);
    vec![builder.finish().unwrap()]
}

fn one(sent: &Sent) -> Vec<MessageMut> {
    vec![sent.message()]
}

/// An attacker that calls itself an HSS of France, and is another host than the one that registered the guest.
fn false_hss(command: u32) -> Sent {
    Sent {
        host: format!("hss9.{FRANCE}"),
        to_host: Some(format!("mme1.{HOME}")),
        ..Sent::of_hss(command)
    }
}

/// The same in the USA, about a subscriber of France.
fn hss_of_another_network(command: u32) -> Sent {
    Sent {
        host: format!("hss.{USA}"),
        realm: USA.to_owned(),
        ..false_hss(command)
    }
}

fn named(imsi: &str) -> impl FnOnce(&mut MessageBuilder) {
    let imsi = imsi.to_owned();
    move |builder| {
        builder.put(known::USER_NAME, &imsi);
    }
}

/// Reading of places, identities and subscriber data.
const DISCLOSURE: [Attack; 9] = [
    Attack {
        name: "location by IDR",
        category: 2,
        measure: "SrcHostValHss",
        messages: || one(&false_hss(IDR)),
    },
    Attack {
        name: "location of another network's subscriber by IDR",
        category: 2,
        measure: "RealmIMSICst",
        messages: || one(&hss_of_another_network(IDR)),
    },
    Attack {
        name: "location by Sh User-Data",
        category: 1,
        measure: "AppIdWL",
        messages: || foreign(SH, 306, |_| ()),
    },
    Attack {
        name: "location by SLh and SLg",
        category: 1,
        measure: "AppIdWL",
        messages: || {
            let mut both = foreign(SLH, 8_388_622, named(OURS));
            both.extend(foreign(SLG, 8_388_620, named(OURS)));
            both
        },
    },
    Attack {
        name: "serving node by Cx Location-Info",
        category: 1,
        measure: "AppIdWL",
        messages: || foreign(application::CX, 302, |_| ()),
    },
    Attack {
        name: "IMSI and serving node by S6c Send-Routing-Info-for-SM",
        category: 1,
        measure: "AppIdWL",
        messages: || foreign(16_777_312, 8_388_647, |_| ()),
    },
    Attack {
        name: "search for IMSIs",
        category: 2,
        measure: "SubsIdenValid",
        messages: || {
            let probe = |number: u32| Sent {
                imsi: format!("99999{number:010}"),
                ..Sent::new(AIR)
            };
            (0..3).map(|number| probe(number).message()).collect()
        },
    },
    Attack {
        name: "authentication vectors by AIR",
        category: 3,
        measure: "TimeDistChk",
        messages: || one(&in_usa(AIR)),
    },
    Attack {
        name: "subscriber data by ULR",
        category: 3,
        measure: "SrcHostValMme",
        messages: || one(&in_usa(ULR)),
    },
];

/// Denial of service to subscribers and networks.
const DENIAL: [Attack; 9] = [
    Attack {
        name: "detachment by CLR",
        category: 2,
        measure: "SrcHostValHss",
        messages: || one(&false_hss(CLR)),
    },
    Attack {
        name: "detachment of our subscriber by CLR",
        category: 2,
        measure: "RealmIMSICst",
        messages: || {
            one(&Sent {
                imsi: OURS.to_owned(),
                ..hss_of_another_network(CLR)
            })
        },
    },
    Attack {
        name: "detachment by PUR",
        category: 3,
        measure: "PreLocChk",
        messages: || one(&in_usa(PUR)),
    },
    Attack {
        name: "detachment by ULR",
        category: 3,
        measure: "TimeDistChk",
        messages: || one(&in_usa(ULR)),
    },
    Attack {
        name: "removal of subscriber data by DSR",
        category: 2,
        measure: "SrcHostValHss",
        messages: || one(&false_hss(DSR)),
    },
    Attack {
        name: "false state by NOR",
        category: 3,
        measure: "PreLocChk",
        messages: || one(&in_usa(NOR)),
    },
    Attack {
        name: "reset of all subscribers by RSR",
        category: 2,
        measure: "SrcHostValHss",
        messages: || {
            one(&Sent {
                imsi: String::new(),
                ..false_hss(RSR)
            })
        },
    },
    Attack {
        name: "flood of AIR",
        category: 0,
        measure: "MsgRateMon",
        messages: || (0..3).map(|_| Sent::new(AIR).message()).collect(),
    },
    Attack {
        name: "malformed AVPs",
        category: 0,
        measure: "AVPWLScr",
        messages: || {
            one(&Sent {
                more: |builder| raw(builder, 0, 1, &[0xff, 0xfe]),
                imsi: String::new(),
                ..Sent::new(ULR)
            })
        },
    },
];

/// Fraud, interception, and what hides an attack.
const FRAUD: [Attack; 14] = [
    Attack {
        name: "change of the service profile by IDR",
        category: 2,
        measure: "SrcHostValHss",
        messages: || {
            one(&Sent {
                more: |builder| raw(builder, 10415, 1400, &[]),
                ..false_hss(IDR)
            })
        },
    },
    Attack {
        name: "interception of short messages by ULR",
        category: 3,
        measure: "SrcHostValMme",
        messages: || {
            one(&Sent {
                // MME-Number-for-MT-SMS (TS 29.272 §7.3.159).
                more: |builder| raw(builder, 10415, 1645, &[0x91, 0x21, 0x43]),
                ..in_usa(ULR)
            })
        },
    },
    Attack {
        name: "false short messages by SGd",
        category: 1,
        measure: "AppIdWL",
        messages: || foreign(16_777_313, 8_388_645, |_| ()),
    },
    Attack {
        name: "a stolen device unblocked by S13",
        category: 1,
        measure: "AppIdWL",
        messages: || foreign(application::S13, 324, |_| ()),
    },
    Attack {
        name: "a session without a registration by Gx",
        category: 3,
        measure: "SesIntValChk",
        messages: || {
            foreign(application::GX, command::CREDIT_CONTROL, |builder| {
                builder
                    .put(known::CC_REQUEST_TYPE, 1)
                    .group(known::SUBSCRIPTION_ID, |group| {
                        group
                            .put(known::SUBSCRIPTION_ID_TYPE, 1)
                            .put(known::SUBSCRIPTION_ID_DATA, "262010000000001");
                    });
            })
        },
    },
    Attack {
        name: "events of devices by S6t",
        category: 1,
        measure: "AppIdWL",
        messages: || foreign(application::S6T, command::CONFIGURATION_INFORMATION, |_| ()),
    },
    Attack {
        name: "a command that is not for interconnection",
        category: 1,
        measure: "AppCmdCst",
        messages: || foreign(application::S6A, 8_388_730, |_| ()),
    },
    Attack {
        name: "our own network as the origin",
        category: 0,
        measure: "DrOrMatch",
        messages: || {
            one(&Sent {
                host: home_hss(),
                realm: HOME.to_owned(),
                ..Sent::new(IDR)
            })
        },
    },
    Attack {
        name: "a realm without an agreement as the origin",
        category: 0,
        measure: "RealmWLScr",
        messages: || {
            one(&Sent {
                host: "mme.epc.mnc099.mcc208.3gppnetwork.org".to_owned(),
                realm: "epc.mnc099.mcc208.3gppnetwork.org".to_owned(),
                ..Sent::new(AIR)
            })
        },
    },
    Attack {
        name: "a host of another realm as the origin",
        category: 0,
        measure: "OhOrCstChk",
        messages: || {
            one(&Sent {
                host: format!("mme1.{USA}"),
                ..Sent::new(ULR)
            })
        },
    },
    Attack {
        name: "another visited network than the origin",
        category: 2,
        measure: "VplmnORCst",
        messages: || {
            one(&Sent {
                visited: Some(IN_USA),
                ..Sent::new(AIR)
            })
        },
    },
    Attack {
        name: "a destination in another network",
        category: 0,
        measure: "DhDrFrmChk",
        messages: || {
            one(&Sent {
                to_host: Some(format!("hss.{USA}")),
                ..Sent::new(AIR)
            })
        },
    },
    Attack {
        name: "AVPs that are there twice",
        category: 0,
        measure: "AVPInstChk",
        messages: || {
            one(&Sent {
                more: |builder| raw(builder, 10415, 1407, &IN_USA),
                ..Sent::new(ULR)
            })
        },
    },
    Attack {
        name: "a subscriber beside the one that is screened",
        category: 2,
        measure: "RealmIMSICst",
        messages: || {
            one(&Sent {
                more: |builder| raw(builder, 0, 1, b"262019999999999"),
                ..Sent::new(AIR)
            })
        },
    },
];

fn all() -> impl Iterator<Item = &'static Attack> {
    DISCLOSURE.iter().chain(&DENIAL).chain(&FRAUD)
}

/// A bench where our subscriber is in France and one of France is here.
fn settled(rows: &[String]) -> Bench {
    let directory = tables(rows);
    // The honest partner resets, too.
    let commands = "Application_ID,Command_Codes\n16777251,316;317;318;319;320;321;322;323\n";
    write(directory.path(), "AppCmdCst_Config", commands);
    let mut bench = Bench::with(&settings(directory.path()));
    registers(&mut bench, OURS);
    let guest = Sent::of_ours(ULR);
    assert_eq!(guest.imsi, GUEST);
    let answer = guest.answer(&format!("hss1.{FRANCE}"), 2001);
    assert_eq!(bench.exchange(OWN_PEER, &guest.message(), &answer), Fate::WentOn);
    bench.pass(Duration::from_secs(3_600));
    bench
}

#[test]
fn each_published_attack_is_found_by_its_measure() {
    for attack in all() {
        let mut bench = settled(&[format!("{},{DROP}", attack.measure)]);
        let messages = (attack.messages)();
        let fates: Vec<_> = messages
            .iter()
            .map(|message| bench.request(FOREIGN_PEER, message))
            .collect();
        assert_eq!(fates.last(), Some(&Fate::Dropped), "{}", attack.name);
        let found = bench.findings(attack.measure);
        assert!(!found.is_empty(), "{}", attack.name);
    }
}

#[test]
fn all_measures_together_drop_every_published_attack_and_no_honest_message_between() {
    let rows = MEASURES.map(|measure| format!("{measure},{DROP}"));
    let mut bench = settled(&rows);
    for attack in all() {
        let messages = (attack.messages)();
        let fates = messages
            .iter()
            .map(|message| bench.request(FOREIGN_PEER, message));
        assert_eq!(fates.last(), Some(Fate::Dropped), "{}", attack.name);
        bench.pass(Duration::from_secs(2));
        for sent in [Sent::new(AIR), Sent::new(ULR), Sent::new(NOR)] {
            assert_eq!(succeeds(&mut bench, &sent), Fate::WentOn, "after {}", attack.name);
        }
        bench.pass(Duration::from_secs(2));
    }
}

#[test]
fn the_page_names_each_attack_with_its_category_and_measure() {
    for Attack {
        name,
        category,
        measure,
        ..
    } in all()
    {
        let row = PAGE
            .lines()
            .find(|line| line.starts_with(&format!("| {name} | {category} |")));
        let row = row.unwrap_or_else(|| panic!("docs/dsa.md lacks a row: | {name} | {category} |"));
        assert!(row.ends_with(&format!("| `{measure}` |")), "{row}");
    }
}
