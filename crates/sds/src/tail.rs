//! The newest transactions as lines, in memory: what database processors that keep up poll.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;

/// Lines that are kept, at most.
const MOST_LINES: usize = 20_000;
/// Bytes of the lines, at most.
const MOST_BYTES: usize = 16 * 1_024 * 1_024;

/// The newest lines of the journal.
#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    /// Offset of the last line.
    last: u64,
    lines: VecDeque<Bytes>,
    bytes: usize,
}

impl Tail {
    /// Adds the line of an offset. One that does not follow the last one replaces all.
    pub(crate) fn push(&self, offset: u64, line: Bytes) {
        let mut tail = self.0.lock();
        if tail.last.checked_add(1) != Some(offset) {
            (tail.lines, tail.bytes) = (VecDeque::new(), 0);
        }
        tail.last = offset;
        tail.bytes += line.len();
        tail.lines.push_back(line);
        while tail.lines.len() > MOST_LINES || tail.bytes > MOST_BYTES {
            let Some(oldest) = tail.lines.pop_front() else {
                break;
            };
            tail.bytes -= oldest.len();
        }
    }

    /// Lines behind an offset, up to these numbers of lines and bytes, but one at least; none where it has not all of them.
    pub(crate) fn after(&self, offset: u64, most: usize, bytes: usize) -> Option<Vec<u8>> {
        let tail = self.0.lock();
        let behind = usize::try_from(tail.last.checked_sub(offset)?).ok()?;
        let first = tail.lines.len().checked_sub(behind)?;
        let lines = || tail.lines.range(first..).take(most);
        let mut length = 0;
        let count = lines()
            .take_while(|line| {
                length += line.len();
                length <= bytes
            })
            .count();
        let mut page = Vec::with_capacity(length.min(bytes));
        lines()
            .take(count.max(1))
            .for_each(|line| page.extend_from_slice(line));
        Some(page)
    }
}

/// A transaction as a line of the journal.
pub(crate) fn line(offset: u64, changes: &[u8]) -> Bytes {
    let mut line = format!("{{\"offset\":{offset},\"changes\":").into_bytes();
    line.extend_from_slice(changes);
    line.extend_from_slice(b"}\n");
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tail: &Tail, offset: u64, most: usize, bytes: usize) -> Option<String> {
        tail.after(offset, most, bytes)
            .map(|page| String::from_utf8(page).unwrap())
    }

    #[test]
    fn a_page_has_what_follows_an_offset() {
        let tail = Tail::default();
        assert_eq!(text(&tail, 0, 9, 99), Some(String::new()));
        (5..9).for_each(|offset| tail.push(offset, format!("{offset}\n").into()));
        assert_eq!(text(&tail, 8, 9, 99).unwrap(), "");
        assert_eq!(text(&tail, 6, 9, 99).unwrap(), "7\n8\n");
        assert_eq!(text(&tail, 4, 2, 99).unwrap(), "5\n6\n");
        assert_eq!(text(&tail, 4, 9, 5).unwrap(), "5\n6\n");
        assert_eq!(text(&tail, 4, 9, 1).unwrap(), "5\n", "one at least");
        assert_eq!(text(&tail, 3, 9, 99), None, "it is not here any more");
        assert_eq!(text(&tail, 9, 9, 99), None, "it has not been here yet");
        tail.push(20, "20\n".into());
        assert_eq!(text(&tail, 8, 9, 99), None);
        assert_eq!(text(&tail, 19, 9, 99).unwrap(), "20\n");
    }

    #[test]
    fn lines_are_bounded() {
        let tail = Tail::default();
        let half: Bytes = vec![b'x'; MOST_BYTES / 2].into();
        (1..4).for_each(|offset| tail.push(offset, half.clone()));
        assert_eq!(tail.after(0, 9, usize::MAX), None);
        assert_eq!(tail.after(1, 9, usize::MAX).unwrap().len(), 2 * half.len());
    }
}
