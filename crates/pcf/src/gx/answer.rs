//! Credit-Control-Answer (TS 29.212 §5.6.3), and the results of refusals (TS 29.212 §5.5).

use diameter::endpoint::Request;
use diameter::proto::known::{self, VENDOR_3GPP, application};
use diameter::proto::{Fault, MessageMut, ResultCode};
use pcc::gx::{RequestKind, put_change};
use serde_json::Value;

use crate::association::Association;
use crate::change::ChangeFault;
use crate::pds::Missing;
use crate::pre::Refusal;

/// DIAMETER_USER_UNKNOWN (RFC 8506 §9.2).
const USER_UNKNOWN: ResultCode = ResultCode(5030);
/// DIAMETER_ERROR_LATE_OVERLAPPING_REQUEST (TS 29.273).
const LATE_OVERLAPPING_REQUEST: ResultCode = ResultCode(5453);
/// DIAMETER_ERROR_INITIAL_PARAMETERS, DIAMETER_ERROR_TRIGGER_EVENT (TS 29.212 §5.5.3).
const INITIAL_PARAMETERS: ResultCode = ResultCode(5140);
const TRIGGER_EVENT: ResultCode = ResultCode(5141);
/// DIAMETER_ERROR_TRAFFIC_MAPPING_INFO_REJECTED, DIAMETER_ERROR_CONFLICTING_REQUEST (TS 29.212 §5.5.3).
const TRAFFIC_MAPPING: ResultCode = ResultCode(5144);
const CONFLICTING_REQUEST: ResultCode = ResultCode(5147);
/// UE_NW (TS 29.212 §5.3.23): UE and network may ask for bearers.
const UE_NW: i32 = 2;

/// The answer that gives a PCEF with the decision `has` what makes it `shall`.
pub(super) fn success(
    request: &Request,
    ccr: &pcc::gx::Request,
    association: &Association,
    has: &Value,
    shall: &Value,
) -> Result<MessageMut, Fault> {
    let mut answer = request.answer(ResultCode::SUCCESS);
    answer
        .put(known::AUTH_APPLICATION_ID, application::GX)
        .put(known::CC_REQUEST_TYPE, ccr.kind.code())
        .put(known::CC_REQUEST_NUMBER, ccr.number);
    if ccr.kind == RequestKind::Initial {
        // A PCEF that names no features learns none (TS 29.229 §7.2.1).
        if ccr.features.is_some() {
            super::features(ccr).put(&mut answer);
        }
        let gx = association.context.get("gx");
        if gx.and_then(|gx| gx.get("networkRequestSupport")) == Some(&Value::Bool(true)) {
            answer.put(known::BEARER_CONTROL_MODE, UE_NW);
        }
        for (member, tag) in [("online", known::ONLINE), ("offline", known::OFFLINE)] {
            let value = shall.get(member).and_then(Value::as_bool);
            answer.maybe(tag, value.map(i32::from));
        }
    }
    put_change(&mut answer, has, shall);
    let too_long = |_| {
        Fault::new(
            ResultCode::UNABLE_TO_COMPLY,
            "the decision does not fit a message",
        )
    };
    answer.finish().map_err(too_long)
}

/// The result of a refusal by the policy.
pub(super) fn refused(refusal: &Refusal) -> Fault {
    match refusal {
        Refusal::Policy { cause, detail, .. } => {
            let reason = detail.clone().unwrap_or_else(|| cause.clone());
            match cause.as_str() {
                "USER_UNKNOWN" => Fault::new(USER_UNKNOWN, reason),
                "ERROR_INITIAL_PARAMETERS" => Fault::new(INITIAL_PARAMETERS, reason).of_vendor(VENDOR_3GPP),
                "ERROR_TRIGGER_EVENT" => Fault::new(TRIGGER_EVENT, reason).of_vendor(VENDOR_3GPP),
                "ERROR_TRAFFIC_MAPPING_INFO_REJECTED" => {
                    Fault::new(TRAFFIC_MAPPING, reason).of_vendor(VENDOR_3GPP)
                }
                "ERROR_CONFLICTING_REQUEST" => Fault::new(CONFLICTING_REQUEST, reason).of_vendor(VENDOR_3GPP),
                _ => Fault::new(ResultCode::AUTHORIZATION_REJECTED, reason),
            }
        }
        Refusal::Missing(Missing::User) => Fault::new(USER_UNKNOWN, "the UDR does not know the subscriber"),
        Refusal::Missing(_) => Fault::new(ResultCode::UNABLE_TO_COMPLY, "data of the subscriber are missing"),
        Refusal::Late => Fault::new(
            LATE_OVERLAPPING_REQUEST,
            "the subscriber has this session by a request with a more recent Origination-Time-Stamp",
        )
        .of_vendor(VENDOR_3GPP),
        Refusal::Foreign => super::unknown(),
        Refusal::Fault(_) => Fault::new(ResultCode::UNABLE_TO_COMPLY, "the policy cannot be evaluated"),
    }
}

/// The result where the store fails.
pub(crate) fn failed(error: &store::Error) -> Fault {
    tracing::debug!(%error, "request failed");
    match error {
        store::Error::Overflow { .. } | store::Error::Unavailable { .. } => {
            Fault::new(ResultCode::TOO_BUSY, "the store is not available; try later")
        }
        _ => Fault::new(ResultCode::UNABLE_TO_COMPLY, "the store failed"),
    }
}

/// The result where an association is not changed.
pub(super) fn fault<F: Into<Unwritten>>(fault: ChangeFault<F>) -> Fault {
    match fault {
        ChangeFault::Refused(refusal) => match refusal.into() {
            Unwritten::Refused(refusal) => refused(&refusal),
            Unwritten::Never => Fault::new(ResultCode::UNABLE_TO_COMPLY, ""),
        },
        ChangeFault::Store(error) => failed(&error),
        ChangeFault::Overtaken => Fault::new(
            ResultCode::TOO_BUSY,
            "others keep changing this session; try again",
        ),
    }
}

/// What a change says that is not carried out.
pub(super) enum Unwritten {
    /// A refusal of the policy.
    Refused(Refusal),
    /// Nothing: the change cannot refuse.
    Never,
}

impl From<Refusal> for Unwritten {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<std::convert::Infallible> for Unwritten {
    fn from(_: std::convert::Infallible) -> Self {
        Self::Never
    }
}
