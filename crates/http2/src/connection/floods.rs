//! What a peer has reason to send.
//!
//! Pings, settings, resets and updates of windows cost the peer little and this side time that others need. What was
//! sent says how many of them an honest peer has reason to send; what is beyond has a rate.

use std::time::{Duration, Instant};

use crate::error::{Fault, Flood, Reason};
use crate::limits::Config;

/// Header blocks that a server may send for each request: informational ones, the final one, trailers.
const BLOCKS_PER_REQUEST: u64 = 8;
/// Updates of windows that a peer may send for each stream, and for each DATA frame it gets: one of the stream's
/// window, one of the connection's.
const UPDATES_EACH: u64 = 2;
/// This number of bytes of DATA earns one more update, for peers that read in small pieces.
const BYTES_PER_UPDATE: usize = 1_024;

const SECOND: Duration = Duration::from_secs(1);

/// Counts of one connection.
#[derive(Debug)]
pub(super) struct Floods {
    /// When the present second ends.
    until: Instant,
    control: u32,
    resets: u32,
    windows: u32,
    empty_data: u32,
    /// Streams reset for errors of the peer, of all times.
    errors: u32,
    /// What the peer has reason to send: answers to PING and SETTINGS, updates of windows, and as a server resets and
    /// header blocks.
    pongs: u64,
    acknowledgements: u64,
    updates: u64,
    refusals: u64,
    blocks: u64,
}

impl Floods {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            until: now + SECOND,
            control: 0,
            resets: 0,
            windows: 0,
            empty_data: 0,
            errors: 0,
            pongs: 0,
            acknowledgements: 0,
            updates: 0,
            refusals: 0,
            blocks: 0,
        }
    }

    /// Begins a new second when the last one is over.
    pub(super) fn tick(&mut self, now: Instant) {
        if now >= self.until {
            self.until = now + SECOND;
            (self.control, self.resets, self.windows, self.empty_data) = (0, 0, 0, 0);
        }
    }

    /// This side sent a PING.
    pub(super) fn sent_ping(&mut self) {
        self.pongs += 1;
    }

    /// This side sent SETTINGS.
    pub(super) fn sent_settings(&mut self) {
        self.acknowledgements += 1;
    }

    /// This side sent DATA.
    pub(super) fn sent_data(&mut self, len: usize) {
        self.updates += UPDATES_EACH + (len / BYTES_PER_UPDATE) as u64;
    }

    /// This side sent a request.
    pub(super) fn sent_request(&mut self) {
        self.updates += UPDATES_EACH;
        self.refusals += 1;
        self.blocks += BLOCKS_PER_REQUEST;
    }

    /// The peer opened a stream.
    pub(super) fn opened(&mut self) {
        self.updates += UPDATES_EACH;
    }

    /// A frame that the peer has no particular reason to send.
    pub(super) fn control(&mut self, config: &Config) -> Result<(), Fault> {
        self.control += 1;
        check(self.control, config.max_control_rate, Flood::Control)
    }

    /// An answer to a PING; whether there was one.
    pub(super) fn pong(&mut self, config: &Config) -> Result<bool, Fault> {
        let asked = take_one(&mut self.pongs);
        if !asked {
            self.control(config)?;
        }
        Ok(asked)
    }

    /// An acknowledgement of SETTINGS; whether there were any.
    pub(super) fn acknowledgement(&mut self, config: &Config) -> Result<bool, Fault> {
        let sent = take_one(&mut self.acknowledgements);
        if !sent {
            self.control(config)?;
        }
        Ok(sent)
    }

    /// A header block of a server.
    pub(super) fn block(&mut self, config: &Config) -> Result<(), Fault> {
        if take_one(&mut self.blocks) {
            return Ok(());
        }
        self.control(config)
    }

    /// RST_STREAM of a client has a rate; that of a server has a reason.
    pub(super) fn reset(&mut self, of_client: bool, config: &Config) -> Result<(), Fault> {
        if of_client {
            self.resets += 1;
            return check(self.resets, config.max_reset_rate, Flood::Resets);
        }
        if take_one(&mut self.refusals) {
            return Ok(());
        }
        self.control(config)
    }

    /// WINDOW_UPDATE.
    pub(super) fn window_update(&mut self, config: &Config) -> Result<(), Fault> {
        if take_one(&mut self.updates) {
            return Ok(());
        }
        self.windows += 1;
        check(self.windows, config.max_window_update_rate, Flood::WindowUpdates)
    }

    /// DATA that brings nothing and ends nothing.
    pub(super) fn empty_data(&mut self, config: &Config) -> Result<(), Fault> {
        self.empty_data += 1;
        check(self.empty_data, config.max_control_rate, Flood::EmptyData)
    }

    /// A stream was reset for an error of the peer.
    pub(super) fn stream_error(&mut self, config: &Config) -> Result<(), Fault> {
        self.errors += 1;
        if self.errors > config.max_error_resets {
            return Err(Fault::flood(Flood::StreamErrors));
        }
        Ok(())
    }
}

fn check(count: u32, limit: u32, flood: Flood) -> Result<(), Fault> {
    if limit > 0 && count > limit {
        return Err(Fault::flood(flood));
    }
    Ok(())
}

/// Takes one off what is left; whether there was one.
fn take_one(left: &mut u64) -> bool {
    let one = *left > 0;
    *left -= u64::from(one);
    one
}

impl Fault {
    /// The peer broke a rule.
    pub(super) fn of(reason: Reason, detail: &'static str) -> Self {
        Self {
            reason,
            detail,
            flood: None,
            is_preface: false,
        }
    }

    /// The peer broke a rule of RFC 9113 that has no code of its own.
    pub(super) fn protocol(detail: &'static str) -> Self {
        Self::of(Reason::PROTOCOL_ERROR, detail)
    }

    /// A frame has a length that its type forbids.
    pub(super) fn frame_size(detail: &'static str) -> Self {
        Self::of(Reason::FRAME_SIZE_ERROR, detail)
    }

    /// A limit was passed.
    pub(super) fn flood(flood: Flood) -> Self {
        Self {
            flood: Some(flood),
            ..Self::of(Reason::ENHANCE_YOUR_CALM, flood.describe())
        }
    }
}
