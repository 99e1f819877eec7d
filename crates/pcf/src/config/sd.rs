//! Application detection at TDFs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Sessions of TDFs over Sd (TS 29.212 §4b), over the peers of `diameter`: a session whose decision has ADC rules (block
/// `adcRule`) gets one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Sd {
    /// Whether there are any. Without, ADC rules of projects go nowhere.
    pub enabled: bool,
    /// Sessions that have TDFs.
    pub sessions: Vec<SdSessions>,
    /// Whether the TDF that a PCEF names (TDF-Information of the CCR) goes before those of the settings.
    pub tdf_information: bool,
    /// TDFs by APN (DNN), before `tdf`.
    pub apns: BTreeMap<String, Tdf>,
    /// The TDF of all other APNs; absent: they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdf: Option<Tdf>,
    /// Attempts of a TSR or RAR that is not answered within `diameter.timeout`, or with a failure. After the last one the session
    /// goes on without a TDF, and its policy decides again (`$session.tdf` is `failed`).
    pub attempts: u32,
    /// Pause before the second attempt; it doubles with each further one, up to `diameter.maxRetryPause`.
    pub retry_pause: Period,
    /// How long the CCR of a TDF is awaited that ends its session, after it was asked to; its usage counts until then.
    pub retention: Period,
    /// Requests that a sweep sends again at once.
    pub parallel: usize,
}

/// A TDF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Tdf {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its realm; empty: `diameter.realm`.
    #[serde(default)]
    pub realm: String,
}

/// Sessions of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SdSessions {
    /// Of PCEFs.
    Gx,
    /// Of SMFs.
    N7,
}

impl Default for Sd {
    fn default() -> Self {
        Self {
            enabled: false,
            sessions: vec![SdSessions::Gx],
            tdf_information: true,
            apns: BTreeMap::new(),
            tdf: None,
            attempts: 3,
            retry_pause: Period::from_secs(2),
            retention: Period::from_secs(60),
            parallel: 64,
        }
    }
}

impl Validate for Sd {
    fn validate(&self, faults: &mut Faults) {
        let named = self
            .apns
            .iter()
            .map(|(apn, tdf)| (format!("apns.{apn}"), tdf))
            .chain(self.tdf.iter().map(|tdf| ("tdf".to_owned(), tdf)));
        for (at, tdf) in named {
            let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic());
            if tdf.host.is_empty() || !is_name(&tdf.host) || !is_name(&tdf.realm) {
                faults.at(at).say(
                    "has no valid DiameterIdentity",
                    "a host such as tdf.example.org and a realm such as example.org",
                );
            }
        }
        for (name, value) in [("attempts", self.attempts as usize), ("parallel", self.parallel)] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.retry_pause.is_zero() {
            faults.at("retryPause").say("is 0", "some time, such as 2s");
        }
    }
}
