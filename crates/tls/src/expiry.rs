//! The time at which a certificate expires.
//!
//! `webpki` checks validity at each handshake but does not hand out the times. They stand at a fixed place of the DER
//! encoding (RFC 5280 §4.1): in `Certificate`, in `tbsCertificate`, after version, serial number, signature algorithm
//! and issuer.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// `[0] EXPLICIT Version`.
const VERSION: u8 = 0xa0;

/// `notAfter` of a certificate in DER; none where the certificate is not encoded as RFC 5280 says.
pub(crate) fn not_after(certificate: &[u8]) -> Option<OffsetDateTime> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, rest)) = expect(fields, VERSION) {
        fields = rest;
    }
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        fields = expect(fields, tag)?.1;
    }
    let (validity, _) = expect(fields, SEQUENCE)?;
    let (_, _, validity) = element(validity)?;
    let (tag, text, _) = element(validity)?;
    parse(tag, text)
}

/// The distinguished names of issuer and subject, as they are encoded.
pub(crate) fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, rest)) = expect(fields, VERSION) {
        fields = rest;
    }
    for tag in [INTEGER, SEQUENCE] {
        fields = expect(fields, tag)?.1;
    }
    let (issuer, rest) = expect(fields, SEQUENCE)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (subject, _) = expect(rest, SEQUENCE)?;
    Some((issuer, subject))
}

/// Tag and contents of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ 0..=0x7f => (usize::from(short), rest),
        // The long form: the octets of the length are counted.
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = octets
                .iter()
                .fold(0, |length, octet| length << 8 | usize::from(*octet));
            (length, rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

fn expect(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, contents, rest) = element(der)?;
    (tag == wanted).then_some((contents, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 §4.1.2.5).
fn parse(tag: u8, text: &[u8]) -> Option<OffsetDateTime> {
    let digits = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i32 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let mut numbers = [0_u8; 5];
    if rest.len() != 2 * numbers.len() {
        return None;
    }
    for (number, pair) in numbers.iter_mut().zip(rest.as_bytes().chunks(2)) {
        *number = std::str::from_utf8(pair).ok()?.parse().ok()?;
    }
    let [month, day, hour, minute, second] = numbers;
    let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
    Some(PrimitiveDateTime::new(date, Time::from_hms(hour, minute, second).ok()?).assume_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;

    #[test]
    fn both_forms_of_time() {
        let at = |tag, text: &str| parse(tag, text.as_bytes()).map(OffsetDateTime::unix_timestamp);
        assert_eq!(at(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(at(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(at(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        for (tag, text) in [
            (UTC_TIME, ""),
            (UTC_TIME, "7001010000Z"),
            (UTC_TIME, "701301000000Z"),
            (UTC_TIME, "70010100000éZ"),
            (GENERALIZED_TIME, "20500101000000+0100"),
            (SEQUENCE, "700101000000Z"),
        ] {
            assert_eq!(at(tag, text), None, "{text}");
        }
    }

    #[test]
    fn the_expiry_of_an_issued_certificate_is_read_and_no_cut_of_it_panics() {
        let authority = crate::authority::Authority::new("expiry").unwrap();
        let identity = authority.issue(&["localhost"]).unwrap();
        let der = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
        let left = not_after(&der).unwrap() - OffsetDateTime::now_utc();
        assert!((364..=365).contains(&left.whole_days()), "{left}");
        for end in 0..der.len() {
            let _ = not_after(&der[..end]);
        }
        for position in 0..der.len() {
            let mut broken = der.to_vec();
            broken[position] ^= 0xff;
            let _ = not_after(&broken);
        }
    }
}
