//! What is refused says so: in status, exit code, metric and alarm; a start that waits says what for.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testpeer::collector::AlarmServer;
use tls::authority::Authority;

use crate::process::{Process, ask, harmless, harmless_but, log, signalbox, text, until};

fn metric(admin: SocketAddr, name: &str) -> Option<String> {
    let page = ask(admin, "GET", "/metrics").1;
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")))?;
    line.rsplit(' ').next().map(str::to_owned)
}

fn differs(admin: SocketAddr) -> bool {
    metric(admin, "signalbox_config_differs").is_some_and(|value| value.parse() == Ok(1.0))
}

/// What the alarm about the configuration says; `None` where it is not raised.
fn alarm(admin: SocketAddr) -> Option<String> {
    let alarms: Value = serde_json::from_str(&ask(admin, "GET", "/alarms").1).unwrap();
    let mut active = alarms["active"].as_array().unwrap().iter();
    let found = active.find(|alarm| alarm["number"] == 10525)?;
    Some(found["detail"].as_str().unwrap().to_owned())
}

fn reload(function: &str, admin: SocketAddr) -> (Option<i32>, String) {
    let output = signalbox(&[function, "reload", "--admin", &admin.to_string()]);
    let said = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), said)
}

/// A policy project of one's own; with a mistake in it, where wanted.
fn project(folder: &Path, has_mistake: bool) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policy/low/project.yaml");
    let text = std::fs::read_to_string(example).unwrap();
    assert!(text.contains("sessRuleId: ims"));
    std::fs::create_dir_all(folder).unwrap();
    let text = match has_mistake {
        true => text.replacen("sessRuleId: ims", "sesRuleId: ims", 1),
        false => text,
    };
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

/// A part of what a file names is refused as the file itself is: a policy project.
#[test]
fn a_policy_project_that_is_refused_fails_the_reload() {
    let folder = tempfile::tempdir().unwrap();
    let of_project = folder.path().join("project");
    project(&of_project, false);
    let config = harmless(None, folder.path());
    let mut settings: Value = shown(&config);
    settings["pcf"]["policy"]["sm"] = of_project.to_str().unwrap().into();
    std::fs::write(&config, settings::to_yaml(&settings)).unwrap();
    let process = Process::start(
        &["run", "pcf", "--config", config.to_str().unwrap()],
        folder.path(),
    );
    let admin = process.address("pcf admin");
    assert_eq!(reload("pcf", admin).0, Some(0));
    assert!(!differs(admin) && alarm(admin).is_none());

    project(&of_project, true);
    let (status, said) = ask(admin, "POST", "/config/reload");
    assert_eq!(status, 422, "{said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert!(
        answer["invalid"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("sesRuleId"),
        "{said}"
    );
    let (code, said) = reload("pcf", admin);
    assert!(
        code == Some(1) && said.contains("project.yaml:") && said.contains("refused in part"),
        "{said}"
    );
    assert!(differs(admin) && alarm(admin).unwrap().contains("sesRuleId"));

    // Another setting has changed at the same time: it is not the one that is at fault.
    settings["pcf"]["policy"]["fallback"] = "refuse".into();
    std::fs::write(&config, settings::to_yaml(&settings)).unwrap();
    let (status, said) = ask(admin, "POST", "/config/reload");
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, &answer["invalid"][0]["what"]),
        (422, &"pcf.policy.sm".into())
    );
    assert_eq!(
        answer["refused"][1],
        "pcf.policy.fallback (not taken before pcf.policy.sm can be used)"
    );

    project(&of_project, false);
    assert_eq!(reload("pcf", admin).0, Some(0), "{}", log(folder.path()));
    assert!(!differs(admin) && alarm(admin).is_none());
}

/// The alarm about a refused file reaches the operator's webhook, and so does its end.
#[test]
fn the_webhook_gets_the_alarm_about_a_refused_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = AlarmServer::start().unwrap();
    let config = harmless_but(None, folder.path(), |config| {
        config["alarms"]["webhook"]["url"] = server.url().into();
    });
    let right = std::fs::read_to_string(&config).unwrap();
    let process = Process::start(
        &["run", "enum", "--config", config.to_str().unwrap()],
        folder.path(),
    );
    let admin = process.address("enum admin");
    let about_file = |status: &str| {
        let alerts = server.alerts();
        let mut alerts = alerts.iter();
        let is_it = |alert: &&Value| alert["labels"]["number"] == "10525" && alert["status"] == status;
        alerts.find(is_it).cloned()
    };
    std::fs::write(&config, "nonsense: true\n").unwrap();
    process.signal("HUP");
    until("the alarm at the webhook", || about_file("firing").is_some());
    let alert = about_file("firing").unwrap();
    assert_eq!(alert["labels"]["function"], "enum");
    let detail = alert["annotations"]["description"].as_str().unwrap();
    assert!(detail.contains("nonsense"), "{detail}");
    assert!(about_file("resolved").is_none());

    std::fs::write(&config, right).unwrap();
    assert_eq!(ask(admin, "POST", "/config/reload").0, 200);
    until("its end at the webhook", || about_file("resolved").is_some());
    let ended = about_file("resolved").unwrap();
    assert_eq!(ended["fingerprint"], alert["fingerprint"]);
    until("the count of what was sent", || {
        let sent = metric(admin, "signalbox_alarm_notifications_total");
        sent.is_some_and(|sent| sent.parse().is_ok_and(|sent: f64| sent >= 2.0))
    });
}

fn shown(file: &Path) -> Value {
    let shown = signalbox(&["config", "show", "--json", "--config", file.to_str().unwrap()]);
    serde_json::from_slice(&shown.stdout).unwrap()
}

/// An NRF with TLS by files in `folder`.
fn secure_nrf(folder: &Path) -> (std::path::PathBuf, tls::TlsFiles) {
    let authority = Authority::new("test").unwrap();
    let identity = authority.issue(&["localhost"]).unwrap();
    let files = authority.write(&identity, folder, "nrf").unwrap();
    let config = harmless(None, folder);
    let mut settings = shown(&config);
    settings["nrf"]["tls"] = serde_json::to_value(&files).unwrap();
    std::fs::write(&config, settings::to_yaml(&settings)).unwrap();
    (config, files)
}

#[test]
fn tls_files_that_do_not_fit_fail_the_reload_and_name_both() {
    let folder = tempfile::tempdir().unwrap();
    let (config, files) = secure_nrf(folder.path());
    let process = Process::start(
        &["run", "nrf", "--config", config.to_str().unwrap()],
        folder.path(),
    );
    let admin = process.address("nrf admin");
    let stray = Authority::new("stray").unwrap();
    let other = stray
        .write(&stray.issue(&["localhost"]).unwrap(), folder.path(), "other")
        .unwrap();
    std::fs::copy(&other.key, &files.key).unwrap();
    let (code, said) = reload("nrf", admin);
    assert_eq!(code, Some(1), "{said}");
    for part in [&files.certificate, &files.key] {
        assert!(said.contains(part.to_str().unwrap()), "{said}");
    }
    assert!(alarm(admin).unwrap().contains("do not belong together"));
    assert_eq!(ask(admin, "POST", "/config/reload").0, 422);
}

/// Peers know a function by the NF instance id of its certificate, so that of another instance would lock it out everywhere.
#[test]
fn a_rotation_to_the_certificate_of_another_instance_is_refused() {
    const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
    const OTHER: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b65";
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("test").unwrap();
    let issue = |id: &str| {
        let identity = authority
            .issue(&["localhost", &format!("urn:uuid:{id}")])
            .unwrap();
        authority.write(&identity, folder.path(), "scp").unwrap()
    };
    let mut files = issue(ID);
    files.check_interval = settings::Period::from_secs(1);
    let config = harmless(None, folder.path());
    let mut settings = shown(&config);
    settings["scp"]["tls"] = serde_json::to_value(&files).unwrap();
    std::fs::write(&config, settings::to_yaml(&settings)).unwrap();
    let process = Process::start(
        &["run", "scp", "--config", config.to_str().unwrap()],
        folder.path(),
    );
    let admin = process.address("scp admin");
    let alarm = || {
        let alarms: Value = serde_json::from_str(&ask(admin, "GET", "/alarms").1).unwrap();
        let mut active = alarms["active"].as_array().unwrap().iter();
        let found = active.find(|alarm| alarm["number"] == 10526)?;
        Some(found["detail"].as_str().unwrap().to_owned())
    };
    issue(OTHER);
    let (status, said) = ask(admin, "POST", "/config/reload");
    assert!(
        status == 422 && said.contains(ID) && said.contains(OTHER),
        "{status} {said}"
    );
    until("the alarm", || {
        alarm().is_some_and(|detail| detail.contains(ID) && detail.contains(OTHER))
    });
    assert!(!log(folder.path()).contains("reloaded TLS files"));
    issue(ID);
    until("the right certificate is taken", || {
        alarm().is_none() && log(folder.path()).contains("reloaded TLS files")
    });
    assert_eq!(ask(admin, "POST", "/config/reload").0, 200);
}

/// A section of which nothing is left would reset the function to its defaults: what a tool leaves that broke off.
#[test]
fn a_reload_does_not_empty_what_had_settings() {
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    let before = shown(&config);
    for (function, lost) in [
        ("nrf", "/nrf"),
        ("scp", "/scp"),
        ("bsf", "/bsf/rx"),
        ("pcf", "/pcf"),
        ("scef", "/scef"),
        ("dsr", "/dsr"),
        ("ipfe", "/ipfe"),
        ("stp", "/stp"),
        ("enum", "/enum"),
        ("sds", "/sds"),
        ("dp", "/dp"),
    ] {
        std::fs::write(&config, settings::to_yaml(&before)).unwrap();
        let process = Process::start(
            &["run", function, "--config", config.to_str().unwrap()],
            folder.path(),
        );
        let admin = process.address(&format!("{function} admin"));
        let runs = ask(admin, "GET", "/config").1;
        let mut emptied = before.clone();
        *emptied.pointer_mut(lost).unwrap() = Value::Null;
        std::fs::write(&config, settings::to_yaml(&emptied)).unwrap();
        for _ in 0..2 {
            let (status, said) = ask(admin, "POST", "/config/reload");
            let path = lost.trim_start_matches('/').replace('/', ".");
            assert_eq!(status, 422, "{said}");
            assert!(said.contains(&path) && said.contains("`{}`"), "{said}");
            assert_eq!(ask(admin, "GET", "/config").1, runs, "{function}");
        }
        assert!(alarm(admin).is_some());
        // The whole section is gone: the file of another process, or a part of its own.
        let mut removed = before.clone();
        removed.as_object_mut().unwrap().remove(function);
        std::fs::write(&config, settings::to_yaml(&removed)).unwrap();
        let (status, said) = ask(admin, "POST", "/config/reload");
        assert_eq!(status, 422, "{said}");
        assert!(said.contains(&format!("`{function}: {{}}`")), "{said}");
        assert_eq!(ask(admin, "GET", "/config").1, runs, "{function}");
        // That of a function that does not run here may go.
        let other = if function == "nrf" { "scp" } else { "nrf" };
        let mut fewer = before.clone();
        fewer.as_object_mut().unwrap().remove(other);
        std::fs::write(&config, settings::to_yaml(&fewer)).unwrap();
        let (status, said) = ask(admin, "POST", "/config/reload");
        assert_eq!(status, 200, "{said}");
        std::fs::write(&config, settings::to_yaml(&before)).unwrap();
        assert_eq!(ask(admin, "POST", "/config/reload").0, 200);
        assert!(alarm(admin).is_none());
    }
}

#[test]
fn a_file_that_nobody_has_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    let process = Process::start(
        &["run", "nrf", "--config", config.to_str().unwrap()],
        folder.path(),
    );
    let admin = process.address("nrf admin");
    let before = std::fs::read(&config).unwrap();
    for wrong in [
        &b""[..],
        b"# nothing\n",
        b"\0\x01\0",
        b"- a\n",
        b"nrf: {listne: 1}\n",
    ] {
        std::fs::write(&config, wrong).unwrap();
        assert!(differs(admin), "changed, and not reloaded");
        let (status, said) = ask(admin, "POST", "/config/reload");
        assert_eq!(status, 422, "{said}");
        assert!(differs(admin) && alarm(admin).is_some(), "{said}");
        let file = config.to_str().unwrap();
        for args in [&["check", file][..], &["run", "nrf", "--config", file]] {
            assert_eq!(signalbox(args).status.code(), Some(2), "{args:?}");
        }
    }
    // By signal: one line in the log for all mistakes.
    process.signal("HUP");
    until("the refusal in the log", || {
        log(folder.path()).matches("did you mean `listen`").count() >= 2
    });
    std::fs::write(&config, before).unwrap();
    assert_eq!(reload("nrf", admin).0, Some(0));
    assert!(!differs(admin) && alarm(admin).is_none());
}

#[test]
fn a_start_that_fails_by_its_files_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let (config, files) = secure_nrf(folder.path());
    std::fs::write(&files.certificate, "nothing").unwrap();
    let output = signalbox(&["run", "nrf", "--config", config.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(files.certificate.to_str().unwrap()), "{said}");
}

/// Machines of a site start in any order: a database that is not there yet is waited for, and readiness says so.
#[test]
fn a_database_that_is_absent_at_the_start_is_waited_for() {
    if cfg!(not(feature = "mariadb")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (admin, database) = (free_ports::address().unwrap(), free_ports::port().unwrap());
    let config = folder.path().join("c.yaml");
    let words = format!(
        "bsf: {{listen: \"127.0.0.1:0\", admin: \"{admin}\", rx: {{listen: []}}, store: {{engine: mariadb, \
         mariadb: {{nodes: [\"127.0.0.1:{database}\"]}}}}}}\n"
    );
    std::fs::write(&config, words).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(["run", "bsf", "--config", config.to_str().unwrap()])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    until("an answer of the admin endpoint", || {
        assert_eq!(child.try_wait().unwrap(), None, "{}", log(folder.path()));
        let answers = std::net::TcpStream::connect(admin).is_ok();
        answers
            && ask(admin, "GET", "/readyz")
                .1
                .contains("waiting for the database")
    });
    assert_eq!(ask(admin, "GET", "/readyz").0, 503);
    assert_eq!(ask(admin, "GET", "/livez").0, 200);
    assert!(ask(admin, "GET", "/alarms").1.contains("10520"));
    assert!(
        ask(admin, "GET", "/metrics")
            .1
            .contains("signalbox_alarm_details{number=\"10520\"")
    );
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", log(folder.path()));
}

/// Listeners share their port between workers (`SO_REUSEPORT`), so the kernel lets a second process of the user in.
#[test]
fn a_port_that_another_process_has_is_refused_with_its_holder() {
    for (function, interface, listen) in [
        ("scp", "scp SBI", "/scp/listen"),
        ("bsf", "bsf SBI", "/bsf/listen"),
        ("dsr", "dsr Diameter", "/dsr/localNodes/0/listen"),
    ] {
        let (folder, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = harmless(None, folder.path());
        let process = Process::start(
            &["run", function, "--config", config.to_str().unwrap()],
            folder.path(),
        );
        let (address, admin) = (
            process.address(interface),
            process.address(&format!("{function} admin")),
        );
        let beside = harmless(None, second.path());
        let everywhere = format!("0.0.0.0:{}", address.port());
        for (setting, taken) in [
            (listen.to_owned(), address.to_string()),
            (listen.to_owned(), everywhere),
            (format!("/{function}/admin"), address.to_string()),
        ] {
            let mut settings = shown(&beside);
            *settings.pointer_mut(&setting).unwrap() = taken.as_str().into();
            let file = second.path().join("second.yaml");
            std::fs::write(&file, settings::to_yaml(&settings)).unwrap();
            let output = signalbox(&["run", function, "--config", file.to_str().unwrap()]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{setting} {taken}: {said}");
            let holder = format!("process {} (", process.id());
            for part in [function, &taken, &holder, &format!("kill {}", process.id())] {
                assert!(
                    said.contains(part),
                    "{setting} {taken}: {part} is missing:\n{said}"
                );
            }
        }
        assert_eq!(ask(admin, "GET", "/livez").0, 200, "the first one goes on");
    }
}
