//! Clients that people use: curl, nghttp, h2load.

use std::process::Output;

use tokio::process::Command;

use crate::support::{PATH, Producer, knowing, local};

/// Runs a program; `None` where it is not installed.
async fn run(program: &str, args: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(args).kill_on_drop(true).output().await;
    if output.is_err() {
        testpeer::skip::missing(program);
    }
    output.ok()
}

#[test]
fn curl_nghttp_and_h2load_pass() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let (uri, target) = (
            format!("{}{PATH}", scp.origin),
            format!("3gpp-Sbi-Target-apiRoot: {}", producer.root()),
        );
        if let Some(output) = run("curl", &["-sS", "--http2-prior-knowledge", "-H", &target, &uri]).await {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&producer.id), "{output:?}");
        }
        if let Some(output) = run("nghttp", &["-H", &target, &uri]).await {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&producer.id), "{output:?}");
        }
        let load = ["-n", "2000", "-c", "4", "-m", "16", "-H", &target, &uri];
        if let Some(output) = run("h2load", &load).await {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("2000 succeeded, 0 failed"), "{text}");
            assert!(producer.count() >= 2_000);
        }
    });
}
