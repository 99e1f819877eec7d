//! `kill -9` in the middle: what was accepted is delivered, and an MME can recognise what it has had.

use diameter::proto::MessageMut;
use diameter::proto::known::{self, application, command};
use http::StatusCode;
use serde_json::json;
use testpeer::sbi::{Server, no_content};

use crate::network::{Node, SUCCESS, is_repeated, reference_of, result_of};
use crate::process::Process;
use crate::support::{
    CONFIGURATIONS, SUBSCRIPTIONS, TRIGGERS, config, configuration, data, local, notified, path_of, server,
    subscription, trigger, until,
};
use crate::{groups, tsp};

#[test]
fn subscriptions_and_owed_notifications_survive() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path());
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        // A server that does not answer while the first process lives.
        let hanging = Server::start(|_| {
            sbi::problem::Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response()
        });
        let body = subscription(&hanging.root(), &json!({"maximumNumberOfReports": 3}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let (path, reference) = (path_of(&got), reference_of(&cir));
        let report = hss.report(application::S6T, 7, reference, |group| {
            group.put(known::LOSS_OF_CONNECTIVITY_REASON, 0);
        });
        assert_eq!(result_of(&hss.ask(&report).await), SUCCESS);
        until("an attempt", async || hanging.count() > 0).await;
        scef.kill();
        let before = hanging.count();

        let scef = Process::start(&config);
        until("another attempt", async || hanging.count() > before).await;
        let mut hss = Node::hss(scef.diameter).await;
        // The HSS has lost the answer and repeats the report: the first answer.
        assert_eq!(result_of(&hss.ask(&report).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        let next = hss.report(application::S6T, 8, reference, |_| {});
        assert_eq!(result_of(&hss.ask(&next).await), SUCCESS);
    });
}

#[test]
fn data_that_was_accepted_is_delivered_after_a_crash() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        // URIs that hold after a restart at another port.
        config.api_root = "http://scef.example.org".to_owned();
        let server = server();
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let body = configuration(&server.root(), &json!({}));
        let (got, _) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), hss.authorize());
        let downlinks = format!("{}/downlink-data-deliveries", path_of(&got));
        let sent = scef.api.post(&downlinks, data("AAAA", &json!({}))).await;
        path_of(&sent);
        let waits = scef.api.post(&downlinks, data("BBBB", &json!({}))).await;
        path_of(&waits);
        let mut mme = Node::mme(scef.diameter).await;
        let establish = mme.establish();
        mme.0.send(establish.as_bytes()).await;
        // The MME has the first one, and its answer is lost with the process.
        let first = loop {
            let message = mme.0.next().await.unwrap();
            if message.is_request() {
                break message;
            }
        };
        scef.kill();

        let scef = Process::start(&config);
        let mut mme = Node::mme(scef.diameter).await;
        let again = mme.downlink().await;
        assert!(is_repeated(&again), "the MME can recognise it");
        assert_eq!(again.end_to_end(), first.end_to_end());
        assert_eq!(
            again.require(known::NON_IP_DATA),
            first.require(known::NON_IP_DATA)
        );
        mme.answer(&again, |_| {}).await;
        let second = mme.downlink().await;
        assert_ne!(second.end_to_end(), first.end_to_end());
        assert!(!is_repeated(&second));
        mme.answer(&second, |_| {}).await;
        let seen = notified(&server, 2).await;
        for (one, sent) in seen.iter().zip([&sent, &waits]) {
            assert_eq!(one["niddDownlinkDataTransfer"], sent.json["self"]);
            assert_eq!(one["deliveryStatus"], "SUCCESS_NEXT_HOP_UNACKNOWLEDGED");
        }
    });
}

#[test]
fn the_report_about_a_trigger_finds_it_after_a_crash() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.api_root = "http://scef.example.org".to_owned();
        let server = server();
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let mut sms_sc = Node::sms_sc(scef.diameter).await;
        let body = trigger(&server.root(), &json!({}));
        let accepted = async {
            hss.locate_for_trigger(None).await;
            sms_sc.accept().await
        };
        let (got, dtr) = tokio::join!(scef.api.post(TRIGGERS, &body), accepted);
        let path = path_of(&got);
        // The SMS-SC has the replacement, and its answer is lost with the process.
        let replaced = async {
            hss.locate_for_trigger(None).await;
            sms_sc.expect(command::DEVICE_TRIGGER).await
        };
        let replacement = tokio::select! {
            dtr = replaced => dtr,
            put = scef.api.put(&path, &body) => panic!("{}", put.json),
        };
        scef.kill();

        let scef = Process::start(&config);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        let mut sms_sc = Node::sms_sc(scef.diameter).await;
        let reference = |dtr: &MessageMut| dtr.require(known::REFERENCE_NUMBER).unwrap();
        assert_ne!(reference(&replacement), reference(&dtr));
        let report = sms_sc.delivery(7, reference(&replacement), 2);
        assert_eq!(result_of(&sms_sc.ask(&report).await), SUCCESS);
        let seen = notified(&server, 1).await;
        assert_eq!(
            seen[0],
            json!({"transaction": got.json["self"], "result": "SUCCESS"})
        );
    });
}

/// A report for an SCS that is not connected, and reports of a group within its guard time.
#[test]
fn what_waits_to_be_reported_survives() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path());
        let server = server();
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let mut sms_sc = Node::sms_sc(scef.diameter).await;
        let mut scs = Node::scs(scef.diameter).await;
        let dar = tsp::dar(&scs, tsp::TRIGGER, 9, None);
        let (_, _, dtr) = tokio::join!(scs.ask(&dar), hss.locate_for_trigger(None), sms_sc.accept());
        drop(scs);
        let report = sms_sc.delivery(4, dtr.require(known::REFERENCE_NUMBER).unwrap(), 2);
        assert_eq!(result_of(&sms_sc.ask(&report).await), SUCCESS);
        let mut body = groups::group(&server.root());
        body["groupReportGuardTime"] = json!(5);
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        let report = groups::group_report(&hss, 7, reference_of(&cir));
        assert_eq!(result_of(&hss.ask(&report).await), SUCCESS);
        scef.kill();

        let scef = Process::start(&config);
        let mut scs = Node::scs(scef.diameter).await;
        let dnr = scs.expect(command::DEVICE_NOTIFICATION).await;
        scs.answer(&dnr, |answer| {
            answer.put(known::AUTH_APPLICATION_ID, application::TSP);
        })
        .await;
        // A duplicate of the DAR has the status that was stored.
        let again = scs.ask(&dar).await;
        for message in [&dnr, &again] {
            let group = message.require(known::DEVICE_NOTIFICATION).unwrap();
            assert_eq!(group.require(known::REFERENCE_NUMBER), Ok(9));
        }
        let seen = notified(&server, 1).await;
        assert_eq!(seen[0]["monitoringEventReports"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn a_server_that_is_back_has_every_notification_in_order() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.notifications.attempts = 1_000;
        let address = free_ports::address().unwrap();
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let target = format!("http://{address}/n");
        let body = subscription(&target, &json!({"maximumNumberOfReports": 9}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&got);
        hss.report_losses(&cir, 4).await;
        scef.kill();
        let _scef = Process::start(&config);
        let server = Server::at(address, |_| no_content());
        let seen = notified(&server, 4).await;
        let reasons: Vec<_> = seen
            .iter()
            .map(|one| {
                one["monitoringEventReports"][0]["lossOfConnectReason"]
                    .as_u64()
                    .unwrap()
            })
            .collect();
        assert_eq!(reasons, [0, 1, 2, 3]);
    });
}

#[test]
fn a_second_scef_on_one_store_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let first = scef::start(config.clone()).unwrap();
    let refused = scef::start(config).unwrap_err().to_string();
    assert!(
        refused.contains("another process has this store open"),
        "{refused}"
    );
    first.stop().unwrap();
}

#[test]
fn what_was_not_confirmed_before_a_crash_takes_no_place() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.limits.subscriptions = 2;
        let server = server();
        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let body = subscription(&server.root(), &json!({}));
        let (kept, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let kept = path_of(&kept);
        // The HSS has the request, and its answer is lost with the process.
        tokio::select! {
            got = scef.api.post(SUBSCRIPTIONS, &body) => panic!("answered {}", got.status),
            _ = hss.0.expect(command::CONFIGURATION_INFORMATION) => {}
        }
        scef.kill();

        let scef = Process::start(&config);
        let mut hss = Node::hss(scef.diameter).await;
        let listed = scef.api.get(SUBSCRIPTIONS).await.json;
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(scef.api.get(&kept).await.status, StatusCode::OK);
        let (more, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        path_of(&more);
        let more = scef.api.post(SUBSCRIPTIONS, &body).await;
        assert_eq!(
            more.cause(),
            "RESOURCES_EXCEEDED",
            "the one before the crash counts"
        );
    });
}
