use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use sbi::name::LOCATION;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::nrfs::{Answer, Nrfs};
use crate::path_of;

/// A subscription that an NRF holds (TS 29.510 §5.2.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    path: String,
    renew: Instant,
}

/// How soon a renewal is tried again that no NRF answered.
const RETRY: Duration = Duration::from_secs(5);

/// What came of a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The NRF renewed it.
    Renewed(Subscription),
    /// The NRF does not hold it (404).
    Unknown,
    /// The NRF refused the renewal; it may still hold the subscription.
    Refused,
    /// No NRF answered; they may still hold the subscription.
    Unanswered,
}

impl Subscription {
    /// When the function has to renew it: with a third of its validity left.
    #[must_use]
    pub const fn renew_at(&self) -> Instant {
        self.renew
    }

    fn new(path: String, answer: &[u8], wanted: Duration) -> Self {
        let life = validity(answer).unwrap_or(wanted);
        Self {
            path,
            // At least 1 s, so that a clock difference does not cause a loop of renewals.
            renew: Instant::now() + (life * 2 / 3).max(Duration::from_secs(1)),
        }
    }
}

impl Nrfs {
    /// Renews a subscription; without one, or when the NRF refuses the renewal, creates one with this `SubscriptionData`
    /// and ends the old one, so that no change is notified twice. While no NRF answers, the old one stays, to be renewed
    /// again soon. `None` when there is none and no NRF answers, or it refuses.
    pub async fn keep_subscribed(
        &self,
        held: Option<&Subscription>,
        data: Value,
        wanted: Duration,
    ) -> Option<Subscription> {
        let Some(held) = held else {
            return self.subscribe(data, wanted).await;
        };
        match self.renew(held, wanted).await {
            Renewal::Renewed(renewed) => Some(renewed),
            Renewal::Unanswered => Some(Subscription {
                path: held.path.clone(),
                renew: Instant::now() + RETRY,
            }),
            Renewal::Unknown => self.subscribe(data, wanted).await,
            Renewal::Refused => {
                let made = self.subscribe(data, wanted).await?;
                if made.path != held.path {
                    self.unsubscribe(held).await;
                }
                Some(made)
            }
        }
    }

    /// Subscribes with this `SubscriptionData`, valid for the wanted time or as long as the NRF allows; `None` when
    /// no NRF answers or it refuses.
    pub async fn subscribe(&self, mut data: Value, wanted: Duration) -> Option<Subscription> {
        data["validityTime"] = time_after(wanted)?.into();
        let body = Some(("application/json", Bytes::from(data.to_string())));
        let answer = self
            .send(Method::POST, "/nnrf-nfm/v1/subscriptions", body)
            .await?;
        let Answer {
            status,
            headers,
            body,
        } = answer;
        if status != StatusCode::CREATED {
            let problem = String::from_utf8_lossy(&body[..body.len().min(300)]);
            tracing::warn!(condition = %data["subscrCond"], %status, %problem, "the NRF refused a subscription");
            return None;
        }
        let located = headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let path = located.and_then(path_of).or_else(|| {
            let created: Value = serde_json::from_slice(&body).ok()?;
            let id = created["subscriptionId"].as_str()?;
            Some(format!("/nnrf-nfm/v1/subscriptions/{id}"))
        })?;
        Some(Subscription::new(path, &body, wanted))
    }

    /// Renews a subscription (TS 29.510 §5.2.2.5.6).
    pub async fn renew(&self, subscription: &Subscription, wanted: Duration) -> Renewal {
        let Some(until) = time_after(wanted) else {
            return Renewal::Refused;
        };
        let patch = json!([{"op": "replace", "path": "/validityTime", "value": until}]);
        let body = Some((sbi::json::JSON_PATCH, Bytes::from(patch.to_string())));
        match self.send(Method::PATCH, &subscription.path, body).await {
            Some(answer) if answer.status.is_success() => {
                let path = subscription.path.clone();
                Renewal::Renewed(Subscription::new(path, &answer.body, wanted))
            }
            Some(answer) if answer.status == StatusCode::NOT_FOUND => Renewal::Unknown,
            Some(_) => Renewal::Refused,
            None => Renewal::Unanswered,
        }
    }

    /// Ends a subscription (TS 29.510 §5.2.2.7).
    pub async fn unsubscribe(&self, subscription: &Subscription) {
        let _ = self.send(Method::DELETE, &subscription.path, None).await;
    }
}

/// Remaining validity of a subscription by the `validityTime` of the answer.
fn validity(subscription: &[u8]) -> Option<Duration> {
    let data: Value = serde_json::from_slice(subscription).ok()?;
    let until = OffsetDateTime::parse(data["validityTime"].as_str()?, &Rfc3339).ok()?;
    // An expired subscription has no validity left, so the function renews it at once.
    Some(Duration::try_from(until - OffsetDateTime::now_utc()).unwrap_or_default())
}

/// The DateTime (TS 29.571 §5.2.2) that is `wanted` later than now.
fn time_after(wanted: Duration) -> Option<String> {
    (OffsetDateTime::now_utc() + wanted).format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validity_time_of_the_answer_counts() {
        let hour = Duration::from_secs(3_600);
        let answer = json!({"validityTime": time_after(hour).unwrap()}).to_string();
        let life = validity(answer.as_bytes()).unwrap();
        assert!(life <= hour && life > hour - Duration::from_secs(60), "{life:?}");
        assert_eq!(
            validity(br#"{"validityTime": "2001-01-01T00:00:00Z"}"#),
            Some(Duration::ZERO)
        );
        for none in ["{}", "", r#"{"validityTime": "soon"}"#] {
            assert_eq!(validity(none.as_bytes()), None, "{none}");
        }
    }
}
