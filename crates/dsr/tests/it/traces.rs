//! Traced messages: files in generations, and searches over several routers.

use std::net::SocketAddr;
use std::path::Path;

use dsr::config::{Trace, TracePoint};
use dsr::{Config, Event};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    MME, admin, answered, client, config, counted, one_list, run, serve, ulr, until, world,
};

const HSS: [&str; 1] = ["hss1.example"];
const USER: &str = "001010000000007";

fn traced(directory: &Path, files: usize, messages: u64) -> Config {
    Config {
        trace: Trace {
            directory: directory.to_owned(),
            points: vec![TracePoint {
                name: "all".to_owned(),
                messages,
                files,
                ..TracePoint::default()
            }],
            ..Trace::default()
        },
        ..config()
    }
}

/// What a page says.
async fn page(admin: SocketAddr, path: &str) -> Vec<Value> {
    let mut stream = tokio::net::TcpStream::connect(admin).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}

fn strings<'r>(rows: &'r [Value], key: &str) -> Vec<&'r str> {
    rows.iter().map(|row| row[key].as_str().unwrap()).collect()
}

#[test]
fn a_search_finds_a_transaction_at_every_router_that_it_passed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        // The second router is before the HSS, the first before the second.
        let (second, _servers, mut hss) = world(
            traced(&folder.path().join("second"), 1, 1000),
            HSS,
            &one_list(&HSS),
        )
        .await;
        let (second_listener, second_admin) = admin();
        serve(second_listener, &second);
        let (gone, gone_admin) = admin();
        drop(gone);
        let mut first = traced(&folder.path().join("first"), 1, 1000);
        first.local_nodes[0].host = "dsr0.example".to_owned();
        first.trace.collect_from = vec![second_admin, gone_admin];
        first.peers = vec![dsr::config::Peer {
            host: crate::support::DSR.to_owned(),
            addresses: vec![second.addresses()[0]],
            ..dsr::config::Peer::default()
        }];
        crate::support::routing(&mut first, &one_list(&[crate::support::DSR]));
        let first = dsr::start(first).unwrap();
        let (first_listener, first_admin) = admin();
        serve(first_listener, &first);
        crate::support::available(&first, crate::support::DSR).await;
        crate::support::available(&second, "dsr0.example").await;
        let mut mme = client(&first, MME).await;
        for user in ["001010000000006", USER] {
            mme.send(ulr(user).as_bytes()).await;
            answered(&mut mme, &mut hss[0]).await;
        }
        counted(&first, Event::Traced, 8).await;
        counted(&second, Event::Traced, 8).await;
        until(|| first.traces(USER).len() == 4 && second.traces(USER).len() == 4).await;

        // By IMSI, which only requests have; answers belong to the same Session-Id.
        let rows = page(first_admin, &format!("/dsr/traces/{USER}")).await;
        let path: Vec<(&str, &str)> = strings(&rows, "router")
            .into_iter()
            .zip(strings(&rows, "what"))
            .collect();
        let (unreachable, path) = path.split_first().unwrap();
        assert_eq!(
            *unreachable,
            (&*gone_admin.to_string(), "unreachable"),
            "{rows:?}"
        );
        let (one, two) = ("dsr0.example", crate::support::DSR);
        let steps = [
            (one, "request in"),
            (one, "request out"),
            (two, "request in"),
            (two, "request out"),
            (two, "answer in"),
            (two, "answer out"),
            (one, "answer in"),
            (one, "answer out"),
        ];
        for step in steps {
            assert_eq!(
                path.iter().filter(|taken| **taken == step).count(),
                1,
                "{step:?} in {path:?}"
            );
        }
        assert_eq!(path.len(), 8);
        assert_eq!((path[0], path[7]), (steps[0], steps[7]), "in the order of time");
        let session = format!("{MME};1;{USER}");
        assert!(strings(&rows[1..], "session").iter().all(|one| *one == session));
        let codes: Vec<u64> = rows[1..]
            .iter()
            .map(|row| row["result"].as_u64().unwrap())
            .collect();
        assert_eq!(codes.iter().filter(|code| **code == 2001).count(), 4, "{codes:?}");
        assert!(rows[1]["text"].as_str().unwrap().contains("User-Name"));
        // By Session-Id, of this router alone; by a peer; by nothing that is there.
        let escaped = session.replace(';', "%3B");
        assert_eq!(
            page(first_admin, &format!("/dsr/traces/{escaped}?here"))
                .await
                .len(),
            4
        );
        assert_eq!(page(second_admin, "/dsr/traces/hss1.example").await.len(), 8);
        assert!(page(second_admin, "/dsr/traces/nothing").await.is_empty());

        // The cache is bounded in messages.
        let mut smaller = second.snapshot().config.as_ref().clone();
        smaller.trace.cached_messages = 4;
        second.reload(&smaller).unwrap();
        mme.send(ulr("001010000000008").as_bytes()).await;
        answered(&mut mme, &mut hss[0]).await;
        counted(&second, Event::Traced, 12).await;
        until(|| second.traces("001010000000008").len() == 4).await;
        assert!(second.traces(USER).is_empty());
        let text = telemetry::metrics::render(&[second.handle().registry().clone()]);
        assert!(text.contains("signalbox_dsr_cached_trace_messages 4"), "{text}");
    });
}

#[test]
fn files_that_are_full_or_of_an_earlier_run_become_earlier_ones() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let messages = |name: &str| read(name).matches("# ").count();
        for start in 0..2 {
            let settings = traced(folder.path(), 3, 4);
            let (dsr, _servers, mut hss) = world(settings, HSS, &one_list(&HSS)).await;
            let mut mme = client(&dsr, MME).await;
            for number in 0..=start {
                mme.send(ulr(&format!("00101000000000{number}")).as_bytes()).await;
                answered(&mut mme, &mut hss[0]).await;
            }
            counted(&dsr, Event::Traced, 4 * (start + 1)).await;
            tokio::task::spawn_blocking(move || dsr.stop())
                .await
                .unwrap()
                .unwrap();
        }
        // The second run filled a file and went on in another; that of the first is the earliest.
        assert_eq!(["all.log", "all.1.log", "all.2.log"].map(messages), [4, 4, 4]);
        assert!(read("all.log").contains("001010000000001"));
        assert!(read("all.1.log").contains("001010000000000"));
        assert!(folder.path().join("all.2.pcapng").exists() && !folder.path().join("all.3.pcapng").exists());
    });
}

/// Files that cannot be written raise an alarm and are counted; the alarm ends with the point.
#[test]
fn traces_that_cannot_be_written_raise_an_alarm() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        // A file where the directory would be.
        let directory = folder.path().join("trace");
        std::fs::write(&directory, "").unwrap();
        let (dsr, _servers, mut hss) = world(traced(&directory, 2, 1000), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr(USER).as_bytes()).await;
        answered(&mut mme, &mut hss[0]).await;
        let alarms = || {
            let active = dsr.handle().alarms().active().into_iter();
            active.filter(|alarm| alarm.number == 10_517).count()
        };
        until(|| alarms() == 1).await;
        counted(&dsr, Event::TraceUnwritten, 4).await;
        let mut next = Config::clone(&dsr.snapshot().config);
        next.trace.points.clear();
        dsr.reload(&next).unwrap();
        until(|| alarms() == 0).await;
    });
}
