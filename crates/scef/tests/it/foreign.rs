//! python-diameter as HSS and SMS-SC: a peer that reads our messages by its own dictionary.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use http::StatusCode;
use serde_json::json;

use crate::support::{
    CONFIGURATIONS, DEVICE, SUBSCRIPTIONS, TRIGGERS, configuration, local, path_of, server, start,
    subscription, trigger,
};

/// The process; killed when dropped.
struct Hss(Child);

impl Drop for Hss {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn python_diameter_configures_authorizes_and_triggers() {
    let Some(folder) = testpeer::python::diameter(env!("CARGO_TARGET_TMPDIR")) else {
        return testpeer::skip::unavailable("python-diameter (PyPI) is not available");
    };
    local(async {
        // A Python that starts beside a compiler answers late.
        let late = settings::Period::from_secs(60);
        let (scef, server) = (start(|config| config.diameter.timeout = late), server());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hss.py");
        let mut command = Command::new("python3");
        command
            .env("PYTHONPATH", folder)
            .args([script, "hss.example.org", "example.org"])
            .arg(scef.diameter().port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut hss = Hss(command.spawn().unwrap());
        let mut output = BufReader::new(hss.0.stdout.take().unwrap());
        let up = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            (line, output)
        });
        let (line, mut output) = up.await.unwrap();
        assert_eq!(line, "up\n");
        let roaming = json!({"monitoringType": "ROAMING_STATUS", "plmnIndication": true});
        let got = scef
            .api
            .post(SUBSCRIPTIONS, subscription(&server.root(), &roaming))
            .await;
        let path = path_of(&got);
        let got = scef
            .api
            .post(CONFIGURATIONS, configuration(&server.root(), &json!({})))
            .await;
        path_of(&got);
        assert_eq!(scef.api.delete(&path).await.status, StatusCode::NO_CONTENT);
        let got = scef.api.post(TRIGGERS, trigger(&server.root(), &json!({}))).await;
        path_of(&got);
        // Its end of input ends it.
        drop(hss.0.stdin.take());
        let mut asked = String::new();
        output.read_to_string(&mut asked).unwrap();
        let reference = u32::from_str_radix(path.rsplit('/').next().unwrap(), 16).unwrap();
        let lines: Vec<&str> = asked.lines().collect();
        let expected = [
            format!("8388718 {DEVICE} {reference} 4"),
            format!("8388726 {DEVICE} None None"),
            format!("8388718 {DEVICE} None 4"),
            format!("8388641 {DEVICE} None None"),
            format!("8388643 {DEVICE} None None"),
        ];
        assert_eq!(lines, expected);
        scef.stop();
    });
}
