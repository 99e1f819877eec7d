//! DATA: windows, and bodies that arrive.

use super::input::{Data, Expected};
use super::streams::Receiving;
use super::{Connection, Event, StreamId};
use crate::error::{Fault, Reason};
use crate::frame::{self, Head, INITIAL_WINDOW, flag};

impl Connection {
    /// The head of a DATA frame: its whole payload counts for the windows (RFC 9113 §6.9.1).
    pub(super) fn begin_data(&mut self, head: Head) -> Result<Expected, Fault> {
        if head.stream == 0 {
            return Err(Fault::protocol("DATA came on stream 0"));
        }
        let padded = head.has(flag::PADDED);
        if padded && head.len == 0 {
            return Err(Fault::frame_size("padded DATA has no length of the padding"));
        }
        self.check_not_idle(head.stream)?;
        self.receive_window -= head.len as i64;
        if self.receive_window < 0 {
            let detail = "DATA beyond the window of the connection";
            return Err(Fault::of(Reason::FLOW_CONTROL_ERROR, detail));
        }
        let ends_stream = head.has(flag::END_STREAM);
        if head.len == 0 && !ends_stream {
            self.floods.empty_data(&self.config)?;
        }
        // Before the peer has acknowledged our SETTINGS, streams have the window of RFC 9113 §6.9.2.
        let window = match self.is_acknowledged {
            true => self.own.stream_window,
            false => self.own.stream_window.max(INITIAL_WINDOW),
        };
        let Some(stream) = self.streams.find(head.stream) else {
            let expected = self.skip_data(head.len);
            if !self.reset.may_hold(head.stream) {
                self.error_on(head.stream, Reason::STREAM_CLOSED)?;
            }
            return Ok(expected);
        };
        let Some(open) = self.streams.get(stream) else {
            return Ok(self.skip_data(head.len));
        };
        open.flow += head.len as u64;
        let error = match open.receiving {
            Receiving::Head => Some(Reason::PROTOCOL_ERROR),
            Receiving::Nothing => Some(Reason::STREAM_CLOSED),
            _ if open.flow > u64::from(window) => Some(Reason::FLOW_CONTROL_ERROR),
            Receiving::Body | Receiving::Rest => None,
        };
        if let Some(reason) = error {
            let expected = self.skip_data(head.len);
            self.stream_error(stream, reason)?;
            return Ok(expected);
        }
        open.unreleased += head.len as u32;
        let owes_padding = open.padding > 0 && !ends_stream;
        if open.receiving == Receiving::Rest {
            self.counts.discarded += head.len as u64;
            self.release_padding(stream, head.len);
        }
        if owes_padding {
            self.give_padding_back(stream, 0);
        }
        let data = Data {
            stream,
            left: head.len - usize::from(padded),
            padding: 0,
            ends_stream,
        };
        Ok(if padded {
            Expected::PadLength(data)
        } else {
            Expected::Data(data)
        })
    }

    /// Bytes of a stream that are taken already: padding, and what is discarded.
    pub(super) fn release_padding(&mut self, stream: StreamId, bytes: usize) {
        if let Some(open) = self.streams.get(stream) {
            let bytes = open.unreleased.min(bytes as u32);
            open.unreleased -= bytes;
            self.release(bytes);
        }
    }

    /// Gives the window of a stream back that padding has used up: it is as large as a body may be, so that padding
    /// would keep a permitted body from its end. A frame per half of the window, or at once when little of it is left.
    pub(super) fn give_padding_back(&mut self, id: StreamId, bytes: usize) {
        let window = self.own.stream_window;
        let Some(open) = self.streams.get(id) else {
            return;
        };
        open.padding += bytes as u32;
        let is_short = open.flow + u64::from(INITIAL_WINDOW) > u64::from(window);
        let receives = matches!(open.receiving, Receiving::Body | Receiving::Rest);
        if receives && open.padding > 0 && (open.padding >= window / 2 || is_short) {
            let padding = std::mem::take(&mut open.padding);
            open.flow = open.flow.saturating_sub(u64::from(padding));
            frame::write_window_update(self.output.buffer(), id.number(), padding);
        }
    }

    /// What came of the payload of a DATA frame.
    pub(super) fn data(&mut self, data: Data, rest: &mut &[u8]) -> Result<(), Fault> {
        let (bytes, after) = rest.split_at(data.left.min(rest.len()));
        let (padding, after) = after.split_at(data.padding.min(after.len()));
        *rest = after;
        let data = Data {
            left: data.left - bytes.len(),
            padding: data.padding - padding.len(),
            ..data
        };
        self.input.expected = Expected::Data(data);
        let ends = data.left == 0 && data.padding == 0;
        if ends {
            self.input.frame_ends();
        }
        if !bytes.is_empty() {
            self.append(data.stream, bytes)?;
        }
        if ends && data.ends_stream {
            self.body_ends(data.stream)?;
        }
        Ok(())
    }

    fn append(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), Fault> {
        let limit = self.config.max_body;
        // The application or the peer may have reset it between two parts of a frame.
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if stream.receiving != Receiving::Body {
            return Ok(());
        }
        let len = stream.incoming.len() + bytes.len();
        if stream.announced.is_some_and(|announced| len as u64 > announced) {
            return self.stream_error(id, Reason::PROTOCOL_ERROR);
        }
        if len > limit {
            self.too_large(id);
            return Ok(());
        }
        let before = stream.incoming.held();
        let announced = stream
            .announced
            .and_then(|announced| usize::try_from(announced).ok());
        stream.incoming.append(bytes, announced);
        self.arriving += stream.incoming.held().saturating_sub(before);
        if !stream.has_grown {
            stream.has_grown = true;
            self.grown.push(id);
        }
        Ok(())
    }

    /// The body of a stream is larger than permitted: what came is dropped, what comes is discarded.
    pub(super) fn too_large(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.receiving = Receiving::Rest;
        self.arriving = self.arriving.saturating_sub(stream.incoming.held());
        drop(stream.incoming.take());
        let unreleased = std::mem::take(&mut stream.unreleased);
        self.counts.discarded += u64::from(unreleased);
        self.release(unreleased);
        self.events.push_back(Event::TooLarge { stream: id });
    }

    /// The peer has ended its side of a stream that had a body.
    pub(super) fn body_ends(&mut self, id: StreamId) -> Result<(), Fault> {
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        let len = stream.incoming.len() as u64;
        match stream.receiving {
            Receiving::Body if stream.announced.is_some_and(|announced| announced != len) => {
                return self.stream_error(id, Reason::PROTOCOL_ERROR);
            }
            Receiving::Body => {
                let held = stream.incoming.held();
                let body = stream.incoming.take();
                stream.unreleased = 0;
                self.arriving = (self.arriving + body.len()).saturating_sub(held);
                self.events.push_back(Event::Body { stream: id, body });
            }
            _ => {}
        }
        stream.receiving = Receiving::Nothing;
        self.remove_if_done(id);
        Ok(())
    }

    /// Reports the memory of bodies that grew and are not whole.
    pub(super) fn report_grown(&mut self) {
        while let Some(id) = self.grown.pop() {
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            stream.has_grown = false;
            if stream.receiving == Receiving::Body {
                let bytes = stream.incoming.held();
                self.events.push_back(Event::Arriving { stream: id, bytes });
            }
        }
    }
}
