//! What applications that keep sessions read of messages, and write into them.

use std::time::{Duration, SystemTime};

use diameter_proto::{
    CommandFlags, Fault, Kind, Message, MessageBuilder, MessageMut, ResultCode, Tag, known,
};

use crate::stage::Answered;

/// CC-Request-Type (RFC 8506 §8.3): the session begins.
pub const INITIAL_REQUEST: i32 = 1;
/// CC-Request-Type: it goes on.
pub const UPDATE_REQUEST: i32 = 2;
/// CC-Request-Type: it ends.
pub const TERMINATION_REQUEST: i32 = 3;
/// CC-Request-Type: a one-time event.
pub const EVENT_REQUEST: i32 = 4;

/// Microseconds in which a client may not know yet of a session that was kept.
pub const OVERTAKES: u64 = 5_000_000;

/// The Session-Id of a message.
///
/// # Errors
/// When there is none, or it is empty or longer than `most`: it cannot be a key.
pub fn session_id<B: AsRef<[u8]>>(message: &Message<B>, most: usize) -> Result<&[u8], Fault> {
    let id = message.require(known::SESSION_ID)?.as_bytes();
    if id.is_empty() || id.len() > most {
        let why = format!("a Session-Id has 1 to {most} bytes here");
        return Err(fault_about(
            message,
            known::SESSION_ID,
            ResultCode::INVALID_AVP_VALUE,
            why,
        ));
    }
    Ok(id)
}

/// What is wrong with a CC-Request without a CC-Request-Type, or of a type that it may not have (RFC 8506 §8.3).
pub fn wrong_request_type<B: AsRef<[u8]>>(message: &Message<B>) -> Fault {
    let why = "the CC-Request-Type is none of a session";
    match message.require(known::CC_REQUEST_TYPE) {
        Ok(_) => fault_about(
            message,
            known::CC_REQUEST_TYPE,
            ResultCode::INVALID_AVP_VALUE,
            why,
        ),
        Err(fault) => fault,
    }
}

/// A Session-Id is unique for ever (RFC 6733 §8.8): one of another session does not become that of this one.
#[must_use]
pub fn taken() -> Fault {
    let why = "the Session-Id is that of another session";
    Fault::new(ResultCode::INVALID_AVP_VALUE, why)
}

/// A fault about the first of these AVPs.
fn fault_about<B: AsRef<[u8]>, K: Kind>(
    message: &Message<B>,
    tag: Tag<K>,
    code: ResultCode,
    why: impl Into<std::borrow::Cow<'static, str>>,
) -> Fault {
    let mut avps = message.avps().map_while(Result::ok);
    let fault = Fault::new(code, why);
    match avps.find(|avp| avp.is(tag)) {
        Some(avp) => fault.about(avp.padded()),
        None => fault,
    }
}

/// Result-Code of an answer, or the class of its Experimental-Result-Code, such as 5000: the number within the class means what its
/// vendor says (RFC 6733 §7.7), so that 5002 of a vendor is not DIAMETER_UNKNOWN_SESSION_ID.
#[must_use]
pub fn result<B: AsRef<[u8]>>(answer: &Message<B>) -> Option<ResultCode> {
    if let Ok(Some(code)) = answer.get(known::RESULT_CODE) {
        return Some(ResultCode(code));
    }
    let group = answer.get(known::EXPERIMENTAL_RESULT).ok().flatten()?;
    let code = group.get(known::EXPERIMENTAL_RESULT_CODE).ok().flatten()?;
    Some(ResultCode(code - code % 1000))
}

/// A request for another server than the one that may have got it: with the T flag (RFC 6733 §5.5.4). An empty `realm`: that of
/// the request stays. None: it gets too long.
#[must_use]
pub fn retransmission(request: &Message, realm: &str, host: &str) -> Option<MessageMut> {
    let mut builder = MessageBuilder::new(request.header());
    for avp in request.avps().map_while(Result::ok) {
        let is_realm = avp.is(known::DESTINATION_REALM) && !realm.is_empty();
        if !is_realm && !avp.is(known::DESTINATION_HOST) {
            builder.copy(&avp);
        }
    }
    if !realm.is_empty() {
        builder.put(known::DESTINATION_REALM, realm);
    }
    builder.put(known::DESTINATION_HOST, host);
    let mut message = builder.finish().ok()?;
    message.set_flags(message.flags().with(CommandFlags::RETRANSMITTED));
    Some(message)
}

/// DIAMETER_BAD_ANSWER (RFC 6733 §8.15): the client could not make use of the answer that began the session.
const BAD_ANSWER: i32 = 3;

/// The request that ends the session which this one has begun, in the name of its client and at the same server: a CC-Request of type
/// TERMINATION_REQUEST (TS 29.212 §4.5.7, RFC 8506 §5.4), for an AA-Request a Session-Termination-Request (TS 29.214 §4.4.4).
/// None: it begins no session, or gets too long.
#[must_use]
pub fn termination(request: &Message) -> Option<MessageMut> {
    let is_credit = request.command() == known::command::CREDIT_CONTROL;
    let command = match request.command() {
        known::command::CREDIT_CONTROL => known::command::CREDIT_CONTROL,
        known::command::AA => known::command::SESSION_TERMINATION,
        _ => return None,
    };
    let mut builder = MessageBuilder::request(command, request.application());
    for avp in request.avps().map_while(Result::ok) {
        let is_of_session = avp.is(known::SESSION_ID)
            || avp.is(known::AUTH_APPLICATION_ID)
            || avp.is(known::ORIGIN_HOST)
            || avp.is(known::ORIGIN_REALM)
            || avp.is(known::DESTINATION_HOST)
            || avp.is(known::DESTINATION_REALM)
            || avp.is(known::ORIGIN_STATE_ID);
        let is_of_credit = avp.is(known::SUBSCRIPTION_ID) || avp.is(known::SERVICE_CONTEXT_ID);
        if is_of_session || (is_credit && is_of_credit) {
            builder.copy(&avp);
        }
    }
    if is_credit {
        let number = request
            .get(known::CC_REQUEST_NUMBER)
            .ok()
            .flatten()
            .unwrap_or_default();
        builder
            .put(known::CC_REQUEST_TYPE, TERMINATION_REQUEST)
            .put(known::CC_REQUEST_NUMBER, number.wrapping_add(1));
    }
    builder.put(known::TERMINATION_CAUSE, BAD_ANSWER);
    builder.finish().ok()
}

/// Whether an answer is a failure of the router itself, in place of that of a server.
#[must_use]
pub fn is_failure_of_router(answered: &Answered<'_>) -> bool {
    let by = answered.answer.get(known::ORIGIN_HOST).ok().flatten();
    by.is_some_and(|by| by.eq_ignore_ascii_case(&answered.names.host))
        && result(answered.answer) == Some(ResultCode::UNABLE_TO_COMPLY)
}

/// Whether an answer to a [`termination`] says that the server has the session no more: only a transient failure does not.
#[must_use]
pub fn has_ended<B: AsRef<[u8]>>(answer: &Message<B>) -> bool {
    result(answer).is_some_and(|result| matches!(result.0 / 1000, 2 | 5))
}

/// A [`termination`] that is sent again: with the T flag where its server may have got it without an answer (`is_lost`; RFC 6733
/// §5.5.4), without it behind an answer (§3). None: it gets too long.
#[must_use]
pub fn termination_again(request: &Message, is_lost: bool) -> Option<MessageMut> {
    let host = request.get(known::DESTINATION_HOST).ok().flatten();
    let mut again = retransmission(request, "", host.unwrap_or_default())?;
    if !is_lost {
        again.set_flags(again.flags().without(CommandFlags::RETRANSMITTED));
    }
    Some(again)
}

/// A [`termination`] from its bytes; `is_again`: it may have been sent before. None: they are none.
#[must_use]
pub fn termination_from(bytes: &[u8], is_again: bool) -> Option<MessageMut> {
    let mut request = MessageMut::parse(bytes.into()).ok()?;
    if is_again {
        request.set_flags(request.flags().with(CommandFlags::RETRANSMITTED));
    }
    Some(request)
}

/// The last second of the year 9999: RFC 3339 has no later years.
const LAST_SECOND: u64 = 253_402_300_799;

/// Microseconds since 1970 as text, to the second.
#[must_use]
pub fn moment(micros: u64) -> String {
    let since = Duration::from_secs((micros / 1_000_000).min(LAST_SECOND));
    telemetry::rfc3339(SystemTime::UNIX_EPOCH + since)
}

#[cfg(test)]
mod tests {
    use diameter_proto::known::{application, command};

    use super::*;

    #[test]
    fn a_code_of_a_vendor_counts_by_its_class() {
        let mut answer = MessageBuilder::request(command::CREDIT_CONTROL, application::CREDIT_CONTROL);
        answer.group(known::EXPERIMENTAL_RESULT, |group| {
            group
                .put(known::VENDOR_ID, 10_415_u32)
                .put(known::EXPERIMENTAL_RESULT_CODE, 5002_u32);
        });
        let found = result(&answer.finish().unwrap());
        assert_eq!(found, Some(ResultCode(5000)));
    }

    #[test]
    fn a_session_ends_in_the_name_of_its_client_at_the_server_that_has_it() {
        let ends = |command: u32, application: u32| {
            let mut begins = MessageBuilder::request(command, application);
            begins
                .put(known::SESSION_ID, "pgw;1")
                .put(known::AUTH_APPLICATION_ID, application)
                .put(known::ORIGIN_HOST, "pgw.example")
                .put(known::ORIGIN_REALM, "epc.example")
                .put(known::DESTINATION_REALM, "pcc.example")
                .put(known::DESTINATION_HOST, "pcrf.example")
                .put(known::CC_REQUEST_TYPE, INITIAL_REQUEST)
                .put(known::CC_REQUEST_NUMBER, 7_u32)
                .put(known::SERVICE_CONTEXT_ID, "32251@3gpp.org")
                .put(known::ROUTE_RECORD, "pgw.example");
            termination(&begins.finish().unwrap().freeze())
        };
        let end = ends(command::CREDIT_CONTROL, application::GX).unwrap();
        assert_eq!(
            (end.command(), end.application()),
            (command::CREDIT_CONTROL, application::GX)
        );
        assert!(end.is_request() && end.flags().contains(CommandFlags::PROXIABLE));
        assert_eq!(end.require(known::SESSION_ID).unwrap(), "pgw;1");
        assert_eq!(end.require(known::ORIGIN_HOST).unwrap(), "pgw.example");
        assert_eq!(end.require(known::DESTINATION_HOST).unwrap(), "pcrf.example");
        assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), TERMINATION_REQUEST);
        assert_eq!(end.require(known::CC_REQUEST_NUMBER).unwrap(), 8);
        assert_eq!(end.require(known::SERVICE_CONTEXT_ID).unwrap(), "32251@3gpp.org");
        assert!(!end.avps().flatten().any(|avp| avp.is(known::ROUTE_RECORD)));
        let again = termination_again(&end.freeze(), true).unwrap();
        assert!(again.flags().contains(CommandFlags::RETRANSMITTED));
        assert_eq!(again.require(known::DESTINATION_HOST).unwrap(), "pcrf.example");
        let answered = termination_again(&again.freeze(), false).unwrap();
        assert!(!answered.flags().contains(CommandFlags::RETRANSMITTED));
        let inherited = termination_from(answered.as_bytes(), true).unwrap();
        assert!(inherited.flags().contains(CommandFlags::RETRANSMITTED));
        assert!(termination_from(&answered.as_bytes()[1..], true).is_none());
        let end = ends(command::AA, application::RX).unwrap();
        assert_eq!(end.command(), command::SESSION_TERMINATION);
        assert_eq!(end.require(known::TERMINATION_CAUSE).unwrap(), BAD_ANSWER);
        assert_eq!(end.get(known::CC_REQUEST_TYPE), Ok(None));
        assert!(ends(command::RE_AUTH, application::RX).is_none());
    }

    #[test]
    fn a_moment_is_shown_to_the_second_up_to_the_year_9999() {
        assert_eq!(moment(1_999_999), "1970-01-01T00:00:01Z");
        assert_eq!(moment(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
