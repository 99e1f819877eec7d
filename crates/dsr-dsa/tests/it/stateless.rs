//! Measures that need no state: order, partners, directions, answers and contradictions.

use diameter_proto::known;

use crate::support::*;

#[test]
fn the_order_of_measures_is_fixed_and_the_first_that_blocks_decides() {
    let bad = Sent {
        application: 16_777_217,
        host: "mme1".to_owned(),
        ..Sent::new(ULR)
    };
    let rows = [
        format!("OhOrCstChk,{DROP}"),
        format!("AppIdWL,{ANSWER}"),
        format!("OhOrFrmChk,{DETECT}"),
    ];
    let mut bench = Bench::new(&rows);
    assert_eq!(bench.request(FOREIGN_PEER, &bad.message()), Fate::Answered(5012));
    assert_eq!(
        bench.findings("OhOrCstChk").len(),
        1,
        "it goes on to those behind"
    );
    assert_eq!(bench.findings("OhOrFrmChk").len(), 1);
    let rows = [
        "AppIdWL,Detection_Only,No,,,".to_owned(),
        format!("OhOrCstChk,{DROP}"),
    ];
    let mut bench = Bench::new(&rows);
    assert_eq!(bench.request(FOREIGN_PEER, &bad.message()), Fate::WentOn);
    assert!(
        bench.findings("OhOrCstChk").is_empty(),
        "those behind do not see it"
    );
}

#[test]
fn partners_and_directions_have_measures_of_their_own() {
    let directory = tables(&[]);
    write(
        directory.path(),
        "Security_Countermeasure_Config",
        "CounterMeasure_Type,Admin_Status,Operating_Mode,Direction,Foreign_WL_Peers_Cfg_Sets\n\
         AppCmdCst,Enable,Detection_And_Correction_By_Drop,Ingress,west\n\
         AppCmdCst,Disable,Detection_Only,Ingress,east\n\
         AppIdWL,Enable,Detection_And_Correction_By_Drop,Egress,*\n\
         RealmWLScr,Enable,Detection_Only,,\n",
    );
    std::fs::remove_file(directory.path().join("IMSI_Exception_Config.csv")).unwrap();
    let mut bench = Bench::with(&settings(directory.path()));
    let (mut bad, mut out) = (Sent::new(322), Sent::of_ours(ULR));
    assert_eq!(bench.request("IPX2.west.example", &bad.message()), Fate::Dropped);
    assert_eq!(bench.request("ipx.east.example", &bad.message()), Fate::WentOn);
    // A foreign origin behind a peer of ours belongs to the partner of its realm.
    assert_eq!(bench.request(OWN_PEER, &bad.message()), Fate::Dropped);
    // A foreign peer that calls itself ours is foreign still, and its origin is not.
    (bad.realm, bad.command) = (HOME.to_owned(), ULR);
    assert_eq!(bench.request(FOREIGN_PEER, &bad.message()), Fate::WentOn);
    assert_eq!(bench.findings("RealmWLScr"), [("west".to_owned(), "detected", 1)]);
    // Ingress measures do not see what goes out, and those of the way out do.
    out.application = 16_777_217;
    assert_eq!(
        bench.request(
            FOREIGN_PEER,
            &Sent {
                application: 16_777_217,
                ..Sent::new(ULR)
            }
            .message()
        ),
        Fate::Dropped
    );
    assert_eq!(bench.request(OWN_PEER, &out.message()), Fate::Dropped);
    assert_eq!(bench.findings("AppIdWL"), [("west".to_owned(), "dropped", 1)]);
    // A peer of no set that calls itself ours is none of ours by its name.
    let stranger = Sent {
        application: 16_777_217,
        realm: HOME.to_owned(),
        ..Sent::new(ULR)
    };
    for peer in [
        "mme.evil.example",
        "mme1.epc.mnc010.mcc208.3gppnetwork.org",
        "evil",
    ] {
        assert_eq!(bench.request(peer, &stranger.message()), Fate::WentOn);
    }
    let found = bench.findings("RealmWLScr");
    assert!(
        found.contains(&("unlisted".to_owned(), "detected", 3)),
        "{found:?}"
    );
    // Between nodes of ours no measure is asked.
    out.to_realm = HOME.to_owned();
    assert_eq!(bench.request(OWN_PEER, &out.message()), Fate::WentOn);
}

/// Each has a peer, and realms below a domain of its own; every second one has the measure.
#[test]
fn each_of_ten_thousand_partners_has_its_measures() {
    const PARTNERS: usize = 10_000;
    let directory = tables(&[]);
    let all = |row: &dyn Fn(usize) -> String| (0..PARTNERS).map(row).collect::<String>();
    let sets = all(&|number| format!("set{number},ipx.p{number}.example\n"));
    write(
        directory.path(),
        "Foreign_WL_Peers_Cfg_Sets",
        &format!("Cfg_Set_Name,Peers\n{sets}"),
    );
    let realms = all(&|number| format!("Foreign_Network,*.p{number}.example,set{number}\n"));
    // The longest end of a name decides, and a realm of that name before any end.
    let more = "Foreign_Network,*.example,set9\nForeign_Network,*.in.p7.example,set9\n\
                Foreign_Network,a.in.p7.example,set7\n";
    write(
        directory.path(),
        "Realm_List",
        &format!("Network_Type,Realm,Cfg_Set_Name\nHome_Network,{HOME},\n{realms}{more}"),
    );
    let even: Vec<String> = (0..PARTNERS / 2)
        .map(|half| format!("set{}", PARTNERS - 2 - 2 * half))
        .collect();
    write(
        directory.path(),
        "Security_Countermeasure_Config",
        &format!(
            "CounterMeasure_Type,Admin_Status,Operating_Mode,Foreign_WL_Peers_Cfg_Sets\n\
             AppCmdCst,Enable,Detection_And_Correction_By_Drop,{}\n",
            even.join(";")
        ),
    );
    std::fs::remove_file(directory.path().join("IMSI_Exception_Config.csv")).unwrap();
    let mut bench = Bench::with(&settings(directory.path()));
    let bad = Sent::new(322);
    let mut fate = |peer: &str, realm: &str| {
        let realm = realm.to_owned();
        bench.request(peer, &Sent { realm, ..bad.clone() }.message())
    };
    for (number, wanted) in [(0, Fate::Dropped), (5_001, Fate::WentOn), (9_998, Fate::Dropped)] {
        assert_eq!(
            fate(&format!("ipx.p{number}.example"), FRANCE),
            wanted,
            "{number}"
        );
        assert_eq!(
            fate(OWN_PEER, &format!("epc.p{number}.example")),
            wanted,
            "{number}"
        );
    }
    for (realm, wanted) in [
        ("a.in.p7.example", Fate::WentOn),
        ("a.in.p8.example", Fate::Dropped),
        ("b.in.p7.example", Fate::WentOn),
        ("other.example", Fate::WentOn),
        (".p8.example", Fate::WentOn),
        ("p8.example", Fate::WentOn),
    ] {
        assert_eq!(fate(OWN_PEER, realm), wanted, "{realm}");
    }
}

#[test]
fn answers_of_foreign_hosts_are_screened_by_the_measures_for_them() {
    let mut bench = Bench::new(&[format!("OhOrFrmChk,{DROP}"), format!("SesIdValChk,{DETECT}")]);
    let out = Sent::of_ours(ULR);
    let good = out.answer(&format!("hss1.{FRANCE}"), 2001);
    assert_eq!(bench.exchange(OWN_PEER, &out.message(), &good), Fate::WentOn);
    let bad = out.answer("hss1", 2001);
    assert_eq!(bench.exchange(OWN_PEER, &out.message(), &bad), Fate::Dropped);
    assert_eq!(bench.findings("OhOrFrmChk"), [("west".to_owned(), "dropped", 1)]);
    assert!(bench.findings("SesIdValChk").is_empty());
}

#[test]
fn contradictions_are_findings_of_the_measure_that_reads_the_avp() {
    type Change = fn(&mut diameter_proto::MessageBuilder);
    let cases: [(&str, Change); 8] = [
        ("RealmWLScr", |builder| {
            builder.put(known::ORIGIN_REALM, USA);
        }),
        ("OhOrCstChk", |builder| {
            builder.put(known::ORIGIN_HOST, "mme2.example");
        }),
        ("DrOrMatch", |builder| {
            builder.put(known::DESTINATION_REALM, FRANCE);
        }),
        ("VplmnORCst", |builder| raw(builder, 10415, 1407, &IN_USA)),
        ("SubsIdenValid", |builder| {
            builder.put(known::USER_NAME, "262011234567891");
        }),
        ("SubsIdenValid", |builder| {
            builder.group(known::SUBSCRIPTION_ID, |group| {
                group
                    .put(known::SUBSCRIPTION_ID_TYPE, 1)
                    .put(known::SUBSCRIPTION_ID_DATA, "262019934567899");
            });
        }),
        ("SesIdValChk", |builder| {
            builder.put(known::SESSION_ID, "other;1;1");
        }),
        ("DhDrFrmChk", |builder| {
            builder.put(known::DESTINATION_REALM, USA);
        }),
    ];
    for (measure, more) in cases {
        let mut bench = Bench::one(measure, DROP);
        let bad = Sent {
            more,
            ..Sent::new(ULR)
        };
        assert_eq!(
            bench.request(FOREIGN_PEER, &bad.message()),
            Fate::Dropped,
            "{measure}"
        );
    }
    // An exception for one of two subscribers is none.
    let mut bench = Bench::one("SubsIdenValid", DROP);
    let bad = Sent {
        more: |builder| {
            builder.put(known::USER_NAME, "262011234567890");
        },
        ..Sent::new(ULR)
    };
    assert_eq!(
        bench.request(FOREIGN_PEER, &bad.excepted().message()),
        Fate::Dropped
    );
}

#[test]
fn what_is_explained_is_what_happens_and_counts_nothing() {
    use diameter_proto::{Origin, Routing};
    let bench = Bench::new(&[format!("AppCmdCst,{DETECT}"), format!("OhOrCstChk,{ANSWER}")]);
    let bad = Sent {
        host: "mme1.evil.example".to_owned(),
        ..Sent::new(322)
    };
    let message = bad.message();
    let routing = Routing::scan(&message, b"").unwrap();
    let request = dsr_app::Request {
        message: &message,
        view: &dsr_app::View::new(message.application(), message.command(), 10, &routing),
        peer: FOREIGN_PEER,
        names: &Origin::new("dsr.example", "example"),
    };
    let explained = bench.application.explain(&request).unwrap();
    assert!(matches!(explained.flow, dsr_app::Flow::Answer(_)));
    assert_eq!(
        explained.reasons,
        [
            "screened as from partner west",
            "AppCmdCst: command 322 of application 16777251 is not in AppCmdCst_Config (detected)",
            "OhOrCstChk: Origin-Host is not in Origin-Realm (answered)",
        ]
    );
    assert!(bench.application.findings().is_empty());
}

#[test]
fn names_of_nodes_in_tables_are_compared_without_regard_to_case() {
    let directory = tables(&[format!("SpecAVPScr,{DROP}")]);
    let columns = "Application_ID,Command_Code,Message_Type,AVP_Name,AVP_Value\n";
    let row = format!("16777251,316,Request,Origin-Host,MME1.{FRANCE}\n");
    write(directory.path(), "SpecAVPScr_Config", &format!("{columns}{row}"));
    let mut bench = Bench::with(&settings(directory.path()));
    assert_eq!(
        bench.request(FOREIGN_PEER, &Sent::new(ULR).message()),
        Fate::Dropped
    );
    let twice = format!("{columns}{row}{}", row.replace("MME1", "mme1"));
    write(directory.path(), "SpecAVPScr_Config", &twice);
    let error = dsr_dsa::check_tables(&settings(directory.path())).unwrap_err();
    assert!(error.contains("can never match"), "{error}");
}
