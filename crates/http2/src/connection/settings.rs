//! Settings of both sides (RFC 9113 §6.5).

use crate::error::{Fault, Reason};
use crate::frame::{INITIAL_WINDOW, MAX_WINDOW, MIN_MAX_FRAME, setting};
use crate::limits::Config;

/// The largest frame that is sent to a peer who takes it: streams have their turns by frames.
const MAX_SENT_FRAME: usize = 65_536;

/// What the peer has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    /// Payload of a frame that is sent to it.
    pub(super) max_frame: usize,
    pub(super) initial_window: u32,
    pub(super) max_streams: u32,
}

impl PeerSettings {
    pub(super) const fn new() -> Self {
        Self {
            max_frame: MIN_MAX_FRAME,
            initial_window: INITIAL_WINDOW,
            max_streams: u32::MAX,
        }
    }

    /// Takes over what a SETTINGS frame says; `table_size` is called with each HEADER_TABLE_SIZE. Of several values of
    /// one setting the last counts, so that a long frame is no more work for the streams than a short one.
    pub(super) fn apply(
        &mut self,
        payload: &[u8],
        of_server: bool,
        mut table_size: impl FnMut(u32),
    ) -> Result<(), Fault> {
        let (settings, []) = payload.as_chunks::<6>() else {
            return Err(Fault::frame_size(
                "SETTINGS has a length that is not a multiple of 6",
            ));
        };
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                setting::HEADER_TABLE_SIZE => table_size(value),
                setting::ENABLE_PUSH if value > 1 || (of_server && value == 1) => {
                    return Err(Fault::protocol("invalid SETTINGS_ENABLE_PUSH"));
                }
                setting::MAX_CONCURRENT_STREAMS => self.max_streams = value,
                setting::INITIAL_WINDOW_SIZE if i64::from(value) > MAX_WINDOW => {
                    let detail = "SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1";
                    return Err(Fault::of(Reason::FLOW_CONTROL_ERROR, detail));
                }
                setting::INITIAL_WINDOW_SIZE => self.initial_window = value,
                setting::MAX_FRAME_SIZE => {
                    let size = value as usize;
                    if !(MIN_MAX_FRAME..1 << 24).contains(&size) {
                        return Err(Fault::protocol("invalid SETTINGS_MAX_FRAME_SIZE"));
                    }
                    self.max_frame = size.min(MAX_SENT_FRAME);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What this side enforces, as numbers of the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSettings {
    pub(super) max_frame: usize,
    pub(super) stream_window: u32,
    pub(super) connection_window: u32,
    /// Bytes of one header block, and CONTINUATION frames of it.
    pub(super) max_block: usize,
}

impl OwnSettings {
    pub(super) fn of(config: &Config) -> Self {
        let window = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).min(MAX_WINDOW as u32);
        let stream_window = window(config.max_body.saturating_add(1));
        let list = config.max_header_list.saturating_mul(2);
        Self {
            max_frame: (config.max_frame_size as usize).clamp(MIN_MAX_FRAME, (1 << 24) - 1),
            stream_window,
            connection_window: window(config.max_arriving).max(stream_window).max(INITIAL_WINDOW),
            max_block: list.saturating_add(MIN_MAX_FRAME),
        }
    }

    /// CONTINUATION frames that a block of this many bytes may have.
    pub(super) fn max_continuations(bytes: usize) -> usize {
        16 + bytes / 1_024
    }

    /// The first SETTINGS.
    pub(super) fn list(&self, config: &Config, of_server: bool) -> Vec<(u16, u32)> {
        let list = config
            .max_header_list
            .saturating_mul(if of_server { 2 } else { 1 });
        let mut settings = vec![
            (setting::HEADER_TABLE_SIZE, config.header_table_size),
            (setting::INITIAL_WINDOW_SIZE, self.stream_window),
            (setting::MAX_FRAME_SIZE, self.max_frame as u32),
            (
                setting::MAX_HEADER_LIST_SIZE,
                u32::try_from(list).unwrap_or(u32::MAX),
            ),
        ];
        settings.push(match of_server {
            true => (setting::MAX_CONCURRENT_STREAMS, config.max_concurrent_streams),
            false => (setting::ENABLE_PUSH, 0),
        });
        settings
    }
}
