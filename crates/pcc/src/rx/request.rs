//! AA-Request (TS 29.214 §5.6.1).

use diameter_proto::kind::{Enumerated, Unsigned32};
use diameter_proto::known::{self, VENDOR_3GPP, key};
use diameter_proto::{Avp, Fault, MessageRef, ResultCode};
use serde_json::{Value, json};

use super::{events, media};
use crate::avp::{self, push};
use crate::gx::Features;
use crate::json::{self, Object};
use crate::refusal::Refusal;

/// What this crate supports on Rx (TS 29.214 table 5.4.1.1): Rel8, Rel9, ProvAFsignalFlow, SponsoredConnectivity, Rel10, NetLoc (list 1),
/// PCSCF-Restoration-Enhancement (list 2).
pub const FEATURES: Features = Features {
    first: 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5,
    second: 1,
};

/// What an AAR is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// A session begins.
    Initial,
    /// A session changes.
    Update,
    /// P-CSCF restoration: the UE is to register again (TS 29.214 §4.4.7).
    Restoration,
}

/// An AAR as far as decisions need it.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// What Rx-Request-Type says; `None`: whether the Session-Id is known decides.
    pub kind: Option<RequestKind>,
    /// Session-Id.
    pub session: String,
    /// Supported-Features of 3GPP; `None`: the AF names none.
    pub features: Option<Features>,
    /// `AppSessionContextReqData`, without the members that only HTTP has (`notifUri`, `suppFeat`).
    pub document: Value,
}

impl Request {
    /// Reads an AAR.
    ///
    /// # Errors
    /// A [`Fault`] to answer with, where an AVP is missing or wrong.
    pub fn read(message: MessageRef<'_>) -> Result<Self, Fault> {
        let mut document = Object::new();
        avp::walk(message.walk(), |avp| {
            read_target(avp, &mut document)?;
            read_service(avp, &mut document)
        })?;
        Ok(Self {
            features: Features::read(message.walk())?,
            kind: match message.get(known::RX_REQUEST_TYPE)? {
                Some(0) => Some(RequestKind::Initial),
                Some(1) => Some(RequestKind::Update),
                Some(2) => Some(RequestKind::Restoration),
                _ => None,
            },
            session: message.require(known::SESSION_ID)?.to_owned(),
            document: Value::Object(document),
        })
    }

    /// Whether the request says whose session it is about.
    #[must_use]
    pub fn has_address(&self) -> bool {
        ["ueIpv4", "ueIpv6"]
            .iter()
            .any(|member| self.document.get(member).is_some())
    }
}

/// The answer to a refusal: an Experimental-Result of 3GPP (TS 29.214 §5.5).
#[must_use]
pub fn fault(refusal: &Refusal) -> Fault {
    Fault::new(ResultCode(refusal.cause.code()), refusal.to_string()).of_vendor(VENDOR_3GPP)
}

/// Whose session it is.
fn read_target(avp: &Avp<'_>, document: &mut Object) -> Result<(), Fault> {
    match avp.key() {
        key::SUBSCRIPTION_ID => avp::subscription_id(avp, document)?,
        key::FRAMED_IP_ADDRESS => {
            document.insert("ueIpv4".to_owned(), avp::ipv4(avp)?.into());
        }
        key::FRAMED_IPV6_PREFIX => {
            // N5 has an address where Rx has a prefix.
            let prefix = avp::ipv6_prefix(avp)?;
            let address = prefix.split('/').next().unwrap_or_default();
            document.insert("ueIpv6".to_owned(), address.into());
        }
        key::IP_DOMAIN_ID => {
            document.insert("ipDomain".to_owned(), avp::text(avp).into());
        }
        key::CALLED_STATION_ID => {
            json::put(document, "dnn", avp::network(avp)?);
        }
        _ => {}
    }
    Ok(())
}

/// What service it is.
fn read_service(avp: &Avp<'_>, document: &mut Object) -> Result<(), Fault> {
    match avp.key() {
        key::AF_APPLICATION_IDENTIFIER => {
            document.insert("afAppId".to_owned(), avp::text(avp).into());
        }
        key::AF_CHARGING_IDENTIFIER => {
            document.insert("afChargId".to_owned(), avp::text(avp).into());
        }
        key::MEDIA_COMPONENT_DESCRIPTION => {
            let (number, component) = media::component(avp)?;
            let all = json::object(document.entry("medComponents").or_insert_with(|| json!({})));
            if all.len() < avp::MAX_ITEMS {
                all.insert(number.to_string(), component);
            }
        }
        key::SERVICE_INFO_STATUS => {
            let preliminary = avp.read::<Enumerated>()? == 1;
            let status = if preliminary { "PRELIMINARY" } else { "FINAL" };
            document.insert("servInfStatus".to_owned(), status.into());
        }
        key::SPECIFIC_ACTION => {
            if let Some(event) = events::event(avp.read::<Enumerated>()?) {
                push(subscription(document), "events", json!({"event": event}));
            }
        }
        key::REQUIRED_ACCESS_INFO => {
            let name = avp::name(
                &[(0, "USER_LOCATION"), (1, "UE_TIME_ZONE")],
                avp.read::<Enumerated>()?,
            );
            if let Some(name) = name {
                push(subscription(document), "reqAnis", name.into());
            }
        }
        key::SERVICE_URN => {
            document.insert("servUrn".to_owned(), avp::text(avp).into());
        }
        key::MPS_IDENTIFIER => {
            document.insert("mpsId".to_owned(), avp::text(avp).into());
        }
        key::RESERVATION_PRIORITY => json::put(document, "resPrio", media::priority(avp)?),
        key::AF_REQUESTED_DATA if avp.read::<Unsigned32>()? & 1 != 0 => {
            document.insert("afReqData".to_owned(), "UE_IDENTITY".into());
        }
        key::SPONSORED_CONNECTIVITY_DATA => sponsor(avp, document)?,
        _ => {}
    }
    Ok(())
}

/// `EventsSubscReqData`, which begins with an empty list of events.
fn subscription(document: &mut Object) -> &mut Object {
    json::object(document.entry("evSubsc").or_insert_with(|| json!({"events": []})))
}

fn sponsor(avp: &Avp<'_>, document: &mut Object) -> Result<(), Fault> {
    let group = avp.group();
    json::put(document, "sponId", group.clone().get(known::SPONSOR_IDENTITY)?);
    let provider = group.clone().get(known::APPLICATION_SERVICE_PROVIDER_IDENTITY)?;
    json::put(document, "aspId", provider);
    if let Some(action) = group.clone().get(known::SPONSORING_ACTION)? {
        let status = if action == 0 {
            "SPONSOR_DISABLED"
        } else {
            "SPONSOR_ENABLED"
        };
        document.insert("sponStatus".to_owned(), status.into());
    }
    if let Some(units) = group.find(known::GRANTED_SERVICE_UNIT)? {
        let units = units.group();
        let mut threshold = Object::new();
        json::put(
            &mut threshold,
            "totalVolume",
            units.clone().get(known::CC_TOTAL_OCTETS)?,
        );
        json::put(
            &mut threshold,
            "uplinkVolume",
            units.clone().get(known::CC_INPUT_OCTETS)?,
        );
        json::put(
            &mut threshold,
            "downlinkVolume",
            units.clone().get(known::CC_OUTPUT_OCTETS)?,
        );
        json::put(&mut threshold, "duration", units.get(known::CC_TIME)?);
        subscription(document).insert("usgThres".to_owned(), Value::Object(threshold));
    }
    Ok(())
}
