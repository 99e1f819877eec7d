//! Device triggering: T8 to S6m and T4, and the reports of the SMS-SC to the SCS/AS.

use diameter::proto::MessageMut;
use diameter::proto::known::{self, command};
use http::StatusCode;
use scef::Event;
use serde_json::json;
use testpeer::sbi::Got;

use crate::judge;
use crate::network::{Node, SME_ADDRESS, SUCCESS, result_of};
use crate::support::{DEVICE, IMSI, Scef, TRIGGERS, local, notified, path_of, server, start, trigger, until};

const TRANSACTION: &str = "DeviceTriggering";
const REPORT: &str = "DeviceTriggeringDeliveryReportNotification";

/// The nodes that a trigger passes.
struct Network {
    hss: Node,
    sms_sc: Node,
}

impl Network {
    async fn of(scef: &Scef) -> Self {
        Self {
            hss: Node::hss(scef.diameter()).await,
            sms_sc: Node::sms_sc(scef.diameter()).await,
        }
    }

    /// Takes the next trigger; its SIR and its DTR.
    async fn take(&mut self) -> (MessageMut, MessageMut) {
        (
            self.hss.locate_for_trigger(None).await,
            self.sms_sc.accept().await,
        )
    }

    /// Triggers the device; the answer, and the DTR.
    async fn triggered(&mut self, scef: &Scef, target: &str) -> (Got, MessageMut) {
        let body = trigger(target, &json!({}));
        let (got, (_, dtr)) = tokio::join!(scef.api.post(TRIGGERS, &body), self.take());
        (got, dtr)
    }
}

fn reference_of(dtr: &MessageMut) -> u32 {
    dtr.require(known::REFERENCE_NUMBER).unwrap()
}

#[test]
fn a_device_is_triggered_and_its_delivery_is_reported_once() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut network = Network::of(&scef).await;
        let body = trigger(
            &server.root(),
            &json!({"self": "http://forged/", "supportedFeatures": "7"}),
        );
        let (got, (sir, dtr)) = tokio::join!(scef.api.post(TRIGGERS, &body), network.take());
        let path = path_of(&got);
        judge::triggering(TRANSACTION, &got.json);
        assert_eq!(got.json["deliveryResult"], "TRIGGERED");
        assert_eq!(got.json["vendorExtra"], json!({"kept": [1, null]}));
        assert_eq!(got.json["supportedFeatures"], "6");

        let user = sir.require(known::USER_IDENTIFIER).unwrap();
        assert_eq!(user.get(known::EXTERNAL_IDENTIFIER), Ok(Some(DEVICE)));
        assert_eq!(sir.get(known::SERVICE_ID), Ok(Some(0)));
        assert_eq!(sir.get(known::SIR_FLAGS), Ok(Some(1)));
        let parameters = sir.require(known::SERVICE_PARAMETERS).unwrap();
        let parameters = parameters.require(known::T4_PARAMETERS).unwrap();
        assert_eq!(parameters.clone().get(known::PRIORITY_INDICATION), Ok(Some(1)));
        assert_eq!(parameters.get(known::SM_RP_SMEA), Ok(Some(SME_ADDRESS)));

        let user = dtr.require(known::USER_IDENTIFIER).unwrap();
        assert_eq!(user.get(known::USER_NAME), Ok(Some(IMSI)));
        assert_eq!(dtr.get(known::SM_RP_SMEA), Ok(Some(SME_ADDRESS)));
        assert_eq!(dtr.get(known::PAYLOAD), Ok(Some(&b"wake"[..])));
        assert_eq!(dtr.get(known::VALIDITY_TIME), Ok(Some(600)));
        assert_eq!(dtr.get(known::APPLICATION_PORT_IDENTIFIER), Ok(Some(40_000)));
        assert_eq!(dtr.get(known::TRIGGER_ACTION), Ok(Some(0)));
        assert!(dtr.get(known::SERVING_NODE).unwrap().is_some());
        assert!(dtr.get(known::ADDITIONAL_SERVING_NODE).unwrap().is_some());

        judge::triggering(TRANSACTION, &scef.api.get(&path).await.json);
        assert_eq!(scef.api.get(TRIGGERS).await.json, json!([got.json]));
        let sms_sc = &mut network.sms_sc;
        let report = sms_sc.delivery(7, reference_of(&dtr), 2);
        assert_eq!(result_of(&sms_sc.ask(&report).await), SUCCESS);
        assert_eq!(result_of(&sms_sc.ask(&report).await), SUCCESS, "the first answer");
        assert_eq!(scef.running.count(Event::Duplicate), 1);
        let late = sms_sc.delivery(8, reference_of(&dtr), 3);
        assert_eq!(result_of(&sms_sc.ask(&late).await), (0, 5012));
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        let seen = notified(&server, 1).await;
        judge::triggering(REPORT, &seen[0]);
        assert_eq!(
            seen,
            [json!({"transaction": got.json["self"], "result": "SUCCESS"})]
        );
        // T8 four times, SIR, DTR, and DRR three times.
        assert_eq!(scef.running.count(Event::TriggerMessage), 9);
        scef.stop();
    });
}

#[test]
fn a_trigger_is_replaced_and_recalled() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut network = Network::of(&scef).await;
        let (got, first) = network.triggered(&scef, &server.root()).await;
        let path = path_of(&got);
        let body = trigger(&server.root(), &json!({"triggerPayload": "bmV3"}));
        let (put, (_, second)) = tokio::join!(scef.api.put(&path, &body), network.take());
        assert_eq!(
            (put.status, &put.json["deliveryResult"]),
            (StatusCode::OK, &json!("REPLACED"))
        );
        judge::triggering(TRANSACTION, &put.json);
        assert_eq!(second.get(known::TRIGGER_ACTION), Ok(Some(2)));
        assert_eq!(
            second.get(known::OLD_REFERENCE_NUMBER),
            Ok(Some(reference_of(&first)))
        );
        assert_ne!(reference_of(&second), reference_of(&first));
        assert_eq!(second.get(known::PAYLOAD), Ok(Some(&b"new"[..])));

        let patch = json!({"validityPeriod": 60});
        let change = scef
            .api
            .ask(http::Method::PATCH, &path, "application/json", &patch);
        let (patched, (_, third)) = tokio::join!(change, network.take());
        assert_eq!(patched.json["validityPeriod"], 60, "{}", patched.json);
        assert_eq!(third.get(known::VALIDITY_TIME), Ok(Some(60)));
        assert_eq!(
            third.get(known::OLD_REFERENCE_NUMBER),
            Ok(Some(reference_of(&second)))
        );
        // The one before is no more.
        let report = network.sms_sc.delivery(7, reference_of(&second), 2);
        assert_eq!(result_of(&network.sms_sc.ask(&report).await), (0, 5012));

        let other = trigger(&server.root(), &json!({"externalId": "another@iot.example.org"}));
        assert_eq!(scef.api.put(&path, &other).await.status, StatusCode::FORBIDDEN);
        let foreign = path.replace("/as1/", "/as2/");
        assert_eq!(scef.api.delete(&foreign).await.status, StatusCode::NOT_FOUND);
        let (ended, recall) = tokio::join!(scef.api.delete(&path), network.sms_sc.accept());
        assert_eq!(
            (ended.status, &ended.json["deliveryResult"]),
            (StatusCode::OK, &json!("TERMINATE"))
        );
        judge::triggering(TRANSACTION, &ended.json);
        assert_eq!(recall.get(known::TRIGGER_ACTION), Ok(Some(1)));
        assert_eq!(recall.get(known::REFERENCE_NUMBER), Ok(None));
        assert_eq!(
            recall.get(known::OLD_REFERENCE_NUMBER),
            Ok(Some(reference_of(&third)))
        );
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        assert_eq!(server.count(), 0);
        scef.stop();
    });
}

#[test]
fn a_trigger_that_was_delivered_is_neither_replaced_nor_recalled() {
    const NOT_PENDING: u32 = 5535;
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut network = Network::of(&scef).await;
        let (got, first) = network.triggered(&scef, &server.root()).await;
        let path = path_of(&got);
        let refusal = async {
            let recall = network.sms_sc.expect(command::DEVICE_TRIGGER).await;
            network.sms_sc.refuse(&recall, NOT_PENDING, |_| {}).await;
        };
        let (ended, ()) = tokio::join!(scef.api.delete(&path), refusal);
        let delivered = (StatusCode::NOT_FOUND, "ALREADY_DELIVERED");
        assert_eq!((ended.status, ended.cause()), delivered);
        let refusal = async {
            network.hss.locate_for_trigger(None).await;
            let replace = network.sms_sc.expect(command::DEVICE_TRIGGER).await;
            network.sms_sc.refuse(&replace, NOT_PENDING, |_| {}).await;
            replace
        };
        let body = trigger(&server.root(), &json!({}));
        let (put, second) = tokio::join!(scef.api.put(&path, &body), refusal);
        assert_eq!((put.status, put.cause()), delivered);
        // The report about the first one is still to come; that of the second one, which the SMS-SC may have taken as new, finds nothing.
        for (number, dtr, result) in [(7, &first, SUCCESS), (8, &second, (0, 5012))] {
            let report = network.sms_sc.delivery(number, reference_of(dtr), 2);
            assert_eq!(result_of(&network.sms_sc.ask(&report).await), result);
        }
        assert_eq!(notified(&server, 1).await[0]["result"], "SUCCESS");
        scef.stop();
    });
}

#[test]
fn a_replacement_without_an_answer_is_reported_as_well() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut network = Network::of(&scef).await;
        let (got, _) = network.triggered(&scef, &server.root()).await;
        let path = path_of(&got);
        let body = trigger(&server.root(), &json!({}));
        let silent = async {
            network.hss.locate_for_trigger(None).await;
            let replace = network.sms_sc.expect(command::DEVICE_TRIGGER).await;
            network.sms_sc.0.break_off();
            replace
        };
        let (put, replace) = tokio::join!(scef.api.put(&path, &body), silent);
        assert_eq!(put.status, StatusCode::SERVICE_UNAVAILABLE, "{}", put.json);
        let mut sms_sc = Node::sms_sc(scef.diameter()).await;
        let report = sms_sc.delivery(7, reference_of(&replace), 0);
        assert_eq!(result_of(&sms_sc.ask(&report).await), SUCCESS);
        let seen = notified(&server, 1).await;
        assert_eq!(
            seen[0],
            json!({"transaction": got.json["self"], "result": "FAILURE"})
        );
        scef.stop();
    });
}

#[test]
fn what_hss_and_sms_sc_refuse_leaves_nothing_behind() {
    local(async {
        let (scef, server) = (start(|config| config.limits.triggers = 1), server());
        let mut network = Network::of(&scef).await;
        let body = trigger(&server.root(), &json!({}));
        for (code, status, cause) in [
            (5001, StatusCode::NOT_FOUND, "USER_UNKNOWN"),
            (5511, StatusCode::FORBIDDEN, "OPERATION_PROHIBITED"),
        ] {
            let refusal = async {
                let sir = network.hss.expect(command::SUBSCRIBER_INFORMATION).await;
                network.hss.refuse(&sir, code, |_| {}).await;
            };
            let (got, ()) = tokio::join!(scef.api.post(TRIGGERS, &body), refusal);
            assert_eq!((got.status, got.cause()), (status, cause), "{code}");
        }
        // Call Barred.
        let (got, _) = tokio::join!(
            scef.api.post(TRIGGERS, &body),
            network.hss.locate_for_trigger(Some(4))
        );
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::FORBIDDEN, "OPERATION_PROHIBITED")
        );
        for (code, status) in [
            (5001, StatusCode::NOT_FOUND),
            (5530, StatusCode::INTERNAL_SERVER_ERROR),
            (5531, StatusCode::SERVICE_UNAVAILABLE),
        ] {
            let refusal = async {
                // An absent subscriber is triggered when it is back.
                network.hss.locate_for_trigger(Some(1)).await;
                let dtr = network.sms_sc.expect(command::DEVICE_TRIGGER).await;
                network.sms_sc.refuse(&dtr, code, |_| {}).await;
            };
            let (got, ()) = tokio::join!(scef.api.post(TRIGGERS, &body), refusal);
            assert_eq!(got.status, status, "{code}");
        }
        assert_eq!(scef.api.get(TRIGGERS).await.json, json!([]));
        let (got, _) = network.triggered(&scef, &server.root()).await;
        path_of(&got);
        let more = scef.api.post(TRIGGERS, &body).await;
        assert_eq!(
            (more.status, more.cause()),
            (StatusCode::FORBIDDEN, "QUOTA_EXCEEDED")
        );
        scef.stop();
    });
}

#[test]
fn wrong_triggers_are_refused_before_the_hss_is_asked() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        for more in [
            json!({"externalId": null}),
            json!({"msisdn": "43660123456"}),
            json!({"validityPeriod": -1}),
            json!({"priority": "URGENT"}),
            json!({"applicationPortId": 65_536}),
            json!({"triggerPayload": "A"}),
            json!({"appSrcPortId": 1}),
            json!({"notificationDestination": "ftp://x/"}),
        ] {
            let got = scef.api.post(TRIGGERS, trigger(&server.root(), &more)).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{more} {}", got.json);
        }
        scef.stop();
        let scef = start(|config| config.triggering.sme_address.clear());
        let got = scef.api.post(TRIGGERS, trigger(&server.root(), &json!({}))).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::FORBIDDEN, "OPERATION_PROHIBITED")
        );
        scef.stop();
    });
}

#[test]
fn a_trigger_without_a_report_ends_unconfirmed() {
    local(async {
        let (scef, server) = (
            start(|config| config.triggering.report_time = settings::Period::from_millis(1)),
            server(),
        );
        let mut network = Network::of(&scef).await;
        let body = trigger(&server.root(), &json!({"validityPeriod": 2}));
        let (got, _) = tokio::join!(scef.api.post(TRIGGERS, &body), network.take());
        let path = path_of(&got);
        until("its end", async || {
            scef.api.get(&path).await.status == StatusCode::NOT_FOUND
        })
        .await;
        let seen = notified(&server, 1).await;
        judge::triggering(REPORT, &seen[0]);
        assert_eq!(seen[0]["result"], "UNCONFIRMED");
        scef.counted(Event::TriggerUnreported, 1).await;
        scef.stop();
    });
}

#[test]
fn only_the_sms_sc_that_has_a_trigger_reports_about_it() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut network = Network::of(&scef).await;
        let (got, dtr) = network.triggered(&scef, &server.root()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let mut other = Node::sms_sc_named(scef.diameter(), "sms-sc2.example.org").await;
        for (node, number) in [(&mut mme, 7), (&mut other, 8)] {
            let forged = node.delivery(number, reference_of(&dtr), 2);
            assert_eq!(result_of(&node.ask(&forged).await), (0, 5012));
        }
        assert_eq!(scef.running.count(Event::SenderRefused), 2);
        let path = path_of(&got);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        assert_eq!(server.count(), 0);
        let report = network.sms_sc.delivery(9, reference_of(&dtr), 2);
        assert_eq!(result_of(&network.sms_sc.ask(&report).await), SUCCESS);
        assert_eq!(notified(&server, 1).await[0]["result"], "SUCCESS");
        scef.stop();
    });
}

#[test]
fn a_report_that_comes_before_the_answer_of_the_sms_sc_is_taken() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut network = Network::of(&scef).await;
        let early = async {
            network.hss.locate_for_trigger(None).await;
            let dtr = network.sms_sc.expect(command::DEVICE_TRIGGER).await;
            let mut mme = Node::mme(scef.diameter()).await;
            let forged = mme.delivery(7, reference_of(&dtr), 0);
            assert_eq!(result_of(&mme.ask(&forged).await), (0, 5012), "it serves no T4");
            let report = network.sms_sc.delivery(7, reference_of(&dtr), 2);
            assert_eq!(result_of(&network.sms_sc.ask(&report).await), SUCCESS);
            network.sms_sc.answer(&dtr, |_| {}).await;
        };
        let body = trigger(&server.root(), &json!({}));
        let (got, ()) = tokio::join!(scef.api.post(TRIGGERS, &body), early);
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        assert_eq!(notified(&server, 1).await[0]["result"], "SUCCESS");
        scef.stop();
    });
}
