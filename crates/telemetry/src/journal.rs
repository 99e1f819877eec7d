//! What has changed in a function, in order of time: starts, reloads, certificates, alarms, peers, what operators did.
//!
//! Entries are bounded in number, length and rate; a sink, if there is one, keeps them over a restart.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Entries that are kept.
pub const MOST_ENTRIES: usize = 1_000;
/// Characters of each text of an entry: peers may name it.
const MOST_TEXT: usize = 500;
/// Entries of one kind within [`WINDOW`]; further ones are counted, so that a peer that flaps does not displace all else.
const MOST_OF_A_KIND: u32 = 60;
const WINDOW: Duration = Duration::from_secs(60);

/// What kind of change an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// The function has started.
    Started,
    /// The function stops in order.
    Stopped,
    /// A reload has put settings or files into effect.
    ReloadApplied,
    /// A reload was refused, in whole or in part.
    ReloadRefused,
    /// A certificate is in use from now on.
    Certificate,
    /// An alarm was raised.
    AlarmRaised,
    /// An alarm was cleared.
    AlarmCleared,
    /// A connection to a peer is open.
    PeerUp,
    /// A connection to a peer is lost.
    PeerDown,
    /// An operator has changed something at the admin endpoint.
    Operator,
    /// A kind of a later release.
    #[serde(other)]
    Other,
}

impl Kind {
    /// Words for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::ReloadApplied => "reload applied",
            Self::ReloadRefused => "reload refused",
            Self::Certificate => "certificate",
            Self::AlarmRaised => "alarm raised",
            Self::AlarmCleared => "alarm cleared",
            Self::PeerUp => "peer up",
            Self::PeerDown => "peer down",
            Self::Operator => "operator",
            Self::Other => "other",
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its number; it rises by one, also over restarts where a sink keeps the journal.
    pub sequence: u64,
    /// When it was, RFC 3339 in UTC, always with milliseconds: texts sort as moments do.
    pub time: String,
    /// What kind of change it is.
    pub kind: Kind,
    /// What it is about: a peer, an alarm, a setting.
    pub about: String,
    /// What has changed, or why.
    pub detail: String,
    /// Who did it, where somebody did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// Keeps entries beyond the process: gets each one as a line of JSON, and must not block.
pub type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// The journal of a function; cheap to clone.
#[derive(Clone, Default)]
pub struct Journal {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    sink: OnceLock<Sink>,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    last: u64,
    /// By kind: since when its entries are counted, how many were taken, and how many were left out.
    windows: BTreeMap<Kind, (Option<Instant>, u32, u64)>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal({})", self.inner.state.lock().entries.len())
    }
}

impl Journal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what an earlier process has kept, line by line, as the oldest entries. Returns how many lines are not
    /// entries; they are passed over.
    pub fn recover<'a>(&self, lines: impl Iterator<Item = &'a str>) -> usize {
        let mut state = self.inner.state.lock();
        let mut strange = 0;
        for line in lines.filter(|line| !line.is_empty()) {
            let Ok(entry) = serde_json::from_str::<Entry>(line) else {
                strange += 1;
                continue;
            };
            state.last = state.last.max(entry.sequence);
            state.entries.push_back(entry);
            if state.entries.len() > MOST_ENTRIES {
                state.entries.pop_front();
            }
        }
        strange
    }

    /// Gives each entry from now on to this as well. The first sink stays.
    pub fn keep_in(&self, sink: Sink) {
        let _ = self.inner.sink.set(sink);
    }

    /// Records a change.
    pub fn record(&self, kind: Kind, about: &str, detail: &str) {
        self.record_by(kind, about, detail, "");
    }

    /// Records a change that somebody has made.
    pub fn record_by(&self, kind: Kind, about: &str, detail: &str, by: &str) {
        self.record_at(kind, [about, detail, by], Instant::now(), SystemTime::now());
    }

    fn record_at(&self, kind: Kind, texts: [&str; 3], now: Instant, time: SystemTime) {
        let mut state = self.inner.state.lock();
        let window = state.windows.entry(kind).or_default();
        let over = window
            .0
            .is_none_or(|since| now.saturating_duration_since(since) >= WINDOW);
        let left_out = if over { std::mem::take(&mut window.2) } else { 0 };
        if over {
            *window = (Some(now), 0, 0);
        } else if window.1 >= MOST_OF_A_KIND {
            window.2 += 1;
            return;
        }
        window.1 += 1;
        if left_out > 0 {
            let words = format!("{left_out} further entries of this kind were left out before this one");
            self.add(&mut state, kind, ["journal", &words, ""], time);
        }
        self.add(&mut state, kind, texts, time);
    }

    fn add(&self, state: &mut State, kind: Kind, [about, detail, by]: [&str; 3], time: SystemTime) {
        state.last += 1;
        let entry = Entry {
            sequence: state.last,
            time: moment(time),
            kind,
            about: cut(about),
            detail: cut(detail),
            by: cut(by),
        };
        if let (Some(sink), Ok(line)) = (self.inner.sink.get(), serde_json::to_string(&entry)) {
            sink(&line);
        }
        if state.entries.len() >= MOST_ENTRIES {
            state.entries.pop_front();
        }
        state.entries.push_back(entry);
    }

    /// The entries after this number, the oldest first; 0: all.
    #[must_use]
    pub fn after(&self, sequence: u64) -> Vec<Entry> {
        let state = self.inner.state.lock();
        let newer = state.entries.iter().filter(|entry| entry.sequence > sequence);
        newer.cloned().collect()
    }

    /// The latest entry.
    #[must_use]
    pub fn last(&self) -> Option<Entry> {
        self.inner.state.lock().entries.back().cloned()
    }

    /// The latest entry of a kind.
    #[must_use]
    pub fn last_of(&self, kind: Kind) -> Option<Entry> {
        let state = self.inner.state.lock();
        state
            .entries
            .iter()
            .rev()
            .find(|entry| entry.kind == kind)
            .cloned()
    }
}

/// A moment in UTC with milliseconds, RFC 3339: all texts have the same length, so that they sort as moments do.
#[must_use]
pub fn moment(at: SystemTime) -> String {
    let at = time::OffsetDateTime::from(at);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second, milli) = at.to_hms_milli();
    format!(
        "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z",
        u8::from(month)
    )
}

/// A text without control characters, of bounded length.
fn cut(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MOST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_in_number_length_and_rate() {
        let (journal, start) = (Journal::new(), Instant::now());
        let put = |seconds: u64, kind| {
            let texts = [&*"a\u{1b}b".repeat(400), "detail", "by"];
            let now = start + Duration::from_secs(seconds);
            journal.record_at(
                kind,
                texts,
                now,
                SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            );
        };
        for _ in 0..100 {
            put(0, Kind::PeerDown);
        }
        put(0, Kind::AlarmRaised);
        assert_eq!(
            journal.after(0).len(),
            61,
            "a flapping peer does not displace all else"
        );
        put(60, Kind::PeerDown);
        let all = journal.after(61);
        assert_eq!(all.len(), 2);
        assert!(all[0].detail.starts_with("40 further entries"), "{:?}", all[0]);
        assert_eq!(all[1].about.chars().count(), MOST_TEXT);
        assert!(!all[1].about.contains('\u{1b}'));
        assert_eq!(all[1].time, "1970-01-01T00:01:00.000Z");
        for minute in 2..100 {
            for _ in 0..60 {
                put(minute * 60, Kind::PeerUp);
            }
        }
        assert_eq!(journal.after(0).len(), MOST_ENTRIES);
    }

    #[test]
    fn an_earlier_process_is_continued() {
        let (first, kept) = (Journal::new(), Arc::new(Mutex::new(Vec::new())));
        let lines = kept.clone();
        first.keep_in(Box::new(move |line| lines.lock().push(line.to_owned())));
        first.record(Kind::Started, "nrf", "version 1");
        first.record_by(Kind::ReloadRefused, "configuration", "line 3", "SIGHUP");
        let text = kept.lock().join("\n") + "\n{\"cut";
        let second = Journal::new();
        second.recover(text.lines());
        second.record(Kind::Started, "nrf", "version 2");
        let all = second.after(0);
        assert_eq!(all.iter().map(|one| one.sequence).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(all[..2], first.after(0)[..]);
        assert_eq!(
            second.last_of(Kind::ReloadRefused).map(|one| one.by),
            Some("SIGHUP".to_owned())
        );
    }
}
