//! Notifications that an SCS/AS does not take.

use std::collections::BTreeSet;

use scef::Event;
use serde_json::json;
use testpeer::sbi::{Seen, Server, no_content};

use crate::network::Node;
use crate::support::{SUBSCRIPTIONS, local, path_of, start, subscription, until};

#[test]
fn a_notification_that_is_kept_for_too_long_is_counted() {
    local(async {
        let scef = start(|config| {
            config.notifications.keep = settings::Period::from_secs(1);
            config.notifications.attempts = 1_000;
        });
        let mut hss = Node::hss(scef.diameter()).await;
        let target = format!("http://{}/n", free_ports::address().unwrap());
        let body = subscription(&target, &json!({}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        hss.report_losses(&cir, 1).await;
        scef.counted(Event::NotificationFailed, 1).await;
        scef.stop();
    });
}

#[test]
fn more_notifications_than_memory_has_room_for_are_all_delivered() {
    const REPORTS: u32 = 40;
    local(async {
        let address = free_ports::address().unwrap();
        let scef = start(|config| {
            config.notifications.queue = REPORTS as usize / 2;
            config.notifications.attempts = 1_000;
        });
        let mut hss = Node::hss(scef.diameter()).await;
        let target = format!("http://{address}/n");
        let body = subscription(&target, &json!({"maximumNumberOfReports": REPORTS + 1}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        hss.report_losses(&cir, REPORTS).await;
        scef.counted(Event::NotificationDeferred, 1).await;
        let server = Server::at(address, |_| no_content());
        let reason = |seen: &Seen| seen.json()["monitoringEventReports"][0]["lossOfConnectReason"].as_u64();
        until("each report", async || {
            let reasons: BTreeSet<_> = server.seen().iter().map(reason).collect();
            reasons.len() == REPORTS as usize
        })
        .await;
        scef.stop();
    });
}
