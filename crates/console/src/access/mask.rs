//! Texts without identities of subscribers, for those who may not see them: digits of SUPIs, GPSIs and equipment identities, names
//! of network access identifiers, and whatever a journal says was followed or searched for.

use serde_json::Value;

/// Digits in a row that may be an identity (an IMSI has up to 15, an MSISDN 5 to 15; ports, codes and years have fewer).
const LEAST_DIGITS: usize = 7;
/// Digits that stay: those of the network.
const SHOWN_DIGITS: usize = 5;
/// What stands before an identity of any form.
const BEFORE: [&str; 8] = [
    "/follow/",
    "identity=",
    "nai-",
    "gci-",
    "gli-",
    "extid-",
    "extgroupid-",
    "sip:",
];
const MASK: &str = "***";

/// A document with all its texts masked.
pub(crate) fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text_masked(&text)),
        Value::Array(all) => all.into_iter().map(masked).collect(),
        Value::Object(all) => all
            .into_iter()
            .map(|(name, value)| (text_masked(&name), masked(value)))
            .collect(),
        other => other,
    }
}

fn text_masked(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while !rest.is_empty() {
        if let Some(before) = BEFORE.iter().find(|before| rest.starts_with(**before)) {
            let after = &rest[before.len()..];
            let end = after
                .find(|c: char| c.is_whitespace() || "?&/,;\"'".contains(c))
                .unwrap_or(after.len());
            out.push_str(before);
            out.push_str(if end == 0 { "" } else { MASK });
            rest = &after[end..];
            continue;
        }
        if let Some(uuid) = rest.get(..36).filter(|text| is_uuid(text)) {
            out.push_str(uuid);
            rest = &rest[36..];
            continue;
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits >= LEAST_DIGITS {
            out.push_str(&rest[..SHOWN_DIGITS]);
            out.push_str(MASK);
            rest = &rest[digits..];
            continue;
        }
        // Digits in a row are decided on together.
        let step = digits.max(rest.chars().next().map_or(1, char::len_utf8));
        out.push_str(&rest[..step]);
        rest = &rest[step..];
    }
    out
}

/// Whether it is an instance id (RFC 9562 §4), whose digits name no subscriber.
fn is_uuid(text: &str) -> bool {
    let is_dash = |at| [8, 13, 18, 23].contains(&at);
    text.bytes().enumerate().all(|(at, byte)| match is_dash(at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn identities_are_masked_and_the_rest_stays() {
        for (text, expected) in [
            (
                "PUT /follow/imsi-001010000000001?for=10m",
                "PUT /follow/***?for=10m",
            ),
            ("follows imsi-001010000000001 now", "follows imsi-00101*** now"),
            (
                "PUT /api/v1/follow 10.0.0.1, identity=10.0.0.1&x=y",
                "PUT /api/v1/follow 10.0.0.1, identity=***&x=y",
            ),
            ("+4917012345", "+49170***"),
            ("nai-ada@iot.example is here", "nai-*** is here"),
            ("extid-meter7@iot.example", "extid-***"),
            ("sip:ada@ims.example;x=1", "sip:***;x=1"),
            (
                "8b7a1f0e-6c1d-4b5a-9d53-200000000000 answers",
                "8b7a1f0e-6c1d-4b5a-9d53-200000000000 answers",
            ),
            ("2026-11-28T17:56:57.123Z", "2026-11-28T17:56:57.123Z"),
            ("127.0.0.1:9010 answered 504", "127.0.0.1:9010 answered 504"),
            ("\u{202e}é1234567", "\u{202e}é12345***"),
            ("", ""),
        ] {
            assert_eq!(text_masked(text), expected);
        }
        let document =
            json!({"a": [{"262011234567890": "imsi-262011234567890"}, 262_011_234_567_890_u64, null]});
        assert_eq!(
            masked(document),
            json!({"a": [{"26201***": "imsi-26201***"}, 262_011_234_567_890_u64, null]})
        );
    }

    proptest! {
        #[test]
        fn no_text_has_a_long_row_of_digits_left(text in "\\PC{0,40}[0-9]{7,20}\\PC{0,40}") {
            let shown = text_masked(&text);
            let longest = shown.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
            prop_assert!(longest < 13, "{}", shown);
        }
    }
}
