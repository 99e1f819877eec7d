//! Names: exact, none twice, and what they take of memory.

use std::collections::HashMap;

use numbers::{MOST_NAME_BYTES, NameError, Names, NamesBuilder};
use proptest::prelude::*;

use crate::counted::allocated;

fn built<'n>(names: impl IntoIterator<Item = (&'n [u8], u16)>) -> Result<Names, NameError> {
    let mut builder = NamesBuilder::default();
    for (line, (name, value)) in names.into_iter().enumerate() {
        builder.add(name, value, line as u64 + 1)?;
    }
    builder.finish()
}

proptest! {
    /// Against a map of the standard library, with the known names, parts of them and others.
    #[test]
    fn a_name_is_found_whole_or_not_at_all(
        known in prop::collection::hash_map("[a-c*@.]{1,6}", any::<u16>(), 0..200),
        others in prop::collection::vec("[a-c*@.]{0,7}", 0..200),
    ) {
        let names = built(known.iter().map(|(name, value)| (name.as_bytes(), *value))).unwrap();
        prop_assert_eq!(names.len(), known.len());
        let known: HashMap<&str, u16> = known.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        for name in known.keys().copied().chain(others.iter().map(String::as_str)) {
            prop_assert_eq!(names.find(name.as_bytes()), known.get(name).copied());
            let part = &name[..name.len().saturating_sub(1)];
            prop_assert_eq!(names.find(part.as_bytes()), known.get(part).copied());
        }
        let listed: HashMap<&[u8], u16> = names.iter().collect();
        let expected = known.iter().map(|(name, value)| (name.as_bytes(), *value));
        prop_assert_eq!((names.iter().count(), listed), (known.len(), expected.collect()));
    }
}

#[test]
fn what_is_not_a_name_is_refused_and_the_longest_is_found() {
    let longest = vec![0xff; MOST_NAME_BYTES];
    let names = built([(&longest[..], 7)]).unwrap();
    assert_eq!(names.find(&longest), Some(7));
    assert_eq!(names.find(&vec![0xff; MOST_NAME_BYTES + 1]), None);
    assert_eq!(names.find(&vec![0xff; 60_000]), None);
    assert_eq!(names.find(b""), None);
    let too_long = vec![0; MOST_NAME_BYTES + 1];
    assert_eq!(built([(&too_long[..], 1)]).unwrap_err(), NameError::Length(256));
    assert_eq!(built([(&b""[..], 1)]).unwrap_err(), NameError::Length(0));
    assert_eq!(built([]).unwrap().find(b"a"), None);
    let twice = built([(&b"a"[..], 1), (&b"b"[..], 1), (&b"a"[..], 2)]).unwrap_err();
    assert_eq!(twice.to_string(), "a is there twice; first on line 1");
}

/// The guide's records of devices have 27 bytes. A name has three bytes beside its own, and an eighth of a position.
#[test]
fn a_name_takes_four_bytes_besides_its_own() {
    const COUNT: usize = 100_000;
    let name = |number: usize| format!("{number:015}@iot.example");
    assert_eq!(name(1).len(), 27);
    let mut builder = NamesBuilder::default();
    for number in 0..COUNT {
        builder
            .add(name(number).as_bytes(), number as u16, number as u64)
            .unwrap();
    }
    let names = builder.finish().unwrap();
    let with = allocated();
    assert_eq!(names.find(name(COUNT - 1).as_bytes()), Some((COUNT - 1) as u16));
    let counted = names.bytes();
    drop(names);
    let freed = (with - allocated()) as usize;
    assert_eq!(freed, counted, "what pages show is what was allocated");
    assert_eq!(freed, COUNT * (27 + 3 + 1) + 8);
}
