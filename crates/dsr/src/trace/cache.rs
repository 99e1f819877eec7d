//! The newest traced messages in memory, to be searched: bounded in number and bytes.

use std::collections::{BTreeSet, VecDeque};
use std::time::SystemTime;

use diameter::proto::known;
use diameter::proto::{Dictionary, Message, text};
use parking_lot::Mutex;

use super::Record;
use crate::config::Trace;
use crate::rows::TraceRow;

/// Messages that an answer to a search has at most; the newest.
const MAX_ROWS: usize = 1000;

/// A traced message.
#[derive(Debug)]
struct Cached {
    record: Record,
    /// Name of its trigger point.
    point: String,
}

/// The newest traced messages. The control thread adds, admin pages search; workers never wait for it.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Messages>);

#[derive(Debug, Default)]
struct Messages {
    messages: VecDeque<Cached>,
    bytes: u64,
}

impl Cache {
    /// Takes a message of the point of this name; the oldest give way.
    pub(super) fn add(&self, trace: &Trace, point: &str, record: Record) {
        let mut cached = self.0.lock();
        cached.bytes += record.message.len() as u64;
        let point = point.to_owned();
        cached.messages.push_back(Cached { record, point });
        while cached.messages.len() > trace.cached_messages || cached.bytes > trace.cached_bytes.bytes() {
            let Some(evicted) = cached.messages.pop_front() else {
                break;
            };
            cached.bytes -= evicted.record.message.len() as u64;
        }
    }

    /// Messages, and their bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        let cached = self.0.lock();
        (cached.messages.len(), cached.bytes)
    }

    /// All messages of transactions of which one has `wanted` in it as text (a Session-Id, an IMSI, a host) or is of the
    /// peer of this name; the oldest first.
    pub(crate) fn search(&self, router: &str, wanted: &str) -> Vec<TraceRow> {
        let cached = self.0.lock();
        let fits = |one: &&Cached| {
            let bytes = wanted.as_bytes();
            let message = &one.record.message;
            let is_in = !bytes.is_empty() && message.windows(bytes.len()).any(|part| part == bytes);
            is_in || one.record.peer.eq_ignore_ascii_case(wanted)
        };
        let sessions: BTreeSet<String> = cached.messages.iter().filter(fits).filter_map(session).collect();
        let of_these = |one: &&Cached| match session(one) {
            Some(session) => sessions.contains(&session),
            None => fits(one),
        };
        let newest = cached.messages.iter().rev().filter(of_these).take(MAX_ROWS);
        let mut rows: Vec<TraceRow> = newest.map(|one| row(router, one)).collect();
        rows.reverse();
        rows
    }
}

fn session(cached: &Cached) -> Option<String> {
    let message = Message::parse(&cached.record.message[..]).ok()?;
    message.get(known::SESSION_ID).ok()?.map(str::to_owned)
}

fn row(router: &str, cached: &Cached) -> TraceRow {
    let Record {
        at,
        what,
        peer,
        from,
        to,
        message,
        ..
    } = &cached.record;
    let parsed = Message::parse(&message[..]);
    let (command, result, shown) = match &parsed {
        Ok(message) => {
            let shown = text::print(message, Dictionary::standard());
            (message.command(), result(message), shown.to_string())
        }
        Err(fault) => (0, 0, fault.to_string()),
    };
    TraceRow {
        at_microseconds: microseconds(*at),
        router: router.to_owned(),
        point: cached.point.clone(),
        what: (*what).to_owned(),
        peer: peer.to_string(),
        from: from.to_string(),
        to: to.to_string(),
        command,
        result,
        session: session(cached).unwrap_or_default(),
        text: shown,
    }
}

/// Result-Code or Experimental-Result-Code of an answer; 0 of a request.
fn result<B: AsRef<[u8]>>(message: &Message<B>) -> u32 {
    if let Ok(Some(code)) = message.get(known::RESULT_CODE) {
        return code;
    }
    let group = message.get(known::EXPERIMENTAL_RESULT).ok().flatten();
    let code = group.and_then(|group| group.get(known::EXPERIMENTAL_RESULT_CODE).ok().flatten());
    code.unwrap_or_default()
}

fn microseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
