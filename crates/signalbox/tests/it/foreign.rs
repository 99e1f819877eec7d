//! Configurations of other cores become ours, and nothing of them is lost in silence.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::process::{signalbox, text};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/foreign")
        .join(name)
}

fn import(core: &str, files: &[&str], folder: &Path) -> Output {
    let mut args = vec![
        "import".to_owned(),
        core.to_owned(),
        "--output".to_owned(),
        folder.display().to_string(),
    ];
    args.extend(files.iter().map(|file| sample(file).display().to_string()));
    signalbox(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The configuration of a function as its process reads it; it passes `check`.
fn config(folder: &Path, function: &str) -> Value {
    let file = folder.join(format!("{function}.yaml"));
    let file = file.to_str().unwrap();
    let checked = signalbox(&["check", file]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let shown = signalbox(&["config", "show", "--json", "--config", file]);
    let mut config: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let log = config["log"]["filter"].take();
    let mut section = config[function].take();
    section["log"] = log;
    section
}

const OPEN5GS: [&str; 7] = [
    "nrf.yaml",
    "scp.yaml",
    "bsf.yaml",
    "pcf.yaml",
    "pcrf.yaml",
    "pcrf.conf",
    "smf.yaml",
];

#[test]
fn open5gs_configurations_become_ours() {
    let folder = tempfile::tempdir().unwrap();
    let output = import("open5gs", &OPEN5GS, folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let nrf = config(folder.path(), "nrf");
    assert_eq!(nrf["listen"], "127.0.5.10:7777");
    assert_eq!(nrf["heartBeat"]["default"], "20s");
    assert_eq!(nrf["log"], "debug");
    let scp = config(folder.path(), "scp");
    assert_eq!(scp["nrf"]["roots"], json!(["http://127.0.5.10:7777"]));
    let bsf = config(folder.path(), "bsf");
    assert_eq!(bsf["listen"], json!(["127.0.5.15:7777", "[::1]:7777"]));
    assert_eq!(bsf["apiRoot"], "http://bsf.core.test:7777");
    // Behind an SCP there, by the NRF itself here.
    assert_eq!(bsf["nrf"]["apiRoots"], json!(["http://127.0.5.10:7777"]));
    let pcf = config(folder.path(), "pcf");
    assert_eq!(pcf["admin"], "127.0.5.13:9190");
    assert_eq!(pcf["bsf"]["discover"], true);
    let diameter = &pcf["diameter"];
    assert_eq!(diameter["host"], "pcrf.core.test");
    assert_eq!(diameter["realm"], "core.test");
    assert_eq!(diameter["listen"], "127.0.5.9:3868");
    assert_eq!(diameter["networks"], json!(["127.0.5.4/32"]));
}

/// What a server publishes is reachable, or listed.
#[test]
fn published_names_of_open5gs_have_the_port_of_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let import_of = |name: &str, server: &str| {
        let file = folder.path().join(format!("{name}-theirs.yaml"));
        std::fs::write(&file, format!("nrf:\n  sbi:\n    server:\n      - {server}\n")).unwrap();
        let ours = folder.path().join(name);
        let output = import("open5gs", &[file.to_str().unwrap()], &ours);
        (ours, format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    for (name, advertise, root) in [
        ("one", "nrf.example.org", "http://nrf.example.org:7777"),
        ("other", "\"nrf.example.org:80\"", "http://nrf.example.org:80"),
        (
            "several",
            "[nrf.example.org, more.example.org]",
            "http://nrf.example.org:7777",
        ),
        ("six", "\"[2001:db8::1]\"", "http://[2001:db8::1]:7777"),
    ] {
        let server = format!("{{address: 127.0.0.10, port: 7777, advertise: {advertise}}}");
        let (ours, _) = import_of(name, &server);
        assert_eq!(config(&ours, "nrf")["apiRoot"], root);
    }
    let (_, said) = import_of("quotes", "{address: 127.0.0.10, advertise: \"nrf's x\"}");
    assert!(said.contains("not a name or an address of a host"), "{said}");
    let (ours, said) = import_of("variables", "{address: \"${NRF_IP}\", port: \"${NRF_PORT}\"}");
    assert!(said.contains("it is not a number"), "{said}");
    let written = std::fs::read_to_string(ours.join("nrf.yaml")).unwrap_or_default();
    assert!(!written.contains("listen"), "{written}");
}

#[test]
fn policies_of_open5gs_become_a_project() {
    let folder = tempfile::tempdir().unwrap();
    assert!(import("open5gs", &OPEN5GS, folder.path()).status.success());
    let project = folder.path().join("policy");
    let project = project.to_str().unwrap();
    // Each session has a test case.
    let tested = signalbox(&["policy", "test", project]);
    let said = text(&tested.stdout) + &text(&tested.stderr);
    assert!(tested.status.success(), "{said}");
    assert!(said.contains("4 passed, 0 failed"), "{said}");

    let cases = json!([
        {
            "name": "the second range, a DNN in capital letters",
            "request": {"supi": "imsi-001020000000003", "pduSessionId": 1, "dnn": "INTERNET", "sliceInfo": {"sst": 1}},
            // Of its first policy the network does not fit, though a range does.
            "expectRejection": {"status": 403, "cause": "USER_UNKNOWN", "detail": "no policy is for this subscriber"},
        },
        {
            "name": "the rate of each direction",
            "request": {"supi": "imsi-001010000000099", "pduSessionId": 1, "dnn": "internet", "sliceInfo": {"sst": 1, "sd": "FFFFFF"}},
            "expect": {
                "sessRules": {"default": {
                    "sessRuleId": "default",
                    "authSessAmbr": {"uplink": "64 Kbps", "downlink": "200 Mbps"},
                    "authDefQos": {"5qi": 9, "arp": {"priorityLevel": 8, "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE"}},
                }},
                "policyCtrlReqTriggers": ["SE_AMBR_CH", "DEF_QOS_CH"],
            },
        },
        {
            "name": "a slice that the policy does not have",
            "request": {"supi": "imsi-001010000000001", "pduSessionId": 1, "dnn": "internet", "sliceInfo": {"sst": 2, "sd": "000080"}},
            "expectRejection": {
                "status": 403,
                "cause": "POLICY_CONTEXT_DENIED",
                "detail": "the policy has no session of this slice and DNN",
            },
        },
    ]);
    std::fs::write(Path::new(project).join("cases/more.json"), cases.to_string()).unwrap();
    let tested = signalbox(&["policy", "test", project]);
    let said = text(&tested.stdout) + &text(&tested.stderr);
    assert!(said.contains("7 passed, 0 failed"), "{said}");
}

/// Policies of which earlier ones leave something, and one of which they leave nothing.
#[test]
fn overlapping_policies_make_a_project_without_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let session = |value: u32| {
        let rate = json!({"value": value, "unit": 2});
        json!([{"sst": 1, "session": [{"name": "internet", "ambr": {"downlink": rate, "uplink": rate}}]}])
    };
    let range = |range: &str, value: u32| json!({"supi_range": range, "slice": session(value)});
    let theirs = json!({"pcf": {"policy": [
        range("001010000000005-001010000000015", 1),
        range("001010000000010-001010000000020", 2),
        range("001010000000006-001010000000007", 3),
        {"plmn_id": {"mcc": "001", "mnc": "01"}, "slice": session(4)},
    ]}});
    let file = folder.path().join("pcf.yaml");
    std::fs::write(&file, settings::to_yaml(&theirs)).unwrap();
    let to = folder.path().join("new");
    let args = [
        "import",
        "open5gs",
        file.to_str().unwrap(),
        "--output",
        to.to_str().unwrap(),
    ];
    let said = text(&signalbox(&args).stderr);
    assert!(
        said.contains("pcf.policy[2].supi_range: not carried over: an earlier policy"),
        "{said}"
    );
    config(&to, "pcf");
    let project = to.join("policy");
    let tested = signalbox(&["policy", "test", project.to_str().unwrap()]);
    let said = text(&tested.stdout) + &text(&tested.stderr);
    assert!(said.contains("3 passed, 0 failed"), "{said}");
}

#[test]
fn what_has_no_place_here_is_listed_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = import("open5gs", &OPEN5GS, folder.path());
    let said = text(&output.stderr);
    for part in [
        "nrf.yaml:4: logger.file: not carried over: logs go to stderr",
        "nrf.yaml:5: global: not carried over",
        "nrf.yaml:8: nrf.serving: not carried over",
        "pcf.yaml:1: db_uri: not carried over",
        "pcf.yaml:8: pcf.sbi.client.scp: not carried over: the function reaches the NRF directly",
        "pcf.yaml:47: pcf.policy[0].slice[1].session[0].pcc_rule[1]: not carried over: a rule without flows",
        "pcrf.conf:5: TLS_CA: not carried over: no peer connects with TLS",
        "pcrf.conf:7: LoadExtension: not carried over",
        "smf.yaml:1: smf: not carried over: this function stays with Open5GS",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    assert!(!said.contains("not known here"), "{said}");
}

#[test]
fn an_unknown_part_is_listed_and_no_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.yaml");
    std::fs::write(
        &file,
        "nrf:\n  sbi:\n    server:\n      - {address: 127.0.0.1, port: 7777, colour: red}\n  wishes: {a: 1}\n",
    )
    .unwrap();
    let (file, to) = (file.to_str().unwrap(), folder.path().join("new"));
    let args = ["import", "open5gs", file, "--output", to.to_str().unwrap()];
    let said = text(&signalbox(&args).stderr);
    for part in [":4: nrf.sbi.server[0].colour: not", ":5: nrf.wishes: not"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let again = signalbox(&args);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("exists"), "{}", text(&again.stderr));
    // A function that is not here alone makes nothing.
    let nothing = import("open5gs", &["smf.yaml"], &folder.path().join("none"));
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing.stderr));
    assert!(!folder.path().join("none").exists());
}

#[test]
fn tls_of_open5gs_is_carried_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pcf.yaml");
    let theirs = json!({"pcf": {
        "default": {"tls": {
            "server": {"scheme": "https", "private_key": "/k", "cert": "/c", "verify_client": "true", "verify_client_cacert": "/a"},
            "client": {"scheme": "https", "cacert": "/a", "client_private_key": "/k", "client_cert": "/c"},
        }},
        "sbi": {"server": [{"address": "127.0.0.1"}], "client": {"nrf": [{"uri": "https://nrf.core.test"}]}},
    }});
    std::fs::write(&file, settings::to_yaml(&theirs)).unwrap();
    let to = folder.path().join("new");
    let args = [
        "import",
        "open5gs",
        file.to_str().unwrap(),
        "--output",
        to.to_str().unwrap(),
    ];
    let output = signalbox(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let made = to.join("pcf.yaml");
    let checked = signalbox(&["check", "--elsewhere", made.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let shown = signalbox(&["config", "show", "--json", "--config", made.to_str().unwrap()]);
    let config: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let pcf = &config["pcf"];
    assert_eq!(pcf["listen"], "127.0.0.1:443");
    assert_eq!(
        (&pcf["tls"]["certificate"], &pcf["tls"]["authorities"]),
        (&"/c".into(), &"/a".into())
    );
    assert_eq!(pcf["tls"]["requireClientCertificate"], true);
    assert_eq!(
        (&pcf["clientTls"]["key"], &pcf["clientTls"]["authorities"]),
        (&"/k".into(), &"/a".into())
    );
}

#[test]
fn free5gc_configurations_become_ours() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["nrfcfg.yaml", "pcfcfg.yaml", "bsfcfg.yaml", "scpcfg.yaml"];
    let output = import("free5gc", &files, folder.path());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let nrf = config(folder.path(), "nrf");
    assert_eq!(nrf["listen"], "127.0.6.10:8000");
    assert_eq!(nrf["tokens"]["protectOwnServices"], true);
    assert_eq!(nrf["log"], "debug");
    let pcf = config(folder.path(), "pcf");
    assert_eq!(pcf["apiRoot"], "http://pcf.core.test:8000");
    assert_eq!(pcf["nrf"]["apiRoots"], json!(["http://127.0.6.10:8000"]));
    assert_eq!(pcf["nrf"]["profile"]["locality"], "area1");
    assert_eq!(
        (&pcf["bsf"]["discover"], &pcf["diameter"]["enabled"]),
        (&true.into(), &false.into())
    );
    // Its consumers take the prefix for the whole address.
    let service = &pcf["nrf"]["profile"]["nfServices"][0];
    assert_eq!(service["serviceName"], "npcf-smpolicycontrol");
    assert_eq!(service["apiPrefix"], "http://pcf.core.test:8000");
    assert_eq!(config(folder.path(), "bsf")["listen"], "127.0.6.15:8000");
    assert_eq!(
        config(folder.path(), "scp")["nrf"]["roots"],
        json!(["http://127.0.6.10:8000"])
    );
    for part in [
        "pcfcfg.yaml:12: configuration.mongodb: not carried over: the subscribers",
        "pcfcfg.yaml:8: configuration.sbi.tls: not carried over: the server has no TLS",
        "scpcfg.yaml:4: configuration.amfUri: not carried over",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    assert!(!said.contains("not known here"), "{said}");
}
