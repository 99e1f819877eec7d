//! HTTP/1 on a port of HTTP/2: one readable answer.

use std::time::Duration;

use sbi::server::ServerConfig;
use sbi::{Request, Response};
use tls::authority::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::foreign::{run, text};
use crate::support::{Bystander, local, start, start_tls};

/// What the server says to these bytes until it closes the connection.
async fn said(addr: std::net::SocketAddr, pieces: &[&[u8]]) -> String {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    for piece in pieces {
        socket.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    socket.shutdown().await.unwrap();
    let mut got = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut got));
    read.await.unwrap().unwrap();
    String::from_utf8_lossy(&got).into_owned()
}

#[test]
fn a_request_of_http_1_gets_one_answer_that_says_what_the_port_is() {
    local(async {
        let server = start(ServerConfig::default(), async |request: Request| {
            Response::ok(request.body)
        });
        let mut bystander = Bystander::of(server.addr).await;
        let large = vec![b'x'; 100_000];
        for pieces in [
            &[&b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..]][..],
            &[b"GET /a HTTP/1.0\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n"],
            &[b"P", b"OST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n", &large],
        ] {
            let got = said(server.addr, pieces).await;
            let (head, body) = got.split_once("\r\n\r\n").unwrap();
            assert!(
                head.starts_with("HTTP/1.1 426 Upgrade Required\r\nUpgrade: h2c\r\n"),
                "{head}"
            );
            assert!(head.contains("\r\nConnection: Upgrade, close\r\n"), "{head}");
            assert!(
                head.ends_with(&format!("Content-Length: {}", body.len())),
                "{head}"
            );
            assert!(
                body.contains("HTTP/2 only") && body.contains("It belongs to a test."),
                "{body}"
            );
            let command = format!("curl --http2-prior-knowledge http://{}/", server.addr);
            assert!(body.contains(&command), "{body}");
        }
        let stats = server.stats.snapshot();
        assert_eq!((stats.connections_http1, stats.handshakes_failed), (3, 0));
        assert_eq!(said(server.addr, &[b"\x16\x03\x01\x00\x10"]).await, "");
        assert_eq!(server.stats.snapshot().handshakes_failed, 1);
        bystander.is_served().await;
    });
}

#[test]
fn curl_without_options_shows_the_answer() {
    local(async {
        let server = start(ServerConfig::default(), async |_| Response::default());
        let url = format!("http://{}/nnrf-disc/v1", server.addr);
        let arguments = ["-s", "-w", "%{http_code} %{http_version}", &url];
        if let Some(got) = run("curl", &arguments).await {
            assert!(
                text(&got).contains("curl --http2-prior-knowledge"),
                "{}",
                text(&got)
            );
            assert!(text(&got).ends_with("426 1.1"), "{}", text(&got));
        }
    });
}

#[test]
fn curl_that_negotiates_http_1_over_tls_shows_the_answer() {
    local(async {
        let authority = Authority::new("lab").unwrap();
        let identity = authority.issue(&["localhost"]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let files = authority.write(&identity, directory.path(), "nrf").unwrap();
        let opened = sbi::tls::Tls::open(Some(&files), None).unwrap();
        let server = start_tls(opened.server().unwrap(), async |_| Response::default());
        let trusted = directory.path().join("authority.crt").display().to_string();
        let url = format!("https://localhost:{}/", server.addr.port());
        let arguments = [
            "-s",
            "-w",
            "%{http_code}",
            "--http1.1",
            "--ipv4",
            "--cacert",
            &trusted,
            &url,
        ];
        if let Some(got) = run("curl", &arguments).await {
            assert!(
                text(&got).contains("curl --http2 https://127.0.0.1"),
                "{}",
                text(&got)
            );
            assert!(text(&got).ends_with("426"), "{}", text(&got));
            assert_eq!(server.stats.snapshot().connections_http1, 1);
        }
    });
}
