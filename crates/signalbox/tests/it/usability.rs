//! What a person at the terminal, a browser and Prometheus get.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use crate::process::{ask, signalbox, text};
use crate::up::Up;

/// A page of an admin endpoint for a client that accepts this type, head and body.
fn accepting(admin: SocketAddr, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {admin}\r\nAccept: {accept}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn check_at_a_closed_pipe_ends_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    std::fs::write(&file, "nrf: {lisen: 1}\n").unwrap();
    for (args, stream) in [(vec!["check"], "stderr"), (vec!["check", "--json"], "stdout")] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
        command
            .args(&args)
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if stream == "stderr" {
            command.stderr(writer);
        } else {
            command.stdout(writer);
        }
        assert_eq!(command.status().unwrap().code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_second_up_names_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    assert!(up.page.contains("state/nrf  (new)"), "{}", up.page);
    let admin = up.admin("nrf");
    let second = folder.path().join("second.yaml");
    std::fs::write(&second, format!("nrf: {{admin: \"{admin}\"}}\n")).unwrap();
    let output = signalbox(&["up", "--config", second.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        &format!("Signalbox runs already: its nrf answers at http://{admin} (process "),
        &format!("{} nrf status --admin {admin}", env!("CARGO_BIN_EXE_signalbox")),
        "Ctrl-C in its terminal, or kill ",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    // The first one still serves.
    assert_eq!(ask(admin, "GET", "/readyz").0, 200);
}

#[test]
fn what_up_suggests_works_as_printed() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    up.is_populated();
    let program = env!("CARGO_BIN_EXE_signalbox");
    let commands: Vec<&str> = up
        .page
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(program))
        .collect();
    assert!(commands.len() >= 5, "{}", up.page);
    for command in commands {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    }
    for function in [
        "nrf", "scp", "bsf", "pcf", "scef", "dsr", "ipfe", "stp", "enum", "sds", "dp",
    ] {
        let admin = up.admin(function);
        assert!(
            up.page.contains(&format!("curl http://{admin}/metrics")),
            "{}",
            up.page
        );
    }
}

#[test]
fn metrics_of_the_process_stand_at_one_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    let mut pages = String::new();
    for function in [
        "nrf", "scp", "bsf", "pcf", "scef", "dsr", "ipfe", "stp", "enum", "sds", "dp",
    ] {
        pages.push_str(&ask(up.admin(function), "GET", "/metrics").1);
    }
    for metric in [
        "signalbox_process_cpu_seconds_total ",
        "signalbox_build_info{version=",
    ] {
        let count = pages.lines().filter(|line| line.starts_with(metric)).count();
        assert_eq!(count, 1, "{metric}");
    }
}

#[test]
fn metrics_come_in_the_format_that_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &["--no-traffic"]);
    let admin = up.admin("nrf");
    let page = accepting(admin, "/metrics", "*/*");
    assert!(
        page.contains("text/plain; version=0.0.4") && !page.contains("# EOF"),
        "{page}"
    );
    let page = accepting(
        admin,
        "/metrics",
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3",
    );
    assert!(
        page.contains("application/openmetrics-text") && page.ends_with("# EOF\n"),
        "{page}"
    );
    // A skip even where peers are required: promtool comes only with a server that starts with the machine.
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!("skipped: promtool is not installed (package prometheus)");
        return;
    }
    for function in [
        "nrf", "scp", "bsf", "pcf", "scef", "dsr", "ipfe", "stp", "enum", "sds", "dp",
    ] {
        let page = ask(up.admin(function), "GET", "/metrics").1;
        let mut child = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(output.status.success() && said.is_empty(), "{function}: {said}");
    }
}

#[test]
fn a_browser_gets_links_to_all_pages() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &["--no-traffic"]);
    let page = accepting(up.admin("nrf"), "/", "text/html,*/*");
    for part in [
        "text/html",
        "<a href=\"/nrf/instances\">",
        "/config/reload",
        "rel=\"icon\"",
    ] {
        assert!(page.contains(part), "{part} is missing:\n{page}");
    }
    let page = ask(up.admin("dsr"), "GET", "/").1;
    assert!(page.contains("GET  /dsr/peers") && !page.contains('<'), "{page}");
}

#[test]
fn scp_why_explains_the_example_of_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    up.is_populated();
    let admin = up.admin("scp").to_string();
    let query =
        "method=GET&path=/nudm-sdm/v2/x&target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-001010000000001";
    let said = || text(&signalbox(&["scp", "why", query, "--admin", &admin]).stdout);
    // The SCP learns of the simulated UDMs by notifications.
    crate::process::until("an explanation with a candidate", || {
        said().contains("http://127.0.0.1:")
    });
    let said = said();
    assert!(
        said.contains("nudm-sdm") && !said.contains("StagePolicy"),
        "{said}"
    );
}
