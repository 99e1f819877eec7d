//! 3GPP-User-Location-Info and 3GPP-MS-TimeZone (TS 29.061 §16.4.7.2) to and from `UserLocation` and `TimeZone`.

use diameter_proto::AvpWriter;
use diameter_proto::known;
use serde_json::{Value, json};

use crate::json;

/// Geographic location types.
const TAI: u8 = 128;
const ECGI: u8 = 129;
const TAI_AND_ECGI: u8 = 130;
const NCGI: u8 = 135;
const TAI_5GS: u8 = 136;
const TAI_5GS_AND_NCGI: u8 = 137;

/// `UserLocation`; `None` for types of 2G and 3G and for lengths that do not fit.
pub(super) fn location(data: &[u8]) -> Option<Value> {
    let (kind, rest) = data.split_first()?;
    Some(match (*kind, rest.len()) {
        (TAI, 5) => json!({"eutraLocation": {"tai": tai(rest)?}}),
        (ECGI, 7) => json!({"eutraLocation": {"ecgi": ecgi(rest)?}}),
        (TAI_AND_ECGI, 12) => {
            json!({"eutraLocation": {"tai": tai(&rest[..5])?, "ecgi": ecgi(&rest[5..])?}})
        }
        (NCGI, 8) => json!({"nrLocation": {"ncgi": ncgi(rest)?}}),
        (TAI_5GS, 6) => json!({"nrLocation": {"tai": tai(rest)?}}),
        (TAI_5GS_AND_NCGI, 14) => {
            json!({"nrLocation": {"tai": tai(&rest[..6])?, "ncgi": ncgi(&rest[6..])?}})
        }
        _ => return None,
    })
}

/// A PLMN and a code of two (EPS) or three (5GS) bytes.
fn tai(data: &[u8]) -> Option<Value> {
    let (plmn_id, code) = data.split_at_checked(3)?;
    Some(json!({"plmnId": plmn(plmn_id)?, "tac": crate::avp::hex(code)}))
}

fn ecgi(data: &[u8]) -> Option<Value> {
    let (plmn_id, cell) = data.split_at_checked(3)?;
    let cell = u32::from_be_bytes(cell.try_into().ok()?) & 0x0fff_ffff;
    Some(json!({"plmnId": plmn(plmn_id)?, "eutraCellId": format!("{cell:07x}")}))
}

fn ncgi(data: &[u8]) -> Option<Value> {
    let (plmn_id, cell) = data.split_at_checked(3)?;
    let cell = cell.iter().fold(0u64, |cell, byte| cell << 8 | u64::from(*byte)) & 0xf_ffff_ffff;
    Some(json!({"plmnId": plmn(plmn_id)?, "nrCellId": format!("{cell:09x}")}))
}

/// A PLMN in TBCD (TS 24.301 §9.9.3.32).
fn plmn(data: &[u8]) -> Option<Value> {
    let [a, b, c] = *<&[u8; 3]>::try_from(data).ok()?;
    let digits = [a & 15, a >> 4, b & 15, c & 15, c >> 4, b >> 4];
    let text = |digits: &[u8]| -> Option<String> {
        let digit = |digit: &u8| (*digit < 10).then(|| char::from(b'0' + digit));
        digits.iter().map(digit).collect()
    };
    let mnc = if digits[5] == 15 {
        &digits[3..5]
    } else {
        &digits[3..]
    };
    Some(json!({"mcc": text(&digits[..3])?, "mnc": text(mnc)?}))
}

/// Appends 3GPP-User-Location-Info for a `UserLocation` that has a TAI with its cell.
pub(crate) fn put_location(out: &mut AvpWriter, location: &Value) {
    if let Some(bytes) = location_bytes(location) {
        out.put(known::TGPP_USER_LOCATION_INFO, &bytes);
    }
}

fn location_bytes(location: &Value) -> Option<Vec<u8>> {
    let (kind, place, cell_member, id_member) =
        match (location.get("nrLocation"), location.get("eutraLocation")) {
            (Some(place), _) => (TAI_5GS_AND_NCGI, place, "ncgi", "nrCellId"),
            (None, Some(place)) => (TAI_AND_ECGI, place, "ecgi", "eutraCellId"),
            (None, None) => return None,
        };
    let (area, cell) = (place.get("tai")?, place.get(cell_member)?);
    let code = crate::avp::unhex(json::text(area, "tac")?)?;
    let number = u64::from_str_radix(json::text(cell, id_member)?, 16).ok()?;
    let (code_bytes, cell_bytes) = if kind == TAI_AND_ECGI { (2, 4) } else { (3, 5) };
    if code.len() != code_bytes {
        return None;
    }
    let mut bytes = vec![kind];
    bytes.extend(plmn_bytes(area.get("plmnId")?)?);
    bytes.extend(code);
    bytes.extend(plmn_bytes(cell.get("plmnId")?)?);
    bytes.extend(&number.to_be_bytes()[8 - cell_bytes..]);
    Some(bytes)
}

fn plmn_bytes(plmn: &Value) -> Option<[u8; 3]> {
    let digits = |text: &str| -> Option<Vec<u8>> {
        text.bytes()
            .map(|byte| byte.checked_sub(b'0').filter(|digit| *digit < 10))
            .collect()
    };
    let (mcc, mut mnc) = (
        digits(json::text(plmn, "mcc")?)?,
        digits(json::text(plmn, "mnc")?)?,
    );
    if mnc.len() == 2 {
        mnc.push(15);
    }
    let (&[m1, m2, m3], &[n1, n2, n3]) = (mcc.as_slice(), mnc.as_slice()) else {
        return None;
    };
    Some([m2 << 4 | m1, n3 << 4 | m3, n2 << 4 | n1])
}

/// `TimeZone` of quarters of an hour in TBCD with a sign (TS 23.040 §9.2.3.11), and the adjustment for summer.
pub(super) fn time_zone(data: &[u8]) -> Option<String> {
    let (zone, summer) = match data {
        [zone] => (*zone, 0),
        [zone, summer] => (*zone, *summer & 3),
        _ => return None,
    };
    let (tens, units) = (zone & 7, zone >> 4);
    if units > 9 {
        return None;
    }
    let quarters = u32::from(tens) * 10 + u32::from(units);
    let sign = if zone & 8 == 0 { '+' } else { '-' };
    let text = format!("{sign}{:02}:{:02}", quarters / 4, quarters % 4 * 15);
    Some(match summer {
        1 | 2 => format!("{text}+{summer}"),
        _ => text,
    })
}

/// Appends 3GPP-MS-TimeZone.
pub(crate) fn put_time_zone(out: &mut AvpWriter, zone: &str) {
    if let Some(bytes) = time_zone_bytes(zone) {
        out.put(known::TGPP_MS_TIMEZONE, &bytes);
    }
}

fn time_zone_bytes(zone: &str) -> Option<[u8; 2]> {
    let (time, summer) = match zone.get(1..)?.find('+') {
        Some(at) => (zone.get(..=at)?, zone.get(at + 2..)?.parse::<u8>().ok()?),
        None => (zone, 0),
    };
    let negative = match time.as_bytes().first()? {
        b'+' => 0,
        b'-' => 8,
        _ => return None,
    };
    let (hours, minutes) = time.get(1..)?.split_once(':')?;
    let quarters = hours
        .parse::<u8>()
        .ok()?
        .checked_mul(4)?
        .checked_add(minutes.parse::<u8>().ok()? / 15)?;
    if quarters > 79 || summer > 2 {
        return None;
    }
    Some([(quarters % 10) << 4 | (quarters / 10) | negative, summer])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_and_written() {
        let eutra = [
            130, 0x00, 0xf1, 0x10, 0x12, 0x34, 0x00, 0xf1, 0x10, 0x01, 0x23, 0x45, 0x67,
        ];
        let value = location(&eutra).unwrap();
        assert_eq!(
            value,
            json!({"eutraLocation": {
                "tai": {"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "1234"},
                "ecgi": {"plmnId": {"mcc": "001", "mnc": "01"}, "eutraCellId": "1234567"},
            }})
        );
        assert_eq!(location_bytes(&value).unwrap(), eutra);
        let nr = [137, 0x13, 0x00, 0x14, 0, 0, 7, 0x13, 0x00, 0x14, 0, 0, 0, 0, 0x2a];
        let value = location(&nr).unwrap();
        assert_eq!(
            value["nrLocation"]["ncgi"]["plmnId"],
            json!({"mcc": "310", "mnc": "410"})
        );
        assert_eq!(value["nrLocation"]["ncgi"]["nrCellId"], "00000002a");
        assert_eq!(location_bytes(&value).unwrap(), nr);
        for wrong in [
            &[][..],
            &[130],
            &[130, 0, 0],
            &[1, 0, 0xf1, 0x10, 0, 1, 0, 2],
            &[128, 0xff, 0, 0, 0, 0],
        ] {
            assert_eq!(location(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn time_zones_are_read_and_written() {
        for (bytes, text) in [
            // The offset is adjusted already (TS 29.571 table 5.2.2-1, TS 24.008 §10.5.3.8).
            ([0x80, 1], "+02:00+1"),
            ([0x40, 0], "+01:00"),
            // free5GC writes this for Berlin in summer, which is +02:00+1: what is written counts.
            ([0x40, 1], "+01:00+1"),
            ([0x00, 0], "+00:00"),
            ([0x2b, 0], "-08:00"),
            ([0x32, 0], "+05:45"),
        ] {
            assert_eq!(time_zone(&bytes).as_deref(), Some(text));
            assert_eq!(time_zone_bytes(text), Some(bytes));
        }
        for wrong in ["", "+", "01:00", "+99:00", "+01:00+9", "+01"] {
            assert_eq!(time_zone_bytes(wrong), None, "{wrong}");
        }
    }
}
