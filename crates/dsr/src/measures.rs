//! Measurements beyond the counters of [`crate::events`]: what each rule, route list, throttle group and trace point did, and
//! transactions by application, command and result. A worker counts in memory of its own, without a lock; twice per
//! second it publishes a copy for metrics, pages and files.

use ahash::AHashMap;
use diameter::proto::{ResultCode, Routing};

/// Bound on the transactions that are counted apart; beyond, they count as application, command and result 0.
const MAX_TRANSACTIONS: usize = 4096;

/// What a named count is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Subject {
    /// Requests that fit a peer route rule.
    Rule,
    /// Requests that fit an application route rule.
    ApplicationRule,
    /// Requests that took a realm route.
    RealmRoute,
    /// Requests for a route list.
    RouteList,
    /// Requests that were sent to a throttle group.
    ThrottleGroup,
    /// Requests that a throttle group had no room for.
    ThrottleGroupFull,
    /// Requests and answers that a mediation rule changed.
    MediationRule,
    /// Transactions that fit a trace point.
    TracePoint,
}

impl Subject {
    /// The word for it in metrics and files.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::ApplicationRule => "application_rule",
            Self::RealmRoute => "realm_route",
            Self::RouteList => "route_list",
            Self::ThrottleGroup => "throttle_group",
            Self::ThrottleGroupFull => "throttle_group_full",
            Self::MediationRule => "mediation_rule",
            Self::TracePoint => "trace_point",
        }
    }
}

/// Names that are counted, by position: those of one configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<(Subject, Box<str>)>);

impl Names {
    /// The position of a name's count; none for an empty name.
    pub(crate) fn add(&mut self, subject: Subject, name: &str) -> Count {
        if name.is_empty() {
            return Count::NONE;
        }
        let same = |(of, known): &(Subject, Box<str>)| *of == subject && **known == *name;
        let at = self.0.iter().rposition(same).unwrap_or_else(|| {
            self.0.push((subject, name.into()));
            self.0.len() - 1
        });
        Count(at as u32)
    }
}

impl Names {
    /// The name at a position.
    pub(crate) fn name(&self, at: Count) -> Option<&str> {
        self.0.get(at.0 as usize).map(|(_, name)| &**name)
    }
}

/// Position of a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Count(u32);

impl Count {
    /// Not counted.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Application, command and result of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) application: u32,
    pub(crate) command: u32,
    /// Vendor-Id of an Experimental-Result; 0 for a Result-Code.
    pub(crate) vendor: u32,
    pub(crate) result: u32,
}

impl Transaction {
    /// That of an answer.
    #[inline]
    pub(crate) fn of(application: u32, command: u32, answer: &Routing<'_>) -> Self {
        let (vendor, result) = match answer.result_code {
            Some(code) => (0, code),
            None => answer.experimental_result().unwrap_or_default(),
        };
        Self {
            application,
            command,
            vendor,
            result,
        }
    }

    /// That of an answer of our own.
    pub(crate) const fn refused(application: u32, command: u32, vendor: u32, code: ResultCode) -> Self {
        Self {
            application,
            command,
            vendor,
            result: code.0,
        }
    }
}

/// A worker's counts.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    names: Vec<(Subject, Box<str>)>,
    counts: Vec<u64>,
    transactions: AHashMap<Transaction, u64>,
}

impl Measures {
    /// Counts of names that are no longer there end; those of the others go on.
    pub(crate) fn configure(&mut self, names: &Names) {
        let before: AHashMap<_, _> = self.names.drain(..).zip(self.counts.drain(..)).collect();
        let count = |name: &(Subject, Box<str>)| before.get(name).copied().unwrap_or_default();
        self.counts.extend(names.0.iter().map(count));
        self.names.clone_from(&names.0);
    }

    /// One more.
    #[inline]
    pub(crate) fn count(&mut self, at: Count) {
        if let Some(count) = self.counts.get_mut(at.0 as usize) {
            *count += 1;
        }
    }

    /// A transaction was answered.
    #[inline]
    pub(crate) fn answered(&mut self, transaction: Transaction) {
        if let Some(count) = self.transactions.get_mut(&transaction) {
            *count += 1;
            return;
        }
        let key = match self.transactions.len() < MAX_TRANSACTIONS {
            true => transaction,
            false => Transaction::default(),
        };
        *self.transactions.entry(key).or_default() += 1;
    }

    /// A copy for others.
    pub(crate) fn publish(&self) -> Published {
        Published {
            named: self
                .names
                .iter()
                .cloned()
                .zip(self.counts.iter().copied())
                .collect(),
            transactions: self
                .transactions
                .iter()
                .map(|(key, count)| (*key, *count))
                .collect(),
        }
    }
}

/// The counts of a worker, or of several together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    pub(crate) named: Vec<((Subject, Box<str>), u64)>,
    pub(crate) transactions: Vec<(Transaction, u64)>,
}

impl Published {
    /// The sums over several workers, in order.
    pub(crate) fn sum<'p>(all: impl Iterator<Item = &'p Self>) -> Self {
        let mut named = std::collections::BTreeMap::new();
        let mut transactions = std::collections::BTreeMap::new();
        for one in all {
            for (name, count) in &one.named {
                *named.entry(name.clone()).or_insert(0) += count;
            }
            for (transaction, count) in &one.transactions {
                *transactions.entry(*transaction).or_insert(0) += count;
            }
        }
        Self {
            named: named.into_iter().collect(),
            transactions: transactions.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_counts_over_a_new_configuration() {
        let mut names = Names::default();
        let (one, two) = (names.add(Subject::Rule, "one"), names.add(Subject::Rule, "two"));
        assert_eq!(
            names.add(Subject::Rule, "one"),
            one,
            "rules of one name count together"
        );
        assert_eq!(names.add(Subject::Rule, ""), Count::NONE);
        let mut measures = Measures::default();
        measures.configure(&names);
        measures.count(one);
        measures.count(two);
        measures.count(two);
        measures.count(Count::NONE);
        let mut next = Names::default();
        next.add(Subject::RouteList, "two");
        let two = next.add(Subject::Rule, "two");
        measures.configure(&next);
        measures.count(two);
        let named = |subject, name: &str| (subject, Box::<str>::from(name));
        assert_eq!(
            measures.publish().named,
            [
                (named(Subject::RouteList, "two"), 0),
                (named(Subject::Rule, "two"), 3)
            ]
        );
    }

    #[test]
    fn transactions_are_bounded_and_summed() {
        let mut measures = Measures::default();
        for result in 0..10_000 {
            measures.answered(Transaction::refused(1, 2, 0, ResultCode(result)));
        }
        let published = measures.publish();
        assert_eq!(published.transactions.len(), MAX_TRANSACTIONS + 1);
        let both = Published::sum([&published, &published].into_iter());
        assert_eq!(
            both.transactions.iter().map(|(_, count)| count).sum::<u64>(),
            20_000
        );
    }
}
