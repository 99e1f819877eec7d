//! Attackers on T8 and Diameter, with an honest client beside them that is served.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use diameter::proto::known::{self, application, command};
use http::{Method, StatusCode};
use sbi::Response;
use scef::Event;
use serde_json::{Value, json};
use testpeer::sbi::{Server, no_content, request, send};

use crate::network::{ESTABLISH, Node, SUCCESS, is_repeated, reference_of, result_of};
use crate::support::{
    CONFIGURATIONS, IMSI, SUBSCRIPTIONS, Scef, configured, data, local, notified, path_of, server, start,
    subscription, until,
};

/// The honest client subscribes, and is notified of a loss.
async fn is_served(scef: &Scef, hss: &mut Node, number: u32) {
    let server = server();
    let body = subscription(&server.root(), &json!({"maximumNumberOfReports": 1}));
    let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
    path_of(&got);
    let report = hss.report(application::S6T, number, reference_of(&cir), |group| {
        group.put(known::LOSS_OF_CONNECTIVITY_REASON, 1);
    });
    assert_eq!(result_of(&hss.ask(&report).await), SUCCESS);
    notified(&server, 1).await;
}

/// Bodies that cost their reader more than their sender.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str, close: &str, depth: usize| {
        let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        text.into_bytes()
    };
    let keys: Vec<String> = (0..20_000).map(|key| format!("\"k{key}\":{{}}")).collect();
    let twice = r#"{"externalId":"a@b","externalId":"c@d"}"#;
    let mut zeros = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..512 {
        zeros.write_all(&[b' '; 65_536]).unwrap();
    }
    vec![
        ("", deep("[", "]", 100_000)),
        ("", deep("{\"a\":", "}", 50_000)),
        ("", format!("{{{}}}", keys.join(",")).into_bytes()),
        ("", twice.into()),
        (
            "",
            format!("{{\"maximumNumberOfReports\":1{}}}", "0".repeat(100_000)).into_bytes(),
        ),
        ("", format!("\"{}", "\\u0000".repeat(20_000)).into_bytes()),
        ("", vec![b'"'; 8 << 20]),
        // 32 MiB of spaces in 32 KiB.
        ("gzip", zeros.finish().unwrap()),
    ]
}

#[test]
fn bombs_of_json_cost_their_sender_an_error() {
    local(async {
        let scef = start(|_| {});
        let mut hss = Node::hss(scef.diameter()).await;
        for (number, (coding, body)) in (0..).zip(bombs()) {
            for path in [SUBSCRIPTIONS, CONFIGURATIONS] {
                let mut bomb = request(Method::POST, path, "application/json", body.clone());
                if !coding.is_empty() {
                    bomb.headers_mut()
                        .insert("content-encoding", coding.parse().unwrap());
                }
                // A body that is too long may cost the stream; an answer is an error of the client.
                let got = send(&scef.api.client, &scef.api.origin, bomb).await;
                if let Ok(got) = got {
                    assert!(
                        got.status.is_client_error(),
                        "bomb {number}: {} {}",
                        got.status,
                        got.json
                    );
                }
            }
            is_served(&scef, &mut hss, 100 + number).await;
        }
        scef.stop();
    });
}

#[test]
fn destinations_that_refuse_or_never_answer_hold_up_no_others() {
    const REPORTS: u32 = 30;
    local(async {
        let scef = start(|config| config.notifications.parallel = 2);
        let mut hss = Node::hss(scef.diameter()).await;
        let refusing = Server::start(|_| Response::new(StatusCode::NOT_FOUND));
        let silent = Server::start(|_| no_content());
        silent.holds();
        for (number, server) in (0..).zip([&refusing, &silent]) {
            let body = subscription(&server.root(), &json!({"maximumNumberOfReports": REPORTS + 1}));
            let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
            path_of(&got);
            for report in 0..REPORTS {
                let end_to_end = 1_000 * (number + 1) + report;
                let report = hss.report(application::S6T, end_to_end, reference_of(&cir), |_| {});
                assert_eq!(result_of(&hss.ask(&report).await), SUCCESS);
            }
            is_served(&scef, &mut hss, 10 + number).await;
        }
        // Each is refused once, and not tried again.
        scef.counted(Event::NotificationFailed, u64::from(REPORTS)).await;
        assert_eq!(refusing.count(), REPORTS as usize);
        scef.stop();
    });
}

/// A NIDD configuration of another device than that of the tests; the path of its data.
async fn other_device(scef: &Scef, hss: &mut Node, target: &str) -> String {
    let body = json!({"msisdn": "4366077", "notificationDestination": target});
    let granted = async {
        let nir = hss.expect(command::NIDD_INFORMATION).await;
        hss.answer(&nir, |answer| {
            answer.group(known::NIDD_AUTHORIZATION_RESPONSE, |group| {
                group.put(known::USER_NAME, "001010000000008");
            });
        })
        .await;
    };
    let (got, ()) = tokio::join!(scef.api.post(CONFIGURATIONS, &body), granted);
    format!("{}/downlink-data-deliveries", path_of(&got))
}

#[test]
fn a_device_that_is_never_reachable_is_tried_now_and_then_and_the_one_beside_it_has_its_data() {
    const TRIES: usize = 3;
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut lying = Node::mme(scef.diameter()).await;
        let (_, unreachable) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(lying.manage(ESTABLISH, 1).await, SUCCESS);
        let reachable = other_device(&scef, &mut hss, &server.root()).await;
        let mut honest = Node::mme_named(scef.diameter(), "mme2.example.org").await;
        let establish = honest.request((command::CONNECTION_MANAGEMENT, application::T6A), 1, |out| {
            out.put(known::CONNECTION_ACTION, ESTABLISH);
        });
        // The same CMR about the other device.
        let mut bytes = establish.as_bytes().to_vec();
        let at = bytes.windows(IMSI.len()).position(|text| text == IMSI.as_bytes());
        bytes[at.unwrap() + IMSI.len() - 1] = b'8';
        honest.0.send(&bytes).await;
        assert_eq!(
            result_of(&honest.0.expect(command::CONNECTION_MANAGEMENT).await),
            SUCCESS
        );

        // The MME of the first one names a time that is over, each time.
        let refuse = async |mme: &mut Node| {
            let tdr = mme.expect(command::MT_DATA).await;
            assert!(!is_repeated(&tdr), "the MME does not have it");
            let past = SystemTime::now() - Duration::from_secs(3_600);
            mme.refuse_until(&tdr, past).await;
        };
        let body = data("AAAA", &json!({"maximumLatency": 600}));
        let (got, ()) = tokio::join!(scef.api.post(&unreachable, &body), refuse(&mut lying));
        let waiting = path_of(&got);
        for _ in 0..TRIES {
            let accepted = async {
                let tdr = honest.expect(command::MT_DATA).await;
                honest.answer(&tdr, |_| {}).await;
            };
            let body = json!({"msisdn": "4366077", "data": "BBBB"});
            let (sent, ()) = tokio::join!(scef.api.post(&reachable, &body), accepted);
            assert_eq!(sent.status, StatusCode::OK, "{}", sent.json);
            refuse(&mut lying).await;
        }
        until("its status", async || {
            let shown = scef.api.get(&waiting).await;
            shown.json["deliveryStatus"] == "BUFFERING_TEMPORARILY_NOT_REACHABLE"
        })
        .await;
        assert_eq!(scef.running.count(Event::Delivered), TRIES as u64);
        scef.stop();
    });
}

#[test]
fn a_device_is_tried_again_at_the_time_that_its_mme_names() {
    local(async {
        // Longer than the test waits.
        let pause = settings::Period::from_secs(3_600);
        let (scef, server) = (start(|config| config.nidd.retry_pause = pause), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let (_, downlinks) = configured(&scef, &mut hss, &server.root(), &json!({})).await;
        assert_eq!(mme.manage(ESTABLISH, 1).await, SUCCESS);
        let refusal = async {
            let tdr = mme.downlink().await;
            let soon = SystemTime::now() + Duration::from_secs(3);
            mme.refuse_until(&tdr, soon).await;
        };
        let body = data("AAAA", &json!({"maximumLatency": 7_200}));
        let (got, ()) = tokio::join!(scef.api.post(&downlinks, &body), refusal);
        path_of(&got);
        let tdr = mme.downlink().await;
        mme.answer(&tdr, |_| {}).await;
        notified(&server, 1).await;
        scef.stop();
    });
}

#[test]
fn avps_that_contradict_each_other_are_refused_and_change_nothing() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({}));
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        configured(&scef, &mut hss, &server.root(), &json!({})).await;
        let reference = reference_of(&cir);
        let of = |command: u32| (command, application::T6A);
        let requests = [
            mme.request(of(command::REPORTING_INFORMATION), 1, |out| {
                out.group(known::MONITORING_EVENT_REPORT, |group| {
                    group
                        .put(known::SCEF_REFERENCE_ID, reference)
                        .put(known::SCEF_REFERENCE_ID, reference ^ 1);
                });
            }),
            mme.request(of(command::CONNECTION_MANAGEMENT), 2, |out| {
                out.put(known::CONNECTION_ACTION, 0)
                    .put(known::CONNECTION_ACTION, 1);
            }),
            mme.request(of(command::CONNECTION_MANAGEMENT), 3, |out| {
                out.put(known::CONNECTION_ACTION, 0)
                    .put(known::BEARER_IDENTIFIER, &[6]);
            }),
            mme.request(of(command::MO_DATA), 4, |out| {
                out.put(known::NON_IP_DATA, &[1]).put(known::NON_IP_DATA, &[2]);
            }),
            mme.request(of(command::MO_DATA), 5, |out| {
                out.group(known::USER_IDENTIFIER, |group| {
                    group.put(known::USER_NAME, "001010000000008");
                });
            }),
        ];
        for request in &requests {
            let answer = mme.ask(request).await;
            // DIAMETER_AVP_OCCURS_TOO_MANY_TIMES.
            assert_eq!(result_of(&answer), (0, 5009), "{}", request.end_to_end());
        }
        assert_eq!(scef.api.get(&path).await.json["self"], got.json["self"]);
        assert_eq!(server.count(), 0);
        let connections = scef.running.count(Event::Connected);
        assert_eq!(connections, 0);
        is_served(&scef, &mut hss, 100).await;
        until("its notification", async || {
            scef.running.count(Event::Notified) >= 1
        })
        .await;
        scef.stop();
    });
}

#[test]
fn a_request_for_the_reliable_data_service_names_what_is_missing() {
    local(async {
        let scef = start(|_| {});
        let ports = json!([{"portUE": 1, "portSCEF": 2}]);
        for more in [json!({"reliableDataService": true}), json!({"rdsPorts": ports})] {
            let mut body = json!({"externalId": "a@b", "notificationDestination": "http://127.0.0.1:1/"});
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            let got = scef.api.post(CONFIGURATIONS, &body).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST);
            let detail = got.json["detail"].as_str().unwrap_or_default();
            assert!(detail.contains("TS 24.250"), "{detail}");
        }
        let none: Value = json!({"externalId": "a@b", "notificationDestination": "http://127.0.0.1:1/",
            "reliableDataService": false});
        let got = scef.api.post(CONFIGURATIONS, &none).await;
        assert_eq!(
            got.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "there is no HSS: {}",
            got.json
        );
        scef.stop();
    });
}
