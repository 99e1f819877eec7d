//! The life of a process: start, inspection, reload, end.

use std::path::Path;

use loadgen::client::{Client, Request};

use crate::process::{Process, ask, examples, harmless, log, signalbox, text, until};

#[test]
fn every_example_starts_and_ends() {
    for file in examples() {
        let folder = tempfile::tempdir().unwrap();
        let config = harmless(Some(&file), folder.path());
        let shown: serde_json::Value = serde_json::from_slice(
            &signalbox(&["config", "show", "--json", "--config", file.to_str().unwrap()]).stdout,
        )
        .unwrap();
        // What an example does not mention is not started.
        let text = std::fs::read_to_string(&file).unwrap();
        let functions: Vec<&str> = shown
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|name| {
                !matches!(*name, "log" | "admin" | "alarms" | "traces" | "changes")
                    && text.lines().any(|line| line.starts_with(&format!("{name}:")))
            })
            .collect();
        let mut args = vec!["run"];
        args.extend(&functions);
        args.extend(["--config", config.to_str().unwrap()]);
        let process = Process::start(&args, folder.path());
        for function in functions {
            let admin = process.address(&format!("{function} admin"));
            let (status, words) = ask(admin, "GET", "/readyz");
            // The NRF and the SDS of the examples are not there, so an SCP knows no producer, and a database processor no subscriber.
            let reason = match function {
                "scp" => "no NRF answers",
                "dp" => "no subscriber database server has answered",
                _ => "",
            };
            let is_truthful = !reason.is_empty() && status == 503 && words.contains(reason);
            assert!(
                status == 200 || is_truthful,
                "{}: {status} {words}",
                file.display()
            );
        }
        process.signal("TERM");
        assert_eq!(
            process.ended().code(),
            Some(0),
            "{}\n{}",
            file.display(),
            log(folder.path())
        );
    }
}

fn nrf(folder: &Path) -> Process {
    let config = harmless(None, folder);
    Process::start(&["run", "nrf", "--config", config.to_str().unwrap()], folder)
}

const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

#[test]
fn a_running_nrf_can_be_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let process = nrf(folder.path());
    let (sbi, admin) = (
        process.address("nrf SBI"),
        process.address("nrf admin").to_string(),
    );
    let mut client = Client::connect(sbi, std::time::Duration::from_secs(5)).unwrap();
    let profile = format!(
        r#"{{"nfInstanceId":"{ID}","nfType":"UDM","nfStatus":"REGISTERED","ipv4Addresses":["127.0.0.1"],"locality":"here"}}"#
    );
    let put =
        Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{ID}")).with("application/json", profile);
    assert_eq!(client.exchange(&[put]).unwrap()[0].status, 201);

    let look = |args: &[&str]| {
        let mut all = vec!["nrf"];
        all.extend(args);
        all.extend(["--admin", &admin]);
        let output = signalbox(&all);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let table = look(&["instances"]);
    assert!(
        table.contains(ID) && table.contains("here") && table.contains("1 entry"),
        "{table}"
    );
    let list: serde_json::Value = serde_json::from_str(&look(&["instances", "--json"])).unwrap();
    assert_eq!(list[0]["nfType"], "UDM");
    assert!(look(&["instance", ID]).contains("ipv4Addresses"));
    assert!(look(&["types"]).contains("UDM   1"));
    assert!(look(&["status"]).starts_with("alive, ready\n"));
    assert!(look(&["alarms"]).contains("0 entries"));
    assert!(look(&["config"]).contains("heartBeat:"));
    let metrics = look(&["metrics", "nrf_registrations"]);
    assert!(
        metrics.contains("signalbox_nrf_registrations_total 1"),
        "{metrics}"
    );
    assert!(!metrics.contains("process"), "{metrics}");
    let all = look(&["metrics"]);
    for part in [
        "signalbox_nrf_profiles{nf_type=\"UDM\"} 1",
        "signalbox_sbi_server_requests_total 1",
        "signalbox_store_batches_total 1",
        "signalbox_sbi_server_connections 1",
        "signalbox_process_resident_memory_bytes",
        "signalbox_build_info{version=",
    ] {
        assert!(all.contains(part), "{part} is missing:\n{all}");
    }
    assert_eq!(look(&["log-level", "warn"]), "warn\n");
    assert_eq!(look(&["log-level"]), "warn\n");

    let wrong = signalbox(&["nrf", "instance", "no-one/../x", "--admin", &admin]);
    assert_eq!(wrong.status.code(), Some(1));
    let wrong = signalbox(&["nrf", "log-level", "x=y=z", "--admin", &admin]);
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn the_configuration_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let process = nrf(folder.path());
    let admin = process.address("nrf admin");
    let file = folder.path().join("config.yaml");
    let before = std::fs::read_to_string(&file).unwrap();

    // What can change changes; what cannot is named.
    std::fs::write(
        &file,
        before
            .replace("filter: info", "filter: debug")
            .replace("maxWaitingWrites: 10000", "maxWaitingWrites: 20000"),
    )
    .unwrap();
    let (status, said) = ask(admin, "POST", "/config/reload");
    assert_eq!(status, 200, "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["applied"], serde_json::json!(["log.filter"]));
    assert_eq!(
        said["refused"],
        serde_json::json!(["nrf.maxWaitingWrites (needs a restart)"])
    );
    assert_eq!(ask(admin, "GET", "/log-level").1, "debug\n");
    let shown: serde_json::Value = serde_json::from_str(&ask(admin, "GET", "/config").1).unwrap();
    assert_eq!(shown["log"]["filter"], "debug");
    assert_eq!(shown["nrf"]["maxWaitingWrites"], 10000);

    // What another process runs with the same file does not wait for this one.
    let other = before.replace("fqdn: scp.signalbox.local", "fqdn: scp.other.example");
    assert_ne!(other, before);
    std::fs::write(&file, &other).unwrap();
    let (status, said) = ask(admin, "POST", "/config/reload");
    assert_eq!(status, 200, "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["refused"], serde_json::json!([]), "{said}");
    std::fs::write(&file, before.replace("filter: info", "filter: debug")).unwrap();
    assert_eq!(ask(admin, "POST", "/config/reload").0, 200);

    // A mistake changes nothing, and says where it is.
    std::fs::write(&file, before.replace("filter: info", "filer: warn")).unwrap();
    let (status, said) = ask(admin, "POST", "/config/reload");
    assert!(status == 422 && said.contains("did you mean `filter`?"), "{said}");
    assert_eq!(ask(admin, "GET", "/log-level").1, "debug\n");

    // By signal.
    std::fs::write(&file, &before).unwrap();
    process.signal("HUP");
    until("the filter of the file", || {
        ask(admin, "GET", "/log-level").1 == "info\n"
    });
    process.signal("INT");
    assert_eq!(process.ended().code(), Some(0), "{}", log(folder.path()));
}

#[test]
fn up_prints_what_to_open_and_has_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let config = harmless(None, folder.path());
    // `up` is for people: it prints a page, not lines.
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(["up", "--config", config.to_str().unwrap()])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut page = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    while !page.contains("Simulated network functions") {
        assert!(
            std::io::BufRead::read_line(&mut out, &mut page).unwrap() > 0,
            "{page}"
        );
    }
    let admin = page
        .lines()
        .find_map(|line| line.trim().strip_prefix("curl http://")?.strip_suffix("/metrics"))
        .unwrap_or_else(|| panic!("{page}"));
    let admin = admin.parse().unwrap();
    until("simulated functions to register", || {
        ask(admin, "GET", "/metrics")
            .1
            .contains("signalbox_nrf_profiles{nf_type=\"AMF\"} 2")
    });
    let id = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let file = folder.path().join("c.yaml");
    let state = folder.path().join("state");
    std::fs::write(
        &file,
        format!(
            "nrf:\n  listen: 127.0.0.1:0\n  admin: {address}\n  store: {{embedded: {{directory: {}}}}}\n",
            state.display()
        ),
    )
    .unwrap();
    let output = signalbox(&["run", "nrf", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains(&address.to_string()),
        "{}",
        text(&output.stderr)
    );
    std::fs::write(&file, "nrf:\n  listen: 127.0.0.1:99999\n").unwrap();
    assert_eq!(
        signalbox(&["run", "nrf", "--config", file.to_str().unwrap()])
            .status
            .code(),
        Some(2)
    );
}
