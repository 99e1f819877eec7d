//! `signalbox follow` beside calls of many subscribers: all messages of one of them, and no other's.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadgen::client::{Client, Request};
use serde_json::{Value, json};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::process::{Process, ask, signalbox, until};
use crate::up::Up;

/// One of the subscribers whose calls `up` begins and ends again and again.
const SUPI: &str = "imsi-001010000000105";
/// What those of all of them begin with.
const SUBSCRIBERS: &str = "0010100000001";
const FUNCTIONS: [&str; 5] = ["nrf", "scp", "bsf", "pcf", "dsr"];

/// A `signalbox follow` that runs.
struct Following {
    child: Child,
    capture: PathBuf,
}

impl Following {
    /// One that follows the subscriber.
    fn start(admins: impl IntoIterator<Item = SocketAddr>, folder: &Path) -> Self {
        let mut begun = Self::spawn(admins, folder);
        let mut said = String::new();
        let mut words = BufReader::new(begun.child.stderr.take().unwrap());
        words.read_line(&mut said).unwrap();
        assert!(said.starts_with("following "), "{said}");
        begun
    }

    fn spawn(admins: impl IntoIterator<Item = SocketAddr>, folder: &Path) -> Self {
        let capture = folder.join("followed.pcapng");
        // One that all may read is there already.
        std::fs::write(&capture, "earlier").unwrap();
        std::fs::set_permissions(&capture, Permissions::from_mode(0o644)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
        command.args(["follow", SUPI, "--for", "50m", "--json", "--pcapng"]);
        command.arg(&capture);
        for admin in admins {
            command.args(["--admin", &admin.to_string()]);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, capture }
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends it as an operator does; what it prints.
    fn ended(mut self) -> (Vec<Value>, PathBuf) {
        self.interrupt();
        let mut printed = String::new();
        let mut out = self.child.stdout.take().unwrap();
        out.read_to_string(&mut printed).unwrap();
        assert!(self.child.wait().unwrap().success(), "{printed}");
        let arrows = serde_json::from_str(&printed).unwrap();
        let mode = std::fs::metadata(&self.capture).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        (arrows, self.capture.clone())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The messages of the followed subscriber at a function.
fn messages(admin: SocketAddr) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let (status, body) = ask(admin, "GET", &format!("/follow/messages?after={after}"));
        assert_eq!(status, 200, "{body}");
        let page: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(page["version"], 1);
        all.extend(page["messages"].as_array().unwrap().clone());
        after = page["next"].as_u64().unwrap();
        if page["more"] == false {
            return all;
        }
    }
}

fn title(message: &Value) -> &str {
    message["title"].as_str().unwrap()
}

/// Whether a call has begun and ended at the PCF since the subscriber is followed.
fn has_whole_call(pcf: &[Value]) -> bool {
    let place = |wanted: &dyn Fn(&str) -> bool| pcf.iter().position(|one| wanted(title(one)));
    let begun = place(&|title| title.ends_with("/sm-policies"));
    let ended = pcf.iter().rposition(|one| {
        let title = title(one);
        title.contains("/sm-policies/") && title.ends_with("/delete")
    });
    let is_answered = |at: usize| {
        let exchange = &pcf[at]["exchange"];
        pcf[at + 1..]
            .iter()
            .any(|one| one["exchange"] == *exchange && one["kind"] == "answer")
    };
    begun
        .zip(ended)
        .is_some_and(|(begun, ended)| begun < ended && is_answered(ended))
}

/// Neither its identities nor those of its session name another subscriber.
fn is_of_no_other(arrow: &Value) {
    let text = arrow.to_string();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(SUBSCRIBERS) {
        let number: String = rest[at..].chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(format!("imsi-{number}"), SUPI, "{text}");
        rest = &rest[at + SUBSCRIBERS.len()..];
    }
}

#[test]
fn a_voice_call_is_followed_through_all_functions() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &[]);
    up.is_populated();
    let following = Following::start(FUNCTIONS.map(|function| up.admin(function)), folder.path());
    // Credentials pass through the SCP, and are not in the copies.
    let mut scp = Client::connect(up.address("scp", "http"), Duration::from_secs(10)).unwrap();
    let request = Request::new("GET", format!("/nudm-sdm/v1/{SUPI}/am-data"))
        .header("authorization", "Bearer c3VwZXJzZWNyZXQ")
        .header("3gpp-sbi-discovery-target-nf-type", "UDM")
        .header("3gpp-sbi-discovery-requester-nf-type", "AMF")
        .header("3gpp-sbi-discovery-service-names", "nudm-sdm");
    assert_eq!(scp.exchange(&[request]).unwrap()[0].status, 200);
    // A call that could not be begun on a slow machine is cleaned up without its voice session.
    until("a whole call of the subscriber, with its voice session", || {
        let (pcf, dsr) = (messages(up.admin("pcf")), messages(up.admin("dsr")));
        let has = |all: &[Value], wanted: &str| all.iter().any(|one| title(one) == wanted);
        has_whole_call(&pcf)
            && has(&pcf, "AA-Answer 2001")
            && has(&dsr, "Session-Termination-Answer 2001")
            && has(
                &messages(up.admin("scp")),
                "GET /nudm-sdm/v1/imsi-001010000000105/am-data",
            )
    });
    let (arrows, capture) = following.ended();

    arrows.iter().for_each(is_of_no_other);
    let shown = serde_json::to_string(&arrows).unwrap();
    assert!(!shown.contains("c3VwZXJzZWNyZXQ") && shown.contains("***"));
    let has = |from: &str, to: &str, part: &str| {
        let is =
            |one: &&Value| one["from"] == from && one["to"] == to && title(&one["message"]).contains(part);
        assert!(
            arrows.iter().any(|one| is(&one)),
            "{from} > {to} {part}: {:#?}",
            titles(&arrows)
        );
    };
    has("scp", "pcf", "POST /npcf-smpolicycontrol/v1/sm-policies");
    has("pcf", "scp", "201");
    has("scp", "pcf", "/delete");
    has("bsf", "pcf", "AA-Request");
    has("pcf", "bsf", "AA-Answer 2001");
    has("dsr", "bsf", "Session-Termination-Request");
    has("bsf", "dsr", "Session-Termination-Answer 2001");
    in_order(&arrows);
    judged(&capture, &arrows);
    // What the command began, it has ended: the copies are dropped, and the journal names it.
    for function in FUNCTIONS {
        assert_eq!(messages(up.admin(function)), Vec::<Value>::new(), "{function}");
        let journal = ask(up.admin(function), "GET", "/journal").1;
        assert!(journal.contains(&format!("PUT /follow/{SUPI}")), "{journal}");
    }
}

fn titles(arrows: &[Value]) -> Vec<String> {
    let line = |one: &Value| format!("{} > {} {}", one["from"], one["to"], title(&one["message"]));
    arrows.iter().map(line).collect()
}

/// Each answer follows the request of its stream.
fn in_order(arrows: &[Value]) {
    for (at, arrow) in arrows.iter().enumerate() {
        let answer = &arrow["message"];
        if answer["kind"] != "answer" {
            continue;
        }
        let is_request = |one: &Value| {
            let request = &one["message"];
            let is_turned = request["from"] == answer["to"] && request["to"] == answer["from"];
            request["kind"] == "request" && is_turned && request["stream"] == answer["stream"]
        };
        assert!(arrows[..at].iter().any(is_request), "{arrow}");
    }
}

/// Wireshark decodes each message, its JSON and its AVPs.
fn judged(capture: &Path, arrows: &[Value]) {
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.protocols",
        "-e",
        "http2.headers.path",
        "-e",
        "diameter.Session-Id",
    ];
    let Some(decoded) = tshark(&fields, capture) else {
        return;
    };
    let sent: Vec<&Value> = arrows
        .iter()
        .map(|one| &one["message"])
        .filter(|one| one["kind"] != "lost")
        .collect();
    assert_eq!(decoded.lines().count(), sent.len());
    for (line, message) in decoded.lines().zip(sent) {
        let mut words = line.split('\t');
        let (protocols, path, session) = (words.next().unwrap(), words.next(), words.next());
        if message["interface"] == "diameter" {
            assert!(
                protocols.ends_with(":diameter") && session.is_some_and(|id| !id.is_empty()),
                "{line}"
            );
            continue;
        }
        let text = message["text"].as_str().unwrap_or_default();
        let is_json = text.starts_with('{') || text.starts_with('[');
        assert!(
            protocols.contains(":http2") && (!is_json || protocols.ends_with(":json")),
            "{line} {message}"
        );
        let target = title(message)
            .split(' ')
            .nth(1)
            .filter(|_| message["kind"] == "request");
        assert!(
            target.is_none_or(|target| path == Some(target)),
            "{line} {message}"
        );
    }
    let complaints = tshark(&["-Y", COMPLAINTS], capture).unwrap();
    assert_eq!(complaints, "");
}

/// Status of a request with another header field.
fn status_of(admin: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "{request}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn an_interrupt_before_all_functions_follow_ends_what_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    let admin = TcpListener::bind("127.0.0.1:0").unwrap();
    admin.set_nonblocking(true).unwrap();
    let mut following = Following::spawn([admin.local_addr().unwrap()], folder.path());
    until("following to be ended at the function", || {
        let Ok((mut stream, _)) = admin.accept() else {
            return false;
        };
        let lines = BufReader::new(&stream).lines().map_while(Result::ok);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        if head[0].starts_with("PUT ") {
            following.interrupt();
        }
        let ends = head[0].starts_with("DELETE ");
        // Its time may be over at the function.
        let status = if ends { "404 Not Found" } else { "200 OK" };
        write!(stream, "HTTP/1.0 {status}\r\n\r\n{{}}").unwrap();
        ends
    });
    let (mut errors, mut said) = (following.child.stderr.take().unwrap(), String::new());
    assert_eq!(following.ended().0, Vec::<Value>::new());
    errors.read_to_string(&mut said).unwrap();
    assert!(!said.contains("404"), "{said}");
}

#[test]
fn a_function_that_was_restarted_follows_the_subscriber_again() {
    let folder = tempfile::tempdir().unwrap();
    let [listen, admin] = [(); 2].map(|()| free_ports::address().unwrap());
    let config = folder.path().join("nrf.yaml");
    let store = json!({"embedded": {"directory": folder.path().join("state")}});
    let nrf = json!({"nrf": {"listen": [listen], "admin": admin, "workers": 1, "store": store}});
    std::fs::write(&config, nrf.to_string()).unwrap();
    let start = || {
        Process::start(
            &["run", "nrf", "--config", config.to_str().unwrap()],
            folder.path(),
        )
    };
    let first = start();
    let following = Following::start([admin], folder.path());
    first.signal("KILL");
    let _ = first.ended();
    let _second = start();
    until("the restarted function to follow the subscriber", || {
        ask(admin, "GET", "/follow").1.contains(SUPI)
    });
    let mut client = Client::connect(listen, Duration::from_secs(10)).unwrap();
    let path = format!("/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&supi={SUPI}");
    assert_eq!(
        client.exchange(&[Request::new("GET", path)]).unwrap()[0].status,
        200
    );
    let (arrows, _) = following.ended();
    assert_eq!(arrows.len(), 2, "{:?}", titles(&arrows));
}

#[test]
fn only_operators_follow_and_only_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path(), &["--no-traffic"]);
    let admin = up.admin("pcf");
    let put = |path: &str| ask(admin, "PUT", path).0;
    for (request, expected) in [
        (
            format!("PUT /follow/{SUPI} HTTP/1.1\r\nHost: {admin}\r\nOrigin: http://evil.example"),
            "403",
        ),
        (
            format!("PUT /follow/{SUPI} HTTP/1.1\r\nHost: {admin}\r\nSec-Fetch-Site: cross-site"),
            "403",
        ),
        (
            format!("DELETE /follow/{SUPI} HTTP/1.1\r\nHost: {admin}\r\nOrigin: null"),
            "403",
        ),
        (
            "GET /follow/messages HTTP/1.1\r\nHost: evil.example".to_owned(),
            "421",
        ),
    ] {
        assert_eq!(status_of(admin, &request), expected, "{request}");
    }
    assert_eq!(ask(admin, "DELETE", &format!("/follow/{SUPI}")).0, 404);
    for path in ["/follow/abc", "/follow/imsi-12x45", "/follow/imsi-00101%0A"] {
        assert_eq!(put(path), 400, "{path}");
    }
    for period in ["0s", "2h", "x", ""] {
        assert_eq!(put(&format!("/follow/{SUPI}?for={period}")), 400, "{period}");
    }
    for number in 0..16 {
        assert_eq!(put(&format!("/follow/imsi-0010100000002{number:02}?for=1h")), 200);
    }
    assert_eq!(put(&format!("/follow/{SUPI}")), 409);
    // A second operator does not cut the time of the first.
    let list = || ask(admin, "GET", "/follow").1;
    let (before, at) = (list(), admin.to_string());
    let second = signalbox(&["follow", "imsi-001010000000200", "--for", "1s", "--admin", &at]);
    assert!(second.status.success() && list() == before);
    let listed: Value = serde_json::from_str(&ask(admin, "GET", "/follow").1).unwrap();
    assert_eq!(listed["followed"].as_array().unwrap().len(), 16);
    assert_eq!(ask(admin, "DELETE", "/follow/imsi-001010000000200").0, 200);
    assert_eq!(put(&format!("/follow/{SUPI}")), 200);
}
