//! Reading and writing of AVPs that Gx and Rx share, and the names of their values on N7 and N5.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use diameter_proto::kind::{Address, Enumerated, Grouped, Tag, TimeValue, Unsigned32};
use diameter_proto::known;
use diameter_proto::{Avp, AvpWriter, Avps, Fault};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::json::{self, Object};
use crate::rate;

/// Texts of documents are no longer than this; what an AVP has beyond it is cut.
const MAX_TEXT: usize = 1024;
/// Longest NAI (RFC 7542 §2.3).
const MAX_NAI: usize = 253;
/// Most items of one kind that are read of one message.
pub(crate) const MAX_ITEMS: usize = 256;

/// An OctetString that is text by its purpose.
pub(crate) fn text(avp: &Avp<'_>) -> String {
    let end = avp.data.len().min(MAX_TEXT);
    String::from_utf8_lossy(&avp.data[..end]).into_owned()
}

/// Longest APN (TS 23.003 §9.1).
const MAX_APN: usize = 100;

/// The APN of a Called-Station-Id; an empty one is none.
pub(crate) fn network(avp: &Avp<'_>) -> Result<Option<String>, Fault> {
    let is_apn = avp.data.len() <= MAX_APN && avp.data.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(avp.data) {
        Ok(name) if is_apn => Ok(Some(name.to_owned()).filter(|name| !name.is_empty())),
        _ => Err(invalid(avp, "Called-Station-Id is not an APN (TS 23.003 §9.1)")),
    }
}

/// A value that cannot be. Failed-AVP has its beginning, so that an answer does not grow with the request.
fn invalid(avp: &Avp<'_>, reason: &'static str) -> Fault {
    let mut beginning = AvpWriter::default();
    let end = avp.data.len().min(MAX_TEXT);
    beginning.put_raw(avp.key(), avp.flags, &avp.data[..end]);
    let code = diameter_proto::ResultCode::INVALID_AVP_VALUE;
    Fault::new(code, reason).about(beginning.into_bytes())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes.iter().take(MAX_TEXT) {
        // Writing to a String does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Hexadecimal digits as bytes.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * MAX_TEXT {
        return None;
    }
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = |pair: &[u8]| Some((value(pair.first()?)? * 16 + value(pair.get(1)?)?) as u8);
    digits.chunks(2).map(byte).collect()
}

/// Appends to an array of an object, up to [`MAX_ITEMS`].
pub(crate) fn push(object: &mut Object, member: &str, value: Value) {
    let list = object.entry(member).or_insert_with(|| json!([]));
    if let Value::Array(list) = list
        && list.len() < MAX_ITEMS
    {
        list.push(value);
    }
}

/// Two numbers and their names, in both directions.
pub(crate) type Names = &'static [(i32, &'static str)];

pub(crate) fn name(names: Names, value: i32) -> Option<&'static str> {
    names
        .iter()
        .find(|(known, _)| *known == value)
        .map(|(_, name)| *name)
}

pub(crate) fn value(names: Names, name: &str) -> Option<i32> {
    names
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(value, _)| *value)
}

/// The name of an Enumerated.
pub(crate) fn named(avp: &Avp<'_>, names: Names) -> Result<Option<&'static str>, Fault> {
    Ok(name(names, avp.read::<Enumerated>()?))
}

pub(crate) const FLOW_STATUS: Names = &[
    (0, "ENABLED-UPLINK"),
    (1, "ENABLED-DOWNLINK"),
    (2, "ENABLED"),
    (3, "DISABLED"),
    (4, "REMOVED"),
];
/// RAT-Type (TS 29.212 §5.3.31) and `RatType` (TS 29.571).
pub(crate) const RAT_TYPE: Names = &[
    (0, "WLAN"),
    (1, "VIRTUAL"),
    (2, "TRUSTED_N3GA"),
    (3, "WIRELINE"),
    (4, "WIRELINE_CABLE"),
    (5, "WIRELINE_BBF"),
    (1000, "UTRA"),
    (1001, "GERA"),
    (1004, "EUTRA"),
    (1005, "NBIOT"),
    (1006, "NR"),
    (1007, "LTE-M"),
    (1008, "NR_U"),
];
pub(crate) const PREEMPTION_CAPABILITY: Names = &[(0, "MAY_PREEMPT"), (1, "NOT_PREEMPT")];
pub(crate) const PREEMPTION_VULNERABILITY: Names = &[(0, "PREEMPTABLE"), (1, "NOT_PREEMPTABLE")];

/// `accessType` of an IP-CAN-Type (TS 29.212 §5.3.27).
pub(crate) fn access_type(ip_can: i32) -> &'static str {
    match ip_can {
        3 | 4 | 6 | 9 => "NON_3GPP_ACCESS",
        _ => "3GPP_ACCESS",
    }
}

/// IP-CAN-Type of an access, where the session has come over N7.
pub(crate) fn ip_can_type(access_type: &str) -> i32 {
    if access_type == "NON_3GPP_ACCESS" { 9 } else { 8 }
}

/// `Arp` of an Allocation-Retention-Priority; what it does not have is the default of TS 29.212 §5.3.46, §5.3.47.
pub(crate) fn arp(avp: &Avp<'_>) -> Result<Value, Fault> {
    let group = avp.group();
    let level = group.clone().require(known::PRIORITY_LEVEL)?;
    let cap = group.clone().get(known::PRE_EMPTION_CAPABILITY)?.unwrap_or(1);
    let vuln = group.get(known::PRE_EMPTION_VULNERABILITY)?.unwrap_or(0);
    Ok(json!({
        "priorityLevel": level,
        "preemptCap": name(PREEMPTION_CAPABILITY, cap).unwrap_or("NOT_PREEMPT"),
        "preemptVuln": name(PREEMPTION_VULNERABILITY, vuln).unwrap_or("PREEMPTABLE"),
    }))
}

pub(crate) fn put_arp(out: &mut AvpWriter, arp: &Value) {
    let level = json::uint(arp, "priorityLevel").unwrap_or(15);
    let enumerated = |names, member: &str| json::text(arp, member).and_then(|name| value(names, name));
    out.group(known::ALLOCATION_RETENTION_PRIORITY, |out| {
        out.put(known::PRIORITY_LEVEL, level as u32)
            .maybe(
                known::PRE_EMPTION_CAPABILITY,
                enumerated(PREEMPTION_CAPABILITY, "preemptCap"),
            )
            .maybe(
                known::PRE_EMPTION_VULNERABILITY,
                enumerated(PREEMPTION_VULNERABILITY, "preemptVuln"),
            );
    });
}

/// A bit rate: in bit/s as far as 32 bits reach, beyond that in kbit/s in the extended AVP too (TS 29.212 §4.5.30).
pub(crate) fn put_rate(
    out: &mut AvpWriter,
    rate: Option<&str>,
    plain: Tag<Unsigned32>,
    extended: Tag<Unsigned32>,
) {
    let Some(bits) = rate.and_then(rate::bits) else {
        return;
    };
    match u32::try_from(bits) {
        Ok(bits) => {
            out.put(plain, bits);
        }
        Err(_) => {
            let kilobits = u32::try_from(bits / 1000).unwrap_or(u32::MAX);
            out.put(plain, u32::MAX).put(extended, kilobits);
        }
    }
}

/// The bit rate of a pair of AVPs in a group; the extended one counts.
pub(crate) fn get_rate(
    group: &Avps<'_>,
    plain: Tag<Unsigned32>,
    extended: Tag<Unsigned32>,
) -> Result<Option<String>, Fault> {
    if let Some(kilobits) = group.clone().get(extended)? {
        return Ok(Some(rate::text(u64::from(kilobits) * 1000)));
    }
    Ok(group.clone().get(plain)?.map(|bits| rate::text(bits.into())))
}

/// RFC 3339 text as a Time.
pub(crate) fn time_value(text: &str) -> Option<TimeValue> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(TimeValue::from_system_time(time.into()))
}

/// Framed-IP-Address as text; the AVP has four bytes.
pub(crate) fn ipv4(avp: &Avp<'_>) -> Result<String, Fault> {
    let octets: [u8; 4] = avp.data.try_into().map_err(|_| {
        let code = diameter_proto::ResultCode::INVALID_AVP_LENGTH;
        Fault::new(code, "Framed-IP-Address has other than four bytes").about(avp.padded())
    })?;
    Ok(Ipv4Addr::from(octets).to_string())
}

/// Framed-IPv6-Prefix as text: a reserved byte, the length, the bytes of the prefix that matter (RFC 3162 §2.3).
pub(crate) fn ipv6_prefix(avp: &Avp<'_>) -> Result<String, Fault> {
    let wrong = || {
        let code = diameter_proto::ResultCode::INVALID_AVP_VALUE;
        Fault::new(code, "Framed-IPv6-Prefix is not a prefix").about(avp.padded())
    };
    let [_, length @ ..=128, rest @ ..] = avp.data else {
        return Err(wrong());
    };
    if rest.len() > 16 || rest.len() * 8 < usize::from(*length) {
        return Err(wrong());
    }
    let mut octets = [0; 16];
    octets.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let keep = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
    let address = Ipv6Addr::from(u128::from_be_bytes(octets) & keep);
    Ok(format!("{address}/{length}"))
}

/// `AccNetChargingAddress` of an Address.
pub(crate) fn charging_address(avp: &Avp<'_>) -> Result<Option<Value>, Fault> {
    Ok(match avp.read::<Address>()?.ip() {
        Some(IpAddr::V4(address)) => Some(json!({"anChargIpv4Addr": address.to_string()})),
        Some(IpAddr::V6(address)) => Some(json!({"anChargIpv6Addr": address.to_string()})),
        None => None,
    })
}

/// The address of an `AccNetChargingAddress`.
pub(crate) fn charging_ip(value: &Value) -> Option<IpAddr> {
    let text = json::text(value, "anChargIpv4Addr").or_else(|| json::text(value, "anChargIpv6Addr"));
    text?.parse().ok()
}

/// `supi` and `gpsi` of a Subscription-Id (RFC 8506 §8.46). What comes first counts. Data that cannot be of their type name no
/// subscriber, and the AVP counts as absent: some nodes send an empty one.
pub(crate) fn subscription_id(avp: &Avp<'_>, object: &mut Object) -> Result<(), Fault> {
    let group = avp.group();
    let kind = group.clone().require(known::SUBSCRIPTION_ID_TYPE)?;
    let data = group.require(known::SUBSCRIPTION_ID_DATA)?;
    // E.164 and TS 23.003 §2.2 have 15 digits at most.
    let is_number =
        |text: &str| (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = data.strip_prefix('+').unwrap_or(data);
    let is_nai = (1..=MAX_NAI).contains(&data.len()) && data.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let (member, id) = match kind {
        0 if is_number(number) => ("gpsi", format!("msisdn-{number}")),
        1 if is_number(data) && data.len() > 5 => ("supi", format!("imsi-{data}")),
        3 if is_nai && !object.contains_key("supi") => ("supi", format!("nai-{data}")),
        _ => return Ok(()),
    };
    // An IMSI comes before an NAI.
    if kind == 1 || !object.contains_key(member) {
        object.insert(member.to_owned(), id.into());
    }
    Ok(())
}

/// The AVPs of a group or message.
pub(crate) fn walk<'a>(
    avps: Avps<'a>,
    mut each: impl FnMut(&Avp<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for avp in avps {
        each(&avp?)?;
    }
    Ok(())
}

/// A group of AVPs that is left out where `fill` writes nothing.
pub(crate) fn put_group(out: &mut AvpWriter, tag: Tag<Grouped>, fill: impl FnOnce(&mut AvpWriter)) {
    let mut inner = AvpWriter::default();
    fill(&mut inner);
    if !inner.as_bytes().is_empty() {
        out.group(tag, |out| {
            out.append_encoded(inner.as_bytes());
        });
    }
}
