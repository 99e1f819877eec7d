//! Global title translation: selectors, prefixes and ranges, changes of addresses, groups, a million entries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use fuzz_support::Random;
use ss7_proto::gtt::{
    BuildError, Change, Circumstances, Group, Live, Member, Mode, Modification, Selector, SetId, Table,
    TableBuilder, Translation,
};
use ss7_proto::point_code::PointCode;
use ss7_proto::sccp::{Address, AddressBuf, Format, GlobalTitleBuf};
use ss7_proto::{Digits, sccp};

pub(crate) fn digits(text: &str) -> Digits {
    Digits::parse(text).unwrap()
}

fn member(code: u32, weight: u16) -> Member {
    Member {
        point_code: PointCode(code),
        ssn: None,
        weight,
    }
}

pub(crate) fn solitary(code: u32) -> Group {
    Group {
        mode: Mode::Solitary,
        members: vec![member(code, 1)],
    }
}

pub(crate) fn to(group: u32) -> Translation {
    Translation {
        group,
        modification: Modification::default(),
    }
}

/// An address with title 0100, E.164, international.
pub(crate) fn address(number: &str) -> AddressBuf {
    AddressBuf {
        ssn: Some(6),
        route_on_title: true,
        title: Some(GlobalTitleBuf {
            indicator: 4,
            translation_type: 0,
            numbering_plan: 1,
            nature: 4,
            digits: digits(number),
        }),
        ..AddressBuf::default()
    }
}

pub(crate) fn octets(address: &AddressBuf) -> Vec<u8> {
    let mut out = Vec::new();
    address.write(Format::Itu, &mut out).unwrap();
    out
}

/// The point code that a number leads to.
fn leads(table: &Table, number: &str) -> Option<u32> {
    let octets = octets(&address(number));
    let found = table.translate(&Address::parse(&octets, Format::Itu).unwrap())?;
    found.group.choose(0, |_| true).map(|member| member.point_code.0)
}

pub(crate) const ANY: Selector = Selector::ANY;

/// A table of one set.
fn table(rows: &[(&str, &str, u32)]) -> Result<Table, BuildError> {
    let mut builder = TableBuilder::new();
    let set = builder.set(ANY);
    for (first, last, code) in rows {
        let group = builder.group(solitary(*code));
        builder.range(set, digits(first), digits(last), to(group));
    }
    builder.build()
}

#[test]
fn the_longest_prefix_wins() {
    let rows = [
        ("", "", 1),
        ("43", "43", 2),
        ("43660", "43660", 3),
        ("4366012345", "4366012345", 4),
        ("4", "4", 5),
    ];
    let table = table(&rows).unwrap();
    for (number, code) in [
        ("", 1),
        ("1", 1),
        ("4", 5),
        ("42", 5),
        ("43", 2),
        ("4366", 2),
        ("43660", 3),
        ("436601234", 3),
        ("4366012345", 4),
        ("436601234567890", 4),
        ("4366012346", 3),
        ("43b", 2),
        ("f", 1),
    ] {
        assert_eq!(leads(&table, number), Some(code), "{number}");
    }
}

#[test]
fn ranges_and_what_is_within_them() {
    let rows = [
        ("43000", "43599", 1),
        ("4310", "4319", 2),
        ("43155", "43155", 3),
        ("43", "43", 4),
    ];
    let table = table(&rows).unwrap();
    for (number, code) in [
        ("43000", Some(1)),
        ("4359999", Some(1)),
        ("43600", Some(4)),
        ("431000", Some(2)),
        ("431550", Some(3)),
        ("431560", Some(2)),
        ("44", None),
        ("", None),
    ] {
        assert_eq!(leads(&table, number), code, "{number}");
    }
}

#[test]
fn semi_octets_of_one_notation_and_st() {
    let table = table(&[("43bc", "43bc", 1), ("43", "43", 2)]).unwrap();
    assert_eq!(leads(&table, "43bc12"), Some(1));
    assert_eq!(leads(&table, "43b"), Some(2));
    // A closing ST is not matched.
    let exact = self::table(&[("436", "436", 1)]).unwrap();
    assert_eq!(leads(&exact, "436f"), Some(1));
}

#[test]
fn tables_that_contradict_themselves() {
    assert!(matches!(
        table(&[("43", "43", 1), ("43", "43", 2)]),
        Err(BuildError::Twice(..))
    ));
    assert!(matches!(
        table(&[("100", "300", 1), ("250", "400", 2)]),
        Err(BuildError::Overlap(..))
    ));
    assert!(matches!(table(&[("300", "100", 1)]), Err(BuildError::Range(..))));
    assert!(matches!(table(&[("1", "20", 1)]), Err(BuildError::Range(..))));
    assert!(matches!(table(&[("1a", "1c", 1)]), Err(BuildError::Range(..))));
    let long = "1".repeat(33);
    assert!(matches!(table(&[(&long, &long, 1)]), Err(BuildError::Prefix(..))));
    let mut builder = TableBuilder::new();
    let set = builder.set(ANY);
    builder.prefix(set, digits("1"), to(3));
    assert_eq!(builder.build().unwrap_err(), BuildError::Group(3));
    let mut builder = TableBuilder::new();
    builder.group(Group {
        mode: Mode::Dominant,
        members: Vec::new(),
    });
    assert_eq!(builder.build().unwrap_err(), BuildError::Empty(0));
    let mut builder = TableBuilder::new();
    builder.set(ANY);
    builder.set(ANY);
    assert_eq!(builder.build().unwrap_err(), BuildError::Selector(ANY));
}

#[test]
fn the_most_specific_selector_wins() {
    let mut builder = TableBuilder::new();
    let any = builder.set(ANY);
    let e164 = builder.set(Selector {
        numbering_plan: Some(1),
        ..ANY
    });
    let exact = builder.set(Selector {
        indicator: Some(4),
        translation_type: Some(0),
        numbering_plan: Some(1),
        nature: Some(4),
        ..ANY
    });
    for (code, set) in [any, e164, exact].into_iter().enumerate() {
        let group = builder.group(solitary(code as u32));
        builder.prefix(set, digits("43"), to(group));
    }
    let table = builder.build().unwrap();
    let selected = |change: fn(&mut GlobalTitleBuf)| {
        let mut address = address("43660");
        address.title.as_mut().map(change).unwrap();
        let octets = octets(&address);
        let address = Address::parse(&octets, Format::Itu).unwrap();
        assert!(table.has_set_for(&address, &Circumstances::default()));
        table.translate(&address).unwrap().set
    };
    assert_eq!(selected(|_| {}), exact);
    assert_eq!(selected(|title| title.nature = 3), e164);
    assert_eq!(selected(|title| title.indicator = 3), e164);
    assert_eq!(selected(|title| title.numbering_plan = 6), any);
    assert_eq!(selected(|title| title.indicator = 2), any);
    // Without a title there is nothing to translate.
    let bare = Address::parse(&[0x42, 6], Format::Itu).unwrap();
    assert!(table.translate(&bare).is_none() && !table.has_set_for(&bare, &Circumstances::default()));
}

#[test]
fn addresses_are_modified() {
    let original = address("436601234567");
    assert_eq!(Modification::default().apply(original), Some(original));
    // To a routing number, with another plan: E.164 to E.214.
    let change = Modification {
        point_code: Change::Set(PointCode(6545)),
        ssn: Change::Set(7),
        numbering_plan: Some(7),
        translation_type: Some(9),
        nature: Some(3),
        indicator: Some(3),
        remove_prefix: 2,
        prefix: digits("0049"),
        remove_suffix: 3,
        suffix: digits("c"),
        ..Modification::default()
    };
    let changed = change.apply(original).unwrap();
    let title = changed.title.unwrap();
    assert_eq!(title.digits.to_string(), "00496601234c");
    assert_eq!(
        (
            title.indicator,
            title.translation_type,
            title.numbering_plan,
            title.nature
        ),
        (3, 9, 7, 3)
    );
    assert_eq!(
        (changed.ssn, changed.point_code),
        (Some(7), Some(PointCode(6545)))
    );
    let last = Modification {
        route_on_ssn: true,
        remove_title: true,
        ssn: Change::Remove,
        ..Modification::default()
    };
    let changed = last.apply(original).unwrap();
    assert_eq!(
        (changed.route_on_title, changed.title, changed.ssn),
        (false, None, None)
    );
    // More digits go than there are; more come than fit.
    let all = Modification {
        remove_prefix: 40,
        remove_suffix: 40,
        ..Modification::default()
    };
    assert!(all.apply(original).unwrap().title.unwrap().digits.is_empty());
    let many = Modification {
        prefix: digits(&"1".repeat(40)),
        ..Modification::default()
    };
    assert_eq!(many.apply(original), None);
}

#[test]
fn groups_choose() {
    let all = |_: &Member| true;
    let group = |mode| Group {
        mode,
        members: vec![member(1, 1), member(2, 3), member(3, 0)],
    };
    let code = |found: Option<&Member>| found.map(|member| member.point_code.0);
    assert_eq!(code(group(Mode::Solitary).choose(5, all)), Some(1));
    assert_eq!(
        code(group(Mode::Solitary).choose(5, |member| member.point_code.0 != 1)),
        None
    );
    assert_eq!(
        code(group(Mode::Dominant).choose(5, |member| member.point_code.0 != 1)),
        Some(2)
    );
    let shared = group(Mode::LoadShared);
    let mut counts = HashMap::new();
    for key in 0..40_000 {
        let before = code(shared.choose(key, all)).unwrap();
        *counts.entry(before).or_insert(0) += 1;
        // One that fails gives up its share, the others keep theirs.
        let after = code(shared.choose(key, |member| member.point_code.0 != 1)).unwrap();
        assert_eq!(after, 2);
        let spare = code(shared.choose(key, |member| member.point_code.0 == 3));
        assert_eq!(spare, Some(3));
        assert_eq!(code(shared.choose(key, |_| false)), None);
    }
    assert!((9_000..11_000).contains(&counts[&1]), "{counts:?}");
    assert!(!counts.contains_key(&3));
}

/// A table of a million numbers of 10 to 15 digits.
fn million() -> (Table, Vec<(String, u32)>) {
    let mut builder = TableBuilder::new();
    let set = builder.set(ANY);
    for code in 0..1_000 {
        builder.group(solitary(code));
    }
    let mut random = Random::new(0x617);
    let mut samples = Vec::new();
    for index in 0..1_000_000_u64 {
        // Each number once, in random order, of 10 to 15 digits: a prime times the index.
        let length = 8 + random.below(6);
        let number = index * 32_452_843 % 100_000_000;
        let text = format!("43{number:08}{}", "1234567".get(..length - 8).unwrap());
        let group = random.below(1_000) as u32;
        builder.prefix(set, digits(&text), to(group));
        if index % 1_000 == 0 {
            samples.push((text, group));
        }
    }
    (builder.build().unwrap(), samples)
}

#[test]
fn a_million_entries_in_forty_octets_each_replaced_beside_readers() {
    let (table, samples) = million();
    let octets = table.octets();
    assert!(octets <= 40_000_000, "{octets} octets");
    eprintln!("{octets} octets for 1,000,000 entries");
    let live = Live::new(table);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let mut count = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let table = live.table();
                for (number, code) in &samples {
                    // A shorter number of the table may be a prefix of this one, never the other way round.
                    let found = leads(&table, number).unwrap();
                    assert_eq!(found % 10_000, *code);
                    count += 1;
                }
            }
            count
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        let next: Vec<_> = samples
            .iter()
            .map(|(text, code)| (&text[..], &text[..], code + 10_000))
            .collect();
        let next = self::table(&next).unwrap();
        drop(live.replace(next));
        assert!(
            samples
                .iter()
                .all(|(number, code)| leads(&live.table(), number) == Some(code + 10_000))
        );
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}

/// Random prefixes and ranges, judged by a search through all of them.
#[test]
fn translations_agree_with_a_search() {
    let mut random = Random::new(0x9713);
    for _ in 0..300 {
        let mut rows: Vec<(String, String, u32)> = Vec::new();
        for code in 0..random.below(60) as u32 {
            let length = 1 + random.below(4);
            let limit = 10_u64.pow(length as u32);
            let first = random.next_u64() % limit;
            let last = if random.below(3) == 0 {
                (first + random.next_u64() % 30).min(limit - 1)
            } else {
                first
            };
            rows.push((format!("{first:0length$}"), format!("{last:0length$}"), code));
        }
        // What contradicts an earlier row is left out.
        let mut kept: Vec<(&str, &str, u32)> = Vec::new();
        for (first, last, code) in &rows {
            kept.push((first, last, *code));
            if table(&kept).is_err() {
                kept.pop();
            }
        }
        let table = table(&kept).unwrap();
        for _ in 0..100 {
            let number = format!("{:06}", random.next_u64() % 1_000_000);
            let within = |(first, last, _): &&(&str, &str, u32)| {
                let start = &number[..first.len()];
                *first <= start && start <= *last
            };
            // The narrowest: fewest numbers of six digits, of equal ones the one with more digits.
            let size = |(first, last, _): &&(&str, &str, u32)| {
                let count = last.parse::<u64>().unwrap() - first.parse::<u64>().unwrap() + 1;
                let numbers = count * 10_u64.pow(6 - first.len() as u32);
                (numbers, std::cmp::Reverse(first.len()))
            };
            let expected = kept
                .iter()
                .filter(within)
                .min_by_key(size)
                .map(|(_, _, code)| *code);
            assert_eq!(leads(&table, &number), expected, "{number} {kept:?}");
        }
    }
}

#[test]
fn a_relay_translates_a_message() {
    let mut builder = TableBuilder::new();
    let set: SetId = builder.set(ANY);
    let group = builder.group(solitary(99));
    let modification = Modification {
        route_on_ssn: true,
        point_code: Change::Set(PointCode(99)),
        ..Modification::default()
    };
    builder.prefix(set, digits("4366"), Translation { group, modification });
    let table = builder.build().unwrap();
    let called = octets(&address("43660123"));
    let message = crate::exercise::unitdata(&called, &[0x42, 8], &[1, 2, 3]);
    let parsed = Address::parse(message.called, Format::Itu).unwrap();
    let found = table.translate(&parsed).unwrap();
    assert_eq!(found.digits, 4);
    let called = octets(&found.apply(&parsed).unwrap());
    let mut out = Vec::new();
    sccp::Unitdata {
        called: &called,
        ..message
    }
    .write(&mut out)
    .unwrap();
    let Ok(sccp::Message::Unitdata(read)) = sccp::Message::parse(&out) else {
        panic!()
    };
    let read = Address::parse(read.called, Format::Itu).unwrap();
    assert_eq!(
        (read.point_code, read.route_on_title),
        (Some(PointCode(99)), false)
    );
    assert_eq!(read.title.unwrap().digits().unwrap().to_string(), "43660123");
}
