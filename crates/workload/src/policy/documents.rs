//! Policy associations: everything follows from a number.

use std::net::Ipv4Addr;

use bytes::Bytes;
use memchr::memmem;

use callmodel::policy::{PolicyModel, Rates};
use loadgen::Fault;
use simulators::policy::category;

/// IMSI of the first subscriber, in MCC 001 and MNC 01.
pub const FIRST_IMSI: u64 = 1_010_000_000_000;
/// Address of the first session.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// A service of the PCF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Npcf_SMPolicyControl.
    Sm,
    /// Npcf_AMPolicyControl.
    Am,
    /// Npcf_UEPolicyControl.
    Ue,
}

impl Service {
    /// The path of its associations.
    #[must_use]
    pub fn collection(self) -> &'static str {
        match self {
            Self::Sm => "/npcf-smpolicycontrol/v1/sm-policies",
            Self::Am => "/npcf-am-policy-control/v1/policies",
            Self::Ue => "/npcf-ue-policy-control/v1/policies",
        }
    }
}

/// Associations of one service and, for sessions, one data network.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The service.
    pub service: Service,
    /// The data network of an SM policy association.
    pub dnn: String,
    /// How much of it.
    pub rates: Rates,
}

/// The kinds of a model that have traffic.
#[must_use]
pub fn kinds(model: &PolicyModel) -> Vec<Kind> {
    let networks = model.sm.iter().map(|one| Kind {
        service: Service::Sm,
        dnn: one.dnn.clone(),
        rates: one.rates(),
    });
    let others = [(Service::Am, model.am), (Service::Ue, model.ue)];
    let others = others.map(|(service, rates)| Kind {
        service,
        dnn: String::new(),
        rates,
    });
    networks
        .chain(others)
        .filter(|kind| kind.rates.total() > 0.0)
        .collect()
}

/// What is sent for associations, and what answers have to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documents {
    /// Subscribers; associations beyond are further ones of the same subscribers.
    subscribers: u64,
    /// Root of the URIs of the consumers.
    callback: String,
    /// Whether the UDR's data decide; else every subscriber is a basic one.
    has_categories: bool,
    /// Whether the projects of a run decide; else any policy will do.
    has_projects: bool,
}

impl Documents {
    /// Documents for this number of subscribers, whose consumers take notifications at `callback`.
    #[must_use]
    pub fn new(model: &PolicyModel, callback: &str) -> Self {
        Self {
            subscribers: model.subscribers.max(1),
            callback: callback.to_owned(),
            has_categories: model.udr.is_some(),
            has_projects: true,
        }
    }

    /// The same for PCFs with policies of their own, whose answers need only be policies.
    #[must_use]
    pub fn of_any_policy(self) -> Self {
        Self {
            has_projects: false,
            ..self
        }
    }

    fn imsi(&self, number: u32) -> u64 {
        FIRST_IMSI + u64::from(number) % self.subscribers
    }

    /// The subscriber of an association.
    #[must_use]
    pub fn supi(&self, number: u32) -> String {
        format!("imsi-{:015}", self.imsi(number))
    }

    fn category(&self, number: u32) -> &'static str {
        if self.has_categories {
            category(self.imsi(number))
        } else {
            "basic"
        }
    }

    /// The body of a creation: `SmPolicyContextData` (TS 29.512 §5.6.2.3) or `PolicyAssociationRequest` (TS 29.507,
    /// TS 29.525).
    #[must_use]
    pub fn context(&self, kind: &Kind, number: u32) -> Bytes {
        let (supi, callback) = (self.supi(number), &self.callback);
        // No tablet of the projects: their policies depend on the time of day.
        let pei = 356_000_000_000_000 + u64::from(number) % 1_000_000;
        let body = match kind.service {
            Service::Sm => format!(
                concat!(
                    r#"{{"supi":"{supi}","gpsi":"msisdn-{msisdn:012}","pei":"imei-{pei:015}","pduSessionId":{session},"#,
                    r#""pduSessionType":"IPV4","dnn":"{dnn}","notificationUri":"{callback}/smf/{number}","#,
                    r#""accessType":"3GPP_ACCESS","ratType":"NR","servingNetwork":{{"mcc":"001","mnc":"01"}},"#,
                    r#""userLocationInfo":{{"nrLocation":{{"tai":{{"plmnId":{{"mcc":"001","mnc":"01"}},"tac":"000001"}},"#,
                    r#""ncgi":{{"plmnId":{{"mcc":"001","mnc":"01"}},"nrCellId":"000000001"}}}}}},"ueTimeZone":"+01:00","#,
                    r#""ipv4Address":"{address}","subsSessAmbr":{{"uplink":"2 Gbps","downlink":"4 Gbps"}},"#,
                    r#""subsDefQos":{{"5qi":9,"arp":{{"priorityLevel":8,"preemptCap":"NOT_PREEMPT","#,
                    r#""preemptVuln":"PREEMPTABLE"}}}},"sliceInfo":{{"sst":1}},"suppFeat":"0"}}"#
                ),
                supi = supi,
                msisdn = 491_500_000_000 + self.imsi(number) - FIRST_IMSI,
                pei = pei,
                // The sessions of a subscriber that stand at a time have numbers of their own.
                session = 1 + u64::from(number) / self.subscribers % 15,
                dnn = kind.dnn,
                callback = callback,
                number = number,
                address = Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().wrapping_add(number % (1 << 24))),
            ),
            Service::Am => format!(
                concat!(
                    r#"{{"notificationUri":"{callback}/amf/am/{number}","supi":"{supi}","accessType":"3GPP_ACCESS","#,
                    r#""pei":"imei-{pei:015}","servingPlmn":{{"mcc":"001","mnc":"01"}},"ratType":"NR","rfsp":1,"#,
                    r#""guami":{{"plmnId":{{"mcc":"001","mnc":"01"}},"amfId":"010041"}},"suppFeat":"0"}}"#
                ),
                callback = callback,
                number = number,
                supi = supi,
                pei = pei,
            ),
            Service::Ue => format!(
                concat!(
                    r#"{{"notificationUri":"{callback}/amf/ue/{number}","supi":"{supi}","accessType":"3GPP_ACCESS","#,
                    r#""pei":"imei-{pei:015}","servingPlmn":{{"mcc":"001","mnc":"01"}},"ratType":"NR","#,
                    r#""guami":{{"plmnId":{{"mcc":"001","mnc":"01"}},"amfId":"010041"}},"suppFeat":"0"}}"#
                ),
                callback = callback,
                number = number,
                supi = supi,
                pei = pei,
            ),
        };
        body.into()
    }

    /// The body of an update, in turn by `turn` (`SmPolicyUpdateContextData`, TS 29.512 §5.6.2.19;
    /// `PolicyAssociationUpdateRequest`, TS 29.507 §5.6.2.4). Updates of one session may be in flight at once, so that none has
    /// a trigger that the value of the one before contradicts.
    #[must_use]
    pub fn update(kind: &Kind, turn: u32) -> Bytes {
        const SM: [&str; 4] = [
            concat!(
                r#"{"repPolicyCtrlReqTriggers":["AC_TY_CH"],"accessType":"3GPP_ACCESS","#,
                r#""servingNetwork":{"mcc":"001","mnc":"02"}}"#
            ),
            r#"{"repPolicyCtrlReqTriggers":["AC_TY_CH"],"ratType":"EUTRA","accessType":"3GPP_ACCESS"}"#,
            concat!(
                r#"{"repPolicyCtrlReqTriggers":["US_RE"],"accuUsageReports":"#,
                r#"[{"refUmIds":"quota","volUsage":1500000}]}"#
            ),
            concat!(
                r#"{"repPolicyCtrlReqTriggers":["AC_TY_CH"],"ratType":"NR","accessType":"3GPP_ACCESS","#,
                r#""servingNetwork":{"mcc":"001","mnc":"01"}}"#
            ),
        ];
        // Sessions of ims have no usage monitoring.
        let turn = turn as usize % SM.len();
        match kind.service {
            Service::Sm if kind.dnn == "ims" && turn == 2 => Bytes::from_static(SM[0].as_bytes()),
            Service::Sm => Bytes::from_static(SM[turn].as_bytes()),
            Service::Am | Service::Ue => Bytes::from_static(br#"{"triggers":["LOC_CH"],"userLoc":{}}"#),
        }
    }

    /// Whether the answer to a creation shows what the project decides for this subscriber.
    ///
    /// # Errors
    /// What it does not show.
    pub fn shows(&self, kind: &Kind, number: u32, body: &[u8]) -> Result<(), Fault> {
        let category = self.category(number);
        let wanted = match kind.service {
            Service::Sm if !self.has_projects => r#""sessRules""#,
            Service::Am | Service::Ue if !self.has_projects => r#""suppFeat""#,
            Service::Sm if kind.dnn == "ims" => r#""5qi":5"#,
            Service::Sm => match category {
                "gold" => r#""uplink":"1 Gbps""#,
                "silver" => r#""uplink":"200 Mbps""#,
                _ => r#""uplink":"10 Mbps""#,
            },
            Service::Am => match category {
                "gold" => r#""rfsp":3"#,
                _ => r#""rfsp":5"#,
            },
            Service::Ue => r#""suppFeat""#,
        };
        match memmem::find(body, wanted.as_bytes()) {
            Some(_) => Ok(()),
            None => Err(Fault::Body(format!(
                "the policy of a {category} subscriber does not show {wanted}"
            ))),
        }
    }
}
