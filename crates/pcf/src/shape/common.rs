//! Data types that several policy services use (TS 29.571).

use std::borrow::Cow;

use model::shape::Shape::{Integer, Of, Rule, Text};
use model::shape::{Shape, opt, req, rules};
use serde_json::{Map, Value};

use super::object;
use crate::association::address;

type Verdict = Result<(), Cow<'static, str>>;

/// Longest text of an identity, a DNN or a domain.
const LONGEST: usize = 255;

fn when(good: bool, expected: &'static str) -> Verdict {
    if good { Ok(()) } else { Err(expected.into()) }
}

pub(super) fn name(text: &str) -> Verdict {
    when(
        (1..=LONGEST).contains(&text.len()) && !text.chars().any(char::is_control),
        "expected 1 to 255 bytes of text without control characters",
    )
}

/// A text of several lines, such as SDP (TS 29.214 §5.3.7). Who prints it makes it safe.
pub(super) fn lines(text: &str) -> Verdict {
    let is_printable = |one: char| !one.is_control() || matches!(one, '\n' | '\r' | '\t');
    when(
        text.chars().all(is_printable),
        "expected a text, of control characters with line breaks and tabs alone",
    )
}

/// A list of which the OpenAPI file says `maxItems: 2`.
pub(super) fn at_most_two(
    members: &Map<String, Value>,
    name: &'static str,
) -> Result<(), (&'static str, &'static str)> {
    let items = members.get(name).and_then(Value::as_array);
    match items.is_none_or(|items| items.len() <= 2) {
        true => Ok(()),
        false => Err((name, "expected at most two items")),
    }
}

/// A URI that a notification can be sent to.
pub(super) fn callback(text: &str) -> Verdict {
    let usable = text
        .parse()
        .ok()
        .and_then(|uri| sbi::client::Origin::of_uri(&uri).ok());
    when(usable.is_some(), "expected an absolute http or https URI")
}

/// TS 29.571 §5.5.2.
pub(super) fn bit_rate(text: &str) -> Verdict {
    let known = |(number, unit): (&str, &str)| {
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |text: &str| (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits(whole) && digits(part) && matches!(unit, "bps" | "Kbps" | "Mbps" | "Gbps" | "Tbps")
    };
    when(
        text.split_once(' ').is_some_and(known),
        "expected a bit rate such as `10.5 Mbps`",
    )
}

/// Octets in Base64 (TS 29.571 §5.2.2 `Bytes`).
pub(super) fn base64(text: &str) -> Verdict {
    let body = text.trim_end_matches('=');
    let digits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    when(
        !body.is_empty()
            && text.len().is_multiple_of(4)
            && text.len() - body.len() <= 2
            && body.bytes().all(digits),
        "expected octets in Base64",
    )
}

pub(super) fn mac48(text: &str) -> Verdict {
    when(
        address::mac(text).is_some(),
        "expected a MAC address such as 00-1b-21-3c-9d-f0",
    )
}

pub(super) fn route4(text: &str) -> Verdict {
    when(
        address::route4(text).is_some(),
        "expected an IPv4 route such as 198.51.100.0/24",
    )
}

pub(super) static TEXT: Shape = Text;
pub(super) static LINES: Shape = Rule(lines);
/// A number of things.
pub(super) const COUNT: Shape = Integer(0, i64::MAX);
/// A whole number of either sign.
pub(super) const ANY_INTEGER: Shape = Integer(i64::MIN, i64::MAX);
pub(super) static NAME: Shape = Rule(name);
pub(super) static TRIGGER: Shape = Rule(rules::token);
pub(super) static PREFIX: Shape = Rule(rules::ipv6_prefix);
pub(super) static ROUTE4: Shape = Rule(route4);
pub(super) static GROUP: Shape = Rule(rules::group_id);

object! {
    /// An object of which the PCF reads nothing.
    pub(super) ANY_OBJECT = [];
    /// TS 29.571 §5.4.4.2.
    pub(super) SNSSAI = [req("sst", Integer(0, 255)), opt("sd", Rule(rules::hex6))];
    /// TS 29.571 §5.4.4.33.
    pub(super) PLMN = [req("mcc", Rule(rules::mcc)), req("mnc", Rule(rules::mnc)), opt("nid", Rule(rules::nid))];
    /// TS 29.571 §5.5.4.1.
    pub(super) ARP = [
        req("priorityLevel", Integer(1, 15)),
        req("preemptCap", Rule(rules::token)),
        req("preemptVuln", Rule(rules::token)),
    ];
    /// TS 29.571 §5.5.4.2.
    pub(super) AMBR = [req("uplink", Rule(bit_rate)), req("downlink", Rule(bit_rate))];
    /// TS 29.571 §5.5.4.3.
    pub(super) DEFAULT_QOS = [
        req("5qi", Integer(0, 255)),
        req("arp", Of(&ARP)),
        opt("priorityLevel", Integer(1, 127)),
    ];
    /// `UsageThreshold` (TS 29.122 §5.2.1.2.6).
    pub(super) THRESHOLD = [
        opt("duration", COUNT),
        opt("totalVolume", COUNT),
        opt("uplinkVolume", COUNT),
        opt("downlinkVolume", COUNT),
    ];
    /// TS 29.571 §5.4.4.24.
    pub(super) GUAMI = [req("plmnId", Of(&PLMN)), req("amfId", Rule(rules::hex6))];
}
