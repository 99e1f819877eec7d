//! The lab's HTTP/2 judged by another implementation, both ways.

use std::net::SocketAddr;

use bytes::Bytes;
use lab::client::{Client, Request};
use lab::sim::{ProducerSettings, RoleName, Settings};

use crate::support::Peer;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// A server by crate `h2` that answers each body with itself, a window at a time.
async fn echo(listener: tokio::net::TcpListener, window: u32) {
    let (socket, _) = listener.accept().await.unwrap();
    let mut connection = h2::server::Builder::new()
        .initial_window_size(window)
        .initial_connection_window_size(window)
        .max_concurrent_streams(7)
        .handshake::<_, Bytes>(socket)
        .await
        .unwrap();
    while let Some(request) = connection.accept().await {
        let Ok((request, mut respond)) = request else {
            return;
        };
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut all = Vec::new();
            while let Some(piece) = body.data().await {
                let piece = piece.unwrap();
                body.flow_control().release_capacity(piece.len()).unwrap();
                all.extend_from_slice(&piece);
            }
            let response = http::Response::builder()
                .status(200)
                .header("x-length", all.len())
                .body(())
                .unwrap();
            let mut stream = respond.send_response(response, all.is_empty()).unwrap();
            if !all.is_empty() {
                stream.send_data(all.into(), true).unwrap();
            }
        });
    }
}

#[test]
fn as_client_it_keeps_to_windows_and_stream_limits() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for window in [1000, 65_535, 1 << 20] {
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let peer: SocketAddr = listener.local_addr().unwrap();
        let server = runtime.spawn(echo(listener, window));
        let mut client = Client::connect(peer, PATIENCE).unwrap();
        let requests: Vec<Request> = (0..40_usize)
            .map(|n| {
                let body: Vec<u8> = (0..n * 5000).map(|at| (at % 251) as u8).collect();
                Request::new("POST", format!("/echo?n={n}")).with("application/octet-stream", body)
            })
            .collect();
        let answers = client.exchange(&requests).unwrap();
        for (request, answer) in requests.iter().zip(&answers) {
            assert_eq!(answer.status, 200);
            assert!(
                answer.body == request.body,
                "{} bytes came back as {}",
                request.body.len(),
                answer.body.len()
            );
        }
        drop(client);
        runtime.block_on(server).unwrap();
    }
}

#[test]
fn as_server_it_keeps_to_windows() {
    let peer = Peer::start(&Settings {
        role: RoleName::Producer,
        producer: ProducerSettings {
            status: 200,
            body_bytes: 300_000,
            ..ProducerSettings::default()
        },
        ..Settings::default()
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(peer.address).await.unwrap();
        let (mut sender, connection) = h2::client::Builder::new()
            .initial_window_size(10_000)
            .initial_connection_window_size(70_000)
            .header_table_size(0)
            .handshake::<_, Bytes>(socket)
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut waiting = Vec::new();
        for n in 0..5 {
            sender = sender.ready().await.unwrap();
            let request = http::Request::get(format!("http://lab/x?n={n}"))
                .body(())
                .unwrap();
            waiting.push(sender.send_request(request, true).unwrap().0);
        }
        for response in waiting {
            let response = response.await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["content-type"], "application/json");
            let (mut body, mut length) = (response.into_body(), 0);
            while let Some(piece) = body.data().await {
                let piece = piece.unwrap();
                length += piece.len();
                body.flow_control().release_capacity(piece.len()).unwrap();
            }
            assert_eq!(length, 300_000);
        }
    });
}

#[test]
fn programs_of_others_talk_to_a_simulator() {
    let peer = Peer::start(&Settings {
        role: RoleName::Producer,
        ..Settings::default()
    });
    let url = format!("http://{}/x", peer.address);
    for (program, arguments) in [
        (
            "curl",
            vec![
                "-sS",
                "--http2-prior-knowledge",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                &url,
            ],
        ),
        ("nghttp", vec!["-nv", &url]),
    ] {
        let mut command = std::process::Command::new(program);
        if let Some(output) = testpeer::skip::output(command.args(&arguments)) {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                text.contains("200"),
                "{program}: {text}{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
