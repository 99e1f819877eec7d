//! Alarms that an operator has acknowledged, with a comment: in memory, and in a file of the console's directory where it has one.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::journal::moment;

use crate::observation::cut;

/// Acknowledgements that are kept; a further one removes the oldest.
const MOST: usize = 1_000;
/// Octets of the file.
const MOST_FILE: u64 = 4 << 20;
/// Characters of a comment.
const COMMENT: usize = 500;

/// Who has acknowledged an alarm.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    key: String,
    by: String,
    at: String,
    comment: String,
}

/// All acknowledgements, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    file: Option<PathBuf>,
    notes: Mutex<VecDeque<Note>>,
}

impl Acknowledged {
    /// Reads those that the directory has. A file that is not one has none.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let file = directory.map(|directory| directory.join("acknowledged.json"));
        let notes = file.as_deref().map(read).unwrap_or_default();
        Self {
            file,
            notes: Mutex::new(notes),
        }
    }

    /// Names each alarm, and says who has acknowledged it.
    pub(crate) fn mark(&self, alarms: &mut [Value]) {
        let notes = self.notes.lock();
        for alarm in alarms {
            let key = key(alarm);
            if let Some(note) = notes.iter().find(|note| note.key == key) {
                alarm["acknowledged"] =
                    serde_json::json!({ "by": note.by, "at": note.at, "comment": note.comment });
            }
            alarm["key"] = key.into();
        }
    }

    /// Acknowledges an alarm, or with no comment withdraws that. Blocks while the file is written.
    ///
    /// # Errors
    /// Why the file cannot be written; it is acknowledged until a restart all the same.
    pub(crate) fn set(&self, key: &str, by: &str, comment: Option<&str>) -> Result<(), String> {
        let text = {
            let mut notes = self.notes.lock();
            notes.retain(|note| note.key != key);
            if let Some(comment) = comment {
                notes.push_back(Note {
                    key: key.to_owned(),
                    by: by.to_owned(),
                    at: moment(SystemTime::now()),
                    comment: cut(comment.trim(), COMMENT),
                });
            }
            if notes.len() > MOST {
                notes.pop_front();
            }
            serde_json::to_string(&*notes).map_err(|error| error.to_string())?
        };
        let Some(file) = &self.file else { return Ok(()) };
        let next = file.with_extension("json.new");
        let write = || {
            let mut options = OpenOptions::new();
            let mut out = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&next)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            fs::rename(&next, file)
        };
        write().map_err(|error| format!("{}: {error}", file.display()))
    }
}

fn read(file: &Path) -> VecDeque<Note> {
    let is_small = fs::metadata(file).is_ok_and(|found| found.len() <= MOST_FILE);
    let text = if is_small {
        fs::read_to_string(file).unwrap_or_default()
    } else {
        String::new()
    };
    let notes: VecDeque<Note> = serde_json::from_str(&text).unwrap_or_default();
    notes.into_iter().take(MOST).collect()
}

/// The name of an alarm: of letters alone, which no mask of digits changes.
fn key(alarm: &Value) -> String {
    let parts = ["function", "number", "about", "since"].map(|member| alarm[member].to_string());
    let made = digest(&SHA256, parts.join("\n").as_bytes());
    let letter = |half: u8| char::from(b'a' + half);
    let octets = made.as_ref().iter().take(16);
    octets
        .flat_map(|octet| [letter(octet >> 4), letter(octet & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_acknowledgement_is_of_one_alarm_and_outlasts_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let alarm = |since: &str| json!({"function": "nrf", "number": 1, "about": "x", "since": since});
        let marked = |all: &Acknowledged| {
            let mut alarms = [alarm("1"), alarm("2")];
            all.mark(&mut alarms);
            alarms
        };
        let all = Acknowledged::open(Some(folder.path()));
        let key = marked(&all)[0]["key"].as_str().unwrap().to_owned();
        all.set(&key, "otto", Some(" is known ")).unwrap();
        for all in [all, Acknowledged::open(Some(folder.path()))] {
            let [one, other] = marked(&all);
            assert_eq!(
                (&one["acknowledged"]["by"], &one["acknowledged"]["comment"]),
                (&json!("otto"), &json!("is known"))
            );
            assert_eq!(other["acknowledged"], Value::Null, "raised again it is another");
        }
        let all = Acknowledged::open(Some(folder.path()));
        all.set(&key, "otto", None).unwrap();
        assert_eq!(marked(&all)[0]["acknowledged"], Value::Null);
        fs::write(folder.path().join("acknowledged.json"), "{").unwrap();
        assert!(Acknowledged::open(Some(folder.path())).notes.lock().is_empty());
    }

    #[test]
    fn their_number_is_bounded() {
        let all = Acknowledged::default();
        for n in 0..MOST + 10 {
            all.set(&n.to_string(), "otto", Some("")).unwrap();
        }
        assert_eq!(all.notes.lock().len(), MOST);
    }
}
