//! Messages as readable text: for logs, tests and the command line.
//!
//! ```text
//! Disconnect-Peer-Request app=0 flags=R hbh=0x00000001 e2e=0x00000002 {
//!   Origin-Host = "mme.example"
//!   Origin-Realm = "example"
//!   Disconnect-Cause = REBOOTING
//! }
//! ```
//!
//! Each AVP is a line: name, what is unusual about its flags, and a value. Numbers are decimal, enumerated
//! values have their names, text is quoted, addresses and bytes are unquoted (`192.0.2.1`, `0x00f110`), times
//! are seconds (`time 1700000000`, Unix), groups have braces. An AVP that the dictionary does not have is
//! `avp 10415:9999`. Data that does not fit its type is written as bytes after `raw`, so that every message
//! prints, and what is printed parses to the same bytes: except padding, which comes out as zeros, a V flag
//! with Vendor-Id 0, which is not a valid AVP, and what cannot be walked, which is a comment.

mod parse;
mod print;

pub use parse::{TextError, parse};
pub use print::{PrintMessage, print};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avp::{AvpFlags, AvpKey};
    use crate::build::MessageBuilder;
    use crate::dictionary::Dictionary;
    use crate::known;
    use crate::message::Message;

    fn example() -> Message {
        let mut builder = MessageBuilder::request(257, 0);
        builder.identifiers(1, 0xdead_beef);
        builder
            .put(known::ORIGIN_HOST, "mme.example")
            .put(
                known::HOST_IP_ADDRESS,
                std::net::Ipv4Addr::new(192, 0, 2, 1).into(),
            )
            .put(known::HOST_IP_ADDRESS, std::net::Ipv6Addr::LOCALHOST.into())
            .put(known::PRODUCT_NAME, "quote \" backslash \\ line\n ü")
            .put(known::EVENT_TIMESTAMP, crate::kind::TimeValue(3_900_000_000))
            .put(known::EVENT_TIMESTAMP, crate::kind::TimeValue(1 << 31))
            .put(known::DISCONNECT_CAUSE, 1)
            .put(known::DISCONNECT_CAUSE, -7)
            .put(known::OC_SEQUENCE_NUMBER, u64::MAX)
            .put(known::CLASS, &[0, 255, 16]);
        builder.group(known::VENDOR_SPECIFIC_APPLICATION_ID, |group| {
            group
                .put(known::VENDOR_ID, 10415)
                .put(known::AUTH_APPLICATION_ID, 16_777_251);
        });
        builder.group(known::FAILED_AVP, |_| {});
        builder.put_raw(AvpKey { vendor: 99, code: 7 }, AvpFlags::MANDATORY, b"xyz");
        builder.put_raw(AvpKey::ietf(268), AvpFlags(0x60), b"12");
        builder.put_raw(AvpKey::ietf(279), AvpFlags::MANDATORY, &[1, 2, 3]);
        builder.finish().unwrap().freeze()
    }

    #[test]
    fn text_and_bytes_are_the_same_message() {
        let dictionary = Dictionary::standard();
        let message = example();
        let text = print(&message, dictionary).to_string();
        for line in [
            "Capabilities-Exchange-Request app=0 flags=RP hbh=0x00000001 e2e=0xdeadbeef {",
            "  Origin-Host = \"mme.example\"",
            "  Host-IP-Address = 192.0.2.1",
            "  Host-IP-Address = ::1",
            "  Product-Name = \"quote \\\" backslash \\\\ line\\n ü\"",
            "  Event-Timestamp = time 1691011200",
            "  Event-Timestamp = time -61505152",
            "  Disconnect-Cause = BUSY",
            "  Disconnect-Cause = -7",
            "  OC-Sequence-Number = 18446744073709551615",
            "  Class = 0x00ff10",
            "    Auth-Application-Id = 16777251",
            "  Failed-AVP = {}",
            "  avp 99:7 flags=VM = 0x78797a",
            "  Result-Code flags=MP = raw 0x3132",
            "  Failed-AVP = raw 0x010203",
        ] {
            assert!(
                text.lines().any(|printed| printed == line),
                "no line `{line}` in\n{text}"
            );
        }
        let again = parse(&text, dictionary).unwrap();
        assert_eq!(again.as_bytes(), message.as_bytes(), "{text}");
    }

    #[test]
    fn mistakes_are_reported_with_line_and_column() {
        let dictionary = Dictionary::standard();
        for (text, at, what) in [
            ("Nonsense-Request {}", "1:1", "Nonsense-Request"),
            ("DPR app=0 flags=RX {\n}", "1:17", "flags"),
            ("DPR {\n  Origin-Hst = \"a\"\n}", "2:3", "Origin-Host"),
            ("DPR {\n  Disconnect-Cause = BUSSY\n}", "2:22", "BUSY"),
            ("DPR {\n  Result-Code = \"x\"\n}", "2:17", "Unsigned32"),
            (
                "DPR {\n  Event-Timestamp = time 18446744073709551615\n}",
                "2:26",
                "seconds since 1970",
            ),
            ("DPR {\n  Origin-Host = \"a", "2:17", "quote"),
            ("DPR {\n  Origin-Host = \"a\"\n", "3:1", "}"),
            ("DPR {} x", "1:8", "end"),
        ] {
            let error = parse(text, dictionary).unwrap_err().to_string();
            assert!(
                error.starts_with(at) && error.contains(what),
                "{text:?} gave `{error}`"
            );
        }
    }

    #[test]
    fn short_names_and_defaults_are_enough() {
        let message = parse(
            "DPA flags=- { Result-Code = DIAMETER_SUCCESS Origin-Host = \"a\" }",
            Dictionary::standard(),
        )
        .unwrap();
        assert_eq!((message.command(), message.is_request()), (282, false));
        assert_eq!(message.require(known::RESULT_CODE).unwrap(), 2001);
        let request = parse("316 app=16777251 { User-Name = \"1\" }", Dictionary::standard()).unwrap();
        assert!(request.is_request());
    }
}
