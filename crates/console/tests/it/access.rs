//! Who may use a console with users: what strangers, guessers, pages of other sites and users without a role get.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use console::config::Config;
use console::users::{self, Role, UserFile};
use serde_json::{Value, json};
use tls::authority::Authority;

use crate::chromium::Tab;
use crate::support::{PATIENCE, Stand, config, console, get, until};
use crate::visitor::{PASSWORD, Visitor, add};

const SUPI: &str = "imsi-001010000000001";
/// Pages and interfaces that need a session, and the role beyond that of a viewer.
const GUARDED: &[(&str, &str, Option<Role>)] = &[
    ("GET", "/", None),
    ("GET", "/app.js", None),
    ("GET", "/view.js", None),
    ("GET", "/session.js", None),
    ("GET", "/configuration", None),
    ("GET", "/account", None),
    ("GET", "/policy", None),
    ("GET", "/policy.js", None),
    ("GET", "/difference.js", None),
    ("GET", "/api/v1/policy?function=nrf", None),
    (
        "GET",
        "/api/v1/policy/explain?function=nrf&subscriber=imsi-1",
        Some(Role::Tracer),
    ),
    ("GET", "/text", None),
    ("GET", "/api/v1/summary", None),
    ("GET", "/api/v1/session", None),
    ("GET", "/api/v1/sessions", None),
    ("GET", "/api/v1/find?text=hss.example", None),
    ("GET", "/api/v1/configuration?function=nrf", None),
    ("GET", "/follow", Some(Role::Tracer)),
    ("GET", "/follow.js", Some(Role::Tracer)),
    ("GET", "/ladder.js", Some(Role::Tracer)),
    ("GET", "/sessions", Some(Role::Tracer)),
    ("GET", "/sessions.js", Some(Role::Tracer)),
    ("GET", "/why", Some(Role::Tracer)),
    ("GET", "/why.js", Some(Role::Tracer)),
    (
        "GET",
        "/api/v1/follow?identity=imsi-001010000000001",
        Some(Role::Tracer),
    ),
    (
        "PUT",
        "/api/v1/follow?identity=imsi-001010000000001",
        Some(Role::Tracer),
    ),
    (
        "DELETE",
        "/api/v1/follow?identity=imsi-001010000000001",
        Some(Role::Tracer),
    ),
    ("POST", "/api/v1/why", Some(Role::Tracer)),
    ("POST", "/api/v1/reload?function=nrf", Some(Role::Operator)),
];

/// A console with these users; each has the roles beside its name.
fn with_users(stands: &[&Stand], directory: &Path, all: &[(&str, &[Role])]) -> console::Running {
    for (name, roles) in all {
        add(directory, name, roles);
    }
    console::start(Config {
        directory: Some(directory.to_owned()),
        ..config(stands)
    })
    .unwrap()
}

/// The lines of the audit log.
fn audit(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("audit.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn has_line(directory: &Path, user: &str, what: &str, about: &str) -> bool {
    let is_it = |line: &Value| {
        line["user"] == user && line["what"] == what && line["about"].as_str().unwrap().contains(about)
    };
    audit(directory).iter().any(is_it)
}

#[test]
fn without_a_session_there_is_the_page_for_signing_in_and_nothing_else() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(
        &[&nrf],
        folder.path(),
        &[("ada", &[Role::Tracer, Role::Operator])],
    );
    let stranger = Visitor::new(&console);
    for path in ["/sign-in", "/sign-in.js", "/style.css"] {
        let answer = stranger.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains("frame-ancestors 'none'"), "{path}");
    }
    let mut made_up = stranger.clone();
    made_up.cookie = format!("__Host-signalbox={}", "0".repeat(64));
    for visitor in [&stranger, &made_up] {
        for (method, path, _) in GUARDED {
            let origin = visitor.origin();
            let answer = visitor.send(method, path, &[&origin, "X-Signalbox-Token: x"], "{}");
            let expected = if path.starts_with("/api/") { 401 } else { 303 };
            assert_eq!(answer.status, expected, "{method} {path}");
            if expected == 303 {
                let to = format!("/sign-in?then={}", path.replace('/', "%2f"));
                assert_eq!(answer.header("location"), Some(to.as_str()));
            }
            assert!(answer.body.len() < 100, "{path}: {}", answer.body);
        }
    }
    let stream = stranger.get("/api/v1/stream");
    assert_eq!(stream.status, 401);
    assert!(
        nrf.asked().iter().all(|line| line.starts_with("GET ")),
        "{:?}",
        nrf.asked()
    );
    console.stop().unwrap();
}

#[test]
fn each_role_has_its_pages_and_no_other() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    nrf.set("/config", &json!({"listen": "127.0.0.1:1"}));
    nrf.set(&format!("/follow/{SUPI}"), &json!({}));
    nrf.set("/pcf/projects", &json!([{"description": SUPI}]));
    nrf.set("/pcf/explain/imsi-1", &json!([]));
    let all: &[(&str, &[Role])] = &[
        ("vic", &[]),
        ("tess", &[Role::Tracer]),
        ("otto", &[Role::Operator]),
    ];
    let console = with_users(&[&nrf], folder.path(), all);
    for (name, roles) in all {
        let visitor = Visitor::new(&console).signed_in(name);
        for (method, path, role) in GUARDED {
            let before = nrf
                .asked()
                .iter()
                .filter(|line| !line.starts_with("GET "))
                .count();
            let answer = visitor.change(method, path, "{\"text\": \"GET /x\"}");
            let may = role.is_none_or(|role| roles.contains(&role));
            assert_eq!(
                answer.status,
                if may { 200 } else { 403 },
                "{name} {method} {path}: {}",
                answer.body
            );
            // Projects may name subscribers.
            if path.starts_with("/api/v1/policy?") {
                let is_masked = !answer.body.contains(SUPI);
                assert_eq!(
                    is_masked,
                    !roles.contains(&Role::Tracer),
                    "{name}: {}",
                    answer.body
                );
            }
            if let (false, Some(role)) = (may, role) {
                assert!(
                    answer.body.contains(&format!("needs the role {role}")),
                    "{}",
                    answer.body
                );
                let path = path.split('?').next().unwrap();
                assert!(
                    has_line(folder.path(), name, "refused: lacks the role", path),
                    "{name} {path}"
                );
                let after = nrf
                    .asked()
                    .iter()
                    .filter(|line| !line.starts_with("GET "))
                    .count();
                assert_eq!(before, after, "{name} {path}");
            }
        }
    }
    for (user, what, about) in [
        ("tess", "signs in", ""),
        ("tess", "follows", SUPI),
        ("tess", "ends following", SUPI),
        ("tess", "reads followed messages", SUPI),
        ("tess", "asks why", "GET /x"),
        ("tess", "asks for decisions", "imsi-1"),
        ("otto", "reloads", "nrf"),
        ("vic", "searches", "hss.example"),
    ] {
        assert!(
            has_line(folder.path(), user, what, about),
            "{user} {what}: {:?}",
            audit(folder.path())
        );
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(folder.path().join("audit.jsonl"))
            .unwrap()
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    console.stop().unwrap();
}

#[test]
fn an_operator_acknowledges_an_alarm_with_a_comment() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let alarm = json!({"number": 10521, "name": "n", "severity": "minor", "instance": "tls of 001010000000001", "detail": "d", "text": "t", "advice": "a", "raised": "2026-11-28T01:00:00Z"});
    nrf.says(json!({"alarms": [alarm]}));
    let console = with_users(
        &[&nrf],
        folder.path(),
        &[("vic", &[]), ("otto", &[Role::Operator])],
    );
    let [vic, otto] = ["vic", "otto"].map(|name| Visitor::new(&console).signed_in(name));
    let active = |visitor: &Visitor| visitor.get("/api/v1/summary").json()["alarms"]["active"][0].clone();
    until("the alarm", || active(&otto).is_object());
    let path = format!(
        "/api/v1/alarms/{}?comment=is%20known",
        active(&otto)["key"].as_str().unwrap()
    );
    assert_eq!(vic.change("PUT", &path, "").status, 403);
    assert_eq!(otto.change("PUT", "/api/v1/alarms/x?comment=y", "").status, 404);
    assert_eq!(otto.change("PUT", &path, "").status, 204);
    let shown = active(&vic)["acknowledged"].clone();
    assert_eq!(
        (&shown["by"], &shown["comment"]),
        (&json!("otto"), &json!("is known"))
    );
    assert!(has_line(
        folder.path(),
        "otto",
        "acknowledges an alarm",
        "nrf 10521"
    ));
    assert_eq!(otto.change("DELETE", &path, "").status, 204);
    assert_eq!(active(&vic)["acknowledged"], Value::Null);
    console.stop().unwrap();
}

#[test]
fn a_viewer_sees_no_identity_of_a_subscriber() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let wrong =
        json!([{"what": "subscriber", "detail": format!("{SUPI} failed"), "remedy": "msisdn-4917012345678"}]);
    nrf.says(json!({"state": "serves, needs attention", "wrong": wrong}));
    let entry = json!({"sequence": 1, "time": "9999-01-01T00:00:00.000Z", "kind": "operator", "about": format!("PUT /follow/{SUPI}"), "detail": "d", "by": "b"});
    nrf.set("/journal", &json!([entry]));
    nrf.set(
        "/nrf/instances",
        &json!([{"fqdn": "hss.example", "supiRanges": [{"start": "001010000000001"}]}]),
    );
    let console = with_users(&[&nrf], folder.path(), &[("vic", &[]), ("tess", &[Role::Tracer])]);
    let [vic, tess] = ["vic", "tess"].map(|name| Visitor::new(&console).signed_in(name));
    until("the journal", || {
        tess.get("/api/v1/summary")
            .body
            .contains(&format!("/follow/{SUPI}"))
    });
    until("the status", || {
        tess.get("/api/v1/summary")
            .body
            .contains(&format!("{SUPI} failed"))
    });
    for path in ["/api/v1/summary", "/text", "/api/v1/find?text=hss.example"] {
        let shown = vic.get(path);
        assert_eq!(shown.status, 200, "{path}");
        for identity in ["001010000000001", "4917012345678"] {
            assert!(!shown.body.contains(identity), "{path}: {}", shown.body);
        }
        assert!(shown.body.contains("00101***"), "{path}: {}", shown.body);
    }
    assert!(first_event(&console, &vic).contains("00101***") && !first_event(&console, &vic).contains(SUPI));
    assert!(first_event(&console, &tess).contains(SUPI));
    for text in [SUPI, "4917012345", "10.0.0.1", "mme;1;2"] {
        let refused = vic.get(&format!("/api/v1/find?text={text}"));
        assert_eq!(refused.status, 400, "{text}");
        assert!(refused.body.contains("needs the role tracer"), "{}", refused.body);
    }
    console.stop().unwrap();
}

/// A stream of a visitor.
fn stream(console: &console::Running, visitor: &Visitor) -> TcpStream {
    let mut stream = TcpStream::connect(console.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
        visitor.host, visitor.cookie
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn first_event(console: &console::Running, visitor: &Visitor) -> String {
    let (mut stream, mut text) = (stream(console, visitor), String::new());
    while !text.contains("\n\n\r\n") {
        let mut octets = [0; 4_096];
        let count = stream.read(&mut octets).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&octets[..count]));
    }
    text
}

#[test]
fn a_session_is_a_cookie_that_browsers_guard_and_ends_for_good() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(&[&nrf], folder.path(), &[("ada", &[])]);
    let stranger = Visitor::new(&console);
    let answer = stranger.sign_in("ada", PASSWORD);
    let cookie = answer.header("set-cookie").unwrap();
    for part in [
        "__host-signalbox=",
        "; httponly",
        "; samesite=strict",
        "; secure",
        "; path=/",
        "; max-age=43200",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("domain"), "{cookie}");
    // Session fixation: what a browser has before is neither adopted nor valid afterwards.
    let mut planted = stranger.clone();
    planted.cookie = format!("__Host-signalbox={}", "a".repeat(64));
    let fresh = planted.sign_in("ada", PASSWORD);
    assert!(!fresh.header("set-cookie").unwrap().contains(&"a".repeat(64)));
    assert_eq!(planted.get("/api/v1/session").status, 401);
    let mut first = stranger;
    first.take_cookie(&answer);
    assert_eq!(first.get("/api/v1/session").status, 200);
    let mut second = first.clone();
    second.take_cookie(&first.sign_in("ada", PASSWORD));
    assert_eq!(
        first.get("/api/v1/session").status,
        401,
        "signing in again ends the session of before"
    );
    assert_eq!(second.get("/api/v1/session").status, 200);
    // Two cookies of the name: which one would be ours?
    let mut both = second.clone();
    both.cookie = format!("{}; __Host-signalbox={}", second.cookie, "a".repeat(64));
    assert_eq!(both.get("/api/v1/session").status, 401);
    // Its stream ends with the session.
    second.token = second.get("/api/v1/session").json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut open = stream(&console, &second);
    open.read_exact(&mut [0; 12]).unwrap();
    assert_eq!(second.change("DELETE", "/api/v1/session", "").status, 204);
    assert_eq!(second.get("/api/v1/session").status, 401);
    let _ = open.read_to_end(&mut Vec::new()).unwrap();
    assert!(has_line(folder.path(), "ada", "signs out", ""));
    console.stop().unwrap();
}

#[test]
fn changes_come_from_a_page_of_ours_with_the_token_of_its_session() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    nrf.set("/config/reload", &json!({}));
    let console = with_users(&[&nrf], folder.path(), &[("otto", &[Role::Operator])]);
    let visitor = Visitor::new(&console).signed_in("otto");
    let other = Visitor::new(&console).signed_in("otto");
    let (token, origin) = (format!("X-Signalbox-Token: {}", visitor.token), visitor.origin());
    let foreign = format!("X-Signalbox-Token: {}", other.token);
    let path = "/api/v1/reload?function=nrf";
    for headers in [
        &[][..],
        &[token.as_str()],
        &[origin.as_str()],
        &[origin.as_str(), "X-Signalbox-Token: "],
        &[origin.as_str(), foreign.as_str()],
        &["Origin: https://evil.example", token.as_str()],
        &["Origin: null", token.as_str()],
        &["Sec-Fetch-Site: cross-site", token.as_str()],
        &["Sec-Fetch-Site: same-site", token.as_str(), origin.as_str()],
        &["Sec-Fetch-Site: none", token.as_str()],
    ] {
        let refused = visitor.send("POST", path, headers, "");
        assert_eq!(refused.status, 403, "{headers:?}: {}", refused.body);
    }
    // A form of another site, which needs no preflight, cannot sign a person in as somebody else.
    let form = json!({"name": "otto", "password": PASSWORD}).to_string();
    for header in [
        "Origin: https://evil.example",
        "Sec-Fetch-Site: cross-site",
        "X: y",
    ] {
        assert_eq!(
            visitor.send("POST", "/api/v1/session", &[header], &form).status,
            403,
            "{header}"
        );
    }
    let mut rebound = visitor.clone();
    rebound.host = "evil.example".to_owned();
    assert_eq!(rebound.change("POST", path, "").status, 421);
    assert!(
        nrf.asked().iter().all(|line| line.starts_with("GET ")),
        "{:?}",
        nrf.asked()
    );
    assert_eq!(
        visitor
            .send("POST", path, &["Sec-Fetch-Site: same-origin", &token], "")
            .status,
        200
    );
    assert!(
        nrf.asked().contains(&"POST /config/reload HTTP/1.1".to_owned()),
        "{:?}",
        nrf.asked()
    );
    console.stop().unwrap();
}

#[test]
fn a_thousand_guesses_are_a_handful_and_logged() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(&[&nrf], folder.path(), &[("ada", &[]), ("bob", &[])]);
    let guesser = Visitor::new(&console);
    let mut answers = std::collections::BTreeMap::new();
    for guess in 0..1_000 {
        let answer = guesser.sign_in("ada", &format!("password number {guess}"));
        *answers.entry(answer.status).or_insert(0) += 1;
        if answer.status == 429 {
            assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        }
    }
    let checked = answers.remove(&401).unwrap();
    // Five are free; after that the waits double, so that hours would be needed for ten more.
    assert!((5..20).contains(&checked), "{checked}, {answers:?}");
    assert_eq!(answers.into_keys().collect::<Vec<_>>(), [429]);
    assert_eq!(
        guesser.sign_in("ada", PASSWORD).status,
        429,
        "the right one waits too"
    );
    let of = |what: &str| {
        audit(folder.path())
            .iter()
            .filter(|line| line["what"] == what)
            .count()
    };
    assert_eq!(of("sign-in refused"), checked);
    assert!(of("sign-ins refused for a while") >= 1);
    assert_eq!(
        guesser.sign_in("bob", PASSWORD).status,
        204,
        "another account does not wait"
    );
    // An account that does not exist is answered as one that does.
    let strange = guesser.sign_in("never-was", "password number 1");
    assert_eq!(
        (strange.status, strange.body.as_str()),
        (401, "name or password is wrong\n")
    );
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    assert!(!text.contains("password number"), "a password in the log");
    console.stop().unwrap();
}

#[test]
fn what_is_sent_for_signing_in_is_bounded_and_read_strictly() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(&[&nrf], folder.path(), &[("ada", &[])]);
    let stranger = Visitor::new(&console);
    let origin = stranger.origin();
    let post = |body: &str| stranger.send("POST", "/api/v1/session", &[&origin], body).status;
    assert_eq!(post(""), 400);
    assert_eq!(post("{"), 400);
    assert_eq!(post("{\"name\": \"ada\"}"), 400);
    assert_eq!(post("{\"name\": \"ada\", \"password\": [1]}"), 400);
    assert_eq!(
        post(&json!({"name": "ada", "password": "x".repeat(5_000)}).to_string()),
        401
    );
    assert_eq!(
        post(&json!({"name": "\n\u{1b}[31m".repeat(1_000), "password": "x"}).to_string()),
        401
    );
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    assert!(
        text.lines().all(|line| line.len() < 500) && !text.contains('\u{1b}'),
        "{text}"
    );
    console.stop().unwrap();
}

#[test]
fn a_user_who_is_removed_or_has_another_password_has_no_session_left() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(&[&nrf], folder.path(), &[("ada", &[]), ("bob", &[]), ("cy", &[])]);
    let visitors = ["ada", "bob", "cy"].map(|name| Visitor::new(&console).signed_in(name));
    let path = users::path(folder.path());
    let other = console::users::User::new("bob", [].into(), "another password").unwrap();
    UserFile::change(&path, |file| {
        file.users.retain(|user| user.name != "ada" && user.name != "bob");
        file.users.push(other);
        let cy = file.users.iter_mut().find(|user| user.name == "cy").unwrap();
        cy.roles.insert(Role::Operator);
        Ok(())
    })
    .unwrap();
    for visitor in &visitors[..2] {
        until("the session to end", || {
            visitor.get("/api/v1/session").status == 401
        });
    }
    until("the role", || {
        visitors[2].get("/api/v1/session").json()["mayOperate"] == true
    });
    console.stop().unwrap();
}

#[test]
fn sessions_are_listed_and_ended_by_their_user_or_an_operator() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(
        &[&nrf],
        folder.path(),
        &[("ada", &[]), ("otto", &[Role::Operator])],
    );
    let [ada, otto] = ["ada", "otto"].map(|name| Visitor::new(&console).signed_in(name));
    let listed = |visitor: &Visitor| {
        visitor.get("/api/v1/sessions").json()["sessions"]
            .as_array()
            .unwrap()
            .clone()
    };
    assert_eq!((listed(&ada).len(), listed(&otto).len()), (1, 2));
    let secret = ada.cookie.split('=').nth(1).unwrap();
    assert!(!otto.get("/api/v1/sessions").body.contains(secret));
    let number = |user: &str| {
        let all = listed(&otto);
        let row = all.iter().find(|row| row["user"] == user).unwrap();
        format!("/api/v1/sessions/{}", row["number"].as_str().unwrap())
    };
    assert_eq!(
        ada.change("DELETE", &number("otto"), "").status,
        404,
        "not its own"
    );
    assert_eq!(otto.change("DELETE", &number("ada"), "").status, 204);
    assert_eq!(ada.get("/api/v1/session").status, 401);
    assert!(has_line(folder.path(), "otto", "ends a session", "ada"));
    console.stop().unwrap();
}

#[test]
fn what_cannot_be_recorded_does_not_happen() {
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(
        &[&nrf],
        folder.path(),
        &[("tess", &[Role::Tracer, Role::Operator])],
    );
    let visitor = Visitor::new(&console).signed_in("tess");
    // Renamed, as a rotation does; then the place is taken.
    fs::rename(folder.path().join("audit.jsonl"), folder.path().join("audit.1")).unwrap();
    assert_eq!(visitor.get("/api/v1/find?text=hss.example").status, 200);
    fs::remove_file(folder.path().join("audit.jsonl")).unwrap();
    fs::create_dir(folder.path().join("audit.jsonl")).unwrap();
    let before = nrf
        .asked()
        .iter()
        .filter(|line| line.contains("/nrf/instances"))
        .count();
    for (method, path) in [
        ("GET", "/api/v1/find?text=hss.example"),
        ("GET", "/api/v1/follow?identity=imsi-1"),
        ("PUT", "/api/v1/follow?identity=imsi-1"),
        ("POST", "/api/v1/why"),
        ("POST", "/api/v1/reload?function=nrf"),
    ] {
        let refused = visitor.change(method, path, "{\"text\": \"GET /x\"}");
        assert_eq!(refused.status, 503, "{method} {path}: {}", refused.body);
        assert!(
            refused.body.contains("the audit log cannot be written"),
            "{}",
            refused.body
        );
    }
    assert_eq!(Visitor::new(&console).sign_in("tess", PASSWORD).status, 503);
    let after = nrf
        .asked()
        .iter()
        .filter(|line| line.contains("/nrf/instances"))
        .count();
    assert_eq!(before, after);
    assert!(
        nrf.asked().iter().all(|line| line.starts_with("GET ")),
        "{:?}",
        nrf.asked()
    );
    console.stop().unwrap();
}

#[test]
fn off_loopback_there_are_tls_a_user_and_names() {
    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let nrf = Stand::start("nrf");
    let authority = Authority::new("test").unwrap();
    let identity = authority.issue(&["console.example", "127.0.0.1"]).unwrap();
    let mut tls = authority.write(&identity, files.path(), "console").unwrap();
    tls.authorities = None;
    let wanted = Config {
        listen: SocketAddr::from(([0, 0, 0, 0], 0)),
        directory: Some(folder.path().to_owned()),
        tls: Some(tls),
        hosts: vec!["console.example".to_owned()],
        ..config(&[&nrf])
    };
    let refused = console::start(wanted.clone()).unwrap_err().to_string();
    assert!(refused.contains("signalbox console user add"), "{refused}");
    add(folder.path(), "ada", &[]);
    let console = console::start(wanted).unwrap();
    let tls = authority.material(None, false).client(&[b"http/1.1"]).unwrap();
    let visitor = Visitor::over_tls(&console, "console.example", tls.clone());
    let page = visitor.get("/sign-in");
    assert_eq!(page.status, 200);
    assert!(
        page.header("strict-transport-security")
            .unwrap()
            .starts_with("max-age=")
    );
    let signed_in = visitor.signed_in("ada");
    assert_eq!(signed_in.get("/api/v1/summary").status, 200);
    let mut rebound = Visitor::over_tls(&console, "console.example", tls);
    rebound.cookie.clone_from(&signed_in.cookie);
    rebound.host = format!("127.0.0.1:{}", console.addresses()[0].port());
    assert_eq!(rebound.get("/api/v1/summary").status, 200, "by its address");
    // In the clear it answers nothing.
    let mut clear = TcpStream::connect(("127.0.0.1", console.addresses()[0].port())).unwrap();
    clear.set_read_timeout(Some(PATIENCE)).unwrap();
    clear
        .write_all(b"GET /sign-in HTTP/1.1\r\nHost: console.example\r\n\r\n")
        .unwrap();
    let mut said = Vec::new();
    let _ = clear.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&said));
    console.stop().unwrap();
}

#[test]
fn without_users_everyone_on_the_machine_may_do_all_and_nobody_signs_in() {
    let nrf = Stand::start("nrf");
    let console = console(&[&nrf]);
    let session: Value = serde_json::from_str(&get(&console, "/api/v1/session").1).unwrap();
    assert_eq!(
        (&session["signIn"], &session["mayTrace"], &session["user"]),
        (&json!(false), &json!(true), &Value::Null)
    );
    assert_eq!(Visitor::new(&console).sign_in("ada", PASSWORD).status, 404);
    console.stop().unwrap();
}

#[test]
fn a_person_signs_in_works_and_signs_out_in_a_browser() {
    let Some(mut tab) = Tab::open() else { return };
    let (folder, nrf) = (tempfile::tempdir().unwrap(), Stand::start("nrf"));
    let console = with_users(&[&nrf], folder.path(), &[("vic", &[]), ("tess", &[Role::Tracer])]);
    let at = console.addresses()[0];
    // The page that was wanted, with its fragment, comes after signing in.
    tab.go(&format!("http://{at}/follow#{SUPI}"));
    tab.until("location.pathname === '/sign-in'");
    tab.until("document.activeElement.id === 'name' && !document.querySelector('button').disabled");
    // A password stands in no address, whatever the browser does by itself.
    assert_eq!(
        tab.value("document.getElementById('sign-in-form').method"),
        "post"
    );
    for (text, key) in [("tess", "Tab"), ("wrong password", "Enter")] {
        text.chars().for_each(|letter| tab.press(&letter.to_string()));
        tab.press(key);
    }
    tab.until("document.getElementById('said').innerText === 'name or password is wrong'");
    tab.until("document.activeElement.id === 'password'");
    PASSWORD.chars().for_each(|letter| tab.press(&letter.to_string()));
    tab.press("Enter");
    tab.until(&format!(
        "location.pathname === '/follow' && location.hash === '#{SUPI}'"
    ));
    tab.until("document.getElementById('account').innerText === 'Account of tess'");
    assert_eq!(tab.value("document.cookie"), "", "no script sees the cookie");
    tab.screenshot("sign-in");
    tab.go(&format!("http://{at}/account"));
    tab.until("document.getElementById('who').innerText === 'tess: viewer, tracer'");
    tab.value("document.getElementById('sign-out').click()");
    tab.until("location.pathname === '/sign-in'");
    // A redirect leads to no other site.
    for then in ["//evil.example/", "https://evil.example/", "/%5cevil.example"] {
        tab.go(&format!("http://{at}/sign-in?then={then}"));
        tab.until("document.querySelector('#sign-in-form button')?.disabled === false");
        tab.value(&format!("document.getElementById('name').value = 'vic'; document.getElementById('password').value = '{PASSWORD}'; document.querySelector('button').click()"));
        tab.until(&format!(
            "location.origin === 'http://{at}' && location.pathname !== '/sign-in'"
        ));
        tab.go(&format!("http://{at}/"));
        tab.until("document.getElementById('headline')?.innerText.includes('The function serves.')");
        // What a viewer may not do is not offered.
        tab.until("[...document.querySelectorAll('[data-right]')].every((one) => one.hidden)");
        tab.go(&format!("http://{at}/account"));
        tab.until(
            "document.getElementById('sign-out') !== null && !document.getElementById('sign-out').hidden",
        );
        tab.value("document.getElementById('sign-out').click()");
        tab.until("location.pathname === '/sign-in'");
    }
    console.stop().unwrap();
}
