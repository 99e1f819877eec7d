//! Monitoring events: T8 to S6t, and the reports of HSS and MME to the SCS/AS.

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpFlags, AvpKey, AvpWriter, MessageMut, ResultCode};
use http::StatusCode;
use scef::Event;
use serde_json::{Value, json};

use crate::judge;
use crate::network::{Node, SUCCESS, put_location, reference_of, result_of};
use crate::support::{
    DEVICE, SUBSCRIPTIONS, local, notified, path_of, server, soon, start, subscription, until,
};

const UNKNOWN: (u32, u32) = (known::VENDOR_3GPP, 5515);

#[test]
fn reports_of_hss_and_mme_reach_the_server_until_the_last_one() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let (mut hss, mut mme) = (Node::hss(scef.diameter()).await, Node::mme(scef.diameter()).await);
        let body = subscription(
            &server.root(),
            &json!({"maximumDetectionTime": 120, "self": "http://forged/", "supportedFeatures": "FF1"}),
        );
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        judge::monitoring("MonitoringEventSubscription", &got.json);
        assert_eq!(got.json["vendorExtra"], json!({"kept": [1, null]}));
        // Not Ue-reachability_notification (2) to Change_of_IMSI_IMEI_association_notification (4), which it has not, and not
        // Number_of_UEs_in_an_area_notification (8) and Notification_websocket (9), which are not offered.
        assert_eq!(got.json["supportedFeatures"], "671");

        let user = cir.require(known::USER_IDENTIFIER).unwrap();
        assert_eq!(user.get(known::EXTERNAL_IDENTIFIER), Ok(Some(DEVICE)));
        let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        assert_eq!(event.clone().get(known::MONITORING_TYPE), Ok(Some(0)));
        assert_eq!(event.clone().get(known::MAXIMUM_NUMBER_OF_REPORTS), Ok(Some(2)));
        assert_eq!(event.get(known::MAXIMUM_DETECTION_TIME), Ok(Some(120)));

        let reference = reference_of(&cir);
        let lost = |node: &Node, application, end_to_end| {
            node.report(application, end_to_end, reference, |group| {
                group.put(known::LOSS_OF_CONNECTIVITY_REASON, 4);
            })
        };
        let first = lost(&mme, application::T6A, 7);
        assert_eq!(result_of(&mme.ask(&first).await), SUCCESS);
        // The same again, as a peer repeats it: the first answer, and no second notification.
        assert_eq!(result_of(&mme.ask(&first).await), SUCCESS);
        assert_eq!(scef.running.count(Event::Duplicate), 1);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        let second = lost(&hss, application::S6T, 7);
        assert_eq!(result_of(&hss.ask(&second).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        let third = lost(&hss, application::S6T, 8);
        assert_eq!(result_of(&hss.ask(&third).await), UNKNOWN);

        let seen = notified(&server, 2).await;
        assert_eq!(seen.len(), 2);
        for (number, one) in seen.iter().enumerate() {
            judge::monitoring("MonitoringNotification", one);
            assert_eq!(one["subscription"], got.json["self"]);
            let is_last = (number == 1).then_some(&Value::Bool(true));
            assert_eq!(one.get("cancelInd"), is_last, "the last report ends it");
            assert_eq!(
                one["monitoringEventReports"],
                json!([{"monitoringType": "LOSS_OF_CONNECTIVITY", "lossOfConnectReason": 4, "externalId": DEVICE}])
            );
        }
        scef.stop();
    });
}

/// The MME counts its reports, the HSS does not know of them (TS 23.682 §5.6.3.1).
#[test]
fn the_hss_deletes_an_event_whose_last_report_an_mme_has_sent() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let (mut hss, mut mme) = (Node::hss(scef.diameter()).await, Node::mme(scef.diameter()).await);
        let more = json!({"monitoringType": "AVAILABILITY_AFTER_DDN_FAILURE", "maximumNumberOfReports": 1});
        let body = subscription(&server.root(), &more);
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        assert_eq!(
            event.get(known::MAXIMUM_NUMBER_OF_REPORTS),
            Ok(None),
            "the SCEF counts"
        );
        let report = mme.report(application::T6A, 1, reference_of(&cir), |_| {});
        assert_eq!(result_of(&mme.ask(&report).await), SUCCESS);
        let deletion = hss.configure().await;
        let event = deletion.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        let deleted = event.get(known::SCEF_REFERENCE_ID_FOR_DELETION);
        assert_eq!(deleted, Ok(Some(reference_of(&cir))));
        assert_eq!(notified(&server, 1).await[0]["cancelInd"], true);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        scef.stop();
    });
}

#[test]
fn reports_that_come_together_are_all_taken() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({"maximumNumberOfReports": 20}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let report = |number| hss.report(application::S6T, number, reference_of(&cir), |_| {});
        let together: Vec<u8> = (10..30)
            .flat_map(|number| report(number).as_bytes().to_vec())
            .collect();
        hss.0.send(&together).await;
        for _ in 0..20 {
            let answer = hss.0.expect(command::REPORTING_INFORMATION).await;
            assert_eq!(result_of(&answer), SUCCESS);
        }
        assert_eq!(notified(&server, 20).await.len(), 20);
        assert_eq!(scef.running.count(Event::Reported), 20);
        assert_eq!(scef.running.count(Event::Duplicate), 0);
        // Each has counted: the last one has ended it.
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        scef.stop();
    });
}

#[test]
fn a_subscription_is_replaced_and_ended_at_the_hss() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(
            &server.root(),
            &json!({"monitoringType": "UE_REACHABILITY", "reachabilityType": "DATA", "maximumLatency": 30}),
        );
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        let reachability = event.require(known::UE_REACHABILITY_CONFIGURATION).unwrap();
        assert_eq!(reachability.clone().get(known::REACHABILITY_TYPE), Ok(Some(2)));
        assert_eq!(reachability.get(known::MAXIMUM_LATENCY), Ok(Some(30)));

        let mut changed = body.clone();
        changed["maximumNumberOfReports"] = json!(9);
        let (put, again) = tokio::join!(scef.api.put(&path, &changed), hss.configure());
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        judge::monitoring("MonitoringEventSubscription", &put.json);
        assert_eq!(put.json["maximumNumberOfReports"], 9);
        assert_eq!(reference_of(&again), reference_of(&cir), "the reference is kept");
        let list = scef.api.get(SUBSCRIPTIONS).await.json;
        assert_eq!(list.as_array().unwrap().len(), 1);
        judge::monitoring("MonitoringEventSubscription", &list[0]);
        // Another SCS/AS neither sees nor ends it.
        let foreign = path.replace("/as1/", "/as2/");
        assert_eq!(scef.api.get(&foreign).await.status, StatusCode::NOT_FOUND);
        assert_eq!(scef.api.delete(&foreign).await.status, StatusCode::NOT_FOUND);

        let (ended, deletion) = tokio::join!(scef.api.delete(&path), hss.configure());
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        let event = deletion.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        let deleted = event.clone().get(known::SCEF_REFERENCE_ID_FOR_DELETION);
        assert_eq!(deleted, Ok(Some(reference_of(&cir))));
        assert_eq!(event.get(known::SCEF_REFERENCE_ID), Ok(None));
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        scef.stop();
    });
}

#[test]
fn an_event_is_configured_with_what_its_type_has() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut configured = async |more: Value| {
            let body = subscription(&server.root(), &more);
            let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
            path_of(&got);
            cir
        };
        let event = |cir: &MessageMut| {
            cir.require(known::MONITORING_EVENT_CONFIGURATION)
                .unwrap()
                .get(known::MAXIMUM_NUMBER_OF_REPORTS)
        };
        let reachable = json!({"monitoringType": "UE_REACHABILITY", "reachabilityType": "DATA", "suggestedNumberOfDlPackets": 5});
        let cir = configured(reachable).await;
        let group = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        let group = group.require(known::UE_REACHABILITY_CONFIGURATION).unwrap();
        assert_eq!(group.get(known::DL_BUFFERING_SUGGESTED_PACKET_COUNT), Ok(Some(5)));
        assert_eq!(event(&cir), Ok(Some(2)));

        let cir =
            configured(json!({"monitoringType": "LOCATION_REPORTING", "minimumReportInterval": 60})).await;
        let group = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        let group = group.require(known::LOCATION_INFORMATION_CONFIGURATION).unwrap();
        assert_eq!(group.get(known::PERIODIC_TIME), Ok(Some(60)));

        let cir = configured(json!({"monitoringType": "AVAILABILITY_AFTER_DDN_FAILURE"})).await;
        assert_eq!(event(&cir), Ok(None), "TS 29.336 §8.4.8");
        scef.stop();
    });
}

#[test]
fn one_location_comes_with_the_answer() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let one = json!({"monitoringType": "LOCATION_REPORTING", "locationType": "LAST_KNOWN_LOCATION",
            "accuracy": "TA_RA", "maximumNumberOfReports": 1});
        let body = subscription(&server.root(), &one);
        let answer = async {
            let cir = hss.locate().await;
            let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
            let location = event.require(known::LOCATION_INFORMATION_CONFIGURATION).unwrap();
            assert_eq!(location.clone().get(known::MONTE_LOCATION_TYPE), Ok(Some(1)));
            assert_eq!(location.get(known::ACCURACY), Ok(Some(2)));
        };
        let (got, ()) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), answer);
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        judge::monitoring("MonitoringEventReport", &got.json);
        assert_eq!(got.json["locationInfo"]["trackingAreaId"], "001-01-0001");
        assert_eq!(got.json["locationInfo"]["ageOfLocationInfo"], 3);
        assert_eq!(scef.api.get(SUBSCRIPTIONS).await.json, json!([]));
        scef.stop();
    });
}

#[test]
fn what_the_hss_refuses_leaves_nothing_behind() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({}));
        const TGPP: u32 = known::VENDOR_3GPP;
        for (vendor, code, status, cause) in [
            (TGPP, 5001, StatusCode::NOT_FOUND, "USER_UNKNOWN"),
            (TGPP, 5510, StatusCode::FORBIDDEN, "OPERATION_PROHIBITED"),
            (TGPP, 5512, StatusCode::FORBIDDEN, "PARAMETER_OUT_OF_RANGE"),
            (TGPP, 5513, StatusCode::INTERNAL_SERVER_ERROR, ""),
            // DIAMETER_AVP_UNSUPPORTED has the number of DIAMETER_ERROR_USER_UNKNOWN.
            (0, 5001, StatusCode::INTERNAL_SERVER_ERROR, ""),
            (0, 3002, StatusCode::SERVICE_UNAVAILABLE, ""),
        ] {
            let refusal = async {
                let cir = hss.expect(command::CONFIGURATION_INFORMATION).await;
                match vendor {
                    0 => hss.0.answer(&cir, ResultCode(code)).await,
                    _ => hss.refuse(&cir, code, |_| {}).await,
                }
            };
            let (got, ()) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), refusal);
            assert_eq!((got.status, got.cause()), (status, cause), "{vendor} {code}");
        }
        assert_eq!(scef.running.count(Event::Failed), 3, "each once");
        hss.0.break_off();
        scef.api.post(SUBSCRIPTIONS, &body).await;
        assert_eq!(scef.api.get(SUBSCRIPTIONS).await.json, json!([]));
        scef.stop();
    });
}

#[test]
fn a_subscription_ends_with_its_time_for_reports_as_well() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({"monitorExpireTime": soon()}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
        assert!(event.get(known::MONITORING_DURATION).unwrap().is_some());
        until("its end", async || {
            scef.api.get(&path).await.status == StatusCode::NOT_FOUND
        })
        .await;
        let late = hss.report(application::S6T, 9, reference_of(&cir), |_| {});
        assert_eq!(result_of(&hss.ask(&late).await), UNKNOWN);
        assert_eq!(server.count(), 0);
        scef.stop();
    });
}

#[test]
fn a_replaced_subscription_ends_with_the_report_that_is_its_last() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let more = json!({"monitoringType": "LOCATION_REPORTING"});
        let mut body = subscription(&server.root(), &more);
        let (got, _) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let (put, _) = tokio::join!(scef.api.put(&path, &body), hss.locate());
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        judge::monitoring("MonitoringEventSubscription", &put.json);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK, "one of two");
        body["maximumNumberOfReports"] = json!(1);
        let (put, cir) = tokio::join!(scef.api.put(&path, &body), hss.locate());
        let area = &put.json["monitoringEventReport"]["locationInfo"]["trackingAreaId"];
        assert_eq!((put.status, area), (StatusCode::OK, &json!("001-01-0001")));
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        let late = hss.report(application::S6T, 9, reference_of(&cir), |_| {});
        assert_eq!(result_of(&hss.ask(&late).await), UNKNOWN);
        scef.stop();
    });
}

#[test]
fn the_last_report_with_the_answer_of_the_hss_ends_a_new_subscription() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let more = json!({"monitoringType": "LOCATION_REPORTING", "maximumNumberOfReports": 2});
        let body = subscription(&server.root(), &more);
        // The first of two comes before the answer, the second with it.
        let both = async {
            let cir = hss.expect(command::CONFIGURATION_INFORMATION).await;
            let first = hss.report(application::S6T, 8, reference_of(&cir), put_location);
            assert_eq!(result_of(&hss.ask(&first).await), SUCCESS);
            hss.located(&cir).await;
            cir
        };
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), both);
        let path = path_of(&got);
        let area = &got.json["monitoringEventReport"]["locationInfo"]["trackingAreaId"];
        assert_eq!(area, "001-01-0001");
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        assert_eq!(scef.running.count(Event::Unsubscribed), 1);
        let late = hss.report(application::S6T, 9, reference_of(&cir), put_location);
        assert_eq!(result_of(&hss.ask(&late).await), UNKNOWN);
        scef.stop();
    });
}

#[test]
fn a_report_without_what_its_event_consists_of_is_refused() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let idle = |group: &mut AvpWriter| {
            group.group(known::IDLE_STATUS_INDICATION, |_| {});
        };
        let types = [
            (json!({"monitoringType": "LOCATION_REPORTING"}), (0, 5005)),
            (
                json!({"monitoringType": "CHANGE_OF_IMSI_IMEI_ASSOCIATION"}),
                (0, 5005),
            ),
            (json!({"monitoringType": "ROAMING_STATUS"}), (0, 5005)),
            (json!({"monitoringType": "COMMUNICATION_FAILURE"}), (0, 5005)),
            (
                json!({"monitoringType": "UE_REACHABILITY", "reachabilityType": "DATA"}),
                (0, 5005),
            ),
            (
                json!({"monitoringType": "UE_REACHABILITY", "reachabilityType": "DATA", "idleStatusIndication": true}),
                SUCCESS,
            ),
            (
                json!({"monitoringType": "AVAILABILITY_AFTER_DDN_FAILURE"}),
                SUCCESS,
            ),
        ];
        for (number, (more, expected)) in (0..).zip(&types) {
            let body = subscription(&server.root(), more);
            let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
            path_of(&got);
            let report = hss.report(application::S6T, 10 + number, reference_of(&cir), idle);
            let answer = hss.ask(&report).await;
            assert_eq!(result_of(&answer), *expected, "{more}");
            let has_failed = answer.get(known::FAILED_AVP).unwrap().is_some();
            assert_eq!(has_failed, *expected != SUCCESS, "{more}");
        }
        let seen = notified(&server, 2).await;
        assert_eq!(seen.len(), 2);
        scef.stop();
    });
}

#[test]
fn the_network_of_a_roamer_is_named_where_it_is_asked_for() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        // PLMN-ID-Requested is TRUE (0) where it is absent (TS 29.336 §8.4.68).
        for (wanted, requested) in [(json!(true), 0), (json!(false), 1), (Value::Null, 1)] {
            let mut more = json!({"monitoringType": "ROAMING_STATUS"});
            if !wanted.is_null() {
                more["plmnIndication"] = wanted;
            }
            let body = subscription(&server.root(), &more);
            let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
            path_of(&got);
            let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
            assert_eq!(event.get(known::PLMN_ID_REQUESTED), Ok(Some(requested)), "{more}");
        }
        scef.stop();
    });
}

/// Event-Handling (TS 29.336 §8.4.43).
fn handled(group: &mut AvpWriter, handling: u8) {
    let key = AvpKey {
        vendor: known::VENDOR_3GPP,
        code: 3149,
    };
    let flags = AvpFlags(AvpFlags::MANDATORY.0 | AvpFlags::VENDOR.0);
    group.put_raw(key, flags, &[0, 0, 0, handling]);
}

#[test]
fn an_event_that_the_network_cancels_ends_its_subscription() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({"maximumNumberOfReports": 5}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        let reference = reference_of(&cir);
        // Suspended and resumed: no event has happened.
        for handling in [0, 1] {
            let report = hss.report(application::S6T, 5 + u32::from(handling), reference, |group| {
                handled(group, handling);
            });
            assert_eq!(result_of(&hss.ask(&report).await), SUCCESS);
        }
        assert_eq!(server.count(), 0);
        let cancel = hss.report(application::S6T, 7, reference, |group| handled(group, 2));
        assert_eq!(result_of(&hss.ask(&cancel).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        assert_eq!(scef.running.count(Event::Unsubscribed), 1);

        // The other form: a report names the event that is deleted.
        let (again, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let deleted = hss.report(application::S6T, 8, reference_of(&cir), |group| {
            group.put(known::SCEF_REFERENCE_ID_FOR_DELETION, reference_of(&cir));
        });
        assert_eq!(result_of(&hss.ask(&deleted).await), SUCCESS);
        assert_eq!(scef.api.get(&path_of(&again)).await.status, StatusCode::NOT_FOUND);
        let seen = notified(&server, 2).await;
        for (one, of) in seen.iter().zip([&got, &again]) {
            judge::monitoring("MonitoringNotification", one);
            assert_eq!(*one, json!({"subscription": of.json["self"], "cancelInd": true}));
        }
        scef.stop();
    });
}

#[test]
fn only_its_hss_ends_an_event_and_reports_are_of_its_device() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let (mut hss, mut mme) = (Node::hss(scef.diameter()).await, Node::mme(scef.diameter()).await);
        let body = subscription(&server.root(), &json!({}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let (path, reference) = (path_of(&got), reference_of(&cir));
        let cancel = mme.report(application::T6A, 1, reference, |group| handled(group, 2));
        assert_eq!(result_of(&mme.ask(&cancel).await), (0, 5012));
        let delete = mme.report(application::T6A, 2, reference, |group| {
            group.put(known::SCEF_REFERENCE_ID_FOR_DELETION, reference);
        });
        assert_eq!(result_of(&mme.ask(&delete).await), (0, 5012));
        assert_eq!(scef.running.count(Event::SenderRefused), 2);
        let which = (command::REPORTING_INFORMATION, application::T6A);
        let of_another = mme.request(which, 3, |out| {
            out.group(known::USER_IDENTIFIER, |group| {
                group.put(known::EXTERNAL_IDENTIFIER, "other@iot.example.org");
            });
            out.group(known::MONITORING_EVENT_REPORT, |group| {
                group.put(known::SCEF_REFERENCE_ID, reference);
            });
        });
        assert_eq!(result_of(&mme.ask(&of_another).await), (0, 5004));
        let many = mme.request(which, 4, |out| {
            for _ in 0..65 {
                out.group(known::MONITORING_EVENT_REPORT, |group| {
                    group.put(known::SCEF_REFERENCE_ID, reference);
                });
            }
        });
        assert_eq!(result_of(&mme.ask(&many).await), (0, 5009));
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        assert_eq!(server.count(), 0);
        let cancel = hss.report(application::S6T, 5, reference, |group| handled(group, 2));
        assert_eq!(result_of(&hss.ask(&cancel).await), SUCCESS);
        assert_eq!(scef.api.get(&path).await.status, StatusCode::NOT_FOUND);
        assert_eq!(notified(&server, 1).await[0]["cancelInd"], true);
        scef.stop();
    });
}
