//! Number services of calls: INAP, CAP and ISUP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the file of numbers means for calls: queries of INAP and CAP that are answered, InitialDP for prepaid subscribers, IAMs
/// that pass through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct CallServices {
    /// Subsystems of this STP to which InitialDP is sent (12 = INAP, 146 = CAP). It is answered with Connect, Continue or
    /// ReleaseCall, unless a rule of `prepaid` relays it.
    pub subsystems: Vec<u8>,
    /// InitialDP that is relayed to a service control point; the first rule that has its service key and leads to a group
    /// decides.
    pub prepaid: Vec<Prepaid>,
    /// Application servers and link sets whose IAMs are intercepted on their way to another node: the called number of a
    /// ported one gets its routing number. All other messages of ISUP pass.
    pub intercept: Vec<String>,
    /// What becomes of a call to a number of `own` that the file does not list, and of one that came with a routing number of
    /// this network to a number that is not here.
    pub unallocated: Unallocated,
    /// The form of the number behind a routing number, in what is received and what is sent.
    pub form: NumberForm,
    /// Nature of address of a called party number with routing number (Q.763): 8 = routing number and directory number,
    /// 6 = routing number in national format.
    #[schemars(range(max = 127))]
    pub routed_nature: u8,
    /// What a number of unknown nature begins with when a national one follows (`0`). Empty: none does.
    pub national_prefix: String,
    /// What a number of unknown nature begins with when an international one follows (`00`). Empty: none does.
    pub international_prefix: String,
}

impl Default for CallServices {
    fn default() -> Self {
        Self {
            subsystems: Vec::new(),
            prepaid: Vec::new(),
            intercept: Vec::new(),
            unallocated: Unallocated::default(),
            form: NumberForm::default(),
            routed_nature: ss7_proto::isup::nature::ROUTING_NUMBER,
            national_prefix: String::new(),
            international_prefix: String::new(),
        }
    }
}

/// InitialDP and InitialDPSMS for a service control point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Prepaid {
    /// Service keys of the rule.
    pub service_keys: Vec<u32>,
    /// The number that is looked up: its entry names the group as `scp=GROUP`.
    pub number: Subscriber,
    /// The group of `translation` for numbers whose entry names none. Absent: the rule does not concern them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A number of InitialDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Subscriber {
    /// Calling party number.
    #[default]
    Calling,
    /// Called party number.
    Called,
    /// IMSI, of CAP.
    Imsi,
}

/// What becomes of a call to a number that is not allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unallocated {
    /// It goes on as it was.
    #[default]
    Continue,
    /// It ends with cause 1 (unallocated number): ReleaseCall, or REL to the exchange before. Numbers have to be whole in the
    /// IAM then.
    Release,
}

/// The form of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NumberForm {
    /// With country code.
    #[default]
    International,
    /// Without `countryCode`; a number of another country keeps its own.
    National,
}
