//! Identities in texts, URIs and AVPs: alone, and not within longer ones.

use super::*;

fn finder(texts: &[&str]) -> Finder {
    let all: Vec<Identity> = texts.iter().map(|text| text.parse().unwrap()).collect();
    Finder::new(all.iter().map(|identity| (1, identity, false)), None)
}

fn in_text(identity: &str, text: &str) -> bool {
    let finder = finder(&[identity]);
    let mut search = finder.search();
    search.uri(text.as_bytes());
    search.hit().is_some()
}

#[test]
fn an_identity_is_found_alone_and_not_within_a_longer_one() {
    for (identity, text, is_found) in [
        ("imsi-001010000000001", r#"{"supi":"imsi-001010000000001"}"#, true),
        ("imsi-001010000000001", "0001010000000001@wlan.mnc001", true),
        ("imsi-00101000000001", "imsi-001010000000012", false),
        ("imsi-001010000000001", "imsi-0010100000000012", false),
        ("msisdn-4917", "port 4917", false),
        ("msisdn-49170", "tel:+49170", true),
        ("10.45.0.2", r#""ipv4Address":"10.45.0.2""#, true),
        ("10.45.0.2", "10.45.0.20", false),
        ("10.45.0.2", "110.45.0.2", false),
        ("10.45.0.2", "10.45.0.2.7", false),
        ("2001:db8:1::/64", "ipv6Prefix=2001%3Adb8%3A1%3A%3A%2F64", true),
        ("2001:db8:1::/64", "\"2001:0db8:1::\"", false),
        ("2001:db8:1::/64", "\"2001:DB8:1::7\"", true),
        ("2001:db8:1::/64", "2001:db8:1:7::/64", false),
        ("a.example;1;2", "a.example;1;23", false),
        ("a.example;1;2", "a.example;1;2.", true),
        ("a.example;1;2", "x.a.example;1;2", false),
        ("a.example;1;2", "a.example;1;2;7", false),
        ("a.example;1;2", "\"a.example;1;2\"", true),
        ("bob@example.org", "sip:alice.bob@example.org", false),
        ("bob@example.org", "sip:bob@example.org.uk", false),
        ("bob@example.org", "<sip:bob@example.org;user=phone>", true),
        ("imsi-491700000001", "msisdn-491700000001", false),
        ("msisdn-491700000001", "tel:+491700000001", true),
    ] {
        let is_valid = identity.parse::<Identity>().is_ok();
        assert_eq!(
            is_valid && in_text(identity, text),
            is_found,
            "{identity} in {text}"
        );
    }
}

fn avp(code: u32, vendor: Option<u32>, value: &[u8]) -> Vec<u8> {
    let header = if vendor.is_some() { 12 } else { 8 };
    let mut bytes = code.to_be_bytes().to_vec();
    let flags = if vendor.is_some() { 0xc0_u32 } else { 0x40 };
    bytes.extend((flags << 24 | (header + value.len() as u32)).to_be_bytes());
    bytes.extend(vendor.into_iter().flat_map(u32::to_be_bytes));
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn in_frame(identity: &str, frame: &[u8]) -> bool {
    let finder = finder(&[identity]);
    let mut search = finder.search();
    search.frame(frame);
    search.hit().is_some()
}

#[test]
fn values_of_avps_are_compared_whole() {
    let prefix = [
        &[0, 64][..],
        &"2001:db8:1::".parse::<Ipv6Addr>().unwrap().octets()[..8],
    ]
    .concat();
    for (identity, frame, is_found) in [
        ("10.45.0.2", avp(8, None, &[10, 45, 0, 2]), true),
        ("10.45.0.2", avp(9, None, &[10, 45, 0, 2]), false),
        ("2001:db8:1::/64", avp(97, None, &prefix), true),
        ("2001:db8:1::/64", avp(98, None, &prefix), false),
        ("msisdn-12345", avp(701, Some(10_415), &[0x21, 0x43, 0xf5]), true),
        ("msisdn-12345", avp(702, Some(10_415), &[0x21, 0x43, 0xf5]), false),
        ("imsi-001010000000001", avp(444, None, b"001010000000001"), true),
        ("msisdn-12345", avp(444, None, b"12345"), true),
        ("msisdn-12345", avp(444, None, b"123456"), false),
    ] {
        assert_eq!(in_frame(identity, &frame), is_found, "{identity} in {frame:x?}");
    }
    // The length of an AVP before a value may look like a letter or a digit.
    for length in 8..120_usize {
        let session = format!("host{};1", "x".repeat(length));
        assert!(
            in_frame(&session, &avp(263, None, session.as_bytes())),
            "{session}"
        );
    }
}

#[test]
fn a_learned_address_ends_where_another_subscriber_has_it() {
    let (supi, address): (Identity, Identity) = (
        "imsi-001010000000001".parse().unwrap(),
        "10.45.0.2".parse().unwrap(),
    );
    let finder = Finder::new([(1, &supi, false), (1, &address, true)].into_iter(), None);
    let found = |text: &str| {
        let mut search = finder.search();
        search.text(text.as_bytes());
        search.hit().is_some()
    };
    assert!(found(r#"{"ueIpv4":"10.45.0.2"}"#));
    assert!(!found(r#"{"ueIpv4":"10.45.0.2","supi":"imsi-001010000000009"}"#));
    let data = avp(444, None, b"001010000000009");
    let group = avp(443, None, &[avp(450, None, &[0, 0, 0, 1]), data].concat());
    let mut search = finder.search();
    search.frame(&[avp(8, None, &[10, 45, 0, 2]), group].concat());
    assert!(search.hit().is_none());
}

#[test]
fn a_learned_identity_does_not_count_beside_the_supi_of_another_followed_subscriber() {
    let all: Vec<Identity> = [
        "imsi-001010000000001",
        "10.45.0.2",
        "msisdn-491700000002",
        "imsi-001010000000002",
    ]
    .iter()
    .map(|text| text.parse().unwrap())
    .collect();
    let known = [
        (1, &all[0], false),
        (1, &all[1], true),
        (2, &all[2], false),
        (2, &all[3], true),
    ];
    let finder = Finder::new(known.into_iter(), None);
    let mut search = finder.search();
    search.text(br#"{"ueIpv4":"10.45.0.2","supi":"imsi-001010000000002"}"#);
    assert_eq!(search.hit().map(|hit| hit.owner), Some(2));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_searched(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0..40_usize) {
        let finder = finder(&["imsi-001010000000001", "msisdn-12345", "10.45.0.2", "2001:db8::/64", "%%%%%"]);
        let whole = [&bytes[..], &avp(444, None, b"001010000000001")[cut.min(20)..], b"imsi-12345", &[0, 0, 1, 194]].concat();
        let mut search = finder.search();
        search.frame(&whole);
        search.uri(&whole);
        let _ = search.hit();
    }
}
