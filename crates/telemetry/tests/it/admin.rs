//! What strangers, and pages of other sites, can do to an admin endpoint.

use std::sync::Arc;

use serde_json::Value;
use telemetry::admin::{Config, Limits, Serving, serve_within};
use telemetry::{Admin, Registry};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::LOCAL;

/// The status of the answer to these lines.
async fn status(at: &Serving, lines: &[&str]) -> u16 {
    let mut stream = TcpStream::connect(at.address()).await.unwrap();
    let request = format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer[9..12].parse().unwrap()
}

async fn serving(config: &Config) -> Serving {
    let admin = Admin::new("test", Registry::new())
        .reload(Arc::new(|_| Ok(Value::Null)))
        .hosts(&config.hosts);
    serve_within(LOCAL, admin.router(), Limits::from(config))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused() {
    let config = Config {
        hosts: vec!["nrf.example".to_owned()],
        ..Config::default()
    };
    let at = serving(&config).await;
    let own = format!("Host: {}", at.address());
    for ours in [
        "Host: localhost:9010",
        "Host: NRF.example",
        "Host: [::1]:9010",
        own.as_str(),
    ] {
        assert_eq!(
            status(&at, &["GET /config/none HTTP/1.1", ours]).await,
            404,
            "{ours}"
        );
        assert_eq!(
            status(&at, &["POST /config/reload HTTP/1.1", ours]).await,
            200,
            "{ours}"
        );
    }
    for foreign in [
        "Host: evil.example",
        "Host: evil.example:9010",
        "Host: 127.0.0.1.evil.example",
    ] {
        for line in [
            "GET /config HTTP/1.1",
            "GET /livez HTTP/1.1",
            "POST /config/reload HTTP/1.1",
        ] {
            assert_eq!(status(&at, &[line, foreign]).await, 421, "{line} {foreign}");
        }
    }
    let absolute = "GET http://evil.example/livez HTTP/1.1";
    assert_eq!(status(&at, &[absolute, "Host: localhost"]).await, 421);
    let two = ["GET /livez HTTP/1.1", "Host: localhost", "Host: evil.example"];
    assert!(matches!(status(&at, &two).await, 400 | 421));
    assert_eq!(status(&at, &["GET /livez HTTP/1.0"]).await, 200, "no browser");
    at.stop().await;
}

#[tokio::test]
async fn changes_from_pages_of_other_sites_are_refused_by_what_the_browser_says() {
    let at = serving(&Config::default()).await;
    let post = ["POST /config/reload HTTP/1.1", "Host: localhost:9010"];
    for (more, expected) in [
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Sec-Fetch-Site: \u{fe}", 403),
        ("Origin: null", 403),
        ("Origin: http://localhost:8080", 403),
        ("Sec-Fetch-Site: same-origin", 200),
        ("Sec-Fetch-Site: none", 200),
        ("Origin: http://localhost:9010", 200),
    ] {
        assert_eq!(status(&at, &[post[0], post[1], more]).await, expected, "{more}");
    }
    at.stop().await;
}

#[tokio::test]
async fn idle_connections_make_room_for_newcomers() {
    // Nothing ends by itself here: only a newcomer makes room.
    let config = Config {
        connections: 8,
        head_timeout: settings::Period::from_secs(3600),
        ..Config::default()
    };
    let at = serving(&config).await;
    let mut idle = Vec::new();
    for number in 0..8 {
        let mut stream = TcpStream::connect(at.address()).await.unwrap();
        if number % 2 == 0 {
            // One that was served before, and one in the middle of a head.
            stream
                .write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .await
                .unwrap();
            let mut first = [0; 12];
            stream.read_exact(&mut first).await.unwrap();
        } else {
            stream.write_all(b"GET /livez HT").await.unwrap();
        }
        idle.push(stream);
    }
    for _ in 0..20 {
        assert_eq!(
            status(&at, &["GET /livez HTTP/1.1", "Host: localhost"]).await,
            200
        );
    }
    at.stop().await;
}
