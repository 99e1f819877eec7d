//! `signalbox pcf trace` and `activity`, as an operator uses them.

use std::process::Command;

use crate::process::{Process, harmless, signalbox, text};

const SUPI: &str = "imsi-001010000000001";

#[test]
fn a_subscriber_is_traced_shown_and_traced_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    let run = ["run", "pcf", "--config", config.to_str().unwrap()];
    let process = Process::start(&run, folder.path());
    let admin = process.address("pcf admin").to_string();
    let pcf = |args: &[&str]| {
        let all = [&["pcf"][..], args, &["--admin", &admin]].concat();
        let output = signalbox(&all);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, nothing) = pcf(&["activity", SUPI]);
    assert_eq!(code, Some(1));
    assert!(nothing.contains("signalbox pcf trace add"), "{nothing}");
    let (code, listed) = pcf(&["trace", "add", SUPI]);
    assert_eq!(code, Some(0), "{listed}");
    assert!(listed.contains(SUPI) && listed.contains("operator"), "{listed}");
    assert_eq!(pcf(&["trace", "list"]), (Some(0), listed));

    let sbi = process.address("pcf SBI");
    let body = format!(
        r#"{{"supi":"{SUPI}","pduSessionId":1,"pduSessionType":"IPV4","dnn":"internet",
            "notificationUri":"http://127.0.0.1:9/smf","sliceInfo":{{"sst":1}},"ipv4Address":"10.45.0.2"}}"#
    );
    let posted = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--http2-prior-knowledge"])
        .args(["-H", "content-type: application/json", "-d", &body])
        .arg(format!("http://{sbi}/npcf-smpolicycontrol/v1/sm-policies"))
        .output();
    let Ok(posted) = posted else {
        eprintln!("skipped: curl is missing");
        return;
    };
    assert!(posted.status.success(), "{}", text(&posted.stderr));
    let (code, timeline) = pcf(&["activity", SUPI]);
    assert_eq!(code, Some(0), "{timeline}");
    for part in [
        "N7",
        "POST /npcf-smpolicycontrol/v1/sm-policies",
        "sessRules.default",
        "sm association created",
        "201",
    ] {
        assert!(timeline.contains(part), "{part} in\n{timeline}");
    }
    let (_, whole) = pcf(&["trace", "show", SUPI]);
    assert!(whole.contains("\"pduSessionId\": 1"), "{whole}");
    let (code, left) = pcf(&["trace", "remove", SUPI]);
    assert_eq!(code, Some(0), "{left}");
    assert!(!left.contains(SUPI), "{left}");
}
