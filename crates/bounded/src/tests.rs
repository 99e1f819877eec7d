use std::collections::HashMap;

use proptest::prelude::*;

use crate::{Cache, Limits, SWEEP_MAX, Stats};

#[test]
fn an_entry_in_use_survives_a_flood_of_keys_asked_for_once() {
    let mut cache = Cache::new(Limits::entries(100));
    cache.insert(0, "in use");
    for key in 1..10_000 {
        assert_eq!(cache.get(&0), Some(&"in use"), "after {key} insertions");
        cache.insert(key, "once");
        assert!(cache.len() <= 100);
    }
    assert_eq!(cache.stats().evictions, 9_900);
}

#[test]
fn a_full_cache_evicts_the_oldest_unused_entry_first() {
    let mut cache = Cache::new(Limits::entries(4));
    for key in 0..4 {
        cache.insert(key, ());
    }
    for key in 4..40 {
        cache.insert(key, ());
        let mut kept: Vec<i32> = cache.iter().map(|(key, ())| *key).collect();
        kept.sort_unstable();
        assert_eq!(kept, [key - 3, key - 2, key - 1, key]);
    }
}

#[test]
fn a_cache_whose_entries_are_all_in_use_still_takes_constant_time() {
    let many = 10 * SWEEP_MAX;
    let mut cache = Cache::new(Limits::entries(many));
    for key in 0..many {
        cache.insert(key, ());
        cache.get(&key);
    }
    cache.insert(many, ());
    let evicted: Vec<usize> = (0..=many).filter(|key| cache.peek(key).is_none()).collect();
    assert_eq!(
        evicted,
        [SWEEP_MAX],
        "the hand passes {SWEEP_MAX} entries and not one more"
    );
}

#[test]
fn bytes_bound_the_entries_too() {
    let limits = Limits {
        entries: 10,
        bytes: 100,
    };
    let mut cache = Cache::new(limits);
    for key in 0..3 {
        cache.insert_sized(key, (), 30);
    }
    cache.insert_sized(3, (), 60);
    assert_eq!((cache.len(), cache.bytes()), (2, 90));
    assert_eq!(cache.insert_sized(3, (), 101), Some(()), "the value before");
    assert_eq!(cache.peek(&3), None, "an entry over the limit is not kept");
    assert_eq!((cache.len(), cache.bytes()), (1, 30));
    cache.set_limits(Limits::entries(0));
    cache.insert(1, ());
    assert!(cache.is_empty(), "limits of 0 switch the cache off");
}

#[test]
fn an_expired_entry_counts_as_a_miss() {
    let mut cache = Cache::new(Limits::entries(1));
    cache.insert("a", 5);
    assert_eq!(cache.get_if("a", |until| *until > 7), None);
    assert_eq!(cache.get_if("a", |until| *until > 4), Some(&5));
    assert_eq!(cache.get("b"), None);
    let expected = Stats {
        hits: 1,
        misses: 2,
        evictions: 0,
    };
    assert_eq!(cache.stats(), expected);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u32, usize),
    Get(u8),
    Remove(u8),
    Retain(u8),
    Limits(usize, usize),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), any::<u32>(), 0usize..40).prop_map(|(key, value, bytes)| Step::Insert(key, value, bytes)),
        8 => any::<u8>().prop_map(Step::Get),
        2 => any::<u8>().prop_map(Step::Remove),
        1 => (1u8..9).prop_map(Step::Retain),
        1 => (0usize..40, 0usize..400).prop_map(|(entries, bytes)| Step::Limits(entries, bytes)),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// A map that keeps everything is the judge: the cache may have forgotten, but never says anything else, and
    /// always keeps what was just inserted.
    #[test]
    fn any_sequence_of_operations_keeps_to_the_limits(steps in proptest::collection::vec(step(), 0..300)) {
        let mut limits = Limits { entries: 20, bytes: 200 };
        let mut cache: Cache<u8, u32> = Cache::new(limits);
        let mut judge: HashMap<u8, (u32, usize)> = HashMap::new();
        let (mut lookups, mut expected) = (0, 0i64);
        for step in steps {
            match step {
                Step::Insert(key, value, bytes) => {
                    let before = cache.peek(&key).copied();
                    prop_assert_eq!(cache.insert_sized(key, value, bytes), before);
                    judge.insert(key, (value, bytes));
                    let kept = limits.entries > 0 && bytes <= limits.bytes;
                    prop_assert_eq!(cache.peek(&key), kept.then_some(&value));
                    expected += i64::from(kept) - i64::from(before.is_some());
                }
                Step::Get(key) => {
                    lookups += 1;
                    if let Some(found) = cache.get(&key) {
                        prop_assert_eq!(Some(*found), judge.get(&key).map(|(value, _)| *value));
                    }
                }
                Step::Remove(key) => {
                    let removed = cache.remove(&key);
                    expected -= i64::from(removed.is_some());
                    prop_assert_eq!(cache.peek(&key), None);
                }
                Step::Retain(divisor) => {
                    let before = cache.len();
                    cache.retain(|key, _| key % divisor == 0);
                    expected -= (before - cache.len()) as i64;
                    prop_assert!(cache.iter().all(|(key, _)| key % divisor == 0));
                }
                Step::Limits(entries, bytes) => {
                    limits = Limits { entries, bytes };
                    cache.set_limits(limits);
                }
                Step::Clear => {
                    expected -= cache.len() as i64;
                    cache.clear();
                }
            }
            prop_assert!(cache.len() <= limits.entries && cache.bytes() <= limits.bytes);
            let stats = cache.stats();
            prop_assert_eq!(stats.hits + stats.misses, lookups);
            prop_assert_eq!(cache.len() as i64, expected - stats.evictions as i64, "every entry is accounted for");
            let mut bytes = 0;
            for (key, value) in cache.iter() {
                let judged = judge.get(key).copied();
                prop_assert_eq!(judged.map(|(value, _)| value), Some(*value));
                prop_assert_eq!(cache.peek(key), Some(value), "the table finds every entry");
                bytes += judged.map_or(0, |(_, bytes)| bytes);
            }
            prop_assert_eq!(cache.bytes(), bytes);
        }
    }
}
