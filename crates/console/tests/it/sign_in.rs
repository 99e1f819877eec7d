//! Signing in to a console: what guessers and pages of other sites get, what a session is, and when it ends.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use console::config::Config;
use console::users::Role;
use serde_json::{Value, json};
use tls::authority::Authority;

use crate::chromium::Tab;
use crate::support::{PATIENCE, Stand, config, console, get};
use crate::visitor::{PASSWORD, Visitor, add, audit, has_line, stream, with_users};

const SUPI: &str = "imsi-001010000000001";

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
    assert_eq!(nrf.changes(), [""; 0]);
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
