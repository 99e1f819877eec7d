//! From DATA frames to a body.

use bytes::BytesMut;
use h2::RecvStream;

use crate::body::Body;
use crate::memory;

/// Pieces that are kept as they came; what follows is copied together, so that a body sent one byte a frame
/// costs memory for bytes, not for frames.
const SEGMENTS_MAX: usize = 16;
/// Smaller pieces are copied together as well, unless the body ends with them: a piece keeps the whole buffer
/// it was read into, which may be a thousand times as large.
const KEPT_MIN: usize = 4 * 1_024;

/// Why a body could not be collected.
#[derive(Debug)]
pub(crate) enum CollectFault {
    TooLarge,
    Broken(h2::Error),
}

/// Receives a body of at most `limit` bytes, which must not be more than the stream's window; `charge`
/// gets what it takes in memory as it comes.
///
/// The window is given back when the body is whole: so the connection's window bounds what all unfinished
/// bodies of a connection hold together, and no stream needs an update of its window.
pub(crate) async fn collect(
    stream: &mut RecvStream,
    limit: usize,
    mut charge: impl FnMut(usize),
) -> Result<Body, CollectFault> {
    let mut body = Body::empty();
    let mut tail = BytesMut::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.map_err(CollectFault::Broken)?;
        if body.len() + tail.len() + piece.len() > limit {
            return Err(CollectFault::TooLarge);
        }
        charge(memory::piece(piece.len()));
        let is_kept = piece.len() >= KEPT_MIN || stream.is_end_stream();
        if is_kept && body.segments().len() < SEGMENTS_MAX {
            body.push(tail.split().freeze());
            body.push(piece);
        } else {
            tail.extend_from_slice(&piece);
        }
    }
    body.push(tail.freeze());
    // An error means that the stream has ended already, and the engine has taken the window back.
    let _ = stream.flow_control().release_capacity(body.len());
    Ok(body)
}
