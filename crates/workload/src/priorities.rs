//! Priorities of requests, which reports distinguish.

use rand::Rng;

use callmodel::PriorityShare;
use loadgen::Weights;

/// Priorities of a model's requests; without any, requests carry none and reports do not distinguish them.
#[derive(Clone, Debug)]
pub struct Priorities {
    values: Vec<u8>,
    weights: Weights,
}

impl Priorities {
    /// Those of a model.
    #[must_use]
    pub fn new(shares: &[PriorityShare]) -> Self {
        Self {
            values: shares.iter().map(|one| one.priority).collect(),
            weights: Weights::new(shares.iter().map(|one| one.weight)),
        }
    }

    /// The position of the next request's priority.
    pub fn draw(&self, random: &mut impl Rng) -> u8 {
        // At most 32 of them.
        self.weights.draw(random) as u8
    }

    /// The priority at this position; `None` where requests carry none.
    #[must_use]
    pub fn value(&self, position: u8) -> Option<u8> {
        self.values.get(usize::from(position)).copied()
    }

    /// The operations of reports: all of the first priority, then all of the next.
    #[must_use]
    pub fn names(&self, operations: &[&str]) -> Vec<String> {
        if self.values.is_empty() {
            return operations.iter().map(|name| (*name).to_owned()).collect();
        }
        let of = |value: &u8| {
            let named = |name: &&str| format!("{name}, priority {value}");
            operations.iter().map(named).collect::<Vec<_>>()
        };
        self.values.iter().flat_map(of).collect()
    }

    /// Position among [`Priorities::names`] of an operation of `count` at this priority.
    #[must_use]
    pub fn number(position: u8, operation: u16, count: usize) -> u16 {
        u16::from(position) * count as u16 + operation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_the_position_of_its_name() {
        let shares = [(2, 1.0), (8, 3.0)].map(|(priority, weight)| PriorityShare { priority, weight });
        let priorities = Priorities::new(&shares);
        let names = priorities.names(&["a", "b"]);
        assert_eq!(
            names,
            ["a, priority 2", "b, priority 2", "a, priority 8", "b, priority 8"]
        );
        assert_eq!(names[usize::from(Priorities::number(1, 0, 2))], "a, priority 8");
        assert_eq!((priorities.value(1), priorities.value(2)), (Some(8), None));
        let none = Priorities::new(&[]);
        assert_eq!((none.names(&["a", "b"]).len(), none.value(0)), (2, None));
    }
}
