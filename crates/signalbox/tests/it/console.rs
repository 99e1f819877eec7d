//! The console beside real functions: in `up`, and as a process of its own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{Process, ask, harmless, signalbox, text, until};
use crate::up::Up;

/// Functions that `up` starts beside the console.
const FOLLOWED: usize = 11;

fn summary(console: SocketAddr) -> Value {
    let (status, body) = ask(console, "GET", "/api/v1/summary");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn headline(console: SocketAddr) -> String {
    let summary = summary(console);
    summary["headline"]["text"].as_str().unwrap().to_owned()
}

/// The address that `up` prints.
fn printed(up: &Up) -> SocketAddr {
    let line = up
        .page
        .lines()
        .find_map(|line| line.trim().strip_prefix("In a browser: http://"));
    let address = line.and_then(|line| line.split('/').next()).unwrap();
    address.parse().unwrap()
}

#[test]
fn up_has_a_console_that_sees_every_function_work() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    let console = printed(&up);
    let at_work = ["nrf", "scp", "bsf", "pcf", "dsr"];
    until(
        "every function to answer, and those at work to have requests",
        || {
            let summary = summary(console);
            let rows = summary["functions"].as_array().unwrap();
            let serves = |row: &&Value| row["level"] == "good" || row["level"] == "attention";
            let works = |row: &&Value| {
                row["figures"]["perSecond"]
                    .as_f64()
                    .is_some_and(|rate| rate > 0.0)
            };
            let working = rows.iter().filter(works).filter_map(|row| row["name"].as_str());
            let working: Vec<&str> = working.collect();
            rows.iter().filter(serves).count() == FOLLOWED
                && at_work.iter().all(|name| working.contains(name))
        },
    );
    let summary = summary(console);
    let scp = summary["functions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "scp")
        .unwrap();
    assert_eq!(scp["admin"], up.admin("scp").to_string());
    assert_eq!(scp["registered"]["state"], "good", "{scp}");
    assert!(scp["figures"]["p99PeersSeconds"].is_f64(), "{scp}");
    // What the box finds is what the function's own page has.
    until("a session to be found", || {
        let sessions: Value = serde_json::from_str(&ask(up.admin("pcf"), "GET", "/pcf/sessions").1).unwrap();
        let Some(supi) = sessions[0]["supi"].as_str() else {
            return false;
        };
        let (_, body) = ask(console, "GET", &format!("/api/v1/find?text={supi}"));
        let found: Value = serde_json::from_str(&body).unwrap();
        let answers = found["answers"].as_array().unwrap();
        let asked: Vec<&str> = answers
            .iter()
            .filter_map(|one| one["function"].as_str())
            .collect();
        assert!(
            ["bsf", "pcf", "dsr"].iter().all(|name| asked.contains(name)),
            "{found}"
        );
        answers
            .iter()
            .any(|one| one["about"] == "policy associations" && one["rows"][0]["supi"] == supi)
    });
    // A reload of the file keeps what is followed.
    assert_eq!(ask(up.admin("console"), "POST", "/config/reload").0, 200);
    let (_, words) = ask(console, "GET", "/text");
    assert!(words.contains("pcf: serves"), "{words}");
}

#[test]
fn a_console_of_its_own_follows_the_file_and_sees_a_killed_function() {
    let folder = tempfile::tempdir().unwrap();
    let address = || free_ports::address().unwrap();
    let state = folder.path().join("state");
    let file = folder.path().join("core.yaml");
    let words = format!(
        "nrf: {{listen: \"{}\", admin: \"{}\", workers: 1, store: {{embedded: {{directory: \"{}\"}}}}}}\n\
         console: {{listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}}\n",
        address(),
        address(),
        state.display()
    );
    std::fs::write(&file, words).unwrap();
    let start = |function: &str| {
        let own = folder.path().join(function);
        std::fs::create_dir_all(&own).unwrap();
        Process::start(&["run", function, "--config", file.to_str().unwrap()], &own)
    };
    let console = start("console");
    let at = console.address("console HTTP");
    until("the NRF to be missed", || {
        let said = headline(at);
        said.starts_with("0 of 1 functions serve; 1 thing needs you: NRF is not running since ")
            && said.ends_with("; it has never answered this console).")
    });
    let nrf = start("nrf");
    until("the NRF to serve", || headline(at) == "The function serves.");
    nrf.signal("KILL");
    nrf.ended();
    until("the NRF to be gone", || {
        headline(at).contains("NRF is not running since ")
    });
    let _nrf = start("nrf");
    until("the NRF to serve again", || {
        headline(at) == "The function serves."
    });
    until("the journal to name the kill", || {
        let summary = summary(at);
        summary["changes"]
            .to_string()
            .contains("ended without a stop in order")
    });
}

/// A file whose console listens at this address.
fn with_console(folder: &Path, listen: SocketAddr) -> String {
    let file = harmless(None, folder);
    let words = std::fs::read_to_string(&file).unwrap();
    let (others, _) = words.split_once("\nconsole:").unwrap();
    let words = format!("{others}\nconsole: {{admin: \"{listen}\", listen: \"{listen}\"}}\n");
    let words = words.replacen(&format!("admin: \"{listen}\""), "admin: \"127.0.0.1:0\"", 1);
    std::fs::write(&file, words).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_port_that_is_taken_moves_the_console_of_up_and_stops_one_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let file = with_console(folder.path(), taken);
    let refused = signalbox(&["run", "console", "--config", &file]);
    assert!(!refused.status.success());
    let said = text(&refused.stderr);
    assert!(
        said.contains("console.listen") && said.contains(&taken.to_string()),
        "{said}"
    );
    let up = Up::of(&file, folder.path(), &["--no-traffic"]);
    assert_ne!(printed(&up), taken);
    until("the functions", || {
        headline(printed(&up)).contains(&format!("{FOLLOWED} functions"))
    });
}

#[test]
fn off_loopback_the_console_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_console(folder.path(), "0.0.0.0:9000".parse().unwrap());
    let refused = signalbox(&["run", "console", "--config", &file]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("needs TLS and users"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_file_that_is_older_than_the_console_may_have_its_ports() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.yaml");
    let check = |words: &str| {
        std::fs::write(&file, words).unwrap();
        signalbox(&["check", file.to_str().unwrap()])
    };
    let old = check("nrf: {admin: \"127.0.0.1:9000\"}\nscp: {admin: \"127.0.0.1:9001\"}\n");
    assert!(old.status.success(), "{}", text(&old.stdout) + &text(&old.stderr));
    let both = check("nrf: {admin: \"127.0.0.1:9007\"}\nconsole: {listen: \"127.0.0.1:9007\"}\n");
    assert!(!both.status.success());
}

/// Runs a command with this on its stdin.
fn with_input(args: &[&str], input: &str) -> std::process::Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses before it reads has closed it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// A request with a JSON body as a page of the console sends it; the answer.
fn post(at: SocketAddr, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn users_are_added_at_the_command_line_and_sign_in() {
    let folder = tempfile::tempdir().unwrap();
    let (file, directory) = (folder.path().join("console.yaml"), folder.path().join("users"));
    let words = format!(
        "console: {{listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", directory: \"{}\"}}\n",
        directory.display()
    );
    std::fs::write(&file, words).unwrap();
    let file = file.to_str().unwrap();
    let user = |args: &[&str], input: &str| {
        let all: Vec<&str> = ["console", "user"]
            .iter()
            .chain(args)
            .copied()
            .chain(["--config", file])
            .collect();
        let output = with_input(&all, input);
        (
            output.status.success(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let password = "correct horse battery\n";
    let (added, said) = user(
        &["add", "ada", "--role", "tracer", "--role", "operator"],
        password,
    );
    assert!(
        added && said.contains("added ada (viewer, tracer, operator)"),
        "{said}"
    );
    for (args, input, words) in [
        (&["add", "ada"][..], password, "exists"),
        (&["add", "bob"], "short\n", "12 characters"),
        (&["add", "bob"], "", "12 characters"),
        (&["add", "a b"], password, "is not a name"),
        (
            &["add", "bob", "--role", "root"],
            password,
            "valid are viewer, tracer, operator",
        ),
        (&["remove", "bob"], "", "does not exist"),
    ] {
        let (done, said) = user(args, input);
        assert!(!done && said.contains(words), "{args:?}: {said}");
    }
    assert!(
        user(&["list"], "").1.contains("viewer, tracer, operator")
            || user(&["list", "--json"], "").1.contains("operator")
    );
    let console = Process::start(&["run", "console", "--config", file], folder.path());
    let at = console.address("console HTTP");
    assert_eq!(ask(at, "GET", "/api/v1/summary").0, 401);
    let sign_in = |password: &str| {
        let form = serde_json::json!({"name": "ada", "password": password}).to_string();
        post(at, "/api/v1/session", "", &form).0
    };
    assert_eq!(sign_in("correct horse battery"), 204);
    let (changed, said) = user(&["password", "ada"], "another long password\n");
    assert!(changed && said.contains("its sessions end"), "{said}");
    until("the other password", || sign_in("another long password") == 204);
    assert!(user(&["remove", "ada"], "").0);
    assert!(
        with_input(&["console", "user", "list"], "").status.code() == Some(2),
        "without a directory"
    );
    // What is deleted by hand, or never was, lets no stranger in.
    until("no user", || sign_in("another long password") != 204);
}

#[test]
fn the_page_that_explains_says_what_its_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    up.is_populated();
    let console = printed(&up);
    until("the SCP and the router to be known", || {
        let rows = summary(console)["functions"].clone();
        let serves = |name: &str| {
            let mut rows = rows.as_array().unwrap().iter();
            rows.any(|row| row["name"] == name && row["lastAnswer"].is_string())
        };
        serves("scp") && serves("dsr")
    });
    let (_, session) = ask(console, "GET", "/api/v1/session");
    let session: Value = serde_json::from_str(&session).unwrap();
    let token = format!("X-Signalbox-Token: {}\r\n", session["token"].as_str().unwrap());
    for (message, kind) in [
        (
            "GET /nudm-sdm/v2/x HTTP/1.1\n3gpp-Sbi-Target-apiRoot: http://nowhere.example:80",
            "scp",
        ),
        (
            "GET /nudm-sdm/v2/x\n3gpp-Sbi-Max-Forward-Hops: 0; nodetype=scp\n3gpp-Sbi-Target-apiRoot: http://a:80",
            "scp",
        ),
        ("POST /nudm-sdm/v2/x\n\n{\"it's\": \"$(reboot)\"}", "scp"),
        ("TRACE /nudm-sdm/v2/x", "scp"),
        (
            "ULR app=16777251 { Destination-Realm = \"x\" User-Name = \"001010000000001\" }",
            "dsr",
        ),
        (
            "RAR app=16777236 { Destination-Realm = \"it's\" Destination-Host = \"$(x).example\" }",
            "dsr",
        ),
    ] {
        let (status, said) = post(
            console,
            "/api/v1/why",
            &token,
            &serde_json::json!({"text": message}).to_string(),
        );
        assert_eq!(status, 200, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        let answer = said["answers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["kind"] == kind);
        let answer = answer.unwrap_or_else(|| panic!("{message}: {said}"));
        // The command as the page shows it, in a shell.
        let command = answer["command"]
            .as_str()
            .unwrap()
            .strip_prefix("signalbox")
            .unwrap();
        let shell = Command::new("sh")
            .args([
                "-c",
                &format!("\"$0\" {command} --json"),
                env!("CARGO_BIN_EXE_signalbox"),
            ])
            .output()
            .unwrap();
        let printed: Value = serde_json::from_slice(&shell.stdout)
            .unwrap_or_else(|error| panic!("{error}: {command}: {}", text(&shell.stderr)));
        assert_eq!(printed, answer["answer"], "{command}");
        assert!(!answer["decision"].as_str().unwrap().is_empty(), "{answer}");
    }
}
