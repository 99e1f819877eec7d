//! Load and overload reports of producers (TS 29.500 §6.3, §6.4), by scope.
//!
//! A report of one service instance about its NF set holds for all members of the set, on all workers. A worker has its
//! own book, which it reads without a lock; it publishes new reports on a board that the other workers read a few times
//! a second. A producer may report only scopes that contain it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use overload::PriorityDiscard;
use parking_lot::Mutex;
use routing::network::ServiceRef;
use sbi::Fields;
use sbi::headers::{Lci, Oci, SbiHeader, Scope, names};
use time::OffsetDateTime;

use super::newness::{Stored, replaces};
use crate::config::Protection;

/// Longest validity of a report of overload that counts.
pub(super) const MOST_VALID: Duration = Duration::from_secs(3_600);

/// Reports on the board for workers that have not read them yet.
const KEPT: usize = 8_192;

/// Scopes that a worker stores, of each kind.
const MOST_SCOPES: usize = 20_000;

/// Kind of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Instance,
    Set,
    Service,
    ServiceSet,
    Scp,
}

const KINDS: usize = 5;

/// A new report about a scope.
#[derive(Clone, Debug)]
struct News {
    kind: Kind,
    name: Arc<str>,
    what: What,
    made: OffsetDateTime,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Load in percent, and the load in the profile of the reporting producer.
    Load {
        percent: u8,
        in_profile: u8,
    },
    Overload {
        share: f64,
        until: Instant,
    },
}

/// Board of new reports between workers.
#[derive(Debug, Default)]
pub(crate) struct Board {
    news: Mutex<VecDeque<Arc<News>>>,
    /// Number of reports so far.
    count: AtomicU64,
}

impl Board {
    fn post(&self, news: Arc<News>) {
        let mut all = self.news.lock();
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back(news);
        self.count.fetch_add(1, Ordering::Release);
    }
}

/// A load that was reported.
#[derive(Clone, Copy)]
struct Report {
    made: OffsetDateTime,
    percent: u8,
    /// The load in the profile at that time; a changed profile is newer.
    in_profile: u8,
    /// When this SCP received it.
    learned: Instant,
}

impl Report {
    /// Whether the profile of the service has a newer load: one that was measured later (`loadTimeStamp`; the newer
    /// information counts, TS 29.500 §6.3.3.4.2). Of a profile that does not say when, another load than at the report.
    fn is_older_than(&self, service: &ServiceRef) -> bool {
        match service.producer.load_measured {
            Some(measured) => measured > unix_millis(self.made),
            None => self.in_profile != service.service().load,
        }
    }
}

fn unix_millis(moment: OffsetDateTime) -> i64 {
    // A moment of four-digit years fits.
    i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

/// Reports about a scope.
#[derive(Default)]
struct Known {
    load: Option<Report>,
    overload: Option<(OffsetDateTime, f64, Instant)>,
    /// Selection of the discarded messages during overload.
    discard: Option<Box<PriorityDiscard>>,
}

/// The book of a worker.
pub(crate) struct Reports {
    board: Arc<Board>,
    read: Cell<u64>,
    scopes: RefCell<[AHashMap<Arc<str>, Known>; KINDS]>,
    /// Whether any report of overload may be valid; if not, the scopes are not checked.
    overloads: Cell<bool>,
    loads: Cell<bool>,
    spare: Cell<u8>,
    use_oci: Cell<bool>,
    use_lci: Cell<bool>,
    load_validity: Cell<Duration>,
    /// The clock that timestamps of producers are compared with.
    clock: fn() -> OffsetDateTime,
}

impl Reports {
    pub(crate) fn new(settings: &Protection, board: Arc<Board>) -> Self {
        Self {
            board,
            read: Cell::new(0),
            scopes: RefCell::default(),
            overloads: Cell::new(false),
            loads: Cell::new(false),
            spare: Cell::new(settings.spare_priority),
            use_oci: Cell::new(settings.honour_oci),
            use_lci: Cell::new(settings.use_lci),
            load_validity: Cell::new(settings.lci_validity.duration()),
            clock: OffsetDateTime::now_utc,
        }
    }

    /// The moment by the clock that timestamps of producers are compared with.
    pub(super) fn clock(&self) -> OffsetDateTime {
        (self.clock)()
    }

    /// Takes over other settings; reports stay, unless they no longer count.
    pub(crate) fn reconfigure(&self, settings: &Protection) {
        let spare = settings.spare_priority;
        let respared = self.spare.replace(spare) != spare;
        self.use_oci.set(settings.honour_oci);
        self.use_lci.set(settings.use_lci);
        self.load_validity.set(settings.lci_validity.duration());
        for known in self
            .scopes
            .borrow_mut()
            .iter_mut()
            .flat_map(|one| one.values_mut())
        {
            if !settings.honour_oci {
                known.overload = None;
                known.discard = None;
            }
            if !settings.use_lci {
                known.load = None;
            }
            if let Some(discard) = known.discard.as_mut().filter(|_| respared) {
                **discard = PriorityDiscard::new(Some(spare));
            }
        }
    }

    /// Stores the reports in an answer of `service`, perhaps through the SCP at `hop`.
    pub(crate) fn take(&self, headers: &Fields, service: &ServiceRef, hop: Option<&str>, now: Instant) {
        if self.use_lci.get() && headers.contains(names::LCI) {
            for element in Lci::of(headers)
                .ok()
                .flatten()
                .map(|lci| lci.0)
                .unwrap_or_default()
            {
                if let Some((kind, name)) = scope_of(&element.scope, service, hop) {
                    let what = What::Load {
                        percent: element.load.min(100),
                        in_profile: service.service().load,
                    };
                    self.learn(kind, &name, what, element.timestamp, true, now);
                }
            }
        }
        if self.use_oci.get() && headers.contains(names::OCI) {
            for element in Oci::of(headers)
                .ok()
                .flatten()
                .map(|oci| oci.0)
                .unwrap_or_default()
            {
                if let Some((kind, name)) = scope_of(&element.scope, service, hop) {
                    let validity = match element.reduction {
                        0 => Duration::ZERO,
                        _ => element.validity.min(MOST_VALID),
                    };
                    let what = What::Overload {
                        share: f64::from(element.reduction.min(100)) / 100.0,
                        until: now + validity,
                    };
                    self.learn(kind, &name, what, element.timestamp, true, now);
                }
            }
        }
    }

    /// Reads the reports of other workers.
    pub(crate) fn hear(&self, now: Instant) {
        let count = self.board.count.load(Ordering::Acquire);
        if count != self.read.get() {
            let fresh: Vec<Arc<News>> = {
                let news = self.board.news.lock();
                // Reports that were dropped unread are repeated in later answers.
                let count = self.board.count.load(Ordering::Acquire);
                let unread = usize::try_from(count - self.read.get()).unwrap_or(usize::MAX);
                self.read.set(count);
                news.iter()
                    .skip(news.len().saturating_sub(unread))
                    .cloned()
                    .collect()
            };
            for one in fresh {
                let counts = match one.what {
                    What::Load { .. } => self.use_lci.get(),
                    What::Overload { .. } => self.use_oci.get(),
                };
                if counts {
                    self.learn(one.kind, &one.name, one.what, one.made, false, now);
                }
            }
        }
        if self.overloads.get() {
            let mut any = false;
            for known in self
                .scopes
                .borrow_mut()
                .iter_mut()
                .flat_map(|one| one.values_mut())
            {
                match known.overload {
                    Some((_, _, until)) if now < until => any = true,
                    _ => known.discard = None,
                }
            }
            self.overloads.set(any);
        }
    }

    /// Stores a report if it is newer; publishes it to the other workers if it is this worker's own.
    fn learn(&self, kind: Kind, name: &str, what: What, made: OffsetDateTime, own: bool, now: Instant) {
        let mut scopes = self.scopes.borrow_mut();
        let scopes = &mut scopes[kind as usize];
        if !scopes.contains_key(name) {
            if scopes.len() >= MOST_SCOPES {
                // Evict any: producers in use repeat their reports in later answers.
                let any = scopes.keys().next().cloned();
                any.and_then(|any| scopes.remove(&any));
            }
            scopes.insert(name.into(), Known::default());
        }
        let Some(known) = scopes.get_mut(name) else { return };
        // An overtaken older report and a repeated one are ignored
        // (TS 29.500 §6.3.3.3, §6.4.3.3).
        let stored = match what {
            What::Load { .. } => known.load.map(|load| Stored {
                made: load.made,
                valid: now.saturating_duration_since(load.learned) < self.load_validity.get(),
            }),
            What::Overload { .. } => known.overload.map(|(made, _, until)| Stored {
                made,
                valid: now < until,
            }),
        };
        if !replaces(made, stored, self.clock()) {
            return;
        }
        match what {
            What::Load { percent, in_profile } => {
                known.load = Some(Report {
                    made,
                    percent,
                    in_profile,
                    learned: now,
                });
                self.loads.set(true);
            }
            What::Overload { share, until } => {
                known.overload = Some((made, share, until));
                known.discard = (share > 0.0).then(|| {
                    let kept = known.discard.take();
                    kept.unwrap_or_else(|| Box::new(PriorityDiscard::new(Some(self.spare.get()))))
                });
                self.overloads.set(true);
            }
        }
        if own {
            let name = name.into();
            self.board.post(Arc::new(News {
                kind,
                name,
                what,
                made,
            }));
        }
    }

    /// Returns the load of a service instance: by the report about itself, else about its service set, its NF instance,
    /// its NF set. Reports that have expired, or precede a changed load in the profile, do not count.
    pub(crate) fn load_of(&self, service: &ServiceRef, now: Instant) -> Option<u8> {
        if !self.loads.get() {
            return None;
        }
        let scopes = self.scopes.borrow();
        let mut load = None;
        let services = !scopes[Kind::Service as usize].is_empty();
        each_scope(service, services, |kind, name| {
            if load.is_none() {
                let known = scopes[kind as usize].get(name).and_then(|known| known.load);
                let of_itself = matches!(kind, Kind::Service | Kind::Instance);
                let counts = |known: &Report| {
                    now.saturating_duration_since(known.learned) < self.load_validity.get()
                        && (!of_itself || !known.is_older_than(service))
                };
                load = known.filter(counts).map(|known| known.percent);
            }
        });
        load
    }

    /// Whether a message of this priority to a service instance, perhaps through the SCP at `hop`, is discarded because
    /// of reported overload.
    pub(crate) fn sheds(&self, service: &ServiceRef, hop: Option<&str>, priority: u8, now: Instant) -> bool {
        if !self.overloads.get() {
            return false;
        }
        let mut scopes = self.scopes.borrow_mut();
        let services = !scopes[Kind::Service as usize].is_empty();
        let mut sheds = false;
        let mut ask = |kind: Kind, name: &str| {
            let Some(known) = scopes[kind as usize].get_mut(name) else {
                return;
            };
            if let (Some((_, share, until)), Some(discard)) = (known.overload, &mut known.discard)
                && now < until
                && !sheds
            {
                sheds = discard.next(priority, share);
            }
        };
        each_scope(service, services, &mut ask);
        if let Some(hop) = hop {
            ask(Kind::Scp, hop);
        }
        sheds
    }
}

impl Reports {
    /// The reduction that the overload reports of a service instance request, as a share of the messages.
    pub(crate) fn reduction(&self, service: &ServiceRef, hop: Option<&str>, now: Instant) -> f64 {
        let scopes = self.scopes.borrow();
        let mut most: f64 = 0.0;
        let mut ask = |kind: Kind, name: &str| {
            let known = scopes[kind as usize].get(name).and_then(|known| known.overload);
            if let Some((_, share, until)) = known
                && now < until
            {
                most = most.max(share);
            }
        };
        each_scope(service, true, &mut ask);
        if let Some(hop) = hop {
            ask(Kind::Scp, hop);
        }
        most
    }
}

/// The scopes that a service instance is in, the narrowest first; `services`: whether there is a report about
/// any service instance.
fn each_scope(service: &ServiceRef, services: bool, mut see: impl FnMut(Kind, &str)) {
    let (producer, own) = (&service.producer, service.service());
    if services {
        // The instance of a service is named within its NF.
        let mut name = String::with_capacity(producer.id.len() + own.instance.len() + 1);
        service_name(&producer.id, &own.instance, &mut name);
        see(Kind::Service, &name);
    }
    own.sets.iter().for_each(|set| see(Kind::ServiceSet, set));
    see(Kind::Instance, &producer.id);
    producer.sets.iter().for_each(|set| see(Kind::Set, set));
}

fn service_name(instance: &str, service: &str, name: &mut String) {
    name.push_str(instance);
    name.push('/');
    name.push_str(service);
}

/// Returns kind and name of a scope, if the answering producer may report it. Scopes with slices are ignored: the load
/// of a slice is not that of the whole.
fn scope_of(scope: &Scope, service: &ServiceRef, hop: Option<&str>) -> Option<(Kind, String)> {
    let (producer, own) = (&service.producer, service.service());
    let is_one_of = |sets: &[Arc<str>], set: &str| sets.iter().any(|one| **one == *set);
    match scope {
        Scope::NfInstance(id, None) if id.eq_ignore_ascii_case(&producer.id) => {
            Some((Kind::Instance, producer.id.to_string()))
        }
        Scope::NfSet(set, None) if is_one_of(&producer.sets, set) => Some((Kind::Set, set.clone())),
        Scope::ServiceSet(set, None) if is_one_of(&own.sets, set) => Some((Kind::ServiceSet, set.clone())),
        Scope::ServiceInstance(id, nf, None)
            if nf.as_ref().is_none_or(|nf| nf.eq_ignore_ascii_case(&producer.id))
                && producer.services.iter().any(|one| *one.instance == **id) =>
        {
            let mut name = String::new();
            service_name(&producer.id, id, &mut name);
            Some((Kind::Service, name))
        }
        Scope::Scp(fqdn) | Scope::Sepp(fqdn) if hop.is_some_and(|hop| hop.eq_ignore_ascii_case(fqdn)) => {
            Some((Kind::Scp, hop?.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use routing::network::Producer;
    use serde_json::json;

    fn service(id: &str) -> ServiceRef {
        let profile = json!({
            "nfInstanceId": id, "nfType": "UDM", "nfStatus": "REGISTERED", "nfSetIdList": ["set1"],
            "ipv4Addresses": ["127.0.0.1"],
            "nfServices": [{"serviceInstanceId": "sdm", "serviceName": "nudm-sdm", "scheme": "http",
                "nfServiceStatus": "REGISTERED", "versions": [], "nfServiceSetIdList": ["svc1"]}]
        });
        ServiceRef::new(Arc::new(Producer::from_value(&profile).unwrap()), 0).unwrap()
    }

    fn headers(minute: u32, scope: &str, load: u8, reduction: u8) -> Fields {
        let date = format!("\"Tue, 04 Feb 2020 08:{minute:02}:00 GMT\"");
        let mut headers = Fields::new();
        let lci = format!("Timestamp: {date}; Load-Metric: {load}%; {scope}");
        headers.set_printed(names::LCI, lci);
        let oci = format!(
            "Timestamp: {date}; Period-of-Validity: 60s; Overload-Reduction-Metric: {reduction}%; {scope}"
        );
        headers.set_printed(names::OCI, oci);
        headers
    }

    fn passed(reports: &Reports, service: &ServiceRef, now: Instant) -> usize {
        (0..1_000)
            .filter(|_| !reports.sheds(service, None, 24, now))
            .count()
    }

    #[test]
    fn what_one_tells_of_its_set_holds_for_the_set_on_every_worker() {
        let board: Arc<Board> = Arc::default();
        let (one, other) = (
            Reports::new(&Protection::default(), board.clone()),
            Reports::new(&Protection::default(), board),
        );
        let (a, b, now) = (service("a"), service("b"), Instant::now());
        one.take(&headers(1, "NF-Set: set1", 70, 50), &a, None, now);
        assert_eq!((one.load_of(&b, now), one.load_of(&a, now)), (Some(70), Some(70)));
        assert_eq!(passed(&one, &b, now), 500);
        assert_eq!(other.load_of(&b, now), None);
        other.hear(now);
        assert_eq!(other.load_of(&b, now), Some(70));
        assert_eq!(passed(&other, &a, now), 500);
        // Narrower ones come first in load, and add up in overload.
        one.take(&headers(1, "NF-Instance: A", 20, 10), &a, None, now);
        assert_eq!((one.load_of(&a, now), one.load_of(&b, now)), (Some(20), Some(70)));
        assert!(passed(&one, &a, now) < 500);
        // It ends by itself.
        let later = now + Duration::from_secs(61);
        assert_eq!(passed(&one, &a, later), 1_000);
        one.hear(later);
        assert!(!one.overloads.get());
    }

    #[test]
    fn older_news_and_those_of_others_are_not_believed() {
        let reports = Reports::new(&Protection::default(), Arc::default());
        let (a, now) = (service("a"), Instant::now());
        reports.take(&headers(5, "NF-Service-Set: svc1", 40, 100), &a, None, now);
        reports.take(&headers(4, "NF-Service-Set: svc1", 90, 0), &a, None, now);
        assert_eq!(reports.load_of(&a, now), Some(40));
        assert_eq!(passed(&reports, &a, now), 0);
        // A later report of 0 ends it.
        reports.take(&headers(6, "NF-Service-Set: svc1", 41, 0), &a, None, now);
        assert_eq!(passed(&reports, &a, now), 1_000);
        for foreign in [
            "NF-Instance: b",
            "NF-Set: set2",
            "NF-Service-Instance: x",
            "SCP-FQDN: scp2",
        ] {
            reports.take(&headers(7, foreign, 99, 100), &a, None, now);
        }
        assert_eq!(reports.load_of(&a, now), Some(41));
        assert_eq!(passed(&reports, &service("b"), now), 1_000);
        // An SCP before the producer may report about itself.
        reports.take(&headers(8, "SCP-FQDN: scp2", 99, 100), &a, Some("scp2"), now);
        assert!(reports.sheds(&a, Some("scp2"), 24, now) && !reports.sheds(&a, None, 24, now));
        let mut garbage = Fields::new();
        garbage.set_printed(names::OCI, "x");
        reports.take(&garbage, &a, None, now);
    }

    /// A producer's clock that was ahead for a while must not block its reports, nor those of the other members of its
    /// set, until its moment has come.
    #[test]
    fn a_clock_ahead_does_not_block_later_reports() {
        let mut reports = Reports::new(&Protection::default(), Arc::default());
        reports.clock = || time::macros::datetime!(2020-02-04 08:10 UTC);
        let (a, b, now) = (service("a"), service("b"), Instant::now());
        let set = "NF-Set: set1";
        reports.take(&headers(59, set, 90, 100), &a, None, now);
        assert_eq!(
            (reports.load_of(&b, now), passed(&reports, &b, now)),
            (Some(90), 0)
        );
        reports.take(&headers(10, set, 20, 50), &a, None, now);
        assert_eq!(reports.load_of(&b, now), Some(20));
        assert_eq!(passed(&reports, &b, now), 500);
        // While a correct report is valid, one with a timestamp ahead does not replace it.
        reports.take(&headers(58, set, 90, 100), &b, None, now);
        assert_eq!(reports.load_of(&a, now), Some(20));
        assert_eq!(passed(&reports, &a, now), 500);
    }

    #[test]
    fn a_load_counts_for_a_while_and_until_the_profile_has_a_newer_one() {
        let reports = Reports::new(&Protection::default(), Arc::default());
        let (a, now) = (service("a"), Instant::now());
        reports.take(&headers(1, "NF-Instance: a", 95, 0), &a, None, now);
        assert_eq!(reports.load_of(&a, now), Some(95));
        let mut profile = Producer::clone(&a.producer);
        profile.services[0].load = 5;
        let changed = ServiceRef::new(Arc::new(profile), 0).unwrap();
        assert_eq!(reports.load_of(&changed, now), None);
        // Another load, measured before the report of 08:01 and after it.
        let measured = |at: &str| {
            let mut profile = Producer::clone(&changed.producer);
            profile.load_measured = model::unix_millis(at);
            ServiceRef::new(Arc::new(profile), 0).unwrap()
        };
        let (before, after) = ("2020-02-04T08:00:59.9Z", "2020-02-04T10:01:02+02:00");
        assert_eq!(reports.load_of(&measured(before), now), Some(95));
        assert_eq!(
            reports.load_of(&measured("2020-02-04T08:01:00Z"), now),
            Some(95),
            "no newer"
        );
        assert_eq!(reports.load_of(&measured(after), now), None);
        let validity = Protection::default().lci_validity.duration();
        assert_eq!(reports.load_of(&a, now + validity), None);
    }

    #[test]
    fn the_least_important_go_first() {
        let reports = Reports::new(&Protection::default(), Arc::default());
        let (a, now) = (service("a"), Instant::now());
        reports.take(
            &headers(1, "NF-Service-Instance: sdm; NF-Inst: a", 80, 50),
            &a,
            None,
            now,
        );
        let mut gone = [0; 2];
        for _ in 0..1_000 {
            gone[0] += u32::from(reports.sheds(&a, None, 3, now));
            gone[1] += u32::from(reports.sheds(&a, None, 24, now));
        }
        assert!(gone[0] <= 10 && gone[1] >= 990, "{gone:?}");
    }
}
