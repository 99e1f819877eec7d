//! Diameter Overload Indication Conveyance (RFC 7683): an overloaded node reports by how much other nodes should reduce
//! their traffic, for how long, and whether the report concerns its host or its realm.
//!
//! [`Reporter`] is the reporting node: it puts reports into answers. [`Reactions`] is the reacting node: it stores
//! reports and decides request by request, so that the less important requests are abated first (RFC 7944 §10.2). Both
//! implement the default algorithm, loss.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ahash::AHashMap;

use super::priority;
use crate::avp::AvpWriter;
use crate::avp::Avps;
use crate::fault::{Fault, ResultCode};
use crate::identity::with_lower;
use crate::known;
use crate::message::Message;

/// OC-Feature-Vector: the loss algorithm (RFC 7683 §7.2).
pub const LOSS: u64 = 1;
/// OC-Feature-Vector: the rate algorithm (RFC 8582 §7.1).
pub const RATE: u64 = 4;
/// OC-Feature-Vector: reports about peers (RFC 8581 §7.1).
pub const PEER_REPORT: u64 = 16;

/// Validity of a report without OC-Validity-Duration, or with an invalid one (RFC 7683 §7.5).
pub const DEFAULT_VALIDITY: Duration = Duration::from_secs(30);
/// The longest validity there can be (RFC 7683 §7.5).
pub const MAX_VALIDITY: Duration = Duration::from_secs(86_400);

/// Bound of stored reports. Only a peer that invents names exceeds it.
const MAX_REPORTS: usize = 8192;

/// Scope of a report (RFC 7683 §7.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReportType {
    /// The host that made the answer: requests that go to that host.
    Host,
    /// Its realm: requests that go to no host in particular.
    Realm,
}

/// OC-Supported-Features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SupportedFeatures {
    /// OC-Feature-Vector; [`LOSS`] when there is none.
    pub vector: u64,
}

impl SupportedFeatures {
    /// The features in a message; none when its sender does not support DOIC.
    #[must_use]
    pub fn of<B: AsRef<[u8]>>(message: &Message<B>) -> Option<Self> {
        let group = message.get(known::OC_SUPPORTED_FEATURES).ok().flatten()?;
        let vector = group.get(known::OC_FEATURE_VECTOR).ok()?.unwrap_or(LOSS);
        Some(Self { vector })
    }

    /// Appends it.
    pub fn write(self, out: &mut AvpWriter) {
        out.group(known::OC_SUPPORTED_FEATURES, |group| {
            group.put(known::OC_FEATURE_VECTOR, self.vector);
        });
    }
}

/// OC-OLR, an overload report, with the loss algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// OC-Sequence-Number: a higher one replaces a lower one.
    pub sequence: u64,
    /// OC-Report-Type.
    pub kind: ReportType,
    /// OC-Reduction-Percentage: how much less to send, 0 to 100.
    pub reduction: u8,
    /// OC-Validity-Duration; zero ends the overload.
    pub validity: Duration,
}

impl Report {
    /// Reads the inside of an OC-OLR.
    ///
    /// # Errors
    /// When it lacks a part or has an invalid one. The receiver then ignores the report: it does not refuse the answer.
    pub fn read(group: Avps<'_>) -> Result<Self, Fault> {
        let wrong = |reason: String| Fault::new(ResultCode::INVALID_AVP_VALUE, reason);
        let sequence = group.clone().require(known::OC_SEQUENCE_NUMBER)?;
        let kind = match group.clone().require(known::OC_REPORT_TYPE)? {
            0 => ReportType::Host,
            1 => ReportType::Realm,
            other => return Err(wrong(format!("OC-Report-Type {other} is not one we asked for"))),
        };
        let validity = match group.clone().get(known::OC_VALIDITY_DURATION)? {
            Some(seconds) if u64::from(seconds) <= MAX_VALIDITY.as_secs() => {
                Duration::from_secs(u64::from(seconds))
            }
            _ => DEFAULT_VALIDITY,
        };
        let reduction = match group.get(known::OC_REDUCTION_PERCENTAGE)? {
            Some(percent @ 0..=100) => percent as u8,
            Some(more) => return Err(wrong(format!("a reduction by {more} % cannot be"))),
            None if validity.is_zero() => 0,
            None => return Err(Fault::missing(known::OC_REDUCTION_PERCENTAGE)),
        };
        Ok(Self {
            sequence,
            kind,
            reduction,
            validity,
        })
    }

    /// Every right report of an answer.
    pub fn all<B: AsRef<[u8]>>(message: &Message<B>) -> impl Iterator<Item = Self> {
        let reports = message
            .avps()
            .map_while(Result::ok)
            .filter(|avp| avp.is(known::OC_OLR));
        reports.filter_map(|avp| Self::read(avp.group()).ok())
    }

    /// Appends it.
    pub fn write(&self, out: &mut AvpWriter) {
        out.group(known::OC_OLR, |group| {
            group
                .put(known::OC_SEQUENCE_NUMBER, self.sequence)
                .put(known::OC_REPORT_TYPE, self.kind as i32)
                .put(known::OC_REDUCTION_PERCENTAGE, u32::from(self.reduction))
                .put(known::OC_VALIDITY_DURATION, self.validity.as_secs() as u32);
        });
    }
}

/// What a reacting node does with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Send it.
    Pass,
    /// Send it elsewhere, or not at all.
    Abate,
}

/// An overload that was reported (the reacting node's OCS of RFC 7683 §5.2.1.2).
#[derive(Debug)]
struct Overload {
    report: Report,
    until: Instant,
    mix: PriorityMix,
}

/// Time in which all traffic returns after a report has expired without renewal or end: RFC 7683 §6.3 asks for a
/// conservative return, because the state of the node is unknown then. A report of 30 % takes 30 % of this time.
pub const RETURN: Duration = Duration::from_secs(1);

impl Overload {
    /// The share of requests to abate. A reported end takes effect at once.
    fn reduction(&self, now: Instant) -> f64 {
        let asked = f64::from(self.report.reduction) / 100.0;
        let since = now.saturating_duration_since(self.until);
        (asked - since.as_secs_f64() / RETURN.as_secs_f64()).max(0.0)
    }

    /// The time at which the entry may be removed.
    fn ends(&self) -> Instant {
        self.until + RETURN.mul_f64(f64::from(self.report.reduction) / 100.0)
    }
}

/// Overloads of one application and type, by host or realm in lower case.
type ByName = AHashMap<Box<[u8]>, Overload>;

/// Whether a sequence number is newer than another; numbers roll over (RFC 7683 §5.2.1.3).
const fn is_newer(sequence: u64, than: u64) -> bool {
    let ahead = sequence.wrapping_sub(than);
    ahead != 0 && ahead < 1 << 63
}

/// Stored reports of other nodes, and the abatement that they ask for.
#[derive(Debug, Default)]
pub struct Reactions {
    /// None of the inner maps is empty.
    overloads: AHashMap<(u32, ReportType), ByName>,
}

impl Reactions {
    /// Whether no report is stored: the quick check before any other.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.overloads.is_empty()
    }

    /// Stores a report from an answer of this application, made by this host of this realm (its Origin-Host and
    /// Origin-Realm). A sequence number below the stored one is old (RFC 7683 §5.2.1.2.2).
    ///
    /// Returns whether the report was new.
    pub fn learn(&mut self, now: Instant, application: u32, host: &str, realm: &str, report: Report) -> bool {
        let name = match report.kind {
            ReportType::Host => host,
            ReportType::Realm => realm,
        };
        let key = (application, report.kind);
        with_lower(name.as_bytes(), |name| self.learn_of(now, key, name, report)).unwrap_or_default()
    }

    fn learn_of(&mut self, now: Instant, key: (u32, ReportType), name: &[u8], report: Report) -> bool {
        let of_name = self.overloads.get(&key).and_then(|named| named.get(name));
        let is_new = of_name.is_none();
        let known = of_name.filter(|overload| overload.until > now);
        if known.is_some_and(|overload| !is_newer(report.sequence, overload.report.sequence)) {
            return false;
        }
        // The end of an overload keeps its number for a while: an older report that was delayed must not start the
        // overload again.
        let (report, lasts) = match report.validity.is_zero() {
            true if known.is_none() => return false,
            true => (
                Report {
                    reduction: 0,
                    ..report
                },
                DEFAULT_VALIDITY,
            ),
            false => (report, report.validity),
        };
        if is_new && self.count() >= MAX_REPORTS {
            self.expire(now);
            if self.count() >= MAX_REPORTS {
                return false;
            }
        }
        let until = now + lasts;
        let named = self.overloads.entry(key).or_default();
        match named.get_mut(name) {
            Some(overload) => (overload.report, overload.until) = (report, until),
            None => {
                let mix = PriorityMix::new(now);
                named.insert(name.into(), Overload { report, until, mix });
            }
        }
        true
    }

    fn count(&self) -> usize {
        self.overloads.values().map(|named| named.len()).sum()
    }

    /// Removes ended overloads.
    pub fn expire(&mut self, now: Instant) {
        self.overloads.retain(|_, named| {
            named.retain(|_, overload| overload.ends() > now);
            !named.is_empty()
        });
    }

    /// Decides about a request of this application and [`priority`], to this host, or to no particular host of this
    /// realm. `dice` is uniform over all of `u32`.
    pub fn decide(
        &mut self,
        now: Instant,
        application: u32,
        host: Option<&[u8]>,
        realm: &[u8],
        priority: u8,
        dice: u32,
    ) -> Decision {
        if self.overloads.is_empty() {
            return Decision::Pass;
        }
        let (kind, name) = match host {
            Some(host) => (ReportType::Host, host),
            None => (ReportType::Realm, realm),
        };
        let Some(named) = self.overloads.get_mut(&(application, kind)) else {
            return Decision::Pass;
        };
        let Some(Some(overload)) = with_lower(name, |name| named.get_mut(name)) else {
            return Decision::Pass;
        };
        let reduction = overload.reduction(now);
        let share = overload.mix.abate_share(now, priority, reduction);
        if f64::from(dice) < share * (f64::from(u32::MAX) + 1.0) {
            Decision::Abate
        } else {
            Decision::Pass
        }
    }

    /// The overloads in force: application, scope, name, reduction, remaining time.
    pub fn current(&self, now: Instant) -> impl Iterator<Item = (u32, ReportType, &str, u8, Duration)> {
        let all = self.overloads.iter();
        let all =
            all.flat_map(|(key, named)| named.iter().map(move |(name, overload)| (key, name, overload)));
        let live = all.filter(move |(.., overload)| overload.until > now && overload.report.reduction > 0);
        live.filter_map(move |((application, kind), name, overload)| {
            let name = std::str::from_utf8(name).ok()?;
            let (reduction, left) = (overload.report.reduction, overload.until - now);
            Some((*application, *kind, name, reduction, left))
        })
    }
}

/// The mix of priorities in the traffic, so that a reduction abates the least important requests first and in sum
/// equals the requested one.
#[derive(Debug)]
struct PriorityMix {
    counts: [f64; priority::COUNT],
    since: Instant,
}

/// Half-life of what is known of the mix.
const MIX_HALF_LIFE: Duration = Duration::from_secs(1);

impl PriorityMix {
    const fn new(now: Instant) -> Self {
        Self {
            counts: [0.0; priority::COUNT],
            since: now,
        }
    }

    /// The share of requests of this priority that has to go for `reduction` of all to go.
    fn abate_share(&mut self, now: Instant, priority: u8, reduction: f64) -> f64 {
        let priority = usize::from(priority).min(priority::COUNT - 1);
        if now.saturating_duration_since(self.since) >= MIX_HALF_LIFE {
            self.counts.iter_mut().for_each(|count| *count /= 2.0);
            self.since = now;
        }
        self.counts[priority] += 1.0;
        let all: f64 = self.counts.iter().sum();
        let less_important: f64 = self.counts[priority + 1..].iter().sum();
        // Never zero: this request was just counted.
        let own = self.counts[priority];
        ((reduction * all - less_important) / own).clamp(0.0, 1.0)
    }
}

/// The numbers of the reports of one name, which several reporters share: reports with the same contents have the same
/// number until they are renewed, and a report with other contents has a higher one (RFC 7683 §5.2.1.4).
#[derive(Debug)]
pub struct ReportNumbers(Mutex<Issued>);

#[derive(Clone, Copy, Debug)]
struct Issued {
    number: u64,
    /// Kind, reduction and validity of the report of that number, and when it was issued.
    report: Option<(ReportType, u8, Duration, Instant)>,
}

impl Default for ReportNumbers {
    fn default() -> Self {
        Self::after(0)
    }
}

impl ReportNumbers {
    /// Numbers above this one.
    #[must_use]
    pub const fn after(number: u64) -> Self {
        Self(Mutex::new(Issued { number, report: None }))
    }

    fn last(&self) -> Issued {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The number of a report with these contents, and when it was issued: the last number if its report has them and is
    /// not due to be renewed, else the next one.
    fn number(&self, kind: ReportType, reduction: u8, validity: Duration, now: Instant) -> (u64, Instant) {
        let mut issued = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((of, same, valid, at)) = issued.report
            && (of, same, valid) == (kind, reduction, validity)
            && now.saturating_duration_since(at) < validity / 2
        {
            return (issued.number, at);
        }
        issued.number = issued.number.wrapping_add(1);
        issued.report = Some((kind, reduction, validity, now));
        (issued.number, now)
    }
}

/// The reporting node (its OCS of RFC 7683 §5.2.1.1).
#[derive(Clone, Debug)]
pub struct Reporter {
    kind: ReportType,
    validity: Duration,
    /// Number of the last report.
    sequence: u64,
    /// The numbers of all reporters of this name.
    numbers: Arc<ReportNumbers>,
    reduction: u8,
    /// Time until which the last report is valid at its receivers.
    until: Option<Instant>,
}

impl Reporter {
    /// A reporter without a report. `sequence` has to be above that of the last run: the time in seconds is.
    #[must_use]
    pub fn new(kind: ReportType, validity: Duration, sequence: u64) -> Self {
        Self::numbered(kind, validity, Arc::new(ReportNumbers::after(sequence)))
    }

    /// As [`Reporter::new`], with numbers that several reporters of one name share: a report of any with other contents is
    /// newer than all before it (RFC 7683 §5.2.1.4).
    #[must_use]
    pub fn numbered(kind: ReportType, validity: Duration, numbers: Arc<ReportNumbers>) -> Self {
        let validity = validity.clamp(Duration::from_secs(1), MAX_VALIDITY);
        Self {
            kind,
            validity,
            sequence: numbers.last().number,
            numbers,
            reduction: 0,
            until: None,
        }
    }

    /// Changes how long further reports are valid.
    pub fn configure(&mut self, validity: Duration) {
        self.validity = validity.clamp(Duration::from_secs(1), MAX_VALIDITY);
    }

    /// Requests this reduction from now on; 0 ends the overload. Call it repeatedly while the overload lasts: a report
    /// is renewed (with a new sequence number) when half of its validity is over.
    pub fn set(&mut self, now: Instant, reduction: u8) {
        let reduction = reduction.min(100);
        let ageing = self.until.is_some_and(|until| until <= now + self.validity / 2);
        if reduction != self.reduction || (reduction > 0 && ageing) {
            let (number, issued) = self.numbers.number(self.kind, reduction, self.validity, now);
            self.sequence = number;
            self.reduction = reduction;
            self.until = Some(issued + self.validity);
        } else if reduction > 0
            && let Issued {
                number,
                report: Some((kind, same, validity, at)),
            } = self.numbers.last()
            && (kind, same, validity) == (self.kind, reduction, self.validity)
            && number != self.sequence
        {
            // Another reporter has renewed the same report.
            self.sequence = number;
            self.until = Some(at + validity);
        }
    }

    /// The report for an answer to a request with OC-Supported-Features, if there is anything to report. The
    /// end of an overload is reported until the last report would have ended by itself.
    #[must_use]
    pub fn report(&self, now: Instant) -> Option<Report> {
        let until = self.until?;
        if self.reduction == 0 && until <= now {
            return None;
        }
        let validity = if self.reduction == 0 {
            Duration::ZERO
        } else {
            self.validity
        };
        Some(Report {
            sequence: self.sequence,
            kind: self.kind,
            reduction: self.reduction,
            validity,
        })
    }

    /// Appends what belongs into an answer: the features when the request had them, and the report.
    pub fn write(&self, now: Instant, request_has_features: bool, out: &mut AvpWriter) {
        if !request_has_features {
            return;
        }
        SupportedFeatures { vector: LOSS }.write(out);
        if let Some(report) = self.report(now) {
            report.write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::MessageBuilder;

    const GX: u32 = known::application::GX;

    fn report(sequence: u64, reduction: u8, seconds: u64) -> Report {
        let validity = Duration::from_secs(seconds);
        Report {
            sequence,
            kind: ReportType::Host,
            reduction,
            validity,
        }
    }

    /// Share of 100,000 requests with these priorities in turn that is abated, per priority.
    fn shares(reactions: &mut Reactions, now: Instant, priorities: &[u8]) -> Vec<f64> {
        let mut random = 7u64;
        let mut abated = vec![0; priorities.len()];
        for n in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let which = n % priorities.len();
            let dice = (random >> 32) as u32;
            if reactions.decide(now, GX, Some(b"PCRF.example"), b"r", priorities[which], dice)
                == Decision::Abate
            {
                abated[which] += 1;
            }
        }
        abated
            .iter()
            .map(|&count| f64::from(count) * priorities.len() as f64 / 100_000.0)
            .collect()
    }

    #[test]
    fn reports_survive_the_wire() {
        let mut builder = MessageBuilder::request(272, GX);
        SupportedFeatures { vector: LOSS }.write(&mut builder);
        report(3, 25, 60).write(&mut builder);
        builder.group(known::OC_OLR, |group| {
            group
                .put(known::OC_SEQUENCE_NUMBER, 4)
                .put(known::OC_REPORT_TYPE, 1)
                .put(known::OC_REDUCTION_PERCENTAGE, 101);
        });
        builder.group(known::OC_OLR, |group| {
            group
                .put(known::OC_SEQUENCE_NUMBER, 5)
                .put(known::OC_REPORT_TYPE, 1)
                .put(known::OC_VALIDITY_DURATION, 90_000)
                .put(known::OC_REDUCTION_PERCENTAGE, 10);
        });
        let message = builder.finish().unwrap();
        assert_eq!(
            SupportedFeatures::of(&message),
            Some(SupportedFeatures { vector: LOSS })
        );
        let reports: Vec<_> = Report::all(&message).collect();
        assert_eq!(reports[0], report(3, 25, 60));
        assert_eq!(
            reports[1].validity, DEFAULT_VALIDITY,
            "a validity beyond a day counts as none"
        );
        assert_eq!(reports.len(), 2, "a reduction by 101 % is ignored");
    }

    #[test]
    fn the_reduction_asked_for_is_the_reduction_made() {
        let now = Instant::now();
        let mut reactions = Reactions::default();
        assert_eq!(shares(&mut reactions, now, &[10]), [0.0]);
        reactions.learn(now, GX, "pcrf.EXAMPLE", "r", report(1, 30, 60));
        let share = shares(&mut reactions, now, &[10])[0];
        assert!((share - 0.3).abs() < 0.01, "{share}");
        assert_eq!(
            reactions.decide(now, GX, None, b"r", 10, 0),
            Decision::Pass,
            "the realm is not overloaded"
        );
        assert_eq!(
            reactions.decide(now, 4, Some(b"pcrf.example"), b"r", 10, 0),
            Decision::Pass
        );
    }

    #[test]
    fn the_less_important_go_first() {
        let now = Instant::now();
        let mut reactions = Reactions::default();
        reactions.learn(now, GX, "pcrf.example", "r", report(1, 50, 60));
        let shares = shares(&mut reactions, now, &[0, 10, 15]);
        assert!(
            shares[0] < 0.01 && (shares[1] - 0.5).abs() < 0.02 && shares[2] > 0.99,
            "{shares:?}"
        );
    }

    #[test]
    fn old_numbers_are_ignored_and_reports_end() {
        let now = Instant::now();
        let mut reactions = Reactions::default();
        let abates = |reactions: &mut Reactions, at| {
            reactions.decide(at, GX, Some(b"h"), b"r", 10, 0) == Decision::Abate
        };
        reactions.learn(now, GX, "h", "r", report(5, 100, 10));
        reactions.learn(now, GX, "h", "r", report(5, 0, 0));
        reactions.learn(now, GX, "h", "r", report(4, 0, 10));
        assert!(abates(&mut reactions, now));
        let later = now + Duration::from_secs(10) + RETURN;
        assert!(!abates(&mut reactions, later));
        reactions.learn(later, GX, "h", "r", report(1, 100, 10));
        assert!(abates(&mut reactions, later), "after the end, any number is new");
        reactions.learn(later, GX, "h", "r", report(2, 0, 0));
        assert_eq!(reactions.current(later).count(), 0);
        reactions.expire(later + DEFAULT_VALIDITY);
        assert!(reactions.is_empty());
    }

    #[test]
    fn names_without_end_do_not_fill_the_memory() {
        let now = Instant::now();
        let mut reactions = Reactions::default();
        for n in 0..MAX_REPORTS + 100 {
            reactions.learn(now, GX, &n.to_string(), "r", report(1, 10, 60));
        }
        assert_eq!(reactions.current(now).count(), MAX_REPORTS);
    }

    #[test]
    fn a_reporter_numbers_changes_and_reports_the_end() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut reporter = Reporter::new(ReportType::Host, Duration::from_secs(20), 100);
        assert_eq!(reporter.report(now), None);
        reporter.set(now, 40);
        reporter.set(at(1), 40);
        assert_eq!(reporter.report(at(1)).unwrap(), report(101, 40, 20));
        reporter.set(at(15), 40);
        assert_eq!(
            reporter.report(at(15)).unwrap().sequence,
            102,
            "renewed before it ends"
        );
        reporter.set(at(16), 0);
        assert_eq!(reporter.report(at(17)).unwrap(), report(103, 0, 0));
        assert_eq!(reporter.report(at(36)), None);
    }

    #[test]
    fn old_reports_stay_old() {
        let start = Instant::now();
        let abates = |reactions: &mut Reactions| {
            reactions.decide(start, GX, Some(b"pcrf"), b"r", 10, 0) == Decision::Abate
        };
        let mut reactions = Reactions::default();
        assert!(reactions.learn(start, GX, "pcrf", "r", report(5, 100, 30)));
        assert!(abates(&mut reactions));
        assert!(
            reactions.learn(start, GX, "pcrf", "r", report(6, 100, 0)),
            "the end"
        );
        assert!(!abates(&mut reactions));
        assert!(
            !reactions.learn(start, GX, "pcrf", "r", report(5, 100, 30)),
            "a delayed report is still the older one"
        );
        assert!(!abates(&mut reactions));
        // RFC 7683 §5.2.1.3: the numbers roll over.
        let mut reactions = Reactions::default();
        assert!(reactions.learn(start, GX, "pcrf", "r", report(u64::MAX - 1, 100, 30)));
        assert!(reactions.learn(start, GX, "pcrf", "r", report(3, 0, 30)));
        assert!(!abates(&mut reactions));
    }

    #[test]
    fn traffic_returns_gradually_after_a_report_that_runs_out() {
        let start = Instant::now();
        let mut reactions = Reactions::default();
        reactions.learn(start, GX, "pcrf.example", "r", report(1, 100, 2));
        let end = start + Duration::from_secs(2);
        let mut shares = [0.0, 0.25, 0.5, 0.75]
            .map(|at| shares(&mut reactions, end + RETURN.mul_f64(at), &[10])[0])
            .into_iter();
        for expected in [1.0, 0.75, 0.5, 0.25] {
            let share = shares.next().unwrap();
            assert!((share - expected).abs() < 0.01, "{share} instead of {expected}");
        }
        reactions.expire(end);
        assert!(!reactions.is_empty());
        reactions.expire(end + RETURN);
        assert!(reactions.is_empty());
    }

    #[test]
    fn reporters_of_one_name_share_their_numbers() {
        let start = Instant::now();
        let numbers = Arc::new(ReportNumbers::after(100));
        let reporter = || Reporter::numbered(ReportType::Realm, Duration::from_secs(5), numbers.clone());
        let (mut first, mut second) = (reporter(), reporter());
        first.set(start, 25);
        second.set(start, 50);
        let number = |reporter: &Reporter| reporter.report(start).unwrap().sequence;
        assert_eq!((number(&first), number(&second)), (101, 102));
        first.set(start, 50);
        assert_eq!((number(&first), number(&second)), (102, 102), "the same contents");
        // A renewal is one for both.
        let later = start + Duration::from_secs(3);
        second.set(later, 50);
        first.set(later + Duration::from_millis(50), 50);
        assert_eq!((number(&first), number(&second)), (103, 103));
        second.set(later, 0);
        assert_eq!((number(&first), number(&second)), (103, 104));
    }
}
