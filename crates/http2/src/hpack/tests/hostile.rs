//! Blocks that no honest peer sends.

use super::*;
use crate::hpack::{MAX_COPIED, huffman};

/// A literal that enters the table.
fn inserting(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0x40][..], &string(name), &string(value)].concat()
}

fn string(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::hpack::integer::write_string(text, &mut out);
    out
}

#[test]
fn broken_blocks_are_compression_errors() {
    use HpackError::{Huffman, Index, Integer, LateSizeUpdate, TableSize, Truncated};
    let huffman_eos = [&[0x00, 0x84][..], &[0xff; 4], &[0]].concat();
    let cases: &[(&[u8], HpackError)] = &[
        (&[0x40], Truncated),
        (&[0x40, 0x05, b'a'], Truncated),
        (&[0x44, 0x7f], Truncated),
        (&[0x44, 0x7f, 0xff], Truncated),
        (&[0xff], Truncated),
        (&[0x00, 0x01, b'a'], Truncated),
        (&[0x80], Index(0)),
        (&[0xbe], Index(62)),
        (&[0x7e, 0x00], Index(62)),
        (&[0xff, 0x80, 0x80, 0x80, 0x80, 0x10], Integer),
        (&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], Integer),
        (&[0xff, 0x80, 0xff, 0xff, 0xff, 0x0f], Index(u32::MAX)),
        (&[0x82, 0x20], LateSizeUpdate),
        (&[0x3f, 0xe2, 0x1f], TableSize(4097)),
        // Padding of 8 bits, padding that is not ones, EOS itself.
        (&[0x00, 0x82, 0x1f, 0xff, 0x00], Huffman),
        (&[0x00, 0x81, 0x18, 0x00], Huffman),
        (&huffman_eos, Huffman),
    ];
    for (block, error) in cases {
        let got = decoded(&mut Decoder::new(4096), block);
        assert_eq!(got.map(|_| ()), Err(*error), "{block:02x?}");
    }
}

#[test]
fn huffman_padding_of_up_to_seven_ones_is_accepted() {
    // "a" has 5 bits, "ab" 11, "abc" 16: padding of 3, 5 and 0 bits; '&' has 8, 'X' 8, 'A' 6.
    for text in [
        "",
        "a",
        "ab",
        "abc",
        "&",
        "A",
        "aaaaaaa",
        "0123456789abcdefghijklmnop",
    ] {
        let mut out = Vec::new();
        huffman::decode(&huffman::encode(text.as_bytes()), &mut out).unwrap();
        assert_eq!(out, text.as_bytes());
    }
}

#[test]
fn malformed_fields_are_reported_and_not_stored() {
    for (name, value, flaw) in [
        ("Accept", "a", Malformed::Name),
        ("", "a", Malformed::Name),
        ("a b", "a", Malformed::Name),
        (":other", "a", Malformed::Name),
        ("accept", "a\r\nb", Malformed::Value),
        ("x-a", "\0", Malformed::Value),
        ("connection", "close", Malformed::ConnectionSpecific),
        ("transfer-encoding", "chunked", Malformed::ConnectionSpecific),
        ("te", "gzip", Malformed::ConnectionSpecific),
    ] {
        let mut decoder = Decoder::new(4096);
        let block = [
            inserting(name.as_bytes(), value.as_bytes()),
            inserting(b"x-b", b"1"),
        ]
        .concat();
        let (list, outcome) = decoded(&mut decoder, &block).unwrap();
        assert_eq!(outcome.malformed, Some(flaw), "{name}: {value}");
        assert_eq!(list, fields(&[("x-b", "1")]));
        // The entry is in the table all the same, and each reference to it is malformed.
        let (list, outcome) = decoded(&mut decoder, &[0xbe, 0xbf]).unwrap();
        assert_eq!((list.len(), outcome.malformed), (1, Some(flaw)));
        // Its name, with a valid value, is malformed if the name is.
        let (_, outcome) = decoded(&mut decoder, &[0x0f, 0x30, 0x01, b'a']).unwrap();
        let again = (flaw != Malformed::Value).then_some(flaw);
        assert_eq!(outcome.malformed, again, "{name}");
    }
    let (list, outcome) = decoded(&mut Decoder::new(4096), &inserting(b"te", b"trailers")).unwrap();
    assert_eq!((list.len(), outcome.malformed), (1, None));
}

#[test]
fn pseudo_header_fields_are_checked() {
    let mut decoder = Decoder::new(4096);
    let late = decoded(&mut decoder, &[inserting(b"x-a", b"1"), vec![0x82]].concat()).unwrap();
    assert_eq!(
        (late.1.malformed, late.1.pseudo),
        (Some(Malformed::LatePseudo), 0)
    );
    let twice = decoded(&mut decoder, &[0x82, 0x83]).unwrap();
    assert_eq!(twice.1.malformed, Some(Malformed::RepeatedPseudo));
    assert_eq!(twice.0, fields(&[(":method", "GET")]));
}

#[test]
fn a_long_entry_named_often_costs_neither_memory_nor_copies() {
    let limits = Limits {
        list: 64 * 1024,
        fields: 1_000,
    };
    let mut decoder = Decoder::new(4096);
    let mut block = inserting(b"a", &[b'v'; 3_900]);
    block.extend([0xbe; 60_000]);
    let mut list = Fields::new();
    let outcome = decoder.decode(&block, limits, &mut list).unwrap();
    assert!(outcome.over && outcome.fields == 60_001);
    assert!(
        list.list_size() <= limits.list && list.held() <= 4 * limits.list,
        "{}",
        list.held()
    );
    assert!(decoder.held() <= 16 * 1024, "{}", decoder.held());
    assert_eq!(decoded(&mut decoder, &[0xbe]).unwrap().0.len(), 1);
}

#[test]
fn copies_of_a_long_name_inside_the_table_are_bounded() {
    let name = [b'n'; 3_900];
    let mut block = inserting(&name, b"");
    let times = MAX_COPIED / name.len();
    block.extend([0x7e, 0x00].repeat(times));
    assert!(decoded(&mut Decoder::new(4096), &block).is_ok());
    block.extend([0x7e, 0x00]);
    assert_eq!(
        decoded(&mut Decoder::new(4096), &block).map(|_| ()),
        Err(HpackError::Work)
    );
}

#[test]
fn an_entry_may_take_its_name_from_the_one_that_it_evicts() {
    let mut decoder = Decoder::new(4096);
    // A table of 64 bytes holds one of the two (RFC 7541 §4.4).
    let block = [
        &[0x3f, 0x21][..],
        &inserting(b"x-name", b"first"),
        &[0x7e],
        &string(b"second"),
    ]
    .concat();
    let expected = fields(&[("x-name", "first"), ("x-name", "second")]);
    assert_eq!(decoded(&mut decoder, &block).unwrap().0, expected);
    assert_eq!(decoder.table_size(), 6 + 6 + 32);
    assert_eq!(
        decoded(&mut decoder, &[0xbe]).unwrap().0,
        fields(&[("x-name", "second")])
    );
    // An entry larger than the table empties it.
    decoded(&mut decoder, &inserting(b"x-name", &[b'v'; 60])).unwrap();
    assert_eq!(decoder.table_size(), 0);
    assert_eq!(
        decoded(&mut decoder, &[0xbe]).map(|_| ()),
        Err(HpackError::Index(62))
    );
}

#[test]
fn a_smaller_table_must_be_confirmed() {
    let mut decoder = Decoder::new(100);
    // Until the peer has our SETTINGS it uses a table of 4,096 bytes.
    decoded(&mut decoder, &inserting(b"x-a", &[b'v'; 500])).unwrap();
    decoder.settings_acknowledged();
    assert_eq!(
        decoded(&mut decoder, &[0x82]).map(|_| ()),
        Err(HpackError::NoSizeUpdate)
    );
    assert_eq!(
        decoded(&mut decoder, &[0x3f, 0x46]).map(|_| ()),
        Err(HpackError::TableSize(101))
    );
    assert!(decoded(&mut decoder, &[0x3f, 0x45, 0x82]).is_ok());
    assert_eq!(decoder.table_size(), 0);
    assert!(decoded(&mut decoder, &[0x82]).is_ok());
}

#[test]
fn memory_of_a_table_is_bounded_however_long_it_is_used() {
    let mut decoder = Decoder::new(4096);
    let mut random = 1_u32;
    for _ in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let len = (random >> 16) as usize % 5_000;
        let value = vec![b'v'; if len < 4_000 { len % 64 } else { len }];
        let (list, _) = decoded(&mut decoder, &inserting(b"x-a", &value)).unwrap();
        assert_eq!(list.all().next().unwrap().value.as_bytes(), value);
        if decoder.table_size() > 0 {
            let (list, _) = decoded(&mut decoder, &[0xbe]).unwrap();
            assert_eq!(list.all().next().unwrap().value.as_bytes(), value);
        }
    }
    assert!(decoder.held() <= 20 * 1024, "{}", decoder.held());
}
