//! The journal as database processors poll it.

use serde_json::{Value, json};
use settings::Period;

use crate::support::{Api, Sds, imsi, local, set, start, start_in, until};

async fn fill(api: &Api, count: u64) {
    for number in 0..count {
        api.write(&json!([set(number, "a")])).await.offset();
    }
}

#[test]
fn a_page_has_transactions_in_order_with_the_head() {
    let sds = start(|_| {});
    local(async {
        let api = &sds.api;
        let got = api.get("/journal?after=0").await;
        assert_eq!(
            (got.status(), got.text.as_str(), got.number("journal-head")),
            (200, "", 0)
        );
        let id = got.header("journal-id").to_owned();
        assert_eq!(id.len(), 36);
        fill(api, 25).await;
        api.write(&json!([{"name": "a@b", "destinations": null}, set(3, "hss1,pcrf=p")]))
            .await
            .offset();
        let got = api.get("/journal?after=24&limit=5").await;
        assert_eq!(got.header("content-type"), "application/x-ndjson");
        assert_eq!((got.number("journal-head"), got.header("journal-id")), (26, &*id));
        let last =
            json!({"offset": 26, "changes": [{"name": "a@b", "destinations": null}, set(3, "hss1,pcrf=p")]});
        assert_eq!(
            got.lines(),
            [json!({"offset": 25, "changes": [set(24, "a")]}), last]
        );
        let offsets = |lines: Vec<Value>| {
            lines
                .iter()
                .map(|line| line["offset"].as_u64().unwrap())
                .collect::<Vec<_>>()
        };
        let page = api.get("/journal?after=3&limit=4").await.lines();
        assert_eq!(offsets(page), [4, 5, 6, 7]);
        assert_eq!(offsets(api.journal(0).await), (1..=26).collect::<Vec<_>>());
        // A processor that is ahead finds that this server is behind, and does not take its checkpoint.
        let got = api.get("/journal?after=27&wait=30").await;
        assert_eq!(
            (got.status(), got.text.as_str(), got.number("journal-head")),
            (200, "", 26)
        );
    });
    sds.stop();
}

#[test]
fn a_poll_is_answered_by_the_next_transaction() {
    let sds = start(|_| {});
    local(async {
        let api = sds.api.clone();
        let polls: Vec<_> = (0..50)
            .map(|number| {
                let api = api.clone();
                let path = format!("/journal?after=0&wait=30&dp=dp{number}");
                tokio::task::spawn_local(async move { api.get(&path).await })
            })
            .collect();
        until("all polls", async || sds.running.count(sds::Event::Poll) == 50).await;
        fill(&api, 1).await;
        for poll in polls {
            let lines = poll.await.unwrap().lines();
            assert_eq!(lines[0], json!({"offset": 1, "changes": [set(0, "a")]}));
        }
        // Nothing follows.
        let got = api.get("/journal?after=1&wait=1").await;
        assert_eq!((got.status(), got.text.as_str()), (200, ""));
    });
    sds.stop();
}

#[test]
fn polls_end_with_the_server() {
    let Sds {
        running,
        api,
        directory: _directory,
    } = start(|_| {});
    local(async {
        let poll = tokio::task::spawn_local(async move { api.get("/journal?after=0&wait=30").await });
        until("the poll", async || running.count(sds::Event::Poll) == 1).await;
        let stopping = tokio::task::spawn_blocking(move || running.stop().unwrap());
        let got = poll.await.unwrap();
        assert_eq!((got.status(), got.text.as_str()), (200, ""));
        stopping.await.unwrap();
    });
}

#[test]
fn transactions_that_are_removed_lead_to_a_checkpoint() {
    let sds = start(|config| {
        config.journal.keep = 10;
        config.journal.checkpoint = Period::from_millis(50);
    });
    local(async {
        let api = &sds.api;
        fill(api, 40).await;
        // What is left are the last ten.
        until("the removal", async || {
            api.get("/journal?after=29").await.status() == 410
        })
        .await;
        let got = api.get("/journal?after=5").await;
        assert!(
            got.status() == 410 && got.detail().contains("/checkpoint"),
            "{}",
            got.text
        );
        let count = |event| sds.running.count(event);
        assert!(count(sds::Event::Removed) >= 2);
        assert_eq!(count(sds::Event::BadRequest), 0, "an answer 410 is counted once");
        assert_eq!(api.journal(30).await.len(), 10);
        let text = api.get("/checkpoint").await;
        assert_eq!(text.number("journal-offset"), 40);
        assert!(text.text.contains(&format!("imsi,{},a\n", imsi(5))) && text.text.ends_with("\n#end,40\n"));
    });
    sds.stop();
}

#[test]
fn a_processor_far_behind_reads_what_memory_has_not() {
    let sds = start(|_| {});
    let directory = local(async {
        fill(&sds.api, 600).await;
        sds.stop()
    });
    // After a restart the newest transactions are in memory as far as they were applied at the start; saved ones are not.
    let sds = start_in(directory, |config| {
        config.journal.checkpoint = Period::from_millis(50);
    });
    let directory = local(async {
        until("a save", async || sds.running.count(sds::Event::Saved) > 0).await;
        sds.stop()
    });
    let sds = start_in(directory, |_| {});
    local(async {
        fill(&sds.api, 5).await;
        let mut after = 0;
        while after < 605 {
            let page = sds.api.journal(after).await;
            for line in &page {
                after += 1;
                assert_eq!(line["offset"], after);
            }
            assert!(!page.is_empty());
        }
    });
    sds.stop();
}

#[test]
fn pages_show_records_and_processors() {
    let sds = start(|_| {});
    local(async {
        fill(&sds.api, 3).await;
        sds.api
            .write(&json!([{"name": "a@b", "destinations": "x"}]))
            .await
            .offset();
        sds.api.get("/journal?after=1&dp=dp-north").await.lines();
    });
    local(async {
        let page = async |path| {
            let (status, body) = testpeer::page(sds.running.handle().routes(), path).await;
            assert_eq!(status, 200, "{body}");
            serde_json::from_str::<Value>(&body).unwrap()
        };
        let state = page("/sds/state").await;
        assert_eq!(
            (&state["numbers"], &state["names"], &state["offset"]),
            (&json!(3), &json!(1), &json!(4))
        );
        let one = page("/sds/processors").await[0].take();
        assert_eq!(
            (&one["processor"], &one["lacks"]),
            (&json!("dp-north"), &json!(3))
        );
    });
    sds.stop();
}
