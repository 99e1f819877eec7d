//! What applications that keep sessions read of messages, and write into them.

use std::time::{Duration, SystemTime};

use diameter_proto::{
    CommandFlags, Fault, Kind, Message, MessageBuilder, MessageMut, ResultCode, Tag, known,
};

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
    fn a_moment_is_shown_to_the_second_up_to_the_year_9999() {
        assert_eq!(moment(1_999_999), "1970-01-01T00:00:01Z");
        assert_eq!(moment(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
