//! SRV records and the order in which their targets are tried (RFC 2782).

/// Host and port at which a service is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Srv {
    /// Smaller is tried first.
    pub priority: u16,
    /// Share among those of one priority.
    pub weight: u16,
    /// Its port.
    pub port: u16,
    /// Its host name, lower case, without the dot of the root.
    pub host: Box<str>,
}

/// The records in the order in which they are to be tried: by priority, and among those of one priority drawn
/// by weight. `random` answers any number.
#[must_use]
pub fn in_order(records: &[Srv], mut random: impl FnMut() -> u64) -> Vec<Srv> {
    let mut left = records.to_vec();
    // Those without weight go first, which gives them the small chance that the standard wants.
    left.sort_by_key(|one| (one.priority, one.weight));
    let mut ordered = Vec::with_capacity(left.len());
    while let Some(first) = left.first() {
        let equals = left
            .iter()
            .take_while(|one| one.priority == first.priority)
            .count();
        let total: u64 = left[..equals].iter().map(|one| u64::from(one.weight)).sum();
        let ticket = random() % (total + 1);
        let mut sum = 0;
        let drawn = left[..equals].iter().position(|one| {
            sum += u64::from(one.weight);
            sum >= ticket
        });
        ordered.push(left.remove(drawn.unwrap_or(0)));
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn srv(priority: u16, weight: u16, host: &str) -> Srv {
        Srv {
            priority,
            weight,
            port: 80,
            host: host.into(),
        }
    }

    #[test]
    fn priority_then_weight() {
        let records = [
            srv(2, 0, "last"),
            srv(1, 30, "a"),
            srv(1, 10, "b"),
            srv(1, 0, "c"),
        ];
        let mut first = [0; 3];
        let mut seed = 7_u64;
        for _ in 0..4_100 {
            let order = in_order(&records, || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed >> 33
            });
            assert_eq!(&*order[3].host, "last");
            let at = ["a", "b", "c"].iter().position(|name| **name == *order[0].host);
            first[at.unwrap()] += 1;
        }
        assert!((2_700..3_300).contains(&first[0]), "{first:?}");
        assert!((800..1_200).contains(&first[1]), "{first:?}");
        assert!((40..200).contains(&first[2]), "{first:?}");
    }

    proptest! {
        #[test]
        fn every_target_is_tried_once(
            records in proptest::collection::vec((0u16..3, any::<u16>(), any::<u16>()), 0..20),
            random in any::<u64>(),
        ) {
            let records: Vec<Srv> = records
                .into_iter()
                .map(|(priority, weight, port)| Srv { priority, weight, port, host: "x".into() })
                .collect();
            let ordered = in_order(&records, || random);
            prop_assert_eq!(ordered.len(), records.len());
            prop_assert!(ordered.is_sorted_by_key(|one| one.priority));
            for one in &records {
                prop_assert!(ordered.contains(one));
            }
        }
    }
}
