//! Bytes between HTTP/2 and the kernel, in few and large pieces.
//!
//! The HTTP/2 engine flushes after every DATA frame. Behind [`Gather`] its flushes only take note; the
//! connection's driver calls [`Driver::flush`] once, when the engine has nothing more to do, and everything
//! that all streams have written meanwhile leaves in one system call. Reads fill a large buffer likewise.

mod frames;
mod gather;
mod input;
mod offer;
mod output;
mod watch;

use std::time::Duration;

pub(crate) use gather::{Driver, Gather, IoSizes, pair};
pub(crate) use offer::offer;
pub(crate) use watch::{Flood, FrameLimits, FrameWatch};

/// The largest frame we take: a usual body arrives in one piece.
pub(crate) const FRAME_SIZE: u32 = 64 * 1024;

/// How much of what a peer still sends is read after our last words, and for how long.
pub(crate) const LINGER: (usize, Duration) = (256 * 1024, Duration::from_millis(500));

/// A number of bytes as HTTP/2 windows and settings can say it.
pub(crate) fn window(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).min((1 << 31) - 1)
}

/// What a [`watch::FrameWatch`] has seen, for the fuzz target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrameSample {
    opened: u64,
    flood: Option<String>,
}

impl FrameSample {
    pub(crate) fn of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, now: std::time::Instant) -> Self {
        let mut watch = watch::FrameWatch::of_client(watch::FrameLimits::default());
        for piece in pieces {
            watch.feed(piece, now);
        }
        Self {
            opened: watch.opened(),
            flood: watch.flood().map(|flood| format!("{flood:?}")),
        }
    }
}
