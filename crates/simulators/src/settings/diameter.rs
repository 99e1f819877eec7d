//! Settings of simulated Diameter servers.

use std::path::PathBuf;

use diameter_proto::Origin;
use diameter_proto::known::application;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

use callmodel::subscribers::SubscriberRanges;
use loadgen::diameter::Introduction;

/// Nodes of one process: host `<prefix><number>.<realm>`, three digits, a port each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct DiameterSettings {
    /// Prefix of the names of the nodes.
    pub prefix: String,
    /// Number of the first node.
    pub first: u16,
    /// Their realm.
    pub realm: String,
    /// Average size of an HSS's answers to Update-Location.
    #[schemars(range(min = 600, max = 60_000))]
    pub answer_bytes: u32,
    /// The subscribers of each HSS; others are unknown to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<SubscriberRanges>,
    /// Result-Code of the answers of `misbehave.error`.
    pub error_result: u32,
    /// Share of AARs after which a PCF or PCRF sends a RAR.
    pub rar: Percent,
    /// Share of CCR-Us after which a PCRF or OCS sends a RAR.
    pub ccr_rar: Percent,
    /// Delay of the RAR after the AAR or CCR-U, and of the report of an SMS-SC after the trigger.
    pub rar_after: Period,
    /// Share of AARs after which a PCF sends an ASR.
    pub asr: Percent,
    /// Delay of the ASR after the AAR.
    pub asr_after: Period,
    /// Share of sessions that an OCS lets move to another one (FAILOVER_SUPPORTED).
    pub failover: Percent,
    /// Whether PCRFs serve what belongs at another one of them, as PCRFs do that do not know of one another. It is counted in any case.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub serve_strays: bool,
    /// Where OCSs write the request numbers that they have counted; none: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<PathBuf>,
}

impl Default for DiameterSettings {
    fn default() -> Self {
        Self {
            prefix: "hss".to_owned(),
            first: 0,
            realm: crate::network::REALM.to_owned(),
            answer_bytes: 2200,
            subscribers: None,
            error_result: 3004,
            rar: Percent::new(0.0),
            ccr_rar: Percent::new(0.0),
            rar_after: Period::from_millis(200),
            asr: Percent::new(0.0),
            asr_after: Period::from_millis(500),
            failover: Percent::new(0.0),
            serve_strays: false,
            journal: None,
        }
    }
}

impl DiameterSettings {
    /// The host of a node.
    #[must_use]
    pub fn host(&self, number: usize) -> String {
        format!(
            "{}{:03}.{}",
            self.prefix,
            usize::from(self.first) + number,
            self.realm
        )
    }

    /// The nodes.
    pub(crate) fn nodes(&self, role: super::RoleName, count: usize) -> Vec<Introduction> {
        let applications = match role {
            super::RoleName::PcfRx => vec![application::RX],
            super::RoleName::Pcrf => vec![application::GX, application::RX],
            super::RoleName::Ocs => vec![application::CREDIT_CONTROL],
            super::RoleName::ExposureHss => vec![application::S6T, application::S6M],
            super::RoleName::SmsSc => vec![application::T4],
            _ => vec![application::S6A, application::CX],
        };
        let nodes = (0..count).map(|number| Introduction {
            origin: Origin::new(self.host(number), &self.realm),
            applications: applications.clone(),
        });
        nodes.collect()
    }
}

impl Validate for DiameterSettings {
    fn validate(&self, faults: &mut Faults) {
        for (key, value) in [("prefix", &self.prefix), ("realm", &self.realm)] {
            let fits = value
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
            if value.is_empty() || !fits {
                faults.at(key).say(
                    format!("{value:?} is not a part of a name"),
                    "letters, digits, dots and hyphens",
                );
            }
        }
        if self.rar.percent() + self.asr.percent() > 100.0 {
            faults
                .at("asr")
                .say("adds up to more than 100% with `rar`", "at most 100% together");
        }
    }
}
