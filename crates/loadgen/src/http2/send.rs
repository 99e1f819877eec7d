//! Flow control of what is sent (RFC 9113 §5.2): bodies leave at once where the windows allow, else they wait.

use std::collections::VecDeque;

use bytes::Bytes;

use super::frame;

const DEFAULT_WINDOW: i64 = 65_535;

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct SendHalf {
    connection: i64,
    initial: i64,
    max_payload: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    stream: u32,
    body: Bytes,
    window: i64,
}

impl Default for SendHalf {
    fn default() -> Self {
        Self {
            connection: DEFAULT_WINDOW,
            initial: DEFAULT_WINDOW,
            max_payload: frame::DEFAULT_PAYLOAD,
            waiting: VecDeque::new(),
        }
    }
}

impl SendHalf {
    /// Sends `body` as the last of `stream`, now or as the windows open.
    ///
    /// The stream's own window is taken to be untouched, which holds because a body is handed over whole and
    /// a peer widens a stream's window only after having received from it.
    pub(super) fn body(&mut self, out: &mut Vec<u8>, stream: u32, body: &Bytes) {
        let mut entry = Waiting {
            stream,
            body: body.clone(),
            window: self.initial,
        };
        if !self.waiting.is_empty() || !Self::push(&mut self.connection, self.max_payload, &mut entry, out) {
            self.waiting.push_back(entry);
        }
    }

    /// Whether anything waits for a window.
    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The stream is over; nothing of it is to be sent.
    pub(super) fn forget(&mut self, stream: u32) {
        self.waiting.retain(|w| w.stream != stream);
    }

    /// `WINDOW_UPDATE`. False when the window would pass its limit (RFC 9113 §6.9.1).
    pub(super) fn widen(&mut self, stream: u32, by: u32, out: &mut Vec<u8>) -> bool {
        let window = if stream == 0 {
            &mut self.connection
        } else {
            match self.waiting.iter_mut().find(|w| w.stream == stream) {
                Some(waiting) => &mut waiting.window,
                None => return true,
            }
        };
        *window += i64::from(by);
        let fits = *window <= i64::from(i32::MAX);
        self.flush(out);
        fits
    }

    /// `SETTINGS_INITIAL_WINDOW_SIZE`: also moves the windows of open streams (RFC 9113 §6.9.2).
    pub(super) fn set_initial(&mut self, initial: u32, out: &mut Vec<u8>) {
        let change = i64::from(initial) - self.initial;
        self.initial += change;
        for waiting in &mut self.waiting {
            waiting.window += change;
        }
        self.flush(out);
    }

    /// `SETTINGS_MAX_FRAME_SIZE`.
    pub(super) fn set_max_payload(&mut self, bytes: usize) {
        self.max_payload = bytes;
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let (connection, max_payload) = (&mut self.connection, self.max_payload);
        self.waiting
            .retain_mut(|entry| !Self::push(connection, max_payload, entry, out));
    }

    /// Sends what the windows allow; true when all of it is out.
    fn push(connection: &mut i64, max_payload: usize, entry: &mut Waiting, out: &mut Vec<u8>) -> bool {
        loop {
            let allowed = entry.window.min(*connection).max(0) as usize;
            let length = entry.body.len().min(allowed).min(max_payload);
            if length == 0 && !entry.body.is_empty() {
                return false;
            }
            let piece = entry.body.split_to(length);
            let last = entry.body.is_empty();
            frame::put_header(
                out,
                length,
                frame::DATA,
                if last { frame::END_STREAM } else { 0 },
                entry.stream,
            );
            out.extend_from_slice(&piece);
            entry.window -= length as i64;
            *connection -= length as i64;
            if last {
                return true;
            }
        }
    }
}
