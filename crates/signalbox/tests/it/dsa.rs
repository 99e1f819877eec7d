//! `signalbox dsa replay`: what is printed, and exit codes.

use diameter_proto::known::{self, application, command};
use diameter_proto::{MessageBuilder, MessageMut};
use testpeer::pcap::{ETHERNET, Pcap, ethernet, tcp};

use crate::process::{signalbox, text};

const TABLES: [(&str, &str); 3] = [
    (
        "Security_Countermeasure_Config",
        "CounterMeasure_Type,Admin_Status,Operating_Mode\nOhOrCstChk,Enable,Detection_And_Correction_By_Drop\n",
    ),
    (
        "Foreign_WL_Peers_Cfg_Sets",
        "Cfg_Set_Name,Peers\nwest,ipx.west.example\n",
    ),
    ("Realm_List", "Network_Type,Realm\nHome_Network,home.example\n"),
];

fn registration(host: &str) -> MessageMut {
    let mut builder = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
    builder
        .put(known::SESSION_ID, "mme;1;2")
        .put(known::ORIGIN_HOST, host)
        .put(known::ORIGIN_REALM, "away.example")
        .put(known::DESTINATION_REALM, "home.example")
        .put(known::USER_NAME, "262011234567890");
    builder.finish().unwrap()
}

#[test]
fn a_capture_is_replayed_and_what_it_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(path("tables")).unwrap();
    for (name, rows) in TABLES {
        std::fs::write(path(&format!("tables/{name}.csv")), rows).unwrap();
    }
    let config = format!(
        "dsr:\n  applications:\n    - name: guard\n      dsa: {{tables: {}}}\n",
        path("tables")
    );
    std::fs::write(path("dsr.yaml"), config).unwrap();
    let (from, to) = (
        "192.0.2.1:40000".parse().unwrap(),
        "192.0.2.2:3868".parse().unwrap(),
    );
    let mut pcap = Pcap::new(ETHERNET);
    let mut number = 1;
    for host in ["mme1.away.example", "mme1.evil.example"] {
        let message = registration(host);
        pcap.packet(&ethernet(&tcp(from, to, (number, 0, 0), message.as_bytes())));
        number += message.as_bytes().len() as u32;
    }
    std::fs::write(path("link.pcap"), pcap.bytes()).unwrap();
    let (file, config) = (path("link.pcap"), path("dsr.yaml"));
    let run = |more: &[&str]| signalbox(&[&["dsa", "replay", &file, "--config", &config], more].concat());

    let output = run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    for part in [
        "2 packets, 2 messages from 2023-11-14T22:13:20Z to 2023-11-14T22:13:21Z",
        "2 messages screened, 1 of them would be dropped or answered",
        "unlisted  OhOrCstChk  dropped   1",
        "ULR of mme1.evil.example at 192.0.2.1:40000: Origin-Host is not in Origin-Realm",
        "sender without a name: 192.0.2.1:40000",
    ] {
        assert!(page.contains(part), "{part} is missing:\n{page}");
    }
    let output = run(&[
        "--json",
        "--examples",
        "0",
        "--peer",
        "192.0.2.1=ipx.west.example",
    ]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = serde_json::json!([
        {"partner": "west", "measure": "OhOrCstChk", "outcome": "dropped", "count": 1, "examples": []}
    ]);
    assert_eq!(report["findings"], found);
    assert_eq!(report["capture"]["messages"], 2);

    std::fs::write(path("link.pcap"), Pcap::new(ETHERNET).bytes()).unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no Diameter message"));
    std::fs::write(
        path("tables/Realm_List.csv"),
        "Network_Type,Realm\nhome,home.example\n",
    )
    .unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("Realm_List.csv:2"), "{said}");
}
