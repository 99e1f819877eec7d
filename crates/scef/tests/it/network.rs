//! HSS and MME, played by the scripted Diameter peer.

use std::net::SocketAddr;
use std::time::SystemTime;

use diameter::proto::kind::TimeValue;
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::ApplicationId;
use diameter::proto::{
    AvpFlags, AvpKey, AvpWriter, CommandFlags, Dictionary, Message, MessageBuilder, MessageMut, ResultCode,
    check,
};
use testpeer::diameter::Peer;

use crate::support::IMSI;

const VENDOR: u32 = known::VENDOR_3GPP;

/// The number of the SCEF as TS 23.040 §9.1.2.5 has it.
pub const SME_ADDRESS: &[u8] = &[7, 0x91, 0x34, 0x66, 0x10, 0xf2];

/// DIAMETER_SUCCESS.
pub const SUCCESS: (u32, u32) = (0, 2001);
/// DIAMETER_ERROR_INVALID_EPS_BEARER.
pub const NOT_CONNECTED: (u32, u32) = (VENDOR, 5651);

/// Connection-Action of a CMR.
pub const ESTABLISH: u32 = 0;
pub const RELEASE: u32 = 1;
pub const UPDATE: u32 = 2;

/// An HSS, an MME or an SMS-SC.
pub struct Node(pub Peer);

impl Node {
    pub async fn hss(scef: SocketAddr) -> Self {
        Self::hss_named(scef, "hss.example.org").await
    }

    pub async fn hss_named(scef: SocketAddr, host: &str) -> Self {
        let served = [application::S6T, application::S6M].map(ApplicationId::tgpp);
        Self(Peer::admitted(scef, host, "example.org", &served).await)
    }

    pub async fn mme(scef: SocketAddr) -> Self {
        Self::mme_named(scef, "mme.example.org").await
    }

    pub async fn mme_named(scef: SocketAddr, host: &str) -> Self {
        let served = [ApplicationId::tgpp(application::T6A)];
        Self(Peer::admitted(scef, host, "example.org", &served).await)
    }

    pub async fn sms_sc(scef: SocketAddr) -> Self {
        Self::sms_sc_named(scef, "sms-sc.example.org").await
    }

    pub async fn sms_sc_named(scef: SocketAddr, host: &str) -> Self {
        let served = [ApplicationId::tgpp(application::T4)];
        Self(Peer::admitted(scef, host, "example.org", &served).await)
    }

    pub async fn scs(scef: SocketAddr) -> Self {
        let served = [ApplicationId::tgpp(application::TSP)];
        Self(Peer::admitted(scef, "scs.example.org", "example.org", &served).await)
    }

    /// The next request of the SCEF, which keeps to its definition.
    pub async fn expect(&mut self, command: u32) -> MessageMut {
        let message = self.0.expect(command).await;
        assert!(message.is_request());
        let strict = check::Strictness::Pedantic;
        check::check(&message, Dictionary::standard(), strict).unwrap();
        message
    }

    /// Answers with success and what `fill` adds.
    pub async fn answer(&mut self, request: &MessageMut, fill: impl FnOnce(&mut AvpWriter)) {
        let mut answer = MessageBuilder::answer(request);
        answer.result(ResultCode::SUCCESS, self.0.origin());
        answer.put(known::AUTH_SESSION_STATE, 1);
        fill(&mut answer);
        self.0.send(answer.finish().unwrap().as_bytes()).await;
    }

    /// Answers with an Experimental-Result of 3GPP and what `fill` adds.
    pub async fn refuse(&mut self, request: &MessageMut, code: u32, fill: impl FnOnce(&mut AvpWriter)) {
        let mut answer = MessageBuilder::answer(request);
        answer.group(known::EXPERIMENTAL_RESULT, |group| {
            group
                .put(known::VENDOR_ID, VENDOR)
                .put(known::EXPERIMENTAL_RESULT_CODE, code);
        });
        let origin = self.0.origin().clone();
        answer
            .put(known::AUTH_SESSION_STATE, 1)
            .put(known::ORIGIN_HOST, &origin.host)
            .put(known::ORIGIN_REALM, &origin.realm);
        fill(&mut answer);
        self.0.send(answer.finish().unwrap().as_bytes()).await;
    }

    /// Answers the next CIR with success; its message.
    pub async fn configure(&mut self) -> MessageMut {
        let cir = self.expect(command::CONFIGURATION_INFORMATION).await;
        self.answer(&cir, |_| {}).await;
        cir
    }

    /// Answers the next CIR with a location; its message.
    pub async fn locate(&mut self) -> MessageMut {
        let cir = self.expect(command::CONFIGURATION_INFORMATION).await;
        self.located(&cir).await;
        cir
    }

    /// Answers a CIR with a location.
    pub async fn located(&mut self, cir: &MessageMut) {
        self.answer(cir, |answer| {
            answer.group(known::MONITORING_EVENT_REPORT, |report| {
                report.put(known::SCEF_REFERENCE_ID, reference_of(cir));
                put_location(report);
            });
        })
        .await;
    }

    /// Refuses data: the device is not reachable until this time.
    pub async fn refuse_until(&mut self, tdr: &MessageMut, time: SystemTime) {
        self.refuse(tdr, 5653, |answer| {
            answer.put(
                known::REQUESTED_RETRANSMISSION_TIME,
                TimeValue::from_system_time(time),
            );
        })
        .await;
    }

    /// Authorizes the device of the next NIR; its message.
    pub async fn authorize(&mut self) -> MessageMut {
        self.grant(None).await
    }

    /// Authorizes the device of the next NIR until this time; its message.
    pub async fn grant(&mut self, until: Option<TimeValue>) -> MessageMut {
        let nir = self.expect(command::NIDD_INFORMATION).await;
        self.answer(&nir, |answer| {
            answer.group(known::NIDD_AUTHORIZATION_RESPONSE, |group| {
                group
                    .put(known::USER_NAME, IMSI)
                    .maybe(known::GRANTED_VALIDITY_TIME, until);
            });
        })
        .await;
        nir
    }

    /// Answers the next SIR: the device is served by an MME, unless the cause says otherwise; its message.
    pub async fn locate_for_trigger(&mut self, cause: Option<u32>) -> MessageMut {
        let sir = self.expect(command::SUBSCRIBER_INFORMATION).await;
        self.answer(&sir, |answer| {
            answer.group(known::USER_IDENTIFIER, |group| {
                group.put(known::USER_NAME, IMSI);
            });
            answer.group(known::SERVICE_DATA, |group| {
                group.group(known::T4_DATA, |group| {
                    group.maybe(known::HSS_CAUSE, cause);
                    if cause.is_none() {
                        group.group(known::SERVING_NODE, |group| {
                            group.append_encoded(&mme_name("mme.example.org"));
                        });
                        group.group(known::ADDITIONAL_SERVING_NODE, |group| {
                            group.append_encoded(&mme_name("other.example.org"));
                        });
                    }
                });
            });
        })
        .await;
        sir
    }

    /// Accepts the next DTR; its message.
    pub async fn accept(&mut self) -> MessageMut {
        let dtr = self.expect(command::DEVICE_TRIGGER).await;
        self.answer(&dtr, |_| {}).await;
        dtr
    }

    /// DRR with this outcome about the trigger of a reference.
    pub fn delivery(&self, end_to_end: u32, reference: u32, outcome: i32) -> MessageMut {
        let which = (command::DELIVERY_REPORT, application::T4);
        self.request(which, end_to_end, |out| {
            out.group(known::USER_IDENTIFIER, |group| {
                group.put(known::USER_NAME, IMSI);
            });
            out.put(known::SM_RP_SMEA, SME_ADDRESS)
                .put(known::SM_DELIVERY_OUTCOME_T4, outcome)
                .put(known::REFERENCE_NUMBER, reference);
        })
    }

    /// A request of this node.
    pub fn request(
        &self,
        which: (u32, u32),
        end_to_end: u32,
        fill: impl FnOnce(&mut AvpWriter),
    ) -> MessageMut {
        self.request_about(5, which, end_to_end, fill)
    }

    /// A request of this node about a connection with this Bearer-Identifier.
    pub fn request_about(
        &self,
        bearer: u8,
        which: (u32, u32),
        end_to_end: u32,
        fill: impl FnOnce(&mut AvpWriter),
    ) -> MessageMut {
        self.request_of((IMSI, bearer), which, end_to_end, fill)
    }

    /// A request of this node about a connection of another device.
    pub fn request_of(
        &self,
        (imsi, bearer): (&str, u8),
        (command, application): (u32, u32),
        end_to_end: u32,
        fill: impl FnOnce(&mut AvpWriter),
    ) -> MessageMut {
        let origin = self.0.origin();
        let mut request = MessageBuilder::request(command, application);
        request.identifiers(end_to_end, end_to_end);
        request.put(known::SESSION_ID, &format!("{};1;{end_to_end}", origin.host));
        if application == application::T6A && command != command::REPORTING_INFORMATION {
            request.group(known::USER_IDENTIFIER, |group| {
                group.put(known::USER_NAME, imsi);
            });
            request.put(known::BEARER_IDENTIFIER, &[bearer]);
        }
        request
            .put(known::AUTH_SESSION_STATE, 1)
            .put(known::ORIGIN_HOST, &origin.host)
            .put(known::ORIGIN_REALM, &origin.realm)
            .put(known::DESTINATION_HOST, "scef.example.org")
            .put(known::DESTINATION_REALM, "example.org");
        fill(&mut request);
        request.finish().unwrap()
    }

    /// Sends a request and reads its answer, which keeps to its definition.
    pub async fn ask(&mut self, request: &MessageMut) -> MessageMut {
        self.0.send(request.as_bytes()).await;
        let answer = self.0.expect(request.command()).await;
        assert!(!answer.is_request());
        let strict = check::Strictness::Pedantic;
        check::check(&answer, Dictionary::standard(), strict).unwrap();
        answer
    }

    /// Reports about a subscription.
    pub fn report(
        &self,
        application: u32,
        end_to_end: u32,
        reference: u32,
        fill: impl Fn(&mut AvpWriter),
    ) -> MessageMut {
        self.request((command::REPORTING_INFORMATION, application), end_to_end, |out| {
            out.group(known::MONITORING_EVENT_REPORT, |group| {
                group
                    .put(known::SCEF_REFERENCE_ID, reference)
                    .put(known::SCEF_ID, "scef.example.org");
                fill(group);
            });
        })
    }

    /// Reports this many losses about the subscription of a CIR; the reasons count them.
    pub async fn report_losses(&mut self, cir: &MessageMut, count: u32) {
        for number in 0..count {
            let report = self.report(application::S6T, 10 + number, reference_of(cir), |group| {
                group.put(known::LOSS_OF_CONNECTIVITY_REASON, number);
            });
            assert_eq!(result_of(&self.ask(&report).await), SUCCESS);
        }
    }

    /// Sends a CMR for the connection of the device; its result.
    pub async fn manage(&mut self, action: u32, end_to_end: u32) -> (u32, u32) {
        let which = (command::CONNECTION_MANAGEMENT, application::T6A);
        let request = self.request(which, end_to_end, |out| {
            out.put(known::CONNECTION_ACTION, action)
                .put(known::SERVICE_SELECTION, "iot.example");
        });
        result_of(&self.ask(&request).await)
    }

    /// A CMR that establishes the connection of the device, with the End-to-End Identifier 1.
    pub fn establish(&self) -> MessageMut {
        let which = (command::CONNECTION_MANAGEMENT, application::T6A);
        self.request(which, 1, |out| {
            out.put(known::CONNECTION_ACTION, ESTABLISH);
        })
    }

    /// Establishes the connection of the device, and takes the data that waits for it; the result of the CMR.
    pub async fn manage_and_deliver(&mut self, waiting: usize) -> (u32, u32) {
        let request = self.establish();
        self.0.send(request.as_bytes()).await;
        let mut result = (0, 0);
        for _ in 0..=waiting {
            let message = self.0.next().await.expect("the SCEF goes on");
            match message.is_request() {
                true => self.answer(&message, |_| {}).await,
                false => result = result_of(&message),
            }
        }
        result
    }

    /// Sends data of the device; its result.
    pub async fn uplink(&mut self, data: &[u8], end_to_end: u32) -> (u32, u32) {
        let request = self.request((command::MO_DATA, application::T6A), end_to_end, |out| {
            out.put(known::NON_IP_DATA, data);
        });
        result_of(&self.ask(&request).await)
    }

    /// The next TDR.
    pub async fn downlink(&mut self) -> MessageMut {
        let tdr = self.expect(command::MT_DATA).await;
        let user = tdr.require(known::USER_IDENTIFIER).unwrap();
        assert_eq!(user.get(known::USER_NAME), Ok(Some(IMSI)));
        assert_eq!(tdr.require(known::BEARER_IDENTIFIER), Ok(&[5_u8][..]));
        tdr
    }
}

/// MME-Name (TS 29.173 §6.4.4), encoded.
fn mme_name(host: &str) -> Vec<u8> {
    let key = AvpKey {
        vendor: VENDOR,
        code: 2402,
    };
    let mut out = AvpWriter::with_capacity(64);
    out.put_raw(key, AvpFlags::MANDATORY, host.as_bytes());
    out.as_bytes().to_vec()
}

/// Where a device is.
pub fn put_location(report: &mut AvpWriter) {
    report.group(known::EPS_LOCATION_INFORMATION, |eps| {
        eps.group(known::MME_LOCATION_INFORMATION, |mme| {
            mme.put(known::TRACKING_AREA_IDENTITY, &[0x00, 0xf1, 0x10, 0x00, 0x01])
                .put(known::AGE_OF_LOCATION_INFORMATION, 3);
        });
    });
}

/// Vendor and code of the result.
pub fn result_of(answer: &Message<impl AsRef<[u8]>>) -> (u32, u32) {
    if let Some(code) = answer.get(known::RESULT_CODE).unwrap() {
        return (0, code);
    }
    let group = answer.require(known::EXPERIMENTAL_RESULT).unwrap();
    let vendor = group.clone().require(known::VENDOR_ID).unwrap();
    (vendor, group.require(known::EXPERIMENTAL_RESULT_CODE).unwrap())
}

/// The reference of the event that a CIR configures.
pub fn reference_of(cir: &MessageMut) -> u32 {
    let event = cir.require(known::MONITORING_EVENT_CONFIGURATION).unwrap();
    assert_eq!(event.clone().require(known::SCEF_ID), Ok("scef.example.org"));
    event.require(known::SCEF_REFERENCE_ID).unwrap()
}

/// Whether the T flag is set.
pub fn is_repeated(message: &MessageMut) -> bool {
    message.flags().contains(CommandFlags::RETRANSMITTED)
}
