//! Alarms to a webhook that listens on a socket.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;
use settings::Secret;
use telemetry::webhook::{self, Config, Webhook};
use telemetry::{Alarms, Registry, Severity};

use crate::LOST;
use crate::receiver::{answer, field, request};

/// A server of alarms, with the alarms that it gets.
struct Server {
    listener: TcpListener,
    stream: Option<TcpStream>,
    alarms: Alarms,
    registry: Registry,
}

impl Server {
    fn new(change: impl FnOnce(&mut Webhook)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Registry::new();
        let alarms = Alarms::new(&registry);
        alarms.raise(&LOST, "before", "as it began");
        let mut config = Config::default();
        config.webhook.url = Some(format!("http://{}/hook", listener.local_addr().unwrap()));
        change(&mut config.webhook);
        webhook::start(&config, &registry, &[("nrf", alarms.clone())]).unwrap();
        Self {
            listener,
            stream: None,
            alarms,
            registry,
        }
    }

    /// The next request: its head and its body, answered with this status. A failure costs the connection.
    fn next(&mut self, status: &str) -> (String, Value) {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.listener.accept().unwrap().0,
        };
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let (head, body) = request(&mut stream);
        answer(&mut stream, status);
        self.stream = status.starts_with('2').then_some(stream);
        (head, serde_json::from_slice(&body).unwrap())
    }

    /// The next alert: status, subject, severity.
    fn alert(&mut self, status: &str) -> [String; 3] {
        let (_, body) = self.next(status);
        let alert = &body["alerts"][0];
        [
            &alert["status"],
            &alert["labels"]["about"],
            &alert["labels"]["severity"],
        ]
        .map(|text| text.as_str().unwrap().to_owned())
    }

    fn counted(&self, line: &str) {
        let begun = std::time::Instant::now();
        while !self.registry.render().contains(line) {
            let page = self.registry.render();
            assert!(begun.elapsed() < Duration::from_secs(120), "{line}: {page}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_alarm_reaches_the_webhook_as_alertmanager_would_send_it() {
    let token = std::env::temp_dir().join(format!("signalbox-webhook-{}", std::process::id()));
    std::fs::write(&token, "secret\n").unwrap();
    let mut server = Server::new(|webhook| webhook.token = Some(Secret::File(token.clone())));
    let (head, body) = server.next("200 OK");
    assert!(head.starts_with("post /hook "), "{head}");
    assert_eq!(field(&head, "content-type"), Some("application/json"));
    assert_eq!(field(&head, "authorization"), Some("bearer secret"));
    assert_eq!(
        (&body["version"], &body["status"]),
        (&"4".into(), &"firing".into())
    );
    let alert = &body["alerts"][0];
    assert_eq!(body["alerts"].as_array().unwrap().len(), 1);
    let labels = &alert["labels"];
    assert_eq!(labels["alertname"], "StoreLost");
    assert_eq!(labels["number"], "1");
    assert_eq!(labels["severity"], "major");
    assert_eq!(labels["function"], "nrf");
    assert_eq!(labels["about"], "before");
    assert_eq!(alert["annotations"]["description"], "as it began");
    assert_eq!(alert["annotations"]["advice"], "Check the database.");
    assert_eq!(alert["endsAt"], "0001-01-01T00:00:00Z");
    let (begun, mark) = (alert["startsAt"].clone(), alert["fingerprint"].clone());

    // A token that was renewed is used at once.
    std::fs::write(&token, "renewed").unwrap();
    server.alarms.clear(&LOST, "before");
    let (head, body) = server.next("200 OK");
    assert_eq!(field(&head, "authorization"), Some("bearer renewed"));
    let alert = &body["alerts"][0];
    assert_eq!(body["status"], "resolved");
    assert_eq!((&alert["startsAt"], &alert["fingerprint"]), (&begun, &mark));
    assert!(alert["endsAt"].as_str() >= begun.as_str(), "{alert}");
    server.counted("signalbox_alarm_notifications_total 2");
    std::fs::remove_file(&token).unwrap();
}

#[test]
fn changes_arrive_in_order_whatever_the_server_answers_meanwhile() {
    let mut server = Server::new(|_| {});
    let firing = |about: &str, severity: &str| ["firing", about, severity].map(str::to_owned);
    let resolved = |about: &str, severity: &str| ["resolved", about, severity].map(str::to_owned);
    // While the server fails, an alarm waits and is repeated; others wait behind it.
    for status in [
        "503 Service Unavailable",
        "429 Too Many Requests",
        "401 Unauthorized",
    ] {
        assert_eq!(server.alert(status), firing("before", "major"));
        server.alarms.raise(&LOST, "peer", "timeout");
    }
    server.alarms.raise(&LOST, "peer", "only the detail is new");
    server.alarms.raise_as(&LOST, Severity::Minor, "peer", "less");
    server.alarms.clear(&LOST, "peer");
    server.alarms.clear(&LOST, "peer");
    for expected in [
        firing("before", "major"),
        firing("peer", "major"),
        resolved("peer", "major"),
        firing("peer", "minor"),
        resolved("peer", "minor"),
    ] {
        assert_eq!(server.alert("200 OK"), expected);
    }
    server.counted("signalbox_alarm_notification_failures_total 3");
    // What the server refuses is counted and holds nothing up.
    server.alarms.raise(&LOST, "refused", "");
    server.alarms.raise(&LOST, "next", "");
    assert_eq!(server.alert("400 Bad Request"), firing("refused", "major"));
    assert_eq!(server.alert("202 Accepted"), firing("next", "major"));
    server.counted("signalbox_alarm_notifications_lost_total{reason=\"refused\"} 1");
}

#[test]
fn what_found_no_place_is_counted_and_made_good() {
    let mut server = Server::new(|webhook| webhook.queue = 2);
    // The first one is on its way: it holds up the others.
    let mut held = server.listener.accept().unwrap().0;
    request(&mut held);
    for peer in 0..10 {
        server.alarms.raise(&LOST, &format!("peer-{peer}"), "");
    }
    server.alarms.raise_as(&LOST, Severity::Minor, "before", "less");
    server.alarms.clear(&LOST, "before");
    server.counted("signalbox_alarm_notifications_lost_total{reason=\"queue\"} 10");
    answer(&mut held, "200 OK");
    server.stream = Some(held);
    let mut seen = Vec::new();
    for _ in 0..11 {
        let [status, about, severity] = server.alert("200 OK");
        assert_eq!(severity, "major", "what the server knows ends");
        seen.push(format!("{status} {about}"));
    }
    let mut expected = vec![
        "firing peer-0".to_owned(),
        "firing peer-1".to_owned(),
        "resolved before".to_owned(),
    ];
    expected.extend((2..10).map(|peer| format!("firing peer-{peer}")));
    assert_eq!(seen, expected);
}

/// Too many to be listed one by one: one alarm stands for the others, and ends with the last of them.
#[test]
fn the_alarm_about_others_begins_and_ends_at_the_webhook() {
    let mut server = Server::new(|webhook| webhook.queue = 10_000);
    assert_eq!(server.alert("200 OK"), ["firing", "before", "major"]);
    let mut unlisted: Vec<String> = (0..4100).map(|peer| format!("peer-{peer}")).collect();
    for peer in &unlisted {
        server.alarms.raise(&LOST, peer, "");
    }
    let active = server.alarms.active();
    let listed: std::collections::HashSet<&str> =
        active.iter().map(|alarm| alarm.instance.as_str()).collect();
    unlisted.retain(|peer| !listed.contains(peer.as_str()));
    assert!(unlisted.len() > 1, "{unlisted:?}");
    for _ in unlisted.len()..4100 {
        let [status, about, _] = server.alert("200 OK");
        assert!(status == "firing" && about != "others", "{status} {about}");
    }
    assert_eq!(server.alert("200 OK"), ["firing", "others", "major"]);
    for peer in &unlisted {
        server.alarms.clear(&LOST, peer);
    }
    assert_eq!(server.alert("200 OK"), ["resolved", "others", "major"]);
}
