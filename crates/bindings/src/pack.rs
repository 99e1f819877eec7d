//! JSON text in less space: a record is written once, read rarely and kept tens of millions of times.
//!
//! Bytes that never occur in UTF-8 stand for common pieces: `F5 n` for entry n of [`PIECES`], `FE n` with
//! packed decimals for a run of n digits, `FD` for a UUID in sixteen bytes. Everything else stands for itself,
//! so any text survives. The first byte says the version; JSON begins with `{`, so the two differ.

/// Version 1 of the form, and of [`PIECES`]: entries may be added at the end, never changed.
const VERSION: u8 = 1;

const PIECE: u8 = 0xF5;
const UUID: u8 = 0xFD;
const DIGITS: u8 = 0xFE;

/// Pieces of bindings, longer ones before those they begin with.
const PIECES: &[&str] = &[
    "{\"supi\":\"imsi-",
    "\",\"gpsi\":\"msisdn-",
    "\",\"ipv4Addr\":\"",
    "\",\"ipv6Prefix\":\"",
    "\",\"addIpv6Prefixes\":[\"",
    "\",\"ipDomain\":\"",
    "\",\"macAddr48\":\"",
    "\",\"dnn\":\"internet\"",
    "\",\"dnn\":\"ims\"",
    "\",\"dnn\":\"",
    "\"dnn\":\"internet\"",
    "\"dnn\":\"ims\"",
    "\"dnn\":\"",
    ",\"snssai\":{\"sst\":1,\"sd\":\"",
    ",\"snssai\":{\"sst\":",
    ",\"sd\":\"",
    ",\"pcfFqdn\":\"",
    ",\"pcfIpEndPoints\":[{\"ipv4Address\":\"",
    ",\"pcfIpEndPoints\":[{",
    ",\"pcfDiamHost\":\"",
    ",\"pcfDiamRealm\":\"",
    ",\"pcfSmFqdn\":\"",
    ",\"pcfSmIpEndPoints\":[{\"ipv4Address\":\"",
    ",\"pcfSmIpEndPoints\":[{",
    ",\"suppFeat\":\"",
    ",\"pcfId\":\"",
    ",\"pcfSetId\":\"",
    ",\"recoveryTime\":\"",
    ",\"paraCom\":{",
    ",\"bindLevel\":\"NF_SET\"",
    ",\"bindLevel\":\"NF_INSTANCE\"",
    "\"transport\":\"TCP\"",
    "\"ipv4Address\":\"",
    "\"ipv6Address\":\"",
    "\"port\":",
    "\"supi\":\"imsi-",
    "\"gpsi\":\"msisdn-",
    "\"ipv4Addr\":\"",
    "\"ipv6Prefix\":\"",
    "\"macAddr48\":\"",
    "\"ipDomain\":\"",
    "\"pcfFqdn\":\"",
    "\"pcfDiamHost\":\"",
    "\"pcfDiamRealm\":\"",
    "\"pcfId\":\"",
    "\"snssai\":{\"sst\":",
    ".3gppnetwork.org\"",
    ".5gc.mnc",
    ".epc.mnc",
    ".pcfset.5gc.mnc",
    ".mcc",
    "::/64\"",
    "\"}]",
    "}]",
    "\"}",
    ", \"x-audit\":[",
];

/// Whether stored bytes are packed.
pub(super) fn is_packed(stored: &[u8]) -> bool {
    stored.first() == Some(&VERSION)
}

/// Appends the packed form of a UTF-8 text.
pub(super) fn pack(text: &[u8], out: &mut Vec<u8>) {
    out.push(VERSION);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        if byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) {
            if at > 0
                && text[at - 1] == b'"'
                && let Some(uuid) = uuid_of(rest)
            {
                out.push(UUID);
                out.extend_from_slice(&uuid);
                at += 36;
                continue;
            }
            let run = rest.iter().take(255).take_while(|b| b.is_ascii_digit()).count();
            if run > 4 {
                out.extend_from_slice(&[DIGITS, run as u8]);
                out.extend(rest[..run].chunks(2).map(|pair| {
                    let low = pair.get(1).map_or(0, |b| b - b'0');
                    (pair[0] - b'0') << 4 | low
                }));
                at += run;
            } else {
                out.extend_from_slice(&rest[..run.max(1)]);
                at += run.max(1);
            }
            continue;
        }
        let piece = match byte {
            b'"' | b',' | b'{' | b'.' | b':' | b'}' => {
                PIECES.iter().position(|piece| rest.starts_with(piece.as_bytes()))
            }
            _ => None,
        };
        match piece {
            // There are fewer than 256 pieces.
            Some(number) => {
                out.extend_from_slice(&[PIECE, number as u8]);
                at += PIECES[number].len();
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// The UUID a text begins with, if it is written in the one way that [`unpack`] writes.
fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text.get(..36)?).ok()?;
    let canonical = text
        .bytes()
        .enumerate()
        .all(|(at, b)| matches!(at, 8 | 13 | 18 | 23) == (b == b'-') && !b.is_ascii_uppercase());
    let uuid = canonical.then(|| uuid::Uuid::try_parse(text).ok()).flatten()?;
    Some(*uuid.as_bytes())
}

/// The text of a packed form.
pub(super) fn unpack(stored: &[u8]) -> Result<Vec<u8>, &'static str> {
    const SHORT: &str = "a packed record ends in the middle";
    let Some((&VERSION, mut rest)) = stored.split_first() else {
        return Err("not a packed record of a known version");
    };
    let mut text = Vec::with_capacity(stored.len() * 3);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            PIECE => {
                let (number, after) = rest.split_first().ok_or(SHORT)?;
                let piece = PIECES.get(usize::from(*number));
                text.extend_from_slice(piece.ok_or("a packed record of a later release")?.as_bytes());
                rest = after;
            }
            UUID => {
                let (bytes, after) = rest.split_first_chunk::<16>().ok_or(SHORT)?;
                let mut buffer = [0; 36];
                let uuid = uuid::Uuid::from_bytes(*bytes);
                text.extend_from_slice(uuid.hyphenated().encode_lower(&mut buffer).as_bytes());
                rest = after;
            }
            DIGITS => {
                let (count, after) = rest.split_first().ok_or(SHORT)?;
                let count = usize::from(*count);
                let (bytes, after) = after.split_at_checked(count.div_ceil(2)).ok_or(SHORT)?;
                let digits = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
                text.extend(digits.take(count).map(|digit| b'0' + digit.min(9)));
                rest = after;
            }
            plain => text.push(plain),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> usize {
        let mut packed = Vec::new();
        pack(text.as_bytes(), &mut packed);
        assert_eq!(unpack(&packed).unwrap(), text.as_bytes(), "{text}");
        packed.len()
    }

    #[test]
    fn a_binding_takes_a_third() {
        let text = r#"{"supi":"imsi-001010000000001","gpsi":"msisdn-15551234567","ipv4Addr":"10.1.2.3","ipDomain":"pool1","dnn":"internet","snssai":{"sst":1,"sd":"000001"},"pcfId":"6f1c7a52-0000-4000-8000-000000000001","pcfFqdn":"pcf1.5gc.mnc001.mcc001.3gppnetwork.org","pcfDiamHost":"pcf1.epc.mnc001.mcc001.3gppnetwork.org","pcfDiamRealm":"epc.mnc001.mcc001.3gppnetwork.org"}"#;
        assert!(
            round(text) * 5 < text.len() * 2,
            "{} of {}",
            round(text),
            text.len()
        );
    }

    #[test]
    fn any_text_survives() {
        for text in [
            "",
            "{}",
            "\"12345\"",
            "\"A1B2C3D4-0000-4000-8000-000000000001\"",
            "\"a1b2c3d4-0000-4000-8000-000000000001\"",
            "{\"x\":\"\u{10ffff} ü 0001234\"}",
            "00000000000000000000000000000000000000000000000000000000000000000000000000",
        ] {
            round(text);
        }
        let many = "7".repeat(1_000);
        round(&many);
        for broken in [
            &[][..],
            &[2],
            &[1, PIECE],
            &[1, PIECE, 255],
            &[1, UUID, 0],
            &[1, DIGITS, 9, 1],
        ] {
            assert!(unpack(broken).is_err(), "{broken:?}");
        }
    }
}
