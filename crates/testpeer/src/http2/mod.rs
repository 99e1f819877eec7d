//! HTTP/2 frame by frame (RFC 9113), as client or as server.
//!
//! ```no_run
//! # async fn example(addr: std::net::SocketAddr) -> std::io::Result<()> {
//! use testpeer::http2::{Peer, frame};
//! let mut peer = Peer::client(addr).await?;
//! for stream in (1..2_000).step_by(2) {
//!     peer.send(&frame::get(stream, "/")).await?;
//!     peer.send(&frame::reset(stream, 8)).await?;
//! }
//! assert_eq!(peer.goodbye().await, Some(11)); // ENHANCE_YOUR_CALM
//! # Ok(()) }
//! ```

pub mod flood;
pub mod frame;
pub mod hostile;
mod huffman;
mod peer;

pub use frame::Frame;
pub use hostile::Hostile;
pub use peer::{Listener, PREFACE, Peer};
