//! Credit-Control-Request (TS 29.212 §5.6.2).

use diameter_proto::known::{self, VENDOR_3GPP, key};
use diameter_proto::{Avp, Avps, Fault, MessageRef, ResultCode};
use serde_json::{Value, json};

use super::features::Features;
use super::report;
use crate::avp;
use crate::json::{self, Object};

/// DIAMETER_ERROR_INITIAL_PARAMETERS (TS 29.212 §5.5.3).
const INITIAL_PARAMETERS: u32 = 5140;

/// What a CCR is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// CCR-I: the session begins.
    Initial,
    /// CCR-U: something has changed.
    Update,
    /// CCR-T: the session ends.
    Termination,
}

impl RequestKind {
    /// CC-Request-Type.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Initial => 1,
            Self::Update => 2,
            Self::Termination => 3,
        }
    }
}

/// A CCR as far as decisions need it.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// What it is for.
    pub kind: RequestKind,
    /// CC-Request-Number.
    pub number: u32,
    /// Session-Id.
    pub session: String,
    /// Supported-Features of 3GPP; `None`: the PCEF names none.
    pub features: Option<Features>,
    /// `SmPolicyContextData`, `SmPolicyUpdateContextData` or `SmPolicyDeleteData`.
    pub document: Value,
}

impl Request {
    /// Reads a CCR.
    ///
    /// # Errors
    /// A [`Fault`] to answer with: `DIAMETER_MISSING_AVP`, `DIAMETER_INVALID_AVP_VALUE`, and for a CCR-I that does not
    /// name a network `DIAMETER_ERROR_INITIAL_PARAMETERS` (TS 29.212 §4.5.1).
    pub fn read(message: MessageRef<'_>) -> Result<Self, Fault> {
        let kind = match message.require(known::CC_REQUEST_TYPE)? {
            1 => RequestKind::Initial,
            2 => RequestKind::Update,
            3 => RequestKind::Termination,
            _ => {
                let avp = message.avps().find(known::CC_REQUEST_TYPE)?;
                let fault = Fault::new(
                    ResultCode::INVALID_AVP_VALUE,
                    "CC-Request-Type is INITIAL_REQUEST, UPDATE_REQUEST or TERMINATION_REQUEST on Gx",
                );
                return Err(match avp {
                    Some(avp) => fault.about(avp.padded()),
                    None => fault,
                });
            }
        };
        let mut document = Object::new();
        avp::walk(message.walk(), |avp| read_session(avp, &mut document))?;
        report::read(message.walk(), &mut document, kind)?;
        if kind == RequestKind::Initial {
            if !document.contains_key("dnn") {
                return Err(initial_parameters("Called-Station-Id"));
            }
            add_session_type(&mut document);
        } else {
            release_addresses(message.walk(), &mut document)?;
        }
        Ok(Self {
            kind,
            number: message.require(known::CC_REQUEST_NUMBER)?,
            session: message.require(known::SESSION_ID)?.to_owned(),
            features: Features::read(message.walk())?,
            document: Value::Object(document),
        })
    }

    /// Refuses a CCR-I that names no subscriber by an identity that can be one, as most sessions have to (TS 29.212 §4.5.1).
    ///
    /// # Errors
    /// `DIAMETER_ERROR_INITIAL_PARAMETERS`.
    pub fn require_subscriber(&self) -> Result<(), Fault> {
        match ["supi", "gpsi"]
            .iter()
            .any(|member| self.document.get(member).is_some())
        {
            true => Ok(()),
            false => Err(initial_parameters("Subscription-Id")),
        }
    }
}

/// UE_IP_ADDRESS_RELEASE (TS 29.212 §5.3.7): the address that comes with it is the session's no more. With UE_IP_ADDRESS_ALLOCATE
/// beside it, the address is the new one.
fn release_addresses(avps: Avps<'_>, document: &mut Object) -> Result<(), Fault> {
    const ALLOCATE: i32 = 18;
    const RELEASE: i32 = 19;
    let (mut allocates, mut releases) = (false, false);
    avp::walk(avps, |avp| {
        let mut note = |avp: &Avp<'_>| {
            if avp.is(known::EVENT_TRIGGER) {
                let event = avp.read::<diameter_proto::kind::Enumerated>()?;
                allocates |= event == ALLOCATE;
                releases |= event == RELEASE;
            }
            Ok(())
        };
        match avp.is(known::EVENT_REPORT_INDICATION) {
            true => avp::walk(avp.group(), note),
            false => note(avp),
        }
    })?;
    if releases && !allocates {
        for (member, released) in [
            ("ipv4Address", "relIpv4Address"),
            ("ipv6AddressPrefix", "relIpv6AddressPrefix"),
        ] {
            if let Some(address) = document.shift_remove(member) {
                document.insert(released.to_owned(), address);
            }
        }
    }
    Ok(())
}

/// Who the session is for and with which network.
fn read_session(avp: &Avp<'_>, document: &mut Object) -> Result<(), Fault> {
    match avp.key() {
        key::SUBSCRIPTION_ID => avp::subscription_id(avp, document)?,
        key::CALLED_STATION_ID => {
            json::put(document, "dnn", avp::network(avp)?);
        }
        key::FRAMED_IP_ADDRESS => {
            document.insert("ipv4Address".to_owned(), avp::ipv4(avp)?.into());
        }
        key::FRAMED_IPV6_PREFIX => {
            document.insert("ipv6AddressPrefix".to_owned(), avp::ipv6_prefix(avp)?.into());
        }
        key::TDF_INFORMATION => {
            let mut tdf = Object::new();
            for (member, tag) in [
                ("host", known::TDF_DESTINATION_HOST),
                ("realm", known::TDF_DESTINATION_REALM),
            ] {
                json::put(&mut tdf, member, avp.group().get(tag)?);
            }
            let gx = document.entry("gx").or_insert_with(|| json!({}));
            json::object(gx).insert("tdf".to_owned(), Value::Object(tdf));
        }
        key::USER_EQUIPMENT_INFO => {
            if let Some(pei) = pei(avp)? {
                document.insert("pei".to_owned(), pei.into());
            }
        }
        key::ONLINE | key::OFFLINE => {
            let member = if avp.key() == key::ONLINE {
                "online"
            } else {
                "offline"
            };
            let on = avp.read::<diameter_proto::kind::Enumerated>()? == 1;
            document.insert(member.to_owned(), on.into());
        }
        _ => {}
    }
    Ok(())
}

/// `Pei` of a User-Equipment-Info (RFC 8506 §8.49); 3GPP has IMEI and IMEISV alone.
fn pei(avp: &Avp<'_>) -> Result<Option<String>, Fault> {
    let group = avp.group();
    let kind = group.clone().require(known::USER_EQUIPMENT_INFO_TYPE)?;
    let value = group.require(known::USER_EQUIPMENT_INFO_VALUE)?;
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    // Text by TS 29.212 §5.4; some PCEFs send the digits in TBCD.
    let text = match value {
        text if digits(text) && (14..=16).contains(&text.len()) => String::from_utf8_lossy(text).into_owned(),
        packed if packed.len() == 8 => packed
            .iter()
            .flat_map(|byte| [byte & 15, byte >> 4])
            .filter(|digit| *digit < 10)
            .map(|digit| char::from(b'0' + digit))
            .collect(),
        _ => return Ok(None),
    };
    let prefix = if text.len() == 16 { "imeisv" } else { "imei" };
    Ok((kind == 0).then(|| format!("{prefix}-{text}")))
}

/// DIAMETER_ERROR_INITIAL_PARAMETERS, for what a CCR-I lacks.
fn initial_parameters(missing: &str) -> Fault {
    let reason = format!("a CCR that begins a session has a usable {missing}");
    Fault::new(ResultCode(INITIAL_PARAMETERS), reason).of_vendor(VENDOR_3GPP)
}

fn add_session_type(document: &mut Object) {
    let kind = match (
        document.contains_key("ipv4Address"),
        document.contains_key("ipv6AddressPrefix"),
    ) {
        (true, true) => "IPV4V6",
        (false, true) => "IPV6",
        (true, false) => "IPV4",
        (false, false) => "UNSTRUCTURED",
    };
    document.insert("pduSessionType".to_owned(), json!(kind));
}
