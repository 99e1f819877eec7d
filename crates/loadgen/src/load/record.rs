//! Results of requests: counts and latency histograms per operation.

use hdrhistogram::Histogram;

/// Latencies are kept in microseconds up to a minute, to three digits.
const LONGEST: u64 = 60_000_000;
const DIGITS: u8 = 3;
/// Failures described in words, per record.
const EXAMPLES: usize = 20;

/// Why a transaction has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The status was neither the expected one nor a refusal.
    Status,
    /// The body was not the one expected.
    Wrong,
    /// No answer in time.
    Timeout,
    /// The peer reset the stream.
    Reset,
    /// The connection was lost, or no connection was available.
    Connection,
    /// Too many requests were pending, or no stream was free; never sent.
    Overflow,
    /// The peer refused the request: status 429 or 503 (TS 29.500 §6.4).
    Refused,
}

impl FailureKind {
    /// All kinds, in the order of [`OperationRecord::failed`].
    pub const ALL: [Self; 7] = [
        Self::Status,
        Self::Wrong,
        Self::Timeout,
        Self::Reset,
        Self::Connection,
        Self::Overflow,
        Self::Refused,
    ];

    /// A word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Wrong => "wrong answer",
            Self::Timeout => "timeout",
            Self::Reset => "stream reset",
            Self::Connection => "connection",
            Self::Overflow => "not sent",
            Self::Refused => "refused",
        }
    }
}

/// Results of one operation.
#[derive(Clone, Debug)]
pub struct OperationRecord {
    /// Arrivals of the schedule, sent or not.
    pub offered: u64,
    /// Answered as expected.
    pub succeeded: u64,
    /// Failures, in the order of [`FailureKind::ALL`].
    pub failed: [u64; 7],
    /// Microseconds from the intended time to the end of the answer, failures with an answer included;
    /// timeouts count with their time.
    pub latency: Histogram<u32>,
}

impl Default for OperationRecord {
    fn default() -> Self {
        // Proof: the bounds are constants that hdrhistogram accepts (a test makes one).
        let latency = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("constant bounds are valid");
        Self {
            offered: 0,
            succeeded: 0,
            failed: [0; 7],
            latency,
        }
    }
}

impl OperationRecord {
    /// Records a latency in microseconds.
    pub fn time(&mut self, micros: u64) {
        self.latency.saturating_record(micros);
    }

    /// Records a failure.
    pub fn fail(&mut self, kind: FailureKind) {
        self.failed[kind as usize] += 1;
    }

    /// All failures.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Failures of these kinds.
    #[must_use]
    pub fn failures_of(&self, kinds: &[FailureKind]) -> u64 {
        kinds.iter().map(|kind| self.failed[*kind as usize]).sum()
    }

    /// Adds the results of the same operation from another record.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.succeeded += other.succeeded;
        for (mine, theirs) in self.failed.iter_mut().zip(other.failed) {
            *mine += theirs;
        }
        // Proof: both have the same bounds.
        self.latency
            .add(&other.latency)
            .expect("histograms of one shape add up");
    }
}

/// Results of a run, or a part of it.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// By operation.
    pub operations: Vec<OperationRecord>,
    /// The first failures in words.
    pub examples: Vec<String>,
}

impl Record {
    /// An empty record of this many operations.
    #[must_use]
    pub fn new(operations: usize) -> Self {
        Self {
            operations: vec![OperationRecord::default(); operations],
            examples: Vec::new(),
        }
    }

    /// Adds another record of the same operations.
    pub fn merge(&mut self, other: &Self) {
        if self.operations.len() < other.operations.len() {
            self.operations
                .resize_with(other.operations.len(), OperationRecord::default);
        }
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.merge(theirs);
        }
        for example in &other.examples {
            self.example(|| example.clone());
        }
    }

    /// Keeps the description of a failure, if there are few yet.
    pub fn example(&mut self, words: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(words());
        }
    }

    /// All operations together.
    #[must_use]
    pub fn total(&self) -> OperationRecord {
        let mut total = OperationRecord::default();
        for operation in &self.operations {
            total.merge(operation);
        }
        total
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations
            .iter()
            .all(|o| o.offered == 0 && o.succeeded == 0 && o.failures() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the samples are spread over threads, the merged record is the same.
        #[test]
        fn merging_is_as_recording_in_one_place(
            samples in prop::collection::vec((0_usize..3, 1_u64..100_000_000, prop::option::of(0_usize..7), 0_usize..4), 1..200)
        ) {
            let mut one = Record::new(3);
            let mut shards = vec![Record::new(3); 4];
            for (operation, micros, failure, shard) in samples {
                for record in [&mut one, &mut shards[shard]] {
                    let operation = &mut record.operations[operation];
                    operation.offered += 1;
                    operation.time(micros);
                    match failure {
                        Some(kind) => operation.fail(FailureKind::ALL[kind]),
                        None => operation.succeeded += 1,
                    }
                }
            }
            let mut merged = Record::default();
            for shard in &shards {
                merged.merge(shard);
            }
            for (a, b) in one.operations.iter().zip(&merged.operations) {
                prop_assert_eq!((a.offered, a.succeeded, a.failed), (b.offered, b.succeeded, b.failed));
                prop_assert_eq!(&a.latency, &b.latency);
            }
            prop_assert_eq!(one.total().latency, merged.total().latency);
        }
    }

    #[test]
    fn percentiles_keep_three_digits() {
        let mut record = OperationRecord::default();
        (1..=10_000).for_each(|micros| record.time(micros * 100));
        let p99 = record.latency.value_at_quantile(0.99) as f64;
        assert!((p99 / 990_000.0 - 1.0).abs() < 0.001, "{p99}");
    }
}
