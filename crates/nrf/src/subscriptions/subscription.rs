//! One subscription: `SubscriptionData` (TS 29.510 §6.1.6.2.16), kept as it came.

use std::fmt;
use std::net::IpAddr;

use model::shape::rules;
use model::{ExtSnssai, NfInstanceId, NfProfile, NfType, PlmnId, PlmnIdNid};
use sbi::client::Origin;
use sbi::problem::{Cause, Problem};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::condition::Condition;
use super::shares::{Owner, network_of};
use crate::discovery::Requester;

/// Features of Nnrf_NFManagement that this NRF supports (TS 29.510 §6.1.9): none.
const FEATURES: &str = "0";

/// A subscription, ready to be matched.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// `subscriptionId`.
    pub id: String,
    /// `subscrCond`.
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
    /// The subscriber, whose attributes decide which profiles it may see.
    pub requester: Requester,
    /// `plmnId`, with `nid` beside it: NFs of this network.
    pub network: Option<PlmnIdNid>,
    /// `servingScope`: NFs that serve one of these areas; empty: any.
    pub scopes: Vec<String>,
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
    /// The callback URI.
    pub uri: http::Uri,
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
        // An invalid pointer would never match a change.
        for (name, list) in [
            ("monitoredAttributes", &monitored),
            ("unmonitoredAttributes", &unmonitored),
        ] {
            if let Some(at) = list.iter().position(|pointer| !pointer.starts_with('/')) {
                return Err(incorrect(
                    &format!("/notifCondition/{name}/{at}"),
                    "expected a JSON pointer such as /priority",
                ));
            }
        }
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
            fqdn: host(&field("reqNfFqdn"), "/reqNfFqdn")?,
            plmns: member(&field("reqPlmnList"), "/reqPlmnList")?.unwrap_or_default(),
            snpns: member(&field("reqSnpnList"), "/reqSnpnList")?.unwrap_or_default(),
            slices: member::<Vec<ExtSnssai>>(&field("reqSnssais"), "/reqSnssais")?.unwrap_or_default(),
            plmn_slices: member(&field("reqPerPlmnSnssais"), "/reqPerPlmnSnssais")?.unwrap_or_default(),
        };
        let events: Vec<String> = member(&field("reqNotifEvents"), "/reqNotifEvents")?.unwrap_or_default();
        check_events(&events)?;
        let nid = member::<model::plmn::Nid>(&field("nid"), "/nid")?;
        let network = member::<PlmnId>(&field("plmnId"), "/plmnId")?.map(|plmn| PlmnIdNid { plmn, nid });
        let scopes = member(&field("servingScope"), "/servingScope")?.unwrap_or_default();
        document.insert("subscriptionId".into(), id.into());
        // `writeOnly`; what it asks is answered beside.
        if document.remove("requesterFeatures").is_some() {
            document.insert("nrfSupportedFeatures".into(), FEATURES.into());
        }
        let mut subscription = Self {
            id: id.to_owned(),
            condition,
            events,
            monitored,
            unmonitored,
            valid_until,
            target,
            requester,
            network,
            scopes,
            source: None,
            document,
        };
        subscription.extend(valid_until);
        Ok(subscription)
    }

    /// Returns the owner, for the share of the subscriber.
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

    /// Whether the profile matches the subscription and the subscriber may see it.
    #[must_use]
    pub fn concerns(&self, profile: &NfProfile) -> bool {
        let network_fits = self.network.is_none_or(|network| match network.nid {
            Some(_) => profile.snpn_list.contains(&network),
            None => profile.plmn_list.is_empty() || profile.plmn_list.contains(&network.plmn),
        });
        let scope_fits = self.scopes.is_empty()
            || profile
                .serving_scope
                .iter()
                .any(|scope| self.scopes.contains(scope));
        // As for discovery: what services say of their consumers prevails; the profile decides where there are none. An SCP
        // relays for consumers of every type and judges each by the profile, which it may retrieve (TS 29.510 §5.2.2.9,
        // TS 29.500 §6.10).
        let mut services = profile.services().peekable();
        let may_see = match services.peek() {
            _ if self.requester.nf_type == Some(NfType::Scp) => true,
            Some(_) => services.any(|service| self.requester.may_use_service(profile, service)),
            None => self.requester.may_use_profile(profile),
        };
        network_fits && scope_fits && may_see && self.condition.holds(profile)
    }

    /// Whether an event is asked for.
    #[must_use]
    pub fn wants(&self, event: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|wanted| wanted == event)
    }

    /// Whether changes at these JSON pointers are asked for (`notifCondition`, TS 29.510 §6.1.6.2.43).
    #[must_use]
    pub fn wants_changes(&self, changed: &[String]) -> bool {
        let under = |pointer: &str, list: &[String]| {
            let pointer = steps(pointer);
            list.iter().any(|attribute| {
                let attribute = steps(attribute);
                let shared = pointer.len().min(attribute.len());
                pointer[..shared] == attribute[..shared]
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

/// The steps of a JSON pointer to an attribute, without those that choose one of several items: an attribute means that of
/// each item (TS 29.510 §6.1.6.2.16 note 5), and services are the same in `nfServices` and `nfServiceList`.
fn steps(pointer: &str) -> Vec<&str> {
    let mut steps: Vec<&str> = pointer.split('/').skip(1).collect();
    if matches!(steps.first(), Some(&("nfServices" | "nfServiceList"))) {
        steps[0] = "nfServices";
        if steps.len() > 1 {
            steps.remove(1);
        }
    }
    steps.retain(|step| step.is_empty() || !step.bytes().all(|byte| byte.is_ascii_digit()));
    steps
}

impl Target {
    /// Reads a callback URI; it may have no path.
    ///
    /// # Errors
    /// When it is not an absolute http or https URI.
    pub fn parse(uri: &Value) -> Result<Self, Problem> {
        let place = "/nfStatusNotificationUri";
        let expected = "expected an absolute http or https URI";
        let text = uri.as_str().ok_or_else(|| incorrect(place, expected))?;
        let uri: http::Uri = text.parse().map_err(|_| incorrect(place, expected))?;
        let origin = Origin::of_uri(&uri).map_err(|_| incorrect(place, expected))?;
        Ok(Self { origin, uri })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
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

/// A name of a host, which need not be fully qualified.
fn host(value: &Value, place: &str) -> Result<Option<String>, Problem> {
    let name: Option<String> = member(value, place)?;
    let sound = |name: &String| rules::with_host_names(true, || rules::fqdn(name));
    name.as_ref()
        .map_or(Ok(()), sound)
        .map_err(|expected| incorrect(place, &expected))?;
    Ok(name)
}

/// Refuses a subscription without an event that this NRF supports, because it would never be notified. Events of later
/// releases beside known ones are ignored (TS 29.500 §6.6.3).
fn check_events(events: &[String]) -> Result<(), Problem> {
    const KNOWN: [&str; 3] = ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"];
    match events.is_empty() || events.iter().any(|event| KNOWN.contains(&&**event)) {
        true => Ok(()),
        false => Err(incorrect(
            "/reqNotifEvents",
            &format!("expected one of {}", KNOWN.join(", ")),
        )),
    }
}

/// Of the members of `SubscriptionData` only the URI is mandatory (TS 29.510 table 6.1.6.2.16-1).
fn incorrect(place: &str, expected: &str) -> Problem {
    let cause = match place {
        "" | "/nfStatusNotificationUri" => Cause::MandatoryIeIncorrect,
        _ => Cause::OptionalIeIncorrect,
    };
    Problem::new(cause)
        .detail(format!("invalid subscription: {place}: {expected}"))
        .invalid_param(place, expected)
}
