//! Identities and places as Diameter has them, and as T8 has them.

use diameter::proto::{AvpWriter, Avps, Fault, known};
use serde_json::{Map, Value, json};

/// Digits as TBCD (TS 29.002): two an octet, the first one in the lower half.
fn tbcd(digits: &str) -> Vec<u8> {
    let digit = |byte: &u8| byte.wrapping_sub(b'0') & 15;
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [low, high] => digit(high) << 4 | digit(low),
            [low] => 0xf0 | digit(low),
            _ => 0xff,
        })
        .collect()
}

/// The address of a short message entity with this international number (TS 23.040 §9.1.2.5): digits, type and numbering plan, TBCD.
pub(crate) fn sme_address(digits: &str) -> Vec<u8> {
    // At most 15 digits, by the check of the setting.
    let mut address = vec![u8::try_from(digits.len()).unwrap_or(u8::MAX), 0x91];
    address.extend(tbcd(digits));
    address
}

/// Appends User-Identifier of the device of a T8 resource (TS 29.336 §6.4.2).
pub(crate) fn put_user(out: &mut AvpWriter, document: &Value) {
    put_user_of(out, None, document);
}

/// Appends User-Identifier of the device of a T8 resource, with its IMSI if it is known.
pub(crate) fn put_user_of(out: &mut AvpWriter, imsi: Option<&str>, document: &Value) {
    let group_id = document.get("externalGroupId").and_then(Value::as_str);
    out.group(known::USER_IDENTIFIER, |group| {
        group.maybe(known::USER_NAME, imsi);
        put_names(group, document);
        group
            .maybe(known::EXTERNAL_IDENTIFIER, group_id)
            // EXTERNAL-GROUP-IDENTIFIER-TYPE (TS 29.336 §8.4.64).
            .maybe(known::TYPE_OF_EXTERNAL_IDENTIFIER, group_id.map(|_| 1));
    });
}

/// Appends MSISDN or External-Identifier of the device of a T8 resource.
pub(crate) fn put_names(group: &mut AvpWriter, document: &Value) {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let msisdn = text("msisdn").map(|msisdn| tbcd(msisdn.trim_start_matches('+')));
    group
        .maybe(known::MSISDN, msisdn.as_deref())
        .maybe(known::EXTERNAL_IDENTIFIER, text("externalId"));
}

/// The identity of the device, which notifications name as its resource does.
pub(crate) fn copy_user(document: &Value, to: &mut Map<String, Value>) {
    for name in ["externalId", "msisdn"] {
        if let Some(value) = document.get(name) {
            to.insert(name.to_owned(), value.clone());
        }
    }
}

/// The identity of a member of a group, as its User-Identifier has it.
pub(crate) fn copy_member(user: &Avps<'_>, to: &mut Map<String, Value>) -> Result<(), Fault> {
    if let Some(id) = user.clone().get(known::EXTERNAL_IDENTIFIER)? {
        to.insert("externalId".to_owned(), json!(id));
    } else if let Some(digits) = user.clone().get(known::MSISDN)?.and_then(digits) {
        to.insert("msisdn".to_owned(), json!(digits));
    }
    Ok(())
}

/// Whether a User-Identifier may be of the device of a T8 resource: it names no other External-Identifier or MSISDN.
pub(crate) fn may_be(user: &Avps<'_>, document: &Value) -> Result<bool, Fault> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if let (Some(id), Some(known)) = (user.clone().get(known::EXTERNAL_IDENTIFIER)?, text("externalId"))
        && !id.eq_ignore_ascii_case(known)
    {
        return Ok(false);
    }
    let named = user.clone().get(known::MSISDN)?.and_then(digits);
    let known = text("msisdn").map(|msisdn| msisdn.trim_start_matches('+'));
    Ok(named.is_none_or(|named| known.is_none_or(|known| named == known)))
}

/// The digits of a TBCD; `None` if others are among them.
fn digits(octets: &[u8]) -> Option<String> {
    let halves = octets.iter().flat_map(|octet| [octet & 15, octet >> 4]);
    let mut digits: Vec<u8> = halves.collect();
    if digits.last() == Some(&15) {
        digits.pop();
    }
    let digit = |digit: &u8| (*digit < 10).then(|| char::from(b'0' + digit));
    digits.iter().map(digit).collect()
}

/// User-Name of a User-Identifier: the IMSI.
pub(crate) fn imsi(user: Avps<'_>) -> Result<Option<String>, Fault> {
    let imsi = user.get(known::USER_NAME)?;
    let is_imsi =
        |imsi: &&str| (5..=15).contains(&imsi.len()) && imsi.bytes().all(|byte| byte.is_ascii_digit());
    Ok(imsi.filter(is_imsi).map(str::to_owned))
}

/// MCC and MNC of the three octets of a PLMN (TS 29.272 §7.3.9).
fn plmn_digits(octets: &[u8]) -> Option<(String, String)> {
    let [a, b, c] = *<&[u8; 3]>::try_from(octets).ok()?;
    let text = |digits: &[u8]| -> Option<String> {
        let digit = |digit: &u8| (*digit < 10).then(|| char::from(b'0' + digit));
        digits.iter().map(digit).collect()
    };
    let mnc = match b >> 4 {
        15 => text(&[c & 15, c >> 4]),
        third => text(&[c & 15, c >> 4, third]),
    };
    Some((text(&[a & 15, a >> 4, b & 15])?, mnc?))
}

/// `PlmnId` of a Visited-PLMN-Id.
pub(crate) fn plmn_id(octets: &[u8]) -> Option<Value> {
    let (mcc, mnc) = plmn_digits(octets)?;
    Some(json!({"mcc": mcc, "mnc": mnc}))
}

/// An identity that begins with a PLMN, such as a cell or a tracking area: `mcc-mnc-` and the other octets in hexadecimal digits.
fn with_plmn(octets: &[u8]) -> Option<String> {
    let (plmn, rest) = octets.split_at_checked(3)?;
    let (mcc, mnc) = plmn_digits(plmn)?;
    let rest: String = rest.iter().map(|octet| format!("{octet:02x}")).collect();
    Some(format!("{mcc}-{mnc}-{rest}"))
}

/// `LocationInfo` (TS 29.122 §5.3.2.3.5) of an EPS-Location-Information.
pub(crate) fn location(eps: &Avps<'_>) -> Result<Option<Value>, Fault> {
    let mut location = Map::new();
    let nodes = [
        (
            known::MME_LOCATION_INFORMATION,
            [
                ("cellId", known::E_UTRAN_CELL_GLOBAL_IDENTITY),
                ("trackingAreaId", known::TRACKING_AREA_IDENTITY),
            ],
        ),
        (
            known::SGSN_LOCATION_INFORMATION,
            [
                ("cellId", known::CELL_GLOBAL_IDENTITY),
                ("routingAreaId", known::ROUTING_AREA_IDENTITY),
            ],
        ),
    ];
    for (node, members) in nodes {
        let Some(node) = eps.clone().get(node)? else {
            continue;
        };
        for (member, tag) in members {
            if let Some(octets) = node.clone().get(tag)? {
                if let Some((mcc, mnc)) = octets.get(..3).and_then(plmn_digits) {
                    location.insert("plmnId".to_owned(), json!(format!("{mcc}-{mnc}")));
                }
                location.extend(with_plmn(octets).map(|text| (member.to_owned(), json!(text))));
            }
        }
        if let Some(minutes) = node.get(known::AGE_OF_LOCATION_INFORMATION)? {
            location.insert("ageOfLocationInfo".to_owned(), json!(minutes));
        }
    }
    Ok((!location.is_empty()).then_some(Value::Object(location)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_packed_with_the_first_one_in_the_lower_half() {
        assert_eq!(tbcd("4366012"), [0x34, 0x66, 0x10, 0xf2]);
        assert_eq!(tbcd("4366"), [0x34, 0x66]);
        assert_eq!(tbcd(""), [0_u8; 0]);
        assert_eq!(digits(&tbcd("4366012")), Some("4366012".to_owned()));
        assert_eq!(digits(&[0xaf]), None);
        assert_eq!(sme_address("4366012"), [7, 0x91, 0x34, 0x66, 0x10, 0xf2]);
    }

    #[test]
    fn places_begin_with_their_network() {
        assert_eq!(
            plmn_id(&[0x00, 0xf1, 0x10]),
            Some(json!({"mcc": "001", "mnc": "01"}))
        );
        assert_eq!(
            plmn_id(&[0x13, 0x00, 0x62]),
            Some(json!({"mcc": "310", "mnc": "260"}))
        );
        assert_eq!(
            with_plmn(&[0x00, 0xf1, 0x10, 0, 0xab]),
            Some("001-01-00ab".to_owned())
        );
        for wrong in [&[][..], &[0x00], &[0xff, 0xff, 0xff], &[0x00, 0xf1, 0x10, 0x00]] {
            assert_eq!(plmn_id(wrong), None, "{wrong:?}");
        }
    }
}
