//! Reports about a group that wait for its guard time.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Notice, as_json};

/// Members of the notification that are lists, of one entry for each device.
const LISTS: [&str; 2] = ["monitoringEventReports", "configResults"];

/// A notification about a group that gathers reports until the Group Reporting Guard Time is over (TS 23.682 §5.6.0).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Gathering {
    /// SCEF-Reference-ID of the subscription.
    pub(crate) reference: u32,
    pub(crate) notice: Notice,
    /// When it is sent, in microseconds since 1970.
    pub(crate) due: u64,
}

impl Gathering {
    /// By [`Gathering::due`].
    pub(crate) const DUE: Index = Index(0);

    /// Whether a notification waits for the guard time: it has reports and results alone.
    pub(crate) fn takes(notice: &Notice) -> bool {
        let members = notice.body.as_object();
        let fits = |name: &String| name == "subscription" || LISTS.contains(&name.as_str());
        members.is_some_and(|members| members.keys().all(fits))
    }

    /// Adds what another notification about the group has.
    pub(crate) fn add(&mut self, body: &Value) {
        for name in LISTS {
            let Some(more) = body.get(name).and_then(Value::as_array) else {
                continue;
            };
            match self.notice.body.get_mut(name).and_then(Value::as_array_mut) {
                Some(list) => list.extend(more.iter().cloned()),
                None => self.notice.body[name] = more.clone().into(),
            }
        }
    }

    /// How many reports and results it has.
    pub(crate) fn count(&self) -> usize {
        let lists = LISTS.map(|name| self.notice.body.get(name).and_then(Value::as_array));
        lists.iter().flatten().map(|list| list.len()).sum()
    }
}

impl Record for Gathering {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_gathering",
        indexes: &[IndexSchema::many("due").ordered()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.reference.to_be_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::DUE, &self.due.to_be_bytes());
    }

    as_json!();
}
