//! A burst: three times what the reference carries for a while, then half of it as before. It measures how long a
//! subject takes until it serves as before, if it does at all.

use std::time::Duration;

use super::load::{Load, SETTLE, Session};
use super::rows::{Burst, Window, round};
use super::{Contest, Subject};
use crate::run::RunError;
use loadgen::{OperationRecord, Record};

/// Length of the windows by which a run is judged, before the burst and after it.
const WINDOW: Duration = Duration::from_millis(100);
const BEFORE: u32 = 20;
/// Time for which a subject is observed after the burst, by the length of the burst.
const WATCHED: f64 = 2.0;
/// A window is good when this share of its requests was answered rightly, in time.
const SERVED: f64 = 0.99;
/// How long all windows must be good until a subject counts as recovered.
const STEADY: usize = 5;
/// The longest 99th percentile of a good window, by the median of those before the burst.
const P99_FACTOR: f64 = 2.0;

/// Step of the burst; those of the windows before it are less.
const BURST: u32 = 1000;

pub(super) fn measure(
    contest: &Contest<'_>,
    subject: &Subject,
    base: f64,
    peak: f64,
) -> Result<Burst, RunError> {
    let connections = contest.loads.clients;
    let [base_load, peak_load] = [base, peak].map(|rate| Load::Open { rate, connections });
    let mut session = Session::start(contest, subject, connections)?;
    session.set(base_load, 0);
    session.pass(SETTLE)?;
    let windows = |session: &mut Session, first: u32, count: u32| {
        (first..first + count).try_for_each(|step| {
            session.set(base_load, step);
            session.pass(WINDOW)
        })
    };
    windows(&mut session, 1, BEFORE)?;
    session.set(peak_load, BURST);
    session.pass(contest.loads.burst)?;
    let watched = contest.loads.burst.as_secs_f64() * WATCHED / WINDOW.as_secs_f64();
    let watched = (watched.round() as u32).max(2 * STEADY as u32);
    windows(&mut session, BURST + 1, watched)?;
    let ended = session.end()?;
    let taken = |first: u32, count: u32| -> Vec<Window> {
        (0..count)
            .map(|number| window(number, ended.steps.get(&(first + number))))
            .collect()
    };
    let (before, after) = (taken(1, BEFORE), taken(BURST + 1, watched));
    let during = ended.steps.get(&BURST).map(Record::total).unwrap_or_default();
    Ok(judge(
        subject,
        (base, peak, contest.loads.burst),
        &before,
        &during,
        after,
    ))
}

fn window(number: u32, record: Option<&Record>) -> Window {
    let total = record.map(Record::total).unwrap_or_default();
    Window {
        at_s: round(f64::from(number) * WINDOW.as_secs_f64(), 1),
        offered: total.offered,
        served: total.succeeded,
        p99_ms: total.latency.value_at_quantile(0.99) as f64 / 1e3,
    }
}

fn judge(
    subject: &Subject,
    (base, peak, length): (f64, f64, Duration),
    before: &[Window],
    during: &OperationRecord,
    after: Vec<Window>,
) -> Burst {
    let mut p99: Vec<f64> = before.iter().map(|window| window.p99_ms).collect();
    p99.sort_by(f64::total_cmp);
    let median = p99.get(p99.len() / 2).copied().unwrap_or_default();
    let limit = p99.last().copied().unwrap_or_default().max(median * P99_FACTOR);
    let is_good = |window: &Window| {
        window.offered > 0 && window.served as f64 >= window.offered as f64 * SERVED && window.p99_ms <= limit
    };
    let sum = |windows: &[Window]| {
        windows.iter().fold((0, 0), |sum, window| {
            (sum.0 + window.offered, sum.1 + window.served)
        })
    };
    let (offered, served) = sum(before);
    let recovered = after
        .windows(STEADY)
        .position(|windows| windows.iter().all(is_good))
        .map(|number| round(number as f64 * WINDOW.as_secs_f64(), 1));
    let seconds = length.as_secs_f64().max(1e-3);
    Burst {
        name: subject.name.clone(),
        base_rps: round(base, 0),
        burst_rps: round(peak, 0),
        burst_s: length.as_secs_f64(),
        held_before: served as f64 >= offered as f64 * SERVED,
        p99_before_ms: median,
        p99_limit_ms: limit,
        served_during_rps: round(during.succeeded as f64 / seconds, 0),
        p99_during_ms: during.latency.value_at_quantile(0.99) as f64 / 1e3,
        failed_during: during.offered.saturating_sub(during.succeeded),
        recovered_s: recovered,
        after,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Requests;
    use super::*;

    fn subject() -> Subject {
        Subject {
            name: "x".to_owned(),
            targets: Vec::new(),
            source: Box::new(Requests {
                method: "GET",
                paths: Vec::new(),
                headers: Vec::new(),
                rotating: Vec::new(),
                body: bytes::Bytes::new(),
                status: 200,
                answer_bytes: 0..=0,
            }),
            process: None,
        }
    }

    fn windows(from: &[(u64, f64)]) -> Vec<Window> {
        let window = |(number, (served, p99_ms)): (usize, &(u64, f64))| Window {
            at_s: number as f64 / 10.0,
            offered: 100,
            served: *served,
            p99_ms: *p99_ms,
        };
        from.iter().enumerate().map(window).collect()
    }

    fn judged(before: &[(u64, f64)], after: &[(u64, f64)]) -> Burst {
        let figures = (1000.0, 6000.0, Duration::from_secs(5));
        judge(
            &subject(),
            figures,
            &windows(before),
            &OperationRecord::default(),
            windows(after),
        )
    }

    #[test]
    fn recovered_is_when_windows_are_good_again_and_stay_so() {
        let before = [(100, 1.0), (100, 1.2), (99, 1.1)];
        let bad = (40, 300.0);
        let slow = (100, 2.5);
        let good = (100, 1.5);
        let after = [bad, slow, good, bad, good, good, good, good, good, bad];
        let burst = judged(&before, &after);
        assert!(burst.held_before);
        assert_eq!((burst.p99_before_ms, burst.p99_limit_ms), (1.1, 2.2));
        assert_eq!(burst.recovered_s, Some(0.4));
        assert_eq!(judged(&before, &[good; 6]).recovered_s, Some(0.0));
        // The subject stays down.
        assert_eq!(judged(&before, &[bad; 20]).recovered_s, None);
        assert!(!judged(&[bad; 3], &[bad; 20]).held_before);
    }
}
