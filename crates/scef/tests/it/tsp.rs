//! Device triggers of servers that speak Diameter: Tsp, S6m and T4.

use diameter::proto::MessageMut;
use diameter::proto::known::{self, application, command};
use scef::Event;

use crate::network::{Node, SUCCESS, result_of};
use crate::support::{DEVICE, Scef, local, start};

/// Action-Type of a DAR.
pub const TRIGGER: i32 = 1;
const RECALL: i32 = 3;
const REPLACE: i32 = 4;

const SCS: &[u8] = b"4366099";

/// An SCS, and the network that it triggers devices in.
struct Tsp {
    scs: Node,
    hss: Node,
    sms_sc: Node,
}

impl Tsp {
    async fn of(scef: &Scef) -> Self {
        Self {
            scs: Node::scs(scef.diameter()).await,
            hss: Node::hss(scef.diameter()).await,
            sms_sc: Node::sms_sc(scef.diameter()).await,
        }
    }

    /// The SMS-SC accepts what a DAR asks for: Request-Status, and the DTR.
    async fn accepted(&mut self, dar: &MessageMut) -> (i32, MessageMut) {
        let (answer, _, dtr) = tokio::join!(
            self.scs.ask(dar),
            self.hss.locate_for_trigger(None),
            self.sms_sc.accept()
        );
        (status_of(&answer, dar), dtr)
    }

    /// The answer to a DAR: Request-Status.
    async fn ask(&mut self, dar: &MessageMut) -> i32 {
        let answer = self.scs.ask(dar).await;
        status_of(&answer, dar)
    }

    /// The next DNR, answered: Reference-Number and Delivery-Outcome.
    async fn report(&mut self) -> (u32, i32) {
        let dnr = self.scs.expect(command::DEVICE_NOTIFICATION).await;
        let notification = dnr.require(known::DEVICE_NOTIFICATION).unwrap();
        assert_eq!(
            notification.clone().get(known::EXTERNAL_IDENTIFIER),
            Ok(Some(DEVICE))
        );
        assert_eq!(notification.clone().get(known::SCS_IDENTITY), Ok(Some(SCS)));
        assert_eq!(notification.clone().require(known::ACTION_TYPE), Ok(2));
        self.scs
            .answer(&dnr, |answer| {
                answer.put(known::AUTH_APPLICATION_ID, application::TSP);
            })
            .await;
        let reference = notification.clone().require(known::REFERENCE_NUMBER).unwrap();
        (reference, notification.require(known::DELIVERY_OUTCOME).unwrap())
    }
}

/// A DAR: its End-to-End Identifier is its Reference-Number.
pub fn dar(scs: &Node, action: i32, reference: u32, old: Option<u32>) -> MessageMut {
    scs.request((command::DEVICE_ACTION, application::TSP), reference, |out| {
        out.put(known::AUTH_APPLICATION_ID, application::TSP);
        out.group(known::DEVICE_ACTION, |group| {
            group
                .put(known::EXTERNAL_IDENTIFIER, DEVICE)
                .put(known::SCS_IDENTITY, SCS)
                .put(known::REFERENCE_NUMBER, reference)
                .maybe(known::OLD_REFERENCE_NUMBER, old)
                .put(known::ACTION_TYPE, action)
                .put(known::VALIDITY_TIME, 600);
            if action != RECALL {
                group.group(known::TRIGGER_DATA, |data| {
                    data.put(known::PAYLOAD, b"wake")
                        .put(known::PRIORITY_INDICATION, 1)
                        .put(known::APPLICATION_PORT_IDENTIFIER, 40_000);
                });
            }
        });
    })
}

fn status_of(answer: &MessageMut, dar: &MessageMut) -> i32 {
    assert_eq!(result_of(answer), SUCCESS);
    let asked = dar.require(known::DEVICE_ACTION).unwrap();
    let notification = answer.require(known::DEVICE_NOTIFICATION).unwrap();
    let reference = |group: diameter::proto::Avps<'_>| group.require(known::REFERENCE_NUMBER).unwrap();
    assert_eq!(reference(notification.clone()), reference(asked.clone()));
    let action = notification.clone().require(known::ACTION_TYPE);
    assert_eq!(action, asked.require(known::ACTION_TYPE));
    notification.require(known::REQUEST_STATUS).unwrap()
}

#[test]
fn an_scs_triggers_a_device_and_its_delivery_is_reported_once() {
    local(async {
        let scef = start(|_| {});
        let mut network = Tsp::of(&scef).await;
        let request = dar(&network.scs, TRIGGER, 77, None);
        let (status, dtr) = network.accepted(&request).await;
        assert_eq!(status, 0);
        assert_eq!(dtr.get(known::PAYLOAD), Ok(Some(&b"wake"[..])));
        assert_eq!(dtr.get(known::VALIDITY_TIME), Ok(Some(600)));
        assert_eq!(dtr.get(known::APPLICATION_PORT_IDENTIFIER), Ok(Some(40_000)));
        assert_eq!(dtr.get(known::PRIORITY_INDICATION), Ok(Some(1)));
        // The same again, as a peer repeats it: the first status, and nothing for the network.
        assert_eq!(network.ask(&request).await, 0);
        assert_eq!(scef.running.count(Event::Duplicate), 1);
        assert_eq!(scef.running.count(Event::Triggered), 1);

        let reference = dtr.require(known::REFERENCE_NUMBER).unwrap();
        let delivery = network.sms_sc.delivery(1, reference, 2);
        assert_eq!(result_of(&network.sms_sc.ask(&delivery).await), SUCCESS);
        assert_eq!(network.report().await, (77, 0));
        // It has ended: there is none to recall.
        let recall = dar(&network.scs, RECALL, 78, Some(77));
        assert_eq!(network.ask(&recall).await, 112);
        scef.stop();
    });
}

#[test]
fn an_scs_replaces_and_recalls_its_trigger() {
    local(async {
        let scef = start(|_| {});
        let mut network = Tsp::of(&scef).await;
        let first = dar(&network.scs, TRIGGER, 1, None);
        let (_, begun) = network.accepted(&first).await;
        let second = dar(&network.scs, REPLACE, 2, Some(1));
        let (status, dtr) = network.accepted(&second).await;
        assert_eq!(status, 0);
        assert_eq!(dtr.get(known::TRIGGER_ACTION), Ok(Some(2)));
        let old = begun.require(known::REFERENCE_NUMBER).unwrap();
        assert_eq!(dtr.get(known::OLD_REFERENCE_NUMBER), Ok(Some(old)));
        // The first reference is that of no trigger by now.
        let stale = dar(&network.scs, RECALL, 3, Some(1));
        assert_eq!(network.ask(&stale).await, 112);
        let recall = dar(&network.scs, RECALL, 4, Some(2));
        let (answer, dtr) = tokio::join!(network.scs.ask(&recall), network.sms_sc.accept());
        assert_eq!(status_of(&answer, &recall), 0);
        assert_eq!(dtr.get(known::TRIGGER_ACTION), Ok(Some(1)));
        assert_eq!(scef.running.count(Event::Recalled), 1);
        scef.stop();
    });
}

#[test]
fn an_scs_learns_why_a_device_is_not_triggered() {
    local(async {
        let scef = start(|config| config.limits.triggers = 1);
        let mut network = Tsp::of(&scef).await;
        let unknown = dar(&network.scs, TRIGGER, 1, None);
        let refusal = async {
            let sir = network.hss.expect(command::SUBSCRIBER_INFORMATION).await;
            network.hss.refuse(&sir, 5001, |_| {}).await;
        };
        let (answer, ()) = tokio::join!(network.scs.ask(&unknown), refusal);
        assert_eq!(status_of(&answer, &unknown), 102);
        // MSISDN-less MO-SMS Delivery is none of a DAR.
        for action in [5, 9] {
            let odd = dar(&network.scs, action, 100, None);
            assert_eq!(result_of(&network.scs.ask(&odd).await), (0, 5004));
        }
        let good = dar(&network.scs, TRIGGER, 3, None);
        assert_eq!(network.accepted(&good).await.0, 0);
        let more = dar(&network.scs, TRIGGER, 4, None);
        assert_eq!(network.ask(&more).await, 108);
        let empty = network
            .scs
            .request((command::DEVICE_ACTION, application::TSP), 5, |out| {
                out.put(known::AUTH_APPLICATION_ID, application::TSP);
            });
        assert_eq!(result_of(&network.scs.ask(&empty).await), (0, 5005));
        // SCS and SCS/AS are apart.
        let name = "/3gpp-device-triggering/v1/tsp:scs.example.org/transactions";
        assert_eq!(scef.api.get(name).await.status, 404);
        scef.stop();
    });
}

#[test]
fn a_report_waits_for_an_scs_that_is_not_connected() {
    local(async {
        let scef = start(|_| {});
        let mut network = Tsp::of(&scef).await;
        let request = dar(&network.scs, TRIGGER, 5, None);
        let (_, dtr) = network.accepted(&request).await;
        let Tsp { scs, mut sms_sc, hss } = network;
        drop(scs);
        let reference = dtr.require(known::REFERENCE_NUMBER).unwrap();
        let delivery = sms_sc.delivery(1, reference, 0);
        assert_eq!(result_of(&sms_sc.ask(&delivery).await), SUCCESS);
        let scs = Node::scs(scef.diameter()).await;
        let mut network = Tsp { scs, hss, sms_sc };
        assert_eq!(network.report().await, (5, 3));
        scef.stop();
    });
}
