//! Notifications of a sender that is not an NRF.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use crate::stub_nrf::{StubNrf, notification};
use crate::support::{PATH, Producer, Scp, local, until};

/// What an attacker says of the network: an invented producer of the best priority, one that moves to its
/// address, and that all others are gone.
async fn forge(scp: &Scp, path: &str, good: &[&Producer], bad: &Producer) -> Vec<StatusCode> {
    let mut statuses = Vec::new();
    let mut send = async |body| statuses.push(scp.notify(path, &body).await.status);
    let invented = bad.profile(&json!({"priority": 0}));
    send(notification("NF_REGISTERED", &bad.id, Some(&invented))).await;
    for one in good {
        let mut moved = bad.profile(&json!({"priority": 0}));
        moved["nfInstanceId"] = json!(one.id);
        send(notification("NF_PROFILE_CHANGED", &one.id, Some(&moved))).await;
        send(notification("NF_DEREGISTERED", &one.id, None)).await;
    }
    statuses
}

/// Requests in all ways in which a producer is found, and how often each of two served.
async fn serve(scp: &Scp, first: &Producer, second: &Producer) {
    let set = "bl=nf-set; nfset=set1.udmset.5gc.mnc001.mcc001";
    let bound = format!("bl=nf-instance; nfinst={}", second.id);
    for _ in 0..10 {
        assert_eq!(scp.get(first).await.by(), first.id);
        let by_set = scp
            .ask(http::Method::GET, PATH, &[("3gpp-sbi-routing-binding", set)])
            .await;
        assert!([&*first.id, &*second.id].contains(&by_set.by()), "{by_set:?}");
        let by_instance = scp
            .ask(http::Method::GET, PATH, &[("3gpp-sbi-routing-binding", &bound)])
            .await;
        assert_eq!(by_instance.by(), second.id);
    }
}

#[test]
fn a_notification_that_no_subscription_asked_for_is_not_heard() {
    local(async {
        let nrf = StubNrf::start();
        let (first, second, bad) = (Producer::start(1), Producer::start(2), Producer::start(3));
        nrf.knows(first.profile(&json!({"priority": 10})));
        nrf.knows(second.profile(&json!({"priority": 10})));
        let scp = nrf.learner(|_| {});
        let running = scp.running.as_ref().unwrap();
        until("both are learned", async || running.network().len() == 2).await;
        let callback = nrf.callback().await;
        let (number, _) = callback.rsplit_once('/').unwrap();
        let before = nrf.all_looked_up();
        for path in [
            "/signalbox-scp/v1/nf-status-notify".to_owned(),
            "/signalbox-scp/v1/nf-status-notify/1".to_owned(),
            number.to_owned(),
            format!("{number}/"),
            format!("{number}/00000000000000000000000000000000"),
            format!("{callback}0"),
        ] {
            let statuses = forge(&scp, &path, &[&first, &second], &bad).await;
            assert!(
                statuses.iter().all(|one| *one == StatusCode::NOT_FOUND),
                "{path}: {statuses:?}"
            );
        }
        serve(&scp, &first, &second).await;
        assert_eq!(
            (bad.count(), nrf.all_looked_up(), running.network().len()),
            (0, before, 2)
        );
        assert_eq!(scp.count("signalbox_scp_learned_total", "stranger"), 30.0);
    });
}

#[test]
fn what_a_notification_says_counts_only_when_the_nrf_says_it_too() {
    local(async {
        let nrf = StubNrf::start();
        let (first, second, bad) = (Producer::start(1), Producer::start(2), Producer::start(3));
        nrf.knows(first.profile(&json!({"priority": 10})));
        nrf.knows(second.profile(&json!({"priority": 10})));
        let scp = nrf.learner(|_| {});
        let running = scp.running.as_ref().unwrap();
        until("both are learned", async || running.network().len() == 2).await;
        // Somebody has overheard where the NRF notifies.
        let callback = nrf.callback().await;
        let statuses = forge(&scp, &callback, &[&first, &second], &bad).await;
        assert!(
            statuses.iter().all(|one| *one == StatusCode::NO_CONTENT),
            "{statuses:?}"
        );
        until("all are looked up", async || {
            [&first, &second, &bad]
                .iter()
                .all(|one| nrf.looked_up(&one.id) > 0)
        })
        .await;
        until("the NRF does not confirm them", async || {
            scp.count("signalbox_scp_learned_total", "unconfirmed") >= 1.0
        })
        .await;
        serve(&scp, &first, &second).await;
        assert_eq!((bad.count(), running.network().len()), (0, 2));
        // What is true is learned from the same path.
        nrf.forgets(&second.id);
        scp.notify(&callback, &notification("NF_DEREGISTERED", &second.id, None))
            .await;
        until("the second is gone", async || running.network().len() == 1).await;
        nrf.knows(bad.profile(&json!({})));
        scp.notify(&callback, &notification("NF_REGISTERED", &bad.id, None))
            .await;
        until("a third is there", async || running.network().len() == 2).await;
    });
}

#[test]
fn invented_producers_take_no_memory_and_few_questions() {
    local(async {
        let (nrf, first) = (StubNrf::start(), Producer::start(1));
        nrf.knows(first.profile(&json!({})));
        let scp = nrf.learner(|config| {
            config.nrf.max_lookups_waiting = 20;
            config.nrf.max_lookups = 2;
        });
        let running = scp.running.as_ref().unwrap();
        until("it is learned", async || running.network().len() == 1).await;
        let callback = nrf.callback().await;
        nrf.waits(Duration::from_millis(100));
        for number in 0..500 {
            let id = format!("10000000-0000-4000-8000-{number:012}");
            let body = notification(
                "NF_REGISTERED",
                &id,
                Some(&first.profile(&json!({"nfInstanceId": id}))),
            );
            assert_eq!(scp.notify(&callback, &body).await.status, StatusCode::NO_CONTENT);
        }
        until("most are dropped", async || {
            scp.count("signalbox_scp_learned_total", "lost") >= 100.0
        })
        .await;
        nrf.waits(Duration::ZERO);
        assert_eq!(running.network().len(), 1);
        // One that is true is heard again as soon as there is room.
        let second = Producer::start(2);
        nrf.knows(second.profile(&json!({})));
        until("the second is learned", async || {
            scp.notify(&callback, &notification("NF_REGISTERED", &second.id, None))
                .await;
            running.network().len() == 2
        })
        .await;
        assert!(nrf.all_looked_up() < 500, "{}", nrf.all_looked_up());
    });
}

#[test]
fn each_subscription_has_a_path_of_its_own() {
    local(async {
        let (nrf, first) = (StubNrf::start(), Producer::start(1));
        nrf.knows(first.profile(&json!({})));
        nrf.forgets_subscriptions(true);
        let scp = nrf.learner(|_| {});
        let old = nrf.callback().await;
        until("it subscribes again", async || nrf.callbacks().len() >= 2).await;
        nrf.forgets_subscriptions(false);
        let body = notification("NF_PROFILE_CHANGED", &first.id, None);
        until("the old path is closed", async || {
            scp.notify(&old, &body).await.status == StatusCode::NOT_FOUND
        })
        .await;
        let last = nrf.callback().await;
        assert_ne!(old, last);
        assert_eq!(scp.notify(&last, &body).await.status, StatusCode::NO_CONTENT);
        // Renewed, it stays where it is.
        let many = nrf.callbacks().len();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(nrf.callbacks().len() <= many + 1, "{:?}", nrf.callbacks());
    });
}

#[test]
fn no_more_producers_are_learned_than_allowed() {
    local(async {
        let nrf = StubNrf::start();
        let producers: Vec<Producer> = (1..=4).map(Producer::start).collect();
        for one in &producers[..3] {
            nrf.knows(one.profile(&json!({})));
        }
        let scp = nrf.learner(|config| config.nrf.max_producers = 2);
        let running = scp.running.as_ref().unwrap();
        until("two are learned", async || running.network().len() == 2).await;
        let callback = nrf.callback().await;
        nrf.knows(producers[3].profile(&json!({})));
        let body = notification("NF_REGISTERED", &producers[3].id, None);
        assert_eq!(scp.notify(&callback, &body).await.status, StatusCode::NO_CONTENT);
        until("the others find no room", async || {
            scp.count("signalbox_scp_learned_total", "full") >= 2.0
        })
        .await;
        assert_eq!(running.network().len(), 2);
    });
}
