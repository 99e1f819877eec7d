//! What the users of a console may do: the pages and changes of each role, and what is refused without a session.

use std::fs;
use std::io::Read as _;

use console::users::{self, Role, UserFile};
use serde_json::{Value, json};

use crate::support::{Stand, until};
use crate::visitor::{PASSWORD, Visitor, audit, has_line, stream, with_users};

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
    assert_eq!(nrf.changes(), [""; 0]);
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
            let before = nrf.changes();
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
                assert_eq!(before, nrf.changes(), "{name} {path}");
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
    let searches = || {
        let lines = nrf.asked();
        lines
            .iter()
            .filter(|line| line.contains("/nrf/instances"))
            .count()
    };
    let before = searches();
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
    assert_eq!(before, searches());
    assert_eq!(nrf.changes(), [""; 0]);
    console.stop().unwrap();
}
