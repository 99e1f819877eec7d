//! Tables with mistakes: each is named with file, line and reason.

use dsr_dsa::check_tables;

use crate::support::*;

fn mistakes(table: &str, text: &str) -> String {
    let rows: Vec<_> = ["AppIdWL", "AppCmdCst", "TimeDistChk"]
        .iter()
        .map(|name| format!("{name},{DETECT}"))
        .collect();
    let directory = tables(&rows);
    write(directory.path(), table, text);
    check_tables(&settings(directory.path())).unwrap_err()
}

#[test]
fn rows_that_can_never_match_and_keys_that_come_twice_are_named_with_their_line() {
    let spec = "Application_ID,Command_Code,Message_Type,AVP_Name,AVP_Value\n";
    let inst = "Application_ID,Command_Code,Message_Type,AVP_Name,Minimum_Instance,Maximum_Instance\n";
    let pair = "Node_ID_1,Node_ID_2,Minimum_Transition_Time\n";
    for (table, text, wanted) in [
        ("MCC_MNC_List", "Network_Type,MCC_MNC\nHome_Network,99901\n".to_owned(), "MCC_MNC_List.csv:2: `999` is not an assigned MCC"),
        ("MCC_MNC_List", "Network_Type,MCC_MNC\nHome_Network,2620\n".to_owned(), "not MCC and MNC"),
        ("MCC_MNC_List", "Network_Type,MCC_MNC\nForeign_Network,20850144\n".to_owned(), "not MCC and MNC"),
        ("MCC_MNC_List", "Network_Type,MCC_MNC\nForeign_Network,314100 - 190\n".to_owned(), "not MCC and MNC"),
        ("MCC_MNC_List", "Network_Type,MCC_MNC\nForeign_Network,704?\n".to_owned(), "not MCC and MNC"),
        ("MCC_MNC_List", "Network_Type,MCC_MNC\nHome_Network,26201\n# x\nForeign_Network,26201\n".to_owned(), "MCC_MNC_List.csv:4: the network 26201 is there already"),
        ("Foreign_WL_Peers_Cfg_Sets", "Cfg_Set_Name,Peers\nwest,a.example\neast,A.example\n".to_owned(), ":3: the peer A.example is in the set `west` already"),
        ("Foreign_WL_Peers_Cfg_Sets", "Cfg_Set_Name,Peers\nwest,\n".to_owned(), "has no peers"),
        ("Realm_List", "Network_Type,Realm\nHome_Network,a.example\nForeign_Network,A.Example\n".to_owned(), ":3: the realm a.example is there already"),
        ("Realm_List", "Network_Type,Realm\nHome_Network,*example\n".to_owned(), "use *.example"),
        ("AppIdWL_Config", "Application_ID\n16777251\n16777251\n".to_owned(), "AppIdWL_Config.csv:3: the application 16777251 is there already"),
        ("AppIdWL_Config", "Application_ID\n-1\n".to_owned(), "`-1` is not an Application_ID"),
        ("AppIdWL_Config", "Application_ID\n".to_owned(), "AppIdWL is on, but AppIdWL_Config has no rows"),
        ("AppCmdCst_Config", "Application_ID,Command_Codes\n16777251,316;16777216\n".to_owned(), "`16777216` is not a command code"),
        ("AppCmdCst_Config", "Application_ID,Command_Codes\n16777251,316\n16777251,317;316\n".to_owned(), ":3: command 316 of application 16777251 is there already"),
        ("SpecAVPScr_Config", format!("{spec}16777251,316,Request,No-Such-AVP,1\n"), "is not an AVP of the dictionary"),
        ("SpecAVPScr_Config", format!("{spec}16777251,316,Request,User-Name;IMEI,1\n"), "`User-Name` is not a group"),
        ("SpecAVPScr_Config", format!("{spec}16777251,316,Request,RAT-Type,MOON\n"), "is not a value of RAT-Type"),
        ("SpecAVPScr_Config", format!("{spec}16777251,316,Both,RAT-Type,*\n16777251,316,Request,RAT-Type,WLAN\n"), ":3: a row before it finds the same"),
        ("AVPInstChk_Config", format!("{inst}16777251,316,Request,User-Name,2,1\n"), "Minimum_Instance 2 is above"),
        ("AVPInstChk_Config", format!("{inst}16777251,316,Both,User-Name,0,1\n16777251,316,Answer,User-Name,0,2\n"), ":3: the same AVP of the same messages"),
        ("AVPInstChk_Config", format!("{inst}16777251,316,Sideways,User-Name,0,1\n"), "Message_Type `Sideways`"),
        ("AVPInstChk_Config", format!("{inst}16777251,316,Request,a;b;c;d;e;f,0,1\n"), "more than 5 levels"),
        ("TimeDistChk_Config", format!("{pair}208,310,60\n310,208,90\n"), ":3: the pair of 310 and 208 is there already"),
        ("TimeDistChk_Config", format!("{pair}208,262,60\n"), "neighbours or excepted"),
        ("TimeDistChk_Config", format!("{pair}208,999,60\n"), "not an assigned MCC"),
        ("TimeDistChk_Exception_List", "MCC,Exception_List_For_Country\n208,262\n".to_owned(), "are neighbours"),
        ("TimeDistChk_Continent_Config", "Continent_1,Continent_2,Minimum_Transition_Time\neurope,europe,9\n".to_owned(), "one continent twice"),
        ("TimeDistChk_Country_Config", "MCC,Latitude,Longitude\n208,NaN,0\n".to_owned(), "is not on the Earth"),
        ("IMSI_Exception_Config", "Start_Address,End_Address,CounterMeasures\n26201,26200,*\n".to_owned(), "ends before it begins"),
        ("IMSI_Exception_Config", "Start_Address,End_Address,CounterMeasures\n26201,,*\n262011,,*\n".to_owned(), ":3: overlaps"),
        ("IMSI_Exception_Config", "Start_Address,End_Address,CounterMeasures\n26201,,DrOrMatch\n".to_owned(), "DrOrMatch is not on: the row can never match"),
        ("Realm_Exception_Config", "Realm,CounterMeasures\na.example,Nonsense\n".to_owned(), "unknown measure `Nonsense`"),
        ("VPLMN_ID_Exception_Config", "VPLMN_ID,CounterMeasures\n26201,*\n26201,*\n".to_owned(), ":3: 26201 is there already"),
        ("Security_Countermeasure_Config", "CounterMeasure_Type,Admin_Status,Operating_Mode\nDrOrMatch,On,Detection_Only\n".to_owned(), "Admin_Status `On`"),
        ("Security_Countermeasure_Config", "CounterMeasure_Type,Admin_Status,Operating_Mode,Direction\nDrOrMatch,Enable,Detection_Only,Egress\n".to_owned(), "can never match"),
        ("Security_Countermeasure_Config", "CounterMeasure_Type,Admin_Status,Operating_Mode\nDrOrMatch,Enable,Detection_Only\nDrOrMatch,Enable,Detection_Only\n".to_owned(), ":3: DrOrMatch is on for the same partners and direction in line 2"),
        ("Security_Countermeasure_Config", "CounterMeasure_Type,Admin_Status,Operating_Mode,Foreign_WL_Peers_Cfg_Sets\nDrOrMatch,Enable,Detection_Only,north\n".to_owned(), "unknown set `north`"),
        ("Security_Countermeasure_Config", "CounterMeasure_Type,Admin_Status,Operating_Mode,Result_Code\nDrOrMatch,Enable,Detection_Only,5012\n".to_owned(), "has a result"),
        ("Security_Countermeasure_Config", "CounterMeasure_Type,Admin_Status,Operating_Mode,Result_Code\nDrOrMatch,Enable,Detection_And_Correction_By_Send_Answer,2001\n".to_owned(), "is not an error"),
    ] {
        let error = mistakes(table, &text);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn a_row_for_commands_that_another_measure_blocks_can_never_match() {
    let rows = [
        "AppCmdCst,Detection_And_Correction_By_Drop,No,,,".to_owned(),
        format!("AVPInstChk,{DETECT}"),
    ];
    let directory = tables(&rows);
    assert!(check_tables(&settings(directory.path())).is_ok());
    let text = "Application_ID,Command_Code,Message_Type,AVP_Name,Minimum_Instance,Maximum_Instance\n\
                16777251,322,Request,User-Name,0,1\n";
    write(directory.path(), "AVPInstChk_Config", text);
    let error = check_tables(&settings(directory.path())).unwrap_err();
    assert!(
        error.contains("lets no command 322 of application 16777251 pass"),
        "{error}"
    );
}

#[test]
fn a_directory_that_is_none_and_bytes_that_are_no_text_are_errors() {
    let directory = tables(&[]);
    let error = check_tables(&settings(directory.path())).unwrap_err();
    assert!(error.contains("no measure is on"), "{error}");
    std::fs::write(directory.path().join("Realm_List.csv"), [0xff, 0xfe, 0]).unwrap();
    let error = check_tables(&settings(directory.path())).unwrap_err();
    assert!(error.contains("Realm_List.csv"), "{error}");
    let error = check_tables(&settings(&directory.path().join("none"))).unwrap_err();
    assert!(error.contains("is not a directory"), "{error}");
    let many: String = (0..100).map(|_| "x\n".to_owned()).collect();
    write(
        directory.path(),
        "Realm_List",
        &format!("Network_Type,Realm\n{}", "x,y\n".repeat(100)),
    );
    write(
        directory.path(),
        "AppIdWL_Config",
        &format!("Application_ID\n{many}"),
    );
    let error = check_tables(&settings(directory.path())).unwrap_err();
    assert!(error.contains("and 180 more"), "{error}");
}

#[test]
fn a_file_that_is_the_name_of_no_table_is_a_mistake() {
    let directory = tables(&[format!("AppIdWL,{DETECT}")]);
    assert!(check_tables(&settings(directory.path())).is_ok());
    for (name, nearest) in [
        ("Realm_Lists", "Realm_List.csv"),
        ("appidwl_config", "AppIdWL_Config.csv"),
        ("TimeDistChk_Cfg", "TimeDistChk_Config.csv"),
    ] {
        write(directory.path(), name, "x\n");
        let error = check_tables(&settings(directory.path())).unwrap_err();
        let wanted = format!("{name}.csv: is the name of no table; did you mean {nearest}?");
        assert!(error.contains(&wanted), "{error}");
        std::fs::remove_file(directory.path().join(format!("{name}.csv"))).unwrap();
    }
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    let directory = tables(&[format!("AppIdWL,{DETECT}")]);
    let other = directory.path().join("VPLMN_ID_Exception_Config.csv");
    for make in ["mkdir", "mkfifo"] {
        let made = std::process::Command::new(make).arg(&other).status().unwrap();
        assert!(made.success());
        let error = check_tables(&settings(directory.path())).unwrap_err();
        assert!(
            error.contains("VPLMN_ID_Exception_Config.csv: is not a regular file"),
            "{error}"
        );
        let findings = dsr_dsa::config::Dsa {
            tables: None,
            findings: Some(other.clone()),
            ..settings(directory.path())
        };
        let samples = dsr_dsa::config::Dsa {
            samples: Some(dsr_dsa::config::Samples {
                directory: other.clone(),
                ..dsr_dsa::config::Samples::default()
            }),
            ..settings(directory.path())
        };
        let is_directory = make == "mkdir";
        assert_eq!(dsr_dsa::check_samples(&samples).is_ok(), is_directory, "{make}");
        for error in [
            dsr_dsa::check_findings(&findings).unwrap_err(),
            dsr_dsa::Dsa::load(&findings).unwrap_err(),
        ] {
            assert!(error.contains("is not a regular file"), "{error}");
        }
        let removed = std::process::Command::new("rm")
            .arg("-r")
            .arg(&other)
            .status()
            .unwrap();
        assert!(removed.success());
    }
    let nowhere = dsr_dsa::config::Dsa {
        findings: Some("/nowhere/findings.jsonl".into()),
        ..settings(directory.path())
    };
    assert!(dsr_dsa::check_findings(&nowhere).is_err());
}
