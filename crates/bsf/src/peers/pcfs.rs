//! What the NRF knows of PCFs: whether they are registered, and since when they run (TS 29.510 §6.1.6.2.2).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bounded::{Cache, Limits};
use http::{Method, StatusCode};
use nrf_client::{Nrfs, Subscription, instance_path};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config::Config;

/// Where the NRF notifies of PCFs (`NFStatusNotify`).
pub(crate) const CALLBACK_PATH: &str = "/signalbox-bsf/v1/nf-status-notify";

/// The NRF has notified that a PCF was registered, changed or deregistered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
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

/// How far the clock of a PCF may be ahead of this one.
const AHEAD: Duration = Duration::from_secs(300);

impl Pcf {
    /// What a profile says at `now`, in microseconds since 1970. A time in the future is no time at which a PCF has
    /// restarted: a clock or a year is wrong, and each binding of the PCF, old or new, would be taken for lost.
    fn of(id: &str, profile: &Value, now: u64) -> Self {
        let latest = now.saturating_add(u64::try_from(AHEAD.as_micros()).unwrap_or(u64::MAX));
        let micros = |text: &str| {
            let time = micros(text)?;
            if time > latest {
                tracing::warn!(
                    id,
                    time = text,
                    "a recovery time of a PCF is in the future, and is ignored"
                );
            }
            (time <= latest).then_some(time)
        };
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

/// Answers of the NRF, each until it expires.
pub(crate) struct Pcfs {
    nrfs: Rc<Nrfs>,
    known: RefCell<Cache<String, (Instant, Rc<Pcf>)>>,
    sets: RefCell<Cache<String, (Instant, bool)>>,
}

impl Pcfs {
    pub(crate) fn new(nrfs: Rc<Nrfs>) -> Self {
        Self {
            nrfs,
            known: RefCell::new(Cache::new(Limits::entries(0))),
            sets: RefCell::new(Cache::new(Limits::entries(0))),
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
        if let Some((_, pcf)) = self.known.borrow().get_if(id, |(until, _)| *until > now) {
            return Some((pcf.clone(), false));
        }
        let answer = self.nrfs.send(Method::GET, &instance_path(id), None).await?;
        let pcf = match answer.status {
            StatusCode::OK => {
                let profile = serde_json::from_slice(&answer.body).ok()?;
                Pcf::of(id, &profile, store::Clock::default().micros())
            }
            StatusCode::NOT_FOUND => Pcf::Gone,
            status => {
                tracing::warn!(id, %status, "the NRF refused a query for a PCF");
                return None;
            }
        };
        let pcf = Rc::new(pcf);
        let mut known = self.known.borrow_mut();
        known.set_limits(Limits::entries(most));
        known.insert(id.to_owned(), (now + remember, pcf.clone()));
        Some((pcf, true))
    }

    /// Whether any PCF of a set is registered; `None` when no NRF answers.
    pub(crate) async fn set_lives(&self, set: &str, remember: Duration, most: usize) -> Option<bool> {
        let now = Instant::now();
        if let Some((_, lives)) = self.sets.borrow().get_if(set, |(until, _)| *until > now) {
            return Some(*lives);
        }
        let path = format!(
            "/nnrf-disc/v1/nf-instances?target-nf-type=PCF&requester-nf-type=BSF&target-nf-set-id={}",
            utf8_percent_encode(set, NON_ALPHANUMERIC)
        );
        let answer = self.nrfs.send(Method::GET, &path, None).await?;
        if answer.status != StatusCode::OK {
            tracing::warn!(set, status = %answer.status, "the NRF refused a query for a PCF set");
            return None;
        }
        let found: Value = serde_json::from_slice(&answer.body).ok()?;
        let lives = found
            .get("nfInstances")
            .and_then(Value::as_array)
            .is_some_and(|found| !found.is_empty());
        let mut sets = self.sets.borrow_mut();
        sets.set_limits(Limits::entries(most));
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
        assert_eq!(Pcf::of("pcf", &profile, 2_000_000), expected);
        assert_eq!(micros("yesterday"), None);
        let wrong = json!({"recoveryTime": "2100-01-01T00:00:00Z",
            "nfSetRecoveryTimeList": {"set1": "2100-01-01T00:00:00Z", "set2": "1970-01-01T00:04:00Z"}});
        let expected = Pcf::Registered {
            recovery: None,
            sets: vec![("set2".to_owned(), 240_000_000)],
        };
        assert_eq!(
            Pcf::of("pcf", &wrong, 2_000_000),
            expected,
            "minutes ahead are a clock, years are not"
        );
    }
}
