//! T6a and T6b (TS 29.128 §5.6, §6): data of devices, and their connections.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diameter::proto::kind::TimeValue;
use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpWriter, CommandFlags, Fault, Message, MessageMut, ResultCode};

use crate::config::Diameter;
use crate::identity;
use crate::record::Connection;
use crate::s6t;

/// DIAMETER_ERROR_INVALID_EPS_BEARER (TS 29.128 §6.3.3).
pub(crate) const INVALID_BEARER: u32 = 5651;
/// DIAMETER_ERROR_NIDD_CONFIGURATION_NOT_AVAILABLE.
pub(crate) const NOT_CONFIGURED: u32 = 5652;
/// DIAMETER_ERROR_USER_TEMPORARILY_UNREACHABLE.
pub(crate) const TEMPORARILY_UNREACHABLE: u32 = 5653;

/// CONNECTION_RELEASE of Connection-Action (TS 29.128 §6.4.18).
const RELEASE: u32 = 1;

/// Octets of an APN at most (TS 23.003 §9.1).
const LONGEST_APN: usize = 100;

/// What a CMR does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Establish,
    Release,
    Update,
}

/// What MME and SGSN say of a device and its connection.
#[derive(Debug)]
pub(crate) struct Bearer {
    pub(crate) imsi: String,
    /// In Base64.
    pub(crate) id: String,
}

/// The device and the connection that a request of an MME or SGSN is about.
pub(crate) fn bearer(message: &Message) -> Result<Bearer, Fault> {
    let user = message.require(known::USER_IDENTIFIER)?;
    let imsi = identity::imsi(user)?.ok_or_else(|| {
        Fault::new(
            ResultCode(5001),
            "User-Identifier has no User-Name with an IMSI, by which connections are known here",
        )
        .of_vendor(known::VENDOR_3GPP)
    })?;
    let id = message.require(known::BEARER_IDENTIFIER)?;
    // An EPS bearer identity is an octet; an identifier that no key holds is none.
    if id.is_empty() || id.len() > 64 {
        return Err(Fault::new(
            ResultCode::INVALID_AVP_LENGTH,
            "Bearer-Identifier has 1 to 64 octets",
        ));
    }
    Ok(Bearer {
        imsi,
        id: STANDARD.encode(id),
    })
}

/// Service-Selection of a CMR: an APN has at most 100 octets of ASCII (TS 23.003 §9.1).
pub(crate) fn apn(message: &Message) -> Result<Option<&str>, Fault> {
    let apn = message.get(known::SERVICE_SELECTION)?;
    if apn.is_none_or(|apn| apn.len() <= LONGEST_APN && apn.is_ascii()) {
        return Ok(apn);
    }
    let reason = "Service-Selection is an APN of at most 100 octets of ASCII";
    Err(Fault::new(ResultCode::INVALID_AVP_VALUE, reason))
}

/// Connection-Action of a CMR; without one it is an update.
pub(crate) fn action(message: &Message) -> Result<Action, Fault> {
    match message.get(known::CONNECTION_ACTION)? {
        Some(0) => Ok(Action::Establish),
        Some(RELEASE) => Ok(Action::Release),
        Some(2) | None => Ok(Action::Update),
        Some(_) => Err(Fault::new(
            ResultCode::INVALID_AVP_VALUE,
            "Connection-Action is 0, 1 or 2",
        )),
    }
}

/// The AVPs behind Session-Id that have a fixed position.
fn put_bearer(out: &mut AvpWriter, connection: &Connection) {
    let bearer = STANDARD.decode(&connection.bearer).unwrap_or_default();
    out.group(known::USER_IDENTIFIER, |group| {
        group.put(known::USER_NAME, &connection.imsi);
    });
    out.put(known::BEARER_IDENTIFIER, &bearer);
}

/// A TDR as it is sent.
pub(crate) struct MtData<'a> {
    pub(crate) connection: &'a Connection,
    /// Session-Id and End-to-End Identifier.
    pub(crate) sent: &'a (String, u32),
    /// Whether it was sent before.
    pub(crate) again: bool,
    pub(crate) data: &'a [u8],
    /// How long the answer is awaited.
    pub(crate) wait: Duration,
    /// Until when the data may be sent again, in microseconds since 1970; `None`: it is not buffered.
    pub(crate) until: Option<u64>,
}

/// TDR: data for a device (TS 29.128 §6.2.9).
pub(crate) fn mt_data(settings: &Diameter, data: &MtData<'_>) -> Option<MessageMut> {
    let to = (Some(&*data.connection.host), &*data.connection.realm);
    let (session, end_to_end) = data.sent;
    let which = (command::MT_DATA, application::T6A);
    let mut request = s6t::begin(settings, which, session, to, |out| {
        put_bearer(out, data.connection);
    });
    let wait = TimeValue::from_system_time(SystemTime::now() + data.wait);
    let until = data.until.map(Duration::from_micros);
    let until = until.map(|until| TimeValue::from_system_time(SystemTime::UNIX_EPOCH + until));
    request
        .put(known::NON_IP_DATA, data.data)
        .put(known::SCEF_WAIT_TIME, wait)
        .maybe(known::MAXIMUM_RETRANSMISSION_TIME, until);
    request.identifiers(0, *end_to_end);
    if data.again {
        let flags = request.flags_mut();
        *flags = flags.with(CommandFlags::RETRANSMITTED);
    }
    request.finish().ok()
}

/// CMR that releases a connection (TS 23.682 §5.13.5.3).
pub(crate) fn release(settings: &Diameter, connection: &Connection) -> Option<MessageMut> {
    let to = (Some(&*connection.host), &*connection.realm);
    let which = (command::CONNECTION_MANAGEMENT, application::T6A);
    let session = s6t::session_id(settings);
    let mut request = s6t::begin(settings, which, &session, to, |out| put_bearer(out, connection));
    request.put(known::CONNECTION_ACTION, RELEASE);
    request.finish().ok()
}
