//! Answers of our own: that there is no binding, and where the PCF is.

use diameter::Node;
use diameter::proto::{CommandFlags, Fault, MessageBuilder, ResultCode, known};

use super::Agent;
use super::request::Request;
use crate::config::{NoBinding, Rx};
use crate::events::Event;

/// IP-CAN_SESSION_NOT_AVAILABLE (TS 29.214 §5.5).
const IP_CAN_SESSION_NOT_AVAILABLE: u32 = 5065;
/// Redirect-Host-Usage: for this session (RFC 6733 §6.13).
const ALL_SESSION: i32 = 1;

/// There is no binding, or several.
pub(super) fn no_binding(
    agent: &Agent,
    node: &Node<Agent>,
    request: &Request,
    as_what: NoBinding,
    why: &'static str,
) {
    agent.counters.count(Event::RxNoBinding);
    match as_what {
        NoBinding::UnableToDeliver => {
            agent.refuse_as(
                node,
                request,
                &Fault::new(ResultCode::UNABLE_TO_DELIVER, why),
                false,
            );
        }
        NoBinding::IpCanSessionNotAvailable => {
            let mut answer = MessageBuilder::answer(&request.message);
            answer
                .put(known::ORIGIN_HOST, &agent.origin.host)
                .put(known::ORIGIN_REALM, &agent.origin.realm)
                .group(known::EXPERIMENTAL_RESULT, |group| {
                    group
                        .put(known::VENDOR_ID, known::VENDOR_3GPP)
                        .put(known::EXPERIMENTAL_RESULT_CODE, IP_CAN_SESSION_NOT_AVAILABLE);
                })
                .put(known::ERROR_MESSAGE, why);
            if let Ok(answer) = answer.finish() {
                node.answer(&request.from, answer, request.hop_by_hop);
            }
        }
    }
}

/// DIAMETER_REDIRECT_INDICATION with the PCF's name (RFC 6733 §6.12 to §6.14).
pub(super) fn redirect(agent: &Agent, node: &Node<Agent>, request: &Request, settings: &Rx, host: &str) {
    agent.counters.count(Event::RxRedirected);
    let seconds = settings.redirect_cache_time.duration().as_secs();
    let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
    let mut answer = MessageBuilder::answer(&request.message);
    let flags = answer.flags_mut();
    *flags = flags.with(CommandFlags::ERROR);
    answer
        .result(ResultCode::REDIRECT_INDICATION, &agent.origin)
        .put(known::REDIRECT_HOST, &format!("aaa://{host}"))
        .put(known::REDIRECT_HOST_USAGE, ALL_SESSION)
        .put(known::REDIRECT_MAX_CACHE_TIME, seconds);
    if let Ok(answer) = answer.finish() {
        node.answer(&request.from, answer, request.hop_by_hop);
    }
}
