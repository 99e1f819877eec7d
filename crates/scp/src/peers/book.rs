//! What is told of the network, and the one who makes snapshots of it.

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

/// What an NRF of a set tells.
#[derive(Debug)]
pub(crate) struct Heard {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    pub(crate) set: usize,
    pub(crate) change: Change,
}

/// Something that may have changed in the network.
#[derive(Debug)]
pub(crate) enum Change {
    /// A notification names an NF: the NRFs are asked what is true of it.
    Hint(Hint),
    /// What the NRFs say of an NF that a notification has named.
    LookedUp(Hint, LookedUp),
    /// Everything of a type, as an audit that began then has found it.
    Audited {
        nf_type: String,
        began: Instant,
        producers: Vec<Arc<Producer>>,
    },
}

/// What a notification says, as far as it is heeded: whoever sends it decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    /// `nfInstanceId`, lower case.
    pub(super) id: Arc<str>,
    /// Whether the NF is said to have deregistered.
    pub(super) gone: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationData {
    event: String,
    nf_instance_uri: String,
}

/// What a notification tells (`NotificationData`, TS 29.510 §6.1.6.2.17).
///
/// # Errors
/// What is wrong with it.
pub(crate) fn hint_of(body: &[u8]) -> Result<Change, String> {
    let data: NotificationData = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let id = data.nf_instance_uri.rsplit('/').next().unwrap_or_default();
    // It becomes a path at the NRF, so it is one segment and nothing but an id (a UUID: TS 29.571 §5.3.2).
    let fits = (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !fits {
        return Err("nfInstanceUri names no NF instance".to_owned());
    }
    Ok(Change::Hint(Hint {
        id: id.to_ascii_lowercase().into(),
        gone: data.event == "NF_DEREGISTERED",
    }))
}

/// The one who changes the snapshot.
pub(super) struct Book {
    statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// When the NRFs last said something of an NF that was asked for: an audit that began before knows less.
    touched: AHashMap<Arc<str>, Instant>,
    /// The set that an NF was learned from: only that one's silence about it says that it is gone.
    origins: AHashMap<Arc<str>, usize>,
    published: Arc<ArcSwap<Network>>,
    /// Remembers where producers were that have left.
    vouched: Arc<Vouched>,
    metrics: Metrics,
    sets: Vec<Rc<NrfSet>>,
    sender: mpsc::Sender<Heard>,
    /// NFs being looked up, by set and id, and whether they have changed again meanwhile.
    looking: AHashMap<(usize, Arc<str>), bool>,
    lookups: Lookups,
    most_producers: usize,
    /// How long producers that have left are still known.
    departure: Duration,
    /// Producers that the changes being put together add.
    added: usize,
    /// Whether a producer found no room; said once.
    full: bool,
}

/// Settings that have changed.
pub(super) struct Renewed {
    pub(super) statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// The NRFs and their settings; absent: as before.
    pub(super) nrfs: Option<(Vec<Rc<NrfSet>>, Nrf)>,
}

/// Changes that are applied together, by id: an NF as it is from now on, or that it is gone.
type Next = BTreeMap<Arc<str>, Option<Arc<Producer>>>;

/// Changes that are applied together at most. A storm costs a snapshot for as many, not one each.
const BATCH: usize = 1_024;
/// How long it is remembered that an NF was looked up: longer than an audit takes.
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
                .retain(|_, told| now.saturating_duration_since(*told) < REMEMBERED);
        }
    }

    /// Takes over changed settings. What an NRF tells of an NF goes before what the settings say; what was learned
    /// from a set that is named no more goes with it, and one that stands in the place of another is given the
    /// time to tell what it knows.
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
            Change::LookedUp(hint, found) => {
                let again = self.looking.remove(&(set, hint.id.clone())).unwrap_or(false);
                let confirmed = match (&found, hint.gone) {
                    (LookedUp::Known(_), gone) => !gone,
                    (LookedUp::Gone, gone) => gone,
                    (LookedUp::Unanswered, _) => false,
                };
                // One that was told of twice meanwhile may have changed in the opposite way in between.
                if !confirmed && !again {
                    self.metrics.unconfirmed.inc();
                }
                match found {
                    LookedUp::Known(producer) => self.known(set, producer, next),
                    LookedUp::Gone => self.gone(set, &hint.id, next),
                    // The audit finds it.
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

    /// Asks the NRFs what is true of an NF. One question for it at a time: two could overtake each other, and the
    /// older answer win.
    fn look_up(&mut self, set: usize, hint: Hint) {
        if let Some(again) = self.looking.get_mut(&(set, hint.id.clone())) {
            *again = true;
            return;
        }
        // A set that was named before the settings changed.
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

    /// The NRFs of a set have this profile of an NF that was asked for.
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

    /// The NRFs of a set do not know an NF that was asked for.
    fn gone(&mut self, set: usize, id: &Arc<str>, next: &mut Next) {
        let learned_here = self.origins.get(id) == Some(&set);
        // Nobody has it, or another set knows it, too, and has not let it go.
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
                "no room for more producers (nrf.maxProducers)"
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

    /// Whether the NRFs said something of an NF after an audit had begun.
    fn is_newer(&self, id: &str, began: Instant) -> bool {
        self.touched.get(id).is_some_and(|told| *told >= began)
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
        // What the profile in it says is not looked at.
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

    /// A book of two sets whose NRFs nobody reaches, and what it has to be told.
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
            // It is said to be gone, and is there.
            let found = LookedUp::Known(udm.clone());
            book.note(0, Change::LookedUp(hint("ab", true), found), &mut next);
            assert_eq!(next.get("ab"), Some(&Some(udm.clone())));
            assert_eq!(book.metrics.unconfirmed.value(), 1);
            // It is said to be there, and is gone: for the set that it was learned from.
            book.note(1, Change::LookedUp(hint("ab", false), LookedUp::Gone), &mut next);
            assert_eq!(next.get("ab"), Some(&Some(udm)));
            book.note(0, Change::LookedUp(hint("ab", false), LookedUp::Gone), &mut next);
            assert_eq!(next.get("ab"), Some(&None));
            // Of nobody, of a type that is not learned, and of one that no NRF says anything of: nothing.
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
            // It has changed again while it was asked for: the older answer counts until the newer one is here.
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
