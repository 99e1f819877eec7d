//! Requests of PCEFs and P-CSCFs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use diameter_proto::known::{self, application, command};
use diameter_proto::{AvpFlags, AvpKey, Dictionary, MessageBuilder};

use super::clients::Plan;
use super::sessions::{Call, Session};
use crate::policy::FIRST_IMSI;
use callmodel::resolution::FIRST_MSISDN;
use loadgen::diameter::Introduction;

/// Address of the first session.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
/// Bits of the prefix that a session has, and of the address that an AF knows.
const PREFIX: u8 = 64;
const WHOLE: u8 = 128;
/// CC-Request-Type (RFC 8506 §8.3).
pub(super) const INITIAL: i32 = 1;
pub(super) const UPDATE: i32 = 2;
pub(super) const TERMINATION: i32 = 3;
/// Octets that a report of usage has.
const USED_OCTETS: u64 = 1_500_000;
/// DIAMETER_LOGOUT (RFC 6733 §8.15).
const LOGOUT: i32 = 1;
/// Event-Trigger (TS 29.212 §5.3.7).
const IP_CAN_CHANGE: i32 = 7;
const CHARGING_CORRELATION_EXCHANGE: i32 = 28;
const USAGE_REPORT: i32 = 33;
/// RAT-Type EUTRAN and UTRAN (TS 29.212 §5.3.31).
const EUTRAN: i32 = 1004;
const UTRAN: i32 = 1000;
/// IP-CAN-Type 3GPP-EPS (TS 29.212 §5.3.27).
const EPS: i32 = 5;
/// Specific-Action (TS 29.214 §5.3.13).
const CHARGING_EXCHANGE: i32 = 1;
const RELEASE_OF_BEARER: i32 = 4;
/// The key of usage monitoring in the projects of the laboratory.
const MONITORING_KEY: &[u8] = b"quota";

/// What a CCR-U reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report<'a> {
    /// Another radio access.
    Access,
    /// Octets that were used.
    Usage,
    /// The charging identifier of the bearer of this rule.
    Charging(&'a [u8]),
}

/// Session-Id of a session at its PCEF.
fn gx(introduction: &Introduction, number: u32) -> String {
    format!("{};{number};gx", introduction.origin.host)
}

/// The beginning of a request.
fn begin(code: u32, app: u32, id: &str, own: &Introduction, plan: &Plan) -> MessageBuilder {
    let mut message = MessageBuilder::request(code, app);
    message
        .put(known::SESSION_ID, id)
        .put(known::AUTH_APPLICATION_ID, app)
        .put(known::ORIGIN_HOST, &own.origin.host)
        .put(known::ORIGIN_REALM, &own.origin.realm)
        .put(known::DESTINATION_REALM, &plan.realm);
    message
}

fn credit(own: &Introduction, plan: &Plan, session: &Session, kind: i32) -> MessageBuilder {
    let id = gx(own, session.number);
    let mut message = begin(command::CREDIT_CONTROL, application::GX, &id, own, plan);
    message
        .put(known::CC_REQUEST_TYPE, kind)
        .put(known::CC_REQUEST_NUMBER, session.requests);
    message
}

/// The IMSI of a subscriber by its number.
#[must_use]
pub fn imsi(subscriber: u64) -> String {
    format!("{:015}", FIRST_IMSI + subscriber)
}

/// A CCR that begins a session (TS 29.212 §4.5.1).
pub(super) fn initial(own: &Introduction, plan: &Plan, session: &Session) -> MessageBuilder {
    let mut message = credit(own, plan, session, INITIAL);
    let subscriber = u64::from(session.number / plan.each.max(1)) % plan.subscribers.max(1);
    message
        .group(known::SUBSCRIPTION_ID, |group| {
            // END_USER_IMSI (RFC 8506 §8.47)
            group
                .put(known::SUBSCRIPTION_ID_TYPE, 1)
                .put(known::SUBSCRIPTION_ID_DATA, &imsi(subscriber));
        })
        .group(known::SUPPORTED_FEATURES, |group| {
            // Rel8, Rel9, Rel10 (TS 29.212 §5.4.1)
            group
                .put(known::VENDOR_ID, known::VENDOR_3GPP)
                .put(known::FEATURE_LIST_ID, 1)
                .put(known::FEATURE_LIST, 11);
        });
    if plan.has_alternate_keys {
        message.group(known::SUBSCRIPTION_ID, |group| {
            // END_USER_E164 (RFC 8506 §8.47)
            group.put(known::SUBSCRIPTION_ID_TYPE, 0).put(
                known::SUBSCRIPTION_ID_DATA,
                &(FIRST_MSISDN + subscriber).to_string(),
            );
        });
    }
    put_address(&mut message, plan, session.number, PREFIX);
    put(&mut message, "Network-Request-Support", 1);
    message
        .put(known::IP_CAN_TYPE, EPS)
        .put(known::RAT_TYPE, EUTRAN)
        .put(known::TGPP_SGSN_MCC_MNC, "00101")
        .put(known::CALLED_STATION_ID, &plan.apn);
    message
}

/// A CCR that reports something (TS 29.212 §4.5.1).
pub(super) fn update(
    own: &Introduction,
    plan: &Plan,
    session: &Session,
    report: Report<'_>,
) -> MessageBuilder {
    let mut message = credit(own, plan, session, UPDATE);
    match report {
        Report::Access => {
            let rat = [UTRAN, EUTRAN][session.requests as usize % 2];
            message
                .put(known::EVENT_TRIGGER, IP_CAN_CHANGE)
                .put(known::IP_CAN_TYPE, EPS)
                .put(known::RAT_TYPE, rat);
        }
        Report::Usage => {
            message.put(known::EVENT_TRIGGER, USAGE_REPORT).group(
                known::USAGE_MONITORING_INFORMATION,
                |group| {
                    group.put(known::MONITORING_KEY, MONITORING_KEY).group(
                        known::USED_SERVICE_UNIT,
                        |group| {
                            group.put(known::CC_TOTAL_OCTETS, USED_OCTETS);
                        },
                    );
                },
            );
        }
        Report::Charging(rule) => {
            message
                .put(known::EVENT_TRIGGER, CHARGING_CORRELATION_EXCHANGE)
                .group(known::ACCESS_NETWORK_CHARGING_IDENTIFIER_GX, |group| {
                    group
                        .put(
                            known::ACCESS_NETWORK_CHARGING_IDENTIFIER_VALUE,
                            &session.number.to_be_bytes(),
                        )
                        .put(known::CHARGING_RULE_NAME, rule);
                });
        }
    }
    message
}

/// A CCR that ends a session.
pub(super) fn termination(own: &Introduction, plan: &Plan, session: &Session) -> MessageBuilder {
    let mut message = credit(own, plan, session, TERMINATION);
    message.put(known::TERMINATION_CAUSE, LOGOUT);
    message
}

/// An AAR that begins a call or confirms it (TS 29.214 §4.4.1, §4.4.2).
pub(super) fn media(
    own: &Introduction,
    plan: &Plan,
    session: &Session,
    call: &Call,
    is_initial: bool,
) -> MessageBuilder {
    let id = rx(own, call, session);
    let address: IpAddr = if plan.has_alternate_keys {
        address_ipv6(session.number).into()
    } else {
        address(session.number).into()
    };
    let remote = if plan.has_alternate_keys {
        "2001:db8:ffff::99"
    } else {
        "192.0.2.99"
    };
    let mut message = begin(command::AA, application::RX, &id, own, plan);
    message
        .group(known::MEDIA_COMPONENT_DESCRIPTION, |media| {
            media.put(known::MEDIA_COMPONENT_NUMBER, 1);
            media.group(known::MEDIA_SUB_COMPONENT, |flow| {
                flow.put(known::FLOW_NUMBER, 1);
                let flows = [
                    format!("permit in 17 from {address} 50000 to {remote} 40000"),
                    format!("permit out 17 from {remote} 40000 to {address} 50000"),
                ];
                for text in &flows {
                    flow.put(known::FLOW_DESCRIPTION, text);
                }
            });
            media
                .put(known::MEDIA_TYPE, 0)
                .put(known::MAX_REQUESTED_BANDWIDTH_UL, 64_000)
                .put(known::MAX_REQUESTED_BANDWIDTH_DL, 64_000);
        })
        .put(known::SPECIFIC_ACTION, CHARGING_EXCHANGE)
        .put(known::SPECIFIC_ACTION, RELEASE_OF_BEARER);
    put_address(&mut message, plan, session.number, WHOLE);
    message
        .put(known::CALLED_STATION_ID, &plan.apn)
        .put(known::RX_REQUEST_TYPE, i32::from(!is_initial));
    message
}

/// An STR that ends a call.
pub(super) fn end(own: &Introduction, plan: &Plan, session: &Session, call: &Call) -> MessageBuilder {
    let id = rx(own, call, session);
    let mut message = begin(command::SESSION_TERMINATION, application::RX, &id, own, plan);
    message.put(known::TERMINATION_CAUSE, LOGOUT);
    message
}

/// Session-Id of a call: with the number of its session, for the requests of the PCRF.
fn rx(own: &Introduction, call: &Call, session: &Session) -> String {
    format!("{};{};{};rx", own.origin.host, call.number, session.number)
}

/// Puts the address of a UE, in IPv6 with this count of its bits (RFC 3162 §2.3).
fn put_address(message: &mut MessageBuilder, plan: &Plan, number: u32, bits: u8) {
    if !plan.has_alternate_keys {
        message.put(known::FRAMED_IP_ADDRESS, &address(number).octets());
        return;
    }
    let mut data = vec![0, bits];
    let octets = address_ipv6(number).octets();
    data.extend(octets.iter().take(usize::from(bits) / 8));
    message.put(known::FRAMED_IPV6_PREFIX, &data);
}

/// The UE's address in the prefix of its session.
fn address_ipv6(number: u32) -> Ipv6Addr {
    let [high, low] = [number >> 16, number & 0xffff].map(|half| half as u16);
    Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 1)
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().wrapping_add(number % (1 << 24)))
}

/// Puts an AVP of the dictionary that has no name in code.
fn put(message: &mut MessageBuilder, name: &str, value: u32) {
    if let Some(definition) = Dictionary::standard().avp_named(name) {
        let (key, flags): (AvpKey, AvpFlags) = (definition.key, definition.flags());
        message.put_raw(key, flags, &value.to_be_bytes());
    }
}
