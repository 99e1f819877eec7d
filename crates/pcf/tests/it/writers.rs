//! One writer for each association at a time: of concurrent updates none is lost, at one PCF and at two on one database;
//! a kill loses no acknowledged one.

use http::{Method, StatusCode};
use sbi::client::Origin;
use serde_json::{Value, json};

use crate::databases::Servers;
use crate::process::Process;
use crate::support::{SM_POLICIES, client, config, context, judged, local, path_of, request};

/// Consumers at the same time, and updates of each.
const LANES: usize = 8;
const UPDATES: usize = 12;

async fn post(origin: &Origin, path: &str, body: &Value) -> testpeer::sbi::Got {
    let request = request(Method::POST, path, "application/json", body.to_string());
    judged(&client(), origin, request).await
}

/// Reports a byte of usage again and again, alternately to each PCF. Answers how often one was acknowledged.
async fn lane(origins: Vec<Origin>, path: String, number: usize) -> usize {
    let client = client();
    let mut acknowledged = 0;
    for turn in 0..UPDATES {
        let body = json!({"repPolicyCtrlReqTriggers": ["US_RE"], "accuUsageReports": [{"refUmIds": "um", "volUsage": 1}],
            format!("vendorSeen{number}x{turn}"): true});
        let origin = &origins[(number + turn) % origins.len()];
        let request = request(
            Method::POST,
            &format!("{path}/update"),
            "application/json",
            body.to_string(),
        );
        let got = judged(&client, origin, request).await;
        assert!(
            matches!(got.status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE),
            "{}",
            got.json
        );
        acknowledged += usize::from(got.status == StatusCode::OK);
    }
    acknowledged
}

/// Runs all lanes, and compares what was acknowledged with what is stored.
async fn none_is_lost(origins: &[Origin], path: &str) {
    let lanes: Vec<_> = (0..LANES)
        .map(|number| tokio::task::spawn_local(lane(origins.to_vec(), path.to_owned(), number)))
        .collect();
    let mut acknowledged = 0;
    for lane in lanes {
        acknowledged += lane.await.unwrap();
    }
    let read = request(Method::GET, path, "", "");
    let read = judged(&client(), &origins[0], read).await;
    let seen = read.json["context"].as_object().unwrap().keys();
    let seen = seen.filter(|name| name.starts_with("vendorSeen")).count();
    assert_eq!(seen, acknowledged, "updates that are kept");
    assert!(
        acknowledged > LANES * UPDATES * 3 / 4,
        "{acknowledged} were acknowledged"
    );
}

#[test]
fn concurrent_updates_of_one_session_at_all_workers_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = config(directory.path());
    settings.workers = 2;
    let process = Process::start(&settings);
    local(async {
        let path = path_of(&post(&process.origin, SM_POLICIES, &context(&json!({}))).await);
        none_is_lost(std::slice::from_ref(&process.origin), &path).await;
    });
}

#[test]
fn concurrent_updates_of_one_session_at_two_pcfs_are_all_kept() {
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = |instance: &str| {
        let mut config = config(&directory.path().join(instance));
        config.store = servers.config("site-1", &[1]);
        config.store.embedded.directory = directory.path().join(instance);
        config
    };
    let (one, other) = (
        Process::start(&settings("one")),
        Process::start(&settings("other")),
    );
    local(async {
        let path = path_of(&post(&one.origin, SM_POLICIES, &context(&json!({}))).await);
        none_is_lost(&[one.origin.clone(), other.origin.clone()], &path).await;
        let deletes = [&one, &other].map(|pcf| {
            let (origin, path) = (pcf.origin.clone(), format!("{path}/delete"));
            tokio::task::spawn_local(async move { post(&origin, &path, &json!({})).await.status })
        });
        let mut statuses = Vec::new();
        for delete in deletes {
            statuses.push(delete.await.unwrap());
        }
        statuses.sort();
        assert_eq!(statuses, [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND]);
    });
}

#[test]
fn sessions_survive_a_kill_and_are_updated_and_deleted_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let settings = config(directory.path());
    let mut paths = Vec::new();
    for round in 0..3 {
        let process = Process::start(&settings);
        local(async {
            // What the process before has acknowledged.
            for (number, path) in std::mem::take(&mut paths).into_iter().enumerate() {
                let update = json!({"ratType": "EUTRA"});
                let updated = post(&process.origin, &format!("{path}/update"), &update).await;
                assert_eq!(updated.status, StatusCode::OK, "round {round}, session {number}");
                let deleted = post(&process.origin, &format!("{path}/delete"), &json!({})).await;
                assert_eq!(deleted.status, StatusCode::NO_CONTENT);
            }
            for number in 0..50 {
                let supi = format!("imsi-00101{number:010}");
                let created = post(&process.origin, SM_POLICIES, &context(&json!({"supi": supi}))).await;
                paths.push(path_of(&created));
            }
        });
        drop(process);
    }
    assert_eq!(paths.len(), 50);
}
