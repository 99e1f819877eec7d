//! Global titles as real senders write them, and as readers disagree about them.

use ss7_proto::Digits;
use ss7_proto::point_code::PointCode;
use ss7_proto::sccp::{Address, AddressBuf, AddressFault, Format, GlobalTitleBuf};

fn digits(octets: &[u8]) -> String {
    let address = Address::parse(octets, Format::Itu).unwrap();
    address.title.unwrap().digits().unwrap().to_string()
}

/// An address with global title 0100 (E.164, international) and an encoding scheme.
fn title_4(scheme: u8, packed: &[u8]) -> Vec<u8> {
    [&[0x12, 6, 0, 0x10 | scheme, 4], packed].concat()
}

#[test]
fn odd_and_even_against_the_scheme() {
    let even = [0x34, 0x66, 0x10, 0x32, 0x54, 0x06];
    assert_eq!(digits(&title_4(1, &even)), "43660123456");
    // Filler f in place of 0.
    let filler = [0x34, 0x66, 0x10, 0x32, 0x54, 0xf6];
    assert_eq!(digits(&title_4(1, &filler)), "43660123456");
    // Scheme 0 does not say: each octet has two.
    let whole = [0x34, 0x66, 0x10, 0x32, 0x54, 0x76];
    assert_eq!(digits(&title_4(0, &whole)), "436601234567");
    assert_eq!(digits(&title_4(2, &whole)), "436601234567");
    // The scheme is odd, the digits are an even number: the last is filler all the same.
    assert_eq!(digits(&title_4(1, &whole)), "43660123456");
}

#[test]
fn semi_octets_above_nine_have_one_notation() {
    assert_eq!(digits(&title_4(2, &[0x34, 0xcb, 0x21])), "43bc12");
    let rule = Digits::parse("43bc12").unwrap();
    let address = title_4(2, &[0x34, 0xcb, 0x21]);
    let address = Address::parse(&address, Format::Itu).unwrap();
    assert_eq!(address.title.unwrap().digits(), Some(rule));
    // f within stays, a closing f (ST) stays and is not matched.
    assert_eq!(digits(&title_4(2, &[0x34, 0x1f, 0x21])), "43f112");
    let closed = title_4(2, &[0x34, 0x66, 0xf1]);
    let closed = Address::parse(&closed, Format::Itu).unwrap().title.unwrap();
    let closed = closed.digits().unwrap();
    assert_eq!(
        (closed.to_string(), closed.without_st().to_string()),
        ("43661f".into(), "43661".into())
    );
}

#[test]
fn each_indicator() {
    // 0001: nature and odd/even bit.
    assert_eq!(digits(&[0x06, 6, 0x84, 0x34, 0x06]), "436");
    assert_eq!(digits(&[0x06, 6, 0x04, 0x34, 0x06]), "4360");
    // 0010: nothing says that the last is filler.
    assert_eq!(digits(&[0x0a, 6, 0, 0x34, 0x06]), "4360");
    // 0011.
    assert_eq!(digits(&[0x0e, 6, 0, 0x11, 0x34, 0x06]), "436");
    assert_eq!(digits(&[0x0e, 6, 0, 0x12, 0x34, 0x06]), "4360");
    // Others pass as octets.
    for indicator in 5..16 {
        let octets = [indicator << 2 | 2, 6, 1, 2, 3];
        let address = Address::parse(&octets, Format::Itu).unwrap();
        let title = address.title.unwrap();
        assert_eq!((title.octets, title.digits()), (&[1, 2, 3][..], None));
    }
}

#[test]
fn zero_and_forty_digits() {
    assert_eq!(digits(&title_4(2, &[])), "");
    assert_eq!(digits(&title_4(1, &[])), "");
    assert_eq!(digits(&title_4(2, &[0x11; 20])).len(), 40);
    assert_eq!(digits(&title_4(1, &[0x11; 20])).len(), 39);
    let long = title_4(2, &[0x11; 21]);
    let long = Address::parse(&long, Format::Itu).unwrap();
    assert_eq!(long.title.unwrap().digits(), None);
}

#[test]
fn addresses_that_end_early() {
    let fault = |octets: &[u8]| Address::parse(octets, Format::Itu).unwrap_err();
    assert_eq!(fault(&[]), AddressFault::Empty);
    assert_eq!(fault(&[0x43]), AddressFault::Short(0x43));
    assert_eq!(fault(&[0x43, 1]), AddressFault::Short(0x43));
    assert_eq!(fault(&[0x43, 1, 0]), AddressFault::Short(0x43));
    assert_eq!(fault(&[0x12, 6, 0, 0x12]), AddressFault::ShortTitle(4));
    assert_eq!(fault(&[0x0e, 6, 0]), AddressFault::ShortTitle(3));
    assert_eq!(fault(&[0x0a, 6]), AddressFault::ShortTitle(2));
    assert_eq!(fault(&[0x06, 6]), AddressFault::ShortTitle(1));
    assert_eq!(
        Address::parse(&[0x83, 6, 1, 2], Format::Ansi).unwrap_err(),
        AddressFault::Short(0x83)
    );
}

#[test]
fn ansi_addresses() {
    // Subsystem before point code; title 0001 has type, plan and scheme.
    let octets = [0x87, 6, 1, 20, 5, 14, 0x11, 0x34, 0x06];
    let address = Address::parse(&octets, Format::Ansi).unwrap();
    assert_eq!(
        (address.ssn, address.point_code),
        (Some(6), Some(PointCode(332_801)))
    );
    assert!(address.national && address.route_on_title);
    let title = address.title.unwrap();
    assert_eq!(
        (title.translation_type, title.numbering_plan),
        (Some(14), Some(1))
    );
    assert_eq!(title.digits().unwrap().to_string(), "436");
    let mut again = Vec::new();
    address.to_buf().write(Format::Ansi, &mut again).unwrap();
    assert_eq!(again, octets);
}

#[test]
fn ours_are_strict() {
    for indicator in [1, 2, 3, 4] {
        for text in ["", "4", "43", "436601234567", "43660123456"] {
            let ours = AddressBuf {
                point_code: Some(PointCode(1234)),
                ssn: Some(6),
                route_on_title: true,
                national: false,
                title: Some(GlobalTitleBuf {
                    indicator,
                    translation_type: 0,
                    numbering_plan: if indicator >= 3 { 1 } else { 0 },
                    nature: if matches!(indicator, 1 | 4) { 4 } else { 0 },
                    digits: Digits::parse(text).unwrap(),
                }),
            };
            let mut octets = Vec::new();
            ours.write(Format::Itu, &mut octets).unwrap();
            let read = Address::parse(&octets, Format::Itu).unwrap().to_buf();
            if indicator == 2 && !text.len().is_multiple_of(2) {
                assert_eq!(read.title.unwrap().digits.to_string(), format!("{text}0"));
            } else {
                assert_eq!(read, ours);
            }
        }
    }
    let wrong = AddressBuf {
        title: Some(GlobalTitleBuf {
            indicator: 5,
            ..GlobalTitleBuf::default()
        }),
        ..AddressBuf::default()
    };
    assert_eq!(
        wrong.write(Format::Itu, &mut Vec::new()),
        Err(AddressFault::Indicator(5))
    );
}
