//! Both directions against one another, and against another implementation.

use super::*;
use crate::head::RequestHead;
use proptest::collection::vec;
use proptest::prelude::*;

type Pairs = Vec<(String, Vec<u8>, bool)>;

/// Few names and few values, so that blocks repeat themselves, and some that never come again.
fn pairs() -> impl Strategy<Value = Pairs> {
    let name = prop_oneof![
        Just("accept"),
        Just("content-type"),
        Just("content-length"),
        Just("3gpp-sbi-oci"),
        Just("3gpp-sbi-sender-timestamp"),
        Just("3gpp-sbi-discovery-supi"),
        Just("accept-encoding"),
        Just("x-a"),
        Just("x-b"),
        Just("x-rather-long-name-of-a-vendor"),
    ];
    // With a prefix: `te` and others that HTTP/2 forbids (RFC 9113 §8.2.2) are left out of this test.
    let other = "y-[a-z0-9-]{0,40}";
    let name = prop_oneof![8 => name.prop_map(str::to_owned), 1 => other];
    let value = prop_oneof![
        6 => "[ab]{0,2}".prop_map(String::into_bytes),
        1 => Just(b"gzip, deflate".to_vec()),
        2 => "([!-~]([ -~]{0,198}[!-~])?)?".prop_map(String::into_bytes),
        1 => vec(0x80_u8.., 0..20),
        1 => (500_usize..1_500).prop_map(|len| vec![b'v'; len]),
    ];
    vec((name, value, prop::bool::weighted(0.1)), 0..24)
}

fn list_of(pairs: &Pairs) -> Fields {
    let mut fields = Fields::new();
    for (name, value, sensitive) in pairs {
        let value = Value::new(value).unwrap();
        if *sensitive {
            fields.append_sensitive(name.as_str(), value);
        } else {
            fields.append(name.as_str(), value);
        }
    }
    fields
}

/// The block as the other implementation decodes it.
fn of_other(decoder: &mut httlib_hpack::Decoder<'_>, block: &[u8]) -> Pairs {
    let mut list = Vec::new();
    decoder.decode(&mut block.to_vec(), &mut list).unwrap();
    let pair = |(name, value, flags): (Vec<u8>, Vec<u8>, u8)| {
        let sensitive = flags & httlib_hpack::Decoder::NEVER_INDEXED != 0;
        (String::from_utf8(name).unwrap(), value, sensitive)
    };
    list.into_iter().map(pair).collect()
}

proptest! {
    #[test]
    fn blocks_survive_changes_of_the_table_size(
        steps in vec((pairs(), prop_oneof![4 => Just(Vec::new()), 1 => vec(0_u32..9_000, 1..4)]), 1..20),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let mut other = httlib_hpack::Decoder::with_dynamic_size(4096);
        for (pairs, sizes) in steps {
            sizes.into_iter().for_each(|size| encoder.peer_table_size(size));
            let list = list_of(&pairs);
            let mut block = Vec::new();
            encoder.fields(&list, &mut block);
            let (got, outcome) = decoded(&mut decoder, &block).unwrap();
            prop_assert_eq!(&got, &list);
            prop_assert_eq!(outcome, Outcome {
                size: list.list_size(),
                fields: list.len(),
                ..Outcome::default()
            });
            prop_assert_eq!(of_other(&mut other, &block), pairs);
        }
        prop_assert!(decoder.held() < 16_384 && encoder.held() < 20_480, "{} {}", decoder.held(), encoder.held());
    }

    #[test]
    fn blocks_that_repeat_mean_the_same_while_the_tables_change(
        lists in vec(pairs(), 1..5),
        steps in vec((any::<prop::sample::Index>(), prop::option::weighted(0.1, 0_u32..5_000), 0_usize..4), 1..60),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let mut other = httlib_hpack::Decoder::with_dynamic_size(4096);
        for (list, size, limit) in steps {
            size.into_iter().for_each(|size| encoder.peer_table_size(size));
            let pairs = list.get(&lists);
            let whole = list_of(pairs);
            let mut block = Vec::new();
            encoder.fields(&whole, &mut block);
            // Now and then a limit that cuts the list: it must not be what a later block without it gets.
            let limits = Limits { list: usize::MAX, fields: if limit == 0 { 3 } else { usize::MAX } };
            let mut got = Fields::new();
            let outcome = decoder.decode(&block, limits, &mut got).unwrap();
            prop_assert_eq!(outcome.fields, whole.len());
            prop_assert_eq!(outcome.over, whole.len() > limits.fields);
            prop_assert!(got.all().eq(whole.all().take(limits.fields)));
            prop_assert_eq!(&of_other(&mut other, &block), pairs);
        }
    }

    #[test]
    fn blocks_of_another_encoder_are_decoded(
        steps in vec((pairs(), vec(any::<u8>(), 24), prop::option::weighted(0.2, 0_u32..=4096)), 1..20),
    ) {
        let mut other = httlib_hpack::Encoder::with_dynamic_size(4096);
        let mut decoder = Decoder::new(4096);
        for (pairs, flags, size) in steps {
            let mut block = Vec::new();
            if let Some(size) = size {
                other.update_max_dynamic_size(size, &mut block).unwrap();
            }
            for ((name, value, sensitive), flags) in pairs.iter().zip(flags) {
                // Huffman code, indexing and the best representation as the bits say; or never indexed.
                let flags = if *sensitive { flags & 0x03 | 0x08 } else { flags & 0x17 };
                other.encode((name.clone().into_bytes(), value.clone(), flags), &mut block).unwrap();
            }
            let (got, _) = decoded(&mut decoder, &block).unwrap();
            prop_assert_eq!(got, list_of(&pairs));
        }
    }

    #[test]
    fn limits_leave_the_tables_in_step(blocks in vec(pairs(), 1..12), list in 0_usize..2_000, count in 0_usize..30) {
        let (mut encoder, mut narrow, mut wide) = (Encoder::new(), Decoder::new(4096), Decoder::new(4096));
        for pairs in blocks {
            let all = list_of(&pairs);
            let mut block = Vec::new();
            encoder.fields(&all, &mut block);
            let mut stored = Fields::new();
            let outcome = narrow.decode(&block, Limits { list, fields: count }, &mut stored).unwrap();
            let (_, whole) = decoded(&mut wide, &block).unwrap();
            let over = all.list_size() > list || all.len() > count;
            prop_assert_eq!(outcome, Outcome { over, ..whole });
            prop_assert!(stored.list_size() <= list && stored.len() <= count);
            prop_assert!(stored.all().eq(all.all().take(stored.len())));
            prop_assert!(over || stored.len() == all.len());
        }
    }
}

#[test]
fn pseudo_header_fields_come_first() {
    let list = [("accept", "a"), (":path", "/p"), ("x-a", "1"), (":method", "PUT")];
    let head = RequestHead::of_fields(http::Method::PUT, fields(&list));
    let mut block = Vec::new();
    Encoder::new().request(&head, &mut block);
    let (got, outcome) = decoded(&mut Decoder::new(4096), &block).unwrap();
    let order = [(":path", "/p"), (":method", "PUT"), ("accept", "a"), ("x-a", "1")];
    assert_eq!(got, fields(&order));
    assert_eq!((outcome.malformed, outcome.pseudo), (None, 0b1001));
}

#[test]
fn values_that_change_stay_out_of_the_table() {
    let mut encoder = Encoder::new();
    let mut lengths = Vec::new();
    for round in 0..100 {
        let changing = format!("value-{round}");
        let mut block = Vec::new();
        let list = [("3gpp-sbi-oci", &*changing), ("accept", "a"), ("x-vendor", "b")];
        encoder.fields(&fields(&list), &mut block);
        lengths.push(block.len());
    }
    // One index for each value that stays; name by index and value for the one that changes.
    assert!(
        lengths[10..].iter().all(|len| *len == 1 + 1 + 2 + 1 + 8),
        "{lengths:?}"
    );
}

#[test]
fn two_values_in_turn_stay_in_the_table() {
    let mut encoder = Encoder::new();
    for round in 0..20 {
        let value = if round % 2 == 0 {
            "application/json"
        } else {
            "application/problem+json"
        };
        let mut block = Vec::new();
        encoder.fields(&fields(&[("content-type", value)]), &mut block);
        assert!(
            round < 4 || block.len() == 1,
            "round {round}: {} bytes",
            block.len()
        );
    }
}

#[test]
fn sensitive_values_stay_sensitive_and_out_of_the_table() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    let mut list = Fields::new();
    list.append_sensitive("x-secret", Value::from_static("s"));
    for _ in 0..3 {
        let mut block = Vec::new();
        encoder.fields(&list, &mut block);
        assert_eq!(decoded(&mut decoder, &block).unwrap().0, list);
        assert_eq!(decoder.table_size(), 0);
    }
}
