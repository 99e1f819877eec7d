//! What servers of credit control have in common (RFC 8506): PCRFs at Gx, OCSs at Gy.

use std::time::Duration;

use diameter_proto::known::{self, command};
use diameter_proto::{MessageBuilder, MessageRef, ResultCode};

use super::pcf::follow_up;
use loadgen::diameter::Introduction;

/// CC-Request-Type (RFC 8506 §8.3).
pub(super) const INITIAL: i32 = 1;
pub(super) const UPDATE: i32 = 2;
pub(super) const TERMINATION: i32 = 3;
pub(super) const EVENT: i32 = 4;

/// The beginning of a CCA, with the type and number of its request (RFC 8506 §3.2).
pub(super) fn credit_answer(own: &Introduction, request: MessageRef<'_>, code: ResultCode) -> MessageBuilder {
    let mut answer = MessageBuilder::answer(&request);
    answer.put(known::AUTH_APPLICATION_ID, request.application());
    answer.result(code, &own.origin);
    if let Ok(Some(kind)) = request.get(known::CC_REQUEST_TYPE) {
        answer.put(known::CC_REQUEST_TYPE, kind);
    }
    if let Ok(Some(number)) = request.get(known::CC_REQUEST_NUMBER) {
        answer.put(known::CC_REQUEST_NUMBER, number);
    }
    answer
}

/// A RAR to the sender of a request, in its session, with its delay.
pub(super) fn re_auth(
    own: &Introduction,
    request: MessageRef<'_>,
    id: &str,
    after: Duration,
) -> Option<(Duration, Vec<u8>)> {
    let origin = (
        request.get(known::ORIGIN_HOST).ok().flatten()?,
        request.get(known::ORIGIN_REALM).ok().flatten()?,
    );
    let kind = (command::RE_AUTH, request.application());
    Some((after, follow_up(kind, own, id, origin)))
}
