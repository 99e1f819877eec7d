//! The book of profiles: applies changes from NRFs and publishes snapshots of the network.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use routing::network::{Network, Producer};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::lookups::Lookups;
use super::nrf::{LookedUp, NrfSet};
use crate::config::Nrf;
use crate::discovery::Vouched;
use crate::events::Metrics;

/// A change from a set of NRFs.
#[derive(Debug)]
pub(crate) struct Heard {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    pub(crate) set: usize,
    pub(crate) change: Change,
}

/// A possible change of profiles.
#[derive(Debug)]
pub(crate) enum Change {
    /// A notification names an NF: the SCP looks it up at the NRFs.
    Hint(Hint),
    /// The profile of an NF does not admit a consumer: it may have changed without a notification.
    Doubted(Arc<str>),
    /// Result of the look-up of an NF that a notification named.
    LookedUp(Hint, LookedUp),
    /// All profiles of a type, from an audit that began at `began`.
    Audited {
        nf_type: String,
        began: Instant,
        producers: Vec<Arc<Producer>>,
    },
}

/// Contents of a notification. A hint only: its sender is not authenticated, so the look-up decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    /// `nfInstanceId`, lower case.
    pub(super) id: Arc<str>,
    /// Whether the notification reports a deregistration.
    pub(super) gone: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationData {
    event: String,
    nf_instance_uri: String,
}

/// Parses a notification (`NotificationData`, TS 29.510 §6.1.6.2.17).
///
/// # Errors
/// What is wrong with it.
pub(crate) fn hint_of(body: &[u8]) -> Result<Change, String> {
    let data: NotificationData = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let id = data.nf_instance_uri.rsplit('/').next().unwrap_or_default();
    // The id becomes a path segment at the NRF, so it must be an id and nothing else (a UUID: TS 29.571 §5.3.2).
    let fits = (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !fits {
        return Err("nfInstanceUri names no NF instance".to_owned());
    }
    Ok(Change::Hint(Hint {
        id: id.to_ascii_lowercase().into(),
        gone: data.event == "NF_DEREGISTERED",
    }))
}

/// The only writer of the snapshot.
pub(super) struct Book {
    statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// When an NF was last looked up: the result of an audit that began earlier is older.
    touched: AHashMap<Arc<str>, Instant>,
    /// The set that an NF was learned from: only if that set lacks the NF, the NF has deregistered.
    origins: AHashMap<Arc<str>, usize>,
    published: Arc<ArcSwap<Network>>,
    /// Caches the origins of deregistered producers.
    vouched: Arc<Vouched>,
    metrics: Metrics,
    sets: Vec<Rc<NrfSet>>,
    sender: mpsc::Sender<Heard>,
    /// Look-ups in flight, by set and id, and whether a further notification named the NF meanwhile.
    looking: AHashMap<(usize, Arc<str>), bool>,
    lookups: Lookups,
    most_producers: usize,
    /// Time for which deregistered producers are still reachable (`nrf.departureGrace`).
    departure: Duration,
    /// Producers that the present batch of changes adds.
    added: usize,
    /// Whether a producer was ignored above `nrf.maxProducers`; logged once.
    full: bool,
}

/// Settings that have changed.
pub(super) struct Renewed {
    pub(super) statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// The NRFs and their settings; absent: as before.
    pub(super) nrfs: Option<(Vec<Rc<NrfSet>>, Nrf)>,
}

/// A batch of changes, by id: the new profile, or `None` for a deregistered NF.
type Next = BTreeMap<Arc<str>, Option<Arc<Producer>>>;

/// Changes in a batch at most. A storm of changes costs one snapshot per batch, not one per change.
const BATCH: usize = 1_024;
/// Time for which a look-up is recorded: longer than an audit takes.
const REMEMBERED: Duration = Duration::from_secs(120);

impl Book {
    pub(super) fn new(
        statics: BTreeMap<Arc<str>, Arc<Producer>>,
        published: Arc<ArcSwap<Network>>,
        vouched: Arc<Vouched>,
        metrics: Metrics,
        sets: Vec<Rc<NrfSet>>,
        sender: mpsc::Sender<Heard>,
        settings: &Nrf,
    ) -> Self {
        Self {
            statics,
            touched: AHashMap::new(),
            origins: AHashMap::new(),
            published,
            vouched,
            metrics,
            sets,
            sender,
            looking: AHashMap::new(),
            lookups: Lookups::new(settings),
            most_producers: settings.max_producers,
            departure: settings.departure_grace.duration(),
            added: 0,
            full: false,
        }
    }

    pub(super) async fn keep(
        mut self,
        mut changes: mpsc::Receiver<Heard>,
        mut renewals: mpsc::Receiver<Renewed>,
    ) {
        let mut waiting = Vec::with_capacity(64);
        loop {
            tokio::select! {
                count = changes.recv_many(&mut waiting, BATCH) => if count == 0 { return },
                Some(renewed) = renewals.recv() => {
                    self.renew(renewed);
                    continue;
                }
            }
            let mut next = Next::new();
            self.added = 0;
            for Heard { set, change } in waiting.drain(..) {
                self.note(set, change, &mut next);
            }
            if !next.is_empty() {
                self.origins.retain(|id, _| !matches!(next.get(id), Some(None)));
                self.publish(next);
            }
            let now = Instant::now();
            self.touched
                .retain(|_, at| now.saturating_duration_since(*at) < REMEMBERED);
        }
    }

    /// Applies changed settings. A profile of an NRF precedes the static one. The profiles of a removed set are
    /// dropped; those of a replaced set stay until the new set has been audited.
    fn renew(&mut self, renewed: Renewed) {
        let mut next = Next::new();
        let old = std::mem::replace(&mut self.statics, renewed.statics);
        if let Some((sets, settings)) = renewed.nrfs {
            self.sets = sets;
            self.lookups = Lookups::new(&settings);
            self.most_producers = settings.max_producers;
            self.departure = settings.departure_grace.duration();
            let count = self.sets.len();
            let statics = &self.statics;
            self.origins.retain(|id, set| {
                let stays = *set < count;
                if !stays {
                    next.insert(id.clone(), statics.get(id).cloned());
                }
                stays
            });
        }
        for id in old.keys().chain(self.statics.keys()) {
            if !self.origins.contains_key(id) && old.get(id) != self.statics.get(id) {
                next.insert(id.clone(), self.statics.get(id).cloned());
            }
        }
        if !next.is_empty() {
            self.publish(next);
        }
    }

    fn publish(&self, next: Next) {
        let before = self.published.load_full();
        let until = Instant::now().checked_add(self.departure);
        if let Some(until) = until.filter(|_| !self.departure.is_zero()) {
            let leaving = next.keys().filter_map(|id| before.producer(id));
            leaving.for_each(|producer| self.vouched.keep(producer, until));
        }
        self.published.store(Arc::new(before.after(next)));
    }

    fn note(&mut self, set: usize, change: Change, next: &mut Next) {
        match change {
            Change::Hint(hint) => {
                self.metrics.notified.inc();
                self.look_up(set, hint);
            }
            Change::Doubted(id) => {
                // Static producers have no NRF.
                if let Some(set) = self.origins.get(&id).copied() {
                    self.look_up(set, Hint { id, gone: false });
                }
            }
            Change::LookedUp(hint, found) => {
                let again = self.looking.remove(&(set, hint.id.clone())).unwrap_or(false);
                let confirmed = match (&found, hint.gone) {
                    (LookedUp::Known(_), gone) => !gone,
                    (LookedUp::Gone, gone) => gone,
                    (LookedUp::Unanswered, _) => false,
                };
                // After a second notification meanwhile, the first may have been true for a moment.
                if !confirmed && !again {
                    self.metrics.unconfirmed.inc();
                }
                match found {
                    LookedUp::Known(producer) => self.known(set, producer, next),
                    LookedUp::Gone => self.gone(set, &hint.id, next),
                    // The next audit finds the change.
                    LookedUp::Unanswered => {}
                }
                if again {
                    self.look_up(set, hint);
                }
            }
            Change::Audited {
                nf_type,
                began,
                producers,
            } => self.audited(set, &nf_type, began, producers, next),
        }
    }

    /// Looks up an NF. At most one look-up per NF is in flight: two could overtake each other, and the older answer
    /// would win.
    fn look_up(&mut self, set: usize, hint: Hint) {
        if let Some(again) = self.looking.get_mut(&(set, hint.id.clone())) {
            *again = true;
            return;
        }
        // The set was removed by a reload.
        let Some(nrf) = self.sets.get(set).cloned() else {
            return;
        };
        if self.looking.len() >= self.lookups.most {
            self.metrics.notification_lost.inc();
            return;
        }
        self.looking.insert((set, hint.id.clone()), false);
        self.lookups.begin(nrf, hint, self.sender.clone());
    }

    /// A look-up at a set has found this profile.
    fn known(&mut self, set: usize, producer: Arc<Producer>, next: &mut Next) {
        let learns = |nrf: &Rc<NrfSet>| nrf.nf_types.iter().any(|one| **one == *producer.nf_type);
        if !self.sets.get(set).is_some_and(learns) {
            return;
        }
        self.touched.insert(producer.id.clone(), Instant::now());
        let network = self.published.load();
        let before = match next.get(&producer.id) {
            Some(change) => change.as_ref(),
            None => network.producer(&producer.id),
        };
        if before == Some(&producer) || !self.has_room(&network, &producer.id, next) {
            return;
        }
        self.origins.insert(producer.id.clone(), set);
        next.insert(producer.id.clone(), Some(producer));
    }

    /// A look-up at a set has not found the NF.
    fn gone(&mut self, set: usize, id: &Arc<str>, next: &mut Next) {
        let learned_here = self.origins.get(id) == Some(&set);
        // No set has it, or it was learned from another set, which still has it.
        if !learned_here {
            return;
        }
        self.touched.insert(id.clone(), Instant::now());
        next.insert(id.clone(), self.statics.get(id).cloned());
    }

    /// Whether an NF is known already, or one more may be.
    fn has_room(&mut self, network: &Network, id: &str, next: &Next) -> bool {
        if network.producer(id).is_some() || next.contains_key(id) {
            return true;
        }
        let fits = network.len() + self.added < self.most_producers;
        self.added += usize::from(fits);
        self.full &= !fits;
        if !fits {
            self.metrics.too_many.inc();
        }
        if !fits && !std::mem::replace(&mut self.full, true) {
            tracing::warn!(
                most = self.most_producers,
                "nrf.maxProducers reached; further producers are ignored"
            );
        }
        fits
    }

    fn audited(
        &mut self,
        set: usize,
        nf_type: &str,
        began: Instant,
        producers: Vec<Arc<Producer>>,
        next: &mut Next,
    ) {
        let network = self.published.load_full();
        let mut named = ahash::AHashSet::with_capacity(producers.len());
        for producer in producers {
            let id = producer.id.clone();
            named.insert(id.clone());
            let same = network.producer(&id).is_some_and(|known| **known == *producer);
            if !same && !self.is_newer(&id, began) && self.has_room(&network, &id, next) {
                self.metrics.audited.inc();
                self.origins.insert(id.clone(), set);
                next.insert(id, Some(producer));
            }
        }
        let gone = network
            .producers()
            .filter(|known| &*known.nf_type == nf_type && !named.contains(&known.id))
            .filter(|known| !self.is_newer(&known.id, began))
            .filter(|known| self.origins.get(&known.id).is_none_or(|origin| *origin == set));
        for known in gone {
            let fallback = self.statics.get(&known.id);
            if fallback.is_none_or(|fallback| **fallback != **known) {
                self.metrics.audited.inc();
                next.insert(known.id.clone(), fallback.cloned());
            }
        }
    }

    /// Whether an NF was looked up after an audit had begun.
    fn is_newer(&self, id: &str, began: Instant) -> bool {
        self.touched.get(id).is_some_and(|at| *at >= began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::callbacks::Callbacks;
    use nrf_client::{Nrfs, Turns};
    use sbi::client::Client;
    use std::cell::RefCell;

    #[test]
    fn notifications_are_read_as_hints() {
        let hint = |body: &[u8]| match hint_of(body) {
            Ok(Change::Hint(hint)) => Some((hint.id.to_string(), hint.gone)),
            _ => None,
        };
        assert_eq!(
            hint(br#"{"event": "NF_DEREGISTERED", "nfInstanceUri": "http://n/nnrf-nfm/v1/nf-instances/AB"}"#),
            Some(("ab".into(), true))
        );
        // The profile in the notification is ignored.
        assert_eq!(
            hint(br#"{"event": "NF_REGISTERED", "nfInstanceUri": "x/1-f", "nfProfile": {"nfInstanceId": "CD"}}"#),
            Some(("1-f".into(), false))
        );
        assert_eq!(
            hint(br#"{"event": "OF_A_LATER_RELEASE", "nfInstanceUri": "http://n/x/1"}"#),
            Some(("1".into(), false))
        );
        let long = format!(
            r#"{{"event": "NF_REGISTERED", "nfInstanceUri": "{}"}}"#,
            "a".repeat(65)
        );
        for none in [
            "{}",
            "",
            r#"{"event": "NF_REGISTERED"}"#,
            r#"{"event": "NF_REGISTERED", "nfInstanceUri": "http://n/x/"}"#,
            r#"{"event": "NF_REGISTERED", "nfInstanceUri": "http://n/x/a?b=c"}"#,
            r#"{"event": "NF_REGISTERED", "nfInstanceUri": "http://n/x/.."}"#,
            &long,
        ] {
            assert!(hint_of(none.as_bytes()).is_err(), "{none}");
        }
    }

    fn profile(id: &str, nf_type: &str) -> Arc<Producer> {
        let text = format!(r#"{{"nfInstanceId": "{id}", "nfType": "{nf_type}", "nfStatus": "REGISTERED"}}"#);
        Arc::new(Producer::parse(text.as_bytes()).unwrap())
    }

    fn hint(id: &str, gone: bool) -> Hint {
        Hint { id: id.into(), gone }
    }

    /// A book of two sets without NRFs, and the receiver of its look-ups.
    fn book(settings: &Nrf) -> (Book, mpsc::Receiver<Heard>) {
        let config = Arc::new(sbi::client::ClientConfig::default());
        let set = |number| {
            Rc::new(NrfSet {
                number,
                nf_types: vec!["UDM".into()],
                roots: Vec::new(),
                registers: false,
                nrfs: Nrfs::new(
                    Turns::default(),
                    Client::new(config.clone(), None),
                    Duration::from_secs(1),
                ),
                subscriptions: RefCell::default(),
                callbacks: Arc::new(Callbacks::default()),
            })
        };
        let (sender, changes) = mpsc::channel(100);
        let metrics = Metrics::new(&telemetry::Registry::new());
        let sets = vec![set(0), set(1)];
        let book = Book::new(
            BTreeMap::new(),
            Arc::default(),
            Arc::new(Vouched::new(8)),
            metrics,
            sets,
            sender,
            settings,
        );
        (book, changes)
    }

    async fn inside(test: impl AsyncFnOnce()) {
        tokio::task::LocalSet::new().run_until(test()).await;
    }

    #[tokio::test]
    async fn what_the_nrfs_say_counts_and_not_the_notification() {
        inside(async || {
            let (mut book, _changes) = book(&Nrf::default());
            let udm = profile("ab", "UDM");
            let mut next = Next::new();
            book.note(0, Change::Hint(hint("ab", true)), &mut next);
            assert!(next.is_empty() && book.looking.len() == 1);
            // The notification reports a deregistration, the NRF has the NF.
            let found = LookedUp::Known(udm.clone());
            book.note(0, Change::LookedUp(hint("ab", true), found), &mut next);
            assert_eq!(next.get("ab"), Some(&Some(udm.clone())));
            assert_eq!(book.metrics.unconfirmed.value(), 1);
            // The notification reports a registration, the NRF does not have the NF: counts for the set that it was
            // learned from.
            book.note(1, Change::LookedUp(hint("ab", false), LookedUp::Gone), &mut next);
            assert_eq!(next.get("ab"), Some(&Some(udm)));
            book.note(0, Change::LookedUp(hint("ab", false), LookedUp::Gone), &mut next);
            assert_eq!(next.get("ab"), Some(&None));
            // An unknown NF, an NF of a type that is not learned, an unanswered look-up: no change.
            let mut next = Next::new();
            for (id, found) in [
                ("cd", LookedUp::Gone),
                ("cd", LookedUp::Unanswered),
                ("ef", LookedUp::Known(profile("ef", "AMF"))),
            ] {
                book.note(0, Change::LookedUp(hint(id, false), found), &mut next);
            }
            assert!(next.is_empty());
        })
        .await;
    }

    #[tokio::test]
    async fn one_question_at_a_time_and_no_more_than_allowed() {
        inside(async || {
            let settings = Nrf {
                max_lookups_waiting: 3,
                ..Nrf::default()
            };
            let (mut book, _changes) = book(&settings);
            let mut next = Next::new();
            for _ in 0..5 {
                book.note(0, Change::Hint(hint("ab", false)), &mut next);
            }
            assert_eq!(book.looking.len(), 1);
            for number in 0..10 {
                book.note(0, Change::Hint(hint(&number.to_string(), false)), &mut next);
            }
            assert_eq!(
                (book.looking.len(), book.metrics.notification_lost.value()),
                (3, 8)
            );
            // A further notification came during the look-up: the older answer counts until the newer one arrives.
            let found = LookedUp::Known(profile("ab", "UDM"));
            book.note(0, Change::LookedUp(hint("ab", false), found), &mut next);
            assert!(next.contains_key("ab") && book.looking.len() == 3);
            book.note(0, Change::LookedUp(hint("ab", false), LookedUp::Gone), &mut next);
            assert!(next.get("ab") == Some(&None) && book.looking.len() == 2);
        })
        .await;
    }

    #[tokio::test]
    async fn no_more_producers_than_allowed_are_learned() {
        inside(async || {
            let settings = Nrf {
                max_producers: 2,
                ..Nrf::default()
            };
            let (mut book, _changes) = book(&settings);
            let mut next = Next::new();
            for id in ["a", "b", "c"] {
                let found = LookedUp::Known(profile(id, "UDM"));
                book.note(0, Change::LookedUp(hint(id, false), found), &mut next);
            }
            assert_eq!(next.keys().map(|id| &**id).collect::<Vec<_>>(), ["a", "b"]);
            book.published.store(Arc::new(Network::default().after(next)));
            book.added = 0;
            let mut next = Next::new();
            let audited = ["a", "b", "c", "d"].map(|id| profile(id, "UDM")).to_vec();
            let change = Change::Audited {
                nf_type: "UDM".into(),
                began: Instant::now() + Duration::from_secs(1),
                producers: audited,
            };
            book.note(0, change, &mut next);
            assert!(next.is_empty(), "{next:?}");
            assert_eq!(book.metrics.too_many.value(), 3);
        })
        .await;
    }
}
