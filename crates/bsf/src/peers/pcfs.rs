//! What the NRF knows of PCFs: whether they are registered, and since when they run (TS 29.510 §6.1.6.2.2).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::{Method, StatusCode};
use nrf_client::{Nrfs, Subscription, instance_path};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config::Config;

/// Where the NRF tells of PCFs (`NFStatusNotify`).
pub(crate) const CALLBACK_PATH: &str = "/signalbox-bsf/v1/nf-status-notify";

/// The NRF has told that a PCF has changed, come or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// NF instance id.
    pub(crate) pcf: String,
}

/// What is known of a PCF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pcf {
    /// It is registered, suspended or not.
    Registered {
        /// `recoveryTime`, in microseconds since 1970.
        recovery: Option<u64>,
        /// `nfSetRecoveryTimeList`.
        sets: Vec<(String, u64)>,
    },
    /// The NRF does not know it.
    Gone,
}

impl Pcf {
    fn of(profile: &Value) -> Self {
        let sets = profile.get("nfSetRecoveryTimeList").and_then(Value::as_object);
        let sets = sets.into_iter().flatten();
        Self::Registered {
            recovery: profile
                .get("recoveryTime")
                .and_then(Value::as_str)
                .and_then(micros),
            sets: sets
                .filter_map(|(set, time)| Some((set.clone(), micros(time.as_str()?)?)))
                .collect(),
        }
    }
}

/// A DateTime (TS 29.571 §5.2.2) in microseconds since 1970.
pub(crate) fn micros(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos() / 1_000).ok()
}

/// Answers of the NRF, as long as they hold. Bounded.
pub(crate) struct Pcfs {
    nrfs: Rc<Nrfs>,
    known: RefCell<AHashMap<String, (Instant, Rc<Pcf>)>>,
    sets: RefCell<AHashMap<String, (Instant, bool)>>,
}

impl Pcfs {
    pub(crate) fn new(nrfs: Rc<Nrfs>) -> Self {
        Self {
            nrfs,
            known: RefCell::default(),
            sets: RefCell::default(),
        }
    }

    /// A PCF has changed: what is known of it does not hold any more.
    pub(crate) fn forget(&self, id: &str) {
        self.known.borrow_mut().remove(id);
        self.sets.borrow_mut().clear();
    }

    /// A PCF as the NRF knows it, and whether the NRF had to be asked; `None` when no NRF answers.
    pub(crate) async fn get(&self, id: &str, remember: Duration, most: usize) -> Option<(Rc<Pcf>, bool)> {
        let now = Instant::now();
        if let Some((until, pcf)) = self.known.borrow().get(id)
            && *until > now
        {
            return Some((pcf.clone(), false));
        }
        let answer = self.nrfs.send(Method::GET, &instance_path(id), None).await?;
        let pcf = match answer.status {
            StatusCode::OK => Pcf::of(&serde_json::from_slice(&answer.body).ok()?),
            StatusCode::NOT_FOUND => Pcf::Gone,
            status => {
                tracing::warn!(id, %status, "the NRF does not tell of a PCF");
                return None;
            }
        };
        let pcf = Rc::new(pcf);
        let mut known = self.known.borrow_mut();
        if known.len() >= most {
            known.retain(|_, (until, _)| *until > now);
        }
        if known.len() < most {
            known.insert(id.to_owned(), (now + remember, pcf.clone()));
        }
        Some((pcf, true))
    }

    /// Whether any PCF of a set is registered; `None` when no NRF answers.
    pub(crate) async fn set_lives(&self, set: &str, remember: Duration, most: usize) -> Option<bool> {
        let now = Instant::now();
        if let Some((until, lives)) = self.sets.borrow().get(set)
            && *until > now
        {
            return Some(*lives);
        }
        let path = format!(
            "/nnrf-disc/v1/nf-instances?target-nf-type=PCF&requester-nf-type=BSF&target-nf-set-id={}",
            utf8_percent_encode(set, NON_ALPHANUMERIC)
        );
        let answer = self.nrfs.send(Method::GET, &path, None).await?;
        if answer.status != StatusCode::OK {
            tracing::warn!(set, status = %answer.status, "the NRF does not tell of a PCF set");
            return None;
        }
        let found: Value = serde_json::from_slice(&answer.body).ok()?;
        let lives = found
            .get("nfInstances")
            .and_then(Value::as_array)
            .is_some_and(|found| !found.is_empty());
        let mut sets = self.sets.borrow_mut();
        if sets.len() >= most {
            sets.clear();
        }
        sets.insert(set.to_owned(), (now + remember, lives));
        Some(lives)
    }

    /// Stays subscribed to what changes of PCFs, or becomes so.
    pub(crate) async fn subscribe(
        &self,
        held: Option<&Subscription>,
        config: &Config,
    ) -> Option<Subscription> {
        let root = config.api_root.trim_end_matches('/');
        let data = json!({
            "nfStatusNotificationUri": format!("{root}{CALLBACK_PATH}"),
            "reqNfInstanceId": config.nf_instance_id,
            "reqNfType": "BSF",
            "subscrCond": {"nfType": "PCF"},
            "reqNotifEvents": ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"],
            "notifCondition": {"monitoredAttributes": ["/recoveryTime", "/nfSetRecoveryTimeList"]},
        });
        let validity = config.audit.subscription_validity.duration();
        self.nrfs.keep_subscribed(held, data, validity).await
    }

    /// Ends a subscription.
    pub(crate) async fn unsubscribe(&self, held: &Subscription) {
        self.nrfs.unsubscribe(held).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read() {
        let profile = json!({"recoveryTime": "1970-01-01T00:00:01.5Z",
            "nfSetRecoveryTimeList": {"set1": "1970-01-01T01:00:02+01:00", "set2": 7}});
        let expected = Pcf::Registered {
            recovery: Some(1_500_000),
            sets: vec![("set1".to_owned(), 2_000_000)],
        };
        assert_eq!(Pcf::of(&profile), expected);
        assert_eq!(micros("yesterday"), None);
    }
}
