//! Clients of others: curl, nghttp, h2load, openssl. Each test skips where its program is missing.

use std::process::{Command, Output};

use sbi::server::ServerConfig;
use sbi::{Body, Request, Response};
use tls::authority::Authority;

use crate::support::{local, start, start_tls};

/// Runs a program beside the server; `None` when it is not installed.
pub async fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(std::process::Stdio::null());
    let outcome = tokio::task::spawn_blocking(move || testpeer::skip::output(&mut command));
    outcome.await.unwrap()
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

async fn echo(request: Request) -> Response {
    let mut response = Response::ok(request.body.clone());
    if request.body.is_empty() {
        *response.body_mut() = Body::from(request.path().to_owned());
    }
    response
}

#[test]
fn curl_with_prior_knowledge() {
    local(async {
        let server = start(ServerConfig::default(), echo);
        let url = format!("http://{}/nnrf-disc/v1", server.addr);
        let Some(got) = run("curl", &["-s", "--http2-prior-knowledge", &url]).await else {
            return;
        };
        assert_eq!(text(&got), "/nnrf-disc/v1");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'x'; 300_000]).unwrap();
        let body = format!("@{}", file.path().display());
        let arguments = [
            "-s",
            "--http2-prior-knowledge",
            "-w",
            "%{http_code} %{http_version} %{size_download}",
            "-o",
            "/dev/null",
            "--data-binary",
            &body,
            &url,
        ];
        let posted = run("curl", &arguments).await.unwrap();
        assert_eq!(text(&posted), "200 2 300000");
    });
}

#[test]
fn curl_over_tls_and_openssl_see_h2() {
    local(async {
        let authority = Authority::new("lab").unwrap();
        let identity = authority.issue(&["localhost"]).unwrap();
        let server = start_tls(
            authority
                .material(Some(&identity), false)
                .server(tls::HTTP2)
                .unwrap(),
            echo,
        );
        let directory = tempfile::tempdir().unwrap();
        authority.write(&identity, directory.path(), "nrf").unwrap();
        let trusted = directory.path().join("authority.crt").display().to_string();
        let url = format!("https://localhost:{}/over-tls", server.addr.port());
        for version in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
            let mut arguments = vec![
                "-s",
                "-w",
                " %{http_version}",
                "--http2",
                "--ipv4",
                "--cacert",
                &trusted,
                &url,
            ];
            arguments.extend(version);
            if let Some(got) = run("curl", &arguments).await {
                assert_eq!(text(&got), "/over-tls 2", "{version:?}");
            }
        }
        let address = server.addr.to_string();
        let arguments = [
            "s_client", "-connect", &address, "-alpn", "h2", "-CAfile", &trusted, "-brief",
        ];
        if let Some(got) = run("openssl", &arguments).await {
            assert!(text(&got).contains("Verification: OK"), "{}", text(&got));
        }
        let arguments = [
            "s_client", "-connect", &address, "-alpn", "h2", "-CAfile", &trusted,
        ];
        if let Some(got) = run("openssl", &arguments).await {
            assert!(text(&got).contains("ALPN protocol: h2"), "{}", text(&got));
        }
    });
}

#[test]
fn nghttp_upgraded_by_nobody() {
    local(async {
        let server = start(ServerConfig::default(), echo);
        let url = format!("http://{}/from-nghttp", server.addr);
        if let Some(got) = run("nghttp", &[&url]).await {
            assert_eq!(text(&got), "/from-nghttp");
        }
    });
}

#[test]
fn h2load_sees_only_success() {
    local(async {
        let server = start(ServerConfig::default(), echo);
        let url = format!("http://{}/load", server.addr);
        let arguments = ["-n", "2000", "-c", "4", "-m", "50", &url];
        if let Some(got) = run("h2load", &arguments).await {
            assert!(text(&got).contains("2000 succeeded, 0 failed"), "{}", text(&got));
            assert_eq!(server.stats.snapshot().requests, 2_000);
        }
    });
}
