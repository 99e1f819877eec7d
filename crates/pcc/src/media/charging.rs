//! Charging of a flow: rating, the AF's charging identifier, sponsored connectivity (TS 29.513 §7.3.2, TS 29.514 §4.2.2.5).

use serde_json::{Value, json};

use super::Rule;
use crate::json::{self, Object};
use crate::mapping::Mapping;
use crate::refusal::{Cause, Refusal};

/// What of a request is about charging.
pub(super) struct Charging<'a> {
    charging_id: Option<&'a str>,
    /// Sponsor and application service provider, where they pay.
    sponsor: Option<(&'a str, &'a str)>,
    /// The AF's threshold for reports of usage.
    threshold: Option<&'a Value>,
}

impl<'a> Charging<'a> {
    pub(super) fn read(request: &'a Value, mapping: &Mapping) -> Result<Self, Refusal> {
        let disabled = json::text(request, "sponStatus") == Some("SPONSOR_DISABLED");
        let sponsor = match (json::text(request, "sponId"), json::text(request, "aspId")) {
            _ if disabled => None,
            (Some(sponsor), Some(provider)) => Some((sponsor, provider)),
            (None, None) => None,
            (Some(_), None) => return Err(Refusal::invalid("/aspId", "aspId accompanies sponId")),
            (None, Some(_)) => return Err(Refusal::invalid("/sponId", "sponId accompanies aspId")),
        };
        if let Some((sponsor, _)) = sponsor
            && !mapping.sponsors.is_empty()
            && !mapping.sponsors.iter().any(|known| known == sponsor)
        {
            return Err(Refusal::new(
                Cause::UnauthorizedSponsoredDataConnectivity,
                "/sponId",
                format!("{sponsor:?} is not among the sponsors with an agreement"),
            ));
        }
        let events = request.get("evSubsc");
        Ok(Self {
            charging_id: json::text(request, "afChargId"),
            sponsor,
            threshold: events.and_then(|events| events.get("usgThres")),
        })
    }

    /// Identifier and content of `ChargingData`; none where nothing differs from the rest of the session.
    pub(super) fn data(&self, rule: &Rule<'_>) -> Option<(String, Value)> {
        let class = rule.class;
        if self.charging_id.is_none() && self.sponsor.is_none() && class.rating_group.is_none() {
            return None;
        }
        let mut data = Object::new();
        data.insert("chgId".to_owned(), rule.id.as_str().into());
        if let Some(group) = class.rating_group {
            data.insert("ratingGroup".to_owned(), group.into());
            data.insert("online".to_owned(), class.online.into());
            data.insert("offline".to_owned(), class.offline.into());
            data.insert("meteringMethod".to_owned(), "VOLUME".into());
        }
        if let Some((sponsor, provider)) = self.sponsor {
            data.insert("reportingLevel".to_owned(), "SPON_CON_LEVEL".into());
            data.insert("sponsorId".to_owned(), sponsor.into());
            data.insert("appSvcProvId".to_owned(), provider.into());
        }
        if let Some(id) = self.charging_id {
            // The number is for SMFs without feature AF_Charging_Identifier.
            if let Ok(number) = id.parse::<u32>() {
                data.insert("afChargingIdentifier".to_owned(), number.into());
            }
            data.insert("afChargId".to_owned(), id.into());
        }
        Some((rule.id.clone(), Value::Object(data)))
    }

    /// Usage monitoring for an AF that wants reports of it: one account for the session.
    pub(super) fn usage(&self, rule: &Rule<'_>) -> Option<(String, Value)> {
        let threshold = self.threshold?;
        if !crate::event::subscribes(rule.request, "USAGE_REPORT") {
            return None;
        }
        let session = crate::RuleId::parse(&rule.id)?.session.to_owned();
        let id = format!("af-{session}");
        let mut data = json!({"umId": id});
        let object = json::object(&mut data);
        for (from, to) in [
            ("totalVolume", "volumeThreshold"),
            ("uplinkVolume", "volumeThresholdUplink"),
            ("downlinkVolume", "volumeThresholdDownlink"),
            ("duration", "timeThreshold"),
        ] {
            json::put(object, to, threshold.get(from).cloned());
        }
        Some((id, data))
    }
}
