//! The summary: what all pollers know, as one versioned document of a few sections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use telemetry::Journal;
use telemetry::journal::moment;

use crate::access::masked;
use crate::acknowledged::Acknowledged;
use crate::changes;
use crate::config::Target;
use crate::headline::headline;
use crate::peers;
use crate::poller::{Attention, Poller};
use crate::row::{self, Row};

/// Version of the document. Members may be added to it; what changes otherwise is a new version at another address.
pub(crate) const VERSION: u32 = 1;
/// How far back the page shows what has changed.
const RECENT: Duration = Duration::from_secs(3_600);

/// All functions that are followed.
#[derive(Debug)]
pub(crate) struct Watch {
    pollers: Mutex<Vec<Poller>>,
    pub(crate) attention: Arc<Attention>,
    /// The console's own journal.
    pub(crate) journal: Journal,
    pub(crate) acknowledged: Arc<Acknowledged>,
    started: SystemTime,
}

/// The sections of the summary, each as JSON; those that are equal to what a browser has are not sent to it again.
pub(crate) type Sections = BTreeMap<&'static str, String>;

impl Watch {
    pub(crate) fn new(journal: Journal, acknowledged: Acknowledged) -> Self {
        Self {
            pollers: Mutex::default(),
            attention: Arc::new(Attention::new()),
            journal,
            acknowledged: Arc::new(acknowledged),
            started: SystemTime::now(),
        }
    }

    /// Follows these from now on; what is known of those that stay is kept. Needs a runtime.
    pub(crate) fn follow(&self, wanted: &[Target]) {
        let mut pollers = self.pollers.lock();
        let mut before = std::mem::take(&mut *pollers);
        for one in wanted {
            let known = before.iter().position(|poller| poller.followed == *one);
            pollers.push(match known {
                Some(place) => before.swap_remove(place),
                None => Poller::start(one.clone(), self.attention.clone(), self.journal.clone()),
            });
        }
    }

    /// The functions by name: kind and admin endpoint.
    pub(crate) fn functions(&self) -> Vec<(String, Target)> {
        let pollers = self.pollers.lock();
        let each = pollers.iter().map(|poller| {
            let kind = poller.known.lock().kind().to_owned();
            (kind, poller.followed.clone())
        });
        each.collect()
    }

    /// The rows of all functions.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let pollers = self.pollers.lock();
        pollers
            .iter()
            .map(|poller| Row::new(&poller.known.lock()))
            .collect()
    }

    /// The whole document.
    pub(crate) fn document(&self) -> Value {
        let rows = self.rows();
        let pollers = self.pollers.lock();
        let (mut alarms, mut more_alarms) = (Vec::new(), 0);
        let (mut down, mut more_down) = (Vec::new(), 0);
        let mut journals = vec![("console".to_owned(), self.journal.after(0))];
        for poller in pollers.iter() {
            let known = poller.known.lock();
            let (active, more) = row::alarms(&known);
            alarms.extend(active);
            more_alarms += more;
            let (peers, more) = peers::down(&known);
            down.extend(peers);
            more_down += more;
            journals.push((known.name.clone(), known.entries.iter().cloned().collect()));
        }
        drop(pollers);
        self.acknowledged.mark(&mut alarms);
        let since = SystemTime::now()
            .checked_sub(RECENT)
            .map(moment)
            .unwrap_or_default();
        let entries = journals
            .iter()
            .flat_map(|(name, entries)| entries.iter().map(move |entry| (name.as_str(), entry)));
        json!({
            "version": VERSION,
            "time": moment(SystemTime::now()),
            "console": { "version": env!("CARGO_PKG_VERSION"), "upSince": moment(self.started) },
            "headline": headline(&rows, alarms.len() + more_alarms),
            "functions": rows,
            "peersDown": { "peers": down, "more": more_down },
            "alarms": { "active": alarms, "more": more_alarms },
            "changes": changes::merged(entries, &since),
        })
    }

    /// The document by its sections: whole, and without identities of subscribers.
    pub(crate) fn sections(&self) -> (Sections, Sections) {
        const NAMES: [&str; 7] = [
            "version",
            "console",
            "headline",
            "functions",
            "peersDown",
            "alarms",
            "changes",
        ];
        let mut document = self.document();
        // It moves on each second, and an entry that leaves it does so with the next change.
        if let Some(changes) = document["changes"].as_object_mut() {
            changes.remove("since");
        }
        let parts = |document: &Value| {
            NAMES
                .into_iter()
                .map(|name| (name, document[name].to_string()))
                .collect()
        };
        (parts(&document), parts(&masked(document)))
    }
}
