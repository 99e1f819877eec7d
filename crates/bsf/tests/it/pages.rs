//! What an operator sees and does: bindings found and removed, latencies.

use std::net::SocketAddr;

use bsf::Running;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::rx::{AF, BSF, PCF, aar, ask, begun, connect, peer, result, rx_peer};
use crate::support::{binding, local, start};

/// The admin pages of a BSF, at an address, as long as the test runs.
pub(crate) async fn serve(running: &Running) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pages = running.handle().routes();
    tokio::task::spawn_local(async move { axum::serve(listener, pages).await });
    address
}

/// Asks for a page by HTTP/1.1, as an operator's `curl` does.
pub(crate) async fn admin(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn bindings_are_found_by_what_is_known_of_them_and_removed_by_their_identity() {
    local(async {
        let bsf = start(|_| {});
        for number in 1..4 {
            let more = json!({"ipv4Addr": format!("10.0.0.{number}"), "supi": format!("imsi-{number:015}"),
                "gpsi": "msisdn-15550000001", "dnn": format!("dnn{number}")});
            bsf.path(&bsf.post("pcfBindings", &binding(&more)).await);
        }
        let pages = serve(bsf.running.as_ref().unwrap()).await;
        let find = async |query: &str| {
            let (status, found) = admin(pages, "GET", &format!("/bsf/find/{query}"), "").await;
            assert_eq!(status, 200, "{query}");
            found.as_array().unwrap().clone()
        };
        for (query, count) in [
            ("supi=imsi-000000000000002", 1),
            ("ipv4Addr=10.0.0.3", 1),
            ("gpsi=msisdn-15550000001", 3),
            ("gpsi=msisdn-15550000001&dnn=dnn2", 1),
            ("supi=imsi-9", 0),
        ] {
            assert_eq!(find(query).await.len(), count, "{query}");
        }
        assert_eq!(admin(pages, "GET", "/bsf/find/dnn=internet", "").await.0, 400);
        let id = find("ipv4Addr=10.0.0.2").await[0]["bindingId"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/bsf/bindings/{id}");
        let (status, removed) = admin(pages, "DELETE", &path, "").await;
        assert_eq!((status, &removed["dnn"]), (200, &json!("dnn2")));
        assert_eq!(admin(pages, "DELETE", &path, "").await.0, 404);
        assert_eq!(bsf.find("ipv4Addr=10.0.0.2").await.status, StatusCode::NO_CONTENT);
        assert_eq!(find("gpsi=msisdn-15550000001").await.len(), 2);
    });
}

#[test]
fn latencies_over_rx_are_measured_by_command_and_failures_lower_the_score() {
    local(async {
        let (pcf, address) = peer(PCF);
        let bsf = start(|config| {
            config.rx.peers = vec![rx_peer(PCF, address)];
            config.scoring.interval = settings::Period::from_millis(100);
        });
        pcf.available(BSF).await;
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let (af, _) = peer(AF);
        connect(&af, &bsf).await;
        for number in 0..5 {
            let session = format!("af;lat;{number}");
            assert_eq!(result(&ask(&af, BSF, aar(&session, [10, 0, 0, 1])).await), 2001);
        }
        let end = begun(
            diameter::proto::known::command::SESSION_TERMINATION,
            "af;lat;1",
            AF,
        );
        assert_eq!(result(&ask(&af, BSF, end).await), 2001);
        let running = bsf.running.as_ref().unwrap();
        let text = running.handle().registry().render();
        for line in [
            "signalbox_bsf_rx_request_seconds_count{command=\"AAR\"} 5",
            "signalbox_bsf_rx_request_seconds_count{command=\"STR\"} 1",
        ] {
            assert!(text.contains(line), "{line}");
        }
        // A PCF that is lost before it answers is a failure of the service.
        pcf.node().stop(std::time::Duration::ZERO, 0).await;
        while running.score().success > 99.0 {
            let session = format!("af;lost;{}", running.count(bsf::Event::RxRefused));
            let answer = ask(&af, BSF, aar(&session, [10, 0, 0, 1])).await;
            assert_eq!(result(&answer), 3002);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
}

/// By the index of PCFs, also after a binding has gone to another one.
#[test]
fn the_bindings_of_a_pcf_are_found_and_removed_together() {
    local(async {
        let bsf = start(|_| {});
        let id = |pcf: usize| format!("6f1c7a52-0000-4000-8000-00000000000{pcf}");
        let mut paths = Vec::new();
        for number in 0..60 {
            let more = json!({"ipv4Addr": format!("10.0.0.{number}"), "supi": format!("imsi-{number:015}"),
                "pcfId": id(number % 3).to_uppercase()});
            paths.push(bsf.path(&bsf.post("pcfBindings", &binding(&more)).await));
        }
        let pages = serve(bsf.running.as_ref().unwrap()).await;
        let held = async || {
            let mut counts = Vec::new();
            for pcf in 0..4 {
                let query = format!("/bsf/find/pcfId={}", id(pcf));
                let (status, found) = admin(pages, "GET", &query, "").await;
                assert_eq!(status, 200);
                counts.push(found.as_array().unwrap().len());
            }
            counts
        };
        assert_eq!(held().await, [20, 20, 20, 0]);
        let patch = json!({"pcfId": id(1)}).to_string();
        let merge = "application/merge-patch+json";
        let moved = bsf.ask(Method::PATCH, &paths[0], merge, patch).await;
        assert_eq!(moved.status, StatusCode::OK, "{}", moved.json);
        assert_eq!(held().await, [19, 21, 20, 0]);
        let remove = async |pcf: &str| {
            let path = format!("/bsf/pcfs/{pcf}/bindings");
            admin(pages, "DELETE", &path, "").await
        };
        assert_eq!(remove(&id(1)).await, (200, json!({"removed": 21})));
        assert_eq!(remove(&id(1)).await, (200, json!({"removed": 0})));
        assert_eq!(remove("pcf1").await.0, 400);
        assert_eq!(held().await, [19, 0, 20, 0]);
        assert_eq!(bsf.find("ipv4Addr=10.0.0.0").await.status, StatusCode::NO_CONTENT);
        assert_eq!(bsf.find("ipv4Addr=10.0.0.3").await.status, StatusCode::OK);
    });
}
