//! What came of the writes.

use std::net::SocketAddr;
use std::time::Duration;

use super::client;
use super::watch::Shown;
use super::{Record, Records};
use crate::run::figure;
use ::report::Check;
use loadgen::client::{Client, Request};

/// Time in which a write has to be visible at each processor.
pub(crate) const VISIBLE: Duration = Duration::from_secs(1);
/// The least rate that counts as the wanted one, as a share of it.
const NEAR: f64 = 0.9;
/// Records that are compared at once.
const TOGETHER: usize = 500;
/// How long each comparison may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a processor has shown.
#[derive(Debug)]
pub(crate) struct Visibility {
    pub(crate) name: String,
    pub(crate) shown: Shown,
}

impl Visibility {
    /// Milliseconds from an acknowledgement until the processor has answered the write, for this share of the writes.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.shown.delays.latency.value_at_quantile(quantile) as f64 / 1000.0
    }

    fn in_words(&self) -> String {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|quantile| figure(self.quantile_ms(quantile)));
        let missed = match self.shown.missed {
            0 => String::new(),
            missed => format!(", {missed} never"),
        };
        format!(
            "{}: p50 {p50} ms, p99 {p99} ms, at most {max} ms{missed}",
            self.name
        )
    }
}

/// What came of the writes.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Writes per second that were wanted.
    pub(crate) wanted: f64,
    pub(crate) seconds: f64,
    pub(crate) acknowledged: u64,
    /// Answered by another status than 200 and 503.
    pub(crate) refused: u64,
    /// Sent again, for want of an answer or after 503.
    pub(crate) repeated: u64,
    pub(crate) visibility: Vec<Visibility>,
    /// Acknowledged writes that the server or a processor did not answer in the end, by its name.
    pub(crate) missing: Vec<(String, u64)>,
}

impl Outcome {
    /// Writes per second that were acknowledged.
    pub(crate) fn rate(&self) -> f64 {
        self.acknowledged as f64 / self.seconds.max(1e-3)
    }

    /// Acknowledged writes that were not found in the end, over server and processors.
    pub(crate) fn lost(&self) -> u64 {
        self.missing.iter().map(|(_, count)| count).sum()
    }

    /// Whether the wanted rate was acknowledged.
    pub(crate) fn judge_rate(&self) -> Check {
        let is_complete = self.refused == 0 && self.acknowledged > 0;
        Check::new(
            "provisioning beside the load",
            format!(
                "each write acknowledged, {} of {} a second at least",
                figure(self.wanted * NEAR),
                figure(self.wanted)
            ),
            format!(
                "{} acknowledged, {} refused, {} sent again; {} a second",
                self.acknowledged,
                self.refused,
                self.repeated,
                figure(self.rate())
            ),
            is_complete && self.rate() >= self.wanted * NEAR,
        )
        .of_time_if(is_complete)
    }

    /// Whether each processor has answered what was acknowledged soon enough.
    pub(crate) fn judge_visibility(&self) -> Check {
        let words: Vec<String> = self.visibility.iter().map(Visibility::in_words).collect();
        let is_soon = |one: &Visibility| {
            one.shown.missed == 0 && one.quantile_ms(1.0) <= VISIBLE.as_secs_f64() * 1000.0
        };
        Check::new(
            "writes are visible",
            format!(
                "at each processor, within {} s from their acknowledgement",
                VISIBLE.as_secs()
            ),
            words.join("; "),
            !words.is_empty() && self.visibility.iter().all(is_soon),
        )
        .of_time()
    }

    /// Whether server and processors answer each write that was acknowledged.
    pub(crate) fn judge_lost(&self) -> Check {
        let words = self.missing.iter();
        let words: Vec<String> = words.map(|(name, count)| format!("{count} at {name}")).collect();
        Check::new(
            "acknowledged writes are found afterwards",
            format!(
                "each of {} at the server and at each processor",
                self.acknowledged
            ),
            format!("missing: {}", words.join(", ")),
            self.acknowledged > 0 && self.lost() == 0,
        )
    }
}

/// Asks the server and each processor for these writes; how many each lacks. One that does not answer lacks all.
pub(super) fn missing(
    numbers: &[u64],
    records: &Records,
    server: SocketAddr,
    processors: &[(String, SocketAddr)],
) -> Vec<(String, u64)> {
    let count = |known: &mut dyn FnMut(&[Record]) -> Option<Vec<bool>>| -> u64 {
        let mut found = 0;
        for numbers in numbers.chunks(TOGETHER) {
            let records: Vec<Record> = numbers.iter().map(|number| records(*number)).collect();
            let known = known(&records).unwrap_or_default();
            found += known.into_iter().filter(|is_known| *is_known).count() as u64;
        }
        numbers.len() as u64 - found
    };
    let mut client = Client::connect(server, PATIENCE).ok();
    let of_server = count(&mut |records| has(client.as_mut()?, records));
    let mut missing = vec![("the server".to_owned(), of_server)];
    for (name, address) in processors {
        let mut client = client::Client::connect(*address).ok();
        let of_processor = count(&mut |records| client.as_mut()?.knows(records).ok());
        missing.push((name.clone(), of_processor));
    }
    missing
}

/// Whether the server has each of these.
fn has(client: &mut Client, records: &[Record]) -> Option<Vec<bool>> {
    let requests: Vec<Request> = records
        .iter()
        .map(|record| Request::new("GET", record.path()))
        .collect();
    let answers = client.exchange(&requests).ok()?;
    let is_right = |(answer, record): (&loadgen::client::Response, &Record)| {
        let document = serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap_or_default();
        answer.status == 200 && document["destinations"] == record.destination.as_str()
    };
    Some(answers.iter().zip(records).map(is_right).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn outcome() -> Outcome {
        let mut shown = Shown::default();
        shown.delays.time(2_000);
        let visibility = |name: &str| Visibility {
            name: name.to_owned(),
            shown: shown.clone(),
        };
        Outcome {
            wanted: 200.0,
            seconds: 10.0,
            acknowledged: 1_990,
            refused: 0,
            repeated: 3,
            visibility: vec![visibility("dp-0"), visibility("dp-1")],
            missing: vec![("the server".to_owned(), 0), ("dp-0".to_owned(), 0)],
        }
    }

    fn passes(outcome: &Outcome) -> [bool; 3] {
        let checks = [
            outcome.judge_rate(),
            outcome.judge_visibility(),
            outcome.judge_lost(),
        ];
        checks.map(|check| check.pass)
    }

    #[test]
    fn writes_that_are_lost_late_refused_or_too_few_are_seen() {
        assert_eq!(passes(&outcome()), [true; 3]);
        let mut lost = outcome();
        lost.missing[1].1 = 1;
        assert_eq!(passes(&lost), [true, true, false]);
        assert_eq!(lost.judge_lost().got, "missing: 0 at the server, 1 at dp-0");
        let mut late = outcome();
        late.visibility[1].shown.delays.time(1_100_000);
        assert_eq!(passes(&late), [true, false, true]);
        let mut missed = outcome();
        missed.visibility[0].shown.missed = 1;
        assert_eq!(passes(&missed), [true, false, true]);
        let mut refused = outcome();
        refused.refused = 1;
        assert_eq!(passes(&refused), [false, true, true]);
        assert!(!refused.judge_rate().of_time);
        let mut few = outcome();
        few.acknowledged = 1_700;
        assert_eq!(passes(&few), [false, true, true]);
        assert!(few.judge_rate().of_time);
        let none = Outcome {
            acknowledged: 0,
            visibility: Vec::new(),
            ..outcome()
        };
        assert_eq!(passes(&none), [false; 3]);
    }

    #[test]
    fn a_server_that_does_not_answer_lacks_all() {
        let records: Records = Arc::new(|number| Record {
            kind: dp_proto::Kind::Imsi,
            value: number.to_string(),
            destination: "hss".to_owned(),
        });
        let dead = free_ports::address().unwrap();
        let missing = missing(&[0, 1, 2], &records, dead, &[("dp-0".to_owned(), dead)]);
        assert_eq!(missing, [("the server".to_owned(), 3), ("dp-0".to_owned(), 3)]);
    }
}
