//! One subscription: `SubscriptionData` (TS 29.510 §6.1.6.2.16), kept as it came.

use std::fmt;
use std::net::IpAddr;

use model::{ExtSnssai, NfInstanceId, NfProfile, NfType, PlmnId};
use sbi::client::Origin;
use sbi::problem::{Cause, Problem};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::condition::Condition;
use super::shares::{Owner, network_of};
use crate::discovery::Requester;

/// A subscription, ready to be matched.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// `subscriptionId`.
    pub id: String,
    /// What it is about.
    pub condition: Condition,
    /// `reqNotifEvents`; empty: all.
    pub events: Vec<String>,
    /// `notifCondition.monitoredAttributes`: only changes of these.
    pub monitored: Vec<String>,
    /// `notifCondition.unmonitoredAttributes`: not changes of only these.
    pub unmonitored: Vec<String>,
    /// Until when it lasts.
    pub valid_until: OffsetDateTime,
    /// Where notifications go.
    pub target: Target,
    /// Who subscribed, for what it may see.
    pub requester: Requester,
    /// `plmnId`: NFs of this network.
    pub plmn: Option<PlmnId>,
    /// Where the request came from that made it; `None` when that is not known.
    pub source: Option<IpAddr>,
    /// As it was sent and accepted.
    pub document: Map<String, Value>,
}

/// Where notifications go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Scheme and authority.
    pub origin: Origin,
    /// Path and query; `/` where the URI has none.
    pub path: String,
}

impl Subscription {
    /// Reads a subscription as it was sent; `id` and `valid_until` are the NRF's.
    ///
    /// # Errors
    /// What is wrong, with its JSON pointer.
    pub fn parse(document: Value, id: &str, valid_until: OffsetDateTime) -> Result<Self, Problem> {
        let Value::Object(mut document) = document else {
            return Err(incorrect("", "expected an object"));
        };
        let Some(uri) = document.get("nfStatusNotificationUri") else {
            return Err(Problem::new(Cause::MandatoryIeMissing)
                .invalid_param("/nfStatusNotificationUri", "mandatory: where notifications go"));
        };
        let target = Target::parse(uri)?;
        let condition = match document.get("subscrCond") {
            None => Condition::Everything,
            Some(cond) => Condition::parse(cond).map_err(|(place, expected)| incorrect(&place, &expected))?,
        };
        let notif = document.get("notifCondition").cloned().unwrap_or_default();
        let notif = member::<Map<String, Value>>(&notif, "/notifCondition")?.unwrap_or_default();
        let pointers = |name: &str| -> Result<Vec<String>, Problem> {
            let value = notif.get(name).cloned().unwrap_or_default();
            Ok(member(&value, &format!("/notifCondition/{name}"))?.unwrap_or_default())
        };
        let (monitored, unmonitored) = (
            pointers("monitoredAttributes")?,
            pointers("unmonitoredAttributes")?,
        );
        if !monitored.is_empty() && !unmonitored.is_empty() {
            return Err(incorrect(
                "/notifCondition",
                "expected either monitored or unmonitored attributes",
            ));
        }
        let field = |name: &str| document.get(name).cloned().unwrap_or_default();
        let requester = Requester {
            nf_type: member::<NfType>(&field("reqNfType"), "/reqNfType")?,
            instance: member::<NfInstanceId>(&field("reqNfInstanceId"), "/reqNfInstanceId")?,
            fqdn: member(&field("reqNfFqdn"), "/reqNfFqdn")?,
            plmns: member(&field("reqPlmnList"), "/reqPlmnList")?.unwrap_or_default(),
            snpns: member(&field("reqSnpnList"), "/reqSnpnList")?.unwrap_or_default(),
            slices: member::<Vec<ExtSnssai>>(&field("reqSnssais"), "/reqSnssais")?.unwrap_or_default(),
            plmn_slices: member(&field("reqPerPlmnSnssais"), "/reqPerPlmnSnssais")?.unwrap_or_default(),
        };
        let events = member(&field("reqNotifEvents"), "/reqNotifEvents")?.unwrap_or_default();
        let plmn = member(&field("plmnId"), "/plmnId")?;
        document.insert("subscriptionId".into(), id.into());
        let mut subscription = Self {
            id: id.to_owned(),
            condition,
            events,
            monitored,
            unmonitored,
            valid_until,
            target,
            requester,
            plmn,
            source: None,
            document,
        };
        subscription.extend(valid_until);
        Ok(subscription)
    }

    /// Whose it is, for the share of a subscriber.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner {
            instance: self.requester.instance,
            source: self.source.map(network_of),
        }
    }

    /// Sets until when it lasts.
    pub fn extend(&mut self, valid_until: OffsetDateTime) {
        self.valid_until = valid_until;
        // RFC 3339 prints every year from 0 to 9999; the validity is bounded to far less.
        let text = valid_until.format(&Rfc3339).unwrap_or_default();
        self.document.insert("validityTime".into(), text.into());
    }

    /// Whether the subscriber may see this profile and asked about it.
    #[must_use]
    pub fn concerns(&self, profile: &NfProfile) -> bool {
        let network_fits = self
            .plmn
            .is_none_or(|plmn| profile.plmn_list.is_empty() || profile.plmn_list.contains(&plmn));
        // Who does not say its type is held to be of none, which only closed lists keep out.
        network_fits && self.condition.holds(profile) && self.requester.may_use(&profile.allowed)
    }

    /// Whether an event is asked for.
    #[must_use]
    pub fn wants(&self, event: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|wanted| wanted == event)
    }

    /// Whether changes at these JSON pointers are asked for (`notifCondition`).
    #[must_use]
    pub fn wants_changes(&self, changed: &[String]) -> bool {
        let under = |pointer: &String, list: &[String]| {
            list.iter().any(|attribute| {
                pointer == attribute
                    || pointer
                        .strip_prefix(attribute.as_str())
                        .is_some_and(|rest| rest.starts_with('/'))
                    || attribute
                        .strip_prefix(pointer.as_str())
                        .is_some_and(|rest| rest.starts_with('/'))
            })
        };
        if !self.monitored.is_empty() {
            changed.iter().any(|pointer| under(pointer, &self.monitored))
        } else if !self.unmonitored.is_empty() {
            changed.iter().any(|pointer| !under(pointer, &self.unmonitored))
        } else {
            true
        }
    }
}

impl Target {
    /// Reads a callback URI; one without a path is as good as any.
    ///
    /// # Errors
    /// When it is not an absolute http or https URI.
    pub fn parse(uri: &Value) -> Result<Self, Problem> {
        let place = "/nfStatusNotificationUri";
        let expected = "expected an absolute http or https URI";
        let text = uri.as_str().ok_or_else(|| incorrect(place, expected))?;
        let uri: http::Uri = text.parse().map_err(|_| incorrect(place, expected))?;
        let origin = Origin::of_uri(&uri).map_err(|_| incorrect(place, expected))?;
        let path = uri
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
            .to_owned();
        Ok(Self { origin, path })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

fn member<T: serde::de::DeserializeOwned>(value: &Value, place: &str) -> Result<Option<T>, Problem> {
    if value.is_null() {
        return Ok(None);
    }
    T::deserialize(value)
        .map(Some)
        .map_err(|error| incorrect(place, &error.to_string()))
}

fn incorrect(place: &str, expected: &str) -> Problem {
    Problem::new(Cause::MandatoryIeIncorrect)
        .detail(format!("the subscription cannot be used: {place}: {expected}"))
        .invalid_param(place, expected)
}
