//! What the console refuses, and what it never does.

use std::net::SocketAddr;

use console::config::Config;
use serde_json::{Value, json};

use crate::support::{Stand, console, get, request, row, stream, streams, summary, until, until_state};

#[test]
fn only_reads_for_our_own_names_and_pages_are_answered() {
    let nrf = Stand::start("nrf");
    let console = console(&[&nrf]);
    let at = console.addresses()[0];
    let status = |head: &str| request(at, head).0;
    for path in [
        "/",
        "/app.js",
        "/view.js",
        "/style.css",
        "/text",
        "/api/v1/summary",
    ] {
        let (status, head, _) = request(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}"));
        assert_eq!(status, 200, "{path}");
        for part in [
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
            "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(part), "{path}: {head}");
        }
        assert!(!head.contains("access-control"), "{head}");
        for foreign in [
            "evil.example",
            "127.0.0.1.evil.example:9000",
            "localhost.evil.example",
        ] {
            assert_eq!(status_of(at, path, foreign), 421, "{path} for {foreign}");
        }
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            assert_eq!(
                self::request(
                    at,
                    &format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0")
                )
                .0,
                405
            );
        }
    }
    assert_eq!(status("GET / HTTP/1.1"), 400, "without Host");
    assert_eq!(
        status(&format!("GET / HTTP/1.1\r\nHost: {at}\r\nHost: evil.example")),
        421
    );
    assert_eq!(status(&format!("GET /config/reload HTTP/1.1\r\nHost: {at}")), 404);
    for site in ["cross-site", "same-site", "x"] {
        let api = format!("GET /api/v1/find?text=a HTTP/1.1\r\nHost: {at}\r\nSec-Fetch-Site: {site}");
        assert_eq!(status(&api), 403, "{site}");
    }
    assert_eq!(
        status(&format!(
            "GET / HTTP/1.1\r\nHost: {at}\r\nSec-Fetch-Site: cross-site"
        )),
        200,
        "a link"
    );
    console.stop().unwrap();
}

fn status_of(at: SocketAddr, path: &str, host: &str) -> u16 {
    request(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}")).0
}

#[test]
fn functions_are_only_read() {
    let (nrf, pcf, dsr) = (Stand::start("nrf"), Stand::start("pcf"), Stand::start("dsr"));
    let console = console(&[&nrf, &pcf, &dsr]);
    for text in [
        "imsi-001010000000001",
        "a;b/../../config/reload",
        "hss.example",
        "10.0.0.1",
    ] {
        get(&console, &format!("/api/v1/find?text={text}"));
    }
    for stand in [&nrf, &pcf, &dsr] {
        until("polls", || {
            stand.asked().iter().any(|line| line.contains("/journal"))
        });
        for line in stand.asked() {
            assert!(line.starts_with("GET /") && !line.contains("/config"), "{line}");
        }
    }
    console.stop().unwrap();
}

#[test]
fn the_box_asks_the_functions_that_may_know() {
    let (pcf, bsf) = (Stand::start("pcf"), Stand::start("bsf"));
    let supi = "imsi-001010000000001";
    pcf.set(&format!("/pcf/find/{supi}"), &json!([{"id": "1", "supi": supi}]));
    bsf.set("/bsf/find/supi%3Dimsi-001010000000001", &json!([]));
    let console = console(&[&pcf, &bsf]);
    until_state(&console, "pcf", "serves");
    let (status, body) = get(&console, &format!("/api/v1/find?text={supi}"));
    assert_eq!(status, 200, "{body}");
    let found: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(found["what"], "a SUPI");
    let answers = found["answers"].as_array().unwrap();
    let of = |about: &str| answers.iter().find(|one| one["about"] == about).unwrap();
    assert_eq!(of("policy associations")["rows"][0]["supi"], supi);
    assert_eq!(
        of("policy associations")["command"],
        format!("signalbox pcf find {supi} --admin {}", pcf.address)
    );
    assert_eq!(of("bindings of PDU sessions")["rows"], json!([]));
    for odd in ["", "%3Cscript%3E", "a%0Ab"] {
        assert_eq!(get(&console, &format!("/api/v1/find?text={odd}")).0, 400, "{odd}");
    }
    console.stop().unwrap();
}

#[test]
fn what_strangers_write_is_bounded() {
    let nrf = Stand::start("nrf");
    let long = "\u{202e}x\u{7}".repeat(1 << 20);
    let wrong: Vec<Value> = (0..5_000)
        .map(|n| json!({"what": n.to_string(), "detail": "d", "remedy": "r"}))
        .collect();
    let many: Vec<Value> = (0..5_000)
        .map(|n| json!({"name": format!("peer {n}"), "state": "failing", "lastError": "e"}))
        .collect();
    nrf.says(
        json!({"state": "serves, needs attention", "version": "v", "wrong": wrong, "dependencies": many}),
    );
    let entry = |n: u32| json!({"sequence": n, "time": "9999-01-01T00:00:00.000Z", "kind": "of a later release", "about": n.to_string(), "detail": "d"});
    nrf.set("/journal", &(0..5_000).map(entry).collect());
    let console = console(&[&nrf]);
    until_state(&console, "nrf", "serves, needs attention");
    until("the journal", || {
        summary(&console)["changes"]["entries"]
            .as_array()
            .is_some_and(|all| all.len() == 200)
    });
    let text = summary(&console).to_string();
    assert!(text.len() < 200_000, "{}", text.len());
    assert_eq!(row(&console, "nrf")["moreWrong"], 4_900);
    // A page larger than its bound is not read, and the function is not taken for well.
    nrf.says(json!({"version": long, "state": "serves"}));
    until_state(&console, "nrf", "no answer");
    console.stop().unwrap();
}

#[test]
fn pages_beyond_the_bound_are_refused_in_words_and_leave_room_for_others() {
    let nrf = Stand::start("nrf");
    let console = console(&[&nrf]);
    let at = console.addresses()[0];
    let open = streams(&console);
    let (status, body) = get(&console, "/api/v1/stream");
    assert_eq!(status, 503);
    assert!(body.contains("32 pages are open already"), "{body}");
    assert_eq!(get(&console, "/text").0, 200);
    drop(open);
    until("a position to be free", || stream(at).1 == "HTTP/1.1 200");
    console.stop().unwrap();
}

#[test]
fn a_port_that_is_taken_is_an_error_unless_it_may_move() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config {
        listen: taken.local_addr().unwrap(),
        ..Config::default()
    };
    assert!(console::start(config.clone()).is_err());
    let moved = console::start(Config {
        may_move: true,
        ..config
    })
    .unwrap();
    assert_ne!(moved.addresses()[0], taken.local_addr().unwrap());
    moved.stop().unwrap();
}
