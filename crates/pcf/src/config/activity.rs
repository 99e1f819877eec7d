//! The activity of chosen subscribers, and records of policy events.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Validate};

use crate::subscribers::Pattern;

/// The activity of chosen subscribers: every message, decision and write about them, in memory and in files
/// (`activity.jsonl`, lines of JSON). Other subscribers cost nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ActivityLog {
    /// The subscribers: each a SUPI or GPSI (`imsi-001010000000001`), its beginning (`imsi-00101*`) or a range of numbers
    /// (`imsi-001010000000001..imsi-001010000000099`). Others are added while the PCF runs (`signalbox pcf trace add`).
    #[schemars(extend("x-reload" = true))]
    pub subscribers: Vec<String>,
    /// Subscribers that are traced at most, those of beginnings and ranges included: the first ones that send something.
    #[schemars(extend("x-reload" = true))]
    pub max_subscribers: usize,
    /// Entries in memory (`signalbox pcf activity SUPI`); the oldest are evicted.
    pub entries: usize,
    /// Bytes of these entries.
    pub bytes: ByteSize,
    /// Size of an entry; of a larger message its beginning is kept.
    pub max_entry_bytes: ByteSize,
    /// The files.
    pub files: JournalFiles,
}

/// A record of each policy event of every subscriber (`policy-events.jsonl`, lines of JSON): a session begins, changes and ends,
/// a rule is installed or removed, a quota is used up, a request is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PolicyEvents {
    /// Whether records are written.
    #[schemars(extend("x-reload" = true))]
    pub enabled: bool,
    /// The files.
    pub files: JournalFiles,
}

/// Files of lines: one is written, earlier ones are kept (`NAME.1.jsonl` is the newest of these).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct JournalFiles {
    /// Where they are.
    pub directory: PathBuf,
    /// Number of files, at least 2; the oldest gives way to a new one that has room on the disk.
    pub files: usize,
    /// Size of a file.
    pub file_bytes: ByteSize,
    /// Lines that wait to be written; further ones are dropped and counted.
    pub queue: usize,
    /// Bytes of these lines.
    pub queue_bytes: ByteSize,
}

impl Default for ActivityLog {
    fn default() -> Self {
        Self {
            subscribers: Vec::new(),
            max_subscribers: 100,
            entries: 20_000,
            bytes: ByteSize::mib(32),
            max_entry_bytes: ByteSize::kib(32),
            files: JournalFiles::default(),
        }
    }
}

impl Default for PolicyEvents {
    fn default() -> Self {
        Self {
            enabled: false,
            files: JournalFiles {
                file_bytes: ByteSize::mib(64),
                queue: 50_000,
                ..JournalFiles::default()
            },
        }
    }
}

impl Default for JournalFiles {
    fn default() -> Self {
        Self {
            directory: "run/pcf-log".into(),
            files: 10,
            file_bytes: ByteSize::mib(16),
            queue: 10_000,
            queue_bytes: ByteSize::mib(16),
        }
    }
}

impl JournalFiles {
    /// A journal of this name.
    pub(crate) fn of(&self, name: &'static str) -> function::journal::JournalFiles {
        function::journal::JournalFiles {
            continues: false,
            directory: self.directory.clone(),
            name,
            files: self.files,
            file_bytes: self.file_bytes.bytes(),
            queue: self.queue,
            queue_bytes: self.queue_bytes.as_usize(),
        }
    }
}

impl Validate for JournalFiles {
    fn validate(&self, faults: &mut Faults) {
        if self.files < 2 {
            faults
                .at("files")
                .say("is below 2", "at least 2, so that a full file gives way");
        }
        for (name, value) in [
            ("fileBytes", self.file_bytes.bytes()),
            ("queue", self.queue as u64),
            ("queueBytes", self.queue_bytes.bytes()),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}

impl Validate for ActivityLog {
    fn validate(&self, faults: &mut Faults) {
        for (index, text) in self.subscribers.iter().enumerate() {
            if Pattern::parse(text).is_none() {
                faults
                    .at(format!("subscribers[{index}]"))
                    .say("is not a valid subscriber", Pattern::EXPECTED);
            }
        }
        if self.max_subscribers == 0 {
            faults.at("maxSubscribers").say("is 0", "at least 1");
        }
        if self.max_entry_bytes.bytes() < 1_024 {
            faults.at("maxEntryBytes").say("is below 1 KiB", "at least 1KiB");
        }
        faults.within("files", &self.files);
    }
}

impl Validate for PolicyEvents {
    fn validate(&self, faults: &mut Faults) {
        faults.within("files", &self.files);
    }
}
