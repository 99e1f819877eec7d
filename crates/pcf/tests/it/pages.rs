//! What an operator sees and does.

use std::time::Duration;

use serde_json::{Value, json};
use testpeer::page;
use testpeer::sbi::{Server, no_content};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Pcf, SM_POLICIES, config, context, local, start};

#[test]
fn associations_are_listed_shown_and_found() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        let id = path.rsplit('/').next().unwrap();
        let show = async |path: &str| {
            let (status, text) = page(pcf.running().handle().routes(), path).await;
            (status, serde_json::from_str::<Value>(&text).unwrap_or_default())
        };
        for path in [
            "/pcf/sessions",
            "/pcf/find/imsi-001010000000001",
            "/pcf/find/msisdn-15551234567",
            "/pcf/find/10.0.0.1",
            "/pcf/find/2001:db8:1:2::9",
        ] {
            let (status, list) = show(path).await;
            assert_eq!((status, &list[0]["id"]), (200, &json!(id)), "{path}");
            assert_eq!(list[0]["rules"], "");
        }
        assert_eq!(show("/pcf/find/imsi-7").await, (200, json!([])));
        let (status, one) = show(&format!("/pcf/sessions/{id}")).await;
        assert_eq!((status, &one["kind"]), (200, &json!("sm")));
        assert!(one["decision"]["sessRules"]["default"].is_object());
        let (status, lines) = show("/pcf/explain/imsi-001010000000001").await;
        let lines = lines.as_array().unwrap();
        let decided = |part: &str| lines.iter().find(|line| line["decided"] == part);
        let rule = decided("sessRules.default").unwrap_or_else(|| panic!("{lines:?}"));
        assert_eq!((status, &rule["block"]), (200, &json!("default-session")));
        let reads = rule["reads"].as_str().unwrap();
        assert!(
            reads.contains("$request.subsSessAmbr.uplink = \"300 Mbps\""),
            "{reads}"
        );
        assert_eq!(show("/pcf/sessions/nonsense").await.0, 404);
        assert_eq!(show("/pcf/state").await.1["state"], "SERVING");
    });
}

/// Asks for a page by HTTP/1.1, as an operator's `curl` does: the status.
pub async fn admin(pcf: &Pcf, method: &str, path: &str, body: &str) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pages = pcf.running().handle().routes();
    let serving = tokio::task::spawn_local(async move { axum::serve(listener, pages).await });
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    serving.abort();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_operator_has_a_session_ended_by_its_smf() {
    local(async {
        let pcf = start(|_| {});
        let smf = Server::start(|_| no_content());
        let path = pcf
            .session(&json!({"notificationUri": format!("{}/n/1", smf.root())}))
            .await;
        let id = path.rsplit('/').next().unwrap();
        assert_eq!(
            admin(&pcf, "DELETE", &format!("/pcf/sessions/{id}"), "").await,
            200
        );
        while smf.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen = &smf.seen()[0];
        assert_eq!(seen.uri().path(), "/n/1/terminate");
        crate::judge::is(crate::judge::SM, "TerminationNotification", &seen.json());
        let uri = seen.json()["resourceUri"].as_str().unwrap().to_owned();
        assert_eq!(uri, format!("{}{path}", pcf.origin));
        assert_eq!(admin(&pcf, "DELETE", "/pcf/sessions/7", "").await, 404);
    });
}

#[test]
fn a_pcf_is_shut_down_in_steps() {
    local(async {
        let mut pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        let update = format!("{path}/update");
        let statuses = async |pcf: &Pcf| {
            let created = pcf
                .post(SM_POLICIES, &context(&json!({"pduSessionId": 6})))
                .await
                .status
                .as_u16();
            let updated = pcf.post(&update, &json!({})).await.status.as_u16();
            (created, updated)
        };
        assert_eq!(statuses(&pcf).await, (201, 200));
        for (state, expected) in [("PARTIAL", (503, 200)), ("COMPLETE", (503, 503))] {
            assert_eq!(
                admin(&pcf, "PUT", "/pcf/state", &format!("\"{state}\"")).await,
                200
            );
            assert_eq!(statuses(&pcf).await, expected, "{state}");
        }
        // The state holds after a restart.
        pcf.stop();
        pcf.running = Some(pcf::start(config(pcf.directory.path())).unwrap());
        let address = pcf.running().addresses()[0];
        pcf.origin = format!("http://{address}").parse().unwrap();
        assert_eq!(statuses(&pcf).await, (503, 503));
        assert_eq!(admin(&pcf, "PUT", "/pcf/state", "\"SERVING\"").await, 200);
        assert_eq!(statuses(&pcf).await, (201, 200));
    });
}
