//! Monitoring events of groups of devices.

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpFlags, AvpKey, AvpWriter, MessageMut};
use http::StatusCode;
use serde_json::{Value, json};

use crate::judge;
use crate::network::{Node, SUCCESS, reference_of, result_of};
use crate::support::{SUBSCRIPTIONS, local, notified, path_of, server, start, subscription};

const GROUP: &str = "meters@iot.example.org";

pub fn group(target: &str) -> Value {
    let mut body = subscription(target, &json!({"externalGroupId": GROUP}));
    body.as_object_mut().unwrap().remove("externalId");
    body
}

fn user(out: &mut AvpWriter, id: &str) {
    out.group(known::USER_IDENTIFIER, |group| {
        group.put(known::EXTERNAL_IDENTIFIER, id);
    });
}

/// RIR with a Group-Report of three members: an event of the first one, a failed and a successful configuration.
pub fn group_report(hss: &Node, number: u32, reference: u32) -> MessageMut {
    let which = (command::REPORTING_INFORMATION, application::S6T);
    hss.request(which, number, |out| {
        out.group(known::GROUP_REPORT, |report| {
            report
                .put(known::SCEF_REFERENCE_ID, reference)
                .put(known::SCEF_ID, "scef.example.org")
                .group(known::GROUP_REPORT_ITEM, |item| {
                    user(item, "meter-1@iot.example.org");
                    item.put(known::LOSS_OF_CONNECTIVITY_REASON, 4);
                })
                .group(known::GROUP_REPORT_ITEM, |item| {
                    // One of several Service-Reports failed.
                    status(item, "meter-2@iot.example.org", 2001);
                    service(item, 5513);
                })
                .group(known::GROUP_REPORT_ITEM, |item| {
                    status(item, "meter-4@iot.example.org", 2001);
                });
        });
    })
}

/// RIR of an MME about a member; the reason counts.
fn loss(mme: &Node, id: &str, reference: u32, number: u32) -> MessageMut {
    let which = (command::REPORTING_INFORMATION, application::T6A);
    mme.request(which, 10 + number, |out| {
        user(out, id);
        out.group(known::MONITORING_EVENT_REPORT, |report| {
            report
                .put(known::SCEF_REFERENCE_ID, reference)
                .put(known::LOSS_OF_CONNECTIVITY_REASON, number);
        });
    })
}

/// What became of the configuration of a member.
fn status(item: &mut AvpWriter, id: &str, code: u32) {
    user(item, id);
    service(item, code);
}

fn service(item: &mut AvpWriter, code: u32) {
    item.group(known::SERVICE_REPORT, |report| {
        report.group(known::SERVICE_RESULT, |result| {
            result
                .put(known::VENDOR_ID, known::VENDOR_3GPP)
                .put(known::SERVICE_RESULT_CODE, code);
        });
    });
}

#[test]
fn a_group_is_monitored_with_the_reports_of_each_member() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let body = group(&server.root());
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        let path = path_of(&got);
        judge::monitoring("MonitoringEventSubscription", &got.json);
        let asked = cir.require(known::USER_IDENTIFIER).unwrap();
        assert_eq!(asked.clone().get(known::EXTERNAL_IDENTIFIER), Ok(Some(GROUP)));
        assert_eq!(asked.get(known::TYPE_OF_EXTERNAL_IDENTIFIER), Ok(Some(1)));
        assert_eq!(cir.get(known::GROUP_REPORTING_GUARD_TIMER), Ok(None));

        let reference = reference_of(&cir);
        let both = group_report(&hss, 7, reference);
        assert_eq!(result_of(&hss.ask(&both).await), SUCCESS);
        // Reports of the MME, one for each device, beyond the two that each member has.
        for number in 0..3 {
            let report = loss(&mme, "meter-3@iot.example.org", reference, number);
            assert_eq!(result_of(&mme.ask(&report).await), SUCCESS);
        }
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        let seen = notified(&server, 4).await;
        for one in &seen {
            judge::monitoring("MonitoringNotification", one);
        }
        let event = "LOSS_OF_CONNECTIVITY";
        assert_eq!(
            seen[0]["monitoringEventReports"],
            json!([{"monitoringType": event, "lossOfConnectReason": 4, "externalId": "meter-1@iot.example.org"}])
        );
        assert_eq!(
            seen[0]["configResults"],
            json!([{"externalIds": ["meter-2@iot.example.org"], "resultReason": "OTHER_REASON"}])
        );
        assert_eq!(
            seen[3]["monitoringEventReports"][0]["externalId"],
            "meter-3@iot.example.org"
        );
        // The network cancels the event of a member: the others go on.
        let which = (command::REPORTING_INFORMATION, application::S6T);
        let cancel = hss.request(which, 9, |out| {
            out.group(known::GROUP_REPORT, |report| {
                report
                    .put(known::SCEF_REFERENCE_ID, reference)
                    .group(known::GROUP_REPORT_ITEM, |item| {
                        user(item, "meter-1@iot.example.org");
                        let key = AvpKey {
                            vendor: known::VENDOR_3GPP,
                            code: 3149,
                        };
                        let flags = AvpFlags(AvpFlags::MANDATORY.0 | AvpFlags::VENDOR.0);
                        item.put_raw(key, flags, &[0, 0, 0, 2]);
                    });
            });
        });
        assert_eq!(result_of(&hss.ask(&cancel).await), SUCCESS);
        let last = notified(&server, 5).await.pop().unwrap();
        judge::monitoring("MonitoringNotification", &last);
        assert_eq!(last["cancelExternalIds"], json!(["meter-1@iot.example.org"]));
        assert_eq!(scef.api.get(&path).await.status, StatusCode::OK);
        let unknown = group_report(&hss, 8, reference ^ 1);
        assert_eq!(result_of(&hss.ask(&unknown).await), (known::VENDOR_3GPP, 5515));
        scef.stop();
    });
}

/// What comes within the guard time is one notification; what the network cancels does not wait.
#[test]
fn reports_of_a_group_wait_for_its_guard_time() {
    local(async {
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let mut mme = Node::mme(scef.diameter()).await;
        let mut body = group(&server.root());
        body["groupReportGuardTime"] = json!(5);
        let (got, cir) = tokio::join!(scef.api.post(SUBSCRIPTIONS, &body), hss.configure());
        assert_eq!(cir.get(known::GROUP_REPORTING_GUARD_TIMER), Ok(Some(5)));
        let reference = reference_of(&cir);
        let both = group_report(&hss, 7, reference);
        assert_eq!(result_of(&hss.ask(&both).await), SUCCESS);
        let later = loss(&mme, "meter-3@iot.example.org", reference, 1);
        assert_eq!(result_of(&mme.ask(&later).await), SUCCESS);
        // The second one again, as a peer repeats it.
        assert_eq!(result_of(&mme.ask(&later).await), SUCCESS);
        let seen = notified(&server, 1).await;
        judge::monitoring("MonitoringNotification", &seen[0]);
        assert_eq!(seen[0]["subscription"], got.json["self"]);
        let devices = |name: &str| -> Vec<Value> {
            let reports = seen[0][name].as_array().unwrap();
            reports.iter().map(|one| one["externalId"].clone()).collect()
        };
        let both = ["meter-1@iot.example.org", "meter-3@iot.example.org"];
        assert_eq!(devices("monitoringEventReports"), both);
        assert_eq!(seen[0]["configResults"].as_array().unwrap().len(), 1);
        // The next ones are another notification.
        let last = loss(&mme, "meter-1@iot.example.org", reference, 2);
        assert_eq!(result_of(&mme.ask(&last).await), SUCCESS);
        assert_eq!(
            notified(&server, 2).await[1]["monitoringEventReports"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        scef.stop();
    });
}
