//! The admin endpoint over real sockets.

mod admin;
mod logs;
mod receiver;
mod traces;
mod webhook;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use telemetry::admin::{Limits, Serving, serve, serve_within};
use telemetry::{Admin, AlarmKind, Alarms, Health, Registry, Severity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

const LOST: AlarmKind = AlarmKind {
    number: 1,
    name: "StoreLost",
    severity: Severity::Major,
    text: "The store cannot be reached.",
    advice: "Check the database.",
};

/// Sends a request and gives status and body.
async fn ask(at: &Serving, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at.address()).await.unwrap();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // `ask` may pass more header lines behind the request line.
    let request = match head.split_once('\n') {
        Some((line, more)) => request.replacen(
            &format!("{head} HTTP/1.1"),
            &format!("{line} HTTP/1.1\r\n{more}"),
            1,
        ),
        None => request,
    };
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn every_page_answers() {
    let (registry, health) = (Registry::new(), Health::new());
    telemetry::process::register(&registry, "0.0.0", "none");
    let alarms = Alarms::new(&registry);
    alarms.raise(&LOST, "db", "connection refused");
    let store = health.component("store");
    let reloads = Arc::new(AtomicU32::new(0));
    let counted = reloads.clone();
    let admin = Admin::new("test", registry)
        .health(health)
        .alarms(alarms)
        .config(|| json!({ "url": "mysql://u:geheim@h/d" }))
        .reload(Arc::new(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(json!({ "changed": ["log.filter"] })),
            _ => Err("x.yaml: 1 mistake".to_owned()),
        }))
        .routes(Router::new().route("/test/things", get(|| async { "things" })))
        .page("/test/things", "Things of the test");
    let at = serve(LOCAL, admin.router()).await.unwrap();

    assert_eq!(ask(&at, "GET /livez", "").await, (200, "alive\n".to_owned()));
    assert_eq!(
        ask(&at, "GET /readyz", "").await,
        (503, "store: starting\n".to_owned())
    );
    store.ready();
    let (status, ready) = ask(&at, "GET /readyz", "").await;
    let lines: Vec<&str> = ready.lines().collect();
    assert_eq!((status, lines[0], lines.len()), (200, "ready", 2));
    assert!(
        lines[1].contains("StoreLost (major, db): connection refused"),
        "{ready}"
    );
    let (_, page) = ask(&at, "GET /status", "").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["state"], "serves, needs attention");
    assert_eq!(page["wrong"][0]["detail"], "connection refused");
    assert_eq!(page["wrong"][0]["remedy"], page["alarms"][0]["advice"]);
    let (status, page) = ask(&at, "GET /metrics", "").await;
    assert!(
        status == 200 && page.contains("signalbox_process_cpu_seconds_total"),
        "{page}"
    );
    assert!(
        page.contains("# TYPE signalbox_process_cpu_seconds_total counter"),
        "{page}"
    );
    let (_, page) = ask(
        &at,
        "GET /metrics\nAccept: application/openmetrics-text; version=1.0.0",
        "",
    )
    .await;
    assert!(
        page.contains("# TYPE signalbox_process_cpu_seconds counter") && page.ends_with("# EOF\n"),
        "{page}"
    );
    let (_, page) = ask(&at, "GET /alarms", "").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["active"][0]["name"], "StoreLost");
    assert_eq!(page["active"][0]["severity"], "major");
    let (_, page) = ask(&at, "GET /config", "").await;
    assert_eq!(page, r#"{"url":"mysql://u:***@h/d"}"#);
    assert_eq!(ask(&at, "POST /config/reload", "").await.0, 200);
    assert_eq!(
        ask(&at, "POST /config/reload", "").await,
        (422, "x.yaml: 1 mistake\n".to_owned())
    );
    assert_eq!(ask(&at, "GET /test/things", "").await.1, "things");
    assert_eq!(ask(&at, "GET /nothing", "").await.0, 404);
    let (_, index) = ask(&at, "GET /", "").await;
    assert!(index.starts_with("test "), "{index}");
    for line in [
        "GET  /test/things            Things",
        "POST /config/reload          Reload",
    ] {
        assert!(index.contains(line), "{index}");
    }
    assert_eq!(
        ask(&at, "POST /log-level\nUser-Agent: curl", "nrf=loud").await.0,
        400
    );
    for nothing in ["", " ,\n"] {
        let (status, said) = ask(&at, "POST /log-level", nothing).await;
        assert!(
            status == 400 && said.contains("info,nrf=debug"),
            "{status} {said}"
        );
    }
    let (_, page) = ask(&at, "GET /journal", "").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page[0]["kind"], "alarmRaised");
    assert_eq!(
        (&page[1]["about"], &page[1]["detail"]),
        (&json!("POST /log-level"), &json!("answered 400 Bad Request"))
    );
    assert!(page[1]["by"].as_str().unwrap().ends_with(" (curl)"), "{page}");
    assert_eq!(ask(&at, "GET /journal?after=4", "").await.1, "[]");
    assert_eq!(ask(&at, "POST /log-level", &"x".repeat(100_000)).await.0, 413);
    at.stop().await;
}

#[tokio::test]
async fn changes_are_not_taken_from_pages_of_other_sites() {
    let admin = Admin::new("test", Registry::new()).reload(Arc::new(|_| Ok(Value::Null)));
    let at = serve(LOCAL, admin.router()).await.unwrap();
    assert_eq!(
        ask(&at, "POST /config/reload\nOrigin: http://evil.example", "")
            .await
            .0,
        403
    );
    assert_eq!(
        ask(&at, "POST /config/reload\nOrigin: http://localhost", "")
            .await
            .0,
        200
    );
    assert_eq!(
        ask(&at, "GET /livez\nOrigin: http://evil.example", "").await.0,
        200
    );
    at.stop().await;
}

#[tokio::test]
async fn silent_connections_end_for_newcomers() {
    let limits = Limits {
        connections: 2,
        head: Duration::from_millis(50),
        ..Limits::default()
    };
    let at = serve_within(LOCAL, Admin::new("test", Registry::new()).router(), limits)
        .await
        .unwrap();
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(TcpStream::connect(at.address()).await.unwrap());
    }
    // Served in the place of a silent one.
    assert_eq!(ask(&at, "GET /livez", "").await.0, 200);
    for mut stream in silent {
        let mut end = Vec::new();
        let _ = stream.read_to_end(&mut end).await;
    }
    at.stop().await;
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let at = serve(LOCAL, Router::new()).await.unwrap();
    let error = serve(at.address(), Router::new()).await.unwrap_err();
    assert!(error.to_string().contains(&at.address().to_string()), "{error}");
}

#[tokio::test]
async fn stopping_ends_idle_connections() {
    let at = serve(LOCAL, Admin::new("test", Registry::new()).router())
        .await
        .unwrap();
    let mut idle = TcpStream::connect(at.address()).await.unwrap();
    idle.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    at.stop().await;
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
}

#[test]
fn the_names_of_our_own_metrics_follow_the_rules() {
    for declarations in [
        telemetry::alarms::METRICS,
        telemetry::admin::METRICS,
        telemetry::logging::METRICS,
        telemetry::process::METRICS,
        telemetry::trace::METRICS,
        telemetry::webhook::METRICS,
    ] {
        assert_eq!(telemetry::metrics::lint(declarations), Vec::<String>::new());
    }
}
